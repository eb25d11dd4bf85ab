"""The template on the test cluster, by plain sbatch, as an ordinary user."""

import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster.client import Cluster
from tests.trainer.running import LIMIT_S, TEMPLATE, TRAINER, environment, state

pytestmark = [pytest.mark.slurm, pytest.mark.trainer, pytest.mark.usefixtures("_tensorflow")]


class Submitted:
    """A job from the template, in a folder of its own."""

    def __init__(
        self, cluster: Cluster, folder: Path, *options: str, template: Path = TEMPLATE, **variables: str
    ) -> None:
        self.folder = folder
        self._env = environment(VENV=sys.prefix, TFJOB_TRAINER=str(TRAINER)) | cluster.env | variables
        self.job_id = self.slurm("sbatch", "--parsable", *options, str(template)).strip()
        self.run = folder / "runs" / f"train-{self.job_id}"

    def slurm(self, *argv: str) -> str:
        """The answer of a Slurm command, called by the owner of the job."""
        done = subprocess.run(
            argv, cwd=self.folder, env=self._env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    @property
    def log(self) -> str:
        """The job's log so far."""
        path = self.folder / f"slurm-{self.job_id}.out"
        return path.read_text() if path.exists() else ""

    def queue_state(self) -> str:
        """The job's state in the queue, "PENDING"."""
        return self.slurm("squeue", "--noheader", "--format=%T", "--jobs", self.job_id).strip()

    def wait_for_log(self, pattern: str) -> None:
        """Wait until the log shows `pattern`."""
        self.wait(lambda: re.search(pattern, self.log) is not None, pattern)

    def wait(self, reached: Callable[[], bool], what: str) -> None:
        """Wait until `reached` says so."""
        deadline = time.monotonic() + LIMIT_S
        while not reached():
            assert time.monotonic() < deadline, f"{what}: not within {LIMIT_S} s; the log:\n{self.log}"
            time.sleep(0.1)


def test_plain_sbatch_trains_to_the_end(cluster: Cluster, tmp_path: Path) -> None:
    job = Submitted(cluster, tmp_path, "--partition=cpu", DEVICE="cpu")
    job.wait_for_log(r"tfjob-train: (completed|.*error)")
    assert job.log.startswith(f"tfjob-train: run folder {job.run}\n")
    assert re.search(
        r"^tfjob-train: completed: 12 epochs, 276 steps, val_accuracy 0\.9\d\d in ", job.log, re.MULTILINE
    )
    now = state(job.run)
    assert (now["status"], now["job_id"], now["restart"]) == ("completed", job.job_id, 0)
    job.wait(lambda: job.queue_state() in ("", "COMPLETED"), "the job's end")


def test_a_signal_requeues_and_the_run_goes_on(cluster: Cluster, tmp_path: Path) -> None:
    job = Submitted(cluster, tmp_path, "--partition=cpu", DEVICE="cpu", EPOCHS="30")
    job.wait_for_log(r"step 50/690")
    job.slurm("scancel", "--signal=USR1", job.job_id)
    job.wait_for_log(r"stopped: SIGUSR1 at step \d+ of 690, saved")
    stopped = state(job.run)
    assert (stopped["status"], stopped["restart"]) == ("stopped", 0)
    job.wait(lambda: job.queue_state() == "PENDING", "the requeue")
    pending_since = time.monotonic()

    def goes_on() -> bool:
        # Not at once: slurmd refuses a job that is started in the second in which it was ended. And more than
        # once: Slurm sets the two minutes of a requeued job anew when its last run is cleaned up.
        if job.queue_state() == "PENDING" and time.monotonic() > pending_since + 3:
            cluster.root("scontrol", "update", f"JobId={job.job_id}", "StartTime=now", check=False)
        return "going on from" in job.log

    job.wait(goes_on, "the second start")
    job.wait_for_log(r"tfjob-train: completed: 30 epochs, 690 steps")
    assert f"going on from {job.run}/checkpoints/ckpt-{stopped['step']}\n" in job.log
    now = state(job.run)
    assert (now["status"], now["restart"], now["attempt"]) == ("completed", 1, 1)


def test_a_cancelled_job_saves_and_stays_cancelled(cluster: Cluster, tmp_path: Path) -> None:
    job = Submitted(cluster, tmp_path, "--partition=cpu", DEVICE="cpu", EPOCHS="500")
    job.wait_for_log(r"step 50/11500")
    job.slurm("scancel", job.job_id)
    job.wait(lambda: job.queue_state() in ("", "CANCELLED"), "the end")
    assert state(job.run)["status"] == "stopped"
    assert "goes back into the queue" not in job.log


def test_gpus_that_tensorflow_cannot_see_end_the_job(cluster: Cluster, tmp_path: Path) -> None:
    job = Submitted(cluster, tmp_path, "--partition=gpu", "--gpus-per-node=2")
    job.wait_for_log(r"this job was given 2 GPU\(s\) \(.*\) but TensorFlow \S+ sees 0: no GPU driver")
    job.wait(lambda: job.queue_state() in ("", "FAILED"), "the end")
