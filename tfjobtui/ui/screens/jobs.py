"""The main screen: the list of jobs, and a pane below it with the details or the log of the one in view."""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import Callable, Coroutine
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from tfjobtui.errors import TfjobtuiError, UsageError
from tfjobtui.model.text import printable
from tfjobtui.model.units import duration
from tfjobtui.monitor.columns import COLUMNS
from tfjobtui.monitor.poller import RefreshFailed
from tfjobtui.monitor.view import JobView
from tfjobtui.schedulers.scheduler import Submitted, Target
from tfjobtui.ui.job_grid import chosen_columns
from tfjobtui.ui.messages import QueueNotRead, QueueRead
from tfjobtui.ui.preferences import remember
from tfjobtui.ui.services import Services
from tfjobtui.ui.status import Freshness, status_parts, trouble
from tfjobtui.ui.widgets.bars import Bar, KeyHints
from tfjobtui.ui.widgets.filter_bar import FilterBar
from tfjobtui.ui.widgets.job_pane import JobPane
from tfjobtui.ui.widgets.job_table import JobTable

if TYPE_CHECKING:
    from tfjobtui.ui.job_actions import JobActions


def _bind(keys: str, action: str, description: str, name: str, tooltip: str) -> Binding:
    return Binding(keys, action, description, id=f"jobs.{name}", tooltip=tooltip, show=False)


HINTS = (
    ("jobs.details", "enter", "details"),
    ("jobs.log", "l", "log"),
    ("jobs.cancel", "x", "cancel"),
    ("jobs.submit", "n", "submit"),
    ("jobs.resubmit", "r", "resubmit"),
    ("jobs.shell", "s", "shell"),
    ("jobs.filter", "/", "filter"),
    ("list.mark", "space", "mark"),
    ("jobs.everyone", "a", "everyone"),
    ("app.help", "?", "help"),
    ("app.quit", "q", "quit"),
)
"""Bindings by their ids, their usual keys, and the words for them, the most important first."""
_NEEDS = {
    "jobs.submit": "submit",
    "jobs.resubmit": "submit",
    "jobs.shell": "shell",
    "jobs.everyone": "everyone",
}
"""What an action needs the scheduler to be able to do: a field of `Capabilities`."""
PANE_HINTS = (
    ("", "tab", "to the list"),
    ("jobs.zoom", "z", "full size"),
    ("jobs.back", "esc", "close"),
    ("app.help", "?", "help"),
)

SLOW_S = 3.0
"""From here on the first answer is late enough to say so."""


class JobsScreen(Screen[None]):
    """Jobs, live. What is done with them is in `JobActions`."""

    DEFAULT_CSS = """
    JobsScreen {
        JobTable.-away { display: none; }
        #trouble { display: none; }
        #trouble.-on { display: block; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        _bind("enter", "details", "Details", "details", "Everything about the job under the cursor"),
        _bind("l", "log", "Log", "log", "Follow the job's log"),
        _bind("escape", "back", "Back", "back", "Close the pane, drop the marks or the filter"),
        _bind("z", "zoom", "Full size", "zoom", "The pane in full size, or back"),
        _bind(
            "slash", "filter", "Filter", "filter", "Filter the list: state:run gpu:>0 name:bert* -part:cpu"
        ),
        _bind(
            "x,delete", "cancel", "Cancel", "cancel", "Cancel the job or the marked jobs, or send a signal"
        ),
        _bind("h", "hold", "Hold", "hold", "Keep waiting jobs from starting"),
        _bind("u", "release", "Release", "release", "Let held jobs go"),
        _bind(
            "R", "requeue", "Requeue", "requeue", "Stop the job and put it in the queue again, under its id"
        ),
        _bind("c", "change", "Change", "change", "Change the time limit, partition and other fields"),
        _bind("n", "submit", "Submit", "submit", "Submit a job from a template"),
        _bind("r", "resubmit", "Resubmit", "resubmit", "Submit the same job again"),
        _bind("s", "shell", "Shell", "shell", "Open a shell inside the running job's allocation"),
        _bind("p", "priority", "Priority", "priority", "The factors of a waiting job's priority"),
        _bind("a", "everyone", "Everyone", "everyone", "All users' jobs, or only your own"),
        _bind("ctrl+r,f5", "refresh", "Refresh", "refresh", "Read the queue now"),
        _bind("o", "sort", "Sort", "sort", "Choose the column to sort by"),
        _bind("O", "reverse", "Reverse", "reverse", "Reverse the order"),
        _bind("C", "choose_columns", "Columns", "columns", "Choose the columns and their order"),
        _bind("y", "copy", "Copy id", "copy", "Copy the job's id, or the ids of the marked jobs"),
        _bind("e", "edit", "Edit", "edit", "Open the log in view, or else the job's script, in $EDITOR"),
        _bind("D", "forget", "Clear ended", "forget", "Take the ended jobs off the list"),
        _bind(
            "i", "cluster", "Cluster", "cluster", "Partitions and nodes: what is free, and who holds the rest"
        ),
        _bind(
            "at",
            "command_log",
            "Commands",
            "commands",
            "The commands that were run for you, and their answers",
        ),
    ]

    BURST_S: ClassVar[float] = 0.03
    """Keys that follow each other more quickly were not typed."""

    def __init__(self, services: Services, view: JobView) -> None:
        super().__init__()
        self.services = services
        self.view = view
        self._freshness = Freshness()
        self._await_id: Submitted | None = None

    def compose(self) -> ComposeResult:
        yield Bar(id="status")
        yield Bar(id="trouble")
        yield JobTable(self.view, chosen_columns(self.services.config, False), id="jobs")
        yield JobPane(self.services, id="pane")
        yield KeyHints(id="hints")

    def on_mount(self) -> None:
        self.table.focus()
        self.run_worker(self._watch_queue(), group="queue", name="queue")
        self.set_interval(1.0, self._tick)
        for warning in self.services.config.warnings:
            self.app.notify(warning, severity="warning", markup=False)
        self._show_status()

    @property
    def table(self) -> JobTable:
        return self.query_one(JobTable)

    @property
    def pane(self) -> JobPane:
        return self.query_one(JobPane)

    @cached_property
    def actions(self) -> JobActions:
        """What the keys do to jobs."""
        from tfjobtui.ui.job_actions import JobActions

        return JobActions(self.app, self.services)

    # -- the queue ------------------------------------------------------------------------

    async def _watch_queue(self) -> None:
        """Take a reading, arrange the view in slices, post one message."""
        poller = self.services.poller
        async for update in poller.updates():
            if isinstance(update, RefreshFailed):
                self.post_message(QueueNotRead(update))
                continue
            if update.changes or update.is_first or self._freshness.scope_changed(poller.everyone):
                for _ in self.view.show_steps(dict(poller.store.jobs)):
                    await asyncio.sleep(0)
            self.post_message(QueueRead(update))

    def on_queue_read(self, message: QueueRead) -> None:
        update = message.update
        first = self._freshness.read(update, self.services.poller.last_good_at)
        table = self.table
        self._show_empty_text()
        if update.changes or update.is_first or first:
            table.refresh_rows()
        if self._await_id is not None:
            self._select_submitted()
        if update.changes or first:
            self.pane.follow(self.view.current, is_moving=False)
        for problem in update.problems[:1]:
            self.app.notify(
                printable(problem), title="A row could not be read", severity="warning", markup=False
            )
        self._show_status()
        if first:
            self.set_timer(0.5, self.app.first_rows_shown)  # type: ignore[attr-defined]

    def on_queue_not_read(self, message: QueueNotRead) -> None:
        self._freshness.failed(message.update)
        self._show_empty_text()
        self.table.refresh()
        self._show_status()

    def _show_empty_text(self) -> None:
        fresh = self._freshness
        if fresh.reason and not self.view.total:
            text = f"The queue could not be read: {fresh.reason}"
        elif self.view.filter and self.view.total:
            text = f"None of {self.view.total} jobs matches the filter.  Esc drops it."
        elif not fresh.has_read:
            waited = fresh.waited_s()
            text = "Reading the queue …"
            if waited > SLOW_S:
                text += f"  There was no answer for {duration(waited)}; `tfjobtui doctor` may tell why."
        elif self.services.poller.everyone:
            text = "Nobody has a job in the queue."
        else:
            others = ", a shows everybody's" if self.services.scheduler.capabilities.everyone else ""
            text = f"You have no jobs in the queue.  n submits one{others}."
        self.table.empty_text = text

    def _tick(self) -> None:
        """Once a second: the times that run, and the age of what is shown."""
        if self.app.screen is not self:  # behind a dialog: drawing it would redraw the whole screen
            return
        self.table.tick()
        if not self._freshness.has_read and not self.view.total:
            self._show_empty_text()
            self.table.refresh()
        self._show_status()

    def _show_status(self) -> None:
        left, right = status_parts(self.services, self.view, self._freshness)
        self.query_one("#status", Bar).show(left, right)
        words = trouble(self._freshness)
        bar = self.query_one("#trouble", Bar)
        bar.show([(f" {words} ", "bar--warning")])
        bar.set_class(bool(words) and bool(self.view.total), "-on")
        in_pane = self.pane.is_open and self.pane.has_focus_within
        hints = self._hints(in_pane)
        about = self.services.scheduler.capabilities
        grey = [key for name, key, _ in hints if not getattr(about, _NEEDS.get(name, ""), True)]
        self.query_one(KeyHints).show_keys([(key, words) for _, key, words in hints], grey)

    def _hints(self, in_pane: bool) -> list[tuple[str, str, str]]:
        """Actions, keys and words, with the keys that the user has set."""
        changed = self.services.config.keys
        hints = PANE_HINTS if in_pane else HINTS
        return [(name, changed.get(name, key).split(",")[0], words) for name, key, words in hints]

    # -- the pane -------------------------------------------------------------------------

    def on_job_table_cursor_moved(self, message: JobTable.CursorMoved) -> None:
        self.pane.follow(message.row, is_moving=True)

    def on_job_table_marks_changed(self) -> None:
        self._show_status()

    def on_job_table_sort_changed(self) -> None:
        remember(sort=f"{'-' if self.view.reverse else ''}{self.view.sort}")
        self._show_status()

    def on_job_table_opened(self) -> None:
        self.run_worker(self.action_details())

    async def action_details(self) -> None:
        if self.view.current is not None:
            await self.pane.open_details(self.view.current)
            self._show_status()

    async def action_log(self) -> None:
        if self.view.current is not None:
            await self.pane.open_log(self.view.current)
            self._show_status()

    def action_zoom(self) -> None:
        if self.pane.is_open and self.pane.view is not None:
            full = self.pane.toggle_full()
            self.table.set_class(full, "-away")
            self.pane.view.focus()

    async def action_back(self) -> None:
        """One step back: full size, pane, range and marks, filter."""
        if self.pane.is_full:
            self.action_zoom()
        elif self.pane.is_open:
            if self.pane.has_focus_within:
                self.table.focus()
            await self.pane.close()
        elif not self.table.clear_marks() and self.view.filter:
            self._apply_filter("")
        self._show_status()

    async def action_leave(self) -> bool:
        """What `q` means here: leave the pane if the focus is in it. False if there is nothing to leave."""
        if not self.pane.is_open or not self.pane.has_focus_within:
            return False
        await self.action_back()
        return True

    def on_descendant_focus(self) -> None:
        self._show_status()

    # -- filter, order, columns -----------------------------------------------------------

    async def action_filter(self) -> None:
        if not self.query(FilterBar):
            bar = FilterBar(self.view.filter.text)
            await self.mount(bar, before=self.query_one(KeyHints))
            bar.focus_input()

    def on_filter_bar_changed(self, message: FilterBar.Changed) -> None:
        if message.bar.is_attached:  # what was typed last is told by `Left` too
            self._apply_filter(message.text, message.bar)

    async def on_filter_bar_left(self, message: FilterBar.Left) -> None:
        self._apply_filter(message.text)
        await self.query(FilterBar).remove()
        self.table.focus()
        self._show_status()

    def _apply_filter(self, text: str, bar: FilterBar | None = None) -> None:
        from tfjobtui.monitor.filter import parse_filter

        try:
            wanted = parse_filter(text)
        except UsageError as error:
            words = str(error).replace("\n", "  ")
            if bar is not None:
                bar.show_error(words)
            else:
                self.app.notify(words, severity="warning", markup=False)
            return
        if bar is not None:
            bar.show_error("")
        if wanted.text == self.view.filter.text:
            return
        self.view.filter = wanted
        self._show_empty_text()
        self.table.rearrange()
        self._show_status()

    async def action_sort(self) -> None:
        self.run_worker(self._choose_sort())

    async def _choose_sort(self) -> None:
        from tfjobtui.ui.screens.choose import ChoiceDialog

        choices = [("", "usual order: running, waiting, ended")]
        choices += [(name, f"{column.title.lower():<14} {column.help}") for name, column in COLUMNS.items()]
        chosen = await self.app.push_screen_wait(ChoiceDialog("Sort by", choices, current=self.view.sort))
        if chosen is not None:
            self.view.sort, self.view.reverse = chosen, False
            self.table.rearrange()
            self.on_job_table_sort_changed()

    def action_reverse(self) -> None:
        self.view.reverse = not self.view.reverse
        self.table.rearrange()
        self.on_job_table_sort_changed()

    def action_choose_columns(self) -> None:
        self.run_worker(self._choose_columns())

    async def _choose_columns(self) -> None:
        from tfjobtui.ui.screens.columns import ColumnsDialog

        chosen = await self.app.push_screen_wait(ColumnsDialog(self.table.columns))
        if chosen is not None:
            self.table.show_columns(chosen)
            remember(columns=list(chosen))

    def action_everyone(self) -> None:
        poller = self.services.poller
        if not poller.everyone and not self.services.scheduler.capabilities.everyone:
            reason = self.services.scheduler.capabilities.everyone.reason
            self.app.notify(reason, severity="warning", markup=False)
            return
        poller.show_everyone(not poller.everyone)
        self._freshness.change_scope()
        self.table.show_columns(chosen_columns(self.services.config, poller.everyone))
        self.view.show(dict(poller.store.jobs))
        self._show_empty_text()
        self.table.refresh_rows()
        self._show_status()

    def action_refresh(self) -> None:
        self.services.poller.refresh_now()

    def action_forget(self) -> None:
        """Take ended jobs off the list: of the marked ones, or all."""
        store = self.services.poller.own
        keys = list(self.view.marks) or [key for key, job in store.jobs.items() if job.state.is_terminal]
        self.services.poller.forget(keys)
        self.view.show(dict(self.services.poller.store.jobs))
        self.table.refresh_rows()
        self._show_status()

    # -- actions on jobs ------------------------------------------------------------------

    def _act(self, action: Coroutine[Any, Any, Any]) -> None:
        """Run an action that opens dialogs; a second one waits for nobody, so there is only one at a time."""
        self.run_worker(self._guarded(action), group="action", exclusive=True)

    async def _guarded(self, action: Coroutine[Any, Any, Any]) -> None:
        try:
            result = await action
        except TfjobtuiError as error:
            words = "\n".join(printable(line) for line in str(error).splitlines())
            self.app.notify(words, severity="error", timeout=10, markup=False)
            return
        if isinstance(result, Submitted):
            self._await_id = result
            self.services.poller.refresh_now()
            self._select_submitted()
        self.table.refresh()

    def action_cancel(self) -> None:
        if rows := self.view.chosen():
            self._act(self.actions.cancel(rows))

    def action_hold(self) -> None:
        if rows := self.view.chosen():
            self._unless_pasted(lambda: self._act(self.actions.hold(rows)))

    def action_release(self) -> None:
        if rows := self.view.chosen():
            self._unless_pasted(lambda: self._act(self.actions.release(rows)))

    def _unless_pasted(self, act: Callable[[], None]) -> None:
        """Do what no dialog asks about, unless the key is one of a burst.

        Text that is pasted into a terminal without bracketed paste arrives so.
        """
        app: Any = self.app
        count = app.key_count

        def act_if_alone() -> None:
            if app.key_count == count:
                act()

        if self.BURST_S <= 0:
            act()
        elif app.key_gap_s >= self.BURST_S:
            # Not a timer of Textual's: one that is late before it has begun never fires.
            asyncio.get_running_loop().call_later(self.BURST_S, act_if_alone)

    def action_requeue(self) -> None:
        if rows := self.view.chosen():
            self._act(self.actions.requeue(rows))

    def action_change(self) -> None:
        if rows := self.view.chosen():
            self._act(self.actions.change(rows))

    def action_submit(self) -> None:
        self._act(self.actions.submit())

    def action_resubmit(self) -> None:
        if self.view.current is not None:
            self._act(self.actions.resubmit(self.view.current))

    def action_shell(self) -> None:
        if self.view.current is not None:
            from tfjobtui.ui.job_shell import open_shell

            self._act(open_shell(self.app, self.services, self.view.current))

    def action_edit(self) -> None:
        from tfjobtui.ui.job_files import edit_log, edit_script

        if self.pane.log_path is not None:
            edit_log(self.app, self.pane.log_path)
        elif self.view.current is not None:
            self._act(edit_script(self.app, self.services, self.view.current))

    def action_priority(self) -> None:
        self._act(self._show_priority())

    async def _show_priority(self) -> None:
        row = self.view.current
        if row is None:
            return
        if not row.job.state.is_waiting:
            self.app.notify("Only a waiting job has a priority to look at.", markup=False)
            return
        capability = self.services.scheduler.capabilities.priority
        if not capability:
            self.app.notify(capability.reason, severity="warning", markup=False)
            return
        factors = await self.services.scheduler.priority(Target.of(row.job))
        await self.pane.open_details(row)
        self.pane.show_priority(row, factors)

    async def action_copy(self) -> None:
        ids = " ".join(str(row.job.id) for row in self.view.chosen())
        if ids:
            from tfjobtui.ui import clipboard

            how = await clipboard.copy(self.app, ids)
            self.app.notify(f"{ids}: {how}", markup=False)

    def action_command_log(self) -> None:
        from tfjobtui.ui.screens.command_log import CommandLogScreen

        self.app.push_screen(CommandLogScreen(self.services.command_log))

    def action_cluster(self) -> None:
        from tfjobtui.ui.screens.cluster import ClusterScreen

        own = tuple(self.services.poller.own.jobs.values())
        self.app.push_screen(ClusterScreen(self.services.scheduler, own, getpass.getuser()))

    def _select_submitted(self) -> None:
        """Put the cursor on the job that was just submitted, once it is in the list, and follow its log."""
        submitted = self._await_id
        assert submitted is not None
        for index, row in enumerate(self.view.rows):
            if row.job.id.job == submitted.id.job and row.job.cluster in (submitted.cluster, None):
                self._await_id = None
                self.table.move_to(index)
                self.run_worker(self.action_log())
                return
        if self.view.filter and any(
            job.id.job == submitted.id.job for job in self.services.poller.own.jobs.values()
        ):
            self._await_id = None
            self.app.notify(f"Job {submitted.id} is hidden by the filter.", markup=False)
