"""States, texts, units and host lists."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.jobs import make_job
from tfjobtui.errors import FormatError
from tfjobtui.model.hostlist import expand
from tfjobtui.model.state import JobState, StateGroup
from tfjobtui.model.text import printable
from tfjobtui.model.units import clock, duration, short_duration, size


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("RUNNING", JobState.RUNNING),
        ("R", JobState.RUNNING),
        ("CANCELLED by 1000", JobState.CANCELLED),
        ("CANCELLED+", JobState.CANCELLED),
        ("OUT_OF_ME+", JobState.OUT_OF_MEMORY),
        ("NODE_FAIL", JobState.NODE_FAIL),
        ("SPECIAL_EXIT", JobState.SPECIAL_EXIT),
        ("", JobState.UNKNOWN),
        ("?", JobState.UNKNOWN),
        ("BRAND_NEW_STATE", JobState.UNKNOWN),
        ("RE+", JobState.UNKNOWN),
    ],
)
def test_states(text: str, state: JobState) -> None:
    assert JobState.of(text) is state


def test_only_listed_states_are_final() -> None:
    final = {state.long for state in JobState if state.is_terminal}
    assert final == {
        "COMPLETED",
        "FAILED",
        "TIMEOUT",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "BOOT_FAIL",
        "DEADLINE",
        "CANCELLED",
        "PREEMPTED",
        "REVOKED",
        "GONE",
    }
    assert JobState.UNKNOWN.group is StateGroup.ACTIVE


def test_control_characters_are_shown_and_not_sent() -> None:
    assert printable("we|ird [red]na=me") == "we|ird [red]na=me"
    assert printable("a\x1b[31mb") == "a␛[31mb"
    assert printable("two\nlines\ttab") == "two␤lines tab"
    assert printable("\u202egnp.exe") == "\ufffdgnp.exe"
    assert printable(b"caf\xe9".decode("utf-8", "surrogateescape")) == "caf\ufffd"
    assert printable("naïve 数据") == "naïve 数据"


@given(st.text())
def test_nothing_that_moves_the_cursor_gets_through(text: str) -> None:
    shown = printable(text)
    assert not any(
        ord(char) < 32 or 0x7F <= ord(char) < 0xA0 or 0xD800 <= ord(char) < 0xE000 for char in shown
    )
    shown.encode()


@pytest.mark.parametrize(
    ("seconds", "long", "short"),
    [
        (None, "", ""),
        (0, "0s", "0s"),
        (59.9, "59s", "59s"),
        (65, "1:05", "1m"),
        (3600, "1:00:00", "1h00"),
        (11525, "3:12:05", "3h12"),
        (93784, "1d 02:03", "1d2h"),
        (86400 * 41, "41d 00:00", "41d"),
        (math.inf, "∞", "∞"),
    ],
)
def test_durations(seconds: float | None, long: str, short: str) -> None:
    assert (duration(seconds), short_duration(seconds)) == (long, short)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, ""),
        (0, "0"),
        (512 << 20, "512M"),
        (8 << 30, "8G"),
        (int(7.8 * 2**30), "7.8G"),
        (655 << 30, "655G"),
    ],
)
def test_sizes(count: int | None, text: str) -> None:
    assert size(count) == text


def test_moments_get_longer_with_distance() -> None:
    now = time.mktime((2026, 11, 30, 14, 0, 0, 0, 0, -1))
    assert clock(now + 300, now) == "14:05"
    assert clock(now + 2 * 86400, now) == "Wed 14:00"
    assert clock(now - 40 * 86400, now).startswith("21 Oct")
    assert clock(now - 900 * 86400, now).startswith("2024-")


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("gpu01", ("gpu01",)),
        ("gpu[01-03,07],login1", ("gpu01", "gpu02", "gpu03", "gpu07", "login1")),
        ("n[1-2,10]", ("n1", "n2", "n10")),
        ("rack[0-1]_blade[0-1]", ("rack0_blade0", "rack0_blade1", "rack1_blade0", "rack1_blade1")),
        ("n[1-2]-ib", ("n1-ib", "n2-ib")),
        ("n[09-10]", ("n09", "n10")),
        ("", ()),
    ],
)
def test_host_lists(text: str, hosts: tuple[str, ...]) -> None:
    assert expand(text) == hosts


@pytest.mark.parametrize("text", ["n[1-2", "n1]", "n[a-b]", "n[[1]]", "n[1-99999999]"])
def test_what_is_no_host_list_is_refused(text: str) -> None:
    with pytest.raises(FormatError):
        expand(text)


def test_times_of_a_job() -> None:
    running = make_job(state="RUNNING", start_time_s=1000, time_limit_s=600.0)
    assert running.time_used_s(1100) == 100
    assert running.time_left_s(1100) == 500
    waiting = make_job(state="PENDING", start_time_s=5000)
    assert waiting.time_used_s(1100) is None
    ended = make_job(state="COMPLETED", start_time_s=1000, end_time_s=1030)
    assert ended.time_used_s(9999) == 30
    assert ended.time_left_s(9999) is None
    endless = make_job(start_time_s=1000, time_limit_s=math.inf)
    assert endless.time_left_s(1100) == math.inf
