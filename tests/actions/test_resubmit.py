"""The same job again, and what of it cannot be had back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.actions.fakes import FakeScheduler, job
from tfjobtui.actions import resubmit
from tfjobtui.actions.command_log import CommandLog
from tfjobtui.actions.submit import SubmitPlan, submit
from tfjobtui.errors import ActionError
from tfjobtui.model.ids import JobId
from tfjobtui.model.job import Gpus, Job
from tfjobtui.model.state import JobState
from tfjobtui.runs.records import RunRecords
from tfjobtui.schedulers.scheduler import EndedJob, StoredScript, SubmitRequest, Target

SCRIPT = "#!/bin/bash\n#SBATCH --time=30\ntrue\n"


@pytest.fixture
def records(tmp_path: Path) -> RunRecords:
    return RunRecords(tmp_path / "records")


def scheduler_with(stored: StoredScript | None, *jobs: Job) -> FakeScheduler:
    scheduler = FakeScheduler(*jobs)
    if stored is not None:
        scheduler.scripts = {str(item.id): stored for item in jobs}
    return scheduler


async def test_our_record_gives_everything_back(records: RunRecords, tmp_path: Path) -> None:
    scheduler = FakeScheduler()
    scheduler.submitted_id = JobId(7)
    plan = SubmitPlan(
        SCRIPT,
        "job.sh",
        str(tmp_path),
        ("--gpus=2", "--comment=a b"),
        ("x y",),
        template="t",
        values={"A": "1"},
    )
    outcome = await submit(scheduler, records, CommandLog(None), plan)
    row = job("7", JobState.COMPLETED, submit_time_s=int(outcome.record.submitted_at_s))
    again = await resubmit.plan(scheduler, records, row)
    assert again.submission == plan
    assert again.missing == ()
    assert "record" in again.source
    await resubmit.submit(scheduler, records, CommandLog(None), again)
    first, second = [call[1] for call in scheduler.calls if call[0] == "submit"]
    assert isinstance(first, SubmitRequest)
    assert isinstance(second, SubmitRequest)
    assert Path(first.script_path).read_text() == Path(second.script_path).read_text() == SCRIPT
    assert (first.options, first.arguments, first.work_dir) == (
        second.options,
        second.arguments,
        second.work_dir,
    )


async def test_a_record_of_an_earlier_job_with_the_same_id_is_not_taken(
    records: RunRecords, tmp_path: Path
) -> None:
    scheduler = FakeScheduler()
    scheduler.submitted_id = JobId(7)
    await submit(scheduler, records, CommandLog(None), SubmitPlan(SCRIPT, "job.sh", str(tmp_path)))
    with pytest.raises(ActionError, match="cannot be had back"):
        await resubmit.plan(scheduler, records, job("7", submit_time_s=1000))


async def test_options_come_from_the_command_line_where_it_is_clear(
    records: RunRecords, tmp_path: Path
) -> None:
    row = job("7", command=f"{tmp_path}/train.sh 5", work_dir=str(tmp_path))
    stored = StoredScript(SCRIPT, "slurmctld", (), "sbatch -p gpu -D sub --gpus=2 train.sh 5")
    plan = await resubmit.plan(scheduler_with(stored, row), records, row)
    assert plan.script == SCRIPT
    assert plan.options == ("--partition=gpu", "--gpus=2")
    assert (plan.arguments, plan.work_dir, plan.submission.file_name) == (("5",), str(tmp_path), "train.sh")
    assert plan.source == "slurmctld"
    (environment,) = plan.missing
    assert "environment" in environment


@pytest.mark.parametrize(
    ("line", "options", "arguments", "told"),
    [
        ("sbatch -p gpu train.sh 5 --lr", ("--partition=gpu",), ("5", "--lr"), "cannot be told apart"),
        ("sbatch -p gpu train.sh 5", ("--partition=gpu",), ("5",), ""),
        ("sbatch -p a : -p b train.sh 5", ("--partition=a", ":", "--partition=b"), ("5",), ""),
        ("sbatch -p gpu sub/../train.sh", ("--partition=gpu",), (), ""),
        ("sbatch --comment=a b train.sh 5", (), (), "Arguments of the script"),
        ("", (), (), "Arguments of the script"),
    ],
)
async def test_arguments_where_slurm_tells_the_path_alone(
    records: RunRecords,
    tmp_path: Path,
    line: str,
    options: tuple[str, ...],
    arguments: tuple[str, ...],
    told: str,
) -> None:
    row = job("7", command=f"{tmp_path}/train.sh", work_dir=str(tmp_path))
    plan = await resubmit.plan(scheduler_with(StoredScript(SCRIPT, "slurmctld", (), line), row), records, row)
    assert (plan.options, plan.arguments) == (options, arguments)
    assert any(told in sentence for sentence in plan.missing)
    assert told or not any("rguments" in sentence for sentence in plan.missing)


async def test_lost_options_are_told_with_what_the_job_had(records: RunRecords, tmp_path: Path) -> None:
    row = job(
        "7",
        command=f"{tmp_path}/train.sh",
        work_dir=str(tmp_path),
        partition="gpu",
        time_limit_s=1800.0,
        gpus=Gpus((("a100", 2),)),
    )
    for line, words in (("", "cannot be had back"), ("sbatch -J my job train.sh", "several ways")):
        plan = await resubmit.plan(
            scheduler_with(StoredScript(SCRIPT, "slurmctld", (), line), row), records, row
        )
        assert plan.options == ()
        sentence = plan.missing[0]
        assert words in sentence
        assert "partition gpu" in sentence
        assert "2×a100" in sentence
        assert "time limit" not in sentence, "the script has it"


@pytest.mark.parametrize(
    ("command", "arguments", "missing"),
    [
        ("/w/train.sh", (), False),
        ("/w/train.sh one", ("one",), False),
        ("/w/train.sh one two", ("one", "two"), True),
        ("", (), False),  # from standard input: it can have none
    ],
)
async def test_arguments_are_told_to_be_unsure(
    records: RunRecords, tmp_path: Path, command: str, arguments: tuple[str, ...], missing: bool
) -> None:
    row = job("7", command=command, work_dir=str(tmp_path))
    stored = StoredScript(SCRIPT, "slurmctld", (), f"sbatch {command}")
    plan = await resubmit.plan(scheduler_with(stored, row), records, row)
    assert plan.arguments == arguments
    assert any("rguments" in sentence for sentence in plan.missing) is missing


async def test_a_wrapped_command(records: RunRecords, tmp_path: Path) -> None:
    script = "#!/bin/sh\n# This script was created by sbatch --wrap.\n\necho a  b\n\n"
    row = job("7", work_dir=str(tmp_path))
    stored = StoredScript(script, "slurmctld", (), "sbatch -p gpu --wrap echo a  b -t 5")
    plan = await resubmit.plan(scheduler_with(stored, row), records, row)
    assert plan.options == ("--partition=gpu", "--time=5")
    assert (plan.arguments, plan.submission.file_name) == ((), "wrap")


@pytest.mark.parametrize(("job_id", "tasks"), [("7_3", "3"), ("7_[2-6%2]", "2-6%2")])
async def test_of_an_array_only_the_chosen_tasks(
    records: RunRecords, tmp_path: Path, job_id: str, tasks: str
) -> None:
    row = job(job_id, command="/w/train.sh", work_dir=str(tmp_path))
    stored = StoredScript(SCRIPT, "slurmctld", (), "sbatch -a 0-9 -p gpu train.sh")
    plan = await resubmit.plan(scheduler_with(stored, row), records, row)
    assert plan.options == ("--partition=gpu", f"--array={tasks}")


async def test_a_job_that_left_the_queue(records: RunRecords, tmp_path: Path) -> None:
    scheduler = FakeScheduler()
    scheduler.scripts["7"] = StoredScript(SCRIPT, "accounting", (), "sbatch -p gpu train.sh")
    scheduler.endings = (
        EndedJob(JobId(7), 7, "train.sh", JobState.COMPLETED, "COMPLETED", work_dir=str(tmp_path)),
    )
    plan = await resubmit.plan_target(scheduler, records, Target(JobId(7), None, "", "", None), None)
    assert plan.options == ("--partition=gpu",)
    assert plan.work_dir == str(tmp_path)


async def test_what_is_gone_is_told(records: RunRecords, tmp_path: Path) -> None:
    row = job("7", command="/w/train.sh", work_dir=str(tmp_path / "gone"))
    plan = await resubmit.plan(scheduler_with(StoredScript(SCRIPT, "slurmctld"), row), records, row)
    assert "not there any more" in plan.missing[0]
    with pytest.raises(ActionError, match="script of job 7 cannot be had back"):
        await resubmit.plan(scheduler_with(None, row), records, row)


async def test_arguments_of_a_job_that_left_the_queue(records: RunRecords, tmp_path: Path) -> None:
    scheduler = FakeScheduler()
    scheduler.scripts["7"] = StoredScript(SCRIPT, "accounting", (), "sbatch -A lab job.sh 5")
    end = EndedJob(
        JobId(7), 7, "job.sh", JobState.COMPLETED, "COMPLETED",
        work_dir=str(tmp_path), account="lab", partition="gpu", time_limit_s=60.0,
    )  # fmt: skip
    scheduler.endings = (end,)
    target = Target(JobId(7), None, "", "", None)
    plan = await resubmit.plan_target(scheduler, records, target, None)
    assert plan.options == ()
    assert "It had, beyond its script: name job.sh, partition gpu, account lab." in plan.missing[0]
    (tmp_path / "job.sh").write_text(SCRIPT)
    plan = await resubmit.plan_target(scheduler, records, target, None)
    assert plan.submission.command == ("sbatch", "--account=lab", "job.sh", "5")
    assert len(plan.missing) == 1


async def test_a_script_from_standard_input(records: RunRecords, tmp_path: Path) -> None:
    row = job("7", name="of/its option", work_dir=str(tmp_path))
    stored = StoredScript(SCRIPT, "slurmctld", (), "sbatch -p gpu -J of/its option")
    plan = await resubmit.plan(scheduler_with(stored, row), records, row)
    assert plan.options == ("--partition=gpu", "--job-name=of/its option")
    assert (plan.arguments, plan.submission.file_name) == ((), "sbatch")
    await resubmit.submit(FakeScheduler(), records, CommandLog(None), plan)


async def test_a_job_without_a_script_of_ours_and_a_name_that_is_no_files(
    records: RunRecords, tmp_path: Path
) -> None:
    scheduler = FakeScheduler()
    scheduler.scripts["7"] = StoredScript(SCRIPT, "accounting", ())
    for name in ("a/b", "..", "x" * 300, "\u65e5" * 200):
        scheduler.endings = (
            EndedJob(JobId(7), 7, name, JobState.COMPLETED, "COMPLETED", work_dir=str(tmp_path)),
        )
        plan = await resubmit.plan_target(scheduler, records, Target(JobId(7), None, "", "", None), None)
        assert plan.submission.file_name == name
        await resubmit.submit(scheduler, records, CommandLog(None), plan)


async def test_a_het_job_of_the_command_line_comes_back_in_all_its_parts(
    records: RunRecords, tmp_path: Path
) -> None:
    row = job("7+1", command="/w/train.sh 5", work_dir=str(tmp_path))
    stored = StoredScript(SCRIPT, "slurmctld", (), "sbatch -p cpu -D sub : -p gpu --gpus=1 train.sh 5")
    plan = await resubmit.plan(scheduler_with(stored, row), records, row)
    assert plan.submission.command == (
        "sbatch", "--partition=cpu", ":", "--partition=gpu", "--gpus=1", "train.sh", "5",
    )  # fmt: skip
    assert len(plan.missing) == 1


async def test_letters_that_accounting_lost_are_told(records: RunRecords, tmp_path: Path) -> None:
    row = job("7", name="\u65e5", command="/w/train.sh", work_dir=str(tmp_path))
    stored = StoredScript(SCRIPT, "slurmctld", (), "sbatch -J ? --comment=a? train.sh")
    plan = await resubmit.plan(scheduler_with(stored, row), records, row)
    assert plan.options == ("--job-name=\u65e5", "--comment=a?")
    assert "letters: '--comment=a?'" in plan.missing[-1]


async def test_of_the_users_defaults_those_that_the_job_had(
    records: RunRecords, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SBATCH_ACCOUNT", "Lab")
    monkeypatch.setenv("SBATCH_PARTITION", "gpu")
    monkeypatch.setenv("SBATCH_QOS", "long")
    row = job("7", command="/w/train.sh", work_dir=str(tmp_path), account="lab", partition="cpu", qos="long")
    stored = StoredScript(SCRIPT, "slurmctld", (), "sbatch -q long train.sh")
    plan = await resubmit.plan(scheduler_with(stored, row), records, row)
    assert plan.options == ("--qos=long", "--account=Lab")
    assert plan.missing[-1] == "SBATCH_PARTITION is set in your environment, and is not used for this job."
