"""Which waiting jobs start now, and why the others wait.

First come, first served, by priority; a later job is let through only where it delays none before it, going
by time limits: each job that has to wait gets a place in the future, and what is looked at after it must fit
beside that place. After `MOST_PLANNED` of them nothing more is let through. Pure: nothing is read or changed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tfjobtui.model.ids import TaskSet
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local import dependencies
from tfjobtui.schedulers.local.machine import Machine, refusal
from tfjobtui.schedulers.local.profile import UNLIMITED_S, Need, Profile
from tfjobtui.schedulers.local.records import Allocation, JobRecord

MOST_PLANNED = 30
_OVERDUE_S = 60.0
"""What should have ended already is taken to end within that."""


@dataclass(frozen=True, slots=True)
class Start:
    """A job, or a task of an array's waiting rest, that starts now with this."""

    record: JobRecord
    task: int | None
    allocation: Allocation


@dataclass(slots=True)
class Plan:
    """What follows from a look at the queue; by raw ids.

    `dependencies` is what is left to wait for where that has changed; `cancelled` are jobs whose dependency
    can never come true and that asked to be cancelled then; `eligible` are those that may start from now on.
    """

    starts: list[Start] = field(default_factory=list)
    reasons: dict[int, str] = field(default_factory=dict)
    dependencies: dict[int, str] = field(default_factory=dict)
    cancelled: list[int] = field(default_factory=list)
    eligible: list[int] = field(default_factory=list)


def plan(live: Sequence[JobRecord], find: dependencies.Find, machine: Machine, now_s: float) -> Plan:
    """Look at all rows that have not ended. `find` gives the rows of a job, ended ones too."""
    return _Planner(live, find, machine, now_s).plan()


class _Planner:
    def __init__(
        self, live: Sequence[JobRecord], find: dependencies.Find, machine: Machine, now_s: float
    ) -> None:
        self._live = live
        self._find = find
        self._machine = machine
        self._now_s = now_s
        self._plan = Plan()
        holding = [record for record in live if record.state is not JobState.PENDING]
        self._running: Counter[int | None] = Counter(record.array_job_id for record in holding)
        self._free_cpus = _free_cpus(machine, holding)
        self._profile = _profile(machine, holding, now_s)
        self._planned = 0

    def plan(self) -> Plan:
        waiting = [record for record in self._live if record.state is JobState.PENDING]
        waiting.sort(key=lambda record: (-record.priority, record.submit_s, record.id))
        for record in waiting:
            reason = self._obstacle(record) or self._place(record)
            if reason is not None:
                self._plan.reasons[record.id] = reason
        return self._plan

    def _obstacle(self, record: JobRecord) -> str | None:
        """Why it may not start yet, whatever is free."""
        if record.held:
            return "JobHeldUser"
        begin_s = record.request.begin_s
        if begin_s is not None and begin_s > self._now_s:
            return "BeginTime"
        if record.dependency:
            seen = dependencies.outlook(record, self._find, self._live, self._now_s)
            if seen.is_hopeless:
                if record.request.kill_on_invalid_dependency:
                    self._plan.cancelled.append(record.id)
                return "DependencyNeverSatisfied"
            if seen.left != record.dependency and not dependencies.corresponding(record.dependency):
                self._plan.dependencies[record.id] = seen.left
            if seen.left:
                return "Dependency"
        if record.eligible_s is None:
            self._plan.eligible.append(record.id)
        return None

    def _place(self, record: JobRecord) -> str | None:
        """Start it, or give it a place in the future; why it waits, or `None` where all of it starts."""
        if self._planned >= MOST_PLANNED:
            return "Priority"
        if record.array_tasks is None:
            if self._at_throttle(record):
                return "JobArrayTaskLimit"
            return self._start(record, record.array_task_id)
        return self._place_tasks(record, record.array_tasks)

    def _place_tasks(self, record: JobRecord, tasks: TaskSet) -> str | None:
        reason: str | None = None
        for task in self._ready(record, tasks):
            if task is None:
                return reason or "Dependency"
            if self._at_throttle(record):
                return reason or "JobArrayTaskLimit"
            if self._planned >= MOST_PLANNED:
                return reason or "Priority"
            reason = self._start(record, task) or reason
        return reason

    def _ready(self, record: JobRecord, tasks: TaskSet) -> Iterator[int | None]:
        """The tasks that may start, and at the end `None` where some may not yet (`aftercorr`)."""
        arrays = dependencies.corresponding(record.dependency)
        if not arrays:
            yield from tasks
            return
        done = frozenset.intersection(*(self._good_tasks(array) for array in arrays))
        waits = False
        for task in tasks:
            if task in done:
                yield task
            else:
                waits = True
        if waits:
            yield None

    def _good_tasks(self, array: int) -> frozenset[int]:
        """The tasks of an array that are done well."""
        return frozenset(
            row.array_task_id
            for row in self._find(array)
            if row.state is JobState.COMPLETED and row.array_task_id is not None
        )

    def _at_throttle(self, record: JobRecord) -> bool:
        limit = record.array_throttle
        return limit is not None and limit > 0 and self._running[record.array_job_id] >= limit

    def _start(self, record: JobRecord, task: int | None) -> str | None:
        """Start it if it fits, else plan it; why it waits."""
        machine, request = self._machine, record.request
        if refusal(request, machine):
            return "Resources"  # the machine has less than when it was submitted
        need = _need(record, machine)
        found = self._profile.earliest(need)
        if found is None:
            return "Resources"
        start_s, gpus = found
        end_s = start_s + need.duration_s
        self._profile.take(start_s, end_s, need.cpus, need.memory_bytes, gpus)
        if start_s > self._now_s:
            self._planned += 1
            return "Resources" if self._planned == 1 else "Priority"
        self._plan.starts.append(Start(record, task, self._allocate(record, need, gpus)))
        self._running[record.array_job_id] += 1
        return None

    def _allocate(self, record: JobRecord, need: Need, gpus: tuple[int, ...]) -> Allocation:
        cpus, self._free_cpus = self._free_cpus[: need.cpus], self._free_cpus[need.cpus :]
        by_index = {gpu.index: gpu for gpu in self._machine.gpus}
        kinds = {by_index[index].kind for index in gpus}
        return Allocation(
            cpus=cpus,
            memory_bytes=need.memory_bytes,
            gpus=gpus,
            gpu_uuids=tuple(by_index[index].uuid for index in gpus),
            gpu_type=kinds.pop() if len(kinds) == 1 else None,
        )


def _need(record: JobRecord, machine: Machine) -> Need:
    request = record.request
    choice = sorted(machine.gpus_of(request.gpu_type), key=lambda gpu: (gpu.is_busy, gpu.index))
    return Need(
        cpus=machine.cpus_for(request),
        memory_bytes=machine.memory_for(request),
        gpus=request.gpus,
        gpu_choice=tuple(gpu.index for gpu in choice),
        duration_s=_duration(record.time_limit_s),
    )


def _duration(limit_s: float) -> float:
    return UNLIMITED_S if math.isinf(limit_s) else max(1.0, limit_s)


def _free_cpus(machine: Machine, holding: Iterable[JobRecord]) -> tuple[int, ...]:
    taken = {cpu for record in holding if record.allocation is not None for cpu in record.allocation.cpus}
    return tuple(cpu for cpu in machine.cpus if cpu not in taken)


def _profile(machine: Machine, holding: Iterable[JobRecord], now_s: float) -> Profile:
    profile = Profile(now_s, len(machine.cpus), machine.memory_bytes, [gpu.index for gpu in machine.gpus])
    for record in holding:
        held = record.allocation
        if held is not None:
            end_s = (record.start_s or now_s) + _duration(record.time_limit_s)
            end_s = max(end_s, now_s + _OVERDUE_S)
            profile.take(now_s, end_s, len(held.cpus), held.memory_bytes, held.gpus)
    return profile
