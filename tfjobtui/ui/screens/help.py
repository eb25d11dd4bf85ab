"""The keys, those of what has the focus first, and what else has to be known on a screen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType

from tfjobtui.monitor import filter as job_filter
from tfjobtui.ui.help_content import HelpEntry, HelpGroup
from tfjobtui.ui.screens.dialog import Dialog, bind, button
from tfjobtui.ui.widgets.lines_view import LinesView

_KEYS_WIDTH = 18
_WITH_FILTER = frozenset({"List", "Filter"})
"""Groups of keys that the grammar of the filter is shown with."""


class HelpScreen(Dialog[None]):
    """Keys by group; where the list or its filter has the focus, the filter's grammar too."""

    TITLE_TEXT = "Help"
    LARGE = True
    AUTO_FOCUS = "#help"
    GUARDED: ClassVar[frozenset[str]] = frozenset()
    BINDINGS: ClassVar[list[BindingType]] = [
        bind("question_mark,f1", "leave", "Close", "help-close", "Close the help"),
    ]
    DEFAULT_CSS = """
    HelpScreen #help { height: 1fr; }
    """

    def __init__(self, groups: Iterable[HelpGroup]) -> None:
        super().__init__()
        self._groups = tuple(groups)

    def compose_body(self) -> ComposeResult:
        yield LinesView(self._help_lines, id="help")

    def compose_buttons(self) -> ComposeResult:
        yield button("Close", "leave", "esc")

    def _help_lines(self, width: int) -> list[Text]:
        lines: list[Text] = []
        for group in self._groups:
            lines.append(Text(group.title, style="bold underline"))
            for entry in group.entries:
                lines.extend(_entry_lines(entry, width))
            lines.append(Text())
        if any(group.title in _WITH_FILTER for group in self._groups):
            lines.extend(Text(line) for line in _filter_grammar())
        return lines


def _entry_lines(entry: HelpEntry, width: int) -> Iterator[Text]:
    """`j ↓   One job down`, the words wrapped beside the keys."""
    for number, part in enumerate(_wrap(entry.tooltip, max(20, width - _KEYS_WIDTH - 1))):
        line = Text(f"{entry.keys if number == 0 else '':<{_KEYS_WIDTH}}", style="bold")
        yield line.append(f" {part}", style="not bold")


def _wrap(text: str, width: int) -> list[str]:
    import textwrap  # only when the help is opened

    return textwrap.wrap(text, width) or [""]


def _filter_grammar() -> list[str]:
    """The grammar as its reader tells it."""
    lines = [line for line in (job_filter.__doc__ or "").splitlines() if line.strip() != "```"]
    return ["Filter", *lines[1:]]
