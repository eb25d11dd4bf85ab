"""Sets of array tasks: taking some out, keeping the ranges."""

from __future__ import annotations

from collections.abc import Iterable

from tfjobtui.model.ids import TaskSet


def from_tasks(tasks: Iterable[int]) -> TaskSet:
    """The set of these tasks, in as few ranges as steps of one allow."""
    ranges: list[tuple[int, int, int]] = []
    for task in sorted(set(tasks)):
        if ranges and ranges[-1][1] == task - 1:
            ranges[-1] = (ranges[-1][0], task, 1)
        else:
            ranges.append((task, task, 1))
    return TaskSet(tuple(ranges))


def without(tasks: TaskSet, gone: Iterable[int]) -> TaskSet | None:
    """The others; `None` where nothing is left. Taking the first ones costs no list of them all."""
    out = set(gone)
    ranges: list[tuple[int, int, int]] = []
    for first, last, step in tasks.ranges:
        hit = sorted(task for task in out if first <= task <= last and (task - first) % step == 0)
        start = first
        for task in hit:
            if task > start:
                ranges.append((start, task - step, step))
            start = task + step
        if start <= last:
            ranges.append((start, last, step))
    return TaskSet(tuple((a, b, c if b > a else 1) for a, b, c in ranges)) if ranges else None


def common(one: TaskSet, other: TaskSet) -> TaskSet | None:
    """What is in both; `None` where nothing is."""
    few, many = sorted((one, other), key=len)
    both = [task for task in few if task in many]
    return from_tasks(both) if both else None
