"""File names by the rules of Slurm's batch step."""

import pytest

from tfjobtui.logs.patterns import Expansion, PatternIds, expand

OLD = (25, 5)
NEW = (25, 11)
TASK = PatternIds(
    job_id=128, array_job_id=127, array_task_id=3, node="n001", user="alice", job_name="my job", restarts=2
)
PLAIN = PatternIds(job_id=128, node="n001", user="alice", job_name="my job", restarts=0)


@pytest.mark.parametrize("version", [OLD, NEW])
@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("%A_%a.out", "127_3.out"),
        ("%5j", "00128"),
        ("%12j", "0000000128"),
        ("%99999999999999999999999j", "0000000128"),
        ("%x/%N.%t", "my job/n001.0"),
        ("log%2a-%4j", "log03-0128"),
        ("%3u", "alice"),
        ("%J.%s", "128.batch"),
        ("a\\%j.out", "a%j.out"),
        ("100%done", "100%done"),
        ("%z-%j", "%z-128"),
        ("50%%", "50%"),
        ("%%j", "%j"),
        ("%%%j", "%128"),
        ("%n%2t", "000"),
        ("%b", "3"),
        ("", ""),
        ("plain.out", "plain.out"),
    ],
)
def test_array_task(pattern: str, path: str, version: tuple[int, int]) -> None:
    assert expand(pattern, TASK, version).path == path


@pytest.mark.parametrize(
    ("pattern", "old", "new"),
    [
        ("%5z", "5z", "%5z"),
        ("%12z", "2z", "%12z"),
        ("out%5", "out5", "out%5"),
        ("%5%j", "5128", "%5%j"),
        ("out%", "out%", "out"),
        ("a\\\\b", "a\\b", "ab"),
        ("%r", "%r", "2"),
        ("%3r", "3r", "002"),
    ],
)
def test_the_two_writers_differ(pattern: str, old: str, new: str) -> None:
    assert expand(pattern, TASK, OLD).path == old
    assert expand(pattern, TASK, NEW).path == new


def test_plain_job_has_slurms_mark_for_no_task() -> None:
    assert expand("%A_%a", PLAIN, OLD) == Expansion("128_4294967294", None)


def test_task_modulo_ten_is_literal_before_24_11() -> None:
    ids = PatternIds(job_id=128, array_job_id=127, array_task_id=27)
    assert expand("%b", ids, (24, 5)).path == "%b"
    assert expand("%b/%2b", ids, (24, 11)).path == "7/07"
    assert expand("%b", ids, None) == Expansion("7", "*", ("%b",))


def test_host_name_is_a_guess_before_25_11() -> None:
    ids = PatternIds(job_id=1, node="n1.cluster.example")
    assert expand("run[1].%N.out", ids, OLD) == Expansion("run[1].n1.out", "run[[]1].*.out", ("%N",))
    assert expand("run.%N.out", ids, NEW) == Expansion("run.n1.cluster.example.out", None)


def test_what_is_not_known_becomes_a_wildcard() -> None:
    waiting = PatternIds(job_id=None, array_job_id=6)
    assert expand("slurm-%A_%a.out", waiting, OLD) == Expansion(None, "slurm-6_*.out", ("%a",))
    assert expand("%x%u-%j", PatternIds(job_id=5), OLD) == Expansion(None, "*-5", ("%x", "%u"))
    assert expand("%S", TASK, NEW) == Expansion(None, "*", ("%S",))
    assert expand("%5z", TASK, None) == Expansion("5z", "*z", ("%5",))
