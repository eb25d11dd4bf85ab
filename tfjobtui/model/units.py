"""Figures as a person reads them: durations, sizes, times of day."""

from __future__ import annotations

import math
import time


def duration(seconds: float | None) -> str:
    """`45s`, `12:05`, `3:12:05`, `2d 04:10`; `∞` without a limit, empty when not known.

    Below a minute the unit is named, since `0:45` could be read as minutes.
    """
    if seconds is None:
        return ""
    if math.isinf(seconds):
        return "∞"
    total = int(seconds)
    if total < 60:
        return f"{total}s"
    minutes, secs = divmod(total, 60)
    if minutes < 60:
        return f"{minutes}:{secs:02}"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours}:{minutes:02}:{secs:02}"
    days, hours = divmod(hours, 24)
    return f"{days}d {hours:02}:{minutes:02}"


def short_duration(seconds: float | None) -> str:
    """The same in at most five characters: `45s`, `12m`, `3h12`, `2d4h`, `41d`."""
    if seconds is None:
        return ""
    if math.isinf(seconds):
        return "∞"
    total = int(seconds)
    if total < 60:
        return f"{total}s"
    minutes = total // 60
    if minutes < 60:
        return f"{minutes}m"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours}h{minutes:02}"
    days, hours = divmod(hours, 24)
    return f"{days}d{hours}h" if days < 10 else f"{days}d"


_UNITS = ("", "K", "M", "G", "T", "P")


def size(count: int | None) -> str:
    """Bytes in powers of 1024: `512M`, `7.8G`, `64G`, `1.5T`; empty when not known."""
    if count is None:
        return ""
    value, power = float(count), 0
    while value >= 1024 and power < len(_UNITS) - 1:
        value, power = value / 1024, power + 1
    text = f"{value:.1f}" if value < 10 and power and value != int(value) else f"{value:.0f}"
    return text + _UNITS[power]


def clock(epoch_s: float | None, now_s: float) -> str:
    """A moment in local time, as short as it stays clear: `14:05`, `Tue 14:05`, `3 Mar 14:05`, `2024-03-03`."""
    if epoch_s is None:
        return ""
    moment, now = time.localtime(epoch_s), time.localtime(now_s)
    apart_s = abs(epoch_s - now_s)
    if (moment.tm_year, moment.tm_yday) == (now.tm_year, now.tm_yday):
        return time.strftime("%H:%M", moment)
    if apart_s < 6 * 86400:
        return time.strftime("%a %H:%M", moment)
    if apart_s < 300 * 86400:
        return f"{moment.tm_mday} {time.strftime('%b %H:%M', moment)}"
    return time.strftime("%Y-%m-%d", moment)


def stamp(epoch_s: float) -> str:
    """A moment in local time, whole: `2024-03-03 14:05:09`."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(epoch_s))
