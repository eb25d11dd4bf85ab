"""A job in the store, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass

from tfjobtui.model.ids import JobId, TaskSet
from tfjobtui.model.job import ExitCode
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local.identity import ProcessIdentity
from tfjobtui.schedulers.local.request import JobRequest


@dataclass(frozen=True, slots=True)
class Allocation:
    """What a job holds of the machine: CPUs and GPUs by their numbers, memory in bytes.

    `gpus` are the indexes that NVML counts by (PCI bus order), with their UUIDs and type beside them.
    """

    cpus: tuple[int, ...]
    memory_bytes: int
    gpus: tuple[int, ...] = ()
    gpu_uuids: tuple[str, ...] = ()
    gpu_type: str | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What a job or a step has used; `None` where it was never sampled.

    Seconds and bytes. `peak_rss_bytes` is the highest sample of the whole process tree. I/O counts what went
    through to storage (`/proc/PID/io` read_bytes, write_bytes). GPU figures are those of NVML: the highest
    memory, and the mean utilisation over the samples.
    """

    cpu_s: float | None = None
    peak_rss_bytes: int | None = None
    rss_bytes: int | None = None
    read_bytes: int | None = None
    written_bytes: int | None = None
    gpu_percent: float | None = None
    gpu_memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class StepRecord:
    """A step of a job: `batch`, or `0`, `1` … of srun."""

    name: str
    title: str
    tasks: int
    start_s: float
    end_s: float | None
    state: JobState
    exit_code: ExitCode | None
    usage: Usage


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run of a job ended. `back_to_queue` says that it waits again (`requeue`), held with `hold`."""

    state: JobState
    exit_code: ExitCode
    end_s: float
    reason: str = ""
    cancelled_by_uid: int | None = None
    back_to_queue: bool = False
    hold: bool = False
    usage: Usage = Usage()
    steps: tuple[StepRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One row: a job, a task of an array, or (with `array_tasks`) the waiting rest of an array.

    `id` is the raw id; the waiting rest has the array's own, and the last task that starts takes it. Moments
    are seconds since the epoch. `reason` is Slurm's word for why it waits or failed. `restarts` counts
    requeues (SLURM_RESTART_COUNT). `token` is new with each start: it is in the environment of everything
    that the start runs. `shepherd` is who runs it. `dependency` is what is left to wait for, as scontrol
    writes it.
    """

    id: int
    request: JobRequest
    state: JobState
    reason: str
    submit_s: float
    array_job_id: int | None = None
    array_task_id: int | None = None
    array_tasks: TaskSet | None = None
    array_throttle: int | None = None
    held: bool = False
    priority: int = 0
    eligible_s: float | None = None
    start_s: float | None = None
    end_s: float | None = None
    time_limit_s: float = float("inf")
    restarts: int = 0
    dependency: str = ""
    allocation: Allocation | None = None
    token: str = ""
    shepherd: ProcessIdentity | None = None
    exit_code: ExitCode | None = None
    cancelled_by_uid: int | None = None
    usage: Usage = Usage()
    steps: tuple[StepRecord, ...] = ()

    @property
    def job_id(self) -> JobId:
        """The id that is shown."""
        if self.array_job_id is None:
            return JobId(self.id)
        if self.array_tasks is not None:
            tasks = TaskSet(self.array_tasks.ranges, self.array_throttle or None)
            return JobId(self.array_job_id, tasks=tasks)
        return JobId(self.array_job_id, task=self.array_task_id)
