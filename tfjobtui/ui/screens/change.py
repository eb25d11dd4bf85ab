"""Changing a field of jobs that are in the queue: which field, its present value, the new one checked at once."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Button, Input, OptionList, Static

from tfjobtui.actions.fields import FIELDS, Checked, Field
from tfjobtui.errors import UsageError
from tfjobtui.model.job import Job
from tfjobtui.model.text import printable
from tfjobtui.monitor.view import Row
from tfjobtui.schedulers.scheduler import Target
from tfjobtui.ui.screens.dialog import Dialog, Entry, Pick, bind, button, plain, printable_lines, short_list
from tfjobtui.ui.selection import select

_LISTED = 3


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """The jobs as they were chosen, and the fields that can be changed of at least one of them."""

    rows: tuple[Row, ...]
    labels: tuple[str, ...]
    what: str
    fields: tuple[Field, ...]

    @property
    def jobs(self) -> tuple[Job, ...]:
        return tuple(job for row in self.rows for job in row.jobs)

    def targets(self, field: Field) -> tuple[Target, ...]:
        """What the change applies to: an array's own settings to the array, others where they can be changed now."""
        found = (target for row in self.rows for target in _targets(row, field))
        return tuple(dict.fromkeys(found))

    def present(self, field: Field) -> str | None:
        """The present value; `None` where it is not known, or not the same for all."""
        read = _PRESENT.get(field.name)
        if read is None:
            return None
        values = {read(job) for job in self.jobs if field.is_open(job)}
        return values.pop() if len(values) == 1 else None

    def note(self, field: Field) -> str:
        """What has to be known of this change before it is made."""
        notes = []
        if field.running_note and any(job.state.is_active for job in self.jobs):
            notes.append(field.running_note)
        closed = sum(1 for row in self.rows if not any(field.is_open(job) for job in row.jobs))
        if closed:
            notes.append(
                f"Applies to {len(self.rows) - closed} of the {len(self.rows)} jobs, by their state."
            )
        return " ".join(notes)


@dataclass(frozen=True, slots=True)
class Change:
    """The user's answer: the value as the scheduler takes it."""

    field: Field
    value: str


def changes_for(rows: Sequence[Row]) -> ChangePlan:
    """Fix the jobs, and see what can be changed of them."""
    open_rows = tuple(row for row in rows if any(not job.state.is_terminal for job in row.jobs))
    selection = select(open_rows)
    jobs = [job for row in open_rows for job in row.jobs]
    fields = tuple(field for field in FIELDS if any(field.is_open(job) for job in jobs))
    return ChangePlan(open_rows, selection.labels, selection.what() if open_rows else "", fields)


def _targets(row: Row, field: Field) -> tuple[Target, ...]:
    if field.arrays_only:
        return (Target.of(row.job, whole=True),) if row.job.id.is_array or row.members else ()
    return tuple(Target.of(job) for job in row.jobs if field.is_open(job))


def slurm_time(seconds: float | None) -> str:
    """`1-02:00:00`, as Slurm takes it; `UNLIMITED` for no limit."""
    if seconds is None:
        return ""
    if math.isinf(seconds):
        return "UNLIMITED"
    days, rest = divmod(int(seconds), 86400)
    text = f"{rest // 3600:02}:{rest % 3600 // 60:02}:{rest % 60:02}"
    return f"{days}-{text}" if days else text


def _dependency(job: Job) -> str:
    """Without the remarks in brackets, which Slurm prints but does not take."""
    return re.sub(r"\([^)]*\)", "", job.dependency)


def _throttle(job: Job) -> str:
    throttle = job.id.tasks.throttle if job.id.tasks is not None else None
    return "" if throttle is None else str(throttle)


_PRESENT: dict[str, Callable[[Job], str]] = {
    "TimeLimit": lambda job: slurm_time(job.time_limit_s),
    "Partition": lambda job: job.partition,
    "QOS": lambda job: job.qos,
    "Account": lambda job: job.account,
    "Dependency": _dependency,
    "NumNodes": lambda job: "" if job.node_count is None else str(job.node_count),
    "Features": lambda job: job.features,
    "ReservationName": lambda job: job.reservation,
    "ArrayTaskThrottle": _throttle,
    "JobName": lambda job: job.name,
}


class ChangeDialog(Dialog[Change]):
    """Choose a field, and give it another value. Gives `None` for not at all."""

    TITLE_TEXT = "Change"
    AUTO_FOCUS = "#value"
    BINDINGS: ClassVar[list[BindingType]] = [
        bind("enter,ctrl+s", "apply", "Change it", "apply", "Make the change"),
        bind("down", "pick(1)", "Next field", "change-next", "The next field", show=False),
        bind("up", "pick(-1)", "Field before", "change-previous", "The field before", show=False),
    ]
    DEFAULT_CSS = """
    ChangeDialog {
        & #field { height: auto; max-height: 28vh; }
        & #value { border: tall $border-blurred; height: 3; }
        & #value:focus { border: tall $border; }
        & #remarks { height: 3; scrollbar-size-vertical: 1; }
    }
    """

    def __init__(self, plan: ChangePlan) -> None:
        super().__init__()
        self._plan = plan
        self._checked: Checked | None = None

    def compose_body(self) -> ComposeResult:
        if len(self._plan.labels) > 1:
            yield plain(f"{len(self._plan.labels)} jobs:")
        yield short_list(self._plan.labels, _LISTED)
        yield Pick([self._line(field) for field in self._plan.fields], id="field")
        yield plain("", "note", id="help")
        yield Entry(id="value", select_on_focus=True)
        with VerticalScroll(id="remarks", can_focus=False):
            yield Static(id="error", classes="error", markup=False)
            yield Static(id="remark", classes="note", markup=False)

    def _line(self, field: Field) -> str:
        present = self._plan.present(field)
        return f"{field.title:<24} {printable(present or '')}"

    def compose_buttons(self) -> ComposeResult:
        yield button("Leave it", "leave", "esc")
        yield button(self._label(self._plan.fields[0]), "apply", "enter", danger=True)

    def _label(self, field: Field) -> str:
        return f"Change {field.title} of {self._plan.what}"

    @property
    def field(self) -> Field:
        return self._plan.fields[self.query_one(Pick).index]

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Show the field's present value, ready to be changed."""
        field = self.field
        present = self._plan.present(field)
        entry = self.query_one("#value", Input)
        entry.placeholder = "" if present is not None else "the present value is not known here, or not one"
        # A text that cannot be shown as it is cannot be edited either.
        entry.value = present if present and printable(present) == present else ""
        entry.select_all()
        self.query_one("#apply", Button).label = Content(f" {self._label(field)} (enter) ")
        self.query_one("#help", Static).update(Content(f"{field.title} (↑↓ for others): {field.help}"))
        self._check(quiet=True)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.query_one("#value", Input).focus()

    def action_pick(self, by: int) -> None:
        """Up and down choose the field, while what is typed goes into the value."""
        pick = self.query_one(Pick)
        pick.action_cursor_down() if by > 0 else pick.action_cursor_up()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._check(quiet=event.value == (self._plan.present(self.field) or ""))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.action_apply()

    def _check(self, *, quiet: bool) -> None:
        """Check the value; with `quiet` the error of a value that nobody has typed yet is not shown."""
        value = self.query_one("#value", Input).value
        error = ""
        note = ""
        try:
            self._checked = self.field.check(value)
            note = self._checked.note
        except UsageError as problem:
            self._checked = None
            error = "" if quiet else str(problem)
        self.query_one("#value", Input).set_class(bool(error), "-invalid")
        self.query_one("#error", Static).update(Content(printable_lines(error)))
        self.query_one("#remark", Static).update(
            Content(" ".join((note, self._plan.note(self.field))).strip())
        )

    def action_apply(self) -> None:
        self._check(quiet=False)
        if self._checked is None:
            self.query_one("#value", Input).focus()
            return
        if self._checked.value == self._plan.present(self.field):
            self.query_one("#error", Static).update(Content("It has this value already."))
            return
        change = Change(self.field, self._checked.value)
        self.act(lambda: self._close(change))

    def _close(self, change: Change) -> None:
        self.dismiss(change)
