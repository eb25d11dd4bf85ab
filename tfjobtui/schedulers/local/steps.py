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
from tfjobtui.schedulers.local.usage import cpu_seconds


@dataclass(slots=True)
class Step:
    """A step: its srun, and its tasks' processes."""

    number: int
    title: str
    tasks: int
    srun: ProcessIdentity
    start_s: float
    pids: list[int] = field(default_factory=list)
    end_s: float | None = None
    exit_code: ExitCode | None = None

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
            usage=Usage(cpu_s=sum(map(cpu_seconds, self.pids))) if self.is_running else Usage(),
        )

    def _state(self) -> JobState:
        if self.is_running:
            return JobState.RUNNING
        if self.exit_code is None or self.exit_code.signal:
            return JobState.CANCELLED
        return JobState.FAILED if self.exit_code.code else JobState.COMPLETED


class Steps:
    """All steps of one start of a job."""

    def __init__(self) -> None:
        self._steps: list[Step] = []

    def begin(self, request: Mapping[str, Any]) -> dict[str, Any]:
        srun = ProcessIdentity.of(int(request["pid"]))
        if srun is None:
            return {"error": "there is no such process"}
        number = len(self._steps)
        title, tasks = str(request.get("title", "")), int(request.get("tasks", 1))
        self._steps.append(Step(number, title, tasks, srun, time.time()))
        return {"ok": True, "step": number}

    def tasks(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self._steps[int(request["step"])].pids = [int(pid) for pid in request["pids"]]
        return {"ok": True}

    def end(self, request: Mapping[str, Any]) -> dict[str, Any]:
        step = self._steps[int(request["step"])]
        step.end_s = time.time()
        step.exit_code = ExitCode(int(request["exit_code"]), int(request["signal"]))
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
