"""Times, sizes and signals as sbatch's options take them.

Sources: sbatch(1) on `--time`, `--begin`, `--signal` and `--mem`, and Slurm's `parse_time.c`, whose rules hold
where the manual says nothing.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import signal as signals

from tfjobtui.errors import FormatError
from tfjobtui.schedulers.local.request import LimitSignal

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}
_MEBIBYTE = 1 << 20
_SIZE = re.compile(r"(\d+)([KMGTP]?)B?", re.ASCII | re.IGNORECASE)
_LIMIT_FORMS = (
    re.compile(r"(?P<d>\d+)-(?P<h>\d+)(?::(?P<m>\d+)(?::(?P<s>\d+))?)?", re.ASCII),
    re.compile(r"(?P<h>\d+):(?P<m>\d+):(?P<s>\d+)", re.ASCII),
    re.compile(r"(?P<m>\d+)(?::(?P<s>\d+))?", re.ASCII),
)
_DEFAULT_WARNING_S = 60
_MOST_WARNING_S = 65535


def time_limit_s(text: str) -> float:
    """`30` (minutes), `1:30` (a minute and a half), `1:30:00`, `2-12`, `UNLIMITED`; whole minutes, rounded up.

    Raises:
        FormatError: it is no time.
    """
    if text.casefold() in ("infinite", "unlimited"):
        return math.inf
    for form in _LIMIT_FORMS:
        match = form.fullmatch(text)
        if match is not None:
            parts = {name: int(value) for name, value in match.groupdict().items() if value}
            seconds = (
                parts.get("d", 0) * 86400
                + parts.get("h", 0) * 3600
                + parts.get("m", 0) * 60
                + parts.get("s", 0)
            )
            return math.ceil(seconds / 60) * 60.0 if seconds else math.inf
    raise FormatError(f"{text!r} is no time limit", "Try 30 (minutes), 1:30:00, or 2-12 (2 days, 12 hours).")


def size_bytes(text: str) -> int:
    """`4G`, `512M`, `4096` (MiB); KiB are rounded up to whole MiB, as Slurm counts.

    Raises:
        FormatError: it is no size.
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        raise FormatError(f"{text!r} is no size", "Try 16G.")
    count = int(match[1]) * _UNITS[match[2].upper() or "M"]
    return -(-count // _MEBIBYTE) * _MEBIBYTE


def limit_signal(text: str) -> LimitSignal:
    """`USR1`, `10@120`, `B:TERM@300`.

    Raises:
        FormatError: it is no signal, or no time.
    """
    flags, colon, rest = text.rpartition(":")
    if colon and not set(flags.upper()) <= {"B", "R", ","}:
        raise FormatError(f"{text!r} is no signal before the limit", "Try USR1@120, or B:USR1@120.")
    name, _, seconds = rest.partition("@")
    if seconds and (not seconds.isdigit() or int(seconds) > _MOST_WARNING_S):
        raise FormatError(f"{seconds!r} is no number of seconds from 0 to {_MOST_WARNING_S}")
    return LimitSignal(
        signal_number(name), int(seconds) if seconds else _DEFAULT_WARNING_S, "B" in flags.upper()
    )


def signal_number(text: str) -> int:
    """`USR1`, `SIGUSR1`, `usr1`, `10`.

    Raises:
        FormatError: there is no such signal.
    """
    if text.isdigit() and 0 < int(text) < signals.NSIG:
        return int(text)
    name = text.upper().removeprefix("SIG")
    try:
        return int(signals.Signals[f"SIG{name}"])
    except KeyError:
        raise FormatError(f"there is no signal {text!r}", "Try USR1, TERM or a number.") from None


# ---- Moments

_NAMED = {"midnight": (0, 0), "noon": (12, 0), "elevenses": (11, 0), "fika": (15, 0), "teatime": (16, 0)}
_LATER = re.compile(
    r"now(?:\s*\+\s*(\d+)\s*(s|sec|secs|seconds?|m|min|mins|minutes?|h|hrs?|hours?|d|days?|w|weeks?)?)?",
    re.ASCII | re.IGNORECASE,
)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?\s*([ap]m)?", re.ASCII | re.IGNORECASE)
_DATES = (
    re.compile(r"(?P<y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})", re.ASCII),
    re.compile(r"(?P<m>\d{1,2})[/.](?P<d>\d{1,2})(?:[/.](?P<y>\d{2,4}))?", re.ASCII),
    re.compile(r"(?P<m>\d{2})(?P<d>\d{2})(?P<y>\d{2})?", re.ASCII),
)


def moment_s(text: str, now_s: float) -> float:
    """`now+1hour`, `16:00`, `tomorrow`, `2026-12-01T10:00`: seconds since the epoch, by the local clock.

    Raises:
        FormatError: it is no moment.
    """
    match = _LATER.fullmatch(text.strip())
    if match is not None:
        return now_s + int(match[1] or 0) * _SECONDS[(match[2] or "s")[0].lower()]
    now = dt.datetime.fromtimestamp(now_s)
    date: dt.date | None = None
    clock: dt.time | None = None
    for word in re.split(r"[T\s]+(?![ap]m)", text.strip(), flags=re.IGNORECASE):
        found = _date(word, now)
        if found is not None and date is None:
            date = found
        elif (time := _clock(word)) is not None and clock is None:
            clock = time
        else:
            raise FormatError(f"{text!r} is no moment", "Try now+1hour, 16:00, tomorrow or 2026-12-01T10:00.")
    if date is None:
        assert clock is not None
        chosen = dt.datetime.combine(now.date(), clock)
        return (chosen if chosen > now else chosen + dt.timedelta(days=1)).timestamp()
    return dt.datetime.combine(date, clock or _no_clock(date, now)).timestamp()


def _no_clock(date: dt.date, now: dt.datetime) -> dt.time:
    """Of a day without a time Slurm takes the present time of day for today and tomorrow, else midnight."""
    near = date in (now.date(), now.date() + dt.timedelta(days=1))
    return now.time().replace(microsecond=0) if near else dt.time()


def _date(word: str, now: dt.datetime) -> dt.date | None:
    lower = word.casefold()
    if lower in ("today", "tomorrow"):
        return now.date() + dt.timedelta(days=int(lower == "tomorrow"))
    for form in _DATES:
        match = form.fullmatch(word)
        if match is None:
            continue
        year = int(match["y"]) if match["y"] else now.year
        try:
            found = dt.date(year + 2000 if year < 100 else year, int(match["m"]), int(match["d"]))
        except ValueError:
            return None
        # Without a year the next such day is meant.
        return found if match["y"] or found >= now.date() else found.replace(year=year + 1)
    return None


def _clock(word: str) -> dt.time | None:
    named = _NAMED.get(word.casefold())
    if named is not None:
        return dt.time(*named)
    match = _CLOCK.fullmatch(word)
    if match is None:
        return None
    hour, half = int(match[1]), (match[4] or "").casefold()
    if half and not 1 <= hour <= 12:
        return None
    hour = hour % 12 + 12 * (half == "pm") if half else hour
    try:
        return dt.time(hour, int(match[2]), int(match[3] or 0))
    except ValueError:
        return None
