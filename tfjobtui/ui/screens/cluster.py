"""The whole cluster: partitions and nodes, what of them is free, and whose jobs hold the rest."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Static

from tfjobtui.errors import QueryError
from tfjobtui.model.job import Job
from tfjobtui.model.text import printable
from tfjobtui.model.units import duration
from tfjobtui.monitor.cluster import (
    NODE_OPTIONAL,
    NODE_TITLES,
    PARTITION_OPTIONAL,
    PARTITION_TITLES,
    ClusterView,
    TextRow,
    headline,
    holders,
    lay_out,
    line,
    node_rows,
    partition_rows,
    view_of,
)
from tfjobtui.schedulers.scheduler import Scheduler
from tfjobtui.ui.screens.dialog import Dialog, bind, button, plain
from tfjobtui.ui.widgets.lines_view import LinesView

REFRESH_S = 60.0
"""An inventory costs slurmctld two requests for each of its two questions, and changes slowly."""
_SLICE = 200
"""Rows that are made before the event loop gets its turn."""
_TONES = {"good": "green", "bad": "red dim", "": ""}


class ClusterScreen(Dialog[None]):
    """Read when it is opened, then once a minute for as long as it is open."""

    TITLE_TEXT = "Cluster"
    LARGE = True
    AUTO_FOCUS = "#nodes"
    GUARDED: ClassVar[frozenset[str]] = frozenset()
    BINDINGS: ClassVar[list[BindingType]] = [
        bind("w", "who", "Whose jobs", "cluster-who", "Whose jobs are on each node: everybody's, or yours"),
        bind("f", "free", "Free GPUs", "cluster-free", "Only the nodes that have a free GPU, or all"),
        bind("ctrl+r,f5", "read", "Read again", "cluster-read", "Ask the scheduler again"),
        bind("i", "leave", "Close", "cluster-close", "Close this"),
    ]
    DEFAULT_CSS = """
    ClusterScreen {
        & #headline { height: auto; text-style: bold; }
        & #nodes { height: 1fr; }
        & #state { height: 1; }
    }
    """

    def __init__(self, scheduler: Scheduler, own_jobs: Sequence[Job], own_user: str) -> None:
        super().__init__()
        self._scheduler = scheduler
        self._own_jobs = tuple(own_jobs)
        self._user = own_user
        self._view: ClusterView | None = None
        self._jobs: tuple[Job, ...] = self._own_jobs
        self._shows_everyone = False
        self._only_free = False
        self._read_at_s = 0.0
        self._problem = ""

    def compose_body(self) -> ComposeResult:
        yield Static("Asking the scheduler …", id="headline", markup=False)
        yield LinesView(id="nodes")
        yield plain("", "note", id="state")

    def compose_buttons(self) -> ComposeResult:
        yield button("Whose jobs", "who", "w")
        yield button("Free GPUs", "free", "f")
        yield button("Close", "leave", "esc")

    def on_mount(self) -> None:
        super().on_mount()
        self.action_read()
        self.set_interval(REFRESH_S, self.action_read)
        self.set_interval(1.0, self._show_state)

    @work(exclusive=True, group="cluster")
    async def action_read(self) -> None:
        """Ask for partitions and nodes; a failure leaves what is shown, and is said."""
        try:
            partitions, nodes = await asyncio.gather(self._scheduler.partitions(), self._scheduler.nodes())
            if self._shows_everyone:
                self._jobs = (await self._scheduler.jobs(everyone=True)).jobs
        except QueryError as error:
            self._problem = error.message
            if self._view is None:
                self.query_one("#headline", Static).update(Content(printable(error.message)))
        else:
            self._problem = ""
            self._view = view_of(partitions, nodes)
            self._read_at_s = time.time()
            await self._show()
        self._show_state()

    def action_who(self) -> None:
        """Everybody's jobs beside the nodes, where that may be seen; or the user's own only."""
        if not self._shows_everyone and not self._scheduler.capabilities.everyone:
            self.app.notify(self._scheduler.capabilities.everyone.reason, severity="warning", markup=False)
            return
        self._shows_everyone = not self._shows_everyone
        if not self._shows_everyone:
            self._jobs = self._own_jobs
        self.action_read()

    def action_free(self) -> None:
        self._only_free = not self._only_free
        self.run_worker(self._show(), group="cluster-show", exclusive=True)

    async def _show(self) -> None:
        """Lay the tables out, in slices: a large cluster has thousands of rows."""
        view = self._view
        if view is None:
            return
        self.query_one("#headline", Static).update(Content(printable(headline(view))))
        on_nodes: Mapping[str, Sequence[Job]] = await asyncio.to_thread(holders, self._jobs)
        nodes = node_rows(view, on_nodes, self._user)
        if self._only_free:
            nodes = tuple(row for row in nodes if row.tone == "good")
        room = max(40, self.query_one(LinesView).size.width - 2)
        lines = await _table(PARTITION_TITLES, partition_rows(view), room, PARTITION_OPTIONAL)
        lines += [Text(), *await _table(NODE_TITLES, nodes, room, NODE_OPTIONAL)]
        if not nodes:
            lines.append(Text("No node has a free GPU." if self._only_free else "There are no nodes."))
        self.query_one(LinesView).show(lambda width: lines)

    def _show_state(self) -> None:
        who = "everybody's jobs" if self._shows_everyone else "your jobs"
        parts = [f"beside the nodes: {who}"]
        if self._view is not None:
            parts.insert(0, f"read {duration(time.time() - self._read_at_s)} ago")
        if self._problem:
            parts.append(self._problem)
        self.query_one("#state", Static).update(Content(printable(" · ".join(parts))))

    def on_resize(self) -> None:
        self.run_worker(self._show(), group="cluster-show", exclusive=True)


async def _table(titles: Sequence[str], rows: Sequence[TextRow], room: int, optional: int) -> list[Text]:
    table = lay_out(titles, rows, room, optional)
    lines = [Text(line(titles, table), style="bold")]
    for number, row in enumerate(rows, 1):
        lines.append(Text(line(row.texts, table), style=_TONES[row.tone], no_wrap=True))
        if number % _SLICE == 0:
            await asyncio.sleep(0)
    return lines
