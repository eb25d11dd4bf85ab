"""Reading again and again: what comes out, and what is asked."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from tests.actions.fakes import FakeScheduler
from tests.jobs import make_job
from tfjobtui.errors import QueryError
from tfjobtui.model.ids import JobId
from tfjobtui.model.state import JobState
from tfjobtui.monitor.pace import PaceLimits
from tfjobtui.monitor.poller import QueuePoller, Refreshed, RefreshFailed
from tfjobtui.schedulers.scheduler import EndedJob, QueueAnswer


class Scripted(FakeScheduler):
    """Answers with one item after the other; an exception is raised, the last one stays."""

    def __init__(self, *answers: list[object] | Exception) -> None:
        super().__init__()
        self.answers = list(answers)

    async def jobs(self, *, everyone: bool = False) -> QueueAnswer:
        self.calls.append(("jobs", everyone))
        item = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(item, Exception):
            raise item
        return QueueAnswer(tuple(item), 0.0, 0.0)  # type: ignore[arg-type]


QUICK = PaceLimits(interval_s=0.001, floor_s=0.001)


async def take(poller: QueuePoller, count: int) -> list[Refreshed | RefreshFailed]:
    """The first so many updates."""
    updates = []
    async with asyncio.timeout(20):
        async for update in poller.updates():
            updates.append(update)
            if len(updates) == count:
                return updates
    raise AssertionError


async def test_failures_keep_the_jobs_and_recovery_is_by_itself() -> None:
    job = make_job("1")
    poller = QueuePoller(Scripted([job], QueryError("no answer"), [job]), QUICK)
    updates = await take(poller, 3)
    assert isinstance(updates[0], Refreshed)
    assert updates[0].is_first
    assert isinstance(updates[1], RefreshFailed)
    assert updates[1].reason == "no answer"
    assert isinstance(updates[2], Refreshed)
    assert not updates[2].changes
    assert poller.own.get("1") is job


async def test_accounting_is_asked_once_for_all_that_left() -> None:
    scheduler = Scripted([make_job("1", raw_id=1), make_job("2", raw_id=2)], [])
    scheduler.endings = (
        EndedJob(JobId(1), 1, "train", JobState.COMPLETED, "COMPLETED"),
        EndedJob(JobId(2), 2, "train", JobState.FAILED, "FAILED"),
    )
    poller = QueuePoller(scheduler, QUICK)
    await take(poller, 4)
    asked = [call for call in scheduler.calls if call[0] == "ended"]
    assert len(asked) == 1
    assert set(asked[0][1]) == {"1", "2"}  # type: ignore[arg-type]
    states = {key: job.state for key, job in poller.own.jobs.items()}
    assert states == {"1": JobState.COMPLETED, "2": JobState.FAILED}


async def test_accounting_that_is_away_leaves_the_job_as_gone() -> None:
    scheduler = Scripted([make_job("1", raw_id=1)], [])
    scheduler.accounting_error = QueryError("slurmdbd is away")
    poller = QueuePoller(scheduler, QUICK)
    await take(poller, 4)
    job = poller.own.get("1")
    assert job is not None
    assert job.state is JobState.GONE


async def test_a_wish_is_served_at_once_but_not_under_the_floor() -> None:
    poller = QueuePoller(Scripted([]), PaceLimits(interval_s=3600, floor_s=0.05))
    loop = asyncio.get_running_loop()
    times = []
    async with asyncio.timeout(20):
        async for _ in poller.updates():
            times.append(loop.time())
            if len(times) == 3:
                break
            poller.refresh_now()
    assert all(later - earlier >= 0.045 for earlier, later in itertools.pairwise(times))


@pytest.mark.parametrize("everyone", [False, True])
async def test_what_is_read_is_what_is_in_view(everyone: bool) -> None:
    scheduler = Scripted([make_job("1")])
    poller = QueuePoller(scheduler, QUICK)
    poller.show_everyone(everyone)
    await take(poller, 1)
    assert scheduler.calls == [("jobs", everyone)]
    assert poller.store.get("1") is not None
