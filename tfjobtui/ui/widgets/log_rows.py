"""The rows of a log on the screen: how lines look, how they are wrapped, and which row is which line."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate
from typing import TypeAlias

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.color import Color
from rich.segment import Segment
from rich.style import Style as RichStyle

from tfjobtui.logs.kept import LogLines
from tfjobtui.logs.lines import Colour, LogLine, Style
from tfjobtui.logs.reader import LogChange, LogReader

MARKER = RichStyle(dim=True, reverse=True)


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


def segments_of(line: LogLine, start: int, end: int) -> list[Segment]:
    """`line.text[start:end]` in its colours."""
    if line.is_marker:
        return [Segment(line.text[start:end], MARKER)]
    if not line.spans:
        return [Segment(line.text[start:end])]
    return list(_styled(line, start, min(end, len(line.text))))


def _styled(line: LogLine, start: int, end: int) -> Iterator[Segment]:
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


@lru_cache(maxsize=512)
def wrap_cuts(text: str, width: int) -> tuple[tuple[int, int], ...]:
    """Where each row of a wrapped text begins and ends; a wide character is never cut in two."""
    if text.isascii():
        return tuple((at, min(at + width, len(text))) for at in range(0, len(text), width)) or ((0, 0),)
    ends = list(accumulate(len(piece) for piece in chop_cells(text, max(width, 2))))
    return tuple(zip([0, *ends], ends, strict=False)) or ((0, len(text)),)


def cut_in_the_middle(text: str, width: int) -> str:
    """At most so many cells, with `…` in place of what is left out: a path's end says most."""
    if cell_len(text) <= width:
        return text
    if width < 8:
        return set_cell_size(text, max(width, 0))
    start = (width - 1) // 3
    return f"{set_cell_size(text, start)}…{_last_cells(text, width - 1 - start)}"


def _last_cells(text: str, width: int) -> str:
    while cell_len(text) > width:
        text = text[max(1, (cell_len(text) - width) // 2) :]
    return text


Lengths: TypeAlias = "array[int]"
"""Of each line: its characters, negative where one may be wider than a column."""


def measured(lines: LogLines, first: int, end: int | None = None) -> Lengths:
    """The lengths of the lines with these numbers."""
    numbers = range(first, lines.end_index if end is None else end)
    texts = (lines.at(number).text for number in numbers)
    return array("l", (len(text) if text.isascii() else -len(text) for text in texts))


def poll(reader: LogReader) -> tuple[LogChange, Lengths | None]:
    """Read on, and measure what is new: of a fast log that takes longer than a key may wait."""
    change = reader.poll()
    if change.first_changed is None:
        return change, None
    return change, measured(reader.lines, max(change.first_changed, reader.lines.first_index))


class Rows:
    """Which rows of the screen the lines take: one each, or more where they are wrapped.

    Rows are counted from a zero that stays where it is when earlier lines come in or old ones go, so that
    a row's number is good for as long as the width stays.
    """

    def __init__(self, lines: LogLines, width: int = 0) -> None:
        self._lines = lines
        self._width = width
        self._first = lines.first_index
        self._ends = array("q")
        self._lengths = array("l")
        self.top = 0
        self._add(measured(lines, self._first), self._first)

    @property
    def end(self) -> int:
        """The row after the last one."""
        return self._ends[-1] if self._ends else self.top

    @property
    def count(self) -> int:
        return self.end - self.top

    def update(self, first_changed: int | None, lengths: Lengths | None = None) -> int:
        """Take what a reader changed: lines at the front, and all from the line `first_changed` on.

        `lengths` are those of the latter, where they have been measured already. Gives the row from which
        on others are to be seen than before, apart from the front.
        """
        first = self._lines.first_index
        if self._first != first and not self._fit_front(first):
            first_changed = first
        if first_changed is None:
            return self.end
        start = max(first_changed, first)
        del self._ends[start - first :], self._lengths[start - first :]
        row = self.end
        self._add(measured(self._lines, start) if lengths is None else lengths, start)
        return row

    def _fit_front(self, first: int) -> bool:
        """Measure the lines before those that were there, or let go of some; false if none is left.

        What was the first line is measured again too, since a remark comes and goes in its place.
        """
        kept = max(first, self._first) + 1
        gone = kept - self._first
        self._first = first
        if gone > len(self._ends):
            self.top = self.end
            del self._ends[:], self._lengths[:]
            return False
        lengths = measured(self._lines, first, kept)
        heights = self._heights(lengths, first)
        self.top = self._ends[gone - 1] - sum(heights)
        self._lengths = lengths + self._lengths[gone:]
        self._ends = array("q", accumulate(heights, initial=self.top))[1:] + self._ends[gone:]
        return True

    def _add(self, lengths: Lengths, number: int) -> None:
        """Put lines, from this number on, at the end."""
        self._lengths.extend(lengths)
        self._ends.extend(array("q", accumulate(self._heights(lengths, number), initial=self.end))[1:])

    def _heights(self, lengths: Lengths, first: int) -> list[int]:
        """How many rows each of the lines from `first` on takes."""
        width = self._width
        if not width:
            return [1] * len(lengths)
        return [
            1
            if -width <= 2 * length <= width
            else -(-length // width)
            if length > 0
            else self._wrapped_height(first + index)
            for index, length in enumerate(lengths)
        ]

    def _wrapped_height(self, number: int) -> int:
        return len(wrap_cuts(self._lines.at(number).text, self._width))

    def rewrap(self, width: int, row: int) -> int:
        """Lay out for another width (0: not wrapped); gives the row where the line of `row` now begins."""
        index = bisect_right(self._ends, row)
        self._width = width
        heights = self._heights(self._lengths, self._first)
        self._ends = array("q", accumulate(heights, initial=self.top))[1:]
        return self._begin(min(index, len(self._ends)))

    def _begin(self, index: int) -> int:
        return self._ends[index - 1] if index > 0 else self.top

    def at(self, row: int) -> tuple[LogLine, int] | None:
        """The line that a row shows, and which of the line's rows it is."""
        if not self.top <= row < self.end:
            return None
        index = bisect_right(self._ends, row)
        try:
            # The reader may be at work: then it is drawn again soon.
            return self._lines.at(self._first + index), row - self._begin(index)
        except IndexError:
            return None
