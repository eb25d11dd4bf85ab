"""What a reading changes, and what stays."""

from __future__ import annotations

import dataclasses

from tests.jobs import answer, make_job
from tfjobtui.model.ids import JobId
from tfjobtui.model.job import ExitCode
from tfjobtui.model.state import JobState
from tfjobtui.monitor.store import JobStore
from tfjobtui.schedulers.scheduler import EndedJob


def test_added_changed_removed() -> None:
    store = JobStore(keeps_ended=False)
    one, two = make_job("1"), make_job("2", "PENDING")
    assert store.apply(answer(one, two)).added == {"1", "2"}
    running = dataclasses.replace(two, state=JobState.RUNNING, state_text="RUNNING")
    changes = store.apply(answer(running))
    assert (changes.added, changes.changed, changes.removed) == (frozenset(), {"2"}, {"1"})


def test_the_same_jobs_are_no_change() -> None:
    store = JobStore()
    job = make_job("1")
    store.apply(answer(job))
    assert not store.apply(answer(job))
    assert not store.apply(answer(make_job("1")))


def test_an_ended_job_stays_for_the_session() -> None:
    store = JobStore()
    ended = make_job("1", "COMPLETED", end_time_s=5)
    store.apply(answer(ended))
    changes = store.apply(answer())
    assert not changes
    assert store.get("1") is ended


def test_a_job_that_left_unseen_is_gone_and_not_said_to_have_ended_well() -> None:
    store = JobStore()
    store.apply(answer(make_job("1", "RUNNING")))
    changes = store.apply(answer())
    assert [job.key for job in changes.vanished] == ["1"]
    gone = store.get("1")
    assert gone is not None
    assert gone.state is JobState.GONE
    assert not store.apply(answer()).vanished


def test_accounting_tells_how_it_ended() -> None:
    store = JobStore()
    store.apply(answer(make_job("1", "RUNNING", raw_id=1)))
    store.apply(answer())
    end = EndedJob(JobId(1), 1, "train", JobState.FAILED, "FAILED", end_time_s=50, exit_code=ExitCode(2))
    assert store.ended([end]).changed == {"1"}
    job = store.get("1")
    assert job is not None
    assert (job.state, job.exit_code, job.end_time_s) == (JobState.FAILED, ExitCode(2), 50)


def test_accounting_that_lags_does_not_end_a_job() -> None:
    store = JobStore()
    store.apply(answer(make_job("1", "RUNNING", raw_id=1)))
    store.apply(answer())
    store.ended([EndedJob(JobId(1), 1, "train", JobState.PENDING, "PENDING")])
    job = store.get("1")
    assert job is not None
    assert job.state is JobState.GONE


def test_a_job_that_comes_back_lives_again() -> None:
    store = JobStore()
    job = make_job("1", "RUNNING")
    store.apply(answer(job))
    store.apply(answer())
    store.apply(answer(job))
    assert store.get("1") is job


def test_the_last_waiting_tasks_of_an_array_start_without_being_gone() -> None:
    store = JobStore()
    store.apply(answer(make_job("7_[3-4]", "PENDING"), make_job("7_2")))
    changes = store.apply(answer(make_job("7_2"), make_job("7_3"), make_job("7_4")))
    assert not changes.vanished
    assert "7_[]" in changes.removed
    assert set(store.jobs) == {"7_2", "7_3", "7_4"}


def test_a_cancelled_array_leaves_one_row() -> None:
    store = JobStore()
    store.apply(answer(make_job("7_[3-4]", "PENDING")))
    store.apply(answer(make_job("7", "CANCELLED")))
    assert set(store.jobs) == {"7"}


def test_rows_of_a_silent_cluster_stay() -> None:
    store = JobStore()
    here, there = make_job("1", cluster="here"), make_job("1", cluster="there")
    store.apply(answer(here, there))
    changes = store.apply(answer(here, silent=("there",)))
    assert not changes
    assert store.get("there/1") is there


def test_what_the_user_took_off_the_list_does_not_come_back() -> None:
    store = JobStore()
    ended = make_job("1", "COMPLETED")
    store.apply(answer(ended, make_job("2")))
    store.forget(["1", "2"])
    assert set(store.jobs) == {"2"}
    store.apply(answer(ended, make_job("2")))
    assert set(store.jobs) == {"2"}
    store.apply(answer(make_job("1", "PENDING"), make_job("2")))
    assert set(store.jobs) == {"1", "2"}
