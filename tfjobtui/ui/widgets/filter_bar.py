"""The line in which the filter of the list is typed."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message

from tfjobtui.ui.widgets.bars import Bar


class FilterBar(Horizontal):
    """Filters while typing; Enter keeps the filter, Esc drops what was typed."""

    DEFAULT_CSS = """
    FilterBar {
        height: 1;
        background: $panel;
        & > #filter-sign { width: 10; }
        & > Input { border: none; height: 1; padding: 0; width: 1fr; background: $panel; }
        & > #filter-error { width: 1fr; display: none; }
        & > #filter-error.-on { display: block; }
        &:ansi { background: ansi_default; }
        &:ansi > Input { background: ansi_default; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "escape", "drop", "Drop", id="filter.drop", tooltip="Back to the filter that was there before"
        ),
        Binding("enter", "keep", "Keep", id="filter.keep", tooltip="Keep the filter", priority=True),
    ]

    class Changed(Message):
        """Another filter was typed."""

        def __init__(self, bar: FilterBar, text: str) -> None:
            super().__init__()
            self.bar = bar
            self.text = text

    class Left(Message):
        """The line was left, and this is the filter from now on."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, text: str) -> None:
        super().__init__()
        self._before = text

    def compose(self) -> ComposeResult:
        from textual.widgets import Input  # costs 20 ms, and most sessions begin without a filter

        sign = Bar(id="filter-sign")
        sign.show([(" filter / ", "bar--key")])
        yield sign
        yield Input(
            self._before, placeholder='state:run gpu:>0 name:bert* -part:cpu "two words"', compact=True
        )
        yield Bar(id="filter-error")

    def focus_input(self) -> None:
        self.screen.set_focus(self.children[1])  # at once: `focus()` would let the keys that follow pass by

    def show_error(self, text: str) -> None:
        """Say what is wrong with the filter; an empty text: nothing is."""
        for bar in self.query("#filter-error").results(Bar):  # none while the line is being taken away
            bar.set_class(bool(text), "-on")
            bar.show([(text, "bar--warning")])

    def on_input_changed(self, event: Message) -> None:
        event.stop()
        self.post_message(self.Changed(self, event.value))  # type: ignore[attr-defined]

    def action_keep(self) -> None:
        from textual.widgets import Input

        self._leave(self.query_one(Input).value)

    def action_drop(self) -> None:
        self._leave(self._before)

    def _leave(self, text: str) -> None:
        # At once: the next key is meant for the list, though the line is still there for a moment.
        self.screen.set_focus(None)
        self.post_message(self.Left(text))
