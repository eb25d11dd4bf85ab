"""The grammar of the filter."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.jobs import make_job
from tfjobtui.errors import UsageError
from tfjobtui.monitor.filter import parse_filter

JOBS = {
    "bert": make_job(
        "1", "RUNNING", name="bert-large", gpus=("a100", 4), user="ada", start_time_s=int(time.time()) - 7200
    ),
    "prep": make_job(
        "2", "PENDING", name="prep data", partition="cpu", reason="Priority", memory_bytes=64 << 30
    ),
    "eval": make_job("3_4", "FAILED", name="eval", gpus=("v100", 1), nodes="gpu01", user="bob"),
    "new": make_job("4", "SOMETHING_NEW", name="odd|na=me [x]"),
}


def matching(text: str) -> set[str]:
    found = parse_filter(text)
    return {name for name, job in JOBS.items() if found.matches(job)}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", {"bert", "prep", "eval", "new"}),
        ("bert", {"bert"}),
        ("BERT", {"bert"}),
        ("priority", {"prep"}),
        ("gpu01", {"eval"}),
        ('"prep data"', {"prep"}),
        ('"prep da', {"prep"}),
        ("[x]", {"new"}),
        ("state:run", {"bert"}),
        ("state:R,PD", {"bert", "prep"}),
        ("state:ended", {"eval"}),
        ("state:waiting", {"prep"}),
        ("state:something", {"new"}),
        ("part:cpu", {"prep"}),
        ("partition:cpu", {"prep"}),
        ("-part:cpu", {"bert", "eval", "new"}),
        ("name:b*", {"bert"}),
        ("name:*l", {"eval"}),
        ("gpu:>0", {"bert", "eval"}),
        ("gpu:4", {"bert"}),
        ("gpu:a100", {"bert"}),
        ("gpu:v100>=1", {"eval"}),
        ("gpu:0", {"prep", "new"}),
        ("gpu:", {"bert", "eval"}),
        ("user:bob", {"eval"}),
        ("mem:>32G", {"prep"}),
        ("time:>1h", {"bert"}),
        ("time:>3h", set()),
        ("id:3_4", {"eval"}),
        ("state:run gpu:>0 bert", {"bert"}),
        ("state:", {"bert", "prep", "eval", "new"}),
        ("-", {"bert"}),
    ],
)
def test_what_matches(text: str, names: set[str]) -> None:
    assert matching(text) == names


@pytest.mark.parametrize("text", ["nosuch:x", "gpu:>x", "mem:>x", "time:>1x", "cpu:4G"])
def test_mistakes_are_told(text: str) -> None:
    with pytest.raises(UsageError):
        parse_filter(text)


@given(st.text(max_size=40))
def test_any_text_is_a_filter_or_a_mistake(text: str) -> None:
    try:
        found = parse_filter(text)
    except UsageError:
        return
    for job in JOBS.values():
        found.matches(job)
