"""The chain of a data set and an evaluation on the test cluster, by plain sbatch, as an ordinary user."""

import json
import shutil
from pathlib import Path

import pytest

from tests.cluster.client import Cluster
from tests.trainer.running import TREE
from tests.trainer.test_template_slurm import Submitted

pytestmark = [pytest.mark.slurm, pytest.mark.trainer, pytest.mark.usefixtures("_tensorflow")]


def test_plain_sbatch_makes_the_digits(cluster: Cluster, tmp_path: Path) -> None:
    job = Submitted(cluster, tmp_path, "--partition=cpu", template=TREE / "sbatch" / "preprocess.sbatch")
    job.wait_for_log(r"tfjob-preprocess: (done|.*rror)")
    assert "done: 1500 train in 16 shards, 297 validation in 4 shards" in job.log
    described = json.loads((tmp_path / "data" / "digits" / "dataset.json").read_text())
    assert described["splits"]["train"]["examples"] == 1500
    job.wait(lambda: job.queue_state() in ("", "COMPLETED"), "the job's end")


def test_plain_sbatch_evaluates_the_newest_run(
    cluster: Cluster, finished: tuple[Path, str], tmp_path: Path
) -> None:
    shutil.copytree(finished[0], tmp_path / "runs" / "train-1")
    job = Submitted(
        cluster, tmp_path, "--partition=cpu", template=TREE / "sbatch" / "evaluate.sbatch", DEVICE="cpu"
    )
    job.wait_for_log(r"tfjob-evaluate: (297 examples|.*rror)")
    found = json.loads((tmp_path / "runs" / "train-1" / "evaluation.json").read_text())
    assert (found["count"], found["job_id"]) == (297, job.job_id)
    job.wait(lambda: job.queue_state() in ("", "COMPLETED"), "the job's end")
