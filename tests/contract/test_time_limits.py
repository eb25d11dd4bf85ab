"""Warnings before the limit, and what happens at it. Last, since the cluster takes a minute for them."""

from __future__ import annotations

import pytest

from tests.contract.limits import submit_limited
from tests.contract.side import KILL_WAIT_S, Side
from tfjobtui.model.ids import JobId
from tfjobtui.model.job import ExitCode
from tfjobtui.model.state import JobState

PATIENCE_S = 150.0
SOON_S = 1.5


@pytest.fixture(scope="module")
def limited(side: Side) -> dict[str, JobId]:
    return side.early or submit_limited(side)


def test_a_job_is_ended_at_its_limit(side: Side, limited: dict[str, JobId]) -> None:
    job = limited["heeds"]
    side.wait_for("limit-heeds.out", "ready")
    side.let_time_pass(job, SOON_S)
    assert side.end(job, PATIENCE_S).state is JobState.TIMEOUT
    told = side.accounted(job)
    assert (told.state, told.exit_code) == (JobState.TIMEOUT, ExitCode(0))
    assert told.cancelled_by_uid is None
    log = side.wait_for("limit-heeds.out", "got TERM")
    assert f"*** JOB {job} ON " in log
    assert " DUE TO TIME LIMIT ***" in log


def test_what_ignores_its_limit_is_killed(side: Side, limited: dict[str, JobId]) -> None:
    job = limited["ignores"]
    side.wait_for("limit-ignores.out", "ready")
    side.let_time_pass(job, SOON_S)
    row = side.end(job, PATIENCE_S)
    assert row.state is JobState.TIMEOUT
    assert row.start_time_s is not None
    assert row.end_time_s is not None
    # Slurm notes the end when it begins to end the job.
    least_s = SOON_S + KILL_WAIT_S - 2 if side.is_local else 60
    assert row.end_time_s - row.start_time_s >= least_s
    side.wait_for("limit-ignores.out", "DUE TO TIME LIMIT")


@pytest.mark.parametrize(("name", "who", "other"), [("steps", "task", "batch"), ("batch", "batch", "task")])
def test_the_signal_before_the_limit(
    side: Side, limited: dict[str, JobId], name: str, who: str, other: str
) -> None:
    """Slurm looks every half minute, and may warn a minute early; the warning comes before the limit all the same."""
    log = f"limit-{name}.out"
    side.wait_for(log, "ready")
    side.let_time_pass(limited[name], 50 + SOON_S)
    text = side.wait_for(log, f"{who} was warned", PATIENCE_S)
    assert f"{other} was warned" not in text
    assert f"{who} was warned" in text.partition("DUE TO TIME LIMIT")[0]
    assert side.act("cancel", limited[name]).ok
