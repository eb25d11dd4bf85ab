"""Several processes that train together: two on this machine, by a TF_CONFIG."""

import signal
from pathlib import Path

import pytest

from tests.trainer.running import SHORT, end_of, start_workers, state, telemetry, wait_for

pytestmark = [pytest.mark.trainer, pytest.mark.usefixtures("_tensorflow")]


def test_a_signal_to_one_worker_stops_both_and_they_go_on(two_replicas: Path, tmp_path: Path) -> None:
    """A proxy in the environment would hang TensorFlow."""
    folder = tmp_path / "run"
    words = (*SHORT, "--model-dir", folder, "--peer-timeout", "60")
    workers = start_workers(*words, cwd=tmp_path, http_proxy="http://127.0.0.1:9")
    wait_for(tmp_path / "worker-0.log", "step 15/", workers)
    workers[1].send_signal(signal.SIGUSR1)
    assert end_of(workers) == [0, 0]
    stopped = state(folder)
    assert stopped["status"] == "stopped"
    assert 15 <= stopped["step"] < 92
    log = (tmp_path / "worker-0.log").read_text()
    assert log.startswith(f"tfjob-train: run folder {folder}\n")
    assert f"stopped: SIGUSR1 (worker 1) at step {stopped['step']} of 92, saved" in log
    assert "devices: 2 nodes, each CPU" in log
    assert "memlock (ulimit -l)" in log
    assert (tmp_path / "worker-1.log").read_text() == ""

    workers = start_workers(*words, cwd=tmp_path)
    assert end_of(workers) == [0, 0]
    assert (
        f"going on from {folder}/checkpoints/ckpt-{stopped['step']}\n"
        in (tmp_path / "worker-0.log").read_text()
    )
    assert state(folder)["weights_sha256"] == state(two_replicas)["weights_sha256"]
    assert state(folder)["metrics"] == state(two_replicas)["metrics"]
    for attempt in (0, 1):
        ours, others = (
            (folder / f"telemetry-{attempt}-{rank}.jsonl").read_text().count('"kind": "step"')
            for rank in (0, 1)
        )
        assert ours == others > 0
    assert telemetry(folder, 1, "end")[0]["status"] == "completed"


def test_gpus_that_one_worker_cannot_see_end_both_with_the_reason(tmp_path: Path) -> None:
    """Found before TensorFlow connects the two."""
    words = ("--model-dir", tmp_path / "run", "--peer-timeout", "60")
    workers = start_workers(*words, cwd=tmp_path, of_rank={1: {"SLURM_JOB_GPUS": "4,5"}})
    assert end_of(workers) == [1, 1]
    reason = "worker 1 on 127.0.0.1: this job was given 2 GPU(s) (SLURM_JOB_GPUS=4,5) but TensorFlow"
    assert f"tfjob-train: {reason}" in (tmp_path / "worker-1.log").read_text()
    assert f"tfjob-train: {reason}" in (tmp_path / "worker-0.log").read_text()
    now = state(tmp_path / "run")
    assert now["status"] == "failed"
    assert now["message"].startswith(reason)
    assert not (tmp_path / "run" / "lock.json").exists()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGUSR1, "stopped"), (signal.SIGTERM, "failed")])
def test_a_signal_while_waiting_for_a_worker(tmp_path: Path, number: signal.Signals, status: str) -> None:
    """TERM is how srun ends a task when another one has failed: the job must not be requeued for that."""
    workers = start_workers(*SHORT, "--model-dir", tmp_path / "run", cwd=tmp_path)
    workers[1].kill()
    wait_for(tmp_path / "worker-0.log", "run folder", workers)
    workers[0].send_signal(number)
    end_of(workers)
    now = state(tmp_path / "run")
    assert (now["status"], now["step"]) == (status, 0)
    assert now["message"] == f"{number.name} while waiting for worker 1 on 127.0.0.1"
    assert not (tmp_path / "run" / "lock.json").exists()
