"""Choosing one of several: a list that typing narrows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tfjobtui.model.text import printable
from tfjobtui.ui.screens.dialog import Dialog, bind, button

Value = TypeVar("Value")


class _List(OptionList):
    BINDINGS: ClassVar[list[BindingType]] = [
        bind("j", "cursor_down", "Down", "choose-down", show=False),
        bind("k", "cursor_up", "Up", "choose-up", show=False),
    ]


class ChoiceDialog(Dialog[Value]):
    """Choose among pairs of a value and its label: with j and k, or by some letters of it after `/`.

    Enter takes it. Gives `None` for none. Enter is guarded where `is_danger` says that the choice does
    something at once.
    """

    AUTO_FOCUS = "#items"
    BINDINGS: ClassVar[list[BindingType]] = [
        bind("slash", "filter", "Filter", "choose-filter", "Show only what contains the letters that follow"),
        bind(
            "backspace",
            "erase",
            "Erase",
            "choose-erase",
            "Take the last letter of the filter back",
            show=False,
        ),
    ]
    DEFAULT_CSS = """
    ChoiceDialog {
        & #items { height: auto; max-height: 16; }
        & #filter { height: 1; }
    }
    """

    def __init__(
        self,
        title: str,
        choices: Sequence[tuple[Value, str]],
        *,
        current: Value | None = None,
        is_danger: bool = False,
    ) -> None:
        super().__init__()
        self._title = title
        self._choices = tuple((value, printable(label)) for value, label in choices)
        self._current = current
        self._shown = self._choices
        self._typed: str | None = None
        self.is_danger = is_danger

    @property
    def title_text(self) -> str:
        return self._title

    def compose_body(self) -> ComposeResult:
        yield _List(id="items", markup=False, compact=True)
        yield Static(id="filter", classes="note", markup=False)

    def compose_buttons(self) -> ComposeResult:
        yield button("Close", "leave", "esc")
        yield button("Choose", "choose", "enter")

    def on_mount(self) -> None:
        super().on_mount()
        self._show()
        for number, (value, _) in enumerate(self._choices):
            if self._current is not None and value == self._current:
                self.query_one(_List).highlighted = number

    def _show(self) -> None:
        words = (self._typed or "").casefold().split()
        self._shown = tuple(
            choice for choice in self._choices if all(word in choice[1].casefold() for word in words)
        )
        view = self.query_one(_List)
        view.set_options([Option(Content(label)) for _, label in self._shown])
        view.highlighted = 0 if self._shown else None
        text = (
            "type / to filter"
            if self._typed is None
            else f"/{self._typed}▏ {len(self._shown)} of {len(self._choices)}"
        )
        self.query_one("#filter", Static).update(Content(text))

    def on_key(self, event: events.Key) -> None:
        """While a filter is typed, letters are its letters. The base's handler is called by Textual too."""
        if self._typed is not None and event.is_printable and event.character is not None:
            self._typed += event.character
            self._show()
            event.stop()
            event.prevent_default()

    def guards(self, key: str) -> bool:
        return self.is_danger and super().guards(key)

    def action_filter(self) -> None:
        self._typed = ""
        self._show()

    def action_erase(self) -> None:
        if self._typed is not None:
            self._typed = self._typed[:-1] if self._typed else None
            self._show()

    def action_leave(self) -> None:
        """Escape drops the filter first."""
        if self._typed is not None:
            self._typed = None
            self._show()
        else:
            self.dismiss(None)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.action_choose()

    def action_choose(self) -> None:
        number = self.query_one(_List).highlighted
        if number is not None:
            value = self._shown[number][0]
            if self.is_danger:
                self.act(lambda: self._close(value))
            else:
                self._close(value)

    def _close(self, value: Value) -> None:
        self.dismiss(value)
