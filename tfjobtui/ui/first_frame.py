"""The first rows, drawn before Textual is there.

Importing Textual takes three times as long as squeue needs for a few jobs. The frame has the place and
the widths of the list that follows it; Textual draws over it. Keys that are pressed meanwhile wait in the
terminal for whoever reads them.
"""

from __future__ import annotations

import contextlib
import os
import sys
import termios
import time
from collections.abc import Iterator

from tfjobtui.config import Config
from tfjobtui.model.state import StateGroup
from tfjobtui.monitor.view import JobView, Row
from tfjobtui.ui.job_grid import JobGrid, chosen_columns, fit, gutter

ENTER = "\x1b[?1049h\x1b[?25l\x1b[H"
LEAVE = "\x1b[?1049l\x1b[?25h"
OTHER_LINES = 2
"""The line of status above the list, and the line of keys below it."""
_COLOUR = {
    StateGroup.WAITING: "33",
    StateGroup.ACTIVE: "1;32",
    StateGroup.GOOD: "36",
    StateGroup.BAD: "1;31",
    StateGroup.NEUTRAL: "35",
}


@contextlib.contextmanager
def quiet_terminal() -> Iterator[None]:
    """Keys are neither echoed nor held back until Enter; afterwards the terminal is as it was."""
    try:
        before = termios.tcgetattr(0)
    except termios.error:
        yield
        return
    quiet = [*before[:3], before[3] & ~(termios.ECHO | termios.ICANON), *before[4:]]
    termios.tcsetattr(0, termios.TCSANOW, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSANOW, before)


@contextlib.contextmanager
def wiped_on_error() -> Iterator[None]:
    """If the program does not get as far as Textual, the frame goes."""
    try:
        yield
    except BaseException:
        _write(LEAVE)
        raise


def draw(view: JobView, config: Config) -> None:
    """Draw the rows of the view that fit on the screen."""
    try:
        columns, lines = os.get_terminal_size(2)
    except OSError:
        return
    if columns >= 20 and lines >= 5:
        _write(ENTER + "\r\n".join(frame(view, config, columns, lines)))


def frame(view: JobView, config: Config, columns: int, lines: int) -> list[str]:
    """The lines of the frame, with colours."""
    grid = JobGrid(chosen_columns(config, False))
    now = time.time()
    grid.measure(view.rows, 0, now)
    has_scrollbar = len(view.rows) + 1 > lines - OTHER_LINES
    room = columns - has_scrollbar
    shown = [f"\x1b[1m{fit(' tfjobtui', columns, False)}\x1b[0m"]
    shown.append(f"\x1b[1m{grid.header(room, view)}\x1b[0m")
    grid.place(room, view.sort)
    shown += [_line(grid, row, now, view.sort, room) for row in view.rows[: lines - OTHER_LINES - 1]]
    return shown


def _line(grid: JobGrid, row: Row, now: float, sort: str, room: int) -> str:
    text = gutter(row, False)
    used = len(text)
    for placed, cell in zip(grid.place(room, sort), grid.cells(row, now), strict=True):
        if used + placed.width > room:
            break
        piece = fit(cell, placed.width, placed.column.right)
        if placed.column.name == "state":
            piece = f"\x1b[{_COLOUR[row.job.state.group]}m{piece}\x1b[0m"
        elif row.job.state.is_terminal:
            piece = f"\x1b[2m{piece}\x1b[0m"
        text += piece + " "
        used += placed.width + 1
    return text


def _write(text: str) -> None:
    # Where Textual draws, and as it does: whatever the locale says, the terminal takes UTF-8.
    with contextlib.suppress(OSError):
        os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, text.encode("utf-8", "replace"))
