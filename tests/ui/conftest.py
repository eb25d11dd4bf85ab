"""The program on a fake scheduler, with the clock stopped."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.actions.fakes import FakeScheduler
from tfjobtui.config import Config
from tfjobtui.ui.app import TfjobtuiApp, make_services

NOW_S = 1_796_050_800.0  # 2026-11-30 15:00:00 UTC


@pytest.fixture
def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> float:
    """`time.time` stands at `NOW_S`, in UTC."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.setattr(time, "time", lambda: NOW_S)
    return NOW_S


@pytest.fixture
def make_app(monkeypatch: pytest.MonkeyPatch) -> Callable[..., TfjobtuiApp]:
    """Make the program over a scheduler."""
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.delenv("TMUX", raising=False)

    def make(scheduler: FakeScheduler, config: Config | None = None) -> TfjobtuiApp:
        return TfjobtuiApp(make_services(config or Config(), scheduler))

    return make
