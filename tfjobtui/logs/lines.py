"""What a log view shows: lines of text with their colours."""

from __future__ import annotations

from dataclasses import dataclass

Colour = int | tuple[int, int, int]
"""An index into the terminal's 256 colours (0 to 15: its own palette), or red, green and blue (0 to 255)."""


@dataclass(frozen=True, slots=True)
class Style:
    """How a piece of text looks; `None` is the terminal's own colour."""

    fg: Colour | None = None
    bg: Colour | None = None
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underline: bool = False
    reverse: bool = False


PLAIN = Style()


@dataclass(frozen=True, slots=True)
class Span:
    """`text[start:end]` of its line has this style."""

    start: int
    end: int
    style: Style


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line without control characters.

    `spans` are in order, don't overlap and leave out what is plain. `is_marker` tells a remark of the
    program's (a cut, a gap) from the job's own text.
    """

    text: str
    spans: tuple[Span, ...] = ()
    is_marker: bool = False
