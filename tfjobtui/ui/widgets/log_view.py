"""A job's log, drawn line by line: it opens at the end, follows, and styles only what is in sight."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.segment import Segment
from rich.style import Style as RichStyle
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.timer import Timer

from tfjobtui.actions import logfiles
from tfjobtui.errors import TfjobtuiError
from tfjobtui.logs.kept import LogLines
from tfjobtui.logs.lines import LogLine
from tfjobtui.logs.location import LogLocation, LogQuery
from tfjobtui.logs.reader import ChangeKind, LogChange, LogReader
from tfjobtui.model.job import Job
from tfjobtui.model.stream import Stream
from tfjobtui.model.text import printable
from tfjobtui.model.units import size as size_text
from tfjobtui.schedulers.scheduler import Scheduler, Target
from tfjobtui.ui import clipboard
from tfjobtui.ui.widgets.log_rows import (
    MARKER,
    Rows,
    cut_in_the_middle,
    poll,
    segments_of,
    wrap_cuts,
)

Locate = Callable[[Job, Stream], Awaitable[LogLocation]]
"""Finds a job's log; it may ask the scheduler."""

POLL_S = 0.5
"""How often a file that grows is looked at."""
QUIET_POLL_S = 5.0
"""How often one is looked at that has not grown for a while."""
BACK_OFF = 1.5
HIDDEN_S = 1.0
"""How often is looked whether the view has come in sight again (not at the file)."""
LOCATE_S = 30.0
"""How often a log that is not there is looked for anew."""
AFTER_END_S = 60.0
"""How long a file may still grow after its job's end: the epilog, and delays of network file systems."""
REPAINT_S = 0.25
TAIL_BYTES = 128 * 1024
"""How much of the end is read at first, and with each step back: enough for a screen, little enough to be quick."""
MAX_FILLS = 64
"""How many blocks are read to fill the screen, where the log's end is progress bars: megabytes for a line."""
SHIFT = 8
"""Columns that the left and right keys move by."""


_UNKNOWN = LogLocation(None, False, "Nothing is known of this job's log.", ())


def locator(scheduler: Scheduler) -> Locate:
    """Locate logs with what this scheduler knows."""

    async def locate(job: Job, stream: Stream) -> LogLocation:
        return await logfiles.find(scheduler, Target.of(job), job, stream) or _UNKNOWN

    return locate


def _bind(keys: str, action: str, description: str, name: str, tooltip: str) -> Binding:
    return Binding(keys, action, description, id=f"log.{name}", tooltip=tooltip, show=False)


class LogView(ScrollView, can_focus=True):
    """Shows the log of one job, and follows it."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "log-view--title",
        "log-view--good",
        "log-view--paused",
        "log-view--note",
    }
    DEFAULT_CSS = """
    LogView {
        height: 1fr;
        background: $background;
        overflow-x: hidden;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
        scrollbar-size-horizontal: 0;
        & > .log-view--title { text-style: bold; background: $panel; color: $foreground; }
        & > .log-view--good { background: $panel; color: $success; }
        & > .log-view--paused { background: $panel; color: $warning; text-style: bold; }
        & > .log-view--note { color: $foreground 70%; text-style: italic; }
        &:ansi {
            background: ansi_default;
            & > .log-view--title { background: ansi_default; color: ansi_default; text-style: bold underline; }
            & > .log-view--good { background: ansi_default; color: ansi_green; text-style: underline; }
            & > .log-view--paused { background: ansi_default; color: ansi_yellow; text-style: bold underline; }
            & > .log-view--note { color: ansi_default; text-style: italic; }
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        _bind("j,down", "lines(1)", "Down", "down", "One line down"),
        _bind("k,up", "lines(-1)", "Up", "up", "One line up; stops following"),
        _bind("g,home", "top", "Top", "top", "To the first line that can be shown"),
        _bind("G,end,F", "follow", "Follow", "follow", "To the end, and on with what is written"),
        _bind("ctrl+d", "pages(0.5)", "Half a page down", "half-down", "Half a page down"),
        _bind("ctrl+u", "pages(-0.5)", "Half a page up", "half-up", "Half a page up"),
        _bind("pagedown,ctrl+f", "pages(1)", "Page down", "page-down", "A page down"),
        _bind("pageup,ctrl+b", "pages(-1)", "Page up", "page-up", "A page up"),
        _bind("right", "shift(1)", "Right", "right", "Show what stands further right in long lines"),
        _bind("left", "shift(-1)", "Left", "left", "Back to the left"),
        _bind("w", "wrap", "Wrap", "wrap", "Break long lines, or show them as one row each"),
        _bind(
            "o", "other_stream", "Stdout/stderr", "stream", "Show standard error, or standard output again"
        ),
        _bind("y", "copy_path", "Copy path", "copy", "Copy the log's path"),
    ]

    class Located(Message):
        """The view shows another file, or none."""

        def __init__(self, path: Path | None) -> None:
            super().__init__()
            self.path = path

    def __init__(self, locate: Locate, *, wrap: bool = True, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._locate = locate
        self._wrap = wrap
        self._job: Job | None = None
        self._stream = Stream.STDOUT
        self._styles: dict[str, RichStyle] = {}
        self._wake = asyncio.Event()
        self._timer: Timer | None = None
        self._painted_at = 0.0
        self._is_placing = False
        self._width = 0
        """The columns beside the scroll bar."""
        self._forget()

    def _forget(self) -> None:
        """Nothing is known yet of the log that is to be shown."""
        self._location: LogLocation | None = None
        self._located_at = 0.0
        self._is_moved = False
        self._reader: LogReader | None = None
        self._rows = Rows(LogLines())
        self._message = ""
        self._delay_s = POLL_S
        self._ended_at: float | None = None
        self._is_following = True
        self._wants_earlier = False
        self._wants_top = False
        self._fills = MAX_FILLS
        self._row = 0
        self._origin = 0
        """The first row when the scroll bar was set last; earlier lines may have come in since."""
        self._changed_row = 0
        self._drawn: tuple[int, int] | None = None
        self._seen_end = 0
        self._left = 0

    # -- what is shown --------------------------------------------------------------------

    def show_job(self, job: Job | None, stream: Stream | None = None) -> None:
        """Show the log of this job; of the same job with other data, go on where the view stands.

        Without a stream, the one that was chosen last.
        """
        before, self._job = self._job, job
        stream = stream or self._stream
        if job is not None and before is not None and job.key == before.key and stream is self._stream:
            if LogQuery.of(job) != LogQuery.of(before):
                self._is_moved = True
                self._delay_s = POLL_S
                self._wake.set()
            return
        self._stream = stream
        self._start()

    def _start(self) -> None:
        had_path = self.path is not None
        self._forget()
        if had_path:
            self.post_message(self.Located(None))
        if self.is_mounted:
            self._place()
            self._keep_up_from_now()

    def on_mount(self) -> None:
        self._keep_up_from_now()

    def _keep_up_from_now(self) -> None:
        self.workers.cancel_group(self, "log")
        if self._job is not None:
            self.run_worker(self._keep_up(), group="log")

    @property
    def path(self) -> Path | None:
        """The file that is shown; `None` while there is none."""
        return self._reader.path if self._reader is not None and self._reader.lines else None

    @property
    def stream(self) -> Stream:
        return self._stream

    @property
    def is_following(self) -> bool:
        """Whether the view stays at the end of the log."""
        return self._is_following

    @property
    def new_lines(self) -> int:
        """Lines that have come since the view stopped following."""
        return 0 if self._is_following else self._finished - self._seen_end

    @property
    def _finished(self) -> int:
        """The number of the first line that is not finished."""
        if self._reader is None:
            return 0
        return self._reader.lines.end_index - self._reader.lines.has_unfinished

    @property
    def visible_text(self) -> str:
        """What is drawn, without styles."""
        return "\n".join(self.render_line(y).text.rstrip() for y in range(self.size.height))

    # -- keeping up with the file ---------------------------------------------------------

    async def _keep_up(self) -> None:
        """Look for the file and at it, for as long as the view is in sight; else only whether it is."""
        while True:
            self._wake.clear()
            delay: float | None = HIDDEN_S
            if self._is_in_sight:
                delay = await self._look()
            with suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._wake.wait()

    @property
    def _is_in_sight(self) -> bool:
        if not self.is_on_screen:
            return False
        for screen in reversed(self.app.screen_stack):
            if screen is self.screen:
                return True
            if screen.styles.background.a == 1:
                return False  # it covers everything; a dialog lets the view show through
        return False

    def on_show(self) -> None:
        self._wake.set()

    async def _look(self) -> float | None:
        """One look; gives the time to the next, `None` where nothing more is to be expected."""
        try:
            if self._must_locate():
                await self._find()
            if self._reader is None:
                return self._next_delay(has_grown=False)
            change = await self._read(self._reader)
        except (TfjobtuiError, OSError) as error:
            self._say(str(error))
            return QUIET_POLL_S
        if change.is_behind or self._wants_earlier:
            return 0
        return self._next_delay(has_grown=change.kind is not ChangeKind.NONE)

    def _next_delay(self, *, has_grown: bool) -> float | None:
        delay = POLL_S if has_grown else self._delay_s
        self._delay_s = min(delay * BACK_OFF, QUIET_POLL_S)
        return None if self._is_over(time.time()) and not has_grown else delay

    def _is_over(self, now: float) -> bool:
        """Whether the job has ended so long ago that nothing more is written."""
        if self._job is None or not self._job.state.is_terminal:
            self._ended_at = None
            return False
        if self._ended_at is None:
            self._ended_at = now if self._job.end_time_s is None else min(now, self._job.end_time_s)
        return now > self._ended_at + AFTER_END_S

    def _must_locate(self) -> bool:
        if self._location is None or self._is_moved:
            return True
        return self.path is None and time.monotonic() > self._located_at + LOCATE_S

    async def _find(self) -> None:
        """Ask where the log is; what is shown stays if it is still there."""
        assert self._job is not None
        self._is_moved = False
        location = await self._locate(self._job, self._stream)
        self._located_at = time.monotonic()
        before, self._location = self._location, location
        if self._reader is None or (before is not None and before.path != location.path):
            self._open(location)
        self._show_soon()

    def _open(self, location: LogLocation) -> None:
        if location.path is None or not (location.exists or location.may_appear):
            if self.path is None:
                self._reader = None
            return
        if self.path is not None and not location.exists:
            return  # what there is to see is better than what may come
        self._reader = LogReader(location.path, tail_bytes=TAIL_BYTES)
        self._rows = Rows(self._reader.lines, self._wrap_width)
        self._is_following, self._row, self._seen_end, self._changed_row = True, 0, 0, 0

    async def _read(self, reader: LogReader) -> LogChange:
        """Read on, in a thread: a network file system may take its time to answer."""
        had_path = self.path is not None
        change, lengths = await asyncio.to_thread(poll, reader)
        self._changed_row = min(self._changed_row, self._rows.update(change.first_changed, lengths))
        self._tell(change)
        if change.kind is not ChangeKind.NONE:
            self._show_soon()
        if self.path is not None and not had_path:
            self._has_appeared(self.path)
        if self._wants_earlier or self._has_room(reader):
            await self._read_back(reader)
        return change

    def _has_room(self, reader: LogReader) -> bool:
        """Whether there is room on the screen for lines before those that have been read."""
        return self._fills > 0 and 0 < self._rows.count < self.size.height and reader.has_earlier

    async def _read_back(self, reader: LogReader) -> None:
        """Read the block before the first line; all of them, if the first line is wanted."""
        change = await asyncio.to_thread(reader.load_earlier)
        self._rows.update(None)  # the lines that were there are as they were
        if self._wants_top:
            self._row = self._rows.top
        self._wants_top = self._wants_top and change.kind is ChangeKind.APPENDED
        self._fills -= 1
        self._wants_earlier = self._wants_top or self._has_room(reader)
        self._show_soon()

    def _has_appeared(self, path: Path) -> None:
        self.post_message(self.Located(path))
        if self._location is not None and not self._location.exists:
            self._is_moved = True  # why it was absent is no longer what is to be said
            self._wake.set()

    def _tell(self, change: LogChange) -> None:
        """Keep what is to be said about the file; while it has never been seen, its location says more."""
        if self.path is None and change.kind is not ChangeKind.ERROR:
            self._say("")
        elif not (change.kind is ChangeKind.NONE and change.message and self._message):
            self._say(change.message)

    def _say(self, message: str) -> None:
        if message != self._message:
            self._message = message
            self._show_soon()

    def _show_soon(self) -> None:
        """Draw what has changed, but not more often than a person can read."""
        if self._timer is not None:
            return
        wait = self._painted_at + REPAINT_S - time.monotonic()
        if wait <= 0:
            self._show_changes()
        else:
            self._timer = self.set_timer(wait, self._show_changes)

    def _show_changes(self) -> None:
        """Draw anew from the first row that is another; a progress bar is one line of many."""
        changed, before = self._changed_row, self._drawn
        self._arrange()
        if before is None or before != self._drawn:
            self.refresh()
            return
        top, head = before
        first = max(changed - top, 0) + head
        self.refresh(
            Region(0, 0, self.size.width, head),
            Region(0, first, self.size.width, max(0, self.size.height - first)),
        )

    # -- the place ------------------------------------------------------------------------

    @property
    def _wrap_width(self) -> int:
        return self._width if self._wrap else 0

    @property
    def _head(self) -> int:
        """How many lines at the top are not of the log: the title, and a note."""
        return 2 if self._rows.count and self._note else 1

    def _place(self) -> None:
        """Draw all of it anew."""
        self._arrange()
        self.refresh()

    def _arrange(self) -> None:
        """Scroll to the end while following, else to the same line as before."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        self._painted_at = time.monotonic()
        self._row = max(self._row, self._rows.top)
        self._is_placing = True
        try:
            self._set_height(self._rows.count + self._head)
            if self.max_scroll_y == 0 and not self._wants_top:
                self._is_following = True  # all of it is in sight
            y = self.max_scroll_y if self._is_following else self._row - self._rows.top
            if y != self.scroll_y:
                self.scroll_to(y=y, animate=False, force=True)
        finally:
            self._is_placing = False
        self._changed_row = self._rows.end
        self._origin = self._rows.top
        self._drawn = (self._rows.top + self.scroll_offset.y, self._head) if self._rows.count else None

    def _set_height(self, rows: int) -> None:
        """Set the virtual size. By plain assignment Textual would lay out and draw the whole screen again."""
        self.set_reactive(LogView.virtual_size, Size(self._width, rows))
        self.vertical_scrollbar.window_virtual_size = rows
        self.vertical_scrollbar.window_size = self.size.height

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if self._is_placing:
            return
        self._row = self._origin + round(new_value)
        self._wants_top = False
        if new_value >= self.max_scroll_y:
            self._go_on()
        elif new_value < old_value:
            self._stop_following()
            self._look_back()

    def _stop_following(self) -> None:
        if self._is_following:
            self._is_following = False
            self._seen_end = self._finished
            self.refresh()

    def _go_on(self) -> None:
        self._is_following = True
        self._wants_earlier = self._wants_top = False
        self.refresh()

    def _look_back(self) -> None:
        """Near the top: have the block before it read."""
        if self._reader is not None and self.scroll_y < self.size.height and self._reader.has_earlier:
            self._wants_earlier = True
            self._wake.set()

    def on_resize(self, event: events.Resize) -> None:
        self._width = max(0, self.scrollable_size.width)
        self._lay_out()

    def _lay_out(self) -> None:
        self._row = self._rows.rewrap(self._wrap_width, self._row)
        self._place()

    # -- drawing --------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        width = self._width
        head = self._head
        if y == 0:
            return self._title(width)
        if y < head:
            return self._text_line(cut_in_the_middle(f" {self._note}", width), width)
        if not self._rows.count:
            return self._explanation(y - 2, width)
        found = self._rows.at(self._origin + self.scroll_offset.y + y - head)
        base = self._style("")
        if found is None:
            return Strip.blank(width, base)
        line, part = found
        if not line.spans and not line.is_marker and line.text.isascii() and len(line.text) <= width:
            return Strip([Segment(line.text.ljust(width), base)], width)
        strip = self._wrapped(line, part, width) if self._wrap else self._single(line, width)
        return strip.apply_style(base).adjust_cell_length(width, base)

    @staticmethod
    def _wrapped(line: LogLine, part: int, width: int) -> Strip:
        cuts = wrap_cuts(line.text, width)
        return Strip(segments_of(line, *cuts[part])) if part < len(cuts) else Strip([])

    def _single(self, line: LogLine, width: int) -> Strip:
        """One row of a line that is not wrapped; `›` says that it goes on."""
        left, text = self._left, line.text
        if text.isascii():
            strip = Strip(segments_of(line, left, left + width))
            is_longer = len(text) > left + width
        else:
            whole = Strip(segments_of(line, 0, len(text)))
            is_longer = whole.cell_length > left + width
            strip = whole.crop(left, left + width)
        if is_longer:
            return Strip([*strip.crop(0, width - 1), Segment("›", MARKER)])
        return strip

    def _explanation(self, y: int, width: int) -> Strip:
        """Where there is no line to show: why."""
        room = max(10, width - 4)
        rows = list(_words(self._note, room))
        return self._text_line(f"  {rows[y]}" if 0 <= y < len(rows) else "", width)

    def _text_line(self, text: str, width: int) -> Strip:
        return Strip([Segment(set_cell_size(text, width), self._style("log-view--note"))], width)

    @property
    def _note(self) -> str:
        """What is to be said about the file, in a sentence."""
        if self._job is None:
            return "No job is in view."
        if self._message:
            return printable(self._message)
        if self._location is None:
            return "Looking for the log …"
        if self.path is None and self._location.exists:
            return self._on_emptiness()
        return printable(self._location.note)

    def _on_emptiness(self) -> str:
        if self._job is not None and self._job.state.is_active:
            return (
                "Nothing has been written yet. Python holds its output back when it goes to a file, "
                "unless it is started as `python -u` or with PYTHONUNBUFFERED=1."
            )
        return "The log is empty."

    def _title(self, width: int) -> Strip:
        right = [Segment(f" {text} ", self._style(name)) for text, name in self._status()]
        room = max(0, width - sum(cell_len(segment.text) for segment in right))
        left = Segment(set_cell_size(self._what(room), room), self._style("log-view--title"))
        return Strip([left, *right]).adjust_cell_length(width, self._style("log-view--title"))

    def _what(self, room: int) -> str:
        """Stream, file and size."""
        is_both = self._location is not None and self._location.same_as_stdout
        name = " stdout + stderr" if is_both else f" {self._stream.value}"
        path = self._location.path if self._location is not None else None
        path = self.path or path
        size = f"  {size_text(self._reader.size_bytes)}" if self._reader is not None and self.path else ""
        space = room - len(name) - len(size) - 2
        return f"{name}  {cut_in_the_middle(printable(str(path)), space)}{size}" if path else name

    def _status(self) -> Iterable[tuple[str, str]]:
        if self.path is None:
            return
        if self._wants_top:
            yield "reading back …", "log-view--paused"
        elif self._is_following:
            is_over = self._is_over(time.time())
            yield ("ended", "log-view--title") if is_over else ("following", "log-view--good")
        elif self.new_lines:
            lines = "line" if self.new_lines == 1 else "lines"
            yield f"+{self.new_lines} new {lines}, G: follow", "log-view--paused"
        else:
            yield "paused, G: follow", "log-view--paused"

    def _style(self, name: str) -> RichStyle:
        style = self._styles.get(name)
        if style is None:
            style = self.get_component_rich_style(name) if name else self.rich_style
            self._styles[name] = style
        return style

    def notify_style_update(self) -> None:
        """The theme has changed: styles are looked up again."""
        super().notify_style_update()
        self._styles.clear()

    # -- keys -----------------------------------------------------------------------------

    def action_lines(self, count: int) -> None:
        self._scroll_by(count)

    def action_pages(self, pages: float) -> None:
        self._scroll_by(int(max(1, self.size.height - self._head) * pages))

    def _scroll_by(self, rows: int) -> None:
        self.scroll_to(y=self.scroll_offset.y + rows, animate=False)
        if rows < 0:
            self._look_back()

    def action_top(self) -> None:
        """To the first line; what has not been read of the log is read for it, as far as it is kept."""
        if self._reader is None or not self._rows.count:
            return
        self._stop_following()
        self._row = self._rows.top
        self._wants_top = self._wants_earlier = True
        self._place()
        self._wake.set()

    def action_follow(self) -> None:
        self._go_on()
        self._place()
        self._wake.set()

    def action_shift(self, by: int) -> None:
        if not self._wrap:
            self._left = max(0, self._left + by * SHIFT)
            self.refresh()

    def action_wrap(self) -> None:
        self._wrap = not self._wrap
        self._left = 0
        self._lay_out()

    def action_other_stream(self) -> None:
        if self._location is not None and self._location.same_as_stdout:
            self.notify("Standard error goes into the same file.")
            return
        self._stream = Stream.STDERR if self._stream is Stream.STDOUT else Stream.STDOUT
        self._start()

    async def action_copy_path(self) -> None:
        path = self.path or (self._location.path if self._location is not None else None)
        if path is None:
            self.notify("There is no log whose path could be copied.", severity="warning")
            return
        how = await clipboard.copy(self.app, str(path))
        self.notify(f"{printable(str(path))}: {how}", markup=False)


def _words(text: str, width: int) -> Iterator[str]:
    """The text in rows, broken between words where possible."""
    row = ""
    for word in text.split():
        while cell_len(word) > width:
            if row:
                yield row
                row = ""
            piece = chop_cells(word, width)[0]
            yield piece
            word = word[len(piece) :]
        if row and cell_len(row) + 1 + cell_len(word) > width:
            yield row
            row = word
        else:
            row = f"{row} {word}" if row else word
    if row:
        yield row
