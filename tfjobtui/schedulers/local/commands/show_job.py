"""`scontrol show job` and `show step`: the fields and lines of Slurm 22.05, in its order."""

from __future__ import annotations

import os
from collections.abc import Iterator

from tfjobtui.model.job import ExitCode
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local.commands.forms import clock, moment
from tfjobtui.schedulers.local.commands.job_rows import Row
from tfjobtui.schedulers.local.records import StepRecord

Pairs = list[tuple[str, str]]


def job_text(row: Row, *, one_line: bool, details: bool) -> str:
    """A job as scontrol shows it, with an empty line after it unless it is on one line."""
    lines = [" ".join(f"{name}={value}" for name, value in line) for line in _lines(row, details)]
    if one_line:
        return " ".join(line.strip() for line in lines) + "\n"
    return "\n   ".join(lines) + "\n\n"


def _lines(row: Row, details: bool) -> Iterator[Pairs]:
    yield from _about(row, details)
    yield from _times(row)
    yield from _resources(row, details)
    yield from _files(row)


def _about(row: Row, details: bool) -> Iterator[Pairs]:
    record, request = row.record, row.record.request
    first: Pairs = [("JobId", str(record.id))]
    if record.array_job_id is not None:
        first += [("ArrayJobId", str(record.array_job_id)), ("ArrayTaskId", row.array_task)]
        first += [("ArrayTaskThrottle", str(record.array_throttle))] if record.array_throttle else []
    yield [*first, ("JobName", request.name)]
    yield [
        ("UserId", f"{row.around.user}({os.getuid()})"),
        ("GroupId", f"{row.around.group}({os.getgid()})"),
        ("MCS_label", "N/A"),
    ]
    yield [
        ("Priority", str(row.priority)),
        ("Nice", str(request.nice)),
        ("Account", request.account or "(null)"),
        ("QOS", request.qos or "normal"),
    ]
    yield [
        ("JobState", record.state.long),
        # Blanks would end the value for whoever reads it.
        ("Reason", row.reason.replace(" ", "_")),
        ("Dependency", row.dependency),
    ]
    yield [
        ("Requeue", "0" if request.requeue is False else "1"),
        ("Restarts", str(record.restarts)),
        ("BatchFlag", "1"),
        ("Reboot", "0"),
        ("ExitCode", str(record.exit_code or "0:0")),
    ]
    if details:
        yield [("DerivedExitCode", str(derived_exit_code(row)))]


def derived_exit_code(row: Row) -> ExitCode:
    """The highest exit code of the steps that srun has run."""
    codes = [
        step.exit_code for step in row.record.steps if step.name != "batch" and step.exit_code is not None
    ]
    return max(codes, key=lambda code: (code.code, code.signal), default=ExitCode(0))


def _times(row: Row) -> Iterator[Pairs]:
    record = row.record
    start_s = record.start_s
    if start_s is None and row.is_pending:
        start_s = record.request.begin_s
    eligible = moment(row.eligible_s)
    yield [
        ("RunTime", clock(0 if row.is_pending else row.elapsed_s)),
        ("TimeLimit", clock(record.time_limit_s)),
        ("TimeMin", "N/A"),
    ]
    yield [("SubmitTime", moment(record.submit_s)), ("EligibleTime", eligible)]
    yield [("AccrueTime", eligible)]
    yield [
        ("StartTime", moment(start_s)),
        ("EndTime", moment(row.due_s)),
        ("Deadline", moment(record.request.deadline_s, "N/A")),
    ]
    yield [
        ("SuspendTime", "None"),
        ("SecsPreSuspend", "0"),
        ("LastSchedEval", moment(record.start_s or record.submit_s)),
        ("Scheduler", "Main"),
    ]


def _resources(row: Row, details: bool) -> Iterator[Pairs]:
    request, host = row.record.request, row.around.host
    yield [("Partition", row.partition), ("AllocNode:Sid", f"{host}:0")]
    yield [("ReqNodeList", "(null)"), ("ExcNodeList", "(null)")]
    yield [("NodeList", row.nodes)]
    if row.has_begun:
        yield [("BatchHost", host)]
    yield [
        ("NumNodes", "1"),
        ("NumCPUs", str(row.cpus)),
        ("NumTasks", str(request.task_count)),
        ("CPUs/Task", str(request.cpus_per_task or 1)),
        ("ReqB:S:C:T", "0:0:*:*"),
    ]
    yield [("TRES", ",".join(row.tres))]
    yield [
        ("Socks/Node", "*"),
        ("NtasksPerN:B:S:C", f"{request.ntasks_per_node or 0}:0:*:*"),
        ("CoreSpec", "*"),
    ]
    if details:
        yield from _allocation(row)
    yield [("MinCPUsNode", str(request.cpus_per_task or 1)), row.least_memory, ("MinTmpDiskNode", "0")]
    yield [("Features", "(null)"), ("DelayBoot", "00:00:00")]
    yield [
        ("OverSubscribe", "NO" if request.exclusive else "OK"),
        ("Contiguous", "0"),
        ("Licenses", "(null)"),
        ("Network", "(null)"),
    ]


def _allocation(row: Row) -> Iterator[Pairs]:
    """What of the machine the job holds, by numbers."""
    held = row.record.allocation
    if held is None:
        return
    kind = f":{held.gpu_type}" if held.gpu_type else ""
    gres = f"gpu{kind}:{len(held.gpus)}" if held.gpus else ""
    yield [("JOB_GRES", gres or "(null)")]
    index = f"{gres}(IDX:{_ranges(held.gpus)})" if gres else ""
    yield [
        ("  Nodes", row.around.host),
        ("CPU_IDs", _ranges(held.cpus)),
        ("Mem", str(held.memory_bytes >> 20)),
        ("GRES", index),
    ]


def _ranges(numbers: tuple[int, ...]) -> str:
    from tfjobtui.schedulers.local.commands.step_tasks import number_list

    return number_list(numbers)


def _files(row: Row) -> Iterator[Pairs]:
    request = row.record.request
    output = row.file(request.stdout)
    yield [("Command", row.command)]
    yield [("WorkDir", request.work_dir)]
    if request.comment:
        yield [("Comment", f"{request.comment} ")]
    yield [("StdErr", row.file(request.stderr) if request.stderr else output)]
    yield [("StdIn", request.stdin or os.devnull)]
    yield [("StdOut", output)]
    yield [("Power", "")]
    for what in ("job", "node", "socket", "task"):
        if asked := row.tres_per(what):
            yield [(f"TresPer{what.capitalize()}", asked)]


def step_text(row: Row, step: StepRecord, *, one_line: bool) -> str:
    """A step as scontrol shows it."""
    is_batch = step.name == "batch"
    lines: list[Pairs] = [
        [
            ("StepId", f"{row.record.id}.{step.name}"),
            ("UserId", str(os.getuid())),
            ("StartTime", moment(step.start_s)),
            ("TimeLimit", "UNLIMITED"),
        ],
        [
            ("State", (JobState.RUNNING if step.end_s is None else step.state).long),
            ("Partition", row.partition),
            ("NodeList", row.around.host),
        ],
        [
            ("Nodes", "1"),
            ("CPUs", "0" if is_batch else str(step.tasks)),
            ("Tasks", str(step.tasks)),
            ("Name", step.title),
            ("Network", "(null)"),
        ],
        [("TRES", "(null)" if is_batch else ",".join(row.tres))],
    ]
    texts = [" ".join(f"{name}={value}" for name, value in line) for line in lines]
    return " ".join(texts) + "\n" if one_line else "\n   ".join(texts) + "\n\n"
