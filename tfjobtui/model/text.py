"""Text from outside, made fit to be shown: no control character ever reaches the terminal raw."""

from __future__ import annotations

import re
import unicodedata

_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\ud800-\udfff\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029\ufeff]"
)


def printable(text: str) -> str:
    """Put a visible mark in place of every character that could move the cursor or change the terminal.

    Newlines and tabs become `␤` and a blank; other C0 controls their pictures (U+2400 block); C1
    controls, lone surrogates (bytes that were no UTF-8) and bidirectional overrides U+FFFD.
    """
    if text.isascii() and text.isprintable():
        return text
    return _UNPRINTABLE.sub(_mark, text)


def _mark(match: re.Match[str]) -> str:
    char = match[0]
    if char == "\n":
        return "␤"
    if char == "\t":
        return " "
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else "\ufffd"


def cells(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(_cells_of(char) for char in text)


def _cells_of(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


def fit(text: str, width: int, *, right: bool = False) -> str:
    """Cut or pad a text to `width` cells; a cut is marked with `…`."""
    have = cells(text)
    if have > width:
        text = _cut(text, width)
        have = cells(text)
    blanks = " " * (width - have)
    return blanks + text if right else text + blanks


def _cut(text: str, width: int) -> str:
    kept, used = [], 0
    for char in text:
        used += _cells_of(char)
        if used > width - 1:
            break
        kept.append(char)
    return "".join(kept) + "…" if width > 0 else ""
