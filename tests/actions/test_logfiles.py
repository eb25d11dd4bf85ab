"""Where the log of a job is, asked with as few questions as will do."""

from __future__ import annotations

from pathlib import Path

from tests.actions.fakes import FakeScheduler, job
from tfjobtui.actions import logfiles
from tfjobtui.model.ids import JobId
from tfjobtui.model.job import ExitCode
from tfjobtui.model.state import JobState
from tfjobtui.model.stream import Stream
from tfjobtui.schedulers.scheduler import EndedJob, Target


async def test_a_log_that_the_queue_tells_costs_no_question(tmp_path: Path) -> None:
    log = tmp_path / "train-7.out"
    log.write_text("x")
    running = job("7", stdout_pattern=str(tmp_path / "%x-%j.out"), work_dir=str(tmp_path))
    scheduler = FakeScheduler(running)
    found = await logfiles.find(scheduler, Target.of(running), running)
    assert found is not None
    assert (found.path, found.exists) == (log, True)
    assert scheduler.calls == []


async def test_the_controllers_path_is_asked_where_the_queue_is_wrong(tmp_path: Path) -> None:
    log = tmp_path / "real.out"
    log.write_text("x")
    running = job("7", stdout_pattern="", work_dir=str(tmp_path))
    scheduler = FakeScheduler(running)
    scheduler.details_of["7"] = (("StdOut", str(log)), ("StdErr", str(tmp_path / "real.err")))
    found = await logfiles.find(scheduler, Target.of(running), running)
    assert found is not None
    assert found.path == log
    errors = await logfiles.find(scheduler, Target.of(running), running, Stream.STDERR)
    assert errors is not None
    assert not errors.exists


async def test_the_log_of_an_array_task_without_a_name(tmp_path: Path) -> None:
    log = tmp_path / "slurm-128_3.out"
    log.write_text("x")
    task = job("128_3", raw_id=131, stdout_pattern=str(tmp_path / "slurm-131.out"), work_dir=str(tmp_path))
    assert logfiles.of_job(task, version="22.05.8").path == log


async def test_a_job_that_left_the_queue_is_found_by_its_submission(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    log = tmp_path / "logs" / "train-7.out"
    log.write_text("x")
    scheduler = FakeScheduler()
    ended = EndedJob(
        JobId(7),
        7,
        "train",
        JobState.COMPLETED,
        "COMPLETED",
        work_dir=str(tmp_path),
        submit_line="sbatch -o logs/%x-%j.out train.sh",
    )
    scheduler.endings = (ended,)
    found = await logfiles.find(scheduler, Target(JobId(7), None, "", "", None), None)
    assert found is not None
    assert found.path == log


async def test_without_a_word_on_the_name_it_is_slurms_own(tmp_path: Path) -> None:
    log = tmp_path / "slurm-7_2.out"
    log.write_text("x")
    ended = EndedJob(JobId(7, task=2), 9, "train", JobState.FAILED, "FAILED", work_dir=str(tmp_path))
    assert logfiles.of_ended(ended).path == log


async def test_a_log_that_could_not_be_created_is_said_so(tmp_path: Path) -> None:
    ended = EndedJob(
        JobId(7),
        7,
        "train",
        JobState.FAILED,
        "FAILED",
        work_dir=str(tmp_path),
        submit_line="sbatch -o none/x.out train.sh",
        exit_code=ExitCode(0, 53),
    )
    assert "could not be created" in logfiles.of_ended(ended).note


async def test_a_job_that_nobody_knows() -> None:
    assert await logfiles.find(FakeScheduler(), Target(JobId(7), None, "", "", None), None) is None


def test_the_release_of_a_version() -> None:
    assert logfiles.release("22.05.8") == (22, 5)
    assert logfiles.release("") is None
    assert logfiles.release("unknown.x") is None
