"""Moments, durations and sizes as Slurm's commands print them."""

from __future__ import annotations

import math
import os
import time

_UNITS = ("", "K", "M", "G", "T", "P", "E")


def moment(second: float | None, absent: str = "Unknown") -> str:
    """In local time, or by SLURM_TIME_FORMAT; `relative` is not known here and gives the whole moment too."""
    if second is None:
        return absent
    form = os.environ.get("SLURM_TIME_FORMAT") or "standard"
    form = "%Y-%m-%dT%H:%M:%S" if form in ("standard", "relative") else form
    return time.strftime(form, time.localtime(second))


def clock(seconds: float) -> str:
    """`UNLIMITED`, `[D-]HH:MM:SS`, as scontrol and sacct print durations."""
    if math.isinf(seconds):
        return "UNLIMITED"
    days, rest = divmod(int(seconds), 86400)
    text = f"{rest // 3600:02}:{rest % 3600 // 60:02}:{rest % 60:02}"
    return f"{days}-{text}" if days else text


def short_clock(seconds: float) -> str:
    """`UNLIMITED`, `5:00`, `1:02:03`, `1-02:03:04`, as squeue prints durations."""
    if math.isinf(seconds):
        return "UNLIMITED"
    days, rest = divmod(int(seconds), 86400)
    hours, minutes, left = rest // 3600, rest % 3600 // 60, rest % 60
    if days:
        return f"{days}-{hours:02}:{minutes:02}:{left:02}"
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"


def fine_clock(seconds: float | None) -> str:
    """`06:57.815`, `01:01:06`, `1-02:03:04`, as sacct's TotalCPU; `00:00:00` where it is not known."""
    if seconds is None:
        return "00:00:00"
    if seconds < 3600:
        milliseconds = int(seconds * 1000)
        return f"{milliseconds // 60000:02}:{milliseconds // 1000 % 60:02}.{milliseconds % 1000:03}"
    return clock(seconds)


def exact_size(count: int, unit: str = "", wanted: str = "") -> str:
    """A count of `unit`s in the largest unit that leaves it whole: 1500 M → `1500M`, 2048 M → `2G`.

    With `wanted` it is in that unit, with two digits after the point where it is not whole.
    """
    power = _UNITS.index(unit)
    if wanted:
        value = count / 1024 ** (_UNITS.index(wanted) - power)
        return f"{value:.0f}{wanted}" if value == int(value) else f"{value:.2f}{wanted}"
    while count and count % 1024 == 0 and power < len(_UNITS) - 1:
        count, power = count // 1024, power + 1
    return f"{count}{_UNITS[power] if count else ''}"


def cut(text: str, width: int, *, right: bool = False) -> str:
    """Padded to the width and cut there; 0 leaves it as it is."""
    if not width:
        return text
    return text[:width].rjust(width) if right else text[:width].ljust(width)
