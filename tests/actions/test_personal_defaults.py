"""The user's own defaults for sbatch become options that are seen, or are told to be passed over."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.actions.fakes import FakeScheduler
from tfjobtui.actions.command_log import CommandLog
from tfjobtui.actions.personal_defaults import personal_defaults
from tfjobtui.actions.submit import plan_script, submit
from tfjobtui.runs.records import RunRecords

SCRIPT = "#!/bin/bash\n#SBATCH --partition=gpu\n#SBATCH --gres=gpu:2 --mem-per-cpu=4G\ntrue\n"


def found(
    environment: dict[str, str], *given: str, script: str = SCRIPT
) -> tuple[list[str], tuple[str, ...]]:
    own = personal_defaults(script, given, environment)
    return [option.argument for option in own.options], own.notes


def test_what_nothing_else_says_becomes_an_option() -> None:
    environment = {"SBATCH_ACCOUNT": "lab", "SBATCH_QOS": "long", "SBATCH_TIMELIMIT": "1:00:00", "HOME": "/"}
    assert found(environment) == (["--account=lab", "--qos=long", "--time=1:00:00"], ())


def test_the_command_line_wins_without_a_word() -> None:
    assert found({"SBATCH_ACCOUNT": "lab", "SBATCH_GPUS": "2"}, "account", "gpus-per-node") == ([], ())


def test_the_script_wins_and_it_is_told() -> None:
    assert found({"SBATCH_PARTITION": "cpu"}) == (
        [],
        ("SBATCH_PARTITION=cpu is not used: the script says --partition=gpu.",),
    )
    assert found({"SBATCH_PARTITION": "gpu"}) == ([], ())


def test_options_of_one_matter_are_not_mixed() -> None:
    options, notes = found({"SBATCH_GPUS": "4", "SBATCH_MEM_PER_NODE": "8G"})
    assert options == []
    assert "--gres=gpu:2" in notes[0]
    assert "--mem-per-cpu=4G" in notes[1]
    both = {"SBATCH_REQUEUE": "", "SBATCH_NO_REQUEUE": ""}
    assert found(both) == (["--requeue"], ())


def test_flags_count_without_a_value_and_other_empty_ones_do_not() -> None:
    assert found({"SBATCH_EXCLUSIVE": "", "SBATCH_ACCOUNT": ""}) == (["--exclusive"], ())
    assert found({"SBATCH_EXCLUSIVE": "user"}) == (["--exclusive=user"], ())


def test_what_would_make_it_another_job_is_passed_over_and_told() -> None:
    options, notes = found({"SBATCH_ARRAY_INX": "0-9", "SBATCH_WAIT": "1", "SBATCH_MEM_BIND_LIST": "x"})
    assert options == []
    assert [note.split()[0] for note in notes] == ["SBATCH_ARRAY_INX", "SBATCH_WAIT"]


def test_a_het_job_gets_none() -> None:
    script = "#!/bin/bash\n#SBATCH -n1\n#SBATCH hetjob\n#SBATCH -n2\n"
    options, notes = found({"SBATCH_ACCOUNT": "lab"}, script=script)
    assert options == []
    assert "het job" in notes[0]


def test_what_cannot_stand_in_a_script() -> None:
    options, notes = found({"SBATCH_JOB_NAME": "a\nb"})
    assert options == []
    assert "SBATCH_JOB_NAME" in notes[0]
    assert found({"SBATCH_ACCOUNT": "lab"}, script='#!/bin/sh\n#SBATCH --comment="\n') == ([], ())


async def test_they_are_in_the_command_that_is_shown_and_in_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SBATCH_ACCOUNT", "lab")
    monkeypatch.setenv("SBATCH_PARTITION", "cpu")
    path = tmp_path / "job.sh"
    path.write_text(SCRIPT)
    plan = plan_script(path, ["--time=5"], [], str(tmp_path))
    assert plan.command == ("sbatch", "--time=5", "--account=lab", str(path))
    outcome = await submit(FakeScheduler(), RunRecords(tmp_path / "r"), CommandLog(None), plan)
    assert outcome.record.options == ("--time=5", "--account=lab")
    assert outcome.notes == ("SBATCH_PARTITION=cpu is not used: the script says --partition=gpu.",)
