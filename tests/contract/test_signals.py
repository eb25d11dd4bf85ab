"""Signals that a user sends."""

from __future__ import annotations

from tests.contract.side import Side
from tfjobtui.model.job import ExitCode
from tfjobtui.model.state import JobState

NULL = ("-o", "/dev/null")
BODY = """
trap "echo batch USR1" USR1; trap "echo batch USR2" USR2; trap "echo batch CONT" CONT
srun -n1 bash -c '
    trap "echo task USR1" USR1; trap "echo task USR2" USR2; trap "echo task CONT" CONT
    echo ready; while true; do sleep 0.1; done' &
until [[ -e signals.stop ]]; do sleep 0.1; done
"""


def test_who_gets_a_signal(side: Side) -> None:
    """Without an option the tasks of steps, with --batch the script, with --full both; also by a step's id."""
    job = side.submit(BODY, "-o", "signals.out")
    side.wait_for("signals.out", "ready")
    assert side.act("cancel", job, signal="USR1").ok
    assert "batch" not in side.wait_for("signals.out", "task USR1")
    side.command("scancel", "--batch", "--signal=USR2", str(job))
    assert "task USR2" not in side.wait_for("signals.out", "batch USR2")
    side.command("scancel", "-s", "CONT", f"{job}.0")
    assert "batch CONT" not in side.wait_for("signals.out", "task CONT")
    side.command("scancel", "--full", "--signal=USR1", str(job))
    side.wait_for("signals.out", "batch USR1")
    (side.folder / "signals.stop").touch()
    row = side.end(job)
    assert (row.state, row.exit_code) == (JobState.COMPLETED, ExitCode(0))


def test_a_signal_to_a_script_without_steps_goes_nowhere(side: Side) -> None:
    job = side.submit("echo ready; until [[ -e alone.stop ]]; do sleep 0.1; done", "-o", "alone.out")
    side.wait_for("alone.out", "ready")
    side.act("cancel", job, signal="USR1")
    (side.folder / "alone.stop").touch()
    assert side.end(job).state is JobState.COMPLETED


def test_a_signal_that_ends_the_script(side: Side) -> None:
    job = side.submit("echo ready; while true; do sleep 0.1; done", "-o", "ends.out")
    side.wait_for("ends.out", "ready")
    side.command("scancel", "-b", "-s", "USR2", str(job))
    row = side.end(job)
    assert (row.state, row.exit_code) == (JobState.FAILED, ExitCode(0, 12))


def test_the_kill_signal_cancels(side: Side) -> None:
    job = side.submit("echo ready; while true; do sleep 0.1; done", "-o", "kill.out")
    side.wait_for("kill.out", "ready")
    assert side.act("cancel", job, signal="KILL").ok
    assert side.end(job).state is JobState.CANCELLED
    assert side.accounted(job).exit_code == ExitCode(0)


def test_stopped_and_continued(side: Side) -> None:
    """With --full STOP reaches everything; a job that is stopped can be cancelled."""
    job = side.submit("echo ready; while true; do sleep 0.1; date +%s%N >>ticks; done", "-o", "stop.out")
    side.wait_for("ticks")
    side.command("scancel", "-f", "-s", "STOP", str(job))
    side.wait_until_still("ticks")
    side.command("scancel", "-f", "-s", "CONT", str(job))
    side.wait_until_changed("ticks")
    side.command("scancel", "-f", "-s", "STOP", str(job))
    assert side.act("cancel", job).ok
    assert side.end(job).state is JobState.CANCELLED


def test_a_signal_to_a_waiting_job_is_refused(side: Side) -> None:
    job = side.submit("true", "--hold", *NULL)
    # Slurm's tries for a minute and a half before it says that the job cannot be altered now.
    done = side.command("timeout", "2", "scancel", "-s", "USR1", str(job), check=False)
    assert done.returncode != 0
    assert side.rows(job)[0].state is JobState.PENDING


def test_a_step_is_cancelled(side: Side) -> None:
    body = "srun -n1 bash -c 'echo ready; exec sleep 60'; echo rc=$?; srun -n1 echo next; exit 4"
    job = side.submit(body, "-o", "step-cancel.out")
    side.wait_for("step-cancel.out", "ready")
    side.command("scancel", f"{job}.0")
    row = side.end(job)
    assert (row.state, row.exit_code) == (JobState.FAILED, ExitCode(4))
    log = side.wait_for("step-cancel.out", "next")
    assert "rc=0" not in log
    assert f"*** STEP {job}.0 ON " in log
