"""Sets of array tasks, compared with plain sets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tfjobtui.model.ids import TaskSet, parse_tasks
from tfjobtui.schedulers.local.tasksets import common, from_tasks, without

NUMBERS = st.sets(st.integers(0, 40))


@st.composite
def task_sets(draw: st.DrawFn) -> TaskSet:
    """Ranges one behind the other, with steps, as `--array` takes them."""
    ranges = []
    first = draw(st.integers(0, 5))
    for _ in range(draw(st.integers(1, 4))):
        step, count = draw(st.integers(1, 4)), draw(st.integers(1, 6))
        last = first + step * (count - 1)
        ranges.append((first, last, step if count > 1 else 1))
        first = last + draw(st.integers(1, 4))
    return TaskSet(tuple(ranges))


@given(task_sets(), NUMBERS)
def test_taking_out(tasks: TaskSet, gone: set[int]) -> None:
    left = without(tasks, gone)
    assert (set(left) if left else set()) == set(tasks) - gone
    assert left is None or set(parse_tasks(str(left))) == set(left)


@given(task_sets(), task_sets())
def test_what_is_in_both(one: TaskSet, other: TaskSet) -> None:
    both = common(one, other)
    assert (set(both) if both else set()) == set(one) & set(other)


@given(NUMBERS.filter(bool))
def test_ranges(numbers: set[int]) -> None:
    assert list(from_tasks(numbers)) == sorted(numbers)


def test_the_first_of_a_hundred_thousand_costs_one_number() -> None:
    left = without(TaskSet(((0, 99_999, 1),)), [0])
    assert left is not None
    assert left.ranges == ((1, 99_999, 1),)
