"""What squeue, sacct and their kin show of a job: its fields by their names, and tables of them."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tfjobtui.errors import UsageError
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local import details
from tfjobtui.schedulers.local.details import limit_text
from tfjobtui.schedulers.local.job_process import log_path
from tfjobtui.schedulers.local.machine import Machine
from tfjobtui.schedulers.local.place import host_name
from tfjobtui.schedulers.local.records import JobRecord, StepRecord, Usage


@dataclass(frozen=True, slots=True)
class Row:
    """A job, or one of its steps."""

    record: JobRecord
    machine: Machine
    step: StepRecord | None = None

    @property
    def usage(self) -> Usage:
        return Usage() if self.step is None else self.step.usage


def moment(second: float | None) -> str:
    """As Slurm shows it, or by SLURM_TIME_FORMAT."""
    if second is None:
        return "Unknown"
    form = os.environ.get("SLURM_TIME_FORMAT", "standard")
    form = "%Y-%m-%dT%H:%M:%S" if form in ("standard", "relative") else form
    return time.strftime(form, time.localtime(second))


def elapsed_s(row: Row) -> int:
    """Seconds from the start to the end, or to now."""
    start = row.step.start_s if row.step is not None else row.record.start_s
    end = row.step.end_s if row.step is not None else row.record.end_s
    if start is None:
        return 0
    return max(0, int((end or time.time()) - start))


def short_time(seconds: float) -> str:
    """`5:00`, `1:02:03`, `1-02:03:04`, as squeue shows it."""
    if math.isinf(seconds):
        return "UNLIMITED"
    days, rest = divmod(int(seconds), 86400)
    hours, minutes, left = rest // 3600, rest % 3600 // 60, rest % 60
    if days:
        return f"{days}-{hours:02}:{minutes:02}:{left:02}"
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"


def total_cpu(seconds: float | None) -> str:
    """`06:57.815`, `01:01:06`, `1-02:03:04`, as sacct's TotalCPU."""
    if seconds is None:
        return "00:00:00"
    if seconds < 3600:
        return f"{int(seconds) // 60:02}:{seconds % 60:06.3f}"
    return limit_text(seconds)


def kibibytes(count: int | None) -> str:
    return "" if count is None else f"{count // 1024}K"


def state_text(row: Row) -> str:
    if row.step is not None:
        return row.step.state.long
    by = row.record.cancelled_by_uid
    return (
        f"CANCELLED by {by}"
        if row.record.state is JobState.CANCELLED and by is not None
        else row.record.state.long
    )


def reason_or_nodes(row: Row) -> str:
    """squeue's %R."""
    if row.record.state is JobState.PENDING:
        return f"({row.record.reason or 'None'})"
    return host_name() if row.record.start_s is not None else ""


def _left(row: Row) -> str:
    limit = row.record.time_limit_s
    return "UNLIMITED" if math.isinf(limit) else short_time(max(0, limit - elapsed_s(row)))


def _tres(row: Row) -> str:
    return dict(details.fields_of(row.record, row.machine))["TRES"]


def _field(name: str) -> Callable[[Row], str]:
    return lambda row: dict(details.fields_of(row.record, row.machine)).get(name, "")


def _raw_limit(row: Row) -> str:
    limit = row.record.time_limit_s
    return "" if math.isinf(limit) else str(int(limit // 60))


def _cpus(row: Row) -> int:
    held = row.record.allocation
    return len(held.cpus) if held is not None else row.machine.cpus_for(row.record.request)


def job_name(row: Row) -> str:
    return row.record.request.name if row.step is None else row.step.title


def _array_id(row: Row) -> str:
    throttle = row.record.array_throttle
    text = str(row.record.job_id)
    return f"{text[:-1]}%{throttle}]" if row.record.array_tasks is not None and throttle else text


def _task(row: Row) -> str:
    record = row.record
    return str(record.array_tasks or record.array_task_id) if record.array_job_id is not None else "N/A"


SHARED: Mapping[str, Callable[[Row], str]] = {
    "account": lambda row: row.record.request.account or "(null)",
    "arrayjobid": lambda row: str(row.record.array_job_id or row.record.id),
    "arraytaskid": _task,
    "batchhost": lambda row: host_name() if row.record.start_s is not None else "n/a",
    "command": _field("Command"),
    "comment": lambda row: row.record.request.comment or "(null)",
    "dependency": lambda row: row.record.dependency or "(null)",
    "eligibletime": lambda row: moment(row.record.eligible_s),
    "endtime": lambda row: moment(details.job_of(row.record, row.machine).end_time_s),
    "exit_code": lambda row: str(row.record.exit_code or "0:0"),
    "feature": lambda _: "(null)",
    "jobarrayid": _array_id,
    "jobid": lambda row: str(row.record.id),
    "minmemory": _field("MinMemoryNode"),
    "name": job_name,
    "nodelist": lambda row: host_name() if row.record.start_s is not None else "",
    "numcpus": lambda row: str(_cpus(row)),
    "numnodes": lambda _: "1",
    "numtasks": lambda row: str(row.record.request.task_count),
    "partition": lambda row: row.record.request.partition or "local",
    "prioritylong": _field("Priority"),
    "qos": lambda row: row.record.request.qos or "normal",
    "reason": lambda row: row.record.reason or "None",
    "reasonlist": reason_or_nodes,
    "requeue": _field("Requeue"),
    "restartcnt": lambda row: str(row.record.restarts),
    "starttime": lambda row: "N/A" if row.record.start_s is None else moment(row.record.start_s),
    "state": lambda row: row.record.state.long,
    "statecompact": lambda row: row.record.state.short,
    "stdout": lambda row: row.record.request.stdout or log_path(row.record, ""),
    "stderr": lambda row: row.record.request.stderr or row.record.request.stdout or log_path(row.record, ""),
    "submittime": lambda row: moment(row.record.submit_s),
    "timeleft": _left,
    "timelimit": lambda row: short_time(row.record.time_limit_s),
    "timeused": lambda row: short_time(elapsed_s(row)),
    "tres-alloc": _tres,
    "tres-per-node": lambda row: f"gres/gpu:{row.record.request.gpus}" if row.record.request.gpus else "N/A",
    "userid": lambda _: str(os.getuid()),
    "username": lambda _: details.user_name(),
    "workdir": lambda row: row.record.request.work_dir,
}
"""squeue's `-O` fields."""


def _peak(row: Row) -> str:
    return kibibytes(row.usage.peak_rss_bytes)


def _requested(row: Row) -> str:
    return f"{row.machine.memory_for(row.record.request) >> 20}M" if row.step is None else ""


def _step_id(row: Row) -> str:
    record = row.record
    name = str(record.job_id)
    return name if row.step is None else f"{name}.{row.step.name}"


def _exit(row: Row) -> str:
    code = row.record.exit_code if row.step is None else row.step.exit_code
    return str(code or "0:0")


def _derived(row: Row) -> str:
    codes = [
        step.exit_code.code
        for step in row.record.steps
        if step.exit_code is not None and step.name != "batch"
    ]
    return "" if row.step is not None else f"{max(codes, default=0)}:0"


def _whole_cpu(row: Row) -> str:
    return total_cpu(row.record.usage.cpu_s if row.step is None else row.usage.cpu_s)


ACCOUNTING: Mapping[str, tuple[int, Callable[[Row], str]]] = {
    "account": (10, lambda row: row.record.request.account),
    "alloccpus": (10, lambda row: str(_cpus(row))),
    "allocnodes": (10, lambda _: "1"),
    "alloctres": (10, _tres),
    "avecpu": (10, lambda row: "" if row.step is None else total_cpu(row.usage.cpu_s)),
    "averss": (10, _peak),
    "cluster": (10, lambda _: "local"),
    "comment": (14, lambda row: row.record.request.comment),
    "cputime": (10, lambda row: limit_text(elapsed_s(row) * _cpus(row))),
    "cputimeraw": (10, lambda row: str(elapsed_s(row) * _cpus(row))),
    "derivedexitcode": (15, _derived),
    "elapsed": (10, lambda row: limit_text(elapsed_s(row))),
    "elapsedraw": (10, lambda row: str(elapsed_s(row))),
    "eligible": (19, lambda row: moment(row.record.eligible_s)),
    "end": (19, lambda row: moment(row.record.end_s if row.step is None else row.step.end_s)),
    "exitcode": (8, _exit),
    "jobid": (12, _step_id),
    "jobidraw": (12, lambda row: str(row.record.id) + ("" if row.step is None else f".{row.step.name}")),
    "jobname": (10, job_name),
    "maxdiskread": (12, lambda row: kibibytes(row.usage.read_bytes)),
    "maxdiskwrite": (12, lambda row: kibibytes(row.usage.written_bytes)),
    "maxrss": (10, _peak),
    "ncpus": (10, lambda row: str(_cpus(row))),
    "nnodes": (8, lambda _: "1"),
    "nodelist": (15, lambda row: host_name() if row.record.start_s is not None else "None assigned"),
    "ntasks": (8, lambda row: "" if row.step is None else str(row.step.tasks)),
    "partition": (10, lambda row: (row.record.request.partition or "local") if row.step is None else ""),
    "qos": (10, lambda row: row.record.request.qos or "normal"),
    "reason": (22, lambda row: row.record.reason or "None"),
    "reqcpus": (8, lambda row: str(row.machine.cpus_for(row.record.request))),
    "reqmem": (10, _requested),
    "reqtres": (10, _tres),
    "restarts": (8, lambda row: str(row.record.restarts)),
    "start": (19, lambda row: moment(row.record.start_s if row.step is None else row.step.start_s)),
    "state": (10, state_text),
    "submit": (19, lambda row: moment(row.record.submit_s)),
    "submitline": (20, lambda row: row.record.request.submit_line),
    "timelimit": (10, lambda row: limit_text(row.record.time_limit_s) if row.step is None else ""),
    "timelimitraw": (10, lambda row: _raw_limit(row) if row.step is None else ""),
    "totalcpu": (10, _whole_cpu),
    "uid": (6, lambda _: str(os.getuid())),
    "user": (9, lambda row: details.user_name() if row.step is None else ""),
    "workdir": (20, lambda row: row.record.request.work_dir if row.step is None else ""),
}
"""sacct's and sstat's fields, with the cells that each takes."""


def accounting_field(name: str) -> str:
    """A field by its name or the beginning of one, in any case.

    Raises:
        UsageError: there is none.
    """
    lower = name.casefold()
    if lower in ACCOUNTING:
        return lower
    close = [known for known in ACCOUNTING if lower and known.startswith(lower)]
    if not close:
        raise UsageError(f'Invalid field requested: "{name}" (not known to the local scheduler)')
    return close[0]


def cell(text: str, width: int, *, left: bool = False) -> str:
    """Cut and padded, as Slurm does."""
    cut = text[:width]
    return cut.ljust(width) if left else cut.rjust(width)


def table(rows: Sequence[Sequence[str]], widths: Sequence[int]) -> list[str]:
    """Lines of cells with a blank between them, as sacct prints them: a text that is cut ends with `+`."""
    return [
        " ".join(
            cell(
                text if len(text) <= abs(width) else f"{text[: abs(width) - 1]}+", abs(width), left=width < 0
            )
            for text, width in zip(row, widths, strict=True)
        )
        + " "
        for row in rows
    ]
