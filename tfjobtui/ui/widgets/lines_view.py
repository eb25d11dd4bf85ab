"""Lines of styled text that scroll: details, help and the like."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

LineBuilder = Callable[[int], Sequence[Text]]
"""Makes the lines for a width in cells."""


def _bind(keys: str, action: str, description: str, name: str) -> Binding:
    return Binding(keys, action, description, id=f"text.{name}", tooltip=description, show=False)


class LinesView(ScrollView, can_focus=True):
    """Shows what a builder makes for the present width; keeps the scroll when the text changes."""

    DEFAULT_CSS = """
    LinesView {
        background: $background;
        scrollbar-size-vertical: 1;
        scrollbar-size-horizontal: 0;
        &:ansi { background: ansi_default; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        _bind("j,down", "lines(1)", "Down", "down"),
        _bind("k,up", "lines(-1)", "Up", "up"),
        _bind("g,home", "scroll_home", "Top", "top"),
        _bind("G,end", "scroll_end", "Bottom", "bottom"),
        _bind("ctrl+d", "pages(0.5)", "Half a page down", "half-down"),
        _bind("ctrl+u", "pages(-0.5)", "Half a page up", "half-up"),
        _bind("pagedown,ctrl+f", "pages(1)", "Page down", "page-down"),
        _bind("pageup,ctrl+b", "pages(-1)", "Page up", "page-up"),
    ]

    def __init__(self, build: LineBuilder | None = None, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._build: LineBuilder = build or (lambda width: ())
        self._lines: list[Text] = []
        self._built_for = -1

    def show(self, build: LineBuilder) -> None:
        """Show other text."""
        self._build = build
        self._rebuild()

    def _rebuild(self) -> None:
        width = max(10, self.size.width - 1)
        self._built_for = self.size.width
        self._lines = list(self._build(width))
        self.virtual_size = Size(self.size.width, len(self._lines))
        self.refresh()

    def on_resize(self, event: events.Resize) -> None:
        if self._built_for != self.size.width:
            self._rebuild()

    @property
    def plain(self) -> str:
        """The whole text."""
        return "\n".join(line.plain for line in self._lines)

    def render_line(self, y: int) -> Strip:
        index = y + self.scroll_offset.y
        width = self.size.width
        if index >= len(self._lines):
            return Strip.blank(width, self.rich_style)
        segments = self._lines[index].render(self.app.console, end="")
        return Strip(segments).apply_style(self.rich_style).adjust_cell_length(width, self.rich_style)

    def action_lines(self, count: int) -> None:
        self.scroll_to(y=self.scroll_offset.y + count, animate=False)

    def action_pages(self, count: float) -> None:
        self.scroll_to(y=self.scroll_offset.y + int(self.size.height * count), animate=False)

    def action_scroll_home(self) -> None:
        self.scroll_home(animate=False)

    def action_scroll_end(self) -> None:
        self.scroll_end(animate=False)
