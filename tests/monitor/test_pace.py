"""When the scheduler is asked."""

from __future__ import annotations

import pytest

from tfjobtui.monitor.pace import Pace, PaceLimits


def test_the_interval_holds_while_somebody_looks() -> None:
    pace = Pace(PaceLimits(), 0.0)
    pace.succeeded(0.1)
    assert pace.delay_s(1.0) == 10.0


def test_never_under_the_floor() -> None:
    pace = Pace(PaceLimits(interval_s=0.1), 0.0)
    pace.succeeded(0.0)
    assert pace.delay_s(1.0) == 2.0
    pace.action_done()
    assert pace.delay_s(1.0) == 2.0
    strict = Pace(PaceLimits(interval_s=2.0, floor_s=30.0), 0.0)
    strict.action_done()
    assert strict.delay_s(1.0) == 30.0


def test_a_slow_controller_is_asked_less() -> None:
    pace = Pace(PaceLimits(), 0.0)
    pace.succeeded(3.0)
    assert pace.delay_s(1.0) == 30.0
    pace.action_done()
    assert pace.delay_s(1.0) == 30.0
    pace.succeeded(200.0)
    assert pace.delay_s(1.0) <= 2000.0


def test_failures_double_the_delay_up_to_five_minutes() -> None:
    pace = Pace(PaceLimits(), 0.0)
    delays = []
    for _ in range(8):
        pace.failed(0.1)
        delays.append(pace.delay_s(1.0))
    assert delays[:4] == [20.0, 40.0, 80.0, 160.0]
    assert delays[-1] == 300.0
    pace.succeeded(0.1)
    assert pace.delay_s(1.0) == 10.0


def test_after_an_action_soon_and_then_as_usual() -> None:
    pace = Pace(PaceLimits(), 0.0)
    pace.succeeded(0.05)
    pace.action_done()
    delays = []
    for _ in range(4):
        delays.append(pace.delay_s(1.0))
        pace.query_started()
        pace.succeeded(0.05)
    assert delays == [2.0, 2.0, 4.0, 10.0]


@pytest.mark.parametrize(("silent_s", "delay_s"), [(599, 10.0), (600, 60.0), (7199, 60.0), (7200, 300.0)])
def test_nobody_at_the_keys(silent_s: float, delay_s: float) -> None:
    pace = Pace(PaceLimits(), 0.0)
    pace.succeeded(0.1)
    assert pace.delay_s(silent_s) == delay_s


def test_a_key_wakes_it() -> None:
    pace = Pace(PaceLimits(), 0.0)
    pace.succeeded(0.1)
    assert pace.key_pressed(8000.0) is True
    assert pace.delay_s(8001.0) == 10.0
    assert pace.key_pressed(8002.0) is False


def test_without_focus_once_a_minute() -> None:
    pace = Pace(PaceLimits(), 0.0)
    pace.succeeded(0.1)
    pace.focus_changed(False)
    assert pace.delay_s(1.0) == 60.0
    pace.focus_changed(True)
    assert pace.delay_s(1.0) == 10.0
