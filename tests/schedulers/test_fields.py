"""Single values as Slurm prints them."""

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfjobtui.model.job import ExitCode, Gpus
from tfjobtui.schedulers.slurm.fields import (
    parse_count,
    parse_duration,
    parse_exit_code,
    parse_requested_memory,
    parse_size,
    parse_time,
    text_or_empty,
)
from tfjobtui.schedulers.slurm.tres import parse_gres, parse_tres, tres_gpus, tres_memory

MIB = 1024**2
GIB = 1024**3


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("00:24.041", 24.041),
        ("1-02:03:04", 93784),
        ("06:57.815", 417.815),
        ("01:01:06", 3666),
        ("5:00", 300),
        ("0:30", 30),
        ("2-12", 216000),
        ("1-12:30", 131400),
        ("7-00:00:00", 604800),
        ("45", 45),
        ("UNLIMITED", math.inf),
        ("infinite", math.inf),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "Partition_Limit", "NOT_SET", "INVALID", "N/A", "n/a", "None", "-1:00", "1:2:3:4", "x"]
)
def test_no_duration(text: str) -> None:
    assert parse_duration(text) is None


@pytest.mark.parametrize(
    ("text", "amount", "per"),
    [
        ("1Mc", MIB, "cpu"),
        ("10000Mn", 10000 * MIB, "node"),
        ("0n", 0, "node"),
        ("32G", 32 * GIB, ""),
        ("1.50T", 1536 * GIB, ""),
        ("4000M", 4000 * MIB, ""),
    ],
)
def test_requested_memory(text: str, amount: int, per: str) -> None:
    memory = parse_requested_memory(text)
    assert memory is not None
    assert (memory.memory_bytes, memory.per) == (amount, per)


def test_requested_memory_in_all() -> None:
    per_cpu = parse_requested_memory("1Mc")
    per_node = parse_requested_memory("4Gn")
    assert per_cpu is not None
    assert per_node is not None
    assert per_cpu.total_bytes(nodes=2, cpus=8) == 8 * MIB
    assert per_node.total_bytes(nodes=2, cpus=8) == 8 * GIB
    assert parse_requested_memory("") is None
    assert parse_requested_memory("?") is None


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("412420K", 412420 * 1024),
        ("1.50G", 1536 * MIB),
        ("0", 0),
        ("16E", None),
        ("", None),
        ("18446744073709551614", None),
    ],
)
def test_sizes(text: str, size: int | None) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("1:0", ExitCode(1, 0)),
        ("0:9", ExitCode(0, 9)),
        ("256", ExitCode(1, 0)),
        ("9", ExitCode(0, 9)),
        ("0", ExitCode(0, 0)),
        ("36608", ExitCode(143, 0)),
        ("", None),
        ("N/A", None),
        ("4294967294", None),
        ("1:x", None),
    ],
)
def test_exit_codes(text: str, code: ExitCode | None) -> None:
    assert parse_exit_code(text) == code


@pytest.mark.parametrize(
    "text", ["", "0", "N/A", "Unknown", "None", "4294967294", "2026-13-01T00:00:00", "x"]
)
def test_no_time(text: str) -> None:
    assert parse_time(text) is None


def test_times() -> None:
    assert parse_time("1796072073") == 1796072073
    local = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(1796072073))
    assert parse_time(local) == 1796072073


def test_counts_and_words_for_nothing() -> None:
    assert parse_count("4") == 4
    assert parse_count("2K") == 2048
    assert parse_count("1-4") == 1
    assert parse_count("4294967294") is None
    assert parse_count("N/A") is None
    assert [text_or_empty(text) for text in ("(null)", "N/A", "gpu", "None assigned")] == ["", "", "gpu", ""]


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("cpu=2,mem=512M,node=1,billing=2,gres/gpu=2", ((None, 2),)),
        ("billing=4,cpu=4,gres/gpu:nvidia_rtx_6000_ada=1,mem=8G,node=1", (("nvidia_rtx_6000_ada", 1),)),
        (
            "billing=4,cpu=4,gres/gpu:nvidia_rtx_6000_ada=1,gres/gpu=1,mem=8G,node=1",
            (("nvidia_rtx_6000_ada", 1),),
        ),
        ("gres/gpu=4,gres/gpu:a100=1,gres/gpu:v100-32g=2", (("a100", 1), ("v100-32g", 2), (None, 1))),
        ("gres/gpu=1,gres/gpu:a100_1g.10gb=7", ((None, 1),)),
        ("cpu=1", ()),
        ("N/A", ()),
    ],
)
def test_gpus_of_tres_count_once(text: str, gpus: tuple[tuple[str | None, int], ...]) -> None:
    assert tres_gpus(parse_tres(text)) == Gpus(gpus)


def test_memory_of_tres() -> None:
    assert tres_memory(parse_tres("cpu=2,mem=62.50G")) == 64000 * MIB
    assert tres_memory(parse_tres("mem=8192")) == 8192 * MIB
    assert tres_memory(parse_tres("cpu=2")) is None


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("gpu:h100:4(S:0-3)", (("h100", 4),)),
        ("gpu:(null):2(IDX:0-1)", ((None, 2),)),
        ("gpu:tesla:2,gpu:kepler:2", (("tesla", 2), ("kepler", 2))),
        ("(null)", ()),
        ("gpu:tesla:0(IDX:N/A)", ()),
        ("gpu:a100:3(IDX:0,2-3)", (("a100", 3),)),
        ("gpu:a100_3g.20gb:2(S:0)", (("a100_3g.20gb", 2),)),
        ("gres:gpu:a100:2", (("a100", 2),)),
        ("gres/gpu:2", ((None, 2),)),
        ("gres/gpu=2", ((None, 2),)),
        ("gpu:no_consume:4", ((None, 4),)),
        ("gpu", ((None, 1),)),
        ("gpu:a100", (("a100", 1),)),
        ("shard:8,mps:400,tmp:844G,craynetwork:4", ()),
        ("", ()),
    ],
)
def test_gres(text: str, gpus: tuple[tuple[str | None, int], ...]) -> None:
    assert parse_gres(text) == Gpus(gpus)


@given(st.text())
def test_no_text_breaks_a_value(text: str) -> None:
    for parse in (
        parse_count, parse_duration, parse_exit_code, parse_requested_memory, parse_size, parse_time,
        parse_gres, parse_tres,
    ):  # fmt: skip
        parse(text)
