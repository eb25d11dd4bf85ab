"""Times, sizes and signals as sbatch's options take them.

Sources: Slurm's `parse_time.c` and `proc_args.c` (22.05; later releases take the same), whose rules hold where
sbatch(1) says nothing: a moment's units have to be written out, for instance, and `Tomorrow` with a capital
is none.
"""

from __future__ import annotations

import math
import re
import signal as signals
import time
from dataclasses import dataclass, field

from tfjobtui.errors import FormatError
from tfjobtui.schedulers.local.request import LimitSignal

_MEBIBYTE = 1 << 20
_SIZE = re.compile(r"\s*\+?(\d+)(?:([KMGT])B?)?", re.ASCII | re.IGNORECASE)
_UNITS = {"M": 1, "G": 1 << 10, "T": 1 << 20}
_MOST = 1 << 63
_LIMITS = (
    re.compile(r"(?P<d>\d+)-(?:(?P<h>\d+)(?::(?P<m>\d+)(?::(?P<s>\d+))?)?)?", re.ASCII),
    re.compile(r"(?P<h>\d+):(?P<m>\d+):(?P<s>\d+)", re.ASCII),
    re.compile(r"(?P<m>\d+)(?::(?P<s>\d+))?", re.ASCII),
)
_LONGEST_S = ((1 << 31) - 1) * 60
_SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1}


def time_limit_s(text: str) -> float:
    """`30` (minutes), `1:30` (a minute and a half), `1:30:00`, `2-12`, `UNLIMITED`; whole minutes, rounded up.

    0 and -1 are no limit either.

    Raises:
        FormatError: it is no time.
    """
    if text.casefold() in ("-1", "infinite", "unlimited"):
        return math.inf
    for form in _LIMITS:
        match = form.fullmatch(text)
        if match is not None:
            parts = match.groupdict()
            seconds = sum(int(parts[unit] or 0) * _SECONDS[unit] for unit in parts)
            if seconds > _LONGEST_S:
                raise FormatError(f"{text!r} is longer than Slurm can count", "UNLIMITED is no limit.")
            return math.ceil(seconds / 60) * 60.0 if seconds else math.inf
    raise FormatError(f"{text!r} is no time", "Try 30 (minutes), 1:30:00, or 2-12 (2 days, 12 hours).")


def size_bytes(text: str) -> int:
    """`4G`, `512M`, `4096` (MiB), `4GB`; KiB are rounded up to whole MiB, as Slurm counts.

    Raises:
        FormatError: it is no size.
    """
    match = _SIZE.fullmatch(text)
    if match is None or int(match[1]) >= _MOST:
        raise FormatError(f"{text!r} is no size", "A size is a whole number with K, M, G or T: try 16G.")
    unit = (match[2] or "M").upper()
    mebibytes = -(-int(match[1]) // 1024) if unit == "K" else int(match[1]) * _UNITS[unit]
    return mebibytes * _MEBIBYTE


# ---- Signals

_NAMES = "HUP INT QUIT ABRT KILL ALRM TERM CHLD USR1 USR2 PIPE URG CONT STOP TSTP TTIN TTOU XCPU".split()
_LIMIT_SIGNAL = re.compile(r"(?P<flags>R?B?R?):?(?P<signal>[^@]*)(?:@(?P<seconds>[+]?\d*))?", re.IGNORECASE)
_DEFAULT_WARNING_S = 60
_MOST_WARNING_S = 65535


def limit_signal(text: str) -> LimitSignal:
    """`USR1`, `10@120`, `B:TERM@300`.

    Raises:
        FormatError: it is no signal, or no time.
    """
    match = _LIMIT_SIGNAL.fullmatch(text)
    if match is None:
        raise FormatError(f"{text!r} is no signal with a time", "Try USR1@120, or B:USR1@120.")
    number = signal_number(match["signal"])
    if match["seconds"] is None:
        before_s = _DEFAULT_WARNING_S
    else:
        before_s = int(match["seconds"].lstrip("+") or 0)
    if before_s > _MOST_WARNING_S:
        raise FormatError(f"{before_s} is no number of seconds from 0 to {_MOST_WARNING_S}")
    return LimitSignal(number, before_s, "B" in match["flags"].upper())


def signal_number(text: str) -> int:
    """`USR1`, `SIGUSR1`, `usr1`, `10`; the names are those that Slurm knows.

    Raises:
        FormatError: there is no such signal.
    """
    word = text.strip()
    if re.fullmatch(r"\+?\d+", word, re.ASCII) and 0 < int(word) < signals.NSIG:
        return int(word)
    name = word.upper().removeprefix("SIG")
    if name not in _NAMES:
        raise FormatError(f"there is no signal {text!r}", "Try USR1, TERM or a number.")
    return int(signals.Signals[f"SIG{name}"])


# ---- Moments

_NAMED = {"midnight": 0, "noon": 12, "elevenses": 11, "fika": 15, "teatime": 16}
"""Hours of the day."""
_UNIT_S = {
    "second": 1,
    "minute": 60,
    "hour": 3600,
    "day": 86400,
    "week": 604800,
}
_NOW = re.compile(
    r"now[ \t]*(?:$|(?P<sign>[+-])\s*(?P<count>\d[\d\s]*)(?P<unit>(?:second|minute|hour|day|week)s?)?)",
    re.ASCII | re.IGNORECASE,
)
_CLOCK = re.compile(
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}))?\s*(?P<half>[ap]m)?", re.ASCII | re.IGNORECASE
)
_LONG_DATE = re.compile(r"(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{1,2})", re.ASCII)
# A month takes two digits if there are two: `131` is no 3rd of January.
_SHORT_DATE = re.compile(r"(?P<month>\d{1,2}+)[./]?(?P<day>\d{1,2}+)[./]?(?P<year>\d{2})?", re.ASCII)
_EPOCH = re.compile(r"uts\s*\+?(\d+)", re.ASCII | re.IGNORECASE)
_LEAST_EPOCH = 1_000_000
_Day = tuple[int | None, int, int]
"""Year, month, day of the month."""


def moment_s(text: str, now_s: float) -> float:
    """`now+1hour`, `16:00`, `tomorrow`, `2026-12-01T10:00`, `12/24`: seconds since the epoch, by the local clock.

    A time without a day is the next such time, a day without a year the next such day, and a day without a
    time its beginning.

    Raises:
        FormatError: it is no moment.
    """
    epoch = _EPOCH.fullmatch(text)
    if epoch is not None and int(epoch[1]) >= _LEAST_EPOCH:
        return float(epoch[1])
    found = _Found(int(now_s))
    line = text.partition("\n")[0]
    at = 0
    try:
        while at < len(line):
            at = at + 1 if line[at] in " \t-T" else found.take(line, at)
        return found.moment_s()
    except (ValueError, OverflowError):
        raise FormatError(
            f"{text!r} is no moment", "Try now+1hour, 16:00, tomorrow or 2026-12-01T10:00."
        ) from None


@dataclass
class _Found:
    """What the words of a moment have told so far; a later one replaces an earlier one of its kind."""

    now_s: int
    day: _Day | None = None
    hour: int | None = None
    minute: int = 0
    second: int = 0
    now: time.struct_time = field(init=False)

    def __post_init__(self) -> None:
        self.now = time.localtime(self.now_s)

    def take(self, line: str, at: int) -> int:
        """Take the word that begins here; the answer is where it ends.

        Raises:
            ValueError: there is none.
        """
        lower = line[at:].lower()
        for word, later_s in (("today", 0), ("tomorrow", 86400)):
            if lower.startswith(word):
                self.day = _day(time.localtime(self.now_s + later_s))
                return at + len(word)
        for word, hour in _NAMED.items():
            if lower.startswith(word):
                self.hour, self.minute, self.second = hour, 0, 0
                return at + len(word)
        if lower.startswith("now"):
            return self._take_now(line, at)
        if ":" in line[at + 1 : at + 3]:
            return self._take_clock(line, at)
        return self._take_date(line, at)

    def _take_now(self, line: str, at: int) -> int:
        match = _NOW.match(line, at)
        if match is None:
            raise ValueError(line)
        later_s = 0
        if match["count"] is not None:
            unit = (match["unit"] or "second").lower().removesuffix("s")
            later_s = int(re.sub(r"\s", "", match["count"])) * _UNIT_S[unit]
        later = time.localtime(self.now_s + (-later_s if match["sign"] == "-" else later_s))
        self.day = _day(later)
        self.hour, self.minute, self.second = later.tm_hour, later.tm_min, later.tm_sec
        return match.end()

    def _take_clock(self, line: str, at: int) -> int:
        match = _CLOCK.match(line, at)
        if match is None:
            raise ValueError(line)
        hour, self.minute, self.second = int(match["hour"]), int(match["minute"]), int(match["second"] or 0)
        half = (match["half"] or "").lower()
        if hour > 23 or self.minute > 59 or self.second > 59 or (half and hour > 12):
            raise ValueError(line)
        self.hour = hour % 12 + 12 * (half == "pm") if half else hour
        return match.end()

    def _take_date(self, line: str, at: int) -> int:
        match = _LONG_DATE.match(line, at) or _SHORT_DATE.match(line, at)
        if match is None:
            raise ValueError(line)
        month, day, year = int(match["month"]), int(match["day"]), int(match["year"] or 0)
        if not 1 <= month <= 12 or not 1 <= day <= 31:
            raise ValueError(line)
        known = self.day[0] if self.day else None
        self.day = ((year + 2000 if year < 100 else year) if year else known, month, day)
        return match.end()

    def moment_s(self) -> float:
        """All of it together.

        Raises:
            ValueError, OverflowError: it is nothing, or no time that can be told.
        """
        hour = self.hour
        if self.day is None:
            if hour is None:
                raise ValueError("nothing is there")
            is_later = (hour, self.minute) > (self.now.tm_hour, self.now.tm_min)
            year, month, day = _day(self.now if is_later else time.localtime(self.now_s + 86400))
        else:
            year, month, day = self.day
        if year is None:
            wanted = (month, day, hour or 0, self.minute)
            is_later = wanted > (self.now.tm_mon, self.now.tm_mday, self.now.tm_hour, self.now.tm_min)
            year = self.now.tm_year + (not is_later)
        # As in C, the 31st of February is the 3rd of March.
        return time.mktime((year, month, day, hour or 0, self.minute, self.second, 0, 0, -1))


def _day(moment: time.struct_time) -> _Day:
    return moment.tm_year, moment.tm_mon, moment.tm_mday
