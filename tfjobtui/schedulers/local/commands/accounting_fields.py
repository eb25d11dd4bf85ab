"""The fields of sacct and sstat: their names, widths and values.

Names and widths are those of 22.05 (`src/sacct/sacct.c`). What was never sampled, and what has no meaning on one
machine, is empty, as it is on a cluster that does not gather it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tfjobtui.model.job import ExitCode
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local.commands.forms import clock, exact_size, fine_clock, moment
from tfjobtui.schedulers.local.commands.job_rows import Row
from tfjobtui.schedulers.local.environment import CLUSTER

_WIDTHS = """
Account:10 AdminComment:15 AllocCPUS:10 AllocNodes:10 AllocTRES:10 AssocID:7 AveCPU:10 AveCPUFreq:10 AveDiskRead:14
AveDiskWrite:14 AvePages:10 AveRSS:10 AveVMSize:10 BlockID:16 Cluster:10 Comment:14 Constraints:19 ConsumedEnergy:14
ConsumedEnergyRaw:17 Container:19 CPUTime:10 CPUTimeRAW:10 DBIndex:-10 DerivedExitCode:15 Elapsed:10 ElapsedRaw:10
Eligible:19 End:19 ExitCode:8 Flags:19 GID:6 Group:9 JobID:-12 JobIDRaw:-12 JobName:10 Layout:9 MaxDiskRead:12
MaxDiskReadNode:15 MaxDiskReadTask:15 MaxDiskWrite:12 MaxDiskWriteNode:16 MaxDiskWriteTask:16 MaxPages:8
MaxPagesNode:12 MaxPagesTask:14 MaxRSS:10 MaxRSSNode:10 MaxRSSTask:10 MaxVMSize:10 MaxVMSizeNode:14 MaxVMSizeTask:14
McsLabel:12 MinCPU:10 MinCPUNode:10 MinCPUTask:10 NCPUS:10 NNodes:8 NodeList:15 NTasks:8 Partition:10 Priority:10
QOS:10 QOSRAW:6 Reason:22 ReqCPUFreq:10 ReqCPUFreqGov:13 ReqCPUFreqMax:13 ReqCPUFreqMin:13 ReqCPUS:8 ReqMem:10
ReqNodes:8 ReqTRES:10 Reservation:20 ReservationId:8 Reserved:10 ResvCPU:10 ResvCPURAW:10 Start:19 State:10 Submit:19
SubmitLine:20 Suspended:10 SystemComment:15 SystemCPU:10 Timelimit:10 TimelimitRaw:10 TotalCPU:10 TRESUsageInAve:14
TRESUsageInMax:14 TRESUsageInMaxNode:18 TRESUsageInMaxTask:18 TRESUsageInMin:14 TRESUsageInMinNode:18
TRESUsageInMinTask:18 TRESUsageInTot:14 TRESUsageOutAve:15 TRESUsageOutMax:15 TRESUsageOutMaxNode:19
TRESUsageOutMaxTask:19 TRESUsageOutMin:15 TRESUsageOutMinNode:19 TRESUsageOutMinTask:19 TRESUsageOutTot:15 UID:6 User:9
UserCPU:10 WCKey:10 WCKeyID:10 WorkDir:20
"""
_STAT_WIDTHS = """
AveCPU:10 AveCPUFreq:10 AveDiskRead:12 AveDiskWrite:12 AvePages:10 AveRSS:10 AveVMSize:10 ConsumedEnergy:14
ConsumedEnergyRaw:17 JobID:-12 MaxDiskRead:12 MaxDiskReadNode:15 MaxDiskReadTask:15 MaxDiskWrite:12 MaxDiskWriteNode:16
MaxDiskWriteTask:16 MaxPages:8 MaxPagesNode:12 MaxPagesTask:14 MaxRSS:10 MaxRSSNode:10 MaxRSSTask:10 MaxVMSize:10
MaxVMSizeNode:14 MaxVMSizeTask:14 MinCPU:10 MinCPUNode:10 MinCPUTask:10 Nodelist:20 NTasks:8 Pids:20 ReqCPUFreq:10
ReqCPUFreqMin:13 ReqCPUFreqMax:13 ReqCPUFreqGov:13 TRESUsageInAve:14 TRESUsageInMax:14 TRESUsageInMaxNode:18
TRESUsageInMaxTask:18 TRESUsageInMin:14 TRESUsageInMinNode:18 TRESUsageInMinTask:18 TRESUsageInTot:14
TRESUsageOutAve:15 TRESUsageOutMax:15 TRESUsageOutMaxNode:19 TRESUsageOutMaxTask:19 TRESUsageOutMin:15
TRESUsageOutMinNode:19 TRESUsageOutMinTask:19 TRESUsageOutTot:15
"""


def _table(text: str) -> dict[str, int]:
    return {name: int(width) for name, _, width in (word.partition(":") for word in text.split())}


SACCT: Mapping[str, int] = _table(_WIDTHS)
"""sacct's fields, in the order in which beginnings of names are looked for."""
SSTAT: Mapping[str, int] = _table(_STAT_WIDTHS)


class Units(NamedTuple):
    """How sizes are printed: in one unit, or (`is_plain`) as the bytes that they are."""

    wanted: str = ""
    is_plain: bool = False

    def size(self, count: int | None) -> str:
        if count is None:
            return ""
        return str(count) if self.is_plain else exact_size(count, wanted=self.wanted if count else "")


class Column(NamedTuple):
    """A field as it is printed; below 0 the width is left-aligned."""

    name: str
    width: int


def value(name: str, row: Row, units: Units) -> str:
    """A field's text."""
    if name in _SIZES:
        return _SIZES[name](row, units)
    found = _BOTH.get(name) or (_OF_JOBS if row.step is None else _OF_STEPS).get(name)
    return "" if found is None else found(row)


def table_lines(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[str]:
    """Cells with a blank after each; what is cut ends with `+`."""
    return [
        "".join(_cell(text, column.width) for text, column in zip(row, columns, strict=True)) for row in rows
    ]


def header_lines(columns: Sequence[Column]) -> list[str]:
    """The names, and a rule below them."""
    names = "".join(
        f"{column.name[: abs(column.width)]:{'<' if column.width < 0 else '>'}{abs(column.width)}} "
        for column in columns
    )
    return [names, "".join("-" * abs(column.width) + " " for column in columns)]


def _cell(text: str, width: int) -> str:
    size = abs(width)
    shown = text if len(text) <= size else f"{text[: size - 1]}+"
    return f"{shown.ljust(size) if width < 0 else shown.rjust(size)} "


# ---- Values


def _state(row: Row) -> str:
    by = row.record.cancelled_by_uid
    if row.step is None and row.state is JobState.CANCELLED and by is not None:
        return f"CANCELLED by {by}"
    return row.state.long


def _exit_code(row: Row) -> str:
    code = row.record.exit_code if row.step is None else row.step.exit_code
    return _as_accounted(code or ExitCode(0))


def _as_accounted(code: ExitCode) -> str:
    """sacct takes the 128 away by which shells tell of a signal."""
    return str(ExitCode(code.code - 128, code.signal) if code.code >= 128 else code)


def _cpu_count(row: Row) -> str:
    return "0" if row.is_pending and row.step is None else str(row.cpus)


def _cpu_s(row: Row) -> float | None:
    return row.record.usage.cpu_s if row.step is None else row.usage.cpu_s


def _average_cpu(row: Row) -> str:
    if row.step is None or row.usage.cpu_s is None:
        return ""
    return clock(row.usage.cpu_s / max(1, row.step.tasks))


def _start(row: Row) -> str:
    was_never = row.state.is_terminal and row.start_s is None
    return moment(row.start_s, "None" if was_never else "Unknown")


def _sorted_tres(words: Sequence[str]) -> str:
    return ",".join(sorted(words))


def _reserved(row: Row) -> str:
    """How long it waited once it was eligible."""
    record = row.record
    if record.eligible_s is None:
        return "00:00:00"
    return clock(max(0.0, (record.start_s or row.around.now_s) - record.eligible_s))


def _raw_limit(row: Row) -> str:
    limit = row.record.time_limit_s
    return "UNLIMITED" if limit == float("inf") else str(int(limit // 60))


def _usage_words(row: Row, units: Units) -> str:
    """cpu, fs/disk and mem of a step."""
    usage = row.usage
    if row.step is None or usage.cpu_s is None:
        return ""
    words = [f"cpu={clock(usage.cpu_s)}", "energy=0"]
    words += [f"fs/disk={usage.read_bytes}"] if usage.read_bytes is not None else []
    if usage.gpu_memory_bytes is not None:
        words.append(f"gres/gpumem={units.size(usage.gpu_memory_bytes)}")
    if usage.gpu_percent is not None:
        words.append(f"gres/gpuutil={usage.gpu_percent:.0f}")
    words += [f"mem={units.size(usage.peak_rss_bytes)}"] if usage.peak_rss_bytes is not None else []
    return ",".join(words)


def _written(row: Row, _: Units) -> str:
    written = row.usage.written_bytes
    return "" if row.step is None or written is None else f"energy=0,fs/disk={written}"


def _megabytes(count: int | None) -> str:
    """As sacct prints what was read and written: always in M."""
    return "" if count is None else f"{count / (1 << 20):.2f}M"


def _asked_memory(row: Row, units: Units) -> str:
    if row.step is not None:
        return ""
    asked = row.record.request.memory_bytes
    return exact_size((asked or row.memory_bytes) >> 20, "M", units.wanted)


_SIZES: Mapping[str, Callable[[Row, Units], str]] = {
    "AveRSS": lambda row, units: units.size(row.usage.peak_rss_bytes),
    "MaxRSS": lambda row, units: units.size(row.usage.peak_rss_bytes),
    "AveDiskRead": lambda row, _: _megabytes(row.usage.read_bytes),
    "AveDiskWrite": lambda row, _: _megabytes(row.usage.written_bytes),
    "MaxDiskRead": lambda row, _: _megabytes(row.usage.read_bytes),
    "MaxDiskWrite": lambda row, _: _megabytes(row.usage.written_bytes),
    "ReqMem": _asked_memory,
    "TRESUsageInAve": _usage_words,
    "TRESUsageInMax": _usage_words,
    "TRESUsageInTot": _usage_words,
    "TRESUsageOutAve": _written,
    "TRESUsageOutMax": _written,
    "TRESUsageOutTot": _written,
}
"""A step is sampled as a whole: its highest, its mean and its total are the same."""
_BOTH: Mapping[str, Callable[[Row], str]] = {
    "AllocCPUS": _cpu_count,
    "AllocNodes": lambda row: "0" if row.is_pending and row.step is None else "1",
    "Cluster": lambda _: CLUSTER,
    "CPUTime": lambda row: clock(row.elapsed_s * row.cpus),
    "CPUTimeRAW": lambda row: str(row.elapsed_s * row.cpus),
    "Elapsed": lambda row: clock(row.elapsed_s),
    "ElapsedRaw": lambda row: str(row.elapsed_s),
    "End": lambda row: moment(row.end_s),
    "ExitCode": _exit_code,
    "JobID": lambda row: row.array_id + _step_suffix(row),
    "JobIDRaw": lambda row: f"{row.record.id}{_step_suffix(row)}",
    "JobName": lambda row: row.record.request.name if row.step is None else row.step.title,
    "NCPUS": _cpu_count,
    "NNodes": lambda _: "1",
    "NodeList": lambda row: row.nodes or "None assigned",
    "ReqCPUS": lambda row: str(row.cpus),
    "ReqNodes": lambda _: "1",
    "Start": _start,
    "State": _state,
    "Suspended": lambda _: "00:00:00",
    "TotalCPU": lambda row: fine_clock(_cpu_s(row)),
}
_OF_JOBS: Mapping[str, Callable[[Row], str]] = {
    "Account": lambda row: row.record.request.account,
    "AllocTRES": lambda row: "" if row.record.allocation is None else _sorted_tres(row.tres),
    "Comment": lambda row: row.record.request.comment,
    "DerivedExitCode": lambda row: _derived(row),
    "Eligible": lambda row: moment(row.eligible_s),
    "GID": lambda _: str(os.getgid()),
    "Group": lambda row: row.around.group,
    "Partition": lambda row: row.partition,
    "Priority": lambda row: str(row.priority),
    "QOS": lambda row: row.record.request.qos or "normal",
    "Reason": lambda row: row.reason if row.is_pending else "None",
    "ReqTRES": lambda row: _sorted_tres(row.tres),
    "Reserved": _reserved,
    "Submit": lambda row: moment(row.record.submit_s),
    "SubmitLine": lambda row: row.record.request.submit_line,
    "Timelimit": lambda row: clock(row.record.time_limit_s),
    "TimelimitRaw": _raw_limit,
    "UID": lambda _: str(os.getuid()),
    "User": lambda row: row.around.user,
    "WorkDir": lambda row: row.record.request.work_dir,
}
_OF_STEPS: Mapping[str, Callable[[Row], str]] = {
    "AllocTRES": lambda row: _sorted_tres([word for word in row.tres if not word.startswith("billing")]),
    "AveCPU": _average_cpu,
    "Eligible": lambda row: moment(row.start_s),
    "MinCPU": _average_cpu,
    "Nodelist": lambda row: row.around.host,
    "NTasks": lambda row: "" if row.step is None else str(row.step.tasks),
    "Submit": lambda row: moment(row.start_s),
}


def _derived(row: Row) -> str:
    from tfjobtui.schedulers.local.commands.show_job import derived_exit_code

    return _as_accounted(derived_exit_code(row))


def _step_suffix(row: Row) -> str:
    return "" if row.step is None else f".{row.step.name}"
