"""Jobs for programs. The keys are stable; units stand in their names; what is not known is null.

`time_limit_s` is null for a job without a limit too: then `has_no_time_limit` is true.
"""

from __future__ import annotations

import math
from typing import Any

from tfjobtui.diagnosis import ending, waiting
from tfjobtui.model.job import ExitCode, Gpus, Job
from tfjobtui.schedulers.scheduler import EndedJob


def job_as_json(job: Job, now_s: float) -> dict[str, Any]:
    """One row of the queue."""
    estimate = job.state.is_waiting
    return {
        "id": str(job.id),
        "raw_id": job.raw_id,
        "array_id": job.array_id,
        "array_task": job.id.task,
        "task_count": job.task_count,
        "task_throttle": job.id.tasks.throttle if job.id.tasks else None,
        "name": job.name,
        "state": job.state_text,
        "state_group": job.state.group.value,
        "is_ended": job.state.is_terminal,
        "reason": job.reason,
        "explanation": _explanation(job),
        "user": job.user,
        "cluster": job.cluster,
        "account": job.account,
        "partition": job.partition,
        "qos": job.qos,
        "reservation": job.reservation,
        "dependency": job.dependency,
        "priority": job.priority,
        "restarts": job.restarts,
        "submit_time_s": job.submit_time_s,
        "eligible_time_s": job.eligible_time_s,
        "start_time_s": None if estimate else job.start_time_s,
        "expected_start_time_s": job.start_time_s if estimate else None,
        "end_time_s": job.end_time_s,
        **_limit(job.time_limit_s),
        "time_used_s": _rounded(job.time_used_s(now_s)),
        "time_left_s": _rounded(job.time_left_s(now_s)),
        "node_count": job.node_count,
        "cpus": job.cpus,
        "memory_bytes": job.memory_bytes,
        "gpus": gpus_as_json(job.gpus),
        "nodes": job.nodes,
        "command": job.command,
        "work_dir": job.work_dir,
        "stdout_pattern": job.stdout_pattern,
        "stderr_pattern": job.stderr_pattern,
        **_exit(job.exit_code if job.state.is_terminal else None),
    }


def ended_as_json(ended: EndedJob) -> dict[str, Any]:
    """A job that only accounting knows, with the same keys as far as it knows them."""
    end = ending.explain_ended(ended)
    return {
        "id": str(ended.id),
        "raw_id": ended.raw_id,
        "name": ended.name,
        "state": ended.state_text,
        "state_group": ended.state.group.value,
        "is_ended": ended.state.is_terminal,
        "explanation": {"word": end.word, "meaning": end.meaning, "advice": end.advice},
        "user": ended.user,
        "account": ended.account,
        "partition": ended.partition,
        "submit_time_s": ended.submit_time_s,
        "start_time_s": ended.start_time_s,
        "end_time_s": ended.end_time_s,
        **_limit(ended.time_limit_s),
        "nodes": ended.nodes,
        "work_dir": ended.work_dir,
        "submit_line": ended.submit_line,
        "cancelled_by_uid": ended.cancelled_by_uid,
        **_exit(ended.exit_code),
    }


def gpus_as_json(gpus: Gpus) -> dict[str, Any]:
    return {
        "count": gpus.count,
        "by_type": [{"type": kind, "count": count} for kind, count in gpus.by_type],
    }


def _explanation(job: Job) -> dict[str, str] | None:
    if job.state.is_waiting:
        why = waiting.explain(job)
        return {"word": why.word, "meaning": why.meaning, "advice": why.advice}
    if job.state.is_terminal:
        end = ending.explain(job)
        return {"word": end.word, "meaning": end.meaning, "advice": end.advice}
    return None


def _limit(limit_s: float | None) -> dict[str, Any]:
    endless = limit_s is not None and math.isinf(limit_s)
    return {"time_limit_s": None if endless else limit_s, "has_no_time_limit": endless}


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None or math.isinf(seconds) else round(seconds, 1)


def _exit(code: ExitCode | None) -> dict[str, Any]:
    return {
        "exit_code": None if code is None else code.code,
        "exit_signal": None if code is None else code.signal,
    }
