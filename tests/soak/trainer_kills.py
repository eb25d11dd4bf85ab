"""The trainer killed at random moments, by a seed, and always ending with the same weights."""

from __future__ import annotations

import random
import signal
import subprocess
from pathlib import Path

from tests.trainer.running import SHORT, command, environment, run, state


def run_kills(folder: Path, seed: int, kills: int) -> str:
    """Kill so many runs at random moments, then let one end; gives the hash of its weights.

    The moments lie anywhere: in the import, between two steps, in the writing of a checkpoint.
    """
    rng = random.Random(seed)
    arguments = (*SHORT, "--model-dir", folder / "run")
    for _ in range(kills):
        with subprocess.Popen(
            command(*arguments),
            cwd=folder,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process:
            try:
                process.wait(rng.uniform(1.0, 9.0))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
    done = run(*arguments, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert state(folder / "run")["status"] == "completed"
    weights: str = state(folder / "run")["weights_sha256"]
    return weights
