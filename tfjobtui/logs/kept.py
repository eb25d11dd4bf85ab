"""The lines of a log that are kept in memory, in blocks that know their place in the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import overload

from tfjobtui.logs.lines import LogLine
from tfjobtui.logs.terminal_line import ShownLine


@dataclass(slots=True)
class Block:
    """Lines that lie together in the file; `start` is the offset of the first in bytes.

    `start` is `None` where the file no longer has them (it was truncated or replaced since).
    """

    start: int | None
    lines: list[ShownLine] = field(default_factory=list)
    characters: int = 0
    file_bytes: int = 0

    def add(self, lines: Sequence[ShownLine], file_bytes: int) -> int:
        """Add lines that took so many bytes of the file; give what they cost, in characters."""
        cost = sum(map(_size, lines))
        self.lines.extend(lines)
        self.characters += cost
        self.file_bytes += file_bytes
        return cost


def _size(line: ShownLine) -> int:
    """Characters, with what a line costs besides counted as that many."""
    return len(line) + 64 if isinstance(line, str) else len(line.text) + 128 + 64 * len(line.spans)


class LogLines(Sequence[LogLine]):
    """The lines in view of a reader, oldest first, the unfinished one last.

    `lines[i]` counts from the first line that is kept, `at(n)` by numbers that stay with a line: the first
    line that was read is 0, those loaded from before it are negative. They are no line numbers of the file.
    """

    def __init__(self) -> None:
        self._lines: list[ShownLine] = []
        self._last: ShownLine | None = None
        self._marker: LogLine | None = None
        self._first = 0

    @property
    def first_index(self) -> int:
        """The number of `lines[0]`."""
        return self._first - (self._marker is not None)

    @property
    def end_index(self) -> int:
        """The number after that of the last line."""
        return self.first_index + len(self)

    @property
    def has_unfinished(self) -> bool:
        """Whether the last line may still change."""
        return self._last is not None

    def __len__(self) -> int:
        return len(self._lines) + (self._last is not None) + (self._marker is not None)

    @overload
    def __getitem__(self, index: int) -> LogLine: ...
    @overload
    def __getitem__(self, index: slice) -> list[LogLine]: ...
    def __getitem__(self, index: int | slice) -> LogLine | list[LogLine]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        if index < 0:
            index += len(self)
        if self._marker is not None:
            if index == 0:
                return self._marker
            index -= 1
        if 0 <= index < len(self._lines):
            return _whole(self._lines[index])
        if index == len(self._lines) and self._last is not None:
            return _whole(self._last)
        raise IndexError("there is no such line")

    def at(self, number: int) -> LogLine:
        """The line with this number.

        Raises:
            IndexError: it is not kept (any more).
        """
        position = number - self.first_index
        if position < 0:
            raise IndexError("there is no such line")
        return self[position]

    # ---- For the reader

    def append(self, lines: Sequence[ShownLine]) -> None:
        """Add finished lines at the end."""
        self._lines.extend(lines)

    def prepend(self, lines: Sequence[ShownLine]) -> None:
        """Add finished lines at the start."""
        self._lines[:0] = lines
        self._first -= len(lines)

    def drop_first(self, count: int) -> None:
        """Forget the oldest lines."""
        del self._lines[:count]
        self._first += count

    def set_unfinished(self, line: ShownLine | None) -> None:
        """Put what there is of the last line in place of what there was."""
        self._last = line

    def set_marker(self, text: str) -> None:
        """Show this remark before the first line; an empty text takes it away."""
        self._marker = LogLine(text, (), True) if text else None


def _whole(line: ShownLine) -> LogLine:
    return LogLine(line) if isinstance(line, str) else line
