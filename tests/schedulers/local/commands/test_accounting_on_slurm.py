"""sacct of jobs that have ended, beside Slurm's own."""

from __future__ import annotations

import getpass
import os
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.cluster.client import Cluster
from tests.schedulers.local.commands.user import User

pytestmark = pytest.mark.slurm
PATIENCE_S = 90.0

BODIES = {
    "well": "srun -n1 true; srun -n2 -J other true",
    "badly": "srun -n1 false; srun -n1 bash -c 'exit 7'; exit 3",
    "killed": "kill -9 $$",
    "in a step": "srun -n1 bash -c 'kill -9 $$'",
}
FIELDS = (
    "jobid,jobidraw,jobname,user,group,account,qos,state,exitcode,derivedexitcode,ncpus,nnodes,allocnodes,reqcpus,"
    "ntasks,reqmem,timelimit,timelimitraw,reqtres,alloctres,reason,workdir,comment,suspended,reqnodes"
)
CALLS = (
    ("-P", "-o", FIELDS, "-j", "JOB"),
    ("-P", "-X", "-o", FIELDS, "-j", "JOB"),
    ("-j", "JOB"),
    ("-X", "-b", "-j", "JOB"),
    ("-n", "-p", "-o", "state,exitcode", "-j", "JOB.batch"),
    ("-n", "-P", "-o", "jobid,state", "-j", "JOB.0"),
    ("-n", "-P", "-X", "-o", "jobid", "-j", "JOB", "-s", "CD"),
    ("-n", "-P", "-X", "-o", "jobid", "-j", "JOB", "-s", "F", "-S", "now-1hour", "-E", "now"),
    ("-n", "-P", "-X", "-o", "jobid", "-j", "JOB", "-s", "PD,R"),
    ("-n", "-P", "-X", "-o", "jobid", "-j", "JOB", "-E", "now-1hour"),
    ("-n", "-P", "-X", "-o", "jobid", "-j", "JOB", "-S", "now+1hour", "-E", "now+2hours"),
    ("-n", "-P", "-X", "-o", "jobname", "--name", "a name", "-j", "JOB"),
)
OPTIONS = ("-n2", "--mem=1500M", "-t90", "-Ja name", "--comment=words", "--wait", "--parsable")


def _answers(folder: Path, environment: Mapping[str, str], options: Sequence[str]) -> dict[str, list[str]]:
    """What is said to the calls about each job."""
    (folder / "jobs").mkdir()

    def run(*argv: str) -> str:
        done = subprocess.run(
            argv, cwd=folder / "jobs", env=environment, capture_output=True, text=True, check=False
        )
        assert argv[0] == "sbatch" or done.returncode == 0, done
        return done.stdout

    found: dict[str, list[str]] = {}
    ended = re.compile(rf"{getpass.getuser()}\|(COMPLETED|FAILED)")
    for name, body in BODIES.items():
        (folder / "jobs" / name).write_text(f"#!/bin/bash\n{body}\n")
        job = run("sbatch", *OPTIONS, *options, name).strip()
        end = time.monotonic() + PATIENCE_S
        # slurmdbd may write an end before the start, and has a row of root's until then.
        while not ended.search(run("sacct", "-nXP", "-o", "user,state", "-j", job)):
            assert time.monotonic() < end
            time.sleep(0.2)
        found[name] = [
            _plain(run("sacct", *(word.replace("JOB", job) for word in call)), job, folder) for call in CALLS
        ]
    return found


def _plain(text: str, job: str, folder: Path) -> str:
    text = re.sub(rf"(?m)^{job}\b|(?<=\|){job}\b", "JOB", text.replace(str(folder), "FOLDER"))
    text = re.sub(r"\b(gpu|local)\b", "PART", text)
    return re.sub(r" {2,}", " ", text)


@pytest.fixture(scope="module")
def answers(
    user: User, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    slurm = tmp_path_factory.mktemp("slurm")
    return (
        _answers(user.folder, user.environment, ()),
        _answers(slurm, {**os.environ, **cluster.env}, ()),
    )


@pytest.mark.parametrize("number", range(len(CALLS)), ids=[" ".join(call)[-50:] for call in CALLS])
@pytest.mark.parametrize("name", BODIES)
def test_accounting_is_the_same(
    name: str, number: int, answers: tuple[dict[str, list[str]], dict[str, list[str]]]
) -> None:
    ours, slurms = (side[name][number] for side in answers)
    assert ours == slurms
