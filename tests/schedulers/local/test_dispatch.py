"""Passes over the queue, with real processes: what starts, what is noticed, and what a kill at any moment leaves."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.schedulers.local import queue
from tests.schedulers.local.queue import array, dead_process, ended, own_process, python, submit, until
from tfjobtui.errors import CommandNotFoundError
from tfjobtui.model.ids import JobId
from tfjobtui.model.job import ExitCode
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local import dispatch, machine, planning, rows, spawning, waiter
from tfjobtui.schedulers.local.dispatch import make_pass
from tfjobtui.schedulers.local.identity import boot_id
from tfjobtui.schedulers.local.journal import Journal
from tfjobtui.schedulers.local.place import TOKEN_VARIABLE, Place
from tfjobtui.schedulers.local.records import Allocation, Ending, JobRecord
from tfjobtui.schedulers.local.settings import LocalSettings
from tfjobtui.schedulers.local.store import Store


@pytest.fixture
def unspawned(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Nothing is started; what would have been."""
    found: list[tuple[str, ...]] = []

    def start(module: str, place: Place, *words: str, token: str, log: Path) -> None:
        found.append((module, *words))

    monkeypatch.setattr(spawning, "start", start)
    monkeypatch.setattr(waiter, "ensure", lambda place: None)
    return found


@pytest.fixture(autouse=True)
def four_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "find_machine", lambda settings: queue.MACHINE)


def taken_over(store: Store, job: JobRecord) -> JobRecord:
    """A row as a shepherd has it that is dead by now; its script had been started."""
    journal = begun(store, job)
    journal.set_started(dead_process())
    journal.close()
    found = store.get(job.id)
    assert found is not None
    return found


def begun(store: Store, job: JobRecord, token: str = "token") -> Journal:
    claim(store, job, token)
    journal = Journal(store.place.journal(job.id, token))
    assert store.take_over(job.id, token, dead_process(), time.time()) is not None
    return journal


def claim(store: Store, job: JobRecord, token: str = "token", boot: str = "", age_s: float = 0.0) -> None:
    moment = time.clock_gettime(time.CLOCK_BOOTTIME) - age_s
    allocation = rows.allocation_value(Allocation((0,), 1 << 20))
    store.change(
        job.id,
        state="CONFIGURING",
        token=token,
        claimed=f"{boot or boot_id()} {moment}",
        allocation=allocation,
    )


# ---- With real shepherds


def test_a_job_runs_to_its_end(store: Store, place: Place) -> None:
    job = submit(store, "echo hello; exit 3")
    report = make_pass(place, store)
    assert (report.started, report.is_needed) == ((job.id,), True)
    (record,) = ended(store, job.id)
    assert (record.state, record.exit_code) == (JobState.FAILED, ExitCode(3))
    assert (place.folder.parent / "1.log").read_text() == "hello\n"


def test_what_waits_starts_when_something_ends(store: Store, place: Place) -> None:
    first = submit(store, exclusive=True)
    second = submit(store, exclusive=True, dependency=f"afterok:{first.id}")
    tasks = submit(store, "echo $SLURM_ARRAY_TASK_ID", array=array((1, 3), throttle=1))
    make_pass(place, store)
    assert [row.state for row in ended(store, second.id)] == [JobState.COMPLETED]
    found = ended(store, tasks.id)
    assert sorted(row.array_task_id or 0 for row in found) == [1, 2, 3]
    assert {row.id for row in found} == {tasks.id, tasks.id + 1, tasks.id + 2}
    assert {(place.folder.parent / f"{tasks.id}_{task}.log").read_text() for task in (1, 2, 3)} == {
        "1\n",
        "2\n",
        "3\n",
    }


def test_passes_at_once_start_a_job_once(store: Store, place: Place) -> None:
    out = place.folder.parent / "out"
    for _ in range(6):
        submit(store, f"echo $SLURM_JOB_ID >> {out}", memory_per_node=1 << 20)
    code = "import sys; from pathlib import Path; from tfjobtui.schedulers.local.dispatch import make_pass\n"
    code += "from tfjobtui.schedulers.local.place import Place\nfor _ in range(5): make_pass(Place(Path(sys.argv[1])))"
    children = [python("-c", code, str(place.folder)) for _ in range(3)]
    assert [child.communicate()[1] or child.returncode for child in children] == [0, 0, 0]
    for number in range(1, 7):
        assert [row.state for row in ended(store, number)] == [JobState.COMPLETED]
    assert sorted(out.read_text().split()) == list("123456")


# ---- Shepherds that are gone


def test_the_job_of_a_lost_shepherd_has_failed_with_its_node(
    store: Store, place: Place, unspawned: list[tuple[str, ...]]
) -> None:
    job = taken_over(store, submit(store))
    report = make_pass(place, store)
    assert (report.started, report.lost, report.is_needed) == ((), (job.id,), False)
    (record,) = store.jobs()
    assert (record.state, record.reason, record.restarts) == (JobState.NODE_FAIL, "NodeDown", 0)
    assert unspawned == []


def test_it_waits_again_if_it_asked_for_that(
    store: Store, place: Place, unspawned: list[tuple[str, ...]]
) -> None:
    job = taken_over(store, submit(store, requeue=True))
    report = make_pass(place, store)
    assert (report.lost, report.started) == ((job.id,), (job.id,))
    (record,) = store.live()
    assert (record.state, record.restarts) == (JobState.CONFIGURING, 1)
    assert record.token not in ("", "token")
    assert unspawned == [("shepherd", str(job.id), record.token)]


def test_what_it_has_left_is_ended_first(
    store: Store, place: Place, unspawned: list[tuple[str, ...]]
) -> None:
    job = taken_over(store, submit(store))
    with subprocess.Popen(("sleep", "60"), env={**os.environ, TOKEN_VARIABLE: job.token}) as left:
        make_pass(place, store)
        assert left.wait(5) == -signal.SIGKILL
    assert store.jobs()[0].state is JobState.NODE_FAIL


def test_an_end_that_it_had_written_counts(
    store: Store, place: Place, unspawned: list[tuple[str, ...]]
) -> None:
    now_s = time.time()
    journal = begun(store, submit(store))
    journal.set_started(dead_process())
    journal.set_ending(Ending(JobState.FAILED, ExitCode(7), now_s))
    journal.close()
    make_pass(place, store)
    (record,) = store.jobs()
    assert (record.state, record.exit_code, record.end_s) == (JobState.FAILED, ExitCode(7), now_s)


def test_a_script_that_it_had_not_started_yet_starts_anew(
    store: Store, place: Place, unspawned: list[tuple[str, ...]]
) -> None:
    job = submit(store)
    begun(store, job).close()
    assert make_pass(place, store).started == (job.id,)
    (record,) = store.live()
    assert (record.state, record.restarts) == (JobState.CONFIGURING, 0)


def test_what_ran_before_the_boot_is_lost(
    store: Store, place: Place, unspawned: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    claim(store, submit(store))
    store.take_over(1, "token", own_process(), time.time())
    make_pass(place, store)
    assert store.live()[0].state is JobState.RUNNING
    monkeypatch.setenv("TFJOBTUI_BOOT_ID", "another")
    make_pass(place, store)
    assert store.jobs()[0].state is JobState.NODE_FAIL


@pytest.mark.parametrize(
    ("boot", "age_s", "is_overdue"), [("", 1.0, False), ("", 1000.0, True), ("another", 1.0, True)]
)
def test_a_start_that_nobody_takes_over_is_planned_anew(
    store: Store, place: Place, unspawned: list[tuple[str, ...]], boot: str, age_s: float, is_overdue: bool
) -> None:
    job = submit(store)
    claim(store, job, boot=boot, age_s=age_s)
    assert make_pass(place, store).started == ((job.id,) if is_overdue else ())
    assert (store.take_over(job.id, "token", own_process(), 1.0) is None) == is_overdue


def test_a_start_that_fails_is_put_back(store: Store, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*words: object, **values: object) -> None:
        raise CommandNotFoundError("no", ("python",))

    monkeypatch.setattr(spawning, "start", fail)
    submit(store)
    make_pass(place, store)
    assert [record.state for record in store.live()] == [JobState.PENDING]


# ---- Planning


def test_nothing_is_planned_while_nothing_changes(
    store: Store, place: Place, unspawned: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = []

    def counted(*words: object) -> planning.Plan:
        plans.append(words)
        return planning.plan(*words)  # type: ignore[arg-type]

    make_pass(place, store)  # which notes when old jobs were last forgotten
    monkeypatch.setattr(dispatch, "plan", counted)
    submit(store, cpus_per_task=4)
    submit(store, cpus_per_task=4)
    for _ in range(5):
        make_pass(place, store)
    assert len(plans) == 1
    store.set_held(2, held=True)
    make_pass(place, store)
    make_pass(place, store)
    assert len(plans) == 2
    other = Store(place)
    other.set_held(2, held=False)
    other.close()
    make_pass(place, store)
    make_pass(place, store)
    assert len(plans) == 3


def test_a_begin_time_is_kept(store: Store, place: Place, unspawned: list[tuple[str, ...]]) -> None:
    job = submit(store, begin_s=time.time() + 0.3)
    report = make_pass(place, store)
    assert (report.started, report.is_needed) == ((), True)
    assert store.live()[0].reason == "BeginTime"
    assert until(lambda: make_pass(place, store).started) == (job.id,)
    record = store.live()[0]
    assert record.eligible_s is not None
    assert record.eligible_s >= (record.request.begin_s or 0)


def test_what_waits_in_vain_ends_with_all_that_waits_for_it(
    store: Store, place: Place, unspawned: list[tuple[str, ...]]
) -> None:
    first = submit(store)
    store.change(first.id, state="FAILED", end_s=time.time())
    for number in range(2, 6):
        submit(store, dependency=f"afterok:{number - 1}", kill_on_invalid_dependency=True)
    submit(store, dependency="afterok:5")
    late = submit(store, deadline_s=time.time() + 50, time_limit_s=60.0)
    report = make_pass(place, store)
    assert (report.started, report.is_needed) == ((), False)
    assert [record.state for record in store.jobs()[1:5]] == [JobState.CANCELLED] * 4
    assert [(record.id, record.reason) for record in store.live()] == [(6, "DependencyNeverSatisfied")]
    record = store.get(late.id)
    assert record is not None
    assert (record.state, record.reason, record.exit_code) == (JobState.DEADLINE, "DeadLine", ExitCode(0, 1))


def test_what_has_started_waits_for_nothing_any_more(
    store: Store, place: Place, unspawned: list[tuple[str, ...]]
) -> None:
    """So that a requeue does not wait once more, for something that runs anew."""
    submit(store, hold=True)
    job = submit(store, dependency="afterok:1?singleton", name="another")
    assert make_pass(place, store).started == (job.id,)
    assert store.live()[1].dependency == ""
    tasks = submit(store, array=array((1, 2)), dependency="aftercorr:99")
    assert len(make_pass(place, store).started) == 2
    assert {row.dependency for row in store.find(JobId(tasks.id))} == {""}


def test_a_task_whose_counterpart_failed_waits_alone(
    store: Store, place: Place, unspawned: list[tuple[str, ...]]
) -> None:
    first = submit(store, array=array((1, 2)))
    store.change(first.id, state="COMPLETED", end_s=time.time(), array_tasks=None, array_task_id=1)
    bad = queue.waiting(
        store.take_id(), array_job_id=1, array_task_id=2, state=JobState.FAILED, end_s=time.time()
    )
    store.insert(bad)
    second = submit(store, array=array((1, 2)), dependency=f"aftercorr:{first.id}")
    make_pass(place, store)
    found = {row.array_task_id: (row.state, row.reason) for row in store.find(JobId(second.id))}
    assert found == {
        1: (JobState.CONFIGURING, "None"),
        2: (JobState.PENDING, "DependencyNeverSatisfied"),
    }


def test_old_jobs_are_forgotten(store: Store, place: Place, unspawned: list[tuple[str, ...]]) -> None:
    for age_days in (0.5, 2, 40):
        job = submit(store)
        store.change(job.id, state="COMPLETED", end_s=time.time() - age_days * 86400)
    make_pass(place, store)
    assert [record.id for record in store.jobs()] == [1, 2]
    store.set_meta("settings", LocalSettings(keep_days=0.1).to_json())
    store.set_meta("forgotten_at", "0")
    make_pass(place, store)
    assert [record.id for record in store.jobs()] == [1]  # never within a day


# ---- A kill at any moment

WORK = """
import os, sys, time
from pathlib import Path
from tests.schedulers.local.queue import MACHINE, submit
from tfjobtui.schedulers.local import dispatch, machine
from tfjobtui.schedulers.local.dispatch import make_pass
from tfjobtui.schedulers.local.place import Place
from tfjobtui.schedulers.local.store import Store
dispatch.find_machine = lambda settings: MACHINE
place, out = Place(Path(sys.argv[1])), Path(sys.argv[2])
store = Store(place)
for _ in range(3):
    job = submit(store, f"echo $SLURM_JOB_ID >> {out}/ran", memory_per_node=1 << 20)
    with open(out / "submitted", "a") as file:
        print(job.id, file=file, flush=True)
    make_pass(place, store)
"""


@pytest.mark.parametrize("seed", [1, 2])
def test_a_kill_at_any_moment_loses_nothing_and_starts_nothing_twice(
    place: Place, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Programs that submit and make passes are killed at random moments; then every job is accounted for."""
    monkeypatch.setattr(dispatch, "CLAIM_TIMEOUT_S", 3.0)
    out = place.folder.parent
    (out / "ran").touch()
    chance = random.Random(seed)
    killed = 0
    for _ in range(8):
        child = python("-c", WORK, str(place.folder), str(out))
        with child:
            # It takes a quarter of a second to be up, and as long for its work.
            try:
                child.wait(chance.uniform(0.1, 0.6))
            except subprocess.TimeoutExpired:
                child.kill()
                killed += 1
    assert killed
    submitted = set(map(int, (out / "submitted").read_text().split()))
    store = Store(place)

    def all_ended() -> tuple[JobRecord, ...]:
        make_pass(place, store)
        found = store.jobs()
        return found if all(record.state.is_terminal for record in found) else ()

    found = until(all_ended, 60.0)
    assert submitted <= {record.id for record in found}
    assert {record.state for record in found} == {JobState.COMPLETED}
    assert sorted(map(int, (out / "ran").read_text().split())) == sorted(record.id for record in found)
    store.close()


FINISHER = """
import sys, time
from pathlib import Path
from tests.schedulers.local.queue import own_process
from tfjobtui.model.job import ExitCode
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local.journal import Journal
from tfjobtui.schedulers.local.place import Place
from tfjobtui.schedulers.local.records import Ending
from tfjobtui.schedulers.local.store import Store
place = Place(Path(sys.argv[1]))
store = Store(place)
print("up", flush=True)
for record in store.live():
    journal = Journal(place.journal(record.id, record.token))
    if store.take_over(record.id, record.token, own_process(), time.time()) is None:
        continue
    journal.set_started(own_process())
    ending = Ending(JobState.COMPLETED, ExitCode(0), time.time())
    journal.set_ending(ending)
    with open(sys.argv[2], "a") as file:
        print(record.id, file=file, flush=True)
    store.finish(record.id, record.token, ending)
"""


@pytest.mark.parametrize("seed", [3, 4])
def test_a_kill_between_an_end_and_its_row_loses_no_end(
    store: Store, place: Place, unspawned: list[tuple[str, ...]], seed: int
) -> None:
    chance = random.Random(seed)
    out = place.folder.parent / "ended"
    out.touch()
    for _ in range(150):
        submit(store, memory_per_node=1 << 20)
    for number in range(1, 151):
        claim(store, store.get(number) or pytest.fail("lost"), token=f"{number:032}")
    with python("-c", FINISHER, str(place.folder), str(out)) as child:
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(chance.uniform(0.02, 0.2))
        child.kill()
    make_pass(place, store)
    done = set(map(int, out.read_text().split()))
    states = {record.id: record.state for record in store.jobs()}
    assert done
    assert {number for number, state in states.items() if state is JobState.COMPLETED} >= done
    others = {number: state for number, state in states.items() if state is not JobState.COMPLETED}
    assert set(others.values()) <= {JobState.CONFIGURING, JobState.PENDING, JobState.NODE_FAIL}
    assert list(others.values()).count(JobState.NODE_FAIL) <= 1
    assert len(states) == 150


def test_the_machine_is_asked_only_when_something_is_planned(
    store: Store, place: Place, unspawned: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "find_machine", lambda settings: pytest.fail("nothing waits"))
    make_pass(place, store)
    assert machine.find_machine(store.settings()).cpus
