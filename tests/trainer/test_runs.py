"""Whole runs of the trainer on CPUs."""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trainer.running import (
    LIMIT_S,
    SHORT,
    TRAINER,
    TREE,
    break_off,
    command,
    environment,
    events,
    run,
    state,
    telemetry,
)
from tfjob_trainer import job
from tfjob_trainer.lock import RunLock
from tfjobtui.runs.telemetry import read_lines, read_run, read_status

pytestmark = [pytest.mark.trainer, pytest.mark.usefixtures("_tensorflow")]


def test_a_run_tells_where_it_is_and_how_it_ended(finished: tuple[Path, str]) -> None:
    folder, log = finished
    lines = log.splitlines()
    assert lines[0] == f"tfjob-train: run folder {folder}"
    told = r"completed: 4 epochs, 92 steps, val_accuracy 0\.\d{3} in \d+\.\d s"
    assert re.fullmatch(rf"tfjob-train: {told}; run folder {folder}", lines[-1])
    assert sum(line.startswith("step ") and "samples/s" in line for line in lines) == 19  # 5, 10, … 90, 92
    assert sum("epoch done" in line for line in lines) == 4
    assert all(line.startswith(("step ", "tfjob-train: ")) for line in lines)


def test_a_run_learns(finished: tuple[Path, str]) -> None:
    folder, _ = finished
    now = state(folder)
    assert now["status"] == "completed"
    assert (now["step"], now["epoch"], now["attempt"]) == (92, 4, 0)
    assert now["metrics"]["val_accuracy"] > 0.9
    assert len(now["weights_sha256"]) == 64
    assert (folder / "model.keras").stat().st_size > 100_000
    assert sorted(path.name for path in (folder / "checkpoints").glob("*.index")) == [
        "ckpt-80.index",
        "ckpt-90.index",
        "ckpt-92.index",
    ]


def test_telemetry_is_whole(finished: tuple[Path, str]) -> None:
    folder, _ = finished
    (start,) = telemetry(folder, 0, "start")
    assert (start["version"], start["attempt"], start["step"]) == (1, 0, 0)
    steps = telemetry(folder, 0, "step")
    assert [line["step"] for line in steps] == [*range(5, 95, 5), 92]
    assert all(line["samples_per_s"] > 0 and 0 <= line["data_wait_s"] < 60 for line in steps)
    epochs = telemetry(folder, 0, "epoch")
    assert [line["epoch"] for line in epochs] == [1, 2, 3, 4]
    assert epochs[-1]["val_accuracy"] == state(folder)["metrics"]["val_accuracy"]
    assert [line["status"] for line in telemetry(folder, 0, "end")] == ["completed"]
    about = json.loads((folder / "run.json").read_text())
    assert about["settings"]["precision"] == "float32"
    assert (about["total_steps"], about["folder"]) == (92, str(folder))


def test_the_program_reads_what_the_trainer_wrote(finished: tuple[Path, str]) -> None:
    folder, _ = finished
    about, status = read_run(folder), read_status(folder)
    assert about
    assert status
    assert (about.total_steps, about.steps_per_epoch, about.data_name) == (92, 23, "digits")
    assert (status.status, status.step, status.total_steps, status.epoch) == ("completed", 92, 92, 4)
    assert status.val_accuracy == state(folder)["metrics"]["val_accuracy"]
    assert status.checkpoint_step == 92
    assert status.best
    assert (status.best.name, status.best.value) == ("val_accuracy", status.val_accuracy)
    lines, offset = read_lines(folder / "telemetry-0-0.jsonl")
    assert offset == (folder / "telemetry-0-0.jsonl").stat().st_size
    assert [line.step for line in lines if line.kind == "step"] == [*range(5, 95, 5), 92]
    assert {line.kind for line in lines} == {"start", "step", "epoch", "best", "checkpoint", "end"}


def test_epoch_losses_are_the_means_of_the_steps(finished: tuple[Path, str]) -> None:
    """Log intervals and epochs are summed up apart; over the whole run they have to agree."""
    folder, _ = finished
    steps, epochs = telemetry(folder, 0, "step"), telemetry(folder, 0, "epoch")
    lengths = [5] * 18 + [2]
    by_steps = sum(line["loss"] * length for line, length in zip(steps, lengths, strict=True)) / 92
    by_epochs = sum(line["loss"] for line in epochs) / 4
    assert by_steps == pytest.approx(by_epochs, rel=1e-6)


def test_tensorboard_has_the_scalars(finished: tuple[Path, str]) -> None:
    folder, _ = finished
    train = list(events(folder / "tensorboard" / "train"))
    held = list(events(folder / "tensorboard" / "validation"))
    for tag in (b"epoch_loss", b"epoch_accuracy", b"epoch_learning_rate"):
        assert sum(tag in record for record in train) == 4, tag
    for tag in (b"batch_loss", b"batch_accuracy", b"batch_samples_per_s"):
        assert sum(tag in record for record in train) == 19, tag
    for tag in (b"epoch_loss", b"epoch_accuracy"):
        assert sum(tag in record for record in held) == 4, tag


def test_a_completed_run_is_not_trained_again(finished: tuple[Path, str], tmp_path: Path) -> None:
    folder, _ = finished
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    done = run(*SHORT, "--model-dir", folder, cwd=tmp_path)
    assert done.returncode == 0
    assert "completed already: 4 epochs, 92 steps" in done.stdout
    assert "step 5/" not in done.stdout
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_more_epochs_go_on_from_the_last_good_checkpoint(finished: tuple[Path, str], tmp_path: Path) -> None:
    """The newest is damaged, litter lies about, and the best value so far stands."""
    folder = Path(shutil.copytree(finished[0], tmp_path / "run"))
    newest = folder / "checkpoints" / "ckpt-92.data-00000-of-00001"
    newest.write_bytes(newest.read_bytes()[:100_000] + b"?" * 1000 + newest.read_bytes()[101_000:])
    litter = folder / "checkpoints" / "ckpt-95_temp"
    litter.mkdir()
    (litter / "part-00000").touch()
    (folder / "checkpoints" / "ckpt-96.data-00000-of-00001").touch()
    done = run(*SHORT, "--epochs", "5", "--learning-rate", "1e-9", "--model-dir", folder, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"ckpt-92 is damaged \(.*[Cc]hecksum.*\); taking the one before it", done.stderr)
    assert f"going on from {folder}/checkpoints/ckpt-90\n" in done.stdout
    assert "step 95/115" in done.stdout
    assert "step 90/" not in done.stdout
    assert (state(folder)["step"], state(folder)["attempt"]) == (115, 1)
    assert sorted(path.name for path in (folder / "checkpoints").glob("*.index")) == [
        "ckpt-100.index",
        "ckpt-110.index",
        "ckpt-115.index",
    ]
    assert not litter.exists()
    assert not (folder / "checkpoints" / "ckpt-96.data-00000-of-00001").exists()
    # Epoch 4 ends once more, better than what stood in the checkpoint; epoch 5 learns next to nothing.
    assert [line["epoch"] for line in telemetry(folder, 1, "best")] == [4]


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    held = RunLock(folder, job.from_environment({"SLURM_JOB_ID": "7"}))
    held.take()
    done = run(*SHORT, "--model-dir", folder, cwd=tmp_path)
    held.release()
    assert done.returncode == 2
    assert f"the run folder {folder} is in use by job 7, process {os.getpid()} on" in done.stderr
    assert not (folder / "state.json").exists()


def test_a_full_disk_costs_checkpoints_but_not_the_run(tmp_path: Path) -> None:
    """A limit on the size of files stands for the full disk; it is lifted when the trainer has said so."""
    folder = tmp_path / "run"
    limit = 200_000  # a checkpoint has 1.1 MB, a model 0.4 MB
    words = (
        "--device",
        "cpu",
        "--epochs",
        "12",
        "--log-steps",
        "5",
        "--checkpoint-steps",
        "10",
        "--model-dir",
        folder,
    )
    with subprocess.Popen(
        command(*words),
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout
        seen = []
        for line in process.stdout:
            seen.append(line)
            if line.startswith("step 15/"):
                resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            if "cannot save a checkpoint" in line:
                resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        assert process.wait(LIMIT_S) == 0, "".join(seen)
    log = "".join(seen)
    assert re.search(
        r"cannot save a checkpoint in .*; the one of step \d+ is kept\. Make room.*; training goes on", log
    )
    assert "completed: 12 epochs, 276 steps" in log
    assert telemetry(folder, 0, "checkpoint_failed")
    assert not list((folder / "checkpoints").glob("*temp*"))


def test_kill_and_stop_end_with_the_undisturbed_weights(finished: tuple[Path, str], tmp_path: Path) -> None:
    """Killed in epoch 2, stopped by a signal in epoch 3, and the same model in the end."""
    folder, arguments = tmp_path / "run", (*SHORT, "--model-dir", tmp_path / "run")
    code, _ = break_off(signal.SIGKILL, "step 35/", *arguments, cwd=tmp_path)
    assert code == -signal.SIGKILL
    assert state(folder)["status"] == "running"

    code, log = break_off(signal.SIGTERM, "step 60/", *arguments, cwd=tmp_path)
    assert code == 0
    assert re.search(r"going on from \S+/ckpt-(30|40)\n", log)
    stopped = state(folder)
    assert (stopped["status"], stopped["attempt"]) == ("stopped", 1)
    assert 60 <= stopped["step"] < 92
    assert f"stopped: SIGTERM at step {stopped['step']} of 92, saved" in log

    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"going on from {folder}/checkpoints/ckpt-{stopped['step']}\n" in done.stdout
    assert state(folder)["weights_sha256"] == state(finished[0])["weights_sha256"]
    assert state(folder)["metrics"] == state(finished[0])["metrics"]
    ours = {line["epoch"]: line for attempt in range(3) for line in telemetry(folder, attempt, "epoch")}
    for line in telemetry(finished[0], 0, "epoch"):
        assert ours[line["epoch"]]["loss"] == line["loss"]


def test_a_signal_during_the_start_is_not_lost(tmp_path: Path) -> None:
    """It comes while TensorFlow is imported; its default action would end the job as failed."""
    arguments = (*SHORT, "--model-dir", tmp_path / "run")
    code, log = break_off(signal.SIGUSR1, "tfjob-train: run folder", *arguments, cwd=tmp_path)
    assert code == 0
    assert "stopped: SIGUSR1 at step 0 of 92, saved" in log
    assert (state(tmp_path / "run")["status"], state(tmp_path / "run")["step"]) == ("stopped", 0)


def test_two_replicas(two_replicas: Path) -> None:
    assert state(two_replicas)["metrics"]["val_accuracy"] > 0.9


def test_a_users_own_modules_are_not_picked_up(tmp_path: Path) -> None:
    for path in TRAINER.glob("*.py"):
        if not path.name.startswith("__"):
            (tmp_path / path.name).write_text(f"raise SystemExit('hostile {path.name}')\n")
    (tmp_path / "trainer.py").write_text("raise SystemExit('hostile trainer.py')\n")
    hostile = environment(PYTHONPATH=str(tmp_path))
    done = run("--device", "cpu", "--epochs", "1", "--model-dir", "run", cwd=tmp_path, env=hostile)
    assert done.returncode == 0, done.stderr
    assert "completed: 1 epochs, 23 steps" in done.stdout

    installed = environment(PYTHONPATH=f"{tmp_path}:{TREE / 'trainer'}")
    checked = subprocess.run(
        [sys.executable, "-m", "tfjob_trainer", "--check"],
        cwd=tmp_path,
        env=installed,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize(
    ("arguments", "variables", "code", "message"),
    [
        (("--device", "auto"), {"SLURM_JOB_GPUS": "4,5"}, 1, "given 2 GPU(s) (SLURM_JOB_GPUS=4,5)"),
        (("--device", "cpu", "--replicas", "2", "--batch-size", "63"), {}, 2, "the nearest that can: 64"),
        (("--device", "cpu", "--batch-size", "1501"), {}, 2, "more than all 1500 examples"),
    ],
)
def test_what_cannot_be_trained(
    tmp_path: Path, arguments: tuple[str, ...], variables: dict[str, str], code: int, message: str
) -> None:
    done = run(*arguments, "--model-dir", tmp_path / "run", cwd=tmp_path, env=environment(**variables))
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert state(tmp_path / "run")["status"] == "failed"
    assert message in state(tmp_path / "run")["message"]


def test_other_settings_are_refused(finished: tuple[Path, str], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(finished[0], tmp_path / "run"))
    done = run(*SHORT, "--epochs", "5", "--batch-size", "32", "--model-dir", folder, cwd=tmp_path)
    assert done.returncode == 2
    assert "begun with --batch-size 64, not 32" in done.stderr


def test_overflow_in_one_replica_costs_one_step(tmp_path: Path) -> None:
    """float16: Keras alone would make the weights of both replicas infinite for good."""
    script = """
import keras, tensorflow as tf
from tfjob_trainer import precision
from tfjob_trainer.devices import open_devices
strategy = open_devices("cpu", 2, {}).strategy
with strategy.scope():
    weight = keras.Variable([1.0, 2.0])
    optimizer = precision.wrap_optimizer(keras.optimizers.SGD(0.1), "mixed_float16")
    optimizer.build([weight])
@tf.function
def step(bad):
    def on_replica():
        second = tf.equal(tf.distribute.get_replica_context().replica_id_in_sync_group, 1)
        with tf.GradientTape() as tape:
            factor = tf.where(tf.logical_and(bad, second), float("inf"), 1.0)
            loss = precision.scale_loss(optimizer, tf.reduce_sum(weight.value) * factor, "mixed_float16")
        gradients = precision.agree_on_overflow(tape.gradient(loss, [weight.value]))
        optimizer.apply_gradients([(gradients[0], weight)])
    strategy.run(on_replica)
before = float(optimizer.dynamic_scale.numpy())
for bad in (False, True, False):
    step(tf.constant(bad))
print([round(float(value), 3) for value in weight.numpy()], float(optimizer.dynamic_scale.numpy()) / before)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=environment(PYTHONPATH=str(TREE / "trainer")),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.stdout == "[0.6, 1.6] 0.5\n", done.stderr
