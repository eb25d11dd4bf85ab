"""Single values as Slurm prints them: times, durations, sizes, exit codes, and the words for "no value".

All functions take any text and give `None` for what they can't read: one odd value never costs a row.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from tfjobtui.model.job import ExitCode

Value = TypeVar("Value")

NO_TEXT = frozenset(
    {"", "(null)", "N/A", "n/a", "None", "none", "None assigned", "Unknown", "UNKNOWN", "NONE"}
)
"""What stands in a column that holds nothing. Never applied to free text such as a job's name."""

NO_VAL = frozenset({4294967294, 4294967295, 18446744073709551614, 18446744073709551615})
"""Slurm's NO_VAL and INFINITE of 32 and 64 bits, which leak out of some columns."""


class Memo(dict[str, Value], Generic[Value]):
    """Remembers what a text means: a second look-up costs that of a dict."""

    __slots__ = ("_read",)

    LIMIT = 20_000

    def __init__(self, read: Callable[[str], Value]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, text: str) -> Value:
        value = self._read(text)
        self[text] = value
        return value

    def trim(self) -> None:
        """Forget everything once it has become much."""
        if len(self) > self.LIMIT:
            self.clear()


def text_or_empty(text: str) -> str:
    """The text, or an empty one for Slurm's words for nothing."""
    return "" if text in NO_TEXT else text


def parse_count(text: str) -> int | None:
    """Read a number of things, `4`, `2K`, `1-1` (squeue's node range of a waiting job: the least)."""
    if text.isascii() and text.isdigit():
        number = int(text)
        return None if number in NO_VAL else number
    match = _COUNT.match(text)
    if match is None:
        return None
    return round(float(match[1]) * _COUNT_UNITS[match[2].upper()])


_COUNT = re.compile(r"(\d+(?:\.\d+)?)([KMGT]?)(?=-|$)", re.ASCII | re.IGNORECASE)
_COUNT_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}


def parse_time(text: str) -> int | None:
    """Read a time: seconds since the epoch (`SLURM_TIME_FORMAT=%s`), or else local ISO time."""
    if text.isascii() and text.isdigit():
        number = int(text)
        return None if number == 0 or number in NO_VAL else number
    if not _ISO.fullmatch(text):
        return None
    try:
        return int(time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%S")))
    except (ValueError, OverflowError):
        return None


_ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", re.ASCII)


def parse_duration(text: str) -> float | None:
    """Read `[D-]HH:MM:SS`, `MM:SS`, `MM:SS.mmm`, `D-HH`; gives seconds, infinity for "no limit".

    `Partition_Limit`, `NOT_SET`, `INVALID` and the like are `None`. A bare number is seconds.
    """
    if text in {"UNLIMITED", "infinite", "INFINITE", "Unlimited"}:
        return math.inf
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    parts = [int(part) for part in match["clock"].split(":")]
    days = int(match["days"] or 0)
    # With days the clock starts with hours (D-HH, D-HH:MM), without it ends with seconds.
    hours, minutes, seconds = [*parts, 0, 0][:3] if match["days"] else [0, 0, *parts][-3:]
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    return total + float(match["fraction"]) if match["fraction"] else float(total)


_DURATION = re.compile(r"(?:(?P<days>\d+)-)?(?P<clock>\d+(?::\d+){0,2})(?P<fraction>\.\d+)?", re.ASCII)


def parse_size(text: str, bare: int = 1) -> int | None:
    """Read a size in bytes: `412420K`, `62.50G`, `0`. A number without a unit counts `bare` bytes each."""
    match = _SIZE.fullmatch(text)
    if match is None:
        return None
    unit = match[2].upper()
    value = float(match[1]) * (_SIZE_UNITS[unit] if unit else bare)
    # NO_VAL64 with a unit (`16E`) is no size.
    return None if value >= 2**63 else round(value)


_SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMGTPE]?)(?:i?B)?", re.ASCII | re.IGNORECASE)
_SIZE_UNITS = {unit: 1024**power for power, unit in enumerate("KMGTPE", 1)}
MEBIBYTE = 1024**2


@dataclass(frozen=True, slots=True)
class RequestedMemory:
    """sacct's `ReqMem`. `per` is `cpu`, `node` (Slurm 20.11 and before) or empty: in all."""

    memory_bytes: int
    per: str = ""

    def total_bytes(self, nodes: int, cpus: int) -> int:
        return self.memory_bytes * {"cpu": cpus, "node": nodes}.get(self.per, 1)


def parse_requested_memory(text: str) -> RequestedMemory | None:
    """Read `4Gn`, `1Mc`, `0n`, `32G`; an empty text or `?` is `None`."""
    per = {"c": "cpu", "n": "node"}.get(text[-1:], "")
    size = parse_size(text[:-1] if per else text, MEBIBYTE)
    return None if size is None else RequestedMemory(size, per)


def parse_exit_code(text: str) -> ExitCode | None:
    """Read `1:0`, or the raw wait status of squeue up to 22.05 (`256` is 1:0, `9` is 0:9)."""
    code, colon, signal = text.partition(":")
    if not (code.isascii() and code.isdigit()):
        return None
    if not colon:
        status = int(code)
        # As wait(2) has it: a status with a signal in it carries no code.
        signal_number = status & 127
        return (
            None if status in NO_VAL else ExitCode(0 if signal_number else status >> 8 & 255, signal_number)
        )
    return ExitCode(int(code), int(signal)) if signal.isascii() and signal.isdigit() else None
