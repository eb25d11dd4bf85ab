"""Cancelled, held, released, changed, refused."""

from __future__ import annotations

import os
import time

import pytest

from tests.contract.side import KILL_WAIT_S, Side
from tfjobtui.errors import SubmissionError
from tfjobtui.model.job import ExitCode
from tfjobtui.model.state import JobState

NULL = ("-o", "/dev/null")
FOR_EVER = "while true; do sleep 0.1; done"


# ---- Cancel


def test_a_running_job_is_cancelled(side: Side) -> None:
    job = side.submit(f'trap "echo got TERM; exit 7" TERM; echo ready; {FOR_EVER}', "-o", "cancel.out")
    side.wait_for("cancel.out", "ready")
    assert side.act("cancel", job).ok
    assert side.end(job).state is JobState.CANCELLED
    told = side.accounted(job)
    assert (told.state, told.exit_code) == (JobState.CANCELLED, ExitCode(0))
    assert told.cancelled_by_uid == os.getuid()
    log = side.wait_for("cancel.out", "got TERM")
    assert f"*** JOB {job} ON " in log
    assert " CANCELLED AT " in log
    again = side.act("cancel", job)
    assert (again.ok, again.message) == (True, "It had already ended.")


def test_a_job_that_ends_well_when_it_is_cancelled_was_cancelled(side: Side) -> None:
    job = side.submit(f'trap "exit 0" TERM; echo ready; {FOR_EVER}', "-o", "polite.out")
    side.wait_for("polite.out", "ready")
    assert side.act("cancel", job).ok
    row = side.end(job)
    assert (row.state, row.exit_code) == (JobState.CANCELLED, ExitCode(0))


def test_what_ignores_term_is_killed(side: Side) -> None:
    """The script and the task of a step, which both are told and both pay no heed."""
    body = f"trap '' TERM; srun -n1 bash -c \"trap '' TERM; echo ready; {FOR_EVER}\" & {FOR_EVER}"
    job = side.submit(body, "-o", "stubborn.out")
    side.wait_for("stubborn.out", "ready")
    asked = time.monotonic()
    assert side.act("cancel", job).ok
    assert side.end(job).state is JobState.CANCELLED
    assert time.monotonic() - asked >= KILL_WAIT_S - 2


def test_a_waiting_job_is_cancelled_held_and_released(side: Side) -> None:
    job = side.submit("true", "--hold", *NULL)
    held = side.waiting(job, "JobHeldUser")
    assert held.start_time_s is None
    assert side.act("release", job).ok
    assert side.end(job).state is JobState.COMPLETED
    other = side.submit("true", "--begin=now+1hour", *NULL)
    side.waiting(other, "BeginTime")
    assert side.act("hold", other).ok
    side.waiting(other, "JobHeldUser")
    assert side.act("cancel", other, pending_only=True).ok
    row = side.end(other)
    assert (row.state, row.exit_code) == (JobState.CANCELLED, ExitCode(0))
    told = side.accounted(other)
    assert (told.state, told.start_time_s, told.cancelled_by_uid) == (
        JobState.CANCELLED,
        None,
        os.getuid(),
    )


def test_waiting_only_spares_what_runs(side: Side) -> None:
    job = side.submit("sleep 60", *NULL)
    side.running(job)
    assert side.act("cancel", job, pending_only=True).ok
    assert side.rows(job)[0].state is JobState.RUNNING
    assert side.act("cancel", job).ok


def test_an_unknown_job(side: Side) -> None:
    for action in ("cancel", "hold", "release", "requeue"):
        result = side.act(action, "999999")
        assert not result.ok, action
        assert "Invalid job id specified" in result.message, action


def test_what_has_ended_is_not_held(side: Side) -> None:
    job = side.submit("true", *NULL)
    side.end(job)
    for action in ("hold", "release"):
        assert not side.act(action, job).ok, action
    assert not side.update(job, TimeLimit="5").ok


# ---- Change


def test_a_waiting_job_is_changed(side: Side) -> None:
    job = side.submit("true", "--hold", "-t", "5", *NULL)
    assert side.update(job, TimeLimit="20", JobName="renamed", Comment="a comment", Nice="5").ok
    (row,) = side.rows(job)
    assert (row.time_limit_s, row.name) == (1200.0, "renamed")
    found = side.details(job)
    assert (found.get("Comment"), found.get("Nice")) == ("a comment", "5")
    assert side.update(job, TimeLimit="+10").ok
    assert side.rows(job)[0].time_limit_s == 1800.0
    assert side.update(job, TimeLimit="1-0").ok
    assert side.rows(job)[0].time_limit_s == 86400.0
    for changes in (
        {"TimeLimit": "soon"},
        {"Bogus": "1"},
        {"Dependency": "afterok:x"},
        {"StartTime": "whenever"},
    ):
        refused = side.update(job, **changes)
        assert not refused.ok, changes
        assert refused.message, changes
    assert side.act("cancel", job).ok


def test_a_running_job_is_changed(side: Side) -> None:
    job = side.submit("sleep 60", "-t", "30", *NULL)
    side.running(job)
    assert side.update(job, TimeLimit="10").ok
    row = side.running(job)
    assert row.time_limit_s == 600.0
    assert row.start_time_s is not None
    assert row.end_time_s == row.start_time_s + 600
    refused = side.update(job, StartTime="now+1hour")
    assert not refused.ok
    refused = side.update(job, NumCPUs="2")
    assert not refused.ok
    assert side.act("cancel", job).ok


def test_a_begin_time_comes(side: Side) -> None:
    asked = time.time()
    job = side.submit("true", "--begin=now+3", *NULL)
    side.waiting(job, "BeginTime")
    row = side.end(job)
    assert row.start_time_s is not None
    assert row.start_time_s >= int(asked) + 2


def test_a_begin_time_is_changed(side: Side) -> None:
    job = side.submit("true", "--begin=now+1hour", *NULL)
    side.waiting(job, "BeginTime")
    assert side.update(job, StartTime="now").ok
    assert side.end(job).state is JobState.COMPLETED


# ---- Refused


@pytest.mark.parametrize(
    "options",
    [
        ("--array=5-1",),
        ("--time=soon",),
        ("--bogus",),
        ("--nodes=nought",),
        ("--dependency=afterok:x",),
        ("--dependency=afterwards:1",),
        ("--mem=much",),
        ("--begin=whenever",),
        ("--signal=NOSUCH@10",),
        ("--cpus-per-task=0",),
    ],
    ids=lambda options: str(options[0]),
)
def test_what_makes_no_sense_is_refused(side: Side, options: tuple[str, ...]) -> None:
    with pytest.raises(SubmissionError):
        side.submit("true", *NULL, *options)


@pytest.mark.parametrize(
    "text",
    ["", "\n \n", "echo no first line\n", "#!/bin/bash\r\ntrue\r\n", "#!/bin/bash\ntrue \0\n"],
    ids=["empty", "blank", "no #!", "DOS", "NUL"],
)
def test_what_is_no_script_is_refused(side: Side, text: str) -> None:
    script = side.folder / "no-script.sh"
    script.write_bytes(text.encode())
    with pytest.raises(SubmissionError):
        side.submit_file(script, *NULL)


@pytest.mark.parametrize("option", ["--gpus=99", "--mem=999T"])
def test_what_can_never_be_is_refused(side: Side, option: str) -> None:
    with pytest.raises(SubmissionError):
        side.submit("true", *NULL, option)


def test_what_a_single_machine_has_to_refuse(side: Side) -> None:
    """Slurm has more nodes; and what is too large it takes, since larger nodes might be added."""
    if not side.is_local:
        assert side.end(side.submit("true", *NULL, "--nodes=2")).state is JobState.COMPLETED
        assert side.waiting(side.submit("true", *NULL, "--cpus-per-task=900"), "PartitionConfig")
        return
    for option in ("--nodes=2", "--cpus-per-task=900"):
        with pytest.raises(SubmissionError, match="machine"):
            side.submit("true", *NULL, option)
