"""The commands that were run for the user, with their own words."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Sequence
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message

from tfjobtui.actions.command_log import CommandLog, LogEntry
from tfjobtui.model.text import printable
from tfjobtui.model.units import clock
from tfjobtui.ui import clipboard
from tfjobtui.ui.screens.dialog import Dialog, bind, button, plain
from tfjobtui.ui.widgets.lines_view import LinesView

_GOOD = Style(color="green")
_BAD = Style(color="red", bold=True)
_DIM = Style(dim=True)
_MOST_LINES = 40
"""Lines of one command's output that are shown; the file has more."""


class EntriesView(LinesView):
    """The commands, of which one is the current one. j and k go from command to command."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bind("j,down", "entry(1)", "Next command", "log-next", show=False),
        bind("k,up", "entry(-1)", "Previous command", "log-previous", show=False),
        bind("g,home", "first", "First command", "log-first", show=False),
        bind("G,end", "last", "Last command", "log-last", show=False),
    ]

    class Moved(Message):
        """Another command is the current one."""

    def __init__(self, entries: Sequence[LogEntry], *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(self._all_lines, id=id)
        self.entries = tuple(entries)
        self.current = max(0, len(self.entries) - 1)
        self._starts: list[int] = []

    @property
    def entry(self) -> LogEntry | None:
        return self.entries[self.current] if self.entries else None

    def _all_lines(self, width: int) -> list[Text]:
        lines: list[Text] = []
        self._starts = []
        for number, entry in enumerate(self.entries):
            self._starts.append(len(lines))
            lines.extend(_entry_lines(entry, width, number == self.current))
        return lines

    def action_entry(self, by: int) -> None:
        self._go(self.current + by)

    def action_first(self) -> None:
        self._go(0)

    def action_last(self) -> None:
        self._go(len(self.entries) - 1)

    def _go(self, number: int) -> None:
        if self.entries:
            self.current = max(0, min(number, len(self.entries) - 1))
            self.show(self._all_lines)
            self.bring_in_sight()

    def bring_in_sight(self) -> None:
        """Scroll as little as needed for the current command to be seen, from its beginning."""
        if not self._starts:
            return
        ends = [*self._starts[1:], self.virtual_size.height]
        start, end = self._starts[self.current], ends[self.current]
        top, height = self.scroll_offset.y, self.size.height
        if start < top:
            top = start
        elif end > top + height:
            top = min(start, end - height)
        self.scroll_to(y=top, animate=False, immediate=True, force=True)


def _entry_lines(entry: LogEntry, width: int, is_current: bool) -> Iterator[Text]:
    """When, how it ended, what for; the command; its output."""
    record = entry.record
    ended = "no answer" if record.returncode is None else f"rc {record.returncode}"
    head = Text("▌" if is_current else " ", style="bold")
    head.append(f"{clock(record.started_at_s, time.time()):<12} ", style=_DIM)
    head.append(f"{ended:<10}", style=_GOOD if record.returncode == 0 else _BAD)
    head.append(f"{record.duration_s:6.2f} s  ", style=_DIM)
    head.append(printable(entry.purpose))
    head.truncate(width, overflow="ellipsis")
    yield head
    command = Text("  $ ", style=_DIM).append(printable(shlex.join(record.argv)), style="bold")
    yield from _folded(command, width)
    output = record.output.strip().splitlines()
    for line in output[:_MOST_LINES]:
        yield from _folded(Text("    ").append(printable(line)), width)
    if len(output) > _MOST_LINES:
        yield Text(f"    … {len(output) - _MOST_LINES} more lines", style=_DIM)
    yield Text()


def _folded(line: Text, width: int) -> Iterator[Text]:
    """The line in pieces that fit, nothing of it lost."""
    from rich.cells import chop_cells

    pieces = chop_cells(line.plain, width) or [""]
    at = 0
    for piece in pieces:
        yield line[at : at + len(piece)]
        at += len(piece)


class CommandLogScreen(Dialog[None]):
    """The command log, newest last; also of earlier sessions."""

    TITLE_TEXT = "Commands"
    LARGE = True
    AUTO_FOCUS = "#entries"
    GUARDED: ClassVar[frozenset[str]] = frozenset()
    BINDINGS: ClassVar[list[BindingType]] = [
        bind("y", "copy", "Copy", "log-copy", "Copy the current command"),
        bind("at", "leave", "Close", "log-close", "Close the command log"),
    ]
    DEFAULT_CSS = """
    CommandLogScreen #entries { height: 1fr; }
    """

    def __init__(self, log: CommandLog) -> None:
        super().__init__()
        self._log = log

    def compose_body(self) -> ComposeResult:
        entries = self._entries()
        if self._log.problem:
            yield plain(printable(self._log.problem), "warning")
        if not entries:
            yield plain("No command has been run yet.", "note")
        yield EntriesView(entries, id="entries")

    def _entries(self) -> list[LogEntry]:
        """The file's entries, and those of this session that the file could not take."""
        earlier = self._log.earlier()
        if not self._log.problem and earlier:
            return list(earlier)
        written = {_identity(entry) for entry in earlier}
        return [*earlier, *(entry for entry in self._log if _identity(entry) not in written)]

    def compose_buttons(self) -> ComposeResult:
        yield button("Copy", "copy", "y")
        yield button("Close", "leave", "esc")

    def on_mount(self) -> None:
        super().on_mount()
        self.call_after_refresh(self.query_one(EntriesView).bring_in_sight)

    async def action_copy(self) -> None:
        entry = self.query_one(EntriesView).entry
        if entry is not None:
            how = await clipboard.copy(self.app, shlex.join(entry.record.argv))
            self.app.notify(f"The command: {how}", markup=False)


def _identity(entry: LogEntry) -> tuple[object, ...]:
    return (entry.record.argv, entry.record.started_at_s)
