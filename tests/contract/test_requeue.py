"""Back into the queue."""

from __future__ import annotations

from tests.contract.side import KILL_WAIT_S, Side
from tfjobtui.model.job import ExitCode
from tfjobtui.model.state import JobState

NULL = ("-o", "/dev/null")
FIRST = "[[ -z ${SLURM_RESTART_COUNT:-} ]]"
SAY = 'echo "run ${SLURM_RESTART_COUNT:-first}"'


def test_a_script_puts_its_own_job_back(side: Side) -> None:
    body = f'{SAY}; if {FIRST}; then scontrol requeue "$SLURM_JOB_ID"; sleep 60; echo too far; fi'
    job = side.submit(body, "--requeue", "--open-mode=append", "-o", "requeue.out")
    side.start_now(job)
    row = side.end(job)
    assert (row.state, row.restarts, row.exit_code) == (JobState.COMPLETED, 1, ExitCode(0))
    log = side.wait_for("requeue.out", "run 1")
    assert "run first" in log
    assert "too far" not in log
    assert f"*** JOB {job} ON " in log
    assert "DUE TO JOB REQUEUE ***" in log
    assert side.details(job).get("Restarts") == "1"


def test_a_script_has_time_to_save_before_it_is_put_back(side: Side) -> None:
    """The pattern of training jobs: on the warning save, ask for a requeue, end."""
    again = 'scontrol requeue "$SLURM_JOB_ID"; sleep 60 & wait; echo end'
    body = f'trap "echo saved" TERM; {SAY}; {FIRST} || exit 0; {again}'
    job = side.submit(body, "--open-mode=append", "-o", "save.out")
    side.start_now(job)
    assert side.end(job).state is JobState.COMPLETED
    log = side.wait_for("save.out", "run 1")
    assert log.index("run first") < log.index("saved") < log.index("run 1")


def test_a_requeue_from_outside_truncates_the_log(side: Side) -> None:
    job = side.submit(f"{SAY}; {FIRST} || exit 3; sleep 60", "-o", "outside.out")
    side.wait_for("outside.out", "run first")
    assert side.act("requeue", job).ok
    side.start_now(job)
    row = side.end(job)
    assert (row.restarts, row.state, row.exit_code) == (1, JobState.FAILED, ExitCode(3))
    assert "first" not in side.wait_for("outside.out", "run 1")


def test_a_job_that_has_ended_runs_again(side: Side) -> None:
    job = side.submit(f"{SAY}; exit 4", "--open-mode=append", "-o", "ended.out")
    assert side.end(job).exit_code == ExitCode(4)
    assert side.act("requeue", job).ok
    side.start_now(job)
    row = side.end(job)
    assert (row.restarts, row.state, row.exit_code) == (1, JobState.FAILED, ExitCode(4))
    assert side.wait_for("ended.out", "run 1") == "run first\nrun 1\n"


def test_a_job_is_put_back_and_held(side: Side) -> None:
    """Held while it runs, it waits when it is put back."""
    job = side.submit(f"{SAY}; {FIRST} || exit 0; sleep 60", "-o", "held.out")
    side.wait_for("held.out", "run first")
    assert side.act("hold", job).ok
    assert side.rows(job)[0].state is JobState.RUNNING
    assert side.act("requeue", job).ok
    row = side.waiting(job, "JobHeld")
    assert row.restarts == 1
    assert side.act("cancel", job).ok
    assert side.end(job).state is JobState.CANCELLED


def test_what_waits_after_a_requeue_is_cancelled(side: Side) -> None:
    job = side.submit(f"{SAY}; sleep 60", "-o", "twice.out")
    side.wait_for("twice.out", "run first")
    assert side.act("hold", job).ok  # this machine would start it again at once
    assert side.act("requeue", job).ok
    side.until(job, lambda rows: rows[0].state is JobState.PENDING)
    assert side.act("cancel", job).ok
    row = side.end(job)
    assert (row.state, row.restarts) == (JobState.CANCELLED, 1)


def test_a_requeue_is_refused(side: Side) -> None:
    waiting = side.submit("true", "--hold", *NULL)
    assert "pending" in side.act("requeue", waiting).message
    running = side.submit("sleep 60", "--no-requeue", *NULL)
    side.running(running)
    refused = side.act("requeue", running)
    assert not refused.ok
    assert "disabled" in refused.message
    assert side.rows(running)[0].state is JobState.RUNNING
    assert side.act("cancel", running).ok
    assert side.act("cancel", waiting).ok


def test_what_ignores_a_requeue_is_killed(side: Side) -> None:
    body = f"trap '' TERM; {SAY}; {FIRST} || exit 0; while true; do sleep 0.1; done"
    job = side.submit(body, "-o", "stubborn-requeue.out", "--open-mode=append")
    side.wait_for("stubborn-requeue.out", "run first")
    start = side.running(job).start_time_s
    assert side.act("requeue", job).ok
    side.start_now(job)
    row = side.end(job)
    assert (row.state, row.restarts) == (JobState.COMPLETED, 1)
    assert start is not None
    assert row.start_time_s is not None
    assert row.start_time_s - start >= KILL_WAIT_S - 2


def test_one_task_of_an_array_is_put_back(side: Side) -> None:
    body = f"{SAY}; [[ $SLURM_ARRAY_TASK_ID == 2 ]] && {FIRST} && sleep 60; true"
    array = side.submit(body, "--array=1-2", "--open-mode=append", "-o", "array-%a.out")
    side.wait_for("array-2.out", "run first")
    side.until(array, lambda rows: any(row.id.task == 1 and row.state is JobState.COMPLETED for row in rows))
    assert side.act("requeue", f"{array}_2").ok
    side.start_now(array)
    rows = side.ended(array)
    assert {(row.id.task, row.restarts, row.state) for row in rows} == {
        (1, 0, JobState.COMPLETED),
        (2, 1, JobState.COMPLETED),
    }
    assert side.wait_for("array-1.out") == "run first\n"
    assert "run 1" in side.wait_for("array-2.out")
