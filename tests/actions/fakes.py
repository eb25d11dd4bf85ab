"""A scheduler that remembers what it was asked, and answers what the test laid out."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from tfjobtui.errors import QueryError
from tfjobtui.model.ids import JobId
from tfjobtui.model.job import Job
from tfjobtui.model.node import Node
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.scheduler import (
    ActionResult,
    Capabilities,
    CommandRecord,
    EndedJob,
    Forecast,
    JobDetails,
    Partition,
    PriorityFactor,
    QueueAnswer,
    StepUsage,
    StoredScript,
    SubmitRequest,
    Submitted,
    Target,
)


def job(job_id: str = "7", state: JobState = JobState.RUNNING, **more: object) -> Job:
    """A job of the user `u`."""
    parsed = JobId.parse(job_id)
    fields: dict[str, object] = {
        "id": parsed,
        "key": parsed.key,
        "raw_id": parsed.job,
        "name": "train",
        "state": state,
        "state_text": state.long,
        "user": "u",
        "submit_time_s": 1000,
        **more,
    }
    return Job(**fields)  # type: ignore[arg-type]


class FakeScheduler:
    """Everything of the protocol. `refusals` maps an id to the words of its refusal."""

    def __init__(self, *jobs: Job) -> None:
        self.queue = list(jobs)
        self.refusals: dict[str, str] = {}
        self.remarks: dict[str, str] = {}
        """What is said of an id although it was done."""
        self.calls: list[tuple[object, ...]] = []
        self.details_of: dict[str, tuple[tuple[str, str], ...]] = {}
        self.scripts: dict[str, StoredScript] = {}
        self.endings: tuple[EndedJob, ...] = ()
        self.submitted_id = JobId(4711)
        self.submit_error: Exception | None = None
        self.accounting_error: QueryError | None = None
        self.forecasts: list[Forecast | Exception] = []
        self.node_list: tuple[Node, ...] = ()
        self.capabilities = Capabilities("fake", "22.05.8")
        self.closed = False

    async def jobs(self, *, everyone: bool = False) -> QueueAnswer:
        self.calls.append(("jobs", everyone))
        return QueueAnswer(tuple(self.queue), time.time(), 0.1)

    async def details(self, target: Target) -> JobDetails | None:
        self.calls.append(("details", str(target.id)))
        fields = self.details_of.get(str(target.id))
        return None if fields is None else JobDetails(target.id, fields)

    async def priority(self, target: Target) -> tuple[PriorityFactor, ...]:
        return ()

    def action_commands(
        self, action: str, targets: Sequence[Target], signal: str | None = None
    ) -> tuple[tuple[str, ...], ...]:
        what = ("--pending",) if any(target.pending_only for target in targets) else ()
        return ((action, *((signal,) if signal else ()), *what, *(str(target.id) for target in targets)),)

    def _act(self, verb: str, targets: Sequence[Target]) -> tuple[ActionResult, ...]:
        record = CommandRecord((verb, *(str(target.id) for target in targets)), 2000.0, 0.1, 0)
        return tuple(
            ActionResult(
                target,
                str(target.id) not in self.refusals,
                self.refusals.get(str(target.id), "") or self.remarks.get(str(target.id), ""),
                record,
            )
            for target in targets
        )

    async def cancel(self, targets: Sequence[Target], signal: str | None = None) -> tuple[ActionResult, ...]:
        self.calls.append(("cancel", tuple(targets), signal))
        return self._act("cancel", targets)

    async def hold(self, targets: Sequence[Target]) -> tuple[ActionResult, ...]:
        self.calls.append(("hold", tuple(targets)))
        return self._act("hold", targets)

    async def release(self, targets: Sequence[Target]) -> tuple[ActionResult, ...]:
        self.calls.append(("release", tuple(targets)))
        return self._act("release", targets)

    async def requeue(self, targets: Sequence[Target]) -> tuple[ActionResult, ...]:
        self.calls.append(("requeue", tuple(targets)))
        return self._act("requeue", targets)

    async def update(self, target: Target, changes: Mapping[str, str]) -> ActionResult:
        self.calls.append(("update", target, dict(changes)))
        return self._act("update", [target])[0]

    async def submit(self, request: SubmitRequest) -> Submitted:
        self.calls.append(("submit", request))
        if self.submit_error is not None:
            raise self.submit_error
        record = CommandRecord(
            ("sbatch", *request.options, request.script_path, *request.arguments), 2000.0, 0.1, 0
        )
        return Submitted(self.submitted_id, request.cluster, "", record)

    async def forecast(self, request: SubmitRequest) -> Forecast:
        self.calls.append(("forecast", request))
        answer = self.forecasts.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def stored_script(self, target: Target) -> StoredScript | None:
        self.calls.append(("stored_script", str(target.id)))
        return self.scripts.get(str(target.id))

    async def ended(self, targets: Sequence[Target]) -> tuple[EndedJob, ...]:
        self.calls.append(("ended", tuple(str(target.id) for target in targets)))
        if self.accounting_error is not None:
            raise self.accounting_error
        wanted = {target.id for target in targets}
        return tuple(end for end in self.endings if end.id in wanted)

    async def partitions(self) -> tuple[Partition, ...]:
        return ()

    async def nodes(self) -> tuple[Node, ...]:
        return self.node_list

    async def step_usage(self, target: Target) -> tuple[StepUsage, ...]:
        return ()

    def shell_argv(self, target: Target, node: str | None = None) -> tuple[str, ...]:
        return ("true",)

    def foreground_environment(self) -> Mapping[str, str]:
        return {}

    async def close(self) -> None:
        self.closed = True
