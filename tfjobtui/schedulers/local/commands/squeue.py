"""squeue: what waits and runs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from tfjobtui.errors import FormatError, UsageError
from tfjobtui.model.ids import JobId
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local import details
from tfjobtui.schedulers.local.commands.columns import SHARED, Row, cell
from tfjobtui.schedulers.local.commands.getopt import Parsed, Table, parse
from tfjobtui.schedulers.local.machine import find_machine
from tfjobtui.schedulers.local.place import default_place
from tfjobtui.schedulers.local.records import JobRecord
from tfjobtui.schedulers.local.store import Store

_TABLE = Table(
    with_value="""
    format:o Format:O user:u jobs:j states:t name:n partition:p account:A qos:q sort:S nodelist:w clusters:M
    """,
    flags="noheader:h array:r all:a me long:l start local federation verbose:v version:V unique",
)
_DEFAULT = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
_LONG = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
_START = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"
_LETTERS: Mapping[str, str] = {
    "i": "jobarrayid", "A": "jobid", "F": "arrayjobid", "K": "arraytaskid", "j": "name", "t": "statecompact",
    "T": "state", "u": "username", "U": "userid", "P": "partition", "M": "timeused", "l": "timelimit",
    "L": "timeleft", "S": "starttime", "e": "endtime", "V": "submittime", "r": "reason", "R": "reasonlist",
    "N": "nodelist", "B": "batchhost", "D": "numnodes", "C": "numcpus", "m": "minmemory", "a": "account",
    "q": "qos", "Q": "prioritylong", "b": "tres-per-node", "Z": "workdir", "o": "command", "k": "comment",
    "E": "dependency", "f": "feature", "Y": "nodelist",
}  # fmt: skip
_TITLES: Mapping[str, str] = {
    "i": "JOBID", "A": "JOBID", "F": "ARRAY_JOB_ID", "K": "ARRAY_TASK_ID", "j": "NAME", "t": "ST", "T": "STATE",
    "u": "USER", "U": "UID", "P": "PARTITION", "M": "TIME", "l": "TIME_LIMIT", "L": "TIME_LEFT",
    "S": "START_TIME", "e": "END_TIME", "V": "SUBMIT_TIME", "r": "REASON", "R": "NODELIST(REASON)",
    "N": "NODELIST", "B": "EXEC_HOST", "D": "NODES", "C": "CPUS", "m": "MIN_MEMORY", "a": "ACCOUNT", "q": "QOS",
    "Q": "PRIORITY", "b": "TRES_PER_NODE", "Z": "WORK_DIR", "o": "COMMAND", "k": "COMMENT", "E": "DEPENDENCY",
    "f": "FEATURES", "Y": "SCHEDNODES",
}  # fmt: skip
_FIELD = re.compile(r"%(?P<right>\.?)(?P<width>\d*)(?P<letter>[A-Za-z])")
_WIDE = 20


def run(argv: Sequence[str]) -> int:
    """Print the table."""
    options = parse("squeue", _TABLE, argv)
    if options.has("version"):
        from tfjobtui import __version__

        print(f"tfjobtui {__version__} (local scheduler)")
        return 0
    store = Store(default_place())
    machine = find_machine(store.settings())
    rows = [Row(record, machine) for record in _chosen(store, options)]
    header, line = _form(options)
    if not options.has("noheader"):
        print(header)
    for row in rows:
        print(line(row))
    return 0


def _chosen(store: Store, options: Parsed) -> Iterator[JobRecord]:
    wanted_states = _states(options)
    for record in sorted(_candidates(store, options), key=_order):
        if wanted_states is None or record.state in wanted_states:
            yield from _expanded(record) if options.has("array") else (record,)


def _candidates(store: Store, options: Parsed) -> Sequence[JobRecord]:
    users = options.get("user").split(",") if options.has("user") else []
    if users and not {details.user_name(), str(os.getuid())} & set(users):
        return ()
    names = options.get("name").split(",") if options.has("name") else None
    partitions = options.get("partition").split(",") if options.has("partition") else None
    rows = store.jobs() if options.has("states") or options.has("jobs") else store.live()
    if options.has("jobs"):
        rows = tuple(_by_ids(store, options.get("jobs"), has_states=options.has("states")))
    return [
        row
        for row in rows
        if (names is None or row.request.name in names)
        and (partitions is None or (row.request.partition or "local") in partitions)
    ]


def _by_ids(store: Store, text: str, *, has_states: bool) -> Iterator[JobRecord]:
    for word in text.split(","):
        try:
            found = store.find(JobId.parse(word))
        except FormatError as error:
            raise UsageError(f"Invalid job id: {word}") from error
        if not found:
            raise UsageError("Invalid job id specified")
        yield from (row for row in found if has_states or not row.state.is_terminal)


def _states(options: Parsed) -> set[JobState] | None:
    text = options.get("states")
    if not text or text.casefold() == "all":
        return None
    found = {JobState.of(word.upper()) for word in text.split(",")}
    if JobState.UNKNOWN in found:
        raise UsageError(f"Invalid job state specified: {text}")
    return found


def _order(record: JobRecord) -> tuple[bool, int, int]:
    """What waits first, by priority; then what runs."""
    return (record.state is not JobState.PENDING, -record.priority, record.id)


def _expanded(record: JobRecord) -> Iterator[JobRecord]:
    from dataclasses import replace

    if record.array_tasks is None:
        yield record
        return
    for task in record.array_tasks:
        yield replace(record, array_tasks=None, array_task_id=task)


def _form(options: Parsed) -> tuple[str, Callable[[Row], str]]:
    if options.has("Format"):
        return _long_form(options.get("Format"))
    usual = _LONG if options.has("long") else _START if options.has("start") else _DEFAULT
    return _letter_form(options.get("format") or os.environ.get("SQUEUE_FORMAT") or usual)


def _letter_form(text: str) -> tuple[str, Callable[[Row], str]]:
    for match in _FIELD.finditer(text):
        if match["letter"] not in _LETTERS:
            raise UsageError(f"Invalid job format specification: %{match['letter']} (not known here)")

    def fill(value: Callable[[str], str]) -> str:
        def one(match: re.Match[str]) -> str:
            shown = value(match["letter"])
            width = int(match["width"] or 0)
            return cell(shown, width, left=not match["right"]) if width else shown

        return _FIELD.sub(one, text).rstrip()

    return fill(_TITLES.__getitem__), lambda row: fill(lambda letter: SHARED[_LETTERS[letter]](row))


def _long_form(text: str) -> tuple[str, Callable[[Row], str]]:
    fields: list[tuple[str, int, str]] = []
    for word in text.split(","):
        name, colon, rest = word.partition(":")
        digits = re.match(r"\.?(\d*)", rest)
        assert digits is not None
        width = int(digits[1]) if digits[1] else (0 if colon else _WIDE)
        if name.strip().casefold() not in SHARED:
            raise UsageError(f"Invalid job format specification: {name} (not known here)")
        fields.append((name.strip(), width, rest[digits.end() :]))

    def fill(value: Callable[[str], str]) -> str:
        return "".join(
            (cell(value(name), width, left=True) if width else value(name)) + suffix
            for name, width, suffix in fields
        )

    return fill(str.upper), lambda row: fill(lambda name: SHARED[name.casefold()](row))
