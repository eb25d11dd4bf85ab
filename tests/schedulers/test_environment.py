"""The environment of Slurm's commands, and where they are found."""

from pathlib import Path

import pytest

from tfjobtui.schedulers.slurm.environment import for_queries, without_slurm
from tfjobtui.schedulers.slurm.settings import SlurmSettings, discover

USERS = {
    "HOME": "/home/u1",
    "LANG": "de_DE.UTF-8",
    "LC_TIME": "de_DE.UTF-8",
    "MY_SLURM_THING": "1",
    "SACCT_FORMAT": "jobid",
    "SBATCH_ACCOUNT": "x",
    "SINFO_FORMAT": "%n",
    "SLURM_CLUSTERS": "other",
    "SLURM_CONF": "/etc/s.conf",
    "SLURM_JOB_ID": "7",
    "SLURM_TIME_FORMAT": "relative",
    "SQUEUE_FORMAT": "%j %u",
    "PMI_RANK": "0",
}


def test_queries_get_none_of_the_users_formats() -> None:
    assert for_queries(USERS) == {
        "HOME": "/home/u1",
        "MY_SLURM_THING": "1",
        "SLURM_CONF": "/etc/s.conf",
        "LC_ALL": "C.UTF-8",
        "SLURM_TIME_FORMAT": "%s",
        "SLURM_BITSTR_LEN": "4096",
    }


def test_submissions_keep_what_is_not_slurms() -> None:
    assert without_slurm(USERS) == {
        "HOME": "/home/u1",
        "LANG": "de_DE.UTF-8",
        "LC_TIME": "de_DE.UTF-8",
        "MY_SLURM_THING": "1",
        "SLURM_CONF": "/etc/s.conf",
    }


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_commands_are_found_as_set_then_on_the_path_then_beside_squeue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfjobtui.schedulers.slurm.settings.USUAL_FOLDERS", (str(tmp_path / "usual"),))
    squeue = executable(tmp_path / "bin" / "squeue")
    beside = executable(tmp_path / "bin" / "scancel")
    usual = executable(tmp_path / "usual" / "sinfo")
    elsewhere = executable(tmp_path / "site" / "sbatch")
    on_path = executable(tmp_path / "path" / "sacct")
    settings = SlurmSettings(commands={"squeue": str(squeue), "sbatch": str(elsewhere), "srun": "/not/there"})
    found = discover(settings, path=str(tmp_path / "path"))
    assert found.paths == {
        "squeue": str(squeue),
        "sbatch": str(elsewhere),
        "sacct": str(on_path),
        "scancel": str(beside),
        "sinfo": str(usual),
        "srun": "/not/there",
    }
    assert found.missing == ("scontrol", "sstat", "sprio")
