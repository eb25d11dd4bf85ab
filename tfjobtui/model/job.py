"""A job as the queue shows it."""

from __future__ import annotations

from dataclasses import dataclass

from tfjobtui.model.ids import JobId
from tfjobtui.model.state import JobState


@dataclass(frozen=True, slots=True)
class ExitCode:
    """`exit:signal` of Slurm: the code of the script, and the signal that ended it (0: none)."""

    code: int
    signal: int = 0

    def __str__(self) -> str:
        return f"{self.code}:{self.signal}"


@dataclass(frozen=True, slots=True)
class Gpus:
    """GPUs by type: `(("a100", 2), (None, 1))`; an untyped count only where no type is known."""

    by_type: tuple[tuple[str | None, int], ...] = ()

    @property
    def count(self) -> int:
        return sum(count for _, count in self.by_type)

    def __str__(self) -> str:
        return " ".join(f"{count}×{kind}" if kind else str(count) for kind, count in self.by_type)


NO_GPUS = Gpus()


@dataclass(frozen=True, slots=True)
class Job:
    """One row of the queue: a job, an array's task or its waiting rest, a component of a het job.

    Times are seconds since the epoch and absolute, so that a running job does not change with each
    refresh. `None` is "not known". `time_limit_s` is infinite where there is no limit. For a waiting
    job `start_time_s` is the scheduler's estimate, and the resources are what was asked for.
    Texts are as the scheduler has them (bytes that are no UTF-8 as surrogates): pass them through
    `tfjobtui.model.text.printable` before they are shown.
    """

    id: JobId
    key: str
    """Unique among the rows and constant over refreshes: `[cluster/]` + `JobId.key`."""
    raw_id: int
    """The scheduler's own id of this record; for an array's task not the array's."""
    name: str
    state: JobState
    state_text: str
    user: str
    user_id: int | None = None
    cluster: str | None = None
    """Set where the program watches several clusters; then every action names it."""
    reason: str = ""
    account: str = ""
    partition: str = ""
    qos: str = ""
    reservation: str = ""
    features: str = ""
    dependency: str = ""
    priority: int | None = None
    restarts: int = 0
    submit_time_s: int | None = None
    eligible_time_s: int | None = None
    start_time_s: int | None = None
    end_time_s: int | None = None
    time_limit_s: float | None = None
    node_count: int | None = None
    cpus: int | None = None
    memory_bytes: int | None = None
    gpus: Gpus = NO_GPUS
    nodes: str = ""
    """Host list expression, `gpu[01-02]`; empty before the start."""
    batch_host: str = ""
    sched_nodes: str = ""
    command: str = ""
    work_dir: str = ""
    stdout_pattern: str = ""
    stderr_pattern: str = ""
    exit_code: ExitCode | None = None

    @property
    def array_id(self) -> int | None:
        return self.id.job if self.id.is_array else None

    @property
    def task_count(self) -> int:
        """How many tasks the row stands for: 96 for `5782_[5-100]`, else 1."""
        return len(self.id.tasks) if self.id.tasks is not None else 1

    def time_used_s(self, now_s: float) -> float | None:
        """Seconds since the start, up to the end where there was one; `None` before the start."""
        if self.start_time_s is None or self.state.is_waiting:
            return None
        if self.state.is_terminal:
            return None if self.end_time_s is None else max(0.0, self.end_time_s - self.start_time_s)
        return max(0.0, now_s - self.start_time_s)

    def time_left_s(self, now_s: float) -> float | None:
        """Seconds to the time limit, of a job that runs; infinite without a limit."""
        used = self.time_used_s(now_s)
        if used is None or self.time_limit_s is None or self.state.is_terminal:
            return None
        return max(0.0, self.time_limit_s - used)
