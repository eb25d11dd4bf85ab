"""Text for a terminal or a pipe: messages, tables, JSON, questions."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from tfjobtui.errors import UsageError
from tfjobtui.model.text import cells, fit, printable

JSON_VERSION = 1
"""Grows when a key of the output for programs changes its meaning or goes."""


def complain(message: str, hint: str = "") -> None:
    """Tell of an error: one line that names the program, and what can be done."""
    lines = printable(message.replace("\n", " · "))
    print(f"tfjobtui: {lines}", file=sys.stderr)
    for line in hint.splitlines():
        print(f"  {printable(line)}", file=sys.stderr)


def print_json(content: Mapping[str, Any]) -> None:
    """One object; text that is no UTF-8 is escaped, so that what is printed always is."""
    print(json.dumps({"version": JSON_VERSION, **content}, indent=2))


def width_of(stream: TextIO | None = None) -> int | None:
    """The columns of the terminal, or `None` where the output goes elsewhere."""
    stream = sys.stdout if stream is None else stream
    return shutil.get_terminal_size().columns if stream.isatty() else None


_MOST_COMMANDS = 5


def confirm(question: str, *, yes: bool, commands: Sequence[Sequence[str]] = ()) -> bool:
    """Ask for a yes, unless it was given on the command line; `commands` are what a yes would run.

    Raises:
        UsageError: there is nobody to ask.
    """
    if yes:
        return True
    if not sys.stdin.isatty():
        raise UsageError("there is no terminal to ask at", "Say --yes if it is meant.")
    for words in commands[:_MOST_COMMANDS]:
        print(f"$ {printable(shlex.join(words))}", file=sys.stderr)
    if len(commands) > _MOST_COMMANDS:
        print(f"… {len(commands) - _MOST_COMMANDS} more commands like these", file=sys.stderr)
    print(f"{printable(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


def print_table(titles: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[bool] = ()) -> None:
    """Print aligned columns; the last one is cut at the edge of a terminal, and never padded."""
    aligned = [*right, *([False] * (len(titles) - len(right)))]
    widths = [max(cells(row[at]) for row in (titles, *rows)) for at in range(len(titles))]
    for row in (titles, *rows):
        print_row(
            [fit(text, width, right=side) for text, width, side in zip(row, widths, aligned, strict=True)]
        )


def print_row(parts: Sequence[str]) -> None:
    line = "  ".join(parts).rstrip()
    width = width_of()
    print(line if width is None else fit(line, width).rstrip())


def print_pairs(pairs: Sequence[tuple[str, str]], indent: str = "") -> None:
    """`name   value` lines, the names in one width; values without text are left out."""
    shown = [(name, value) for name, value in pairs if value]
    widest = max((cells(name) for name, _ in shown), default=0)
    for name, value in shown:
        print(f"{indent}{fit(name, widest)}  {printable(value)}".rstrip())


def uses_colour() -> bool:
    """Whether colours are wanted and can be shown."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
