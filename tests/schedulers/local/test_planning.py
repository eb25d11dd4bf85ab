"""What starts, and why the rest waits."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.schedulers.local.queue import MACHINE, NOW_S, array, running, waiting
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local import planning
from tfjobtui.schedulers.local.machine import GpuDevice, Machine
from tfjobtui.schedulers.local.planning import Plan
from tfjobtui.schedulers.local.records import Allocation, JobRecord

GIB = 1 << 30


def plan(*live: JobRecord, ended: Sequence[JobRecord] = (), machine: Machine = MACHINE) -> Plan:
    rows = (*live, *ended)
    return planning.plan(
        live, lambda job: [row for row in rows if job in (row.id, row.array_job_id)], machine, NOW_S
    )


def started(made: Plan) -> list[int | tuple[int, int]]:
    return [start.record.id if start.task is None else (start.record.id, start.task) for start in made.starts]


def test_what_fits_starts_in_its_order() -> None:
    made = plan(*(waiting(number, cpus_per_task=1) for number in range(1, 7)))
    assert started(made) == [1, 2, 3, 4]
    assert [start.allocation.cpus for start in made.starts] == [(0,), (1,), (2,), (3,)]
    assert made.reasons == {5: "Resources", 6: "Priority"}


def test_the_order_is_priority_then_age_then_id() -> None:
    made = plan(
        waiting(1, cpus_per_task=4, priority=-10),
        waiting(2, cpus_per_task=4, submit_s=50.0),
        waiting(3, cpus_per_task=4, submit_s=40.0),
        waiting(4, cpus_per_task=4, submit_s=40.0),
    )
    assert started(made) == [3]
    assert made.reasons == {4: "Resources", 2: "Priority", 1: "Priority"}


def test_memory_is_set_aside_by_share_where_none_was_asked_for() -> None:
    made = plan(waiting(1), waiting(2, memory_per_node=6 * GIB), waiting(3, memory_per_node=GIB))
    assert [start.allocation.memory_bytes for start in made.starts] == [2 * GIB, 6 * GIB]
    assert made.reasons == {3: "Resources"}


@pytest.mark.parametrize("whole", [{"memory_per_node": 0}, {"exclusive": True}])
def test_a_job_can_have_the_whole_machine(whole: dict[str, object]) -> None:
    made = plan(waiting(1, **whole), waiting(2))
    assert started(made) == [1]
    assert made.starts[0].allocation.memory_bytes == 8 * GIB
    assert len(made.starts[0].allocation.cpus) == (4 if "exclusive" in whole else 1)


def test_a_gpu_is_one_jobs() -> None:
    held = Allocation((0,), GIB, (1,), ("GPU-1",), "nvidia_a100")
    made = plan(running(1, held), waiting(2, gpus=1), waiting(3, gpus=1), waiting(4))
    assert started(made) == [2, 4]
    assert made.starts[0].allocation.gpus == (0,)
    assert made.starts[0].allocation.gpu_uuids == ("GPU-0",)
    assert made.starts[0].allocation.gpu_type == "nvidia_a100"
    assert made.reasons == {3: "Resources"}


def test_gpus_that_strangers_use_come_last() -> None:
    gpus = tuple(GpuDevice(n, f"GPU-{n}", "nvidia_a100", is_busy=n < 2) for n in range(3))
    made = plan(waiting(1, gpus=1), waiting(2, gpus=2), machine=replace(MACHINE, gpus=gpus))
    assert [start.allocation.gpus for start in made.starts] == [(2,), (0, 1)]


def test_gpus_of_a_type() -> None:
    gpus = (GpuDevice(0, "a", "nvidia_a100-sxm4-40gb"), GpuDevice(1, "b", "nvidia_h100"))
    machine = replace(MACHINE, gpus=gpus)
    made = plan(waiting(1, gpus=1, gpu_type="h100"), waiting(2, gpus=1, gpu_type="A100"), machine=machine)
    assert [start.allocation.gpus for start in made.starts] == [(1,), (0,)]


def test_a_gpu_that_is_counted_anew_is_still_taken() -> None:
    """The first GPU has failed: the held one, once the second, is now the first."""
    held = Allocation((0,), GIB, (1,), ("GPU-1",))
    machine = replace(MACHINE, gpus=(GpuDevice(0, "GPU-1", "nvidia_a100"),))
    assert plan(running(1, held), waiting(2, gpus=1), machine=machine).reasons == {2: "Resources"}


def test_why_a_job_waits() -> None:
    made = plan(
        waiting(1, held=True),
        waiting(2, begin_s=NOW_S + 100),
        waiting(3, dependency="afterany:1"),
        waiting(4, dependency="afterok:90"),
        waiting(5, dependency="afterok:90", kill_on_invalid_dependency=True),
        waiting(6, begin_s=NOW_S - 1, dependency="afterok:91"),
        ended=[
            waiting(90, state=JobState.FAILED, end_s=1.0),
            waiting(91, state=JobState.COMPLETED, end_s=1.0),
        ],
    )
    assert started(made) == [6]
    assert made.cancelled == [5]
    assert made.dependencies == {6: ""}
    assert made.reasons == {
        1: "JobHeldUser",
        2: "BeginTime",
        3: "Dependency",
        4: "DependencyNeverSatisfied",
        5: "DependencyNeverSatisfied",
    }
    assert made.next_s == NOW_S + 100


def test_a_job_that_cannot_be_done_by_its_deadline_is_not_waited_for() -> None:
    made = plan(
        waiting(1, deadline_s=NOW_S + 100, time_limit_s=101.0),
        waiting(2, deadline_s=NOW_S + 100, time_limit_s=99.0, cpus_per_task=4),
        waiting(3, deadline_s=NOW_S + 100, time_limit_s=50.0, cpus_per_task=4),
        waiting(4, deadline_s=NOW_S - 1),
        waiting(5, deadline_s=NOW_S - 1, held=True),
    )
    assert (started(made), made.missed) == ([2], [1, 4])
    assert made.next_s == NOW_S + 2


def test_what_the_machine_does_not_have_any_more_holds_nobody_up() -> None:
    assert started(plan(waiting(1, cpus_per_task=9), waiting(2, gpus=3), waiting(3))) == [3]


# ---- Arrays


def test_tasks_of_an_array_start_one_by_one() -> None:
    made = plan(waiting(1, array_job_id=1, array_tasks=array((1, 9))))
    assert started(made) == [(1, 1), (1, 2), (1, 3), (1, 4)]
    assert made.reasons == {1: "Resources"}


def test_no_more_tasks_run_than_the_array_allows() -> None:
    rest = waiting(1, array_job_id=1, array_tasks=array((3, 9)), array_throttle=2)
    task = running(2, Allocation((0,), GIB), array_job_id=1, array_task_id=1)
    made = plan(rest, task, waiting(5))
    assert started(made) == [(1, 3), 5]
    assert made.reasons == {1: "JobArrayTaskLimit"}


def test_a_requeued_task_counts_for_its_array() -> None:
    again = waiting(3, array_job_id=1, array_task_id=1, array_throttle=1)
    task = running(2, Allocation((0,), GIB), array_job_id=1, array_task_id=2)
    assert plan(again, task).reasons == {3: "JobArrayTaskLimit"}


def test_tasks_that_wait_for_their_counterparts() -> None:
    first = [
        waiting(90 + task, state=state, end_s=1.0, array_job_id=90, array_task_id=task)
        for task, state in ((0, JobState.COMPLETED), (1, JobState.FAILED))
    ]
    still = running(93, Allocation((0,), GIB), array_job_id=90, array_task_id=2)
    rest = waiting(1, array_job_id=1, array_tasks=array((0, 2)), dependency="aftercorr:90")
    made = plan(rest, still, ended=first)
    assert started(made) == [(1, 0)]
    assert made.hopeless_tasks == [(rest, 1)]
    assert made.reasons == {1: "Dependency"}
    assert made.dependencies == {}


# ---- Letting through


def test_a_small_job_is_let_through_where_it_delays_nobody() -> None:
    busy = running(1, Allocation((0, 1), GIB), time_limit_s=3600.0)
    made = plan(
        busy,
        waiting(2, cpus_per_task=4, time_limit_s=600.0),
        waiting(3, time_limit_s=7200.0),
        waiting(4, time_limit_s=3600.0),
    )
    assert started(made) == [4]
    assert made.reasons == {2: "Resources", 3: "Priority"}


def test_what_is_planned_keeps_its_place_for_its_whole_time() -> None:
    """The third waits for the second, not beside it, so that the fourth, which needs its memory, is done before."""
    busy = running(1, Allocation((0, 1), GIB), time_limit_s=60.0)
    made = plan(
        busy,
        waiting(2, cpus_per_task=3, memory_per_node=GIB, time_limit_s=600.0),
        waiting(3, cpus_per_task=2, memory_per_node=8 * GIB, time_limit_s=600.0),
        waiting(4, cpus_per_task=1, memory_per_node=GIB, time_limit_s=300.0),
    )
    assert started(made) == [4]


def test_without_a_limit_nothing_is_let_through() -> None:
    busy = running(1, Allocation((0, 1), GIB), time_limit_s=3600.0)
    assert started(plan(busy, waiting(2, cpus_per_task=4), waiting(3))) == []


def test_what_is_overdue_is_taken_to_end_soon() -> None:
    busy = running(1, Allocation((0, 1), GIB), start_s=NOW_S - 500, time_limit_s=100.0)
    made = plan(
        busy, waiting(2, cpus_per_task=4), waiting(3, time_limit_s=3600.0), waiting(4, time_limit_s=50.0)
    )
    assert started(made) == [4]


def test_after_many_that_wait_nothing_more_is_let_through() -> None:
    busy = running(1, Allocation((0, 1), GIB), time_limit_s=3600.0)
    wide = [
        waiting(number, cpus_per_task=4, time_limit_s=60.0) for number in range(2, 2 + planning.MOST_PLANNED)
    ]
    assert started(plan(busy, *wide[:-1], waiting(99, time_limit_s=60.0))) == [99]
    assert started(plan(busy, *wide, waiting(99, time_limit_s=60.0))) == []


# ---- Against a plain calculation


@dataclass(frozen=True)
class Ask:
    """What a job of the comparison asks for; time in whole seconds."""

    cpus: int
    memory: int
    gpus: int
    limit: int


ASKS = st.builds(Ask, st.integers(1, 4), st.integers(1, 8), st.integers(0, 2), st.integers(1, 12))


def record_of(number: int, ask: Ask) -> JobRecord:
    return waiting(
        number,
        cpus_per_task=ask.cpus,
        memory_per_node=ask.memory * GIB,
        gpus=ask.gpus,
        time_limit_s=60.0 * ask.limit,
    )


def plain_starts(held: Sequence[Ask], asks: Sequence[Ask]) -> list[int]:
    """When each would start, in minutes: what is held first, then each at the first minute from which it fits."""
    free = [[4, 8, {0, 1}] for _ in range(1 + sum(ask.limit for ask in (*held, *asks)) + 12)]

    def fits(ask: Ask, minute: int) -> set[int] | None:
        span = free[minute : minute + ask.limit]
        gpus: set[int] = set.intersection(*(set(moment[2]) for moment in span))  # type: ignore[call-overload]
        good = all(moment[0] >= ask.cpus and moment[1] >= ask.memory for moment in span)  # type: ignore[operator]
        return set(sorted(gpus)[: ask.gpus]) if good and len(gpus) >= ask.gpus else None

    def take(ask: Ask, minute: int, gpus: set[int]) -> None:
        for moment in free[minute : minute + ask.limit]:
            moment[0] -= ask.cpus  # type: ignore[operator]
            moment[1] -= ask.memory  # type: ignore[operator]
            moment[2] -= gpus  # type: ignore[operator]

    found = []
    for ask in (*held, *asks):
        minute = next(minute for minute in range(len(free)) if fits(ask, minute) is not None)
        take(ask, minute, fits(ask, minute) or set())
        found.append(minute)
    return found[len(held) :]


def held_rows(held: Sequence[Ask]) -> tuple[list[JobRecord], list[Ask]]:
    """What runs: as much of it as there is room for at once."""
    rows: list[JobRecord] = []
    kept: list[Ask] = []
    cpus, gpus, memory = [0, 1, 2, 3], [0, 1], 8
    for ask in held:
        if ask.cpus <= len(cpus) and ask.gpus <= len(gpus) and ask.memory <= memory:
            own, cpus = cpus[: ask.cpus], cpus[ask.cpus :]
            devices, gpus = gpus[: ask.gpus], gpus[ask.gpus :]
            memory -= ask.memory
            allocation = Allocation(tuple(own), ask.memory * GIB, tuple(devices))
            rows.append(running(900 + len(rows), allocation, time_limit_s=60.0 * ask.limit))
            kept.append(ask)
    return rows, kept


@given(st.lists(ASKS, max_size=3), st.lists(ASKS, min_size=1, max_size=9))
def test_just_what_delays_nobody_ahead_starts(held: list[Ask], asks: list[Ask]) -> None:
    rows, kept = held_rows(held)
    made = plan(*rows, *(record_of(number, ask) for number, ask in enumerate(asks)))
    wanted = [number for number, minute in enumerate(plain_starts(kept, asks)) if minute == 0]
    assert started(made) == wanted
    assert made.reasons.keys() == set(range(len(asks))) - set(wanted)


@given(st.lists(ASKS, max_size=3), st.lists(ASKS, min_size=1, max_size=9))
def test_nobody_starts_later_for_one_that_was_let_through(held: list[Ask], asks: list[Ask]) -> None:
    """With what has just started as running, all that were ahead of it start when they would have without it."""
    rows, kept = held_rows(held)
    made = started(plan(*rows, *(record_of(number, ask) for number, ask in enumerate(asks))))
    for last in made:
        assert isinstance(last, int)
        ahead = asks[:last]
        before = plain_starts(kept, ahead)
        now = [asks[number] for number in made if isinstance(number, int) and number <= last]
        waits = [number for number in range(last) if number not in made]
        after = plain_starts([*kept, *now], [ahead[number] for number in waits])
        assert after == [before[number] for number in waits]


@st.composite
def queues(draw: st.DrawFn) -> list[JobRecord]:
    """Jobs and arrays that wait, some of them throttled."""
    found = []
    for number in range(1, draw(st.integers(1, 8)) + 1):
        ask = draw(ASKS)
        record = record_of(number, ask)
        if draw(st.booleans()):
            throttle = draw(st.sampled_from([None, 1, 2]))
            record = replace(
                record,
                array_job_id=number,
                array_tasks=array((0, draw(st.integers(0, 6)))),
                array_throttle=throttle,
            )
        found.append(record)
    return found


@given(st.lists(ASKS, max_size=3), queues())
def test_nothing_is_given_twice(held: list[Ask], waiting_rows: list[JobRecord]) -> None:
    rows, _ = held_rows(held)
    made = plan(*rows, *waiting_rows)
    allocations = [row.allocation for row in rows if row.allocation] + [
        start.allocation for start in made.starts
    ]
    cpus = [cpu for allocation in allocations for cpu in allocation.cpus]
    gpus = [gpu for allocation in allocations for gpu in allocation.gpus]
    assert len(cpus) == len(set(cpus))
    assert set(cpus) <= set(MACHINE.cpus)
    assert len(gpus) == len(set(gpus))
    assert set(gpus) <= {0, 1}
    assert sum(allocation.memory_bytes for allocation in allocations) <= MACHINE.memory_bytes
    for start in made.starts:
        asked = start.record.request
        assert len(start.allocation.cpus) == asked.cpus
        assert len(start.allocation.gpus) == asked.gpus
    for record in waiting_rows:
        tasks = [start.task for start in made.starts if start.record is record]
        assert len(tasks) == len(set(tasks))
        if record.array_throttle:
            assert len(tasks) <= record.array_throttle
        assert (record.id in made.reasons) == (len(tasks) < len(record.array_tasks or (0,)))


def test_ten_thousand_waiting_jobs_are_planned_at_once() -> None:
    names = ("afterok:{}", "singleton", "", "aftercorr:7", "afterany:{}?after:{}+5", "", "")
    rows = [
        waiting(
            number,
            name=f"name-{number % 9}",
            dependency=names[number % 7].format(number - 1, number - 2),
            cpus_per_task=2,
        )
        for number in range(2, 10_000)
    ]
    rows.append(waiting(1, array_job_id=1, array_tasks=array((0, 9_999)), dependency="aftercorr:7"))
    by_id = {row.id: [row] for row in rows}
    before = time.process_time()
    made = planning.plan(rows, lambda job: by_id.get(job, []), MACHINE, NOW_S)
    assert time.process_time() - before < 2.0  # measured: 0.2 s
    assert len(made.starts) == 2
