"""How jobs ended, in words."""

from __future__ import annotations

import dataclasses
import os

import pytest

from tfjobtui.diagnosis import ending
from tfjobtui.model.ids import JobId
from tfjobtui.model.job import ExitCode, Job
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.scheduler import EndedJob

JOB = Job(JobId(7), "7", 7, "train", JobState.FAILED, "FAILED", "u", start_time_s=100, memory_bytes=64 << 30)


def ended(state: JobState, code: tuple[int, int] | None = None, **more: object) -> Job:
    exit_code = None if code is None else ExitCode(*code)
    return dataclasses.replace(JOB, state=state, state_text=state.long, exit_code=exit_code, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "meaning", "advice"),
    [
        ((0, 53), "The output file could not be created: does its folder exist?", "no log"),
        ((0, 9), "SIGKILL", "memory"),
        ((0, 15), "SIGTERM", ""),
        ((0, 125), "more memory than it had asked for (64G)", "--mem"),
        ((0, 11), "SIGSEGV", "log"),
        ((0, 63), "Signal 63", "log"),
        ((137, 0), "SIGKILL", "memory"),
        ((143, 0), "SIGTERM", "log"),
        ((139, 0), "SIGSEGV", "log"),
        ((126, 0), "could not be executed", "chmod"),
        ((127, 0), "was not found", "module"),
        ((1, 0), "exit code 1", "log"),
        ((42, 0), "exit code 42", "log"),
        ((253, 0), "exit code 253", "log"),
        (None, "It failed.", "log"),
    ],
)
def test_what_an_exit_code_means(code: tuple[int, int] | None, meaning: str, advice: str) -> None:
    found = ending.explain(ended(JobState.FAILED, code))
    assert meaning in found.meaning
    assert advice in found.advice


def test_the_word_has_the_code_where_it_says_something() -> None:
    assert ending.explain(ended(JobState.FAILED, (0, 53))).word == "FAILED 0:53"
    assert ending.explain(ended(JobState.COMPLETED, (0, 0))).word == "COMPLETED"
    assert ending.explain(ended(JobState.GONE)).word == "gone"


def test_a_failure_without_a_code_is_told_by_its_reason() -> None:
    found = ending.explain(ended(JobState.FAILED, (0, 0), reason="JobLaunchFailure"))
    assert "could not be launched" in found.meaning
    assert "{" not in found.advice


def test_a_time_out_tells_the_limit() -> None:
    assert "limit of 2:00:00" in ending.explain(ended(JobState.TIMEOUT, (0, 0), time_limit_s=7200.0)).meaning
    assert "limit." in ending.explain(ended(JobState.TIMEOUT)).meaning


@pytest.mark.parametrize(
    ("uid", "start", "words"),
    [
        (os.getuid(), 100, "ou cancelled it." if os.getuid() else "cancelled it."),
        (os.getuid(), None, "before it started"),
        (4_000_000_123, 100, "User 4000000123 cancelled it"),
        (None, 100, "It was cancelled."),
    ],
)
def test_who_cancelled_it(uid: int | None, start: int | None, words: str) -> None:
    end = EndedJob(
        JobId(7), 7, "n", JobState.CANCELLED, "CANCELLED by x", cancelled_by_uid=uid, start_time_s=start
    )
    assert words in ending.explain_ended(end).meaning
    assert words in ending.explain(ended(JobState.GONE), end).meaning


@pytest.mark.parametrize("state", [state for state in JobState if state.is_terminal])
def test_every_end_has_words(state: JobState) -> None:
    found = ending.explain(ended(state, (0, 0)))
    assert found.meaning
    assert "has not ended" not in found.meaning


def test_what_runs_is_not_said_to_have_ended() -> None:
    assert "has not ended" in ending.explain(ended(JobState.RUNNING)).meaning


def test_accounting_comes_before_what_the_queue_said_last() -> None:
    end = EndedJob(JobId(7), 7, "n", JobState.FAILED, "FAILED", exit_code=ExitCode(0, 53), start_time_s=1)
    found = ending.explain(ended(JobState.GONE), end)
    assert found.word == "FAILED 0:53"
    assert "output file" in found.meaning
