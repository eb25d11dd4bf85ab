"""The test cluster keeps its promises: two users, GPUs, accounting, and daemons that can be broken."""

from __future__ import annotations

import getpass
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.client import Cluster, ClusterRequestError

pytestmark = [pytest.mark.slurm, pytest.mark.usefixtures("slurm_env")]


def eventually(check: Callable[[], bool], what: str, timeout_s: float = 20.0) -> None:
    """Wait until `check` holds."""
    deadline = time.monotonic() + timeout_s
    while not check():
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}"
        time.sleep(0.1)


def output(*argv: str) -> str:
    """The output of a command that has to succeed."""
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout.strip()


def accounted(job_id: str) -> str:
    """User and state of a job, by sacct."""
    return output("sacct", "-X", "-n", "-P", "-j", job_id, "-o", "User,State")


@pytest.fixture(autouse=True)
def _empty_queue(cluster: Cluster) -> Iterator[None]:
    """Leave no job behind."""
    yield
    for user in (cluster.user, cluster.second_user):
        cluster.root("scancel", "-u", user, check=False)


def test_a_gpu_job_gets_its_gpus(tmp_path: Path) -> None:
    log = tmp_path / "log"
    script = "echo $CUDA_VISIBLE_DEVICES; echo $SLURM_JOB_GPUS"
    job_id = output("sbatch", "--parsable", "-o", str(log), "--gres=gpu:a100:2", f"--wrap={script}")
    eventually(lambda: accounted(job_id) == f"{getpass.getuser()}|COMPLETED", f"job {job_id} completes")
    assert log.read_text() == "0,1\n0,1\n"
    assert "gres/gpu:a100=2" in output("sacct", "-X", "-n", "-P", "-j", job_id, "-o", "AllocTRES")


def test_the_second_user_owns_jobs_too(cluster: Cluster) -> None:
    argv = ("sbatch", "--parsable", "-o", "/dev/null", "-p", "cpu", "--wrap=sleep 60")
    job_id = cluster.as_second(*argv).stdout.strip()
    assert output("squeue", "-h", "-j", job_id, "-o", "%u") == cluster.second_user
    refused = subprocess.run(["scancel", job_id], capture_output=True, text=True, check=False)
    assert "Access/permission denied" in refused.stderr
    cluster.root("scancel", job_id)
    eventually(
        lambda: accounted(job_id).startswith(f"{cluster.second_user}|CANCELLED"), f"{job_id} is cancelled"
    )


def test_a_high_job_throws_out_a_low_one() -> None:
    options = ("--parsable", "-o", "/dev/null", "--exclusive", "-w", "cpu02", "--wrap=sleep 60")
    low = output("sbatch", "-p", "low", *options)
    eventually(lambda: output("squeue", "-h", "-j", low, "-o", "%T") == "RUNNING", f"job {low} runs")
    high = output("sbatch", "-p", "high", *options)
    eventually(lambda: output("squeue", "-h", "-j", high, "-o", "%T") == "RUNNING", f"job {high} runs")
    eventually(
        lambda: output("squeue", "-h", "-j", low, "-o", "%T") == "PENDING", f"job {low} is queued again"
    )


def test_a_closed_partition_says_so() -> None:
    job_id = output("sbatch", "--parsable", "-o", "/dev/null", "-p", "closed", "--wrap=true")
    eventually(lambda: output("squeue", "-h", "-j", job_id, "-o", "%r") == "PartitionDown", "the reason")


def test_jobs_survive_the_controller(cluster: Cluster) -> None:
    job_id = output("sbatch", "--parsable", "-o", "/dev/null", "-p", "cpu", "--wrap=sleep 60")
    eventually(lambda: output("squeue", "-h", "-j", job_id, "-o", "%T") == "RUNNING", f"job {job_id} runs")
    time.sleep(6)  # slurmctld writes its state every five seconds
    cluster.kill_daemon("slurmctld")
    down = subprocess.run(["squeue"], capture_output=True, text=True, check=False, timeout=60)
    assert down.returncode == 1
    assert "Unable to contact slurm controller" in down.stderr
    cluster.start_daemon("slurmctld")
    assert output("squeue", "-h", "-j", job_id, "-o", "%T") == "RUNNING"


def test_a_paused_controller_never_answers(cluster: Cluster) -> None:
    cluster.pause_daemon("slurmctld")
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            subprocess.run(["squeue"], capture_output=True, check=False, timeout=1)
    finally:
        cluster.resume_daemon("slurmctld")
    output("squeue")


def test_a_stopped_node_comes_back(cluster: Cluster) -> None:
    cluster.stop_daemon("gpu02")
    with pytest.raises(ClusterRequestError, match="gpu02 is not running"):
        cluster.stop_daemon("gpu02")
    cluster.start_daemon("gpu02")
    assert output("sinfo", "-h", "-n", "gpu02", "-o", "%T") == "idle"


def test_accounting_can_be_away_for_a_while(cluster: Cluster) -> None:
    cluster.stop_daemon("slurmdbd")
    job_id = output("sbatch", "--parsable", "-o", "/dev/null", "-p", "cpu", "--wrap=true")
    assert subprocess.run(["sacct"], capture_output=True, check=False, timeout=60).returncode == 1
    cluster.start_daemon("slurmdbd")
    eventually(lambda: "COMPLETED" in accounted(job_id), f"job {job_id} is accounted for", timeout_s=40)


def test_a_bad_request_is_an_answer(cluster: Cluster) -> None:
    with pytest.raises(ClusterRequestError, match="no daemon 'slurmx'"):
        cluster.stop_daemon("slurmx")
    assert cluster.root("sleep", "5", timeout_s=0.2, check=False).rc == 124
    assert cluster.root("no-such-command", check=False).rc == 1
    assert cluster.root("id", "-un").stdout == "root\n"
    assert cluster.as_second("sh", "-c", "id -un; pwd; cat", input="hello").stdout.endswith(
        f"{cluster.second_user}\n/home/{cluster.second_user}\nhello"
    )
