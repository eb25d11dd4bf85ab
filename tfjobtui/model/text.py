"""Text from outside, made fit to be shown: no control character ever reaches the terminal raw."""

from __future__ import annotations

import re

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
