"""How closely the program watches follows from whether somebody looks."""

from __future__ import annotations

import time
from collections.abc import Callable

from textual import events

from tests.actions.fakes import FakeScheduler
from tests.jobs import make_job
from tests.ui.screens import until, until_text
from tfjobtui.ui.app import TfjobtuiApp


async def test_focus_keys_and_silence(make_app: Callable[..., TfjobtuiApp]) -> None:
    app = make_app(FakeScheduler(make_job("1")))
    async with app.run_test(size=(100, 20)) as pilot:
        await until_text(pilot, "train")
        pace = app.services.poller.pace
        assert pace.delay_s(time.monotonic()) == 10.0
        app.post_message(events.AppBlur())
        await until(pilot, lambda: pace.delay_s(time.monotonic()) == 60.0, "the terminal lost the focus")
        app.post_message(events.AppFocus())
        await until(pilot, lambda: pace.delay_s(time.monotonic()) == 10.0, "it has the focus again")
        assert pace.delay_s(time.monotonic() + 601) == 60.0
        assert pace.delay_s(time.monotonic() + 7201) == 300.0
        pace._last_key_s -= 700
        assert pace.is_resting(time.monotonic())
        await pilot.press("j")
        assert not pace.is_resting(time.monotonic())
