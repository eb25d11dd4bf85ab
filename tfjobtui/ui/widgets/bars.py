"""The line above the list, which says what is shown and how old it is, and the line of keys below it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

Part = tuple[str, str]
"""A text and the component class that it is drawn with; empty: the widget's own style."""


class Bar(Widget):
    """One line of styled parts: some from the left, some from the right. What does not fit is cut on the left's end."""

    COMPONENT_CLASSES = {"bar--strong", "bar--good", "bar--warning", "bar--key", "bar--grey"}  # noqa: RUF012 - Textual's form
    DEFAULT_CSS = """
    Bar {
        height: 1;
        background: $panel;
        color: $foreground;
        & > .bar--strong { text-style: bold; color: $foreground; background: $panel; }
        & > .bar--good { color: $text-success; background: $panel; }
        & > .bar--warning { background: $error; color: $background; text-style: bold; }
        & > .bar--key { color: $text-accent; text-style: bold; background: $panel; }
        & > .bar--grey { color: $foreground 40%; background: $panel; }
        &:ansi {
            background: ansi_default;
            & > .bar--strong { color: ansi_default; background: ansi_default; }
            & > .bar--good { color: ansi_green; background: ansi_default; }
            & > .bar--warning { background: ansi_default; color: ansi_red; text-style: bold reverse; }
            & > .bar--key { color: ansi_default; background: ansi_default; }
            & > .bar--grey { color: ansi_default; text-style: dim; background: ansi_default; }
        }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._left: tuple[Part, ...] = ()
        self._right: tuple[Part, ...] = ()

    def show(self, left: Sequence[Part], right: Sequence[Part] = ()) -> None:
        """Draw other parts, if they are others."""
        new = (tuple(left), tuple(right))
        if new != (self._left, self._right):
            self._left, self._right = new
            self.refresh()

    @property
    def text(self) -> str:
        """What is shown, without styles."""
        return "".join(text for text, _ in (*self._left, *self._right))

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        right = self._segments(self._right)
        right_width = sum(cell_len(segment.text) for segment in right)
        left = Strip(self._segments(self._left))
        room = max(0, width - right_width)
        left = left.adjust_cell_length(room, self.rich_style)
        return Strip.join([left, Strip(right)]).adjust_cell_length(width, self.rich_style)

    def _segments(self, parts: Sequence[Part]) -> list[Segment]:
        return [Segment(text, self._style(name)) for text, name in parts]

    def _style(self, name: str) -> Style:
        return self.get_component_rich_style(name) if name else self.rich_style


class KeyHints(Bar):
    """The keys that matter most where the focus is: `x cancel  l log  …`."""

    ALWAYS = 2
    """So many of the last ones, help and the way out, are there however narrow the terminal is."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._keys: tuple[tuple[str, str], ...] = ()
        self._grey: frozenset[str] = frozenset()

    def show_keys(self, keys: Sequence[tuple[str, str]], grey: Iterable[str] = ()) -> None:
        """Pairs of a key and what it does, the most important first, but for the last two.

        The keys in `grey` do nothing here but to say why.
        """
        self._keys = tuple(keys)
        self._grey = frozenset(grey)
        self._fit()

    def on_resize(self) -> None:
        self._fit()

    def _fit(self) -> None:
        """Whole ones only, as many as there is room for."""
        keys = list(self._keys)
        while len(keys) > self.ALWAYS and sum(map(_hint_width, keys)) > self.size.width > 0:
            del keys[-self.ALWAYS - 1]
        parts: list[Part] = []
        for key, what in keys:
            if key in self._grey:
                parts.append((f" {key} {what} ", "bar--grey"))
            else:
                parts += [(f" {key}", "bar--key"), (f" {what} ", "")]
        self.show(parts)


def _hint_width(hint: tuple[str, str]) -> int:
    return cell_len(hint[0]) + cell_len(hint[1]) + 3
