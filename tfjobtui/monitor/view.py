"""The list as the user has arranged it: filtered, folded, sorted, with its cursor and marks.

Nothing here draws. Rows are known by key, so that the cursor and the marks stay with their jobs through
every refresh.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tfjobtui.model.ids import JobId
from tfjobtui.model.job import Job
from tfjobtui.model.state import JobState
from tfjobtui.monitor.columns import COLUMNS, default_key
from tfjobtui.monitor.filter import EVERYTHING, JobFilter


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the list.

    For a folded array with several records `job` is its representative (what runs before what waits
    before what ended) under the array's id, and `members` are all of them. Of an unfolded array the
    members follow as rows with `is_member`.
    """

    key: str
    job: Job
    order: Any = ()
    """Where the row belongs under the present sorting; kept, since computing it costs more than sorting."""
    members: tuple[Job, ...] = ()
    is_open: bool = False
    is_member: bool = False

    @property
    def jobs(self) -> tuple[Job, ...]:
        """The records that the row stands for."""
        return self.members or (self.job,)

    def counts(self) -> tuple[tuple[JobState, int], ...]:
        """How many tasks are in which state, what runs first."""
        numbers: dict[JobState, int] = {}
        for job in self.members:
            numbers[job.state] = numbers.get(job.state, 0) + job.task_count
        order = {JobState.RUNNING: 0, JobState.PENDING: 1}
        return tuple(sorted(numbers.items(), key=lambda item: (order.get(item[0], 2), item[0].long)))


SLICE = 2000
"""Rows that are arranged between two chances for the screen to answer a key: about 2 ms."""
_BY_ORDER = operator.attrgetter("order")


class JobView:
    """Rows in order, the cursor, and the marks."""

    def __init__(self, order: str = "") -> None:
        """`order` is a column's name, with `-` before it in reverse, or empty."""
        self.filter: JobFilter = EVERYTHING
        self.sort = order.removeprefix("-")
        """A column's name, or empty for the usual order: running, waiting, ended."""
        self.reverse = order.startswith("-")
        self.open_arrays: set[str] = set()
        self.marks: dict[str, Job] = {}
        self.rows: list[Row] = []
        self.total = 0
        """Records that are known, before the filter."""
        self._index: dict[str, int] = {}
        self._jobs: Mapping[str, Job] = {}
        self._kept_rows: dict[str, Row] = {}
        self._kept_arrays: dict[tuple[str | None, int], tuple[list[Job], Row]] = {}
        self._kept_for: object = None
        self._generation = 0
        self.cursor_key: str | None = None
        self.cursor = 0

    def show(self, jobs: Mapping[str, Job]) -> None:
        """Take other jobs over. The cursor stays on its job; if that is gone, on its line."""
        for _ in self.show_steps(jobs):
            pass

    def show_steps(self, jobs: Mapping[str, Job]) -> Iterator[None]:
        """The same in slices: nothing is changed before the last."""
        yield from self._steps(jobs)
        self._jobs = jobs
        for key in list(self.marks):
            if key in jobs:
                self.marks[key] = jobs[key]
            else:
                del self.marks[key]

    def rebuild(self) -> None:
        """Arrange the rows anew, after a change of filter, order or folding."""
        for _ in self.rebuild_steps():
            pass

    def rebuild_steps(self) -> Iterator[None]:
        """The same in slices."""
        yield from self._steps(self._jobs)

    def _steps(self, jobs: Mapping[str, Job]) -> Iterator[None]:
        self._generation += 1
        generation = self._generation
        rows: list[Row] = []
        arrays: dict[tuple[str | None, int], list[Job]] = {}
        kept = self._rows_to_keep()
        kept_arrays = self._kept_arrays
        made_arrays: dict[tuple[str | None, int], tuple[list[Job], Row]] = {}
        order_of = self._order()
        everything = list(jobs.values())
        for start in range(0, len(everything), SLICE):
            self._fold(everything[start : start + SLICE], kept, order_of, rows, arrays)
            yield
        if arrays:
            rows = _without_remains(rows, arrays)
        for number, (array, members) in enumerate(arrays.items(), 1):
            known = list(members)
            row = self._kept_array_row(kept_arrays.get(array), members) or self._array_row(members, order_of)
            made_arrays[array] = (known, row)
            rows.append(row)
            if number % (SLICE // 4) == 0:
                yield
        rows.sort(key=_BY_ORDER)
        yield
        if self.reverse:
            rows.reverse()
        kept_rows = {row.key: row for row in rows}
        yield
        if generation != self._generation:  # the user has changed the order or the filter meanwhile
            yield from self._steps(jobs)
            return
        rows = self._unfold(rows)
        self._index = {row.key: index for index, row in enumerate(rows)}
        self._kept_rows, self._kept_arrays = kept_rows, made_arrays
        self.rows, self.total = rows, len(everything)
        self._find_cursor()

    def _rows_to_keep(self) -> dict[str, Row]:
        """Rows made before are as good as new ones while the order is the same."""
        if self._kept_for != self.sort:
            self._kept_for = self.sort
            self._kept_rows = {}
            self._kept_arrays = {}
        return self._kept_rows

    def _order(self) -> Callable[[Job], Any]:
        column = COLUMNS.get(self.sort)
        if column is None:
            return default_key
        key = column.sort_key
        # Without a tie-break the rows of one value would change places from one refresh to the next.
        return lambda job: (key(job), -job.id.job, job.id.task or 0)

    def _fold(
        self,
        jobs: list[Job],
        kept: dict[str, Row],
        order_of: Callable[[Job], Any],
        rows: list[Row],
        arrays: dict[tuple[str | None, int], list[Job]],
    ) -> None:
        """One row for each job that is not of an array; the others are collected by array."""
        matches = self.filter.matches if self.filter else None
        for job in jobs:
            if matches is not None and not matches(job):
                continue
            job_id = job.id
            if job_id.task is not None or job_id.tasks is not None:
                arrays.setdefault((job.cluster, job_id.job), []).append(job)
                continue
            row = kept.get(job.key)
            if row is None or row.job is not job:
                row = Row(job.key, job, order_of(job))
            rows.append(row)

    def _find_cursor(self) -> None:
        found = self._index.get(self.cursor_key or "")
        if found is None and self.cursor_key is not None:
            found = self._successor(self.cursor_key)
        self.cursor = max(0, min(self.cursor if found is None else found, len(self.rows) - 1))
        if found is not None and self.rows:
            self.cursor_key = self.rows[self.cursor].key

    def _successor(self, key: str) -> int | None:
        """The row that took over from a row that is gone: the array for its task, the rest for the array."""
        base = key.split("_", 1)[0]
        for candidate in (f"{base}_*", f"{base}_[]"):
            if candidate in self._index:
                return self._index[candidate]
        return None

    def _kept_array_row(self, before: tuple[list[Job], Row] | None, members: list[Job]) -> Row | None:
        """The row that was made before, if its records are the same."""
        if before is None:
            return None
        known, row = before
        is_same = len(known) == len(members) and all(map(operator.is_, known, members))
        return row if is_same and row.is_open == (row.key in self.open_arrays) else None

    def _array_row(self, members: list[Job], order_of: Callable[[Job], Any]) -> Row:
        if len(members) == 1:
            return Row(members[0].key, members[0], order_of(members[0]))
        members.sort(key=default_key)
        first = members[0]
        key = f"{first.key.split('_', 1)[0]}_*"
        whole = next((job for job in members if job.id.tasks is not None), None)
        face = dataclasses.replace(first, id=whole.id if whole else JobId(first.id.job), key=key)
        return Row(key, face, order_of(face), tuple(members), is_open=key in self.open_arrays)

    def _unfold(self, rows: list[Row]) -> list[Row]:
        if not self.open_arrays:
            return rows
        unfolded: list[Row] = []
        for row in rows:
            unfolded.append(row)
            if row.is_open:
                unfolded.extend(Row(job.key, job, row.order, is_member=True) for job in row.members)
        return unfolded

    # -- what the user does ---------------------------------------------------------------

    @property
    def current(self) -> Row | None:
        """The row under the cursor."""
        return self.rows[self.cursor] if self.rows else None

    def move_to(self, index: int) -> None:
        self.cursor = max(0, min(index, len(self.rows) - 1))
        self.cursor_key = self.rows[self.cursor].key if self.rows else None

    def select(self, key: str) -> bool:
        """Put the cursor on a row; unfolds its array if it is inside one. False if it is not there."""
        if key not in self._index and key in self._jobs:
            self.open_arrays.add(f"{key.split('_', 1)[0]}_*")
            self.rebuild()
        if key not in self._index:
            return False
        self.move_to(self._index[key])
        return True

    def toggle_fold(self) -> bool:
        """Unfold the array under the cursor, or fold the one that it is in. False if there is none."""
        row = self.current
        if row is None:
            return False
        key = row.key if row.members else f"{row.key.split('_', 1)[0]}_*"
        if not row.members and not row.is_member:
            return False
        if key in self.open_arrays:
            self.open_arrays.discard(key)
            self.cursor_key = key
        else:
            self.open_arrays.add(key)
        self.rebuild()
        return True

    def fold_all(self, folded: bool) -> None:
        """Fold or unfold every array."""
        if folded:
            self.open_arrays.clear()
        else:
            self.open_arrays.update(row.key for row in self.rows if row.members)
        self.rebuild()

    def set_sort(self, column: str) -> None:
        """Sort by a column; by the same once more: reversed; a third time: the usual order.

        The caller rebuilds.
        """
        if self.sort != column:
            self.sort, self.reverse = column, False
        elif not self.reverse:
            self.reverse = True
        else:
            self.sort, self.reverse = "", False

    def is_marked(self, row: Row) -> bool:
        return bool(self.marks) and all(job.key in self.marks for job in row.jobs)

    def toggle_mark(self, row: Row) -> None:
        if self.is_marked(row):
            for job in row.jobs:
                self.marks.pop(job.key, None)
        else:
            self.mark([row])

    def mark(self, rows: Sequence[Row]) -> None:
        for row in rows:
            for job in row.jobs:
                self.marks[job.key] = job

    def mark_all(self) -> None:
        """Mark all rows in view; if all are marked already, none."""
        if all(self.is_marked(row) for row in self.rows):
            self.marks.clear()
        else:
            self.mark(self.rows)

    def chosen(self) -> list[Row]:
        """What an action applies to: the marked rows, else the row under the cursor.

        A folded array whose records are all marked is one row. Marks that the filter hides count too:
        they are given as rows of their own, so that the dialog names them.
        """
        if not self.marks:
            return [self.current] if self.current is not None else []
        rows: list[Row] = []
        seen: set[str] = set()
        for row in self.rows:
            if not row.is_member and self.is_marked(row):
                rows.append(row)
                seen.update(job.key for job in row.jobs)
        rows.extend(Row(key, job) for key, job in self.marks.items() if key not in seen)
        return rows


def _without_remains(rows: list[Row], arrays: dict[tuple[str | None, int], list[Job]]) -> list[Row]:
    """Move cancelled rests into their arrays: squeue prints what is left of a cancelled array as a plain id."""
    ids = {array for _, array in arrays}
    kept: list[Row] = []
    for row in rows:
        job_id = row.job.id
        if job_id.job in ids and job_id.het_offset is None and (row.job.cluster, job_id.job) in arrays:
            arrays[row.job.cluster, job_id.job].append(row.job)
        else:
            kept.append(row)
    return kept
