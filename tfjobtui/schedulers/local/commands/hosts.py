"""Host lists the other way round: many names as one expression."""

from __future__ import annotations

import re
from collections.abc import Sequence

_NUMBERED = re.compile(r"(.*?)(\d+)", re.ASCII | re.DOTALL)


def compressed(hosts: Sequence[str]) -> str:
    """`n1 n2 n3 x` → `n[1-3],x`, of neighbours only, as `scontrol show hostlist` does."""
    groups: list[tuple[str, list[str]]] = []
    for host in hosts:
        match = _NUMBERED.fullmatch(host)
        prefix, number = (match[1], match[2]) if match else (host, "")
        if (
            groups
            and number
            and groups[-1][0] == prefix
            and groups[-1][1]
            and _fits(groups[-1][1][-1], number)
        ):
            groups[-1][1].append(number)
        else:
            groups.append((prefix, [number] if number else []))
    return ",".join(prefix + _numbers(numbers) for prefix, numbers in groups)


def _fits(last: str, number: str) -> bool:
    """Whether numbers may stand in one bracket: padded ones only with others of the same width."""
    is_padded = last.startswith("0") or number.startswith("0")
    return len(last) == len(number) if is_padded else True


def _numbers(numbers: Sequence[str]) -> str:
    if len(numbers) < 2:
        return "".join(numbers)
    ranges: list[list[str]] = []
    for number in numbers:
        if ranges and int(number) == int(ranges[-1][1]) + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return "[" + ",".join(low if low == high else f"{low}-{high}" for low, high in ranges) + "]"
