"""The log pane, on real files that grow, are cut and come late."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from rich.color import Color
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.screen import ModalScreen, Screen

from tests.jobs import make_job
from tfjobtui.logs.kept import LogLines
from tfjobtui.logs.lines import LogLine, Span, Style
from tfjobtui.logs.location import LogLocation
from tfjobtui.logs.reader import LogChange, LogReader
from tfjobtui.model.job import Job
from tfjobtui.model.stream import Stream
from tfjobtui.ui.widgets import log_view
from tfjobtui.ui.widgets.log_rows import Rows, cut_in_the_middle, segments_of, wrap_cuts
from tfjobtui.ui.widgets.log_view import LogView

DEADLINE_S = 10.0


class Folder:
    """Finds logs as `<job>.out` and `<job>.err` in a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.asked: list[tuple[str, Stream]] = []
        self.same = False

    async def locate(self, job: Job, stream: Stream) -> LogLocation:
        self.asked.append((str(job.id), stream))
        suffix = "out" if stream is Stream.STDOUT or self.same else "err"
        path = self.path / f"{job.id}.{suffix}"
        exists = path.exists()
        note = "" if exists else f"The job has not started. Its log will be {path}."
        return LogLocation(path, exists, note, (str(path),), self.same, True)


class LogApp(App[None]):
    """An app that is nothing but a log."""

    def __init__(self, folder: Folder, *, wrap: bool = True) -> None:
        super().__init__()
        self.folder = folder
        self.view = LogView(folder.locate, wrap=wrap)
        self.located: list[Path | None] = []

    def compose(self) -> ComposeResult:
        yield self.view

    def on_log_view_located(self, message: LogView.Located) -> None:
        self.located.append(message.path)


class Story:
    """A running app, with waiting for what it is to show."""

    def __init__(self, app: LogApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot
        self.view = app.view

    async def until(self, holds: Callable[[], Any]) -> None:
        """Wait until it holds; fail with what is shown instead."""
        end = time.monotonic() + DEADLINE_S
        while not holds():
            if time.monotonic() > end:
                pytest.fail(f"not so within {DEADLINE_S} s; shown is:\n{self.view.visible_text}")
            await self.pilot.pause(0.02)

    async def shows(self, text: str) -> None:
        """Wait until this text can be seen."""
        await self.until(lambda: text in self.view.visible_text)

    @property
    def title(self) -> str:
        return self.view.visible_text.partition("\n")[0]

    def follows(self) -> bool:
        return self.view.is_following

    def path(self) -> Path | None:
        return self.view.path

    @property
    def body(self) -> list[str]:
        return self.view.visible_text.split("\n")[1:]


@asynccontextmanager
async def opened(
    folder: Folder, job: Job | None = None, size: tuple[int, int] = (80, 12), *, wrap: bool = True
) -> AsyncIterator[Story]:
    app = LogApp(folder, wrap=wrap)
    async with app.run_test(size=size) as pilot:
        app.view.focus()
        app.view.show_job(job or make_job("5"))
        yield Story(app, pilot)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "5.out"


def add(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def numbered(first: int, end: int) -> str:
    return "".join(f"line {number}\n" for number in range(first, end))


async def test_a_large_file_opens_at_its_end(folder: Folder, log: Path) -> None:
    with log.open("wb") as file:
        file.truncate(1 << 30)  # a hole: it takes no room
        file.seek(0, os.SEEK_END)
        file.write(("\n" + numbered(0, 40_000)).encode())
    async with opened(folder) as story:
        await story.shows("line 39999")
        assert story.body[-1] == "line 39999"
        assert "following" in story.title
        assert "1.0G" in story.title
        assert story.path() == log
        await story.until(lambda: story.app.located == [log])


async def test_what_is_written_is_followed(folder: Folder, log: Path) -> None:
    add(log, numbered(0, 50))
    async with opened(folder) as story:
        await story.shows("line 49")
        add(log, "line 50\nline 51\nhalf a li")
        await story.shows("half a li")
        assert story.body[-3:] == ["line 50", "line 51", "half a li"]
        add(log, "ne\n")
        await story.shows("half a line")
        assert story.body[-1] == "half a line"


async def test_scrolling_up_stops_following_and_counts(folder: Folder, log: Path) -> None:
    add(log, numbered(0, 50))
    async with opened(folder) as story:
        await story.shows("line 49")
        await story.pilot.press("k", "k", "k")
        before = story.body
        assert before[-1] == "line 46"
        assert "paused" in story.title
        add(log, numbered(50, 173))
        await story.shows("+123 new lines")
        assert story.body == before
        await story.pilot.press("G")
        await story.shows("line 172")
        assert "following" in story.title
        add(log, "more\n")
        await story.shows("more")


@pytest.mark.parametrize("key", ["F", "end", "G"])
async def test_keys_that_follow_again(folder: Folder, log: Path, key: str) -> None:
    add(log, numbered(0, 50))
    async with opened(folder) as story:
        await story.shows("line 49")
        await story.pilot.press("ctrl+u")
        assert not story.follows()
        await story.pilot.press(key)
        assert story.follows()
        assert story.body[-1] == "line 49"


async def test_reaching_the_end_follows_again(folder: Folder, log: Path) -> None:
    add(log, numbered(0, 50))
    async with opened(folder) as story:
        await story.shows("line 49")
        await story.pilot.press("k", "j")
        assert story.follows()


async def test_earlier_lines_come_and_the_place_is_kept(folder: Folder, log: Path) -> None:
    add(log, numbered(0, 60_000))
    async with opened(folder) as story:
        await story.shows("line 59999")
        first = story.view.virtual_size.height
        story.view.scroll_to(y=3, animate=False)
        before = story.body
        await story.until(lambda: story.view.virtual_size.height > first)
        assert story.body == before
        await story.pilot.press("k")
        assert story.body[1:] == before[:-1]


async def test_the_top_is_the_first_line_of_the_file(folder: Folder, log: Path) -> None:
    add(log, numbered(0, 40_000))
    async with opened(folder) as story:
        await story.shows("line 39999")
        await story.pilot.press("g")
        await story.until(lambda: story.body[0] == "line 0")
        assert not story.follows()


async def test_a_log_that_is_all_in_sight_is_followed(folder: Folder, log: Path) -> None:
    add(log, "one\ntwo\n")
    async with opened(folder) as story:
        await story.shows("two")
        await story.pilot.press("g", "k")
        add(log, numbered(0, 50))
        await story.shows("line 49")


async def test_megabytes_of_a_bar_before_the_end_still_fill_the_screen(folder: Folder, log: Path) -> None:
    for epoch in range(9):
        bars = "".join(f"\r{step}/9999 {'━' * 20}" for step in range(3000))
        add(log, f"Epoch {epoch}\n{bars}\n")
    async with opened(folder) as story:
        await story.until(lambda: story.view.virtual_size.height > story.view.size.height)
        bar = f"2999/9999 {'━' * 20}"
        assert "" not in story.body
        assert story.body[-4:] == ["Epoch 7", bar, "Epoch 8", bar]


async def test_another_size_of_the_terminal_keeps_following_or_the_place(folder: Folder, log: Path) -> None:
    add(log, "".join(f"{number} " + "words " * 20 + "\n" for number in range(200)))
    async with opened(folder) as story:
        await story.shows("199 words")
        for width, height in ((60, 30), (120, 9), (80, 20)):
            await story.pilot.resize_terminal(width, height)
            await story.pilot.pause()
            assert story.follows()
            assert "199 words" in story.view.visible_text
        await story.pilot.press(*["ctrl+u"] * 3)
        first = next(line for line in story.body if line[0].isdigit())
        await story.pilot.resize_terminal(50, 12)
        await story.pilot.pause()
        assert not story.follows()
        assert first[:10] in story.view.visible_text


async def test_a_cut_is_marked_and_what_follows_shown_from_its_start(folder: Folder, log: Path) -> None:
    add(log, numbered(0, 500) + "pending")
    async with opened(folder) as story:
        await story.shows("pending")
        log.write_text("anew 1\nanew 2\n")
        await story.shows("anew 2")
        assert story.body[-4] == "line 499"
        assert "was cut" in story.body[-3]
        assert story.body[-2:] == ["anew 1", "anew 2"]
        assert story.follows()


async def test_a_file_that_is_not_there_yet_is_awaited(folder: Folder, log: Path) -> None:
    async with opened(folder, make_job("5", "PENDING"), size=(200, 12)) as story:
        await story.shows(f"The job has not started. Its log will be {log}.")
        assert story.path() is None
        assert story.app.located == []
        add(log, "at last\n")
        await story.shows("at last")
        await story.until(lambda: "has not started" not in story.view.visible_text)
        assert story.path() == log
        await story.until(lambda: story.app.located == [log])


async def test_an_empty_log_of_a_running_job_gets_advice(folder: Folder, log: Path) -> None:
    add(log, "")
    async with opened(folder) as story:
        await story.shows("PYTHONUNBUFFERED")
        add(log, "something\n")
        await story.shows("something")
        assert "PYTHONUNBUFFERED" not in story.view.visible_text


async def test_a_deleted_file_stays_in_view_and_says_so(folder: Folder, log: Path) -> None:
    add(log, "kept\n")
    async with opened(folder) as story:
        await story.shows("kept")
        log.unlink()
        await story.shows("deleted")
        assert "kept" in story.view.visible_text


async def test_the_bar_of_keras_is_one_line(folder: Folder, log: Path) -> None:
    add(log, "Epoch 1/2\n")
    steps = "".join(
        f"\r\x1b[1m{step}/100\x1b[0m \x1b[32m{'━' * (step // 10)}\x1b[0m" + "\b" * 9 for step in range(1, 100)
    )
    add(log, steps + "\r\x1b[1m100/100\x1b[0m \x1b[32m" + "━" * 10 + "\x1b[0m 3s - loss: 0.1\n")
    add(log, "Epoch 2/2\n\r\x1b[1m7/100\x1b[0m \x1b[32m━\x1b[0m")
    async with opened(folder) as story:
        await story.shows("7/100 ━")
        shown = [line for line in story.body if line]
        assert shown == ["Epoch 1/2", f"100/100 {'━' * 10} 3s - loss: 0.1", "Epoch 2/2", "7/100 ━"]
        add(log, "\r\x1b[1m8/100\x1b[0m \x1b[32m━\x1b[0m")
        await story.shows("8/100 ━")
        assert len([line for line in story.body if line]) == 4
        bar = story.view.render_line(2)
        green = next(segment for segment in bar if "━" in segment.text)
        assert green.style is not None
        assert green.style.color == Color.from_ansi(2)


async def test_what_looks_like_markup_or_moves_the_cursor_is_harmless(folder: Folder, log: Path) -> None:
    add(log, "[/]\n[red]not red[/red] [link=x]\n\x1b]0;title\x07\x1b[2Jafter\n")
    async with opened(folder) as story:
        await story.shows("after")
        assert [line for line in story.body if line][:2] == ["[/]", "[red]not red[/red] [link=x]"]
        assert "\x1b" not in story.view.visible_text


async def test_another_job_is_shown_at_its_end(folder: Folder, log: Path, tmp_path: Path) -> None:
    add(log, numbered(0, 50))
    other = tmp_path / "6.out"
    add(other, "the other\n")
    async with opened(folder) as story:
        await story.shows("line 49")
        await story.pilot.press("k")
        story.view.show_job(make_job("6"))
        await story.shows("the other")
        assert "line 49" not in story.view.visible_text
        assert story.follows()
        story.view.show_job(None)
        await story.shows("No job is in view.")
        await story.until(lambda: story.app.located == [log, None, other, None])


async def test_the_same_job_with_other_data_keeps_the_place(folder: Folder, log: Path) -> None:
    add(log, numbered(0, 50))
    async with opened(folder) as story:
        await story.shows("line 49")
        await story.pilot.press("k")
        before = story.body
        story.view.show_job(make_job("5", "COMPLETED", end_time_s=int(time.time())))
        await story.until(lambda: len(folder.asked) == 2)
        assert story.body == before
        story.view.show_job(make_job("5", "COMPLETED", end_time_s=int(time.time()), priority=3))
        await story.pilot.pause()
        assert len(folder.asked) == 2


@pytest.fixture
def polls(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Every look at a file."""
    seen: list[Path] = []
    poll = LogReader.poll

    def counted(reader: LogReader) -> LogChange:
        seen.append(reader.path)
        return poll(reader)

    monkeypatch.setattr(LogReader, "poll", counted)
    return seen


@pytest.fixture
def sights(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Every answer to the question whether the view is in sight, which is asked often."""
    seen: list[bool] = []
    is_in_sight = LogView._is_in_sight.fget  # type: ignore[attr-defined]

    def noted(view: LogView) -> bool:
        seen.append(is_in_sight(view))
        return seen[-1]

    monkeypatch.setattr(LogView, "_is_in_sight", property(noted))
    monkeypatch.setattr(log_view, "HIDDEN_S", 0.02)
    return seen


async def test_a_job_that_ended_long_ago_is_read_once(
    folder: Folder, log: Path, polls: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    delays: list[float | None] = []
    look = LogView._look

    async def noted(view: LogView) -> float | None:
        delays.append(await look(view))
        return delays[-1]

    monkeypatch.setattr(LogView, "_look", noted)
    add(log, numbered(0, 50))
    async with opened(folder, make_job("5", "COMPLETED", end_time_s=1_700_000_000)) as story:
        await story.shows("ended")
        await story.until(lambda: None in delays)
        assert len(polls) <= 3


async def test_a_hidden_log_is_not_looked_at(
    folder: Folder, log: Path, polls: list[Path], sights: list[bool]
) -> None:
    add(log, numbered(0, 50))
    async with opened(folder) as story:
        await story.shows("line 49")
        story.view.display = False
        await story.until(lambda: sights[-2:] == [False, False])
        count = len(polls)
        add(log, "while hidden\n")
        sights.clear()
        await story.until(lambda: len(sights) > 5)
        assert not any(sights)
        assert len(polls) == count
        story.view.display = True
        await story.shows("while hidden")


async def test_behind_another_screen_it_is_not_looked_at_behind_a_dialog_it_is(
    folder: Folder, log: Path, polls: list[Path], sights: list[bool]
) -> None:
    add(log, numbered(0, 50))
    async with opened(folder) as story:
        await story.shows("line 49")
        await story.app.push_screen(Screen[None]())
        await story.until(lambda: sights[-2:] == [False, False])
        count = len(polls)
        sights.clear()
        await story.until(lambda: len(sights) > 5)
        assert len(polls) == count
        story.app.pop_screen()
        await story.app.push_screen(ModalScreen[None]())
        add(log, "behind a dialog\n")
        await story.shows("behind a dialog")


async def test_a_quiet_file_is_looked_at_less_often(folder: Folder, log: Path) -> None:
    add(log, "quiet\n")
    async with opened(folder) as story:
        await story.shows("quiet")
        delays = [story.view._next_delay(has_grown=False) for _ in range(10)]
        assert delays == sorted(delays, key=lambda delay: delay or 0)
        assert delays[-1] == log_view.QUIET_POLL_S
        assert story.view._next_delay(has_grown=True) == log_view.POLL_S


async def test_stderr_is_one_key_away(folder: Folder, log: Path, tmp_path: Path) -> None:
    add(log, "to stdout\n")
    add(tmp_path / "5.err", "to stderr\n")
    async with opened(folder) as story:
        await story.shows("to stdout")
        await story.pilot.press("o")
        await story.shows("to stderr")
        assert story.title.startswith(" stderr")
        story.view.show_job(make_job("5", nodes="n1"))
        assert story.view.stream is Stream.STDERR
        await story.pilot.press("o")
        await story.shows("to stdout")


async def test_one_file_for_both_streams_is_said(folder: Folder, log: Path) -> None:
    folder.same = True
    add(log, "both\n")
    async with opened(folder) as story:
        await story.shows("both")
        assert story.title.startswith(" stdout + stderr")
        await story.pilot.press("o")
        await story.pilot.pause()
        assert [notice.message for notice in story.app._notifications] == [
            "Standard error goes into the same file."
        ]


async def test_long_lines_are_wrapped_or_shifted(folder: Folder, log: Path) -> None:
    add(log, "".join(f"{number:03}" for number in range(50)) + "\nlast\n")
    async with opened(folder, size=(41, 8)) as story:
        await story.shows("last")
        assert [len(line) for line in story.body[:4]] == [40, 40, 40, 30]
        await story.pilot.press("w")
        assert story.body[0].startswith("000001")
        assert story.body[0].endswith("›")
        assert story.body[1] == "last"
        await story.pilot.press("right")
        assert story.body[0].startswith("000001002"[log_view.SHIFT :])
        await story.pilot.press("left")
        assert story.body[0].startswith("000001")


async def test_wide_characters_are_drawn_whole(folder: Folder, log: Path) -> None:
    add(log, "a" + "漢" * 30 + "\n")
    async with opened(folder, size=(41, 8)) as story:
        await story.shows("漢")
        assert story.body[:2] == ["a" + "漢" * 19, "漢" * 11]
        assert all(story.view.render_line(y).cell_length == 40 for y in range(8))
        await story.pilot.press("w", "right")
        assert story.view.render_line(1).cell_length == 40


async def test_the_copied_path_is_the_log_s(folder: Folder, log: Path) -> None:
    add(log, "text\n")
    async with opened(folder) as story:
        await story.shows("text")
        await story.pilot.press("y")
        assert story.app.clipboard == str(log)


async def test_a_note_stands_below_the_title(folder: Folder, log: Path) -> None:
    add(log, "text\n")

    async def locate(job: Job, stream: Stream) -> LogLocation:
        return LogLocation(log, True, "Opened [5].out, the only file that matches *.out.", ())

    folder.locate = locate  # type: ignore[method-assign]
    async with opened(folder) as story:
        await story.shows("text")
        assert story.body[:2] == [" Opened [5].out, the only file that matches *.out.", "text"]


async def test_repaints_are_few_however_fast_the_log(
    folder: Folder, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_view, "POLL_S", 0.01)
    places: list[float] = []
    arrange = LogView._arrange

    def counted(view: LogView) -> None:
        places.append(time.monotonic())
        arrange(view)

    add(log, "start\n")
    async with opened(folder) as story:
        await story.shows("start")
        monkeypatch.setattr(LogView, "_arrange", counted)
        for number in range(60):
            add(log, f"line {number}\n")
            await asyncio.sleep(0.02)
        await story.shows("line 59")
    gaps = [after - before for before, after in pairwise(places)]
    assert min(gaps) > 0.9 * log_view.REPAINT_S


def rows_of(*texts: str, width: int) -> tuple[LogLines, Rows]:
    lines = LogLines()
    lines.append(list(texts))
    return lines, Rows(lines, width)


def test_rows_keep_their_numbers_when_lines_come_and_go_at_the_front() -> None:
    lines, rows = rows_of("one", "two" * 4, "three", width=5)
    assert rows.count == 5
    assert rows.at(4) == (LogLine("three"), 0)
    lines.prepend(["zero" * 3, "half"])
    rows.update(lines.first_index)
    assert rows.at(4) == (LogLine("three"), 0)
    assert rows.top == -4
    assert rows.at(-4) == (LogLine("zero" * 3), 0)
    lines.drop_first(2)
    lines.set_marker("a remark that is wrapped")
    rows.update(None)
    assert rows.at(4) == (LogLine("three"), 0)
    marker = rows.at(rows.top)
    assert marker is not None
    assert marker[0].is_marker
    assert rows.count == 10


def test_rows_take_a_changed_end() -> None:
    lines, rows = rows_of("one", width=4)
    lines.set_unfinished(LogLine("unfinished"))
    rows.update(1)
    assert rows.count == 4
    lines.set_unfinished(None)
    rows.update(1)
    assert rows.count == 1


def test_rows_for_another_width_give_the_line_s_new_place() -> None:
    _, rows = rows_of("a" * 10, "b" * 10, "c", width=5)
    assert rows.rewrap(0, 3) == 1
    assert rows.rewrap(2, 1) == 5


def test_dropping_everything_leaves_what_is_new() -> None:
    lines, rows = rows_of("one", "two", width=0)
    lines.drop_first(2)
    lines.append(["three"])
    rows.update(2)
    assert rows.count == 1
    assert rows.at(rows.top) == (LogLine("three"), 0)


@pytest.mark.parametrize(
    ("text", "width", "pieces"),
    [
        ("", 4, [""]),
        ("abcd", 4, ["abcd"]),
        ("abcde", 4, ["abcd", "e"]),
        ("漢漢漢", 5, ["漢漢", "漢"]),
        ("é" * 5, 4, ["é" * 4, "é"]),
        ("漢", 1, ["漢"]),
    ],
)
def test_wrapping(text: str, width: int, pieces: list[str]) -> None:
    assert [text[start:end] for start, end in wrap_cuts(text, width)] == pieces


def test_colours_of_a_part_of_a_line() -> None:
    line = LogLine("plain red plain", (Span(6, 9, Style(fg=(255, 0, 0), bold=True)),))
    shown = segments_of(line, 3, 8)
    assert [segment.text for segment in shown] == ["in ", "re"]
    assert shown[1].style is not None
    assert shown[1].style.color == Color.from_rgb(255, 0, 0)
    assert shown[1].style.bold


@pytest.mark.parametrize("width", [0, 3, 8, 20, 21])
def test_a_path_is_cut_in_the_middle(width: int) -> None:
    shown = cut_in_the_middle("/home/ada/漢/slurm-5.out", width)
    assert len(shown) <= width
    if width >= 20:
        assert shown.endswith("slurm-5.out")
