"""Asking the scheduler again and again, at a pace that an administrator would praise."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass

from tfjobtui.errors import QueryError
from tfjobtui.model.job import Job
from tfjobtui.model.state import JobState
from tfjobtui.monitor.pace import Pace, PaceLimits
from tfjobtui.monitor.store import ChangeSet, JobStore
from tfjobtui.schedulers.scheduler import QueueAnswer, Scheduler, Target

ACCOUNTING_RETRIES = 3
"""How often accounting is asked for a vanished job: new ends appear there seconds to minutes late."""
ACCOUNTING_WAIT_S = 15.0


@dataclass(frozen=True, slots=True)
class Refreshed:
    """A reading came in. `is_first` is true for the first of its kind (own or everybody's)."""

    changes: ChangeSet
    everyone: bool
    is_first: bool
    problems: tuple[str, ...] = ()
    silent_clusters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RefreshFailed:
    """No reading came in: what is shown stays, `reason` says why, `retry_s` when the next try is."""

    reason: str
    everyone: bool
    failures: int
    retry_s: float


class QueuePoller:
    """Reads the queue into two stores: the user's own jobs, and everybody's while those are in view."""

    def __init__(self, scheduler: Scheduler, limits: PaceLimits) -> None:
        self._scheduler = scheduler
        self.pace = Pace(limits, time.monotonic())
        self._floor_s = limits.floor_s
        self.own = JobStore()
        self.all = JobStore(keeps_ended=False)
        self._read = {False: False, True: False}
        self._everyone = False
        self._wake = asyncio.Event()
        self._asked = False
        self._due_at: float | None = None
        self._last_started = 0.0
        self._unexplained: dict[str, tuple[Job, int, float]] = {}
        self.last_good_at: float | None = None
        """Epoch seconds of the last good reading of what is in view."""

    @property
    def store(self) -> JobStore:
        """The store that is in view."""
        return self.all if self._everyone else self.own

    @property
    def everyone(self) -> bool:
        return self._everyone

    @property
    def next_in_s(self) -> float | None:
        """Seconds to the next query; `None` while one runs."""
        return None if self._due_at is None else max(0.0, self._due_at - time.monotonic())

    def show_everyone(self, everyone: bool) -> None:
        """Change what is read. The next reading follows at once."""
        if everyone != self._everyone:
            self._everyone = everyone
            self.refresh_now()

    def refresh_now(self) -> None:
        """A reading as soon as the floor between two queries allows."""
        self._asked = True
        self._wake.set()

    def action_done(self) -> None:
        """Read soon: the user wants to see what the action did."""
        self.pace.action_done()
        self._wake.set()

    def forget(self, keys: Iterable[str]) -> None:
        """Take ended jobs off the list for good, though the scheduler may list them for minutes yet."""
        self.own.forget(keys)

    def key_pressed(self) -> None:
        if self.pace.key_pressed(time.monotonic()):
            self._wake.set()

    def focus_changed(self, is_focused: bool) -> None:
        self.pace.focus_changed(is_focused)
        if is_focused:
            self._wake.set()

    async def updates(self) -> AsyncIterator[Refreshed | RefreshFailed]:
        """Readings and failures, for ever. At most one query is under way."""
        while True:
            everyone = self._everyone
            yield await self._one(everyone)
            if everyone is False and self._unexplained:
                explained = await self._ask_accounting()
                if explained:
                    yield Refreshed(explained, False, False)
            await self._rest()

    async def _one(self, everyone: bool) -> Refreshed | RefreshFailed:
        self._due_at = None
        self._last_started = time.monotonic()
        self.pace.query_started()
        try:
            answer = await self._scheduler.jobs(everyone=everyone)
        except QueryError as error:
            self.pace.failed(time.monotonic() - self._last_started)
            retry_s = self.pace.delay_s(time.monotonic())
            return RefreshFailed(error.message, everyone, self.pace.failures, retry_s)
        self.pace.succeeded(answer.duration_s)
        return self._apply(answer, everyone)

    def _apply(self, answer: QueueAnswer, everyone: bool) -> Refreshed:
        changes = (self.all if everyone else self.own).apply(answer)
        for job in changes.vanished:
            self._unexplained[job.key] = (job, ACCOUNTING_RETRIES, 0.0)
        is_first = not self._read[everyone]
        self._read[everyone] = True
        if everyone == self._everyone:
            self.last_good_at = answer.taken_at_s
        return Refreshed(changes, everyone, is_first, answer.problems, answer.silent_clusters)

    async def _rest(self) -> None:
        """Wait until the next query is due; what wakes us early only makes us look at the clock again."""
        ended_at = time.monotonic()
        while True:
            now = time.monotonic()
            due_at = self._next_due(ended_at, now)
            if due_at <= now:
                self._asked = False
                return
            self._due_at = due_at
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(due_at - now):
                    await self._wake.wait()

    def _next_due(self, ended_at: float, now: float) -> float:
        due_at = ended_at + self.pace.delay_s(now)
        if self._asked:  # the floor holds for a user's wish too
            due_at = min(due_at, self._last_started + self._floor_s)
        return due_at

    async def _ask_accounting(self) -> ChangeSet:
        """How the vanished jobs ended: one query for all of them, repeated a few times while it does not know."""
        now = time.monotonic()
        back = [key for key in self._unexplained if not self._is_gone(key)]
        for key in back:
            del self._unexplained[key]
        due = [key for key, (_, _, not_before) in self._unexplained.items() if not_before <= now]
        if not due or not self._scheduler.capabilities.accounting:
            return ChangeSet()
        targets = [Target.of(self._unexplained[key][0]) for key in due]
        for key in due:
            job, left, _ = self._unexplained.pop(key)
            if left > 1:
                self._unexplained[key] = (job, left - 1, now + ACCOUNTING_WAIT_S)
        return await self._endings(targets)

    async def _endings(self, targets: Sequence[Target]) -> ChangeSet:
        try:
            endings = await self._scheduler.ended(targets)
        except QueryError:
            return ChangeSet()  # the rows say that they left the queue; asked again with the next reading
        return self.own.ended(endings)

    def _is_gone(self, key: str) -> bool:
        job = self.own.get(key)
        return job is not None and job.state is JobState.GONE
