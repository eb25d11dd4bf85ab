"""Files that match a pattern, with a bound on how many names are read.

`glob.glob` reads whole folders, and a folder of logs may hold a million of them.
"""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass

MAX_NAMES = 20_000
"""How many names are read for one pattern, over all folders."""

_MAX_MATCHES = 1_000
_WILDCARD = re.compile(r"[*?[]")
_ESCAPED = re.compile(r"\[([*?[])\]")


@dataclass(frozen=True, slots=True)
class Match:
    """A plain file and the time it was last written to (seconds since the epoch)."""

    path: str
    modified_s: float


def newest_first(pattern: str, max_names: int = MAX_NAMES) -> tuple[Match, ...]:
    """The plain files that match an absolute pattern (in the form of the module `glob`), newest first.

    What can't be read is left out, and so is what comes after `max_names` names.
    """
    budget = [max_names]
    found: list[Match] = []
    for path in _paths("/", pattern.strip("/").split("/"), budget):
        modified = _modified(path)
        if modified is not None:
            found.append(Match(path, modified))
        if len(found) >= _MAX_MATCHES:
            break
    return tuple(sorted(found, key=lambda match: (-match.modified_s, match.path)))


def _modified(path: str) -> float | None:
    try:
        status = os.stat(path)  # noqa: PTH116 (bytes that are no UTF-8 pass as they are)
    except (OSError, ValueError):
        return None
    return status.st_mtime if stat.S_ISREG(status.st_mode) else None


def _paths(folder: str, parts: list[str], budget: list[int]) -> Iterator[str]:
    """The paths below `folder` that match the parts; each name read takes one from the budget."""
    part, rest = parts[0], parts[1:]
    literal = _ESCAPED.sub("", part)
    if not _WILDCARD.search(literal):
        names: Iterator[str] = iter((_ESCAPED.sub(r"\1", part),))
    else:
        names = _names(folder, part, budget)
    for name in names:
        path = f"{folder.rstrip('/')}/{name}"
        if rest:
            yield from _paths(path, rest, budget)
        else:
            yield path


def _names(folder: str, part: str, budget: list[int]) -> Iterator[str]:
    matches = re.compile(fnmatch.translate(part)).match
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                budget[0] -= 1
                if budget[0] < 0:
                    return
                if matches(entry.name) and not entry.name.startswith("."):
                    yield entry.name
    except (OSError, ValueError):
        return
