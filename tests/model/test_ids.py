"""Job ids in all their forms."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfjobtui.errors import FormatError
from tfjobtui.model.ids import JobId, TaskSet, parse_tasks


def test_the_waiting_rest_of_an_array_is_one_id_that_counts_its_tasks() -> None:
    job_id = JobId.parse("5782_[5-100]")
    assert job_id.job == 5782
    assert job_id.tasks is not None
    assert len(job_id.tasks) == 96
    assert str(job_id) == "5782_[5-100]"


def test_gaps_between_tasks_are_kept() -> None:
    tasks = JobId.parse("77_[60-89,91-94,96-98]").tasks
    assert tasks is not None
    assert len(tasks) == 37
    assert [90 in tasks, 91 in tasks, 95 in tasks] == [False, True, False]


def test_the_throttle_is_known_but_not_part_of_what_scancel_takes() -> None:
    job_id = JobId.parse("5782_[5-100%4]")
    assert job_id.tasks is not None
    assert job_id.tasks.throttle == 4
    assert str(job_id) == "5782_[5-100]"


@pytest.mark.parametrize(
    ("text", "job", "task", "het"),
    [
        ("123", 123, None, None),
        ("123_4", 123, 4, None),
        ("123+1", 123, None, 1),
        ("67043328", 67043328, None, None),
    ],
)
def test_plain_forms(text: str, job: int, task: int | None, het: int | None) -> None:
    job_id = JobId.parse(text)
    assert (job_id.job, job_id.task, job_id.het_offset) == (job, task, het)
    assert str(job_id) == text


def test_steps_and_cut_lists() -> None:
    tasks = parse_tasks("0-98:2")
    assert len(tasks) == 50
    assert 3 not in tasks
    cut = parse_tasks("1,3,...")
    assert cut.is_cut
    assert list(cut) == [1, 3]


def test_the_key_of_a_waiting_rest_stays_while_its_tasks_start() -> None:
    assert JobId.parse("7_[5-100]").key == JobId.parse("7_[9-100%2]").key == "7_[]"


@pytest.mark.parametrize(
    "text", ["", "abc", "12_", "12_[a]", "1.batch", "12_[5-3]", "-1", "12 3", "１２", "12_[1-"]
)
def test_what_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(FormatError):
        JobId.parse(text)


@given(
    st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 50), st.integers(1, 7)), min_size=1, max_size=8)
)
def test_task_sets_read_what_they_write(ranges: list[tuple[int, int, int]]) -> None:
    made = TaskSet(
        tuple((first, first + count * step, step if count else 1) for first, count, step in ranges)
    )
    assert list(parse_tasks(str(made))) == list(made)
    assert len(made) == len(list(made))


@given(st.text(max_size=30))
def test_any_text_is_an_id_or_a_format_error(text: str) -> None:
    with contextlib.suppress(FormatError):
        assert JobId.parse(text).job >= 0
