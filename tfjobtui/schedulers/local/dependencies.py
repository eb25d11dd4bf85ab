"""What a job waits for (`--dependency`): reading it, and seeing what of it is still to come.

Forms: `afterok:12:13,afterany:7` (all of them) or with `?` in place of the comma (any of them); `after:12+5`
is five minutes after the start; `singleton` waits for the user's other jobs of the same name. An id is that
of a job, of an array (all its tasks), or of one task (`12_3`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tfjobtui.errors import FormatError
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local.records import JobRecord

KINDS = ("after", "afterany", "afterok", "afternotok", "aftercorr", "singleton")
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
    """What is left to wait for (empty: nothing), and whether it can never come true."""

    left: str
    is_hopeless: bool = False


def parse(text: str) -> Dependency:
    """Read what sbatch takes and what `str` gives.

    Raises:
        FormatError: it is no dependency.
    """
    if "," in text and "?" in text:
        raise FormatError("a dependency has either commas (all) or question marks (any), not both")
    terms: list[Term] = []
    for part in re.split(r"[,?]", text):
        kind, _, ids = part.partition(":")
        kind = kind.strip().casefold()
        if kind == "singleton" and not ids:
            terms.append(Term(kind))
            continue
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


def outlook(record: JobRecord, find: Find, others: Iterable[JobRecord], now_s: float) -> Outlook:
    """Where a waiting job stands. For a waiting rest of an array `aftercorr` is seen to by `ready_tasks`.

    `find` gives the rows of a job by its id, `others` are all rows that have not ended.
    """
    if not record.dependency:
        return Outlook("")
    wanted = parse(record.dependency)
    verdicts = [(term, _verdict(term, record, find, others, now_s)) for term in wanted.terms]
    if wanted.is_any:
        if any(verdict is True for _, verdict in verdicts):
            return Outlook("")
        left = tuple(term for term, verdict in verdicts if verdict is None)
        return Outlook(str(Dependency(left or wanted.terms, True)), not left)
    left = tuple(term for term, verdict in verdicts if verdict is not True)
    hopeless = any(verdict is False for _, verdict in verdicts)
    return Outlook(str(Dependency(left)) if left else "", hopeless)


def _verdict(
    term: Term, record: JobRecord, find: Find, others: Iterable[JobRecord], now_s: float
) -> bool | None:
    """Whether it has come true; `None` for not yet, `False` for never."""
    if term.kind == "singleton":
        return True if not any(_comes_first(other, record) for other in others) else None
    if term.kind == "aftercorr" and record.array_tasks is not None:
        return True  # each task waits for its own
    task = record.array_task_id if term.kind == "aftercorr" and term.task is None else term.task
    rows = [row for row in find(term.job) if task is None or _is_of(row, task)]
    if not rows:
        # It ended so long ago that it was forgotten; how, nobody knows any more.
        return term.kind in ("after", "afterany")
    if term.kind == "after":
        return _has_begun(rows, term.minutes, now_s)
    if not all(row.state.is_terminal for row in rows):
        doomed = term.kind in ("afterok", "aftercorr") and any(_is_bad(row) for row in rows)
        return False if doomed else None
    all_good = not any(_is_bad(row) for row in rows)
    return {"afterany": True, "afternotok": not all_good}.get(term.kind, all_good)


def _comes_first(other: JobRecord, record: JobRecord) -> bool:
    return (
        other.request.name == record.request.name
        and (other.array_job_id or other.id) != (record.array_job_id or record.id)
        and (other.state is not JobState.PENDING or (other.submit_s, other.id) < (record.submit_s, record.id))
    )


def _is_of(row: JobRecord, task: int) -> bool:
    return row.array_task_id == task or (row.array_tasks is not None and task in row.array_tasks)


def _has_begun(rows: Sequence[JobRecord], minutes: int, now_s: float) -> bool | None:
    """Slurm counts a job that was cancelled before its start as begun."""
    starts = [row.start_s or row.end_s for row in rows]
    if any(start is None for start in starts):
        return None
    return True if all(now_s >= start + 60 * minutes for start in starts if start is not None) else None


def _is_bad(row: JobRecord) -> bool:
    return row.state.is_terminal and row.state is not JobState.COMPLETED


def job_numbers(text: str) -> tuple[int, ...]:
    """The jobs that a dependency names."""
    return tuple(term.job for term in parse(text).terms if term.job) if text else ()


def corresponding(dependency: str) -> tuple[int, ...]:
    """The arrays that tasks wait for one by one (`aftercorr`)."""
    if "aftercorr" not in dependency:
        return ()
    return tuple(
        term.job for term in parse(dependency).terms if term.kind == "aftercorr" and term.task is None
    )
