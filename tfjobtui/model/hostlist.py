"""Host list expressions, `gpu[01-03,07],login1`, taken apart as Slurm does.

Source: the grammar of `slurm_hostlist`(5): a list of names with commas outside brackets; a bracket holds
numbers and ranges, whose width (zero padding) is that of the first number; several brackets multiply.
"""

from __future__ import annotations

import itertools
import re

from tfjobtui.errors import FormatError

MOST = 100_000
"""More hosts than that are a mistake, not a cluster."""
_PIECE = re.compile(r"\[([^\[\]]*)\]|([^\[\]]+)")


def expand(text: str) -> tuple[str, ...]:
    """`gpu[01-02],cpu1` → `("gpu01", "gpu02", "cpu1")`.

    Raises:
        FormatError: it is no host list.
    """
    hosts: list[str] = []
    for word in _split(text):
        pieces = [
            _numbers(text, match[1]) if match[1] is not None else [match[2]]
            for match in _PIECE.finditer(word)
        ]
        hosts.extend("".join(parts) for parts in itertools.islice(itertools.product(*pieces), MOST))
    return tuple(hosts[:MOST])


def _split(text: str) -> list[str]:
    """Split at the commas outside brackets."""
    words: list[str] = []
    depth, start = 0, 0
    for at, char in enumerate(text):
        depth += {"[": 1, "]": -1}.get(char, 0)
        if depth not in (0, 1):
            break
        if char == "," and depth == 0:
            words.append(text[start:at])
            start = at + 1
    if depth != 0:
        raise FormatError(f"not a host list: {text!r}")
    words.append(text[start:])
    return [word for word in words if word]


def _numbers(text: str, body: str) -> list[str]:
    found: list[str] = []
    for part in body.split(","):
        first, dash, last = part.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()) or (dash and int(last) - int(first) > MOST):
            raise FormatError(f"not a host list: {text!r}")
        numbers = range(int(first), int(last if dash else first) + 1)
        found.extend(str(number).zfill(len(first)) for number in numbers)
    return found
