"""The pane below the list: the details or the log of the job under the cursor.

What it shows is imported when it is first opened: the first rows of the list do not wait for it.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from textual.containers import Vertical
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget

from tfjobtui.errors import QueryError
from tfjobtui.model.job import Job
from tfjobtui.monitor.view import Row
from tfjobtui.schedulers.scheduler import JobDetails, PriorityFactor, Target
from tfjobtui.ui.services import Services

if TYPE_CHECKING:
    from tfjobtui.ui.widgets.details import DetailsView, Shown
    from tfjobtui.ui.widgets.log_view import LogView

REST_S = 0.35
"""How long the cursor must rest before its job is asked for."""


class JobPane(Vertical):
    """Follows the cursor while it is open."""

    DEFAULT_CSS = """
    JobPane {
        height: 55%;
        border-top: solid $primary;
        display: none;
        &.-open { display: block; }
        &.-full { height: 1fr; border-top: none; }
        & > * { height: 1fr; }
        &:ansi { border-top: solid ansi_default; }
    }
    """

    class DetailsRead(Message):
        """The details of a job came in, or could not be had (then the note says why)."""

        def __init__(self, row: Row, details: JobDetails | None, note: str) -> None:
            super().__init__()
            self.row = row
            self.details = details
            self.note = note

    def __init__(self, services: Services, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._services = services
        self._row: Row | None = None
        self._rest: Timer | None = None
        self._details: DetailsView | None = None
        self._log: LogView | None = None

    def on_mount(self) -> None:
        self.set_interval(self._services.config.poll.details_s, self._details_due)

    @property
    def is_open(self) -> bool:
        return self._details is not None or self._log is not None

    @property
    def view(self) -> Widget | None:
        """What the open pane shows."""
        return self._details or self._log

    @property
    def log_path(self) -> Path | None:
        """The log in view, if it is one and its file is there."""
        return self._log.path if self._log is not None else None

    async def open_details(self, row: Row) -> bool:
        """Show the details; false if they were open already: then they get the focus."""
        if self._details is not None:
            self._details.focus()
            return False
        from tfjobtui.ui.widgets.details import DetailsView

        await self.close()
        self._details = DetailsView(id="pane-view")
        await self._show(self._details, row)
        return True

    async def open_log(self, row: Row) -> bool:
        """Show the log; false if it was open already: then it gets the focus."""
        if self._log is not None:
            self._log.focus()
            return False
        from tfjobtui.ui.widgets.log_view import LogView, locator

        await self.close()
        self._log = LogView(locator(self._services.scheduler), id="pane-view")
        await self._show(self._log, row)
        return True

    async def _show(self, view: Widget, row: Row) -> None:
        self.add_class("-open")
        await self.mount(view)
        self.follow(row, is_moving=True)
        self._cursor_rests()

    async def close(self) -> None:
        """Show nothing."""
        self._details = self._log = None
        self.remove_class("-open", "-full")
        await self.remove_children()

    def toggle_full(self) -> bool:
        """Full size, or back; true if it is in full size now."""
        return self.toggle_class("-full").has_class("-full")

    @property
    def is_full(self) -> bool:
        return self.has_class("-full")

    # -- following the cursor -------------------------------------------------------------

    def follow(self, row: Row | None, *, is_moving: bool) -> None:
        """Show at once what the queue told of the row; the rest once the cursor rests."""
        self._row = row
        if not self.is_open:
            return
        if self._details is not None:
            shown = self._shown(row)
            is_same = shown.row is not None and self._details.shown.row is not None
            is_same = is_same and shown.row.key == self._details.shown.row.key  # type: ignore[union-attr]
            self._details.show_job(shown)
            if is_same and not is_moving:
                return
        if self._rest is not None:
            self._rest.stop()
        self._rest = self.set_timer(REST_S, self._cursor_rests)

    def _shown(self, row: Row | None) -> Shown:
        """The row, with what was read of it before if it is the same job."""
        from tfjobtui.ui.widgets.details import Shown

        assert self._details is not None
        before = self._details.shown
        if row is None or before.row is None or before.row.key != row.key:
            return Shown(row)
        return Shown(row, before.details, before.priority, before.note)

    def _cursor_rests(self) -> None:
        if self._log is not None:
            self._log.show_job(log_job(self._row))
        elif self._details is not None and self._row is not None:
            self.run_worker(self._read_details(self._row), group="details", exclusive=True)

    def _details_due(self) -> None:
        """The details of the job in view again, unless it has ended or nobody looks."""
        row = self._row
        if (
            self._details is None
            or row is None
            or row.job.state.is_terminal
            or self.app.screen is not self.screen
        ):
            return
        if not self._services.poller.pace.is_resting(time.monotonic()):
            self.run_worker(self._read_details(row), group="details", exclusive=True)

    async def _read_details(self, row: Row) -> None:
        job = row.members[0] if row.members else row.job
        details: JobDetails | None = None
        try:
            details = await self._services.scheduler.details(Target.of(job))
            note = "" if details else "The scheduler no longer has this job; this is what was seen of it."
        except QueryError as error:
            note = f"More could not be read: {error.message}"
        self.post_message(self.DetailsRead(row, details, note))

    def on_job_pane_details_read(self, message: DetailsRead) -> None:
        message.stop()
        row = self._row
        if self._details is None or row is None or row.key != message.row.key:
            return
        from tfjobtui.ui.widgets.details import Shown

        before = self._shown(row)
        details = message.details or before.details
        self._details.show_job(Shown(row, details, before.priority, message.note))

    def show_priority(self, row: Row, factors: tuple[PriorityFactor, ...]) -> None:
        """Add the factors of its priority to the details of that row."""
        if self._details is None or self._row is None or self._row.key != row.key:
            return
        from tfjobtui.ui.widgets.details import Shown

        before = self._shown(self._row)
        self._details.show_job(Shown(self._row, before.details, factors, before.note))


def log_job(row: Row | None) -> Job | None:
    """The job whose log is meant: of a folded array its first task that has one."""
    if row is None:
        return None
    return next((job for job in row.members if job.id.task is not None), row.job)
