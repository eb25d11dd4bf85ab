"""Which jobs an id of the command line means."""

from __future__ import annotations

import pytest

from tests.actions.fakes import FakeScheduler, job
from tfjobtui.cli.context import find_job, matching, parse_id, target_of
from tfjobtui.errors import UsageError
from tfjobtui.model.ids import JobId
from tfjobtui.model.state import JobState

QUEUE = (
    job("7"),
    job("11_0", raw_id=12),
    job("11_1", raw_id=13),
    job("11_[2-6%2]", JobState.PENDING),
    job("20+0", raw_id=20),
    job("20+1", raw_id=21),
)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("7", ["7"]),
        ("11", ["11_0", "11_1", "11_[2-6]"]),
        ("11_1", ["11_1"]),
        ("11_4", ["11_[2-6]"]),
        ("11_[1-2]", ["11_1", "11_[2-6]"]),
        ("11_[7-9]", []),
        ("12", ["11_0"]),
        ("20", ["20+0", "20+1"]),
        ("20+1", ["20+1"]),
        ("99", []),
    ],
)
def test_rows_of_an_id(text: str, rows: list[str]) -> None:
    assert [str(row.id) for row in matching(QUEUE, JobId.parse(text))] == rows


@pytest.mark.parametrize(
    ("text", "target"),
    [("7", "7"), ("11", "11"), ("11_4", "11_4"), ("11_[2-3]", "11_[2-3]"), ("12", "11_0"), ("99", "99")],
)
def test_the_target_keeps_the_id_that_was_meant(text: str, target: str) -> None:
    wanted = JobId.parse(text)
    assert str(target_of(wanted, matching(QUEUE, wanted)).id) == target


def test_a_task_that_was_cancelled_before_it_started_is_in_its_arrays_row() -> None:
    rest, task = job("30", JobState.CANCELLED), job("30_1", JobState.CANCELLED, raw_id=31)
    wanted = JobId.parse("30_4")
    assert matching([task, rest], wanted) == [rest]
    assert str(target_of(wanted, [rest]).id) == "30_4"
    assert matching([job("30")], wanted) == [], "a job that runs has no such task"


def test_a_target_knows_its_job() -> None:
    target = target_of(JobId(7), [job("7")], pending_only=True)
    assert (target.name, target.user, target.submit_time_s, target.pending_only) == ("train", "u", 1000, True)
    unknown = target_of(JobId(99), [])
    assert (unknown.name, unknown.submit_time_s) == ("", None)


async def test_of_an_array_the_task_that_runs_is_shown() -> None:
    scheduler = FakeScheduler(*reversed(QUEUE))
    target, row = await find_job(scheduler, "11")
    assert str(target.id) == "11"
    assert row is not None
    assert row.state is JobState.RUNNING


@pytest.mark.parametrize("text", ["", "x", "7;8", "-7", "7_", "7_[", "1.0"])
def test_what_is_no_id(text: str) -> None:
    with pytest.raises(UsageError):
        parse_id(text)
