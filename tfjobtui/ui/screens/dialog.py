"""What all dialogs have in common: a box over the screen, its keys, and the guard against pasted text."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import ClassVar, TypeVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Button, Input, OptionList, Static
from textual.widgets.option_list import Option

from tfjobtui.model.text import printable
from tfjobtui.ui.widgets.lines_view import LinesView

Result = TypeVar("Result")


def bind(
    keys: str, action: str, description: str, name: str, tooltip: str = "", *, show: bool = True
) -> Binding:
    """A binding with everything that the help shows of it."""
    return Binding(keys, action, description, id=f"dialog.{name}", tooltip=tooltip or description, show=show)


class Dialog(ModalScreen[Result]):
    """A box over the screen. Escape and `q` leave it, without anything done.

    Keys in `GUARDED` do what cannot be taken back. Text that is pasted into a terminal without bracketed
    paste arrives as a burst of keys, so such a key counts only some time after the dialog was opened, and
    with no other key right before or after it.
    """

    GUARD_S: ClassVar[float] = 0.25
    """How long a dialog takes no dangerous key after it was opened; 0 turns the guard off."""
    BURST_S: ClassVar[float] = 0.03
    """Keys that come faster than this were not typed."""
    GUARDED: ClassVar[frozenset[str]] = frozenset({"y", "enter"})
    TITLE_TEXT: ClassVar[str] = ""
    LARGE: ClassVar[bool] = False
    """Takes nearly the whole terminal, whatever is in it."""

    DEFAULT_CSS = """
    Dialog {
        align: center middle;
        & > #box {
            width: 78;
            max-width: 100%;
            height: auto;
            max-height: 100%;
            padding: 0 1;
            background: $surface;
            border: round $primary;
        }
        & > #box.large { width: 96%; height: 94%; }
        & Button { margin: 0 1 0 0; min-width: 10; }
        & #buttons { height: 1; margin: 1 0 0 0; align-horizontal: right; }
        & .text { height: auto; }
        & .scroll { height: auto; max-height: 14; scrollbar-size-vertical: 1; }
        & .warning { color: $warning; height: auto; }
        & .error { color: $error; height: auto; }
        & .note { color: $foreground 70%; height: auto; }
        & .hidden { display: none; }
        & LinesView { background: $surface; }
        & OptionList { border: none; padding: 0; background: $surface; scrollbar-size-vertical: 1; }
        & OptionList:focus { border: none; }
    }
    Dialog:ansi {
        & > #box { background: ansi_default; border: round ansi_blue; }
        & LinesView { background: ansi_default; }
        & OptionList { background: ansi_default; color: ansi_default; }
        & OptionList > .option-list--option-highlighted {
            color: ansi_default; background: ansi_default; text-style: bold;
        }
        & OptionList:focus > .option-list--option-highlighted {
            color: ansi_default; background: ansi_default; text-style: reverse;
        }
        & OptionList > .option-list--option-hover { background: ansi_default; text-style: underline; }
        & OptionList > .option-list--option-disabled { color: ansi_default; text-style: dim; }
        & .warning { color: ansi_yellow; text-style: bold; }
        & .error { color: ansi_red; text-style: bold; }
        & .note { color: ansi_default; text-style: dim; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        bind("escape,q,ctrl+c", "leave", "Leave", "leave", "Close this without doing anything"),
        bind("question_mark,f1", "app.help", "Help", "help", "The keys of this dialog", show=False),
        bind("right", "app.focus_next", "Next", "next", "To the next button or field", show=False),
        bind(
            "left", "app.focus_previous", "Previous", "previous", "To the button or field before", show=False
        ),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._opened_at = time.monotonic()
        self._last_key_at = 0.0
        self._due: asyncio.TimerHandle | None = None

    def compose(self) -> ComposeResult:
        with Vertical(id="box", classes="large" if self.LARGE else "") as box:
            box.border_title = Content(printable(self.title_text))
            yield from self.compose_body()
            with Horizontal(id="buttons"):
                yield from self.compose_buttons()

    @property
    def title_text(self) -> str:
        return self.TITLE_TEXT

    def compose_body(self) -> ComposeResult:
        """The widgets above the buttons."""
        yield from ()

    def compose_buttons(self) -> ComposeResult:
        """The buttons, the harmless one first."""
        yield button("Close", "leave", "esc")

    def on_mount(self) -> None:
        self._opened_at = time.monotonic()

    # -- the guard ------------------------------------------------------------------------

    def on_key(self, event: events.Key) -> None:
        """See every key before it acts."""
        too_quick = self.note_key(event)
        if self.guards(event.key) and self.GUARD_S > 0:
            too_early = event.time - self._opened_at < self.GUARD_S
            if too_early or too_quick:
                event.stop()
                event.prevent_default()

    def guards(self, key: str) -> bool:
        """Whether this key does something that must not happen by accident."""
        return key in self.GUARDED

    def note_key(self, event: events.Key) -> bool:
        """A key was pressed: what was about to be done is not, if this came too soon. True if it did."""
        too_quick = event.time - self._last_key_at < self.BURST_S
        self._last_key_at = event.time
        if self._due is not None:
            self._due.cancel()
            self._due = None
        return too_quick

    @property
    def is_about_to_act(self) -> bool:
        """A dangerous key was pressed, and waits for whether another follows at once."""
        return self._due is not None

    def on_paste(self, event: events.Paste) -> None:
        """Pasted text is for fields alone."""
        event.stop()

    def act(self, what: Callable[[], None]) -> None:
        """Do what cannot be taken back, unless another key follows at once."""
        if self.GUARD_S <= 0:
            what()
        else:
            # Not a timer of Textual's: one that is late before it has begun never fires.
            self._due = asyncio.get_running_loop().call_later(self.BURST_S, what)

    # -- keys -----------------------------------------------------------------------------

    def action_leave(self) -> None:
        self.dismiss(None)

    async def on_button_pressed(self, event: Button.Pressed) -> None:
        """A button does what the action of its name does."""
        event.stop()
        if event.button.id is not None:
            await self.run_action(event.button.id.replace("-", "_"))


def button(label: str, action: str, key: str = "", *, danger: bool = False) -> Button:
    """A one-line button that runs the dialog's action of that name; `key` is shown behind its label."""
    text = f" {label} ({key}) " if key else f" {label} "
    made = Button(Content(text), id=action.replace("_", "-"), compact=True)
    made.variant = "error" if danger else "default"
    return made


class Entry(Input):
    """An input that lets its dialog see the keys, for the guard; Ctrl+C leaves here too, instead of copying."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c", "screen.leave", "Leave", show=False)]

    def on_key(self, event: events.Key) -> None:
        screen = self.screen
        if isinstance(screen, Dialog) and event.is_printable:
            screen.note_key(event)


class Pick(OptionList):
    """A short list of which one line is chosen, marked so that it is seen without colour and focus."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bind("j", "cursor_down", "Down", "pick-down", show=False),
        bind("k", "cursor_up", "Up", "pick-up", show=False),
    ]

    def __init__(self, lines: Sequence[str], *, chosen: int = 0, id: str | None = None) -> None:  # noqa: A002
        self._texts = tuple(lines)
        self._marked = chosen
        options = [Option(Content(_marked(line, n == chosen))) for n, line in enumerate(self._texts)]
        super().__init__(*options, id=id, markup=False, compact=True)
        self.highlighted = chosen

    @property
    def index(self) -> int:
        """The number of the chosen line."""
        return self._marked

    def watch_highlighted(self, highlighted: int | None) -> None:
        super().watch_highlighted(highlighted)
        if highlighted is None or highlighted == self._marked or not self.is_mounted:
            return
        before, self._marked = self._marked, highlighted
        for number in (before, highlighted):
            text = Content(_marked(self._texts[number], number == highlighted))
            self.replace_option_prompt_at_index(number, text)


def _marked(line: str, is_chosen: bool) -> str:
    return f"{'●' if is_chosen else '○'} {line}"


def plain(text: str, classes: str = "text", id: str | None = None) -> Static:  # noqa: A002
    """Text as it is, without markup."""
    return Static(Content(printable_lines(text)), classes=classes, id=id, markup=False)


def printable_lines(text: str) -> str:
    """Text of several lines, each made fit to be shown."""
    return "\n".join(printable(line) for line in text.splitlines())


def scrolling(text: str) -> Widget:
    """Text of any length, as it is, that scrolls."""
    return VerticalScroll(plain(text), classes="scroll", can_focus=True)


def short_list(lines: Sequence[str], most: int) -> LinesView:
    """Lines of which `most` are in sight; the others are scrolled to."""
    texts = [Text(printable(line), no_wrap=True, overflow="ellipsis") for line in lines]
    view = LinesView(lambda width: [_cut(text, width) for text in texts], id="lines")
    view.styles.height = max(1, min(len(lines), most))
    view.can_focus = len(lines) > most
    return view


def _cut(text: Text, width: int) -> Text:
    cut = text.copy()
    cut.truncate(width, overflow="ellipsis")
    return cut


def script_lines(script: str, width: int) -> list[Text]:
    """The script with its options made to stand out; a long line goes on below, so that all of it is seen."""
    lines: list[Text] = []
    for line in script.split("\n"):
        text = printable(line)
        style = "bold" if line.startswith("#SBATCH") else "dim" if line.startswith("#") else ""
        lines += [Text(text[at : at + width], style=style) for at in range(0, max(1, len(text)), width)]
    return lines
