"""The job list as text: which columns fit, how wide they are, and what stands in each cell.

It knows nothing of Textual: the frame that is drawn while Textual is still being imported uses it as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len, set_cell_size

from tfjobtui.config import Config
from tfjobtui.model.state import JobState, StateGroup
from tfjobtui.monitor.columns import COLUMNS, DEFAULT_COLUMNS, Placed, lay_out
from tfjobtui.monitor.view import JobView, Row

SAMPLE = 200
"""Rows whose texts decide the widths of the columns."""
GUTTER = 2
"""Cells at the left: the mark, and the fold sign."""

# Colour alone tells a colour-blind user nothing: each state has a sign too.
GROUP_SIGN = {
    StateGroup.WAITING: "◌",
    StateGroup.ACTIVE: "▶",
    StateGroup.GOOD: "✓",
    StateGroup.BAD: "✗",
    StateGroup.NEUTRAL: "–",
}
STATE_SIGN = {
    JobState.SUSPENDED: "‖",
    JobState.STOPPED: "‖",
    JobState.COMPLETING: "◂",
    JobState.STAGE_OUT: "◂",
    JobState.CONFIGURING: "◔",
    JobState.UNKNOWN: "?",
    JobState.GONE: "?",
    JobState.PREEMPTED: "↯",
    JobState.REQUEUED: "↻",
    JobState.REQUEUE_HOLD: "↻",
}


def sign_of(state: JobState) -> str:
    """One cell that tells the state without colour."""
    return STATE_SIGN.get(state, GROUP_SIGN[state.group])


def chosen_columns(config: Config, everyone: bool) -> tuple[str, ...]:
    """The configured columns, with the owner and the cluster where they make a difference."""
    names = list(config.table.columns or DEFAULT_COLUMNS)
    if everyone and "user" not in names:
        names.insert(2, "user")
    if config.slurm.clusters and "cluster" not in names:
        names.insert(1, "cluster")
    return tuple(names)


def fit(text: str, width: int, right: bool) -> str:
    """Exactly `width` cells; what is cut ends in `…`."""
    if text.isascii():
        length = len(text)
        if length <= width:
            return text.rjust(width) if right else text.ljust(width)
        return text[: width - 1] + "…" if width > 0 else ""
    length = cell_len(text)
    if length > width:
        return set_cell_size(text, max(width - 1, 0)) + "…" if width > 0 else ""
    return " " * (width - length) + text if right else text + " " * (width - length)


class JobGrid:
    """Columns in their order, and the widths that their texts would like."""

    def __init__(self, columns: Iterable[str] = ()) -> None:
        self.columns = tuple(columns) or DEFAULT_COLUMNS
        self.first_column = 0
        """How many columns behind the first are shifted out of sight."""
        self._longest: dict[str, int] = {}
        self._placed: list[Placed] = []
        self._placed_for: tuple[int, int, str] | None = None

    def show_columns(self, columns: Iterable[str]) -> None:
        """Show these columns, in this order."""
        self.columns = tuple(columns) or DEFAULT_COLUMNS
        self.first_column = 0
        self._placed_for = None

    def measure(self, rows: Sequence[Row], top: int, now: float) -> None:
        """What the columns would like to be: the longest text of a sample, never shrinking, so nothing jumps."""
        sample = [*rows[:SAMPLE], *rows[max(top, SAMPLE) : max(top, SAMPLE) + 60]]
        for name in self.columns:
            column = COLUMNS[name]
            longest = self._longest.get(name, 0)
            for row in sample:
                text = self.cell(row, name, now)
                longest = max(longest, len(text) if text.isascii() else cell_len(text))
            self._longest[name] = min(longest, max(column.width * 2, 40))
        self._placed_for = None

    def place(self, width: int, sort: str) -> list[Placed]:
        """The columns that fit into so many cells, the gutter among them."""
        room = max(10, width - GUTTER)
        wanted = (room, self.first_column, sort)
        if self._placed_for != wanted:
            # The id stays in sight when the columns are shifted.
            names = self.columns[:1] + self.columns[1 + self.first_column :]
            self._placed = lay_out(names, room, self._longest, sort)
            if len(self._placed) < len(names):  # the last cell is for the sign that there are more
                self._placed = lay_out(names, room - 1, self._longest, sort)
            self._placed_for = wanted
        return self._placed

    @property
    def hides_columns(self) -> bool:
        """Whether columns at the right did not fit, as last placed."""
        return len(self._placed) < len(self.columns) - self.first_column

    def header(self, width: int, view: JobView) -> str:
        """The titles, in so many cells."""
        arrow = "▼" if view.reverse else "▲"
        text = " " * GUTTER
        for number, placed in enumerate(self.place(width, view.sort)):
            title = placed.column.title + (arrow if placed.column.name == view.sort else "")
            if number == 0 and self.first_column:
                title += "‹"
            text += fit(title, placed.width, placed.column.right) + " "
        if self.hides_columns:
            text = set_cell_size(text, width - 1) + "›"
        return set_cell_size(text, width)

    def cells(self, row: Row, now: float) -> tuple[str, ...]:
        """The texts of a row in the columns that were placed last, not yet cut."""
        return tuple(self.cell(row, placed.column.name, now) for placed in self._placed)

    def cell(self, row: Row, name: str, now: float) -> str:
        """What stands in one column of a row."""
        if row.members:
            return _array_cell(row, name, now)
        text = COLUMNS[name].text(row.job, now)
        if name == "id" and row.is_member:
            return f" {text}"
        return f"{sign_of(row.job.state)} {text}" if name == "state" else text


def gutter(row: Row, is_marked: bool) -> str:
    """The two cells at the left of a row."""
    fold = "▾" if row.is_open else "▸" if row.members else "·" if row.is_member else " "
    return ("●" if is_marked else " ") + fold


def _array_cell(row: Row, name: str, now: float) -> str:
    """An array with several records: what is different among them is summed up."""
    if name == "id":
        return f"{row.job.id.job}_[{sum(job.task_count for job in row.members)} tasks]"
    if name == "state":
        counts = " ".join(f"{number}{state.short}" for state, number in row.counts())
        return f"{sign_of(row.job.state)} {counts}"
    if name == "where":
        waiting = next((job for job in row.members if job.state.is_waiting), row.job)
        return COLUMNS[name].text(waiting, now)
    return COLUMNS[name].text(row.job, now)
