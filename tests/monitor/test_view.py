"""The list as the user arranged it."""

from __future__ import annotations

import random

from tests.jobs import make_job
from tfjobtui.model.job import Job
from tfjobtui.monitor.filter import parse_filter
from tfjobtui.monitor.view import JobView


def show(*jobs: Job) -> JobView:
    view = JobView()
    view.show({job.key: job for job in jobs})
    return view


def keys(view: JobView) -> list[str]:
    return [row.key for row in view.rows]


def test_running_before_waiting_before_ended_newest_first() -> None:
    view = show(
        make_job("1", "PENDING"),
        make_job("2", "COMPLETED", end_time_s=10),
        make_job("3", "RUNNING"),
        make_job("4", "PENDING"),
        make_job("5", "FAILED", end_time_s=20),
    )
    assert keys(view) == ["3", "4", "1", "5", "2"]


def test_the_cursor_stays_on_its_job_when_others_come() -> None:
    view = show(make_job("1"), make_job("2"), make_job("3"))
    view.move_to(2)
    assert view.cursor_key == "1"
    view.show({job.key: job for job in (make_job("1"), make_job("9"), make_job("8"), make_job("3"))})
    assert view.cursor_key == "1"
    assert view.rows[view.cursor].key == "1"


def test_the_cursor_stays_on_its_line_when_its_job_goes() -> None:
    view = show(make_job("1"), make_job("2"), make_job("3"))
    view.move_to(1)
    view.show({job.key: job for job in (make_job("1"), make_job("3"))})
    assert view.cursor == 1
    assert view.current is not None


def test_an_array_is_one_row_until_it_is_unfolded() -> None:
    view = show(make_job("7_[3-100%4]", "PENDING"), make_job("7_1"), make_job("7_2"), make_job("8"))
    assert keys(view) == ["8", "7_*"]
    array = view.rows[1]
    assert [(state.short, count) for state, count in array.counts()] == [("R", 2), ("PD", 98)]
    view.move_to(1)
    assert view.toggle_fold()
    assert keys(view) == ["8", "7_*", "7_1", "7_2", "7_[]"]
    view.move_to(3)
    assert view.toggle_fold()
    assert keys(view) == ["8", "7_*"]
    assert view.cursor_key == "7_*"


def test_the_cursor_follows_a_lone_array_into_its_folded_row() -> None:
    view = show(make_job("7_[1-4]", "PENDING"), make_job("9", "PENDING"))
    view.select("7_[]")
    view.show(
        {job.key: job for job in (make_job("7_[2-4]", "PENDING"), make_job("7_1"), make_job("9", "PENDING"))}
    )
    assert view.current is not None
    assert view.current.key == "7_*"


def test_the_remains_of_a_cancelled_array_are_in_it() -> None:
    view = show(make_job("7", "CANCELLED"), make_job("7_1"), make_job("17"))
    assert keys(view) == ["17", "7_*"]


def test_sort_reverse_and_usual_order() -> None:
    view = show(make_job("1", name="b"), make_job("2", name="a"), make_job("3", name="c"))
    for expected in (["2", "1", "3"], ["3", "1", "2"], ["3", "2", "1"]):
        view.set_sort("name")
        view.rebuild()
        assert keys(view) == expected


def test_every_column_sorts_jobs_with_nothing_known() -> None:
    from tfjobtui.monitor.columns import COLUMNS

    bare = Job(make_job("1").id, "1", 1, "", make_job("1").state, "RUNNING", "")
    view = show(
        bare, make_job("2", "PENDING", start_time_s=5, priority=3), make_job("3_4", "FAILED", end_time_s=9)
    )
    for name in COLUMNS:
        view.sort = name
        view.rebuild()
        assert len(view.rows) == 3
        assert all(isinstance(COLUMNS[name].text(row.job, 100.0), str) for row in view.rows)


def test_marks_follow_their_jobs_and_survive_a_filter() -> None:
    one, two = make_job("1", name="a"), make_job("2", name="b")
    view = show(one, two)
    view.mark([view.rows[1]])
    view.filter = parse_filter("name:b")
    view.rebuild()
    assert keys(view) == ["2"]
    assert [row.key for row in view.chosen()] == ["1"]
    view.show({"2": two})
    assert not view.marks


def test_a_marked_array_is_one_target() -> None:
    view = show(make_job("7_[3-9]", "PENDING"), make_job("7_1"), make_job("8"))
    view.mark_all()
    assert [row.key for row in view.chosen()] == ["8", "7_*"]
    view.mark_all()
    assert not view.marks
    view.select("7_1")
    view.toggle_mark(view.rows[view.cursor])
    assert [row.key for row in view.chosen()] == ["7_1"]


def test_arranging_in_slices_gives_way_to_what_the_user_does_meanwhile() -> None:
    jobs = {job.key: job for job in (make_job(str(n), name=f"n{n % 13}") for n in range(1, 9000))}
    view = JobView()
    steps = view.show_steps(jobs)
    next(steps)
    view.set_sort("name")
    view.rebuild()
    for _ in steps:
        pass
    names = [row.job.name for row in view.rows]
    assert len(names) == len(jobs)
    assert names == sorted(names)


def test_kept_arrays_give_the_same_list_as_new_ones() -> None:
    rng = random.Random(5)
    view = JobView()
    states = ("RUNNING", "PENDING", "COMPLETED")
    jobs = {
        f"{a}_{t}": make_job(f"{a}_{t}", rng.choice(states))
        for a in range(1, 20)
        for t in range(rng.randint(1, 5))
    }
    for _ in range(30):
        for key in rng.sample(sorted(jobs), 3):
            jobs[key] = make_job(key, rng.choice(states), name=rng.choice("abc"))
        if rng.random() < 0.3:
            del jobs[rng.choice(sorted(jobs))]
        view.sort = rng.choice(["", "name", "state"])
        if view.rows and rng.random() < 0.5:
            view.move_to(rng.randrange(len(view.rows)))
            view.toggle_fold()
        view.show(dict(jobs))
        fresh = JobView()
        fresh.sort, fresh.open_arrays = view.sort, set(view.open_arrays)
        fresh.show(dict(jobs))
        assert view.rows == fresh.rows


def test_kept_rows_give_the_same_list_as_new_ones() -> None:
    rng = random.Random(4)
    view = JobView()
    states = ("RUNNING", "PENDING", "COMPLETED")
    jobs = {str(n): make_job(str(n), rng.choice(states)) for n in range(1, 60)}
    for _ in range(30):
        for key in rng.sample(sorted(jobs), 5):
            jobs[key] = make_job(key, rng.choice(states), name=rng.choice("abc"))
        view.sort = rng.choice(["", "name", "state"])
        view.show(dict(jobs))
        fresh = JobView()
        fresh.sort = view.sort
        fresh.show(dict(jobs))
        assert keys(view) == keys(fresh)
