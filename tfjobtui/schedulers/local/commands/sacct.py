"""sacct: what jobs were and what they used."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tfjobtui.errors import FormatError, UsageError
from tfjobtui.model.ids import JobId
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local.commands.columns import ACCOUNTING, Row, accounting_field, table
from tfjobtui.schedulers.local.commands.getopt import Parsed, Table, parse
from tfjobtui.schedulers.local.machine import Machine, find_machine
from tfjobtui.schedulers.local.moments import moment_s
from tfjobtui.schedulers.local.place import default_place
from tfjobtui.schedulers.local.records import JobRecord
from tfjobtui.schedulers.local.store import Store

_TABLE = Table(
    with_value="""
    format:o jobs:j starttime:S endtime:E state:s user:u name delimiter partition:r account:A units cluster:M
    clusters uid
    """,
    flags="""
    parsable:p parsable2:P noheader:n allocations:X allusers:a duplicates:D brief:b noconvert helpformat:e
    array local:L truncate:T version:V me
    """,
)
_DEFAULT = "jobid,jobname,partition,account,alloccpus,state,exitcode"
_BRIEF = "jobid,state,exitcode"


def run(argv: Sequence[str]) -> int:
    """Print the table."""
    options = parse("sacct", _TABLE, argv)
    if options.has("helpformat"):
        print("\n".join(ACCOUNTING))
        return 0
    store = Store(default_place())
    machine = find_machine(store.settings())
    names, places = fields_of(options.get("format") or (_BRIEF if options.has("brief") else _DEFAULT))
    rows = [row for record in _records(store, options) for row in _rows(record, machine, options)]
    print_rows(options, names, places, rows)
    return 0


def fields_of(text: str) -> tuple[list[str], list[int]]:
    """The fields and the cells that each takes (`jobname%30`; left-aligned below zero)."""
    names: list[str] = []
    places: list[int] = []
    for word in text.split(","):
        name, percent, width = word.strip().partition("%")
        if not name:
            continue
        field = accounting_field(name)
        names.append(field)
        places.append(int(width) if percent and width.lstrip("-").isdigit() else ACCOUNTING[field][0])
    return names, places


def print_rows(options: Parsed, names: Sequence[str], places: Sequence[int], rows: Sequence[Row]) -> None:
    """The rows as a table, or with a delimiter between the fields."""
    texts = [[ACCOUNTING[name][1](row) for name in names] for row in rows]
    titles = [_TITLES.get(name, name.capitalize()) for name in names]
    delimiter = options.get("delimiter", "|")
    if options.has("parsable2") or options.has("parsable"):
        end = delimiter if options.has("parsable") else ""
        lines = [
            delimiter.join(row) + end for row in ([titles] if not options.has("noheader") else []) + texts
        ]
    else:
        lines = table(texts, places)
        if not options.has("noheader"):
            rule = table([["-" * abs(width) for width in places]], places)
            lines = [*table([titles], places), *rule, *lines]
    for line in lines:
        print(line)


_TITLES = {
    "jobid": "JobID", "jobidraw": "JobIDRaw", "jobname": "JobName", "alloccpus": "AllocCPUS", "exitcode": "ExitCode",
    "derivedexitcode": "DerivedExitCode", "maxrss": "MaxRSS", "averss": "AveRSS", "totalcpu": "TotalCPU",
    "cputime": "CPUTime", "cputimeraw": "CPUTimeRAW", "elapsedraw": "ElapsedRaw", "timelimitraw": "TimelimitRaw",
    "nodelist": "NodeList", "nnodes": "NNodes", "ncpus": "NCPUS", "ntasks": "NTasks", "reqmem": "ReqMem",
    "reqcpus": "ReqCPUS", "alloctres": "AllocTRES", "reqtres": "ReqTRES", "workdir": "WorkDir", "qos": "QOS",
    "uid": "UID", "avecpu": "AveCPU", "maxdiskread": "MaxDiskRead", "maxdiskwrite": "MaxDiskWrite",
    "submitline": "SubmitLine", "allocnodes": "AllocNodes",
}  # fmt: skip


def _records(store: Store, options: Parsed) -> Iterator[JobRecord]:
    now_s = time.time()
    midnight = time.mktime((*time.localtime(now_s)[:3], 0, 0, 0, 0, 0, -1))
    usual_start = 0.0 if options.has("jobs") else midnight
    start_s = _moment(options, "starttime", usual_start)
    end_s = _moment(options, "endtime", now_s)
    states = {JobState.of(word.upper()) for word in options.get("state").split(",") if word}
    names = options.get("name").split(",") if options.has("name") else None
    for record in _wanted(store, options):
        ended_s = record.end_s if record.end_s is not None else now_s
        for run in _runs(store, record) if options.has("duplicates") else (record,):
            if (
                ended_s >= start_s
                and run.submit_s <= end_s
                and (not states or run.state in states)
                and (names is None or run.request.name in names)
            ):
                yield run


def _runs(store: Store, record: JobRecord) -> Iterator[JobRecord]:
    """The runs before a requeue too, oldest first."""
    for start_s, ending in store.runs(record.id):
        yield replace(
            record,
            state=ending.state,
            start_s=start_s,
            end_s=ending.end_s,
            exit_code=ending.exit_code,
            usage=ending.usage,
            steps=ending.steps,
        )
    yield record


def _moment(options: Parsed, name: str, usual: float) -> float:
    if not options.has(name):
        return usual
    try:
        return moment_s(options.get(name), time.time())
    except FormatError as error:
        raise UsageError(f"Invalid time specification: {options.get(name)}") from error


def _wanted(store: Store, options: Parsed) -> Sequence[JobRecord]:
    if not options.has("jobs"):
        return store.jobs()
    found: dict[int, JobRecord] = {}
    for word in options.get("jobs").split(","):
        try:
            found |= {record.id: record for record in store.find(JobId.parse(word.partition(".")[0]))}
        except FormatError as error:
            raise UsageError(f"Bad job/step specified: {word}") from error
    return [found[raw] for raw in sorted(found)]


def _rows(record: JobRecord, machine: Machine, options: Parsed) -> Iterator[Row]:
    yield Row(record, machine)
    if not options.has("allocations"):
        for step in record.steps:
            yield Row(record, machine, step)
