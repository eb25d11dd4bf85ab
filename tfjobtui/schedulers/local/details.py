"""A job as scontrol and squeue would show it: fields by their names, and the row of the queue."""

from __future__ import annotations

import getpass
import math
import os
from collections.abc import Iterator

from tfjobtui.model.job import NO_GPUS, Gpus, Job
from tfjobtui.model.state import JobState
from tfjobtui.model.units import size
from tfjobtui.schedulers.local.environment import CLUSTER
from tfjobtui.schedulers.local.job_process import log_path
from tfjobtui.schedulers.local.machine import Machine
from tfjobtui.schedulers.local.place import host_name
from tfjobtui.schedulers.local.records import JobRecord

_MEBIBYTE = 1 << 20


def job_of(record: JobRecord, machine: Machine) -> Job:
    """The row of the queue; what waits shows what it asked for, what has started what it holds."""
    request, held = record.request, record.allocation
    has_begun = record.start_s is not None
    return Job(
        id=record.job_id,
        key=record.job_id.key,
        raw_id=record.id,
        name=request.name,
        state=record.state,
        state_text=record.state.long,
        user=user_name(),
        user_id=os.getuid(),
        reason="" if record.reason == "None" and record.state is not JobState.PENDING else record.reason,
        account=request.account,
        partition=request.partition or CLUSTER,
        qos=request.qos,
        dependency=record.dependency,
        priority=record.priority,
        restarts=record.restarts,
        submit_time_s=int(record.submit_s),
        eligible_time_s=_second(request.begin_s if record.eligible_s is None else record.eligible_s),
        start_time_s=_second(record.start_s),
        end_time_s=_end_second(record),
        time_limit_s=record.time_limit_s,
        node_count=1,
        cpus=machine.cpus_for(request) if held is None else len(held.cpus),
        memory_bytes=machine.memory_for(request) if held is None else held.memory_bytes,
        gpus=gpus_of(record),
        nodes=host_name() if has_begun else "",
        batch_host=host_name() if has_begun else "",
        command=request.command,
        work_dir=request.work_dir,
        stdout_pattern=request.stdout,
        stderr_pattern=request.stderr or request.stdout,
        exit_code=record.exit_code if record.state.is_terminal else None,
    )


def user_name() -> str:
    """The user's own name, or number where there is none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _second(moment_s: float | None) -> int | None:
    return None if moment_s is None else int(moment_s)


def _end_second(record: JobRecord) -> int | None:
    """When it ended, or has to end."""
    if record.end_s is not None:
        return int(record.end_s)
    if record.start_s is None or math.isinf(record.time_limit_s):
        return None
    return int(record.start_s + record.time_limit_s)


def gpus_of(record: JobRecord) -> Gpus:
    count, kind = record.request.gpus, record.request.gpu_type
    if record.allocation is not None and record.allocation.gpus:
        count, kind = len(record.allocation.gpus), record.allocation.gpu_type
    return Gpus(((kind, count),)) if count else NO_GPUS


def fields_of(record: JobRecord, machine: Machine) -> tuple[tuple[str, str], ...]:
    """What `scontrol show job` shows, in its order; moments are seconds since the epoch."""
    return tuple(_fields(record, machine))


def _fields(record: JobRecord, machine: Machine) -> Iterator[tuple[str, str]]:
    request = record.request
    job = job_of(record, machine)
    yield "JobId", str(record.id)
    if record.array_job_id is not None:
        yield "ArrayJobId", str(record.array_job_id)
        task = record.array_task_id if record.array_tasks is None else record.array_tasks
        yield "ArrayTaskId", str(task)
        if record.array_throttle:
            yield "ArrayTaskThrottle", str(record.array_throttle)
    yield "JobName", request.name
    yield "UserId", f"{job.user}({os.getuid()})"
    yield "Priority", str(0 if record.held else max(1, 1_000_000 + record.priority))
    yield "Nice", str(request.nice)
    yield "Account", request.account or "(null)"
    yield "QOS", request.qos or "normal"
    yield "JobState", record.state.long
    yield "Reason", record.reason or "None"
    yield "Dependency", _dependency_text(record) or "(null)"
    yield "Requeue", "0" if request.requeue is False else "1"
    yield "Restarts", str(record.restarts)
    yield "BatchFlag", "1"
    yield "ExitCode", str(record.exit_code or "0:0")
    yield "TimeLimit", limit_text(record.time_limit_s)
    yield "SubmitTime", str(int(record.submit_s))
    yield "EligibleTime", _moment(job.eligible_time_s)
    yield "StartTime", _moment(job.start_time_s if job.start_time_s is not None else _second(request.begin_s))
    yield "EndTime", _moment(job.end_time_s)
    yield "Partition", job.partition
    yield "NodeList", job.nodes or "(null)"
    yield "BatchHost", job.batch_host or "(null)"
    yield "NumNodes", "1"
    yield "NumCPUs", str(job.cpus)
    yield "NumTasks", str(request.task_count)
    yield "CPUs/Task", str(request.cpus_per_task or 1)
    yield "TRES", _tres(job)
    yield "MinMemoryNode", size(job.memory_bytes)
    if request.gpus:
        kind = f"{request.gpu_type}:" if request.gpu_type else ""
        yield "TresPerNode", f"gres/gpu:{kind}{request.gpus}"
    yield "Command", " ".join([request.command or "(null)", *request.arguments])
    yield "WorkDir", request.work_dir
    if request.comment:
        yield "Comment", request.comment
    if record.array_tasks is None:
        output = log_path(record, request.stdout)
        yield "StdErr", log_path(record, request.stderr) if request.stderr else output
        yield "StdIn", request.stdin or os.devnull
        yield "StdOut", output
    if request.submit_line:
        yield "SubmitLine", request.submit_line


def _dependency_text(record: JobRecord) -> str:
    words = record.dependency.replace("?", ",?").split(",") if record.dependency else []
    return ",".join(f"{word}(unfulfilled)" if ":" in word else word for word in words)


def _moment(second: int | None) -> str:
    return "Unknown" if second is None else str(second)


def limit_text(seconds: float) -> str:
    """`UNLIMITED`, or `[D-]HH:MM:SS`."""
    if math.isinf(seconds):
        return "UNLIMITED"
    days, rest = divmod(int(seconds), 86400)
    clock = f"{rest // 3600:02}:{rest % 3600 // 60:02}:{rest % 60:02}"
    return f"{days}-{clock}" if days else clock


def _tres(job: Job) -> str:
    parts = [f"cpu={job.cpus}", f"mem={(job.memory_bytes or 0) // _MEBIBYTE}M", "node=1", "billing=1"]
    for kind, count in job.gpus.by_type:
        parts.append(f"gres/gpu={count}")
        parts += [f"gres/gpu:{kind}={count}"] if kind else []
    return ",".join(parts)
