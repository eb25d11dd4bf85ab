"""squeue: what waits and runs."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tfjobtui.errors import FormatError
from tfjobtui.model.ids import JobId
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local.commands import version
from tfjobtui.schedulers.local.commands.forms import cut
from tfjobtui.schedulers.local.commands.getopt import Parsed, Table, parse
from tfjobtui.schedulers.local.commands.job_rows import (
    MIN_JOB_AGE_S,
    Row,
    Surroundings,
    each_task,
    is_in_queue,
    only_task,
)
from tfjobtui.schedulers.local.commands.queue_fields import FIELDS, LETTERS, SAME, UNCUT, UNCUT_TITLES
from tfjobtui.schedulers.local.commands.refusal import RefusalError, refuse
from tfjobtui.schedulers.local.environment import CLUSTER
from tfjobtui.schedulers.local.place import default_place
from tfjobtui.schedulers.local.records import JobRecord
from tfjobtui.schedulers.local.store import Store

_TABLE = Table(
    "squeue",
    with_value="""
    format:o Format:O user:u users=user states:t name:n partitions:p account:A accounts=account qos:q sort:S
    nodelist:w node=nodelist nodes=nodelist clusters:M cluster=clusters
    """,
    flags="""
    noheader:h array:r array-unique all:a me long:l start local federation hide noconvert verbose:v version:V
    help usage
    """,
    loose="jobs:j job=jobs",
    with_value_not_here="iterate:i licenses:L reservation:R",
    flags_not_here="steps:s json yaml sibling priority:P only-job-state expand-patterns notme",
)
_VARIABLES = (
    ("SQUEUE_FORMAT", "format"), ("SQUEUE_FORMAT2", "Format"), ("SQUEUE_SORT", "sort"), ("SQUEUE_STATES", "states"),
    ("SQUEUE_USERS", "user"), ("SQUEUE_PARTITION", "partitions"), ("SQUEUE_NAMES", "name"),
    ("SQUEUE_ACCOUNT", "account"), ("SQUEUE_QOS", "qos"), ("SQUEUE_ARRAY", "array"), ("SLURM_CLUSTERS", "clusters"),
)  # fmt: skip
_DEFAULT = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
_LONG = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
_START = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"
_WIDE = 20
_LIVE = frozenset(
    {JobState.PENDING, JobState.RUNNING, JobState.SUSPENDED, JobState.COMPLETING, JobState.CONFIGURING}
)


def run(argv: Sequence[str]) -> int:
    """Print the table.

    Raises:
        RefusalError: an option, a field or an id is wrong, or not for here.
    """
    options = parse(_TABLE, argv)
    if version.told("squeue", options):
        return 0
    if options.rest:
        refuse("squeue", f"Unrecognized option: {options.rest[0]}")
    _take_variables(options)
    _check_clusters(options)
    store = Store(default_place())
    around = Surroundings(store)
    columns, order = _columns(options), _sort_keys(options)
    rows = [Row(record, around) for record in _chosen(store, options, around)]
    for key, is_reversed in reversed(order):
        rows.sort(key=key, reverse=is_reversed)
    _print(options, columns, rows)
    return 0


def _take_variables(options: Parsed) -> None:
    has_format = options.has("format") or options.has("Format") or options.has("long") or options.has("start")
    for variable, name in _VARIABLES:
        if variable in os.environ and not options.has(name) and not (has_format and name.endswith("ormat")):
            options.options[name] = os.environ[variable]


def _check_clusters(options: Parsed) -> None:
    for name in options.words("clusters") or ():
        if name not in (CLUSTER, "all"):
            refuse("squeue", f"No cluster '{name}' known by database.")


def _print(options: Parsed, columns: Sequence[_Column], rows: Iterable[Row]) -> None:
    if options.has("clusters") and not options.has("noheader"):
        print(f"CLUSTER: {CLUSTER}")
    if not options.has("noheader"):
        if options.has("long"):
            print(time.strftime("%a %b %d %H:%M:%S %Y"))
        print("".join(column.title() for column in columns))
    for row in rows:
        print("".join(column.cell(row) for column in columns))


# ---- Which jobs


def _chosen(store: Store, options: Parsed, around: Surroundings) -> Iterator[JobRecord]:
    states = _states(options)
    fits = _filters(options, around)
    for record in _named(store, options, around):
        if record.state in states and all(fit(record) for fit in fits):
            yield from each_task(record) if options.has("array") else (record,)


def _named(store: Store, options: Parsed, around: Surroundings) -> Iterator[JobRecord]:
    """The jobs of `-j`, or all that are in the queue."""
    words = options.words("jobs")
    if not words:
        found = store.jobs(since_s=around.now_s - MIN_JOB_AGE_S)
        yield from (record for record in found if is_in_queue(record, around.now_s))
        return
    seen: set[tuple[int, int | None]] = set()
    from tfjobtui.schedulers.local.commands.scontrol import split_ids

    for word in split_ids(options.get("jobs")):
        job_id = _job_id(word)
        records = [record for record in store.find(job_id) if is_in_queue(record, around.now_s)]
        if not records and len(words) == 1:
            raise RefusalError("slurm_load_jobs error: Invalid job id specified")
        for record in records:
            one = record if job_id.task is None else only_task(record, job_id.task)
            if (one.id, one.array_task_id) not in seen:
                seen.add((one.id, one.array_task_id))
                yield one


def _job_id(word: str) -> JobId:
    try:
        return JobId.parse(word)
    except FormatError as error:
        raise RefusalError(f"squeue: error: Invalid job id: {word}") from error


def _states(options: Parsed) -> frozenset[JobState]:
    words = options.words("states")
    if words is None:
        return frozenset({JobState.PENDING}) if options.has("start") else _LIVE
    if "all" in (word.casefold() for word in words):
        return frozenset(JobState)
    found = frozenset(JobState.of(word) for word in words)
    if JobState.UNKNOWN in found:
        bad = next(word for word in words if JobState.of(word) is JobState.UNKNOWN)
        raise RefusalError(f"squeue: error: Invalid job state specified: {bad}")
    return found


def _filters(options: Parsed, around: Surroundings) -> list[Callable[[JobRecord], bool]]:
    fits: list[Callable[[JobRecord], bool]] = []
    users = options.words("user")
    if users is not None and not options.has("me"):
        is_mine = _names_me(users, around)
        fits.append(lambda _: is_mine)
    for name, value in (
        ("name", lambda record: record.request.name),
        ("partitions", lambda record: record.request.partition or CLUSTER),
        ("account", lambda record: record.request.account),
        ("qos", lambda record: record.request.qos or "normal"),
    ):
        if (words := options.words(name)) is not None:
            fits.append(_one_of(value, words))
    if options.has("nodelist"):
        is_here = around.host in _hosts(options.get("nodelist"))
        fits.append(lambda record: is_here and record.start_s is not None)
    return fits


def _one_of(value: Callable[[JobRecord], str], words: Sequence[str]) -> Callable[[JobRecord], bool]:
    return lambda record: value(record) in words


def _names_me(users: Sequence[str], around: Surroundings) -> bool:
    """Whether the user is among them; one that the system does not know is told of, as squeue does."""
    import pwd

    for user in users:
        if not user.isdigit():
            try:
                pwd.getpwnam(user)
            except KeyError:
                sys.stderr.write(f"squeue: error: Invalid user: {user}\n\n")
    return bool({around.user, str(os.getuid())} & set(users))


def _hosts(text: str) -> Sequence[str]:
    from tfjobtui.model import hostlist

    try:
        return hostlist.expand(text)
    except FormatError as error:
        raise RefusalError(f"squeue: error: Invalid node list: {text}") from error


# ---- Their order


_STATES: tuple[JobState, ...] = (
    JobState.PENDING,
    *(state for state in JobState if state is not JobState.PENDING),
)
_SORTS: dict[str, Callable[[Row], Any]] = {
    "A": lambda row: row.record.id,
    "C": lambda row: row.cpus,
    "D": lambda _: 1,
    "e": lambda row: row.due_s or 0.0,
    "i": lambda row: (row.record.array_job_id or row.record.id, _first_task(row.record)),
    "j": lambda row: row.record.request.name,
    "l": lambda row: row.record.time_limit_s,
    "L": lambda row: row.record.time_limit_s - row.elapsed_s,
    "m": lambda row: row.record.request.memory_bytes or 0,
    "M": lambda row: row.elapsed_s,
    "N": lambda row: row.nodes,
    "p": lambda row: row.priority,
    "P": lambda row: row.partition,
    "Q": lambda row: row.priority,
    "S": lambda row: row.record.start_s or row.record.request.begin_s or float("inf"),
    "t": lambda row: row.state.short,
    "T": lambda row: _STATES.index(row.state),
    "u": lambda row: row.around.user,
    "U": lambda _: 0,
    "V": lambda row: row.record.submit_s,
}


def _first_task(record: JobRecord) -> int:
    return next(iter(record.array_tasks or ()), record.array_task_id or 0)


def _sort_keys(options: Parsed) -> list[tuple[Callable[[Row], Any], bool]]:
    """Letters with `-` before those whose order is reversed."""
    if not options.has("sort"):
        if options.has("start"):
            return [(_SORTS["S"], False), (_SORTS["i"], False)]
        return [(_SORTS["P"], False), (_SORTS["T"], False), (_SORTS["p"], True), (_SORTS["i"], False)]
    found: list[tuple[Callable[[Row], Any], bool]] = []
    for word in re.findall(r"[+-]?[^,+-]", options.get("sort")):
        if word[-1] not in _SORTS:
            refuse("squeue", f"Invalid sort specification: {word[-1]}")
        found.append((_SORTS[word[-1]], word[0] == "-"))
    return found


# ---- Columns


@dataclass(frozen=True, slots=True)
class _Column:
    """A field by its name, and the text around it. A `width` of 0 leaves it as it is."""

    name: str
    width: int
    is_right: bool
    before: str
    after: str

    def title(self) -> str:
        return self._shown(FIELDS[self.name].title, may_cut=self.name not in UNCUT_TITLES)

    def cell(self, row: Row) -> str:
        return self._shown(FIELDS[self.name].value(row), may_cut=self.name not in UNCUT)

    def _shown(self, text: str, *, may_cut: bool) -> str:
        is_whole = self.is_right and not may_cut and len(text) > self.width
        cell = text if is_whole else cut(text, self.width, right=self.is_right)
        return f"{self.before}{cell}{self.after}"


def _columns(options: Parsed) -> list[_Column]:
    if options.has("Format"):
        return _by_names(options.get("Format"))
    usual = _LONG if options.has("long") else _START if options.has("start") else _DEFAULT
    return _by_letters(options.get("format") or usual)


_LETTER = re.compile(r"%(\.?)(\d*)(.)([^%]*)", re.DOTALL)


def _by_letters(text: str) -> list[_Column]:
    before, _, _ = text.partition("%")
    found: list[_Column] = []
    for match in _LETTER.finditer(text):
        name = LETTERS.get(match[3], "")
        if name not in FIELDS:
            refuse("squeue", f"Invalid job format specification: {match[3]}")
        width = int(match[2] or 0)
        found.append(_Column(name, width, bool(match[1]), before, match[4]))
        before = ""
    if not found:
        refuse("squeue", f"Format is invalid: {text}")
    return found


_NAMED = re.compile(r"(?P<name>[^:]+)(?P<colon>:)?(?P<right>\.?)(?P<width>\d*)(?P<after>.*)", re.DOTALL)


def _by_names(text: str) -> list[_Column]:
    found: list[_Column] = []
    for word in text.split(","):
        match = _NAMED.fullmatch(word)
        name = match["name"].strip().casefold() if match else ""
        name = SAME.get(name, name)
        if match is None or name not in FIELDS:
            refuse("squeue", f"Invalid job format specification: {word.partition(':')[0]}")
        width = int(match["width"] or 0) if match["colon"] else _WIDE
        found.append(_Column(name, width, bool(match["right"]), "", match["after"]))
    return found
