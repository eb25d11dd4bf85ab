"""Times, sizes and signals in sbatch's forms."""

from __future__ import annotations

import math
import signal
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfjobtui.errors import FormatError
from tfjobtui.schedulers.local.moments import limit_signal, moment_s, signal_number, size_bytes, time_limit_s
from tfjobtui.schedulers.local.request import LimitSignal

MIB = 1 << 20


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 1800),
        ("1:30", 120),
        ("1:30:00", 5400),
        ("2-12", 216000),
        ("2-12:30", 217800),
        ("1-0:0:1", 86460),
        ("1-", 86400),
        ("0:1", 60),
        ("0", math.inf),
        ("-1", math.inf),
        ("UNLIMITED", math.inf),
        ("infinite", math.inf),
    ],
)
def test_time_limits(text: str, seconds: float) -> None:
    assert time_limit_s(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "abc", "30m", "1.5", ":30", "5:", "1:2:3:4", "1-2-3", "-5", " 5", "٣", "9" * 12]
)
def test_what_is_no_time_limit(text: str) -> None:
    with pytest.raises(FormatError) as error:
        time_limit_s(text)
    assert error.value.hint


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("64", 64 * MIB),
        ("64M", 64 * MIB),
        ("1K", MIB),
        ("2049k", 3 * MIB),
        ("4G", 4096 * MIB),
        ("4gb", 4096 * MIB),
        ("1T", MIB * MIB),
        ("0", 0),
        (" +5", 5 * MIB),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert size_bytes(text) == size


@pytest.mark.parametrize("text", ["", "G", "1.5G", "-1", "4B", "1P", "4 G", "99999999999999999999", "٤G"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(FormatError):
        size_bytes(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("USR1", LimitSignal(signal.SIGUSR1, 60)),
        ("sigusr1@120", LimitSignal(signal.SIGUSR1, 120)),
        ("10@", LimitSignal(10, 0)),
        ("B:TERM@300", LimitSignal(signal.SIGTERM, 300, True)),
        ("RB:INT@1", LimitSignal(signal.SIGINT, 1, True)),
        ("BR:INT@1", LimitSignal(signal.SIGINT, 1, True)),
        ("R:URG", LimitSignal(signal.SIGURG, 60)),
        ("b:2@+5", LimitSignal(signal.SIGINT, 5, True)),
    ],
)
def test_signals_before_the_limit(text: str, expected: LimitSignal) -> None:
    assert limit_signal(text) == expected


@pytest.mark.parametrize(
    "text", ["", "BUS", "USR3", "0", "99", "-1", "USR1@65536", "USR1@x", "X:USR1", "B:", "@5"]
)
def test_what_is_no_signal(text: str) -> None:
    with pytest.raises(FormatError):
        limit_signal(text)


def test_signals_by_name_and_number() -> None:
    assert [signal_number(word) for word in ("KILL", "sigkill", " 9 ", "CONT")] == [9, 9, 9, signal.SIGCONT]


NOW = time.mktime((2026, 12, 1, 10, 30, 15, 0, 0, -1))


def at(year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0) -> float:
    return time.mktime((year, month, day, hour, minute, second, 0, 0, -1))


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("now", NOW),
        ("now+1hour", NOW + 3600),
        ("now+90", NOW + 90),
        ("NOW + 2 Days", NOW + 2 * 86400),
        ("now+1 0minutes", NOW + 600),
        ("now-1week", NOW - 7 * 86400),
        ("today", at(2026, 12, 1)),
        ("tomorrow", at(2026, 12, 2)),
        ("midnight", at(2026, 12, 2)),
        ("noon", at(2026, 12, 1, 12)),
        ("elevenses", at(2026, 12, 1, 11)),
        ("fika", at(2026, 12, 1, 15)),
        ("teatime tomorrow", at(2026, 12, 2, 16)),
        ("10:31", at(2026, 12, 1, 10, 31)),
        ("10:30", at(2026, 12, 2, 10, 30)),
        ("9:05:07", at(2026, 12, 2, 9, 5, 7)),
        ("4:00pm", at(2026, 12, 1, 16)),
        ("12:00 am", at(2026, 12, 2, 0)),
        ("12:00PM", at(2026, 12, 1, 12)),
        ("1224", at(2026, 12, 24)),
        ("12/24", at(2026, 12, 24)),
        ("1.2", at(2027, 1, 2)),
        ("12/01", at(2027, 12, 1)),
        ("12/01-11:00", at(2026, 12, 1, 11)),
        ("12/24/30", at(2030, 12, 24)),
        ("122430", at(2030, 12, 24)),
        ("2027-02-28T10:00:01", at(2027, 2, 28, 10, 0, 1)),
        ("2027-02-28", at(2027, 2, 28)),
        ("2027-02-31", at(2027, 3, 3)),
        ("10:00 2027-02-28", at(2027, 2, 28, 10)),
        ("2027-02-28\nrest", at(2027, 2, 28)),
        ("uts1900000000", 1900000000.0),
    ],
)
def test_moments(text: str, moment: float) -> None:
    assert moment_s(text, NOW) == moment


@pytest.mark.parametrize("text", ["", " ", "T", "now+1h", "now+", "now+hour", "nowx", "Tomorrow", "4pm", "-"])
def test_what_are_no_words_of_a_moment(text: str) -> None:
    with pytest.raises(FormatError) as error:
        moment_s(text, NOW)
    assert "now+1hour" in error.value.hint


@pytest.mark.parametrize(
    "text", "25:00 13:00pm 12:60 12:5 131 1331 2027-13-01 2027-02-32 2027-1-2 uts5 5 12/ 999999999999".split()
)
def test_what_are_no_numbers_of_a_moment(text: str) -> None:
    with pytest.raises(FormatError):
        moment_s(text, NOW)


@given(st.text(st.sampled_from("now+1hour today Tnoon:/.-pm0123456789"), max_size=20))
def test_a_moment_is_read_or_refused(text: str) -> None:
    try:
        moment = moment_s(text, NOW)
    except FormatError:
        return
    assert math.isfinite(moment)
