"""A step as it was asked for, once everything about it is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tfjobtui.schedulers.local.commands.step_files import Target
from tfjobtui.schedulers.local.environment import step_environment


@dataclass(frozen=True, slots=True)
class StepRequest:
    """What to run and how.

    `base` is srun's own environment (or what stands in for it), `environment` what `--export` leaves of it.
    `stderr` is `None` where it goes with standard output. `cpus` are the CPUs of the step, empty where they are
    srun's own; `gpus` its GPUs, `None` where they are the job's; `gpus_per_task` gives each task its own of them.
    `wait_s` and `time_limit_s` are `None` without a limit.
    """

    argv: Sequence[str]
    base: Mapping[str, str]
    environment: Mapping[str, str]
    token: str
    number: int
    task_count: int
    folder: str
    stdin: Target
    stdout: Target
    stderr: Target | None
    cpus_per_task: int | None = None
    cpus: tuple[int, ...] = ()
    gpus: tuple[int, ...] | None = None
    gpus_per_task: int | None = None
    append: bool = False
    is_labelled: bool = False
    is_quiet: bool = False
    wants_terminal: bool = False
    kill_on_bad_exit: bool = False
    interrupts_at_once: bool = False
    wait_s: float | None = None
    time_limit_s: float | None = None

    @property
    def name(self) -> str:
        """`12.0`."""
        return f"{self.base.get('SLURM_JOB_ID')}.{self.number}"

    def environment_of(self, task: int) -> dict[str, str]:
        """The whole environment of one task, but for its pid."""
        variables = step_environment(
            self.environment,
            step=self.number,
            ntasks=self.task_count,
            task=task,
            cpus_per_task=self.cpus_per_task,
        )
        if self.gpus is None:
            return variables
        mine = self.gpus
        if self.gpus_per_task is not None:
            mine = self.gpus[task * self.gpus_per_task : (task + 1) * self.gpus_per_task]
        # An empty list hides what the job has besides.
        names = ("SLURM_STEP_GPUS", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")
        return variables | dict.fromkeys(names, ",".join(map(str, mine)))
