"""Two nodes of the test cluster train together, by plain sbatch, as an ordinary user."""

import re
import time
from pathlib import Path

import pytest

from tests.cluster.client import Cluster
from tests.trainer.running import TREE, run, state
from tests.trainer.test_template_slurm import Submitted

pytestmark = [pytest.mark.slurm, pytest.mark.trainer, pytest.mark.usefixtures("_tensorflow")]

TEMPLATE = TREE / "sbatch" / "train-nodes.sbatch"
WORDS = "--batch-size 64 --log-steps 5 --checkpoint-steps 10"


def start_again(cluster: Cluster, job: Submitted, times: int) -> None:
    """Spare a requeued job Slurm's two minutes, until it has started so many times."""
    pending_since = time.monotonic()

    def started() -> bool:
        # As in test_template_slurm: not in the second in which it ended, and more than once.
        if job.queue_state() == "PENDING" and time.monotonic() > pending_since + 3:
            cluster.root("scontrol", "update", f"JobId={job.job_id}", "StartTime=now", check=False)
        return job.log.count("going on from") >= times

    job.wait(started, f"start {times + 1}")


def test_two_nodes_stopped_and_requeued_twice(cluster: Cluster, tmp_path: Path) -> None:
    """The weights in the end are those of an undisturbed run on two replicas of one node."""
    job = Submitted(
        cluster, tmp_path, "--partition=cpu", template=TEMPLATE, DEVICE="cpu", EPOCHS="8", EXTRA_ARGS=WORDS
    )
    for times, step in ((1, 15), (2, 80)):
        job.wait_for_log(rf"step {step}/184")
        job.slurm("scancel", "--signal=USR1", job.job_id)
        job.wait_for_log(rf"(?s)(stopped: SIGUSR1 \(worker \d\) at step \d+ of 184, saved.*){{{times}}}")
        job.wait(lambda: job.queue_state() == "PENDING", "the requeue")
        start_again(cluster, job, times)
    job.wait_for_log(r"tfjob-train: completed: 8 epochs, 184 steps")
    job.wait(lambda: job.queue_state() in ("", "COMPLETED"), "the job's end")
    now = state(job.run)
    assert (now["status"], now["restart"], now["attempt"]) == ("completed", 2, 2)
    assert re.search(r"nodes: cpu01 cpu02; TensorFlow at \S+:\d+ \S+:\d+", job.log)
    assert job.log.startswith(f"tfjob-train: run folder {job.run}\n")

    alone = run(
        "--device", "cpu", "--replicas", "2", "--epochs", "8", "--model-dir", tmp_path / "alone", cwd=tmp_path
    )
    assert alone.returncode == 0, alone.stderr
    assert now["weights_sha256"] == state(tmp_path / "alone")["weights_sha256"]
