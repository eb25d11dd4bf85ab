"""The columns of the job list: what each shows, how wide it is, and how it sorts.

A column's text is a pure function of a job and the time. Columns whose text moves with the clock are
marked, so that a tick repaints nothing else.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tfjobtui.model.job import Job
from tfjobtui.model.state import JobState, StateGroup
from tfjobtui.model.text import printable
from tfjobtui.model.units import clock, duration, size


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `width` is what it wants in cells, `least` what it can live with.

    `rank` says which columns a narrow terminal drops first: the highest. `sort_key` gives values that
    compare among each other; jobs without the figure come last.
    """

    name: str
    title: str
    help: str
    width: int
    rank: int
    text: Callable[[Job, float], str]
    sort_key: Callable[[Job], Any]
    least: int = 0
    right: bool = False
    moves: bool = False


_STATE_ORDER = {
    StateGroup.ACTIVE: 0,
    StateGroup.WAITING: 1,
    StateGroup.BAD: 2,
    StateGroup.GOOD: 2,
    StateGroup.NEUTRAL: 2,
}
_ORDER_OF = {state: _STATE_ORDER[state.group] for state in JobState}
LAST = math.inf


def _id_key(job: Job) -> tuple[int, int]:
    task = job.id.task
    return (job.id.job, job.id.het_offset or 0 if task is None else task)


def default_key(job: Job) -> tuple[int, int, int, int]:
    """What runs first, then what waits, then what ended; the newest of each on top."""
    order = _ORDER_OF[job.state]
    if order == 2:
        return (2, -(job.end_time_s or 0), -job.raw_id, 0)
    return (order, -job.id.job, 0, job.id.task or 0)


def _id_text(job: Job, _now: float) -> str:
    text = str(job.id)
    if job.id.tasks is None:
        return text
    throttle = f"%{job.id.tasks.throttle}" if job.id.tasks.throttle else ""
    cut = ",…" if job.id.tasks.is_cut else ""
    return f"{text[:-1]}{cut}{throttle}]"


def _state_text(job: Job, _now: float) -> str:
    if job.state is JobState.UNKNOWN:
        return printable(job.state_text) or "?"
    if job.state is JobState.GONE:
        return "gone"
    if job.id.tasks is not None:
        return f"{job.state.long} ×{job.task_count}"
    return job.state.long


def _where(job: Job, _now: float) -> str:
    """The nodes of a job that has them, else why it waits, or how it ended."""
    if job.state.is_waiting:
        return printable(job.reason) if job.reason and job.reason != "None" else ""
    if job.state.group is StateGroup.BAD and job.exit_code is not None:
        return f"exit {job.exit_code}  {printable(job.nodes)}".rstrip()
    return printable(job.nodes)


def _used(job: Job, now: float) -> str:
    return duration(job.time_used_s(now))


def _limit(job: Job, _now: float) -> str:
    return duration(job.time_limit_s)


def _left(job: Job, now: float) -> str:
    return duration(job.time_left_s(now))


def _start(job: Job, now: float) -> str:
    """When it started; of a waiting job the scheduler's estimate."""
    if job.start_time_s is None:
        return ""
    text = clock(job.start_time_s, now)
    return f"~{text}" if job.state.is_waiting else text


def _number(value: int | float | None) -> float:
    return LAST if value is None else value


def _used_key(job: Job) -> float:
    used = job.time_used_s(time.time())
    return LAST if used is None else -used


def _left_key(job: Job) -> float:
    left = job.time_left_s(time.time())
    return LAST if left is None else left


def _plain(attribute: str) -> Callable[[Job, float], str]:
    return lambda job, _now: printable(getattr(job, attribute))


def _lower(attribute: str) -> Callable[[Job], str]:
    return lambda job: getattr(job, attribute).lower() or "\U0010ffff"


def _count(attribute: str) -> Callable[[Job, float], str]:
    return lambda job, _now: "" if getattr(job, attribute) is None else str(getattr(job, attribute))


COLUMNS: dict[str, Column] = {
    column.name: column
    for column in (
        Column("id", "ID", "job id; an array's waiting tasks as one row", 14, 0, _id_text, _id_key, least=14),
        Column("name", "NAME", "job name", 22, 1, _plain("name"), _lower("name"), least=14),
        Column(
            "state",
            "STATE",
            "state",
            14,
            0,
            _state_text,
            lambda job: (_ORDER_OF[job.state], job.state.long),
            least=12,
        ),
        Column(
            "partition", "PARTITION", "partition", 10, 6, _plain("partition"), _lower("partition"), least=5
        ),
        Column(
            "gpus", "GPUS", "GPUs, by type", 8, 3, lambda j, _: str(j.gpus), lambda j: -j.gpus.count, least=6
        ),
        Column("cpus", "CPUS", "CPUs", 5, 7, _count("cpus"), lambda j: -(j.cpus or 0), right=True),
        Column(
            "memory",
            "MEM",
            "memory",
            6,
            8,
            lambda j, _: size(j.memory_bytes),
            lambda j: -(j.memory_bytes or 0),
            right=True,
        ),
        Column(
            "node_count",
            "N",
            "number of nodes",
            3,
            9,
            _count("node_count"),
            lambda j: -(j.node_count or 0),
            right=True,
        ),
        Column("used", "TIME", "time used", 9, 2, _used, _used_key, right=True, moves=True),
        Column("limit", "LIMIT", "time limit", 9, 7, _limit, lambda j: _number(j.time_limit_s), right=True),
        Column("left", "LEFT", "time left to the limit", 9, 4, _left, _left_key, right=True, moves=True),
        Column(
            "start",
            "START",
            "start, or ~estimate",
            11,
            6,
            _start,
            lambda j: _number(j.start_time_s),
            right=True,
        ),
        Column(
            "where",
            "NODES/WHY",
            "nodes, or why it waits",
            20,
            2,
            _where,
            lambda j: (j.nodes or j.reason).lower(),
            least=10,
        ),
        Column("user", "USER", "owner", 10, 5, _plain("user"), _lower("user"), least=6),
        Column("account", "ACCOUNT", "account", 10, 10, _plain("account"), _lower("account"), least=6),
        Column("qos", "QOS", "quality of service", 8, 10, _plain("qos"), _lower("qos"), least=5),
        Column(
            "priority",
            "PRIORITY",
            "priority",
            10,
            10,
            _count("priority"),
            lambda j: -(j.priority or 0),
            right=True,
        ),
        Column(
            "submitted",
            "SUBMITTED",
            "time of submission",
            11,
            10,
            lambda j, now: clock(j.submit_time_s, now),
            lambda j: -(j.submit_time_s or 0),
            right=True,
        ),
        Column(
            "ended",
            "ENDED",
            "end, or the time limit's moment",
            11,
            10,
            lambda j, now: clock(j.end_time_s, now),
            lambda j: _number(j.end_time_s),
            right=True,
        ),
        Column(
            "restarts",
            "RESTARTS",
            "how often it was requeued",
            8,
            10,
            lambda j, _: str(j.restarts or ""),
            lambda j: -j.restarts,
            right=True,
        ),
        Column(
            "exit",
            "EXIT",
            "exit code:signal",
            7,
            10,
            lambda j, _: "" if j.exit_code is None or not j.state.is_terminal else str(j.exit_code),
            lambda j: str(j.exit_code),
            right=True,
        ),
        Column(
            "dependency",
            "DEPENDENCY",
            "what it waits for",
            18,
            10,
            _plain("dependency"),
            _lower("dependency"),
            least=8,
        ),
        Column(
            "work_dir", "FOLDER", "working folder", 24, 10, _plain("work_dir"), _lower("work_dir"), least=8
        ),
        Column(
            "cluster",
            "CLUSTER",
            "cluster",
            10,
            1,
            lambda j, _: printable(j.cluster or ""),
            lambda j: j.cluster or "",
            least=5,
        ),
    )
}

DEFAULT_COLUMNS = (
    "id",
    "name",
    "state",
    "partition",
    "gpus",
    "cpus",
    "memory",
    "used",
    "limit",
    "left",
    "start",
    "where",
)


@dataclass(frozen=True, slots=True)
class Placed:
    """A column with the width that it got, in cells."""

    column: Column
    width: int


def lay_out(
    names: tuple[str, ...], available: int, longest: dict[str, int], sorted_by: str = ""
) -> list[Placed]:
    """Fit columns into `available` cells, one blank between them.

    A column wants the longest text it has to show (`longest`, at least its title, at most twice its usual
    width). What does not fit is first narrowed to `least`, then dropped, the highest rank first. What is
    left over goes to the texts that are cut. The title of the column that is sorted by has an arrow.
    """
    columns = [COLUMNS[name] for name in names]
    title = {c.name: len(c.title) + (c.name == sorted_by) for c in columns}
    wish = {
        c.name: max(title[c.name], min(longest.get(c.name, c.width), max(c.width * 2, 30))) for c in columns
    }
    least = {c.name: min(wish[c.name], max(title[c.name], c.least or wish[c.name])) for c in columns}
    while len(columns) > 1 and sum(least[c.name] + 1 for c in columns) - 1 > available:
        columns.remove(max(columns, key=lambda c: c.rank))
    width = dict(least)
    spare = available - (sum(width[c.name] + 1 for c in columns) - 1)
    for column in sorted(columns, key=lambda c: c.rank):
        more = max(0, min(spare, wish[column.name] - width[column.name]))
        width[column.name] += more
        spare -= more
    return [Placed(column, width[column.name]) for column in columns]
