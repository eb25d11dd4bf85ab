"""Submitting: what is shown is what runs, and what is kept is enough to run it again."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.actions.fakes import FakeScheduler
from tfjobtui.actions.command_log import CommandLog
from tfjobtui.actions.submit import (
    SubmitPlan,
    load_templates,
    plan_script,
    plan_template,
    submit,
    trainer_path,
)
from tfjobtui.config import Config, Templates
from tfjobtui.errors import ActionError, SubmissionError, UsageError
from tfjobtui.process import run
from tfjobtui.runs.records import RunRecords
from tfjobtui.schedulers.scheduler import Capability, SubmitRequest

SCRIPT = "#!/bin/bash\n#SBATCH --job-name=trial\n#SBATCH -o logs/%j.out\ntrue\n"


@pytest.fixture
def records(tmp_path: Path) -> RunRecords:
    return RunRecords(tmp_path / "records")


@pytest.fixture
def log() -> CommandLog:
    return CommandLog(None)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def request_of(scheduler: FakeScheduler) -> SubmitRequest:
    (request,) = [call[1] for call in scheduler.calls if call[0] == "submit"]
    assert isinstance(request, SubmitRequest)
    return request


async def test_a_script_is_handed_over_as_it_is(records: RunRecords, log: CommandLog, work: Path) -> None:
    script = work / "my job.sh"
    script.write_text(SCRIPT)
    scheduler = FakeScheduler()
    plan = plan_script(script, ["--time=5"], ["a b", "-x"], str(work))
    assert plan.command == ("sbatch", "--time=5", str(script), "a b", "-x")
    outcome = await submit(scheduler, records, log, plan)
    request = request_of(scheduler)
    assert request.script_path == str(script)
    assert (request.options, request.arguments, request.work_dir) == (("--time=5",), ("a b", "-x"), str(work))
    assert outcome.summary == "submitted job 4711"
    assert (work / "logs").is_dir()
    assert "Made the folder" in outcome.notes[0]
    (entry,) = log
    assert entry.purpose == "submit 4711"


async def test_the_record_has_all_that_is_needed(records: RunRecords, log: CommandLog, work: Path) -> None:
    script = work / "job.sh"
    script.write_bytes(SCRIPT.encode() + b"echo \xff\n")
    await submit(FakeScheduler(), records, log, plan_script(script, ["--time=5"], ["1"], str(work)))
    record = records.find(None, 4711)
    assert record is not None
    assert record.script.encode("utf-8", "surrogateescape") == script.read_bytes()
    assert (record.options, record.arguments, record.work_dir) == (("--time=5",), ("1",), str(work))
    assert record.job_name == "trial"
    assert record.git_dirty is None


async def test_the_state_of_the_folders_repository_is_kept(
    records: RunRecords, log: CommandLog, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "a")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "a@b")
    script = work / "job.sh"
    script.write_text(SCRIPT)
    for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "first")):
        await run(["git", *words], cwd=str(work), timeout_s=30)
    outcome = await submit(FakeScheduler(), records, log, plan_script(script, [], [], str(work)))
    assert len(outcome.record.git_commit) == 40
    assert outcome.record.git_dirty is False
    script.write_text(SCRIPT + "false\n")
    outcome = await submit(FakeScheduler(), records, log, plan_script(script, [], [], str(work)))
    assert outcome.record.git_dirty is True


async def test_a_template_is_written_under_its_own_name(
    records: RunRecords, log: CommandLog, work: Path
) -> None:
    template = next(item for item in load_templates(Config()) if item.name == "train")
    plan = plan_template(template, {"EPOCHS": "3"}, {"partition": "cpu", "hold": ""}, str(work))
    assert "\nEPOCHS=3\n" in plan.script
    assert "#SBATCH --partition=cpu\n" in plan.script
    scheduler = FakeScheduler()
    outcome = await submit(scheduler, records, log, plan)
    path = Path(request_of(scheduler).script_path)
    assert path.name == template.path.name
    assert path.read_text() == plan.script == outcome.record.script
    assert path.parent.stat().st_mode & 0o077 == 0
    assert (outcome.record.template, outcome.record.values) == ("train", {"EPOCHS": "3"})
    assert trainer_path() in plan.script


async def test_a_refusal_is_in_the_command_log_and_in_no_record(
    records: RunRecords, log: CommandLog, work: Path
) -> None:
    scheduler = FakeScheduler()
    scheduler.submit_error = SubmissionError("invalid partition")
    plan = SubmitPlan(SCRIPT, "job.sh", str(work), ("--partition=none",))
    with pytest.raises(SubmissionError, match="invalid partition"):
        await submit(scheduler, records, log, plan)
    (entry,) = log
    assert entry.record.output == "invalid partition"
    assert entry.record.argv[:2] == ("sbatch", "--partition=none")
    assert records.recent(9) == ()


async def test_the_command_log_has_the_refused_command_as_it_was_run(
    records: RunRecords, log: CommandLog, work: Path
) -> None:
    scheduler = FakeScheduler()
    argv = ("/usr/bin/sbatch", "--parsable", "job.sh")
    scheduler.submit_error = SubmissionError(
        "no such partition", argv=argv, returncode=1, said="sbatch: error: x"
    )
    with pytest.raises(SubmissionError):
        await submit(scheduler, records, log, SubmitPlan(SCRIPT, "job.sh", str(work)))
    (entry,) = log
    assert (entry.purpose, entry.record.argv, entry.record.returncode) == ("submit (refused)", argv, 1)
    assert entry.record.output == "sbatch: error: x"


async def test_a_state_folder_that_cannot_be_written_is_told(
    records: RunRecords, log: CommandLog, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(work / "file"))
    with pytest.raises(ActionError, match="state folder"):
        await submit(FakeScheduler(), records, log, SubmitPlan(SCRIPT, "job.sh", str(work)))


async def test_a_record_that_cannot_be_kept_is_told(tmp_path: Path, log: CommandLog, work: Path) -> None:
    (tmp_path / "file").write_text("")
    outcome = await submit(
        FakeScheduler(),
        RunRecords(tmp_path / "file" / "x"),
        log,
        SubmitPlan("#!/bin/sh\n", "job.sh", str(work)),
    )
    assert any("could not be kept" in note for note in outcome.notes)


async def test_where_nothing_can_be_submitted(records: RunRecords, log: CommandLog, work: Path) -> None:
    scheduler = FakeScheduler()
    scheduler.capabilities = dataclasses.replace(
        scheduler.capabilities, submit=Capability(False, "no sbatch")
    )
    with pytest.raises(ActionError, match="no sbatch"):
        await submit(scheduler, records, log, SubmitPlan(SCRIPT, "job.sh", str(work)))
    assert scheduler.calls == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"true\n", "no script"),
        (b"", "no script"),
        (b"#!/bin/sh\r\ntrue\r\n", "line ends of DOS"),
        (b"#!/bin/sh\n\0", "NUL"),
        (b"#!/bin/sh\n" + b"#" * (5 << 20), "too large"),
    ],
)
def test_what_sbatch_would_refuse_is_told_before(work: Path, content: bytes, words: str) -> None:
    script = work / "job.sh"
    script.write_bytes(content)
    with pytest.raises(UsageError, match=words):
        plan_script(script, [], [], str(work))


def test_a_site_adds_templates(tmp_path: Path) -> None:
    (tmp_path / "mine.sbatch").write_text("#!/bin/bash\n#TFJOB format = 1\n#TFJOB name = mine\ntrue\n")
    names = [item.name for item in load_templates(Config(templates=Templates((tmp_path,))))]
    assert names == sorted(names)
    assert {"mine", "train"} <= set(names)
