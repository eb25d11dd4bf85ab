"""Job ids in the forms that Slurm prints and takes: `123`, `123_4`, `123_[5-9,12%2]`, `123+1`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tfjobtui.errors import FormatError


@dataclass(frozen=True, slots=True)
class TaskSet:
    """The tasks of an array, as ranges, so that `[0-99999]` costs three numbers.

    `ranges` holds (first, last, step), both ends included. `is_cut` is true where Slurm cut the list
    with `...`: then the set is a lower bound. `throttle` is the N of `%N`.
    """

    ranges: tuple[tuple[int, int, int], ...]
    throttle: int | None = None
    is_cut: bool = False

    def __len__(self) -> int:
        return sum((last - first) // step + 1 for first, last, step in self.ranges)

    def __iter__(self) -> Iterator[int]:
        for first, last, step in self.ranges:
            yield from range(first, last + 1, step)

    def __contains__(self, task: object) -> bool:
        return isinstance(task, int) and any(
            first <= task <= last and (task - first) % step == 0 for first, last, step in self.ranges
        )

    def __str__(self) -> str:
        """The ranges as scancel takes them: without the throttle, which it refuses."""
        return ",".join(_range_text(*item) for item in self.ranges)


def _range_text(first: int, last: int, step: int) -> str:
    if first == last:
        return str(first)
    return f"{first}-{last}" if step == 1 else f"{first}-{last}:{step}"


@dataclass(frozen=True, slots=True)
class JobId:
    """One job, task, component of a het job, or the waiting rest of an array.

    `job` is the id that is shown: an array's or a het job's leader's. `str()` gives the form that
    scancel and scontrol take. The cluster is not part of it.
    """

    job: int
    task: int | None = None
    tasks: TaskSet | None = None
    het_offset: int | None = None

    @property
    def is_array(self) -> bool:
        return self.task is not None or self.tasks is not None

    @property
    def leader(self) -> JobId:
        """The whole array or het job (or the job itself)."""
        return JobId(self.job)

    @property
    def key(self) -> str:
        """What stays the same for as long as the row means the same: `7_[]` for the waiting rest of 7."""
        if self.tasks is not None:
            return f"{self.job}_[]"
        return str(self)

    def __str__(self) -> str:
        if self.task is not None:
            return f"{self.job}_{self.task}"
        if self.tasks is not None:
            return f"{self.job}_[{self.tasks}]"
        if self.het_offset is not None:
            return f"{self.job}+{self.het_offset}"
        return str(self.job)

    @staticmethod
    def parse(text: str) -> JobId:
        """Read an id in any of the forms above.

        Raises:
            FormatError: the text is none of them.
        """
        if text.isascii() and text.isdigit():
            return JobId(int(text))
        match = _ID.fullmatch(text)
        if match is None:
            raise FormatError(f"not a job id: {text!r}", "An id looks like 123, 123_4, 123_[5-9] or 123+1.")
        job = int(match["job"])
        if match["het"] is not None:
            return JobId(job, het_offset=int(match["het"]))
        if match["task"] is not None:
            return JobId(job, task=int(match["task"]))
        return JobId(job, tasks=parse_tasks(match["tasks"] or match["bare"] or ""))


_ID = re.compile(
    r"(?P<job>\d+)(?:\+(?P<het>\d+)|_(?:(?P<task>\d+)|\[(?P<tasks>[^\[\]]*)\](?:%\d+)?|(?P<bare>\d[\d,:%-]*)))",
    re.ASCII,
)
_RANGE = re.compile(r"(\d+)(?:-(\d+)(?::(\d+))?)?", re.ASCII)


def parse_tasks(text: str) -> TaskSet:
    """Read `5-100%4`, `60-89,91-94`, `0-98:2`, `1,3,...`.

    Raises:
        FormatError: it is no list of tasks.
    """
    body, _, limit = text.partition("%")
    ranges: list[tuple[int, int, int]] = []
    is_cut = False
    for part in body.split(","):
        if part.strip(".") == "" and part:
            is_cut = True
            continue
        match = _RANGE.fullmatch(part)
        if match is None:
            raise FormatError(f"not a list of array tasks: {text!r}")
        first = int(match[1])
        last = int(match[2]) if match[2] else first
        step = max(int(match[3]), 1) if match[3] else 1
        if last < first:
            raise FormatError(f"not a list of array tasks: {text!r}")
        ranges.append((first, first + (last - first) // step * step, step))
    return TaskSet(tuple(ranges), int(limit) if limit.isdigit() else None, is_cut)
