"""The lines of a script in which its parameters get their values, between two marks.

    # >>> parameters
    EPOCHS="${EPOCHS:-12}"
    # <<< parameters

Each parameter has one line there. As it is, plain sbatch takes the value from the environment; filling in
puts `EPOCHS=20` in its place, after which the environment no longer counts.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

from tfjobtui.errors import FormatError

BEGIN = "# >>> parameters"
END = "# <<< parameters"

_ASSIGNMENT = re.compile(r"(?P<indent>[ \t]*)(?P<name>[A-Za-z_][A-Za-z0-9_]*)=.*", re.ASCII)


def check(script: str, names: Iterable[str]) -> None:
    """See whether each of the parameters has its line.

    Raises:
        FormatError: one has none or several, or the marks are not one pair.
    """
    _places(script.split("\n"), names)


def fill(script: str, values: Mapping[str, str]) -> str:
    """Put values into their lines, quoted for the shell; everything else stays as it is.

    The values must have no line break and no NUL.

    Raises:
        FormatError: a parameter has no line or several, or the marks are not one pair.
    """
    lines = script.split("\n")
    for name, (number, indent) in _places(lines, values).items():
        lines[number] = f"{indent}{name}={shlex.quote(values[name])}"
    return "\n".join(lines)


def _places(lines: Sequence[str], names: Iterable[str]) -> dict[str, tuple[int, str]]:
    """For each name the index of its line, and what that line is indented by."""
    wanted = set(names)
    places: dict[str, tuple[int, str]] = {}
    for number in _inside(lines):
        match = _ASSIGNMENT.fullmatch(lines[number])
        if match is None or match["name"] not in wanted:
            continue
        if match["name"] in places:
            raise FormatError(f"line {number + 1}: {match['name']} gets its value twice")
        places[match["name"]] = (number, match["indent"])
    missing = sorted(wanted - places.keys())
    if missing:
        raise FormatError(f"there is no line {missing[0]}=… between the marks `{BEGIN}` and `{END}`")
    return places


def _inside(lines: Sequence[str]) -> range:
    marks = [(number, line.rstrip()) for number, line in enumerate(lines) if line.rstrip() in (BEGIN, END)]
    if not marks:
        return range(0)
    if [mark for _, mark in marks] != [BEGIN, END]:
        raise FormatError(f"the parameters stand between one `{BEGIN}` and one `{END}` after it")
    return range(marks[0][0] + 1, marks[1][0])
