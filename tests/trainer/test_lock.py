"""One live process per run folder."""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.running import TREE, environment
from tfjob_trainer import job, lock
from tfjob_trainer.errors import TrainerError, UsageError
from tfjob_trainer.lock import RunLock

OURS = job.from_environment({})
FAST: dict[str, Any] = {"beat_s": 0.1, "stale_s": 1.0}


def leave(folder: Path, ours: job.Job = OURS, **changes: Any) -> None:
    """A lock as another process has left it."""
    other = RunLock(folder, ours)
    other._us = replace(other._us, **changes)
    assert other._create()


def test_a_live_holder_is_named_and_a_released_lock_is_free(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from tfjob_trainer import job, lock\n"
        "held = lock.RunLock(Path(sys.argv[1]), job.from_environment({'SLURM_JOB_ID': '12'})); held.take()\n"
        "print('held', flush=True); sys.stdin.readline(); held.release()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        env=environment(PYTHONPATH=str(TREE / "trainer")),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout
        assert other.stdout.readline() == "held\n"
        with pytest.raises(UsageError, match=f"in use by job 12, process {other.pid} on"):
            RunLock(tmp_path, OURS).take()
        other.communicate("\n", timeout=10)
    held = RunLock(tmp_path, OURS)
    held.take()
    held.check()
    held.release()
    assert not list(tmp_path.iterdir())


def test_a_dead_holder_is_taken_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    leave(tmp_path, pid=dead.pid, started="1")
    held = RunLock(tmp_path, OURS)
    held.take()
    assert f"left locked by process {dead.pid} on" in capsys.readouterr().out
    assert json.loads((tmp_path / "lock.json").read_text())["pid"] == os.getpid()
    held.release()


def test_a_pid_that_is_in_use_again_does_not_hold(tmp_path: Path) -> None:
    leave(tmp_path, started="1")
    held = RunLock(tmp_path, OURS)
    held.take()
    held.release()


def test_another_machine_without_a_sign_of_life(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    leave(tmp_path, boot="another", host="n7")
    began = time.monotonic()
    held = RunLock(tmp_path, OURS, **FAST)
    held.take()
    assert 0.9 < time.monotonic() - began < 10
    assert "on n7 (no sign of life for 1 s): taken over" in capsys.readouterr().out
    held.release()


def test_another_machine_with_a_sign_of_life(tmp_path: Path) -> None:
    other = RunLock(tmp_path, OURS, **FAST)
    other._us = replace(other._us, boot="another", host="n7")
    other.take()
    with pytest.raises(UsageError, match=r"in use by process .* on n7"):
        RunLock(tmp_path, OURS, beat_s=0.1, stale_s=20).take()
    other.release()


def test_an_earlier_start_of_the_same_job(tmp_path: Path) -> None:
    first = job.from_environment({"SLURM_JOB_ID": "12"})
    again = job.from_environment({"SLURM_JOB_ID": "12", "SLURM_RESTART_COUNT": "1"})
    leave(tmp_path, first, boot="another", host="n7")
    held = RunLock(tmp_path, again, stale_s=600)
    held.take()
    held.release()


def test_the_old_holder_notices_that_it_has_lost_the_folder(tmp_path: Path) -> None:
    old = RunLock(tmp_path, OURS)
    old.take()
    (tmp_path / lock.FILE_NAME).unlink()
    leave(tmp_path, host="n9")
    with pytest.raises(TrainerError, match=r"taken over by process .* on n9"):
        old.check()
    old.release()
    assert (tmp_path / lock.FILE_NAME).exists()


def test_of_two_that_find_a_stale_lock_one_gets_it(tmp_path: Path) -> None:
    leave(tmp_path, started="1")
    one, two = RunLock(tmp_path, OURS), RunLock(tmp_path, OURS)
    stale = lock._holder(tmp_path / lock.FILE_NAME)
    assert stale
    one.take()
    assert not two._remove(stale)
    one.check()
    one.release()


def test_a_file_that_is_no_lock_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / lock.FILE_NAME).write_text("")
    held = RunLock(tmp_path, OURS, **FAST)
    held.take()
    held.release()
