"""The steps that srun has begun in a job, as its shepherd knows them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tfjobtui.model.job import ExitCode
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local.identity import ProcessIdentity
from tfjobtui.schedulers.local.records import StepRecord, Usage
from tfjobtui.schedulers.local.rows import usage_of
from tfjobtui.schedulers.local.usage import cpu_seconds


@dataclass(slots=True)
class Step:
    """A step: its srun, and its tasks' processes."""

    number: int
    title: str
    tasks: int
    srun: ProcessIdentity
    start_s: float
    cpus: tuple[int, ...] = ()
    gpus: tuple[int, ...] = ()
    """What no other step gets meanwhile; nothing of a step that shares."""
    pids: list[int] = field(default_factory=list)
    end_s: float | None = None
    exit_code: ExitCode | None = None
    usage: Usage = field(default_factory=Usage)
    """Of the whole step, as its srun told it at the end."""

    @property
    def is_running(self) -> bool:
        return self.end_s is None

    def record(self, now_s: float) -> StepRecord:
        """As it is kept and told."""
        return StepRecord(
            name=str(self.number),
            title=self.title,
            tasks=self.tasks,
            start_s=self.start_s,
            end_s=self.end_s,
            state=self._state(),
            exit_code=self.exit_code,
            usage=Usage(cpu_s=sum(map(cpu_seconds, self.pids))) if self.is_running else self.usage,
        )

    def _state(self) -> JobState:
        if self.is_running:
            return JobState.RUNNING
        if self.exit_code is None or self.exit_code.signal:
            return JobState.CANCELLED
        return JobState.FAILED if self.exit_code.code else JobState.COMPLETED


class Steps:
    """All steps of one start of a job, which has these CPUs and GPUs."""

    def __init__(self, cpus: tuple[int, ...] = (), gpus: tuple[int, ...] = ()) -> None:
        self._steps: list[Step] = []
        self._cpus = cpus
        self._gpus = gpus

    def begin(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Begin a step, or say that other steps have what it needs (`busy`).

        `cpus` and `gpus` are how many it needs, or `None` for all of the job's. With `shared` it needs none that
        are free. The answer has the numbers of those that it asked for.
        """
        srun = ProcessIdentity.of(int(request["pid"]))
        if srun is None:
            return {"error": "there is no such process"}
        self.notice_dead()
        is_shared = bool(request.get("shared", True))
        running = [] if is_shared else [step for step in self._steps if step.is_running]
        cpus = _find(self._cpus, {cpu for step in running for cpu in step.cpus}, request.get("cpus"))
        gpus = _find(self._gpus, {gpu for step in running for gpu in step.gpus}, request.get("gpus"))
        if cpus is None or gpus is None:
            return {"busy": "Requested nodes are busy"}
        step = Step(
            number=len(self._steps),
            title=str(request.get("title", "")),
            tasks=int(request.get("tasks", 1)),
            srun=srun,
            start_s=time.time(),
            cpus=() if is_shared else cpus,
            gpus=() if is_shared else gpus,
        )
        self._steps.append(step)
        answer: dict[str, Any] = {"ok": True, "step": step.number}
        if request.get("cpus") is not None and not is_shared:
            answer["cpus"] = cpus
        if request.get("gpus") is not None:
            answer["gpus"] = gpus
        return answer

    def tasks(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self._steps[int(request["step"])].pids = [int(pid) for pid in request["pids"]]
        return {"ok": True}

    def pids_of(self, number: int) -> list[int]:
        """The tasks of one step, if it runs.

        Raises:
            IndexError: there is no such step.
        """
        step = self._steps[number]
        return step.pids if step.is_running else []

    def end(self, request: Mapping[str, Any]) -> dict[str, Any]:
        step = self._steps[int(request["step"])]
        step.end_s = time.time()
        step.exit_code = ExitCode(int(request["exit_code"]), int(request["signal"]))
        step.usage = usage_of(request.get("usage", {}))
        return {"ok": True}

    def notice_dead(self) -> None:
        """A step whose srun is gone without a word was cancelled."""
        for step in self._steps:
            if step.is_running and not step.srun.is_alive():
                step.end_s = time.time()

    def running_pids(self) -> list[int]:
        """The tasks of the steps that run."""
        return [pid for step in self._steps if step.is_running for pid in step.pids]

    def sruns(self) -> list[int]:
        """The srun of each step that runs; one that was started from outside is no descendant of the shepherd."""
        return [step.srun.pid for step in self._steps if step.is_running]

    def records(self) -> tuple[StepRecord, ...]:
        now_s = time.time()
        return tuple(step.record(now_s) for step in self._steps)


def _find(every: tuple[int, ...], held: set[int], count: int | None) -> tuple[int, ...] | None:
    """The first so many that are not held (`None`: all), or `None` where there are too few."""
    free = tuple(number for number in every if number not in held)
    wanted = len(every) if count is None else min(count, len(every))
    return free[:wanted] if len(free) >= wanted else None
