"""The tasks of `--array`, as slurmctld reads them (`_parse_array_tok` in `job_mgr.c`)."""

from __future__ import annotations

import itertools
import re

from tfjobtui.errors import FormatError
from tfjobtui.model.ids import TaskSet
from tfjobtui.schedulers.local import tasksets

MAX_ARRAY_SIZE = 1001
"""Slurm's default of `MaxArraySize`: the highest task is one less."""
_NUMBER = re.compile(r"\s*([+-]?\d+)", re.ASCII)
_Range = tuple[int, int, int]


def parse_array(text: str) -> TaskSet | None:
    """`0-9`, `1,3,7-9`, `0-30:10`, `[1-5]%2`; `None` where it names no task, which makes a plain job.

    Raises:
        FormatError: slurmctld would refuse it.
    """
    ranges = [_range(token, text) for token in text.split(",") if token]
    if not ranges:
        return None
    in_order = all(before[1] < after[0] for before, after in itertools.pairwise(ranges))
    if not in_order:
        ranges = list(tasksets.from_tasks(TaskSet(tuple(ranges))).ranges)
    _, sign, limit = text.partition("%")
    throttle = _number(limit)[0] if sign else 0
    return TaskSet(tuple(ranges), throttle if throttle > 0 else None)


def step_of(text: str) -> int:
    """What SLURM_ARRAY_TASK_STEP says: the first step that is named, else 1."""
    _, colon, step = text.partition(":")
    return _number(step)[0] if colon else 1


def _range(token: str, text: str) -> _Range:
    """One part between commas. Brackets are passed over, and so is what stands behind a `%`."""
    first, rest = _number(token.removeprefix("["))
    rest = rest.removeprefix("]")
    last, step = first, 1
    if rest.startswith("-"):
        last, rest = _number(rest[1:])
        rest = rest.removeprefix("]")
        if rest.startswith(":"):
            step, rest = _number(rest[1:])
            rest = rest.removeprefix("]")
    is_right = first >= 0 and last >= first and 0 < step < MAX_ARRAY_SIZE and (not rest or rest[0] == "%")
    if not is_right or last >= MAX_ARRAY_SIZE:
        raise FormatError(
            f"Invalid job array specification: {text!r}",
            f"Tasks are numbers from 0 to {MAX_ARRAY_SIZE - 1}: 0-9, 1,3,5, 0-30:10, or 1-20%4 for four at once.",
        )
    return first, first + (last - first) // step * step, step


def _number(text: str) -> tuple[int, str]:
    """A number at the start, 0 where there is none, and what follows (strtol(3))."""
    match = _NUMBER.match(text)
    return (int(match[1]), text[match.end() :]) if match is not None else (0, text)
