"""The rows that are drawn before Textual is there: the same as those that follow."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.actions.fakes import FakeScheduler
from tests.jobs import make_job
from tests.ui.screens import screen_lines, until_text
from tests.ui.test_jobs_screen import queue
from tfjobtui.config import Config
from tfjobtui.monitor.view import JobView
from tfjobtui.ui.app import TfjobtuiApp
from tfjobtui.ui.first_frame import frame

_COLOUR = re.compile("\x1b\\[[0-9;]*m")


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (200, 50)])
async def test_the_rows_stand_where_the_list_puts_them(
    make_app: Callable[..., TfjobtuiApp], stopped_clock: float, size: tuple[int, int]
) -> None:
    jobs = queue(stopped_clock)
    view = JobView()
    view.show({job.key: job for job in jobs})
    first = [_COLOUR.sub("", line).rstrip() for line in frame(view, Config(), *size)]
    app = make_app(FakeScheduler(*jobs))
    async with app.run_test(size=size) as pilot:
        await until_text(pilot, "● 0s ago")
        after = screen_lines(app)
    assert first[1:] == after[1 : len(first)]


def test_nothing_from_outside_reaches_the_terminal_raw(stopped_clock: float) -> None:
    view = JobView()
    view.show({"1": make_job("1", name="\x1b[2J\x07evil\n数据")})
    text = "".join(frame(view, Config(), 120, 30))
    assert "\x1b[2J" not in text
    assert not set(_COLOUR.sub("", text)) & {"\x07", "\n", "\x1b"}


def test_a_frame_is_no_longer_than_the_screen(stopped_clock: float) -> None:
    view = JobView()
    view.show({str(n): make_job(str(n)) for n in range(1, 500)})
    for columns, lines in ((20, 5), (80, 24), (300, 80)):
        shown = frame(view, Config(), columns, lines)
        assert len(shown) <= lines - 1
        assert all(len(_COLOUR.sub("", line)) <= columns for line in shown)
