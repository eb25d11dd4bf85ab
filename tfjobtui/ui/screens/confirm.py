"""Asking before something is done that cannot be taken back, and telling why something was not done."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Button, OptionList, Static

from tfjobtui.actions.control import SIGNALS
from tfjobtui.model.text import printable
from tfjobtui.ui import clipboard
from tfjobtui.ui.screens.dialog import Dialog, Pick, bind, button, plain, scrolling, short_list
from tfjobtui.ui.selection import Selection

LISTED = 7
"""Jobs that are in sight at once in a dialog; the others are scrolled to."""
_SIGNAL_HELP = {
    "TERM": "asks it to end",
    "USR1": "training scripts write a checkpoint",
    "USR2": "what the script makes of it",
    "INT": "as Ctrl+C does",
    "KILL": "ends it at once, nothing is saved",
    "HUP": "what the script makes of it",
    "STOP": "lets it stand still",
    "CONT": "lets it go on",
}


class CommandsView(Static):
    """The commands that a yes would run, as they would be typed; long ones end in what does not fit."""

    DEFAULT_CSS = """
    CommandsView { height: auto; max-height: 3; color: $foreground 70%; }
    CommandsView:ansi { color: ansi_default; text-style: dim; }
    """

    def __init__(self, commands: Sequence[Sequence[str]]) -> None:
        super().__init__(Content(_typed(commands)), id="commands", markup=False)

    def show(self, commands: Sequence[Sequence[str]]) -> None:
        self.update(Content(_typed(commands)))


def _typed(commands: Sequence[Sequence[str]]) -> str:
    """`$ scancel -v 7 8 9 … 40 more`, a line each; of more than two commands the number."""
    lines = [f"$ {_cut_short(shlex.join(words))}" for words in commands[:_MOST_COMMANDS]]
    if len(commands) > _MOST_COMMANDS:
        lines.append(f"… {len(commands) - _MOST_COMMANDS} more commands like these")
    return "\n".join(printable(line) for line in lines)


_MOST_COMMANDS = 2
_MOST_CELLS = 130
"""Two lines of a dialog for one command."""


def _cut_short(command: str) -> str:
    return command if len(command) <= _MOST_CELLS else f"{command[:_MOST_CELLS]}…"


class ConfirmDialog(Dialog[bool]):
    """A question with yes and no. Gives true for yes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bind("y", "yes", "Do it", "yes", "Do what the dialog says"),
        bind("n", "leave", "Leave it", "no", "Close this without doing anything"),
        bind("j,down", "lines(1)", "Down", "down", show=False),
        bind("k,up", "lines(-1)", "Up", "up", show=False),
    ]
    AUTO_FOCUS = "#leave"

    def __init__(
        self,
        title: str,
        text: str,
        lines: Sequence[str] = (),
        *,
        yes: str = "Yes",
        no: str = "No",
        commands: Sequence[Sequence[str]] = (),
    ) -> None:
        super().__init__()
        self._commands = commands
        self._title = title
        self._text = text
        self._lines = tuple(lines)
        self._yes = yes
        self._no = no

    @property
    def title_text(self) -> str:
        return self._title

    def compose_body(self) -> ComposeResult:
        if self._lines:
            yield short_list(self._lines, LISTED)
        if self._text:
            yield plain(self._text)
        if self._commands:
            yield CommandsView(self._commands)

    def compose_buttons(self) -> ComposeResult:
        yield button(self._no, "leave", "n")
        yield button(self._yes, "yes", "y", danger=True)

    def action_yes(self) -> None:
        self.act(lambda: self._close(True))

    def action_leave(self) -> None:
        self._close(False)

    def _close(self, answer: bool) -> None:
        self.dismiss(answer)

    def action_lines(self, count: int) -> None:
        for view in self.query("#lines"):
            view.scroll_relative(y=count, animate=False)


class MessageDialog(Dialog[None]):
    """Something that the user has to know, with the command's own words; they can be copied."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bind("y", "copy", "Copy", "copy", "Copy the text"),
        bind("enter", "leave", "Close", "close", show=False),
        bind("j,down", "lines(1)", "Down", "down", show=False),
        bind("k,up", "lines(-1)", "Up", "up", show=False),
    ]
    AUTO_FOCUS = "#leave"
    GUARDED: ClassVar[frozenset[str]] = frozenset({"enter"})
    """A message that comes up while something is typed is not closed unread."""

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title = title
        self._text = text

    @property
    def title_text(self) -> str:
        return self._title

    def compose_body(self) -> ComposeResult:
        yield scrolling(self._text)

    def compose_buttons(self) -> ComposeResult:
        yield button("Copy", "copy", "y")
        yield button("Close", "leave", "esc")

    async def action_copy(self) -> None:
        how = await clipboard.copy(self.app, self._text)
        self.app.notify(how, markup=False)

    def action_lines(self, count: int) -> None:
        self.query_one(".scroll").scroll_relative(y=count, animate=False)


@dataclass(frozen=True, slots=True)
class CancelChoice:
    """How to cancel: of arrays only what waits, or all; with a signal in place of the cancel, or without."""

    waiting_only: bool = False
    signal: str | None = None


class CancelDialog(Dialog[CancelChoice]):
    """Which jobs are to be cancelled, what of their arrays, and how. Gives `None` for not at all."""

    TITLE_TEXT = "Cancel"
    BINDINGS: ClassVar[list[BindingType]] = [
        bind("y", "yes", "Do it", "yes", "Cancel these jobs, as chosen"),
        bind("n", "leave", "Leave it", "no", "Close this without doing anything"),
        bind("j,down", "pick(1)", "Down", "down", "The next choice", show=False),
        bind("k,up", "pick(-1)", "Up", "up", "The choice before", show=False),
    ]
    AUTO_FOCUS = "#leave"
    DEFAULT_CSS = """
    CancelDialog {
        & #scope, & #signal, & #commands { margin: 1 0 0 0; }
        & #signal { height: 4; }
    }
    """

    def __init__(
        self,
        selection: Selection,
        commands: Callable[[CancelChoice], Sequence[Sequence[str]]] | None = None,
    ) -> None:
        """`commands` tells what a choice would run."""
        super().__init__()
        self._selection = selection
        self._commands = commands
        self._asks_scope = any(item.waiting for item in selection.arrays)
        self._signals: tuple[str | None, ...] = (None,)
        if selection.active():
            first = ("TERM", "USR1", "USR2", "INT", "KILL")
            self._signals = (None, *first, *(name for name in SIGNALS if name not in first))

    def compose_body(self) -> ComposeResult:
        count = len(self._selection)
        if count > 1:
            yield plain(f"{count} jobs:")
        yield short_list(self._selection.labels, LISTED - 2)
        if self._selection.left_out:
            yield plain(f"Left out: {self._selection.left_out} that ended already.", "note")
        if self._asks_scope:
            yield Pick(self._scopes(), id="scope")
        if len(self._signals) > 1:
            yield Pick([_signal_line(name) for name in self._signals], id="signal")
        if self._commands is not None:
            yield CommandsView(self._commands(CancelChoice(self._asks_scope)))

    def _scopes(self) -> tuple[str, str]:
        arrays = self._selection.arrays
        waiting, active = self._selection.waiting_tasks, self._selection.active_tasks
        least = "at least " if any(item.is_cut for item in arrays) else ""
        what = "the whole array" if len(arrays) == 1 else f"all of the {len(arrays)} arrays"
        of = "" if len(arrays) == 1 else f" of the {len(arrays)} arrays"
        running = f"with its {active} running" if active else "also what has started since"
        return (
            f"only the {least}{waiting} waiting tasks{of}; what has started since runs on",
            f"{what}, {running}",
        )

    def compose_buttons(self) -> ComposeResult:
        yield button("Leave it", "leave", "n")
        yield button(self._yes_label(), "yes", "y", danger=True)

    @property
    def choice(self) -> CancelChoice:
        """What is chosen at this moment. A signal goes to what runs: it has no other scope."""
        signals = self.query("#signal").results(Pick)
        signal = next((self._signals[pick.index] for pick in signals), None)
        scope = next((pick.index for pick in self.query("#scope").results(Pick)), 1)
        return CancelChoice(waiting_only=signal is None and scope == 0, signal=signal)

    def _yes_label(self) -> str:
        choice = self.choice if self.is_mounted else CancelChoice(self._asks_scope)
        if choice.signal is not None:
            return f"Send SIG{choice.signal}"
        only_arrays = len(self._selection.arrays) == len(self._selection)
        if choice.waiting_only and only_arrays:
            return f"Cancel {self._selection.waiting_tasks} waiting"
        return f"Cancel {self._selection.what()}"

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """The button says what it would do."""
        for scope in self.query("#scope"):
            scope.disabled = self.choice.signal is not None
        self.query_one("#yes", Button).label = Content(f" {self._yes_label()} (y) ")
        for view in self.query(CommandsView):
            if self._commands is not None:
                view.show(self._commands(self.choice))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Enter in a list goes on to the next part: it does nothing that cannot be taken back."""
        self.app.action_focus_next()

    def action_pick(self, by: int) -> None:
        """Move in the first list where none has the focus."""
        for pick in self.query(Pick):
            if not pick.disabled:
                pick.action_cursor_down() if by > 0 else pick.action_cursor_up()
                return
        for view in self.query("#lines"):
            view.scroll_relative(y=by, animate=False)

    def action_yes(self) -> None:
        choice = self.choice
        self.act(lambda: self._close(choice))

    def _close(self, choice: CancelChoice) -> None:
        self.dismiss(choice)


def _signal_line(name: str | None) -> str:
    if name is None:
        return "cancel (it is asked to end, and after a grace period what is left is killed)"
    words = _SIGNAL_HELP.get(name, "")
    return f"only send SIG{name}" + (f": {words}" if words else "")
