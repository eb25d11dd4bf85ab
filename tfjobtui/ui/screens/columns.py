"""Which columns the job list has, and in which order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from tfjobtui.monitor.columns import COLUMNS, DEFAULT_COLUMNS
from tfjobtui.ui.screens.dialog import Dialog, bind, button, plain


class _List(OptionList):
    BINDINGS: ClassVar[list[BindingType]] = [
        bind("enter", "screen.keep", "Keep", "columns-keep-list", "Take these columns", show=False),
    ]


class ColumnsDialog(Dialog[tuple[str, ...]]):
    """All columns with check marks, in their order. Gives the names of the chosen ones, or `None`."""

    TITLE_TEXT = "Columns"
    AUTO_FOCUS = "#columns"
    GUARDED: ClassVar[frozenset[str]] = frozenset()
    BINDINGS: ClassVar[list[BindingType]] = [
        bind("space", "show_or_hide", "Show or hide", "columns-toggle", "Show or hide the column"),
        bind("J,shift+down", "shift(1)", "Move down", "columns-down", "Move the column down: further right"),
        bind("K,shift+up", "shift(-1)", "Move up", "columns-up", "Move the column up: further left"),
        bind("j", "move(1)", "Down", "columns-next", show=False),
        bind("k", "move(-1)", "Up", "columns-previous", show=False),
        bind("r", "reset", "Reset", "columns-reset", "The columns that the program starts with"),
        bind("enter", "keep", "Keep", "columns-keep", "Take these columns"),
    ]
    DEFAULT_CSS = """
    ColumnsDialog #columns { height: auto; max-height: 15; }
    """

    def __init__(self, columns: Iterable[str] = DEFAULT_COLUMNS) -> None:
        super().__init__()
        self._arrange(columns)

    def _arrange(self, columns: Iterable[str]) -> None:
        shown = [name for name in columns if name in COLUMNS]
        self._chosen = set(shown)
        self._order = [*shown, *(name for name in COLUMNS if name not in self._chosen)]

    @property
    def chosen(self) -> tuple[str, ...]:
        """The names of the chosen columns, in order."""
        return tuple(name for name in self._order if name in self._chosen)

    def compose_body(self) -> ComposeResult:
        yield _List(*(self._option(name) for name in self._order), id="columns", markup=False, compact=True)
        yield plain("space shows or hides, J and K move, r resets", "note")

    def compose_buttons(self) -> ComposeResult:
        yield button("Close", "leave", "esc")
        yield button("Keep", "keep", "enter")

    def _option(self, name: str) -> Option:
        return Option(Content(self._line(name)))

    def _line(self, name: str) -> str:
        column = COLUMNS[name]
        return f"{'[x]' if name in self._chosen else '[ ]'} {column.title:<13} {column.help}"

    @property
    def _list(self) -> OptionList:
        return self.query_one("#columns", OptionList)

    def _redraw(self, *numbers: int) -> None:
        for number in numbers:
            self._list.replace_option_prompt_at_index(number, Content(self._line(self._order[number])))

    def action_move(self, by: int) -> None:
        if by > 0:
            self._list.action_cursor_down()
        else:
            self._list.action_cursor_up()

    def action_show_or_hide(self) -> None:
        """The last column stays: a list without any shows nothing."""
        number = self._list.highlighted
        if number is None:
            return
        name = self._order[number]
        if name not in self._chosen:
            self._chosen.add(name)
        elif len(self._chosen) > 1:
            self._chosen.discard(name)
        self._redraw(number)

    def action_shift(self, by: int) -> None:
        number = self._list.highlighted
        if number is None or not 0 <= number + by < len(self._order):
            return
        order = self._order
        order[number], order[number + by] = order[number + by], order[number]
        self._redraw(number, number + by)
        self._list.highlighted = number + by

    def action_reset(self) -> None:
        self._arrange(DEFAULT_COLUMNS)
        self._redraw(*range(len(self._order)))
        self._list.highlighted = 0

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """A click on a line; Enter keeps."""
        self.action_show_or_hide()

    def action_keep(self) -> None:
        self.dismiss(self.chosen)
