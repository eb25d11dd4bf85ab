"""What a job waits for. The verdicts are those of Slurm 22.05, tried on the test cluster."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.schedulers.local.queue import NOW_S, array, waiting
from tfjobtui.errors import FormatError
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local.dependencies import Outlook, Surroundings, outlook, parse
from tfjobtui.schedulers.local.records import JobRecord


def ended(number: int, state: JobState = JobState.COMPLETED, **values: object) -> JobRecord:
    return waiting(number, **{"state": state, "start_s": NOW_S - 120, "end_s": NOW_S - 60, **values})


GOOD, BAD, HELD = 1, 2, 3
RUNNING, KILLED_EARLY = 4, 5
MIXED, UNDONE = 10, 20
"""Arrays: task 1 good, task 2 bad; and task 1 bad, tasks 2 and 3 still waiting."""
ROWS = (
    ended(GOOD),
    ended(BAD, JobState.FAILED),
    waiting(HELD, held=True),
    waiting(RUNNING, state=JobState.RUNNING, start_s=NOW_S - 120),
    ended(KILLED_EARLY, JobState.CANCELLED, start_s=None),
    ended(MIXED, array_job_id=MIXED, array_task_id=1),
    ended(11, JobState.FAILED, array_job_id=MIXED, array_task_id=2),
    waiting(UNDONE, array_job_id=UNDONE, array_tasks=array((2, 3))),
    ended(21, JobState.FAILED, array_job_id=UNDONE, array_task_id=1),
)


def find(job: int) -> Sequence[JobRecord]:
    return [row for row in ROWS if job in (row.id, row.array_job_id)]


def look(dependency: str, task: int | None = None, *more: JobRecord, **values: object) -> Outlook:
    record = waiting(99, dependency=dependency, **values)
    live = [row for row in (*ROWS, *more, record) if not row.state.is_terminal]
    return outlook(record, Surroundings(find, live, NOW_S), task)


@pytest.mark.parametrize(
    "dependency",
    [
        "",
        "afterok:1",
        "afterany:1:2",
        "afternotok:2",
        "aftercorr:1",
        "afterburstbuffer:2",
        "after:1",
        "after:4",
        "after:4+2",
        "after:5",
        "afterok:1,afternotok:2",
        "afterok:3?afterok:1",
        "afterok:2?afternotok:2",
        "afterok:1,afternotok:1?after:3",
        "afterok:999",
        "afternotok:999",
        "afterany:999",
        "after:999+5",
        "aftercorr:999",
        "afterok:999_3",
        "afterok:10_1",
        "afterok:10_9",
        "afternotok:10_2",
        "afterany:10",
        "afternotok:10",
    ],
)
def test_what_has_come_true(dependency: str) -> None:
    assert look(dependency) == Outlook("")


@pytest.mark.parametrize(
    ("dependency", "left"),
    [
        ("afterok:3", "afterok:3"),
        ("afterany:3:1", "afterany:3"),
        ("afternotok:4", "afternotok:4"),
        ("after:3", "after:3"),
        ("afterok:1,afterok:3", "afterok:3"),
        ("afterok:2?afterok:3", "afterok:3"),
        ("afterok:20", "afterok:20"),
        ("afternotok:20", "afternotok:20"),
        ("afterok:20_2", "afterok:20_2"),
        ("after:20", "after:20"),
        ("aftercorr:20", "aftercorr:20"),
    ],
)
def test_what_is_still_to_come(dependency: str, left: str) -> None:
    assert look(dependency) == Outlook(left)


@pytest.mark.parametrize(
    "dependency",
    [
        "afterok:2",
        "afterok:5",
        "afternotok:1",
        "aftercorr:2",
        "aftercorr:10",
        "afterok:10",
        "afterok:10_2",
        "afterok:20_1",
        "afterok:2,afterok:3",
        "afterok:2?afternotok:1",
    ],
)
def test_what_never_comes_true(dependency: str) -> None:
    assert look(dependency).is_hopeless


def test_a_wait_after_the_start_ends_at_a_moment() -> None:
    assert look("after:4+10") == Outlook("after:4+10", False, NOW_S - 120 + 600)
    assert look("after:3+10").next_s is None


@pytest.mark.parametrize(
    ("dependency", "task", "wanted"),
    [
        ("aftercorr:10", 1, Outlook("")),
        ("aftercorr:10", 2, Outlook("aftercorr:10", True)),
        (
            "aftercorr:10",
            7,
            Outlook("aftercorr:10", True),
        ),  # without a counterpart it waits for the whole array
        ("aftercorr:20", 1, Outlook("aftercorr:20", True)),
        ("aftercorr:20", 3, Outlook("aftercorr:20")),
        ("aftercorr:1", 5, Outlook("")),
        ("aftercorr:10,afterok:3", 1, Outlook("afterok:3")),
    ],
)
def test_tasks_wait_for_their_counterparts(dependency: str, task: int, wanted: Outlook) -> None:
    assert look(dependency, task, array_job_id=99, array_tasks=array((1, 9))) == wanted


def test_one_of_a_name_at_a_time() -> None:
    def single(*others: JobRecord) -> bool:
        return look("singleton", None, *others, name="one").left == ""

    assert single()
    assert not single(waiting(50, name="one"))
    assert not single(waiting(50, name="one", held=True))
    assert not single(waiting(100, name="one", state=JobState.RUNNING))
    assert single(waiting(100, name="one"))
    assert single(waiting(50, name="another"))
    assert single(waiting(100, name="one", state=JobState.RUNNING, array_job_id=99))  # its own array


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("AfterOK:12:13", "afterok:12,afterok:13"),
        ("afterok:12_*(unfulfilled),singleton(unfulfilled)", "afterok:12,singleton"),
        ("after:12+5?afterany:13_4", "after:12+5?afterany:13_4"),
        ("afterok:1,afterany:2?after:3", "afterok:1?afterany:2?after:3"),
    ],
)
def test_forms(text: str, same: str) -> None:
    assert str(parse(text)) == same
    assert str(parse(same)) == same


@pytest.mark.parametrize(
    "text",
    [
        "",
        "afterok",
        "afterok:",
        "afterok:abc",
        "singleton:3",
        "expand:12",
        "before:12",
        "afterok:1,,afterok:2",
        "afterok:12:",
        "afterok:-1",
        "afterok:１",
    ],
)
def test_what_is_none(text: str) -> None:
    with pytest.raises(FormatError):
        parse(text)
