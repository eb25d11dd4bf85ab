"""The trainer killed at random moments, by a seed, and always ending with the same weights."""

from __future__ import annotations

import contextlib
import random
import re
import subprocess
import time
from pathlib import Path

from tests.trainer.running import LIMIT_S, SHORT, end_of, environment, start_workers, state
from tests.trainer.running import command as trainer

# How many processes train, and with which options besides.
SETUPS: dict[str, tuple[int, tuple[str, ...]]] = {
    "one device": (1, ()),
    "two replicas": (1, ("--replicas", "2")),
    "two workers": (2, ()),
}
STEPS = 92


def run_kills(folder: Path, seed: int, kills: int, setup: str = "one device") -> str:
    """Kill so many runs at random moments, then let one end; gives the hash of its weights.

    The moments lie anywhere: in the start, between two steps, in the writing of a checkpoint. Of several
    processes one is killed; the others have to end by themselves.
    """
    rng = random.Random(seed)
    for _ in range(kills):
        processes = _start(folder, setup)
        victim = rng.choice(processes)
        moment = rng.randrange(0, STEPS, 5)
        _wait_for_step(folder / "worker-0.log", moment, victim)
        with contextlib.suppress(subprocess.TimeoutExpired):
            victim.wait(rng.uniform(0.0, 0.3 if moment else 5.0))
        victim.kill()
        end_of(processes)
    processes = _start(folder, setup)
    codes = end_of(processes)
    log = "".join(path.read_text() for path in sorted(folder.glob("worker-*.log")))
    assert codes == [0] * len(processes), log
    assert state(folder / "run")["status"] == "completed"
    weights: str = state(folder / "run")["weights_sha256"]
    return weights


def _wait_for_step(log: Path, step: int, victim: subprocess.Popen[str]) -> None:
    """Wait until the log tells of that step, or of a later one, or the end."""
    deadline = time.monotonic() + LIMIT_S
    while victim.poll() is None and time.monotonic() < deadline:
        if max(map(int, re.findall(r"^step (\d+)/", log.read_text(), re.MULTILINE)), default=0) >= step:
            return
        time.sleep(0.01)


def _start(folder: Path, setup: str) -> list[subprocess.Popen[str]]:
    count, more = SETUPS[setup]
    arguments = (*SHORT, *more, "--model-dir", folder / "run")
    if count > 1:
        return start_workers(*arguments, "--peer-timeout", "30", cwd=folder, count=count)
    with (folder / "worker-0.log").open("w") as log:
        return [
            subprocess.Popen(
                trainer(*arguments),
                cwd=folder,
                env=environment(),
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
            )
        ]
