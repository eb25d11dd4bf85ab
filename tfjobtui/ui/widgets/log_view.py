"""A job's log, drawn line by line: it opens at the end, follows, and styles only what is in sight."""

from __future__ import annotations

import asyncio
import time
from array import array
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.color import Color
from rich.segment import Segment
from rich.style import Style as RichStyle
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tfjobtui.errors import TfjobtuiError
from tfjobtui.logs.lines import Colour, LogLine, Style
from tfjobtui.logs.location import LogLocation, Stream
from tfjobtui.logs.terminal_line import ShownLine
from tfjobtui.model.job import Job
from tfjobtui.model.text import printable
from tfjobtui.model.units import size as size_text
from tfjobtui.ui import clipboard

Locate = Callable[[Job, Stream], Awaitable[LogLocation]]
"""Finds a job's log; it may ask the scheduler."""

MARKER = RichStyle(dim=True, reverse=True)
SHIFT = 8
"""Columns that the left and right keys move by."""


# ---- Looks


def _colour(colour: Colour | None) -> Color | None:
    if colour is None:
        return None
    return Color.from_ansi(colour) if isinstance(colour, int) else Color.from_rgb(*colour)


@lru_cache(maxsize=4096)
def rich_style(style: Style) -> RichStyle:
    """The same look for Rich; what is not set stays that of the widget."""
    return RichStyle(
        color=_colour(style.fg),
        bgcolor=_colour(style.bg),
        bold=style.bold or None,
        dim=style.dim or None,
        italic=style.italic or None,
        underline=style.underline or None,
        reverse=style.reverse or None,
    )


def text_of(line: ShownLine) -> str:
    """The line without its colours."""
    return line if isinstance(line, str) else line.text


def segments_of(line: ShownLine, start: int, end: int) -> list[Segment]:
    """`line[start:end]` in its colours."""
    if isinstance(line, str):
        return [Segment(line[start:end])]
    if line.is_marker:
        return [Segment(line.text[start:end], MARKER)]
    return list(_styled(line, start, end))


def _styled(line: LogLine, start: int, end: int) -> Iterable[Segment]:
    done = start
    for span in line.spans:
        first, last = max(span.start, done), min(span.end, end)
        if last <= first:
            continue
        if first > done:
            yield Segment(line.text[done:first])
        yield Segment(line.text[first:last], rich_style(span.style))
        done = last
    if done < end:
        yield Segment(line.text[done:end])


def wrap_cuts(text: str, width: int) -> list[tuple[int, int]]:
    """Where each row of a wrapped text begins and ends; a wide character is never cut in two."""
    if text.isascii():
        return [(at, min(at + width, len(text))) for at in range(0, len(text), width)] or [(0, 0)]
    cuts, at = [], 0
    for piece in chop_cells(text, max(width, 2)):
        cuts.append((at, at + len(piece)))
        at += len(piece)
    return cuts or [(0, len(text))]


def _height(text: str, width: int) -> int:
    """How many rows a text takes; `width` 0: not wrapped."""
    if not width or len(text) * 2 <= width:
        return 1
    if text.isascii():
        return -(-len(text) // width)
    return len(wrap_cuts(text, width))


class Rows:
    """The lines at hand, and the rows of the screen that they take: one each, or more where they are wrapped.

    Rows are counted from a zero that stays where it is when earlier lines come in or old ones go, so that
    a row's number is good for as long as the width stays.
    """

    def __init__(self) -> None:
        self.lines: list[ShownLine] = []
        self.current: ShownLine | None = None
        self.width = 0
        self.top = 0
        self._ends = array("q")
        self._current_height = 0

    @property
    def end(self) -> int:
        """The row after the last one."""
        return self._lines_end + self._current_height

    @property
    def _lines_end(self) -> int:
        return self._ends[-1] if self._ends else self.top

    @property
    def is_empty(self) -> bool:
        return not self.lines and self.current is None

    def append(self, lines: Sequence[ShownLine], current: ShownLine | None) -> None:
        """Lines that were finished, and the one after them as it stands."""
        row = self._lines_end
        for line in lines:
            row += _height(text_of(line), self.width)
            self._ends.append(row)
        self.lines.extend(lines)
        self._set_current(current)

    def _set_current(self, line: ShownLine | None) -> None:
        self.current = line
        self._current_height = 0 if line is None else _height(text_of(line), self.width)

    def prepend(self, lines: Sequence[ShownLine]) -> None:
        """Earlier lines."""
        heights = [_height(text_of(line), self.width) for line in lines]
        self.top -= sum(heights)
        ends, row = array("q"), self.top
        for height in heights:
            row += height
            ends.append(row)
        self._ends = ends + self._ends
        self.lines[:0] = lines

    def drop(self, count: int) -> None:
        """Let go of the first lines."""
        if count > 0:
            self.top = self._ends[min(count, len(self._ends)) - 1]
            del self._ends[:count], self.lines[:count]

    def clear(self) -> None:
        """No lines; rows are counted on from here."""
        self.drop(len(self.lines))
        self._set_current(None)

    def rewrap(self, width: int, row: int) -> int:
        """Lay out for another width (0: no wrapping); gives the row where the line of `row` now begins."""
        index = self._index(row)
        lines, current = self.lines, self.current
        self.lines, self._ends, self.width = [], array("q"), width
        self.append(lines, current)
        return self._begin(index)

    def _index(self, row: int) -> int:
        return bisect_right(self._ends, row)

    def _begin(self, index: int) -> int:
        return self._ends[index - 1] if index > 0 and self._ends else self.top

    def at(self, row: int) -> tuple[ShownLine, int] | None:
        """The line that a row shows, and which of its rows it is."""
        index = self._index(row)
        line = self.lines[index] if index < len(self.lines) else self.current
        if line is None or not self.top <= row < self.end:
            return None
        return line, row - self._begin(index)
