"""One line of a terminal: cells, a cursor, and what moves and erases."""

from __future__ import annotations

import re
import unicodedata

from tfjobtui.logs.lines import PLAIN, LogLine, Span, Style

MAX_COLUMNS = 16 * 1024
"""What is written beyond is dropped, and the line marked as cut."""

CUT = " ⟨cut: the line goes on⟩"
TAB = 8

_NARROW = re.compile(
    "[\x20-\x7e\u00a1-\u00ac\u00ae-\u02ff\u0370-\u0377\u0391-\u03a9\u03b1-\u03c9\u0400-\u0482\u048a-\u052f"
    "\u2010-\u2027\u2030-\u205e\u2190-\u2319\u2500-\u25fc\u25ff\u2800-\u28ff\ufffd]*"
)
"""Text of which every character takes one column: Latin, Greek, Cyrillic, arrows, boxes, bars, braille."""

MAX_MOVE = 256
"""Sequences move the cursor to this column at most, or to the end of what is written: a terminal has a right
margin, and without one ten bytes of a log could ask for a line of 16 KiB."""

_MAX_KNOWN = 20_000
_widths: dict[str, int] = {}
_not_zero_width: set[str] = set()


def is_narrow(text: str) -> bool:
    """Whether every character surely takes one column (then columns can be counted as characters)."""
    return text.isascii() or _NARROW.fullmatch(text) is not None


def width_of(char: str) -> int:
    """The columns that a character takes: 0, 1 or 2."""
    width = _widths.get(char)
    if width is None:
        if len(_widths) >= _MAX_KNOWN:
            _widths.clear()
        width = _widths[char] = _measured(char)
    return width


def has_zero_width(text: str) -> bool:
    """Whether a character of the text combines with the one before it."""
    unknown = set(text) - _not_zero_width
    if any(width_of(char) == 0 for char in unknown):
        return True
    if len(_not_zero_width) >= _MAX_KNOWN:
        _not_zero_width.clear()
    _not_zero_width.update(unknown)
    return False


def _measured(char: str) -> int:
    category = unicodedata.category(char)
    if category in ("Mn", "Me") or (category == "Cf" and char != "\u00ad") or "\u1160" <= char <= "\u11ff":
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


class Row:
    """A line that is being written.

    A cell holds a character with the combining ones that belong to it; the second cell of a wide
    character is empty.
    """

    __slots__ = ("_cells", "_is_cut", "_is_plain", "_styles", "column", "style")

    def __init__(self) -> None:
        self._cells: list[str] = []
        self._styles: list[Style] = []
        self._is_plain = True
        self._is_cut = False
        self.column = 0
        self.style = PLAIN

    @property
    def is_fresh(self) -> bool:
        """Whether nothing has been written and the cursor is at the start."""
        return not self._cells and self.column == 0 and not self._is_cut

    def copy(self) -> Row:
        """The same line in the same state, to be written on for its own."""
        other = Row()
        other._cells, other._styles = self._cells.copy(), self._styles.copy()
        other._is_plain, other._is_cut = self._is_plain, self._is_cut
        other.column, other.style = self.column, self.style
        return other

    def clear(self) -> None:
        """An empty line, in the same style."""
        self._cells = []
        self._styles = []
        self._is_plain = True
        self._is_cut = False
        self.column = 0

    def write(self, text: str) -> None:
        """Write printable text at the cursor, over what is there."""
        if is_narrow(text):
            self._write_narrow(text)
        else:
            for char in text:
                self._put(char)

    def _write_narrow(self, text: str) -> None:
        start = self.column
        self.column += len(text)
        if self.column > MAX_COLUMNS:
            self._is_cut = True
            text = text[: max(0, MAX_COLUMNS - start)]
        if not text:
            return
        end = start + len(text)
        self._reach(start)
        self._part(start)
        self._part(end)
        self._cells[start:end] = text
        self._styles[start:end] = [self.style] * len(text)
        if self.style is not PLAIN:
            self._is_plain = False

    def _put(self, char: str) -> None:
        width = width_of(char)
        if width == 0:
            self._combine(char)
        elif width == 1:
            self._write_narrow(char)
        elif self.column + 2 > MAX_COLUMNS:
            self._is_cut = True
            self.column += 2
        else:
            self._write_narrow("  ")
            self._cells[self.column - 2 : self.column] = [char, ""]

    def _combine(self, char: str) -> None:
        """Add to the character before the cursor; at the start of a line there is none, and it goes."""
        at = min(self.column, len(self._cells)) - 1
        if at > 0 and self._cells[at] == "":
            at -= 1
        # A bound, so that one cell can't grow without end.
        if at >= 0 and self.column <= MAX_COLUMNS and len(self._cells[at]) < 32:
            self._cells[at] += char

    def _reach(self, column: int) -> None:
        """Fill with blanks up to a column."""
        lacking = column - len(self._cells)
        if lacking > 0:
            self._cells.extend(" " * lacking)
            self._styles.extend([PLAIN] * lacking)

    def _part(self, column: int) -> None:
        """Blank a wide character whose two cells lie on both sides of a column."""
        if 0 < column < len(self._cells) and self._cells[column] == "":
            self._cells[column - 1 : column + 1] = "  "

    def tab(self) -> None:
        """Move to the next tab stop; what was written there stays."""
        self.column += TAB - self.column % TAB
        if self.column <= MAX_COLUMNS:
            self._reach(self.column)

    def move(self, columns: int) -> None:
        """Move the cursor to the right, or with a negative number to the left."""
        self.go_to(self.column + columns)

    def go_to(self, column: int) -> None:
        """Put the cursor into a column, counted from 0; one beyond the margin becomes the margin."""
        if column > self.column:
            column = min(column, max(MAX_MOVE, len(self._cells), self.column))
        self.column = max(0, column)

    def erase(self, mode: int) -> None:
        """Erase from the cursor to the end (0), from the start up to the cursor (1), or all (2)."""
        if mode == 0:
            self._part(self.column)
            del self._cells[self.column :]
            del self._styles[self.column :]
        elif mode == 1:
            end = min(self.column + 1, len(self._cells))
            self._part(end)
            self._cells[:end] = " " * end
            self._styles[:end] = [PLAIN] * end
        elif mode == 2:
            self._cells = []
            self._styles = []
        if not self._cells:
            self._is_plain = True
        if mode == 2 or (mode == 0 and self.column < MAX_COLUMNS):
            self._is_cut = False

    def line(self) -> LogLine | str:
        """The line as it stands: plain text where it has no style."""
        text = "".join(self._cells) + (CUT if self._is_cut else "")
        spans = () if self._is_plain else self._spans()
        return LogLine(text, spans) if spans else text

    def _spans(self) -> tuple[Span, ...]:
        spans: list[Span] = []
        start = position = 0
        style = PLAIN
        for cell, of_cell in zip(self._cells, self._styles, strict=True):
            if of_cell is not style and of_cell != style:
                if style != PLAIN and position > start:
                    spans.append(Span(start, position, style))
                start, style = position, of_cell
            position += len(cell)
        if style != PLAIN and position > start:
            spans.append(Span(start, position, style))
        return tuple(spans)
