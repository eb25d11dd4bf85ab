"""sacct: what jobs were and what they used."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tfjobtui.errors import FormatError
from tfjobtui.model.ids import JobId
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local.commands import version
from tfjobtui.schedulers.local.commands.accounting_fields import (
    SACCT,
    Column,
    Units,
    header_lines,
    table_lines,
    value,
)
from tfjobtui.schedulers.local.commands.getopt import Parsed, Table, parse
from tfjobtui.schedulers.local.commands.job_rows import Row, Surroundings
from tfjobtui.schedulers.local.commands.live_steps import steps_of
from tfjobtui.schedulers.local.commands.refusal import RefusalError, refuse
from tfjobtui.schedulers.local.environment import CLUSTER
from tfjobtui.schedulers.local.place import default_place
from tfjobtui.schedulers.local.records import JobRecord
from tfjobtui.schedulers.local.store import Store

_TABLE = Table(
    "sacct",
    with_value="""
    format:o jobs:j starttime:S endtime:E state:s states=state user:u uid=user users=user name jobname=name
    delimiter partition:r accounts:A account=accounts units clusters:M cluster=clusters qos:q
    """,
    flags="""
    parsable:p parsable2:P noheader:n allocations:X allusers:a duplicates:D brief:b noconvert helpformat:e
    long:l local allclusters:L federation array verbose:v version:V help:h usage
    """,
    with_value_not_here="""
    nodelist:N ncpus:I nnodes:i group:g gid=group constraints:C flags:F reason:R timelimit-min:k timelimit-max:K
    wckeys:W associations:x file:f whole-hetjob
    """,
    flags_not_here="batch-script:B env-vars completion:c truncate:T json yaml use-local-uid expand-patterns",
    hint=False,
)
_DEFAULT = "jobid,jobname,partition,account,alloccpus,state,exitcode"
_BRIEF = "jobid,state,exitcode"
_LONG = """
jobid jobidraw jobname partition maxvmsize maxvmsizenode maxvmsizetask avevmsize maxrss maxrssnode maxrsstask averss
maxpages maxpagesnode maxpagestask avepages mincpu mincpunode mincputask avecpu ntasks alloccpus elapsed state exitcode
avecpufreq reqcpufreqmin reqcpufreqmax reqcpufreqgov reqmem consumedenergy maxdiskread maxdiskreadnode maxdiskreadtask
avediskread maxdiskwrite maxdiskwritenode maxdiskwritetask avediskwrite reqtres alloctres tresusageinave tresusageinmax
tresusageinmaxn tresusageinmaxt tresusageinmin tresusageinminn tresusageinmint tresusageintot tresusageoutmax
tresusageoutmaxn tresusageoutmaxt tresusageoutave tresusageouttot
"""


def run(argv: Sequence[str]) -> int:
    """Print the table.

    Raises:
        RefusalError: an option, a field, a time or an id is wrong, or not for here.
    """
    options = parse(_TABLE, argv)
    if version.told("sacct", options):
        return 0
    if options.rest:
        raise RefusalError(
            "\n".join(
                ["sacct: error: Unknown arguments:", *(f"sacct: error:  {word}" for word in options.rest)]
            )
        )
    if options.has("helpformat"):
        _print_names()
        return 0
    columns = columns_of("sacct", _format(options), SACCT)
    _check(options)
    store = Store(default_place())
    around = Surroundings(store)
    rows = [row for record in _records(store, options, around) for row in _rows(record, around, options)]
    print_rows(options, columns, rows, units_of(options))
    return 0


def _print_names() -> None:
    names = list(SACCT)
    for start in range(0, len(names), 4):
        print(" ".join(f"{name:<19}" for name in names[start : start + 4]))


def _format(options: Parsed) -> str:
    if options.has("format"):
        return options.get("format")
    if options.has("long"):
        return ",".join(_LONG.split())
    if options.has("brief"):
        return _BRIEF
    return os.environ.get("SACCT_FORMAT") or _DEFAULT


def columns_of(command: str, text: str, known: Mapping[str, int]) -> list[Column]:
    """The fields, by their names or beginnings of them, and the cells that each takes (`jobname%30`).

    Raises:
        RefusalError: there is no such field.
    """
    found: list[Column] = []
    for word in text.split(","):
        name, percent, width = word.strip().partition("%")
        if name.casefold() == "all":
            found += [Column(field, size) for field, size in known.items()]
            continue
        if not name:
            continue
        field = next((field for field in known if field.casefold().startswith(name.casefold())), None)
        if field is None:
            refuse(command, f'Invalid field requested: "{name}"')
        is_number = bool(percent) and width.lstrip("-").isdigit() and int(width) != 0
        found.append(Column(field, int(width) if is_number else known[field]))
    return found


def units_of(options: Parsed) -> Units:
    """How sizes are to be printed."""
    wanted = options.get("units").upper()
    if wanted and wanted not in ("K", "M", "G", "T", "P"):
        raise RefusalError("Invalid unit type")
    return Units(wanted, options.has("noconvert") and not wanted)


def print_rows(options: Parsed, columns: Sequence[Column], rows: Sequence[Row], units: Units) -> None:
    """The rows as a table, or with a delimiter between the fields."""
    texts = [[value(column.name, row, units) for column in columns] for row in rows]
    if not (options.has("parsable") or options.has("parsable2")):
        lines = table_lines(columns, texts)
        lines[:0] = [] if options.has("noheader") else header_lines(columns)
    else:
        delimiter = options.get("delimiter", "|")
        texts[:0] = [] if options.has("noheader") else [[column.name for column in columns]]
        end = delimiter if options.has("parsable") else ""
        lines = [delimiter.join(row) + end for row in texts]
    for line in lines:
        print(line)


def _check(options: Parsed) -> None:
    for name in options.words("clusters") or ():
        if name not in (CLUSTER, "all"):
            refuse("sacct", f"No cluster '{name}' known by database.")
    import pwd

    for name in options.words("user") or ():
        if not name.isdigit():
            try:
                pwd.getpwnam(name)
            except KeyError:
                refuse("sacct", f"Invalid user id: {name}")


# ---- Which jobs


@dataclass(frozen=True, slots=True)
class _Window:
    """Moments, the end not included, by the rules of sacct(1), DEFAULT TIME WINDOW."""

    start_s: float
    end_s: float


def _window(options: Parsed, now_s: float) -> _Window:
    start_s, end_s = _moment(options, "starttime", now_s), _moment(options, "endtime", now_s)
    has_jobs, has_states = bool(options.words("jobs")), bool(options.words("state"))
    if start_s is None and not has_jobs:
        midnight = time.mktime((*time.localtime(now_s)[:3], 0, 0, 0, 0, 0, -1))
        start_s = float(int(now_s)) if has_states else midnight
    if end_s is None and has_states and start_s is not None:
        end_s = start_s
    if end_s is None:
        end_s = float(int(now_s))
    if start_s is not None and start_s > end_s:
        refuse("sacct", "Start time requested is after end time.")
    # So that the second of the end counts where the window is one moment or ends now.
    return _Window(start_s or 0.0, end_s + 1 if end_s in (start_s, float(int(now_s))) else end_s)


def _moment(options: Parsed, name: str, now_s: float) -> float | None:
    if not options.has(name):
        return None
    from tfjobtui.schedulers.local.moments import moment_s

    try:
        return moment_s(options.get(name), now_s)
    except FormatError as error:
        raise RefusalError(f"Invalid time specification (pos=0): {options.get(name)}") from error


def _states(options: Parsed) -> frozenset[JobState]:
    found = set()
    for word in options.words("state") or ():
        state = JobState.of(word)
        if state is JobState.UNKNOWN:
            raise RefusalError(f"sacct: fatal: unrecognized job state value '{word}'")
        found.add(state)
    return frozenset(found)


def _records(store: Store, options: Parsed, around: Surroundings) -> Iterator[JobRecord]:
    window, states = _window(options, around.now_s), _states(options)
    is_named = bool(options.words("jobs"))
    for record in _named(store, options):
        if not _fits(record, options, around):
            continue
        for one in _runs(store, record) if options.has("duplicates") else (record,):
            if states:
                is_in = any(_was(state, one, window) for state in states)
            else:
                is_in = _overlaps(one, window, any_eligibility=is_named)
            if is_in:
                yield one


def _named(store: Store, options: Parsed) -> Sequence[JobRecord]:
    from tfjobtui.schedulers.local.commands.scontrol import split_ids

    if not options.words("jobs"):
        return store.jobs()
    found: dict[int, JobRecord] = {}
    for word in split_ids(options.get("jobs")):
        try:
            job_id = JobId.parse(word.partition(".")[0])
        except FormatError as error:
            raise RefusalError(f"sacct: fatal: Bad job/step specified: {word}") from error
        for record in store.find(job_id):
            # A task that has not started has no record of its own yet.
            if job_id.task is None or record.array_tasks is None:
                found[record.id] = record
    return [found[raw] for raw in sorted(found)]


def _fits(record: JobRecord, options: Parsed, around: Surroundings) -> bool:
    request = record.request
    own = {around.user, str(os.getuid())}
    return all(
        words is None or not own.isdisjoint(words) if name == "user" else words is None or text in words
        for name, text in (
            ("user", ""),
            ("name", request.name),
            ("partition", request.partition or CLUSTER),
            ("accounts", request.account),
            ("qos", request.qos or "normal"),
        )
        for words in (options.words(name),)
    )


def _overlaps(record: JobRecord, window: _Window, *, any_eligibility: bool) -> bool:
    """Whether it was eligible in the window; a job that is named need not be eligible."""
    ended_s = record.end_s
    if ended_s is not None and ended_s < window.start_s:
        return False
    if any_eligibility:
        return record.submit_s < window.end_s
    return record.eligible_s is not None and record.eligible_s < window.end_s


def _was(state: JobState, record: JobRecord, window: _Window) -> bool:
    """Whether it was in a state within the window; for an ended one whether that came about in it."""
    if state is JobState.PENDING:
        begun_s = record.start_s if record.start_s is not None else record.end_s
        is_eligible = record.eligible_s is not None and record.eligible_s < window.end_s
        waits = record.state is JobState.PENDING if begun_s is None else begun_s > window.start_s
        return is_eligible and waits
    if state is JobState.RUNNING:
        if record.start_s is None or record.start_s >= window.end_s:
            return False
        return record.end_s > window.start_s if record.end_s is not None else not record.state.is_terminal
    return (
        record.state is state
        and record.end_s is not None
        and window.start_s <= int(record.end_s) <= window.end_s
    )


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
            cancelled_by_uid=None,
        )
    yield record


def _rows(record: JobRecord, around: Surroundings, options: Parsed) -> Iterator[Row]:
    steps = _wanted_steps(record, options)
    if steps is None or "" in steps:
        yield Row(record, around)
    if options.has("allocations"):
        return
    for step in steps_of(record, "sacct"):
        if steps is None or "" in steps or step.name in steps:
            yield Row(record, around, step)


def _wanted_steps(record: JobRecord, options: Parsed) -> set[str] | None:
    """The steps that `-j` asks for of this job; an empty name asks for all of it, `None` too."""
    words = options.words("jobs")
    if not words or not any("." in word for word in words):
        return None
    found: set[str] = set()
    for word in words:
        job, _, step = word.partition(".")
        if job in (str(record.id), str(record.job_id), str(record.array_job_id)):
            found.add(step)
    return found
