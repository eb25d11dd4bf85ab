"""Colours and other looks: the parameters of the escape sequence `CSI … m`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tfjobtui.logs.lines import PLAIN, Colour, Style

_MAX_KNOWN = 2000
_known: dict[tuple[Style, str], Style] = {}

_SWITCHES: dict[int, dict[str, bool]] = {
    1: {"bold": True},
    2: {"dim": True},
    3: {"italic": True},
    4: {"underline": True},
    7: {"reverse": True},
    21: {"underline": True},
    22: {"bold": False, "dim": False},
    23: {"italic": False},
    24: {"underline": False},
    27: {"reverse": False},
}


def styled(style: Style, parameters: str) -> Style:
    """The style after `CSI <parameters> m`; what is not known is skipped."""
    if parameters in ("", "0"):
        return PLAIN
    key = (style, parameters)
    found = _known.get(key)
    if found is None:
        found = _apply(style, parameters)
        if found == PLAIN:
            found = PLAIN  # the very object, which the fast ways ask for
        if len(_known) >= _MAX_KNOWN:  # true-colour output can hold millions
            _known.clear()
        _known[key] = found
    return found


def _apply(style: Style, parameters: str) -> Style:
    codes = _codes(parameters)
    for code in codes:
        if code == 0:
            style = PLAIN
        elif code in _SWITCHES:
            style = replace(style, **_SWITCHES[code])
        elif 30 <= code <= 37 or 90 <= code <= 97:
            style = replace(style, fg=code - 30 if code < 90 else code - 82)
        elif 40 <= code <= 47 or 100 <= code <= 107:
            style = replace(style, bg=code - 40 if code < 100 else code - 92)
        elif code == 39:
            style = replace(style, fg=None)
        elif code == 49:
            style = replace(style, bg=None)
        elif code in (38, 48):
            colour = _extended(codes)
            if colour is not None:
                style = replace(style, fg=colour) if code == 38 else replace(style, bg=colour)
        elif code == 58:
            _extended(codes)  # the colour of the underline, which is not shown
    return style


def _codes(parameters: str) -> Iterator[int]:
    """The numbers; an absent one is 0. `4:0` (no underline) and `4:3` (a curly one) are one code each."""
    for parameter in parameters.split(";"):
        first, _, rest = parameter.partition(":")
        if rest and first == "4":
            yield 24 if rest == "0" else 4
        elif rest and first in ("38", "48", "58"):
            yield int(first)
            parts = [part for part in rest.split(":") if part != ""]
            # The standard's form has a colour space before the colours: 38:2::1:2:3.
            yield from (_number(part) for part in parts[:4])
        elif not rest:
            yield _number(first)


def _number(text: str) -> int:
    if text == "":
        return 0
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else -1


def _extended(codes: Iterator[int]) -> Colour | None:
    """`5;n` or `2;r;g;b`, taken from the codes that follow; `None` for what is neither or cut short."""
    kind = next(codes, -1)
    if kind == 5:
        index = next(codes, -1)
        return index if 0 <= index <= 255 else None
    if kind == 2:
        red, green, blue = (next(codes, -1) for _ in range(3))
        if all(0 <= part <= 255 for part in (red, green, blue)):
            return red, green, blue
    return None
