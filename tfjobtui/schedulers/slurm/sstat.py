"""What `sstat -n -P` prints of a running job's steps. It ends with 0 even where it failed."""

from __future__ import annotations

from tfjobtui.schedulers.scheduler import StepUsage
from tfjobtui.schedulers.slurm.fields import parse_count, parse_duration, parse_size
from tfjobtui.schedulers.slurm.tres import parse_tres

FIELDS = ("JobID", "NTasks", "AveCPU", "MaxRSS", "AveRSS", "TRESUsageInTot", "TRESUsageInMax")


def parse_steps(text: str) -> tuple[StepUsage, ...]:
    """Read the rows; a header or a row of another form is left out."""
    steps: list[StepUsage] = []
    for line in text.splitlines():
        values = line.split("|")
        if len(values) == len(FIELDS) and values[0][:1].isdigit():
            steps.append(_step(values))
    return tuple(steps)


def _step(values: list[str]) -> StepUsage:
    job, tasks, average, peak, _, totals, _ = values
    used = parse_tres(totals)
    count = parse_count(tasks)
    mean_s = parse_duration(average)
    total_s = parse_duration(used.get("cpu", ""))
    if total_s is None and mean_s is not None and count is not None:
        total_s = mean_s * count
    return StepUsage(
        step=job.partition(".")[2],
        tasks=count,
        cpu_s=total_s,
        peak_rss_bytes=parse_size(peak),
        memory_bytes=parse_size(used.get("mem", "")),
        gpu_percent=parse_count(used.get("gres/gpuutil", "")),
        gpu_memory_bytes=parse_size(used.get("gres/gpumem", "")),
    )
