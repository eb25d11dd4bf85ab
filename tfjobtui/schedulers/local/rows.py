"""A job's record as a row of the store's table, and back."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from tfjobtui.model.ids import parse_tasks
from tfjobtui.model.job import ExitCode
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local.identity import ProcessIdentity
from tfjobtui.schedulers.local.records import Allocation, Ending, JobRecord, StepRecord, Usage
from tfjobtui.schedulers.local.request import JobRequest

SCHEMA = """
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY,
    request TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL,
    submit_s REAL NOT NULL,
    array_job_id INTEGER,
    array_task_id INTEGER,
    array_tasks TEXT,
    array_throttle INTEGER,
    held INTEGER NOT NULL DEFAULT 0,
    priority INTEGER NOT NULL DEFAULT 0,
    eligible_s REAL,
    start_s REAL,
    end_s REAL,
    time_limit_s REAL,
    restarts INTEGER NOT NULL DEFAULT 0,
    dependency TEXT NOT NULL DEFAULT '',
    allocation TEXT,
    token TEXT NOT NULL DEFAULT '',
    shepherd TEXT,
    claimed TEXT,
    exit_code TEXT,
    cancelled_by_uid INTEGER,
    usage TEXT,
    steps TEXT
);
CREATE INDEX by_state ON jobs (state);
CREATE INDEX by_end ON jobs (end_s);
CREATE INDEX by_array ON jobs (array_job_id);
CREATE TABLE runs (job INTEGER NOT NULL, start_s REAL, ending TEXT NOT NULL);
CREATE INDEX runs_by_job ON runs (job);
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""
"""`time_limit_s` is NULL without a limit. `claimed` is when a start was planned: boot id and seconds since the
boot. `runs` has the runs of requeued jobs before their last one."""

COLUMNS = tuple(
    (
        "id request state reason submit_s array_job_id array_task_id array_tasks array_throttle held priority "
        "eligible_s start_s end_s time_limit_s restarts dependency allocation token shepherd exit_code "
        "cancelled_by_uid usage steps"
    ).split()
)
SELECT = f"SELECT {', '.join(COLUMNS)} FROM jobs"


Row = tuple[Any, ...]
"""A row of `SELECT`."""

_NO_USAGE = Usage()
_request = lru_cache(maxsize=1024)(JobRequest.from_json)
_tasks = lru_cache(maxsize=1024)(parse_tasks)


def record_of(row: Row) -> JobRecord:
    """The record in a row of `SELECT`.

    Raises:
        ValueError, KeyError, TypeError: it holds what was never written into it.
    """
    values = dict(zip(COLUMNS, row, strict=True))
    request, tasks, usage, steps = (values[name] for name in ("request", "array_tasks", "usage", "steps"))
    return JobRecord(
        **values
        | {
            "request": _request(request),
            "state": JobState.of(values["state"]),
            "array_tasks": _tasks(tasks) if tasks else None,
            "held": bool(values["held"]),
            "time_limit_s": math.inf if values["time_limit_s"] is None else values["time_limit_s"],
            "allocation": _allocation(values["allocation"]),
            "shepherd": identity_of(values["shepherd"]),
            "exit_code": exit_code_of(values["exit_code"]),
            "usage": usage_of(json.loads(usage)) if usage else _NO_USAGE,
            "steps": tuple(step_of(item) for item in json.loads(steps)) if steps else (),
        }
    )


def values_of(record: JobRecord) -> dict[str, Any]:
    """The row of a record, by column."""
    return {
        "id": record.id,
        "request": record.request.to_json(),
        "state": record.state.long,
        "reason": record.reason,
        "submit_s": record.submit_s,
        "array_job_id": record.array_job_id,
        "array_task_id": record.array_task_id,
        "array_tasks": None if record.array_tasks is None else str(record.array_tasks),
        "array_throttle": record.array_throttle,
        "held": int(record.held),
        "priority": record.priority,
        "eligible_s": record.eligible_s,
        "start_s": record.start_s,
        "end_s": record.end_s,
        "time_limit_s": limit_value(record.time_limit_s),
        "restarts": record.restarts,
        "dependency": record.dependency,
        "allocation": None if record.allocation is None else allocation_value(record.allocation),
        "token": record.token,
        "shepherd": None if record.shepherd is None else identity_value(record.shepherd),
        "exit_code": None if record.exit_code is None else str(record.exit_code),
        "cancelled_by_uid": record.cancelled_by_uid,
        "usage": usage_value(record.usage),
        "steps": json.dumps([step_value(step) for step in record.steps]) if record.steps else None,
    }


def limit_value(seconds: float) -> float | None:
    return None if math.isinf(seconds) else seconds


def allocation_value(allocation: Allocation) -> str:
    return json.dumps(dataclasses.asdict(allocation))


def _allocation(text: str | None) -> Allocation | None:
    if not text:
        return None
    values = json.loads(text)
    for name in ("cpus", "gpus", "gpu_uuids"):
        values[name] = tuple(values[name])
    return Allocation(**values)


def identity_value(identity: ProcessIdentity) -> str:
    return f"{identity.boot_id} {identity.pid} {identity.start_ticks}"


def identity_of(text: str | None) -> ProcessIdentity | None:
    """Read what `identity_value` wrote; `None` for nothing."""
    if not text:
        return None
    boot, pid, ticks = text.rsplit(" ", 2)
    return ProcessIdentity(boot, int(pid), int(ticks))


def exit_code_of(text: str | None) -> ExitCode | None:
    if not text:
        return None
    code, _, signal = text.partition(":")
    return ExitCode(int(code), int(signal))


_USAGE_NAMES = frozenset(field.name for field in dataclasses.fields(Usage))


def usage_value(usage: Usage) -> str | None:
    return None if usage == Usage() else json.dumps(dataclasses.asdict(usage))


def usage_of(values: Mapping[str, Any]) -> Usage:
    return Usage(**{name: value for name, value in values.items() if name in _USAGE_NAMES})


def step_value(step: StepRecord) -> dict[str, Any]:
    """A step as JSON has it."""
    return {
        "name": step.name,
        "title": step.title,
        "tasks": step.tasks,
        "start_s": step.start_s,
        "end_s": step.end_s,
        "state": step.state.long,
        "exit_code": None if step.exit_code is None else str(step.exit_code),
        "usage": dataclasses.asdict(step.usage),
    }


def step_of(values: Mapping[str, Any]) -> StepRecord:
    """Read what `step_value` made."""
    return StepRecord(
        name=values["name"],
        title=values["title"],
        tasks=values["tasks"],
        start_s=values["start_s"],
        end_s=values["end_s"],
        state=JobState.of(values["state"]),
        exit_code=exit_code_of(values["exit_code"]),
        usage=usage_of(values["usage"]),
    )


def ending_value(ending: Ending) -> dict[str, Any]:
    """An ending as JSON has it."""
    return {
        "state": ending.state.long,
        "exit_code": str(ending.exit_code),
        "end_s": ending.end_s,
        "reason": ending.reason,
        "cancelled_by_uid": ending.cancelled_by_uid,
        "back_to_queue": ending.back_to_queue,
        "hold": ending.hold,
        "usage": dataclasses.asdict(ending.usage),
        "steps": [step_value(step) for step in ending.steps],
    }


def ending_of(values: Mapping[str, Any]) -> Ending:
    """Read what `ending_value` made."""
    exit_code = exit_code_of(values["exit_code"])
    assert exit_code is not None
    return Ending(
        state=JobState.of(values["state"]),
        exit_code=exit_code,
        end_s=values["end_s"],
        reason=values["reason"],
        cancelled_by_uid=values["cancelled_by_uid"],
        back_to_queue=values["back_to_queue"],
        hold=values["hold"],
        usage=usage_of(values["usage"]),
        steps=tuple(step_of(item) for item in values["steps"]),
    )
