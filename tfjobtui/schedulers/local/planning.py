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
    `hopeless_tasks` are tasks of waiting rests that wait in vain, each alone (`aftercorr`). `missed` are jobs
    that cannot be done by their deadline any more. At `next_s` something changes by time alone.
    """

    starts: list[Start] = field(default_factory=list)
    reasons: dict[int, str] = field(default_factory=dict)
    dependencies: dict[int, str] = field(default_factory=dict)
    cancelled: list[int] = field(default_factory=list)
    eligible: list[int] = field(default_factory=list)
    hopeless_tasks: list[tuple[JobRecord, int]] = field(default_factory=list)
    missed: list[int] = field(default_factory=list)
    next_s: float = math.inf


def plan(live: Sequence[JobRecord], find: dependencies.Find, machine: Machine, now_s: float) -> Plan:
    """Look at all rows that have not ended. `find` gives the rows of a job, ended ones too."""
    return _Planner(live, find, machine, now_s).plan()


class _Planner:
    def __init__(
        self, live: Sequence[JobRecord], find: dependencies.Find, machine: Machine, now_s: float
    ) -> None:
        self._live = live
        self._around = dependencies.Surroundings(find, live, now_s)
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
            self._look_again(begin_s)
            return "BeginTime"
        if record.dependency and not _waits_by_task(record):
            reason = self._dependency(record)
            if reason is not None:
                return reason
        if self._misses_deadline(record):
            self._plan.missed.append(record.id)
            return "DeadLine"
        if record.eligible_s is None:
            self._plan.eligible.append(record.id)
        return None

    def _dependency(self, record: JobRecord) -> str | None:
        """What it still waits for, as a reason."""
        seen = dependencies.outlook(record, self._around)
        if seen.is_hopeless:
            if record.request.kill_on_invalid_dependency:
                self._plan.cancelled.append(record.id)
            return "DependencyNeverSatisfied"
        if seen.left != record.dependency:
            self._plan.dependencies[record.id] = seen.left
        self._look_again(seen.next_s)
        return "Dependency" if seen.left else None

    def _misses_deadline(self, record: JobRecord) -> bool:
        """Whether its time limit reaches beyond the deadline; it need not, and is not waited for then."""
        deadline_s = record.request.deadline_s
        if deadline_s is None:
            return False
        last_s = deadline_s - (0.0 if math.isinf(record.time_limit_s) else record.time_limit_s)
        self._look_again(last_s + 1)
        return self._now_s > last_s

    def _look_again(self, moment_s: float | None) -> None:
        if moment_s is not None and moment_s > self._now_s:
            self._plan.next_s = min(self._plan.next_s, moment_s)

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
            why = self._start(record, task)
            reason = reason or why
        return reason

    def _ready(self, record: JobRecord, tasks: TaskSet) -> Iterator[int | None]:
        """The tasks that may start, and at the end `None` where some may not yet."""
        if not _waits_by_task(record):
            yield from tasks
            return
        waits = False
        for task in tasks:
            seen = dependencies.outlook(record, self._around, task)
            self._look_again(seen.next_s)
            if seen.is_hopeless:
                self._plan.hopeless_tasks.append((record, task))
            elif seen.left:
                waits = True
            else:
                yield task
        if waits:
            yield None

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


def _waits_by_task(record: JobRecord) -> bool:
    return record.array_tasks is not None and dependencies.is_by_task(record.dependency)


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
            profile.take(now_s, end_s, len(held.cpus), held.memory_bytes, _held_gpus(machine, held))
    return profile


def _held_gpus(machine: Machine, held: Allocation) -> tuple[int, ...]:
    """Today's indexes of the GPUs that a job holds: after one has failed the others may be counted anew."""
    by_uuid = {gpu.uuid: gpu.index for gpu in machine.gpus if gpu.uuid}
    uuids = held.gpu_uuids or ("",) * len(held.gpus)
    return tuple(by_uuid.get(uuid, index) for index, uuid in zip(held.gpus, uuids, strict=True))
