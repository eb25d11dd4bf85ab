"""What a job waits for (`--dependency`): reading it, and seeing what of it is still to come.

Forms: `afterok:12:13,afterany:7` (all of them), or with a `?` for a comma anywhere any of them; `after:12+5`
is five minutes after the start; `singleton` waits for the user's other jobs of the same name. An id is that
of a job, of an array (all its tasks), or of one task (`12_3`). A job that is not known, since it was never there
or has been forgotten, is waited for by nobody: so does Slurm.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from tfjobtui.errors import FormatError
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local.records import JobRecord

KINDS = ("after", "afterany", "afterburstbuffer", "afterok", "afternotok", "aftercorr", "singleton")
_ID = re.compile(r"(?P<job>\d+)(?:_(?P<task>\d+|\*))?(?:\+(?P<minutes>\d+))?(?:\([a-z]+\))?", re.ASCII)

Find = Callable[[int], Sequence[JobRecord]]
"""The rows of a job or of an array."""


@dataclass(frozen=True, slots=True)
class Term:
    """One thing to wait for. `job` is 0 of a singleton."""

    kind: str
    job: int = 0
    task: int | None = None
    minutes: int = 0

    def __str__(self) -> str:
        if self.kind == "singleton":
            return self.kind
        task = "" if self.task is None else f"_{self.task}"
        later = f"+{self.minutes}" if self.minutes else ""
        return f"{self.kind}:{self.job}{task}{later}"


@dataclass(frozen=True, slots=True)
class Dependency:
    """Terms of which all, or with `is_any` one, must come true."""

    terms: tuple[Term, ...]
    is_any: bool = False

    def __str__(self) -> str:
        return ("?" if self.is_any else ",").join(map(str, self.terms))


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is left to wait for (empty: nothing), whether it can never come true, and the moment at which some
    of it does by time alone."""

    left: str
    is_hopeless: bool = False
    next_s: float | None = None


@functools.lru_cache(maxsize=1024)
def parse(text: str) -> Dependency:
    """Read what sbatch takes and what `str` gives.

    Raises:
        FormatError: it is no dependency.
    """
    terms: list[Term] = []
    for part in re.split(r"[,?]", text):
        kind, _, ids = part.partition(":")
        kind = kind.strip().casefold()
        if (kind == "singleton" or kind.startswith("singleton(")) and not ids:
            terms.append(Term("singleton"))
            continue
        if kind == "expand":
            raise FormatError("expand: a job cannot be given to another one here", "Ask for all at once.")
        if kind not in KINDS or kind == "singleton" or not ids:
            raise FormatError(
                f"{part!r} is no dependency", f"It is one of {', '.join(KINDS)}, as in afterok:12."
            )
        terms.extend(_term(kind, one) for one in ids.split(":"))
    return Dependency(tuple(terms), "?" in text)


def _term(kind: str, text: str) -> Term:
    match = _ID.fullmatch(text)
    if match is None or (match["minutes"] and kind != "after"):
        raise FormatError(f"{text!r} is no job to wait for", "An id looks like 12, or 12_3 for a task.")
    task = None if match["task"] in (None, "*") else int(match["task"])
    return Term(kind, int(match["job"]), task, int(match["minutes"] or 0))


def is_by_task(dependency: str) -> bool:
    """Whether the tasks of an array wait one by one (`aftercorr`)."""
    return "aftercorr" in dependency


@dataclass(slots=True)
class _Target:
    """A job or an array that is waited for."""

    rows: Sequence[JobRecord]
    by_task: dict[int, JobRecord] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.by_task = {row.array_task_id: row for row in self.rows if row.array_task_id is not None}

    def of_task(self, task: int) -> tuple[JobRecord, ...]:
        row = self.by_task.get(task)
        if row is not None:
            return (row,)
        return tuple(row for row in self.rows if row.array_tasks is not None and task in row.array_tasks)


class Surroundings:
    """What dependencies are looked up in: each job that is waited for is read once.

    `find` gives the rows of a job, ended ones too; `live` are all rows that have not ended.
    """

    def __init__(self, find: Find, live: Iterable[JobRecord], now_s: float) -> None:
        self.now_s = now_s
        self._find = find
        self._live = live
        self._targets: dict[int, _Target] = {}
        self._started: dict[str, set[int]] | None = None
        self._first: dict[str, int] = {}

    def target(self, job: int) -> _Target:
        found = self._targets.get(job)
        if found is None:
            found = self._targets[job] = _Target(self._find(job))
        return found

    def is_single(self, record: JobRecord) -> bool:
        """Whether no other job of its name has started, or waits with a lower id."""
        if self._started is None:
            self._started = self._read_names()
        name, own = record.request.name, _base(record)
        return not self._started.get(name, set()) - {own} and self._first.get(name, own) >= own

    def _read_names(self) -> dict[str, set[int]]:
        started: dict[str, set[int]] = {}
        for row in self._live:
            name, base = row.request.name, _base(row)
            if row.state is JobState.PENDING:
                self._first[name] = min(base, self._first.get(name, base))
            else:
                started.setdefault(name, set()).add(base)
        return started


def _base(record: JobRecord) -> int:
    return record.array_job_id or record.id


def outlook(record: JobRecord, around: Surroundings, task: int | None = None) -> Outlook:
    """Where a waiting job stands, or one task of an array's waiting rest."""
    if not record.dependency:
        return Outlook("")
    wanted = parse(record.dependency)
    task = record.array_task_id if task is None else task
    verdicts = [(term, _verdict(term, record, task, around)) for term in wanted.terms]
    moments = [
        moment
        for term, verdict in verdicts
        if verdict is None and term.minutes and (moment := _due_s(term, around)) is not None
    ]
    next_s = min(moments, default=None)
    left = tuple(term for term, verdict in verdicts if verdict is not True)
    if not wanted.is_any:
        text = str(Dependency(left)) if left else ""
        return Outlook(text, any(verdict is False for _, verdict in verdicts), next_s)
    if len(left) < len(verdicts):
        return Outlook("")
    open_ones = tuple(term for term, verdict in verdicts if verdict is None)
    return Outlook(str(Dependency(open_ones or wanted.terms, True)), not open_ones, next_s)


def _verdict(term: Term, record: JobRecord, task: int | None, around: Surroundings) -> bool | None:
    """Whether it has come true; `None` for not yet, `False` for never."""
    if term.kind == "singleton":
        return True if around.is_single(record) else None
    target = around.target(term.job)
    rows: Sequence[JobRecord] = target.rows
    if term.task is not None:
        rows = target.of_task(term.task)
    elif term.kind == "aftercorr" and task is not None:
        # Without a counterpart a task waits for the whole of it.
        rows = target.of_task(task) or target.rows
    if term.kind == "after":
        due_s = _begun_s(rows)
        return True if due_s is not None and around.now_s >= due_s + 60 * term.minutes else None
    if not all(row.state.is_terminal for row in rows):
        return None
    if not rows or term.kind in ("afterany", "afterburstbuffer"):
        return True
    is_good = all(row.state is JobState.COMPLETED for row in rows)
    return is_good != (term.kind == "afternotok")


def _begun_s(rows: Iterable[JobRecord]) -> float | None:
    """When the last of them began; one that was cancelled before its start counts as begun then."""
    moments = [row.end_s if row.start_s is None else row.start_s for row in rows]
    begun = [moment for moment in moments if moment is not None]
    return max(begun, default=0.0) if len(begun) == len(moments) else None


def _due_s(term: Term, around: Surroundings) -> float | None:
    target = around.target(term.job)
    begun_s = _begun_s(target.rows if term.task is None else target.of_task(term.task))
    return None if begun_s is None else begun_s + 60 * term.minutes
