"""The job list, drawn line by line: only what is in sight costs anything, whatever the length of the queue."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import ClassVar

from rich.cells import set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tfjobtui.model.job import Job
from tfjobtui.monitor.columns import Placed
from tfjobtui.monitor.view import JobView, Row
from tfjobtui.ui.job_grid import GUTTER, JobGrid, fit, gutter
from tfjobtui.ui.looks import style_of

MANY = 5000
"""From here on arranging takes long enough to be felt if done in one go."""


def _bind(keys: str, action: str, description: str, name: str, tooltip: str) -> Binding:
    return Binding(keys, action, description, id=f"list.{name}", tooltip=tooltip, show=False)


class JobTable(ScrollView, can_focus=True):
    """Shows a `JobView`. It changes the view's cursor, marks and folding, and tells what it did."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "job-table--header",
        "job-table--cursor",
        "job-table--marked",
        "job-table--dim",
    }
    DEFAULT_CSS = """
    JobTable {
        height: 1fr;
        background: $background;
        scrollbar-size-vertical: 1;
        scrollbar-size-horizontal: 0;
        & > .job-table--header { text-style: bold; background: $panel; color: $foreground; }
        & > .job-table--cursor { background: $primary 40%; }
        & > .job-table--marked { background: $warning 20%; }
        & > .job-table--dim { color: $foreground 60%; }
        &:ansi {
            background: ansi_default;
            & > .job-table--header { background: ansi_default; color: ansi_default; text-style: bold underline; }
            & > .job-table--cursor { background: ansi_default; text-style: reverse; }
            & > .job-table--marked { background: ansi_default; text-style: bold; }
            & > .job-table--dim { color: ansi_default; text-style: dim; }
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        _bind("j,down", "move(1)", "Down", "down", "One job down"),
        _bind("k,up", "move(-1)", "Up", "up", "One job up"),
        _bind("g,home", "top", "Top", "top", "To the first job"),
        _bind("G,end", "bottom", "Bottom", "bottom", "To the last job"),
        _bind("ctrl+d", "page(0.5)", "Half a page down", "half-down", "Half a page down"),
        _bind("ctrl+u", "page(-0.5)", "Half a page up", "half-up", "Half a page up"),
        _bind("pagedown,ctrl+f", "page(1)", "Page down", "page-down", "A page down"),
        _bind("pageup,ctrl+b", "page(-1)", "Page up", "page-up", "A page up"),
        _bind("right", "columns(1)", "Columns right", "columns-right", "Show the columns further right"),
        _bind("left", "columns(-1)", "Columns left", "columns-left", "Show the columns further left"),
        _bind(
            "space", "mark", "Mark", "mark", "Mark or unmark the job; actions then apply to all marked jobs"
        ),
        _bind("v", "range", "Mark a range", "mark-range", "Begin a range of marks; a second time ends it"),
        _bind("asterisk", "mark_all", "Mark all", "mark-all", "Mark all jobs in view, or none"),
        _bind("f", "fold", "Fold", "fold", "Unfold the array under the cursor, or fold it again"),
        _bind("F", "fold_all", "Fold all", "fold-all", "Unfold all arrays, or fold them all"),
    ]

    class CursorMoved(Message):
        """The cursor stands on another row (or on none)."""

        def __init__(self, row: Row | None) -> None:
            super().__init__()
            self.row = row

    class Opened(Message):
        """A row was double-clicked."""

        def __init__(self, row: Row) -> None:
            super().__init__()
            self.row = row

    class MarksChanged(Message):
        """Jobs were marked or unmarked."""

    class SortChanged(Message):
        """The order was changed from the list's header."""

    def __init__(self, view: JobView, columns: Iterable[str] = (), *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.view = view
        self.grid = JobGrid(columns)
        self.empty_text = "Reading the queue …"
        self._range_from: str | None = None
        self._range_base: dict[str, Job] = {}
        self._cursor_line = 0
        self._drawn: dict[int, tuple[str, tuple[str, ...]]] = {}
        self._styles: dict[str, Style] = {}

    # -- what is shown --------------------------------------------------------------------

    def refresh_rows(self) -> None:
        """The view's rows have changed: keep the cursor's line where it stands on the screen."""
        before = self.scroll_offset.y
        line_before = self._cursor_line
        self.virtual_size = Size(self.size.width, len(self.view.rows) + 1)
        self._measure()
        if before > 0:
            self.scroll_to(
                y=max(0, self.view.cursor - line_before), animate=False, immediate=True, force=True
            )
        self._keep_in_sight()
        self.refresh()

    def show_columns(self, columns: Iterable[str]) -> None:
        """Show these columns, in this order."""
        self.grid.show_columns(columns)
        self._measure()
        self.refresh()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns' names in their order, those that do not fit among them."""
        return self.grid.columns

    def _measure(self) -> None:
        self.grid.measure(self.view.rows, self.scroll_offset.y, time.time())

    def _room(self) -> int:
        return self.size.width - self.scrollbar_size_vertical

    def _layout(self) -> list[Placed]:
        return self.grid.place(self._room(), self.view.sort)

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y == 0:
            return self._header(width)
        index = y - 1 + self.scroll_offset.y
        if index >= len(self.view.rows):
            return self._blank(y, width)
        now = time.time()
        row = self.view.rows[index]
        self._layout()
        cells = self.grid.cells(row, now)
        self._drawn[y] = (row.key, cells)
        return self._row(row, cells, index == self.view.cursor, width)

    def _blank(self, y: int, width: int) -> Strip:
        self._drawn.pop(y, None)
        text = f"  {self.empty_text}" if not self.view.rows and y == 2 else ""
        return Strip([Segment(set_cell_size(text, width), self._style("job-table--dim"))], width)

    def _style(self, name: str) -> Style:
        style = self._styles.get(name)
        if style is None:
            style = self._styles[name] = self.get_component_rich_style(name) if name else self.rich_style
        return style

    def notify_style_update(self) -> None:
        """The theme has changed: styles are looked up again."""
        super().notify_style_update()
        self._styles.clear()

    def _header(self, width: int) -> Strip:
        text = self.grid.header(self._room(), self.view)
        return Strip([Segment(set_cell_size(text, width), self._style("job-table--header"))], width)

    def _row(self, row: Row, cells: tuple[str, ...], is_cursor: bool, width: int) -> Strip:
        marked = self.view.is_marked(row)
        base = self._style("job-table--dim" if row.job.state.is_terminal else "")
        if marked:
            base += _background(self._style("job-table--marked"))
        if is_cursor:
            base += _background(self._style("job-table--cursor"))
        segments = [Segment(gutter(row, marked), base)]
        used = GUTTER
        for placed, text in zip(self._layout(), cells, strict=True):
            style = base
            if placed.column.name == "state":
                style = base + style_of(row.job.state)
            segments.append(Segment(fit(text, placed.width, placed.column.right) + " ", style))
            used += placed.width + 1
        if used < width:
            segments.append(Segment(" " * (width - used), base))
            return Strip(segments, width)
        return Strip(segments, used).crop(0, width)

    def tick(self) -> None:
        """Repaint the lines whose texts the clock has changed."""
        now = time.time()
        self._layout()
        for y, (key, cells) in list(self._drawn.items()):
            index = y - 1 + self.scroll_offset.y
            if y >= self.size.height or index >= len(self.view.rows):
                continue
            row = self.view.rows[index]
            if row.key == key and self.grid.cells(row, now) != cells:
                self.refresh(Region(0, y, self.size.width, 1))

    # -- the cursor -----------------------------------------------------------------------

    @property
    def page_rows(self) -> int:
        return max(1, self.size.height - 1)

    def move_to(self, index: int) -> None:
        """Put the cursor on a row, and bring it in sight."""
        before = self.view.cursor
        self.view.move_to(index)
        if self._range_from is not None:
            self._mark_range()
            self.refresh()
        scrolled = self._keep_in_sight()
        if not scrolled:
            for line in (before, self.view.cursor):
                self.refresh(Region(0, line + 1 - self.scroll_offset.y, self.size.width, 1))
        if before != self.view.cursor:
            self.post_message(self.CursorMoved(self.view.current))

    def _keep_in_sight(self) -> bool:
        """Scroll as little as needed; true if it had to."""
        top, cursor = self.scroll_offset.y, self.view.cursor
        wanted = top
        if cursor < top:
            wanted = cursor
        elif cursor >= top + self.page_rows:
            wanted = cursor - self.page_rows + 1
        if wanted != top:
            self.scroll_to(y=wanted, animate=False, immediate=True, force=True)
            self.refresh()
        self._cursor_line = cursor - wanted
        return wanted != top

    def on_resize(self, event: events.Resize) -> None:
        self.virtual_size = Size(self.size.width, len(self.view.rows) + 1)
        self._keep_in_sight()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._cursor_line = self.view.cursor - round(new_value)

    def action_move(self, lines: int) -> None:
        self.move_to(self.view.cursor + lines)

    def action_page(self, pages: float) -> None:
        self.move_to(self.view.cursor + int(self.page_rows * pages))

    def action_top(self) -> None:
        self.move_to(0)

    def action_bottom(self) -> None:
        self.move_to(len(self.view.rows) - 1)

    def action_columns(self, by: int) -> None:
        """Shift the columns: on a narrow terminal the others come in sight."""
        self._layout()
        if by < 0 or self.grid.hides_columns:
            first = self.grid.first_column + by
            self.grid.first_column = max(0, min(len(self.columns) - 2, first))
            self.refresh()

    # -- marks and folding ----------------------------------------------------------------

    def action_mark(self) -> None:
        if self.view.current is not None:
            self.view.toggle_mark(self.view.current)
            self.post_message(self.MarksChanged())
            self.move_to(self.view.cursor + 1)
            self.refresh()

    def action_range(self) -> None:
        if self._range_from is None and self.view.current is not None:
            self._range_from = self.view.current.key
            self._range_base = dict(self.view.marks)
            self._mark_range()
        else:
            self._range_from = None
        self.refresh()

    def _mark_range(self) -> None:
        """Mark from where the range began to the cursor; what was marked before it stays marked."""
        start = next((i for i, row in enumerate(self.view.rows) if row.key == self._range_from), None)
        if start is None:
            self._range_from = None
            return
        self.view.marks = dict(self._range_base)
        first, last = sorted((start, self.view.cursor))
        self.view.mark(self.view.rows[first : last + 1])
        self.post_message(self.MarksChanged())

    def action_mark_all(self) -> None:
        self.view.mark_all()
        self.post_message(self.MarksChanged())
        self.refresh()

    def clear_marks(self) -> bool:
        """Drop all marks (and a range that is being drawn); false if there were none."""
        had = bool(self.view.marks) or self._range_from is not None
        self._range_from = None
        self.view.marks.clear()
        if had:
            self.post_message(self.MarksChanged())
            self.refresh()
        return had

    def action_fold(self) -> None:
        if self.view.toggle_fold():
            self.refresh_rows()
            self.post_message(self.CursorMoved(self.view.current))
            return
        row = self.view.current
        if row is not None and row.job.id.tasks is not None:
            words = f"The {row.job.task_count} tasks of {row.job.id.job} wait as one; each has a row once it starts."
            self.app.notify(words, markup=False)
        else:
            self.app.notify("This job is no array.", markup=False)

    def action_fold_all(self) -> None:
        self.view.fold_all(bool(self.view.open_arrays))
        self.refresh_rows()

    # -- the mouse ------------------------------------------------------------------------

    def on_click(self, event: events.Click) -> None:
        if event.y == 0:
            self._click_header(event.x)
            return
        index = event.y - 1 + self.scroll_offset.y
        if index >= len(self.view.rows):
            return
        row = self.view.rows[index]
        self.move_to(index)
        if event.ctrl or event.x == 0:
            self.view.toggle_mark(row)
            self.post_message(self.MarksChanged())
            self.refresh()
        elif event.x == 1 and row.members:
            self.action_fold()
        elif event.chain == 2:
            self.post_message(self.Opened(row))

    def _click_header(self, x: int) -> None:
        left = GUTTER
        for placed in self._layout():
            if left <= x <= left + placed.width:
                self.sort_by(placed.column.name)
                return
            left += placed.width + 1

    def sort_by(self, column: str) -> None:
        """Sort by a column; by the same once more: reversed; a third time: the usual order."""
        self.view.set_sort(column)
        self.rearrange()
        self.post_message(self.SortChanged())

    def rearrange(self) -> None:
        """Arrange the rows anew after a change of order or filter; a long list in slices, so that keys go on."""
        if self.view.total <= MANY:
            self.view.rebuild()
            self.refresh_rows()
        else:
            self.run_worker(self._rearrange_slowly(), group="rearrange", exclusive=True)

    async def _rearrange_slowly(self) -> None:
        for _ in self.view.rebuild_steps():
            await asyncio.sleep(0)
        self.refresh_rows()


def _background(style: Style) -> Style:
    """What marks a line: its background and attributes, not the colour of its text."""
    return Style(bgcolor=style.bgcolor, reverse=style.reverse, bold=style.bold)
