"""Running a job once more: a look at what will run, and at what could not be had back."""

from __future__ import annotations

import shlex
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll

from tfjobtui.actions.resubmit import ResubmitPlan
from tfjobtui.ui.screens.dialog import Dialog, bind, button, plain, script_lines
from tfjobtui.ui.widgets.lines_view import LinesView


class ResubmitScreen(Dialog[bool]):
    """What would be submitted again. Gives true for yes."""

    LARGE = True
    AUTO_FOCUS = "#script"
    BINDINGS: ClassVar[list[BindingType]] = [
        bind("y", "submit", "Submit", "resubmit", "Submit what is shown"),
        bind("n", "leave", "Leave it", "no", "Close this without doing anything"),
        bind("enter", "submit", "Submit", "resubmit-enter", "Submit what is shown", show=False),
    ]
    DEFAULT_CSS = """
    ResubmitScreen {
        & #missing { height: auto; max-height: 30%; scrollbar-size-vertical: 1; }
        & #script { height: 1fr; border-top: solid $primary 50%; }
    }
    """

    def __init__(self, plan: ResubmitPlan, what: str) -> None:
        super().__init__()
        self._plan = plan
        self._what = what

    @property
    def title_text(self) -> str:
        return f"Submit {self._what} again"

    def compose_body(self) -> ComposeResult:
        plan = self._plan
        with VerticalScroll(id="missing", can_focus=False):
            for sentence in plan.missing:
                yield plain(f"! {sentence}", "warning")
        yield plain(f"script   from {plan.source}", "facts")
        yield plain(f"folder   {plan.work_dir}", "facts")
        if plan.submission.cluster:
            yield plain(f"cluster  {plan.submission.cluster}", "facts")
        yield plain(f"command  {shlex.join(plan.submission.command)}", "facts")
        yield LinesView(self._script, id="script")

    def _script(self, width: int) -> list[Text]:
        return script_lines(self._plan.script, width)

    def compose_buttons(self) -> ComposeResult:
        yield button("Leave it", "leave", "n")
        yield button("Submit again", "submit", "y", danger=True)

    def action_submit(self) -> None:
        self.act(lambda: self._close(True))

    def action_leave(self) -> None:
        self._close(False)

    def _close(self, answer: bool) -> None:
        self.dismiss(answer)
