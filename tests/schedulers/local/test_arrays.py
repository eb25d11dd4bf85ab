"""Expressions of `--array`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfjobtui.errors import FormatError
from tfjobtui.schedulers.local.arrays import parse_array, step_of


@pytest.mark.parametrize(
    ("text", "tasks", "throttle"),
    [
        ("0-3", [0, 1, 2, 3], None),
        ("1,3,5", [1, 3, 5], None),
        ("0-30:10%2", [0, 10, 20, 30], 2),
        ("0-35:10", [0, 10, 20, 30], None),
        ("[1-3]%2", [1, 2, 3], 2),
        ("1,1-3", [1, 2, 3], None),
        ("9,1-3", [1, 2, 3, 9], None),
        ("1-5%2,7", [1, 2, 3, 4, 5, 7], 2),
        ("%5", [0], 5),
        ("1-3%x", [1, 2, 3], None),
        ("0-", [0], None),
        ("1000", [1000], None),
    ],
)
def test_tasks(text: str, tasks: list[int], throttle: int | None) -> None:
    found = parse_array(text)
    assert found is not None
    assert (list(found), len(found), found.throttle) == (tasks, len(tasks), throttle)


@pytest.mark.parametrize("text", ["", ",", ",,"])
def test_no_task_makes_a_plain_job(text: str) -> None:
    assert parse_array(text) is None


@pytest.mark.parametrize(
    "text", ["a", "-3", "5-1", "1-5:0", "1-5:x", "1-x", "1;2", "1001", "0-1001", "1-2:1001"]
)
def test_what_slurm_refuses(text: str) -> None:
    with pytest.raises(FormatError) as error:
        parse_array(text)
    assert "Invalid job array specification" in error.value.message
    assert "0 to 1000" in error.value.hint


def test_the_step_is_the_first_that_is_named() -> None:
    assert [step_of(text) for text in ("1-9", "1,3-9:2", "0-8:4,20-30:5", "1,3,5")] == [1, 2, 4, 1]


@given(st.text(st.sampled_from("0123456789,-:%[]x "), max_size=12))
def test_tasks_are_told_once_and_in_order(text: str) -> None:
    try:
        found = parse_array(text)
    except FormatError:
        return
    tasks = list(found or ())
    assert tasks == sorted(set(tasks))
    assert all(0 <= task <= 1000 for task in tasks)
