"""A monkey at the keys: random keys, jobs that come, go and misbehave, and failures, by a seed.

Whatever it does, the program lives, its rows are those of the store, and no job is said to have ended
while the queue could not be read.
"""

from __future__ import annotations

import dataclasses
import random
from typing import Any

from tests.actions.fakes import FakeScheduler
from tests.jobs import make_job
from tfjobtui.config import Config, Poll
from tfjobtui.errors import QueryError
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.scheduler import QueueAnswer
from tfjobtui.ui.app import TfjobtuiApp, make_services
from tfjobtui.ui.screens.dialog import Dialog
from tfjobtui.ui.screens.jobs import JobsScreen
from tfjobtui.ui.widgets.job_table import JobTable

KEYS = [
    "j",
    "k",
    "g",
    "G",
    "down",
    "up",
    "ctrl+d",
    "ctrl+u",
    "pagedown",
    "pageup",
    "left",
    "right",
    "space",
    "v",
    "asterisk",
    "f",
    "F",
    "enter",
    "l",
    "escape",
    "z",
    "slash",
    "x",
    "h",
    "u",
    "R",
    "c",
    "n",
    "r",
    "p",
    "a",
    "ctrl+r",
    "o",
    "O",
    "C",
    "y",
    "D",
    "at",
    "question_mark",
    "colon",
    "T",
    "tab",
    "shift+tab",
    "w",
    "home",
    "end",
    "b",
    "e",
    "s",
    "t",
    ":",
    ">",
    "0",
    "minus",
    "backspace",
    "delete",
    "ctrl+t",
    "f2",
    "1",
    "2",
    "[",
    "]",
]
NAMES = ("train", "we|ird [red]na=me", "[/]", "\x1b[2J", "数据 ünïcode", "a" * 300, "", "new\nline", "\udce9")
STATES = ("PENDING", "RUNNING", "COMPLETING", "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "BRAND_NEW")


class WildScheduler(FakeScheduler):
    """A queue that changes with every reading, and sometimes gives no answer."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._rng = random.Random(seed)
        self.failures = 0
        self._next = 100
        for _ in range(12):
            self._add()

    def _add(self) -> None:
        rng = self._rng
        self._next += 1
        kind = rng.random()
        state = rng.choice(STATES)
        if kind < 0.2:
            self.queue += [
                make_job(f"{self._next}_[5-{rng.randint(6, 3000)}%3]", "PENDING", name=rng.choice(NAMES)),
                *(make_job(f"{self._next}_{task}", rng.choice(STATES)) for task in range(rng.randint(0, 4))),
            ]
        elif kind < 0.3:
            self.queue += [make_job(f"{self._next}+{part}", state) for part in range(2)]
        else:
            self.queue.append(
                make_job(str(self._next), state, name=rng.choice(NAMES), reason=rng.choice(NAMES))
            )

    def _change(self) -> None:
        rng = self._rng
        for _ in range(rng.randint(0, 3)):
            self._add()
        for job in rng.sample(self.queue, min(len(self.queue), rng.randint(0, 4))):
            self.queue.remove(job)
            if rng.random() < 0.7:
                state = JobState.of(rng.choice(STATES))
                self.queue.append(dataclasses.replace(job, state=state, state_text=state.long))

    async def jobs(self, *, everyone: bool = False) -> QueueAnswer:
        if self._rng.random() < 0.2:
            self.failures += 1
            raise QueryError("slurm_load_jobs error: [/] Socket timed out")
        self._change()
        return await super().jobs(everyone=everyone)


def _check(app: TfjobtuiApp, screen: JobsScreen) -> None:
    table = screen.query_one(JobTable)
    jobs = app.services.poller.store.jobs
    for row in table.view.rows:
        for job in row.jobs:
            assert job.key in jobs, f"{job.key} is shown and not known"
    assert table.view.cursor < max(1, len(table.view.rows))


async def _refresh(app: TfjobtuiApp, pilot: Any, scheduler: WildScheduler, screen: JobsScreen) -> None:
    """One reading; if it fails, nothing that is known may change."""
    poller = app.services.poller
    before, failures, readings = dict(poller.store.jobs), scheduler.failures, len(scheduler.calls)
    everyone = poller.everyone
    poller.refresh_now()
    await pilot.pause()
    if poller.everyone != everyone:
        return
    if scheduler.failures > failures and len(scheduler.calls) == readings:
        assert poller.store.jobs == before, "a failed query has changed what is known"
    _check(app, screen)


async def run_monkey(seed: int, keys: int, size: tuple[int, int] = (100, 30)) -> WildScheduler:
    """Press so many random keys, with a refresh now and then; gives the scheduler, for its counts.

    Raises:
        AssertionError: what is shown is wrong.
        Exception: whatever the program did not bear.
    """
    rng = random.Random(seed)
    scheduler = WildScheduler(seed)
    config = Config(poll=Poll(interval_s=3600.0))
    app: Any = TfjobtuiApp(make_services(config, scheduler))
    Dialog.GUARD_S = 0.0
    JobsScreen.BURST_S = 0.0
    async with app.run_test(size=size) as pilot:
        screen = app.screen_stack[0]
        app.services.poller._floor_s = 0.0
        for number in range(keys):
            if app._exit:
                break
            await pilot.press(rng.choice(KEYS))
            if number % 7 == 0:
                await _refresh(app, pilot, scheduler, screen)
            if number % 50 == 0:
                await pilot.resize_terminal(rng.randint(20, 220), rng.randint(6, 60))
        await pilot.pause()
    return scheduler
