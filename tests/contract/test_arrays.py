"""Arrays of jobs."""

from __future__ import annotations

import pytest

from tests.contract.side import Side
from tfjobtui.model.ids import JobId
from tfjobtui.model.job import ExitCode
from tfjobtui.model.state import JobState

NULL = ("-o", "/dev/null")
VARIABLES = 'echo "$SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID $SLURM_ARRAY_TASK_COUNT $SLURM_ARRAY_TASK_MIN"'
VARIABLES += ' "$SLURM_ARRAY_TASK_MAX $SLURM_ARRAY_TASK_STEP"'
TICKS = 'echo "+ $SLURM_ARRAY_TASK_ID" >>{0}; sleep 0.3; echo "- $SLURM_ARRAY_TASK_ID" >>{0}'


@pytest.mark.parametrize(
    ("text", "tasks", "rest"),
    [
        ("2-6:2", (2, 4, 6), "3 2 6 2"),
        ("7,3,13-14", (3, 7, 13, 14), "4 3 14 1"),
        ("0", (0,), "1 0 0 1"),
        ("1-3%1", (1, 2, 3), "3 1 3 1"),
    ],
)
def test_the_tasks_and_their_variables(side: Side, text: str, tasks: tuple[int, ...], rest: str) -> None:
    array = side.submit(f"{VARIABLES}; [[ $SLURM_ARRAY_TASK_ID != 4 ]]", f"--array={text}")
    rows = side.ended(array)
    found = sorted((row.id.task or 0, row.state, row.exit_code or ExitCode(0)) for row in rows)
    good, bad = (JobState.COMPLETED, ExitCode(0)), (JobState.FAILED, ExitCode(1))
    assert found == [(task, *(bad if task == 4 else good)) for task in tasks]
    assert len({row.raw_id for row in rows}) == len(tasks)
    # The last task to start takes the array's own number.
    assert {row.id.task for row in rows if row.raw_id == array.job} == {tasks[-1]}
    for task in tasks:
        log = side.folder / f"slurm-{array}_{task}.out"
        assert log.read_text() == f"{array} {task} {rest}\n"


def test_the_names_of_logs(side: Side) -> None:
    array = side.submit("echo $SLURM_JOB_ID", "--array=8-9", "-o", "log-%A_%a-%3a-%j-%7A.out")
    raw = {row.id.task: row.raw_id for row in side.ended(array)}
    for task in (8, 9):
        name = f"log-{array}_{task}-{task:03}-{raw[task]}-{array.job:07}.out"
        assert side.wait_for(name) == f"{raw[task]}\n"


@pytest.mark.parametrize("throttle", [1, 2])
def test_the_throttle_is_never_exceeded(side: Side, throttle: int) -> None:
    log = f"throttle-{throttle}.log"
    array = side.submit(TICKS.format(log), *NULL, f"--array=0-4%{throttle}")
    side.ended(array)
    at_once, most = 0, 0
    lines = (side.folder / log).read_text().splitlines()
    for line in lines:
        at_once += 1 if line[0] == "+" else -1
        most = max(most, at_once)
    assert most <= throttle
    assert sorted(int(line[2:]) for line in lines) == sorted([*range(5), *range(5)])


def test_the_throttle_is_changed(side: Side) -> None:
    array = side.submit("sleep 60", *NULL, "--array=0-3%1")
    side.running(array)
    row = side.waiting(array, "JobArrayTaskLimit")
    assert row.id.tasks is not None
    assert (sorted(row.id.tasks), row.id.tasks.throttle) == ([1, 2, 3], 1)
    assert side.update(array, ArrayTaskThrottle="2").ok
    side.until(array, lambda rows: sum(row.state is JobState.RUNNING for row in rows) == 2)
    assert side.act("cancel", array).ok
    assert all(row.state is JobState.CANCELLED for row in side.ended(array))


def test_parts_are_cancelled_while_they_wait(side: Side) -> None:
    array = side.submit("sleep 60", *NULL, "--array=0-9", "--hold")
    (row,) = side.rows(array)
    assert row.task_count == 10
    assert side.act("cancel", f"{array}_[3-5]").ok
    assert side.act("cancel", f"{array}_7").ok
    rows = side.until(
        array, lambda rows: sum(row.task_count for row in rows if row.state is JobState.PENDING) == 6
    )
    left = next(row for row in rows if row.state is JobState.PENDING)
    assert left.id.tasks is not None
    assert sorted(left.id.tasks) == [0, 1, 2, 6, 8, 9]
    assert side.act("cancel", array).ok
    assert all(row.state is JobState.CANCELLED for row in side.ended(array))


def test_one_task_is_cancelled_while_it_runs(side: Side) -> None:
    array = side.submit("echo ready; sleep 60", "--array=1-3%2", "-o", "running-%a.out")
    side.wait_for("running-2.out", "ready")
    assert side.act("cancel", f"{array}_2").ok
    side.wait_for("running-3.out", "ready")
    states = {row.id.task: row.state for row in side.rows(array)}
    assert states == {1: JobState.RUNNING, 2: JobState.CANCELLED, 3: JobState.RUNNING}
    assert side.act("cancel", array).ok
    assert all(row.state is JobState.CANCELLED for row in side.ended(array))
    assert "CANCELLED AT" in side.wait_for("running-2.out")


def test_waiting_tasks_alone_are_cancelled(side: Side) -> None:
    array = side.submit("echo ready; sleep 60", "--array=1-4%1", "-o", "alone-%a.out")
    side.wait_for("alone-1.out", "ready")
    assert side.act("cancel", array, pending_only=True).ok
    rows = side.until(array, lambda rows: not any(row.state is JobState.PENDING for row in rows))
    assert [row.id.task for row in rows if row.state is JobState.RUNNING] == [1]
    assert side.act("cancel", array).ok


def test_it_is_held_and_released(side: Side) -> None:
    array = side.submit("true", *NULL, "--array=0-3", "--hold")
    side.waiting(array, "JobHeldUser")
    assert side.act("release", array).ok
    assert {row.state for row in side.ended(array)} == {JobState.COMPLETED}


def test_tasks_that_correspond(side: Side) -> None:
    first = side.submit("[[ $SLURM_ARRAY_TASK_ID != 1 ]]", *NULL, "--array=0-2", "--hold")
    second = side.submit("true", *NULL, "--array=0-2", f"--dependency=aftercorr:{first}")
    side.waiting(second, "Dependency")
    assert side.act("release", first).ok
    rows = side.until(second, lambda rows: sum(row.state is JobState.COMPLETED for row in rows) == 2)
    assert {row.id.task for row in rows if row.state is JobState.COMPLETED} == {0, 2}
    side.waiting(second, "Dependency")
    assert side.act("cancel", second).ok


def test_accounting_of_the_tasks(side: Side) -> None:
    array = side.submit("exit $SLURM_ARRAY_TASK_ID", *NULL, "--array=0,5")
    side.ended(array)
    for task, state in ((0, JobState.COMPLETED), (5, JobState.FAILED)):
        told = side.accounted(f"{array}_{task}")
        assert (told.id, told.state, told.exit_code) == (JobId(array.job, task=task), state, ExitCode(task))
