"""The program, as it is installed, in a pseudo terminal on the test cluster."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.client import Cluster
from tests.terminal import Terminal


@pytest.fixture
def empty_queue(cluster: Cluster, slurm_env: dict[str, str]) -> Iterator[None]:
    """No job of the user's runs or waits, before and after."""
    subprocess.run(["scancel", f"--user={os.getuid()}"], check=True)
    yield
    subprocess.run(["scancel", f"--user={os.getuid()}"], check=False)


@pytest.fixture
def work_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the user stands."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def program(
    cluster: Cluster, slurm_env: dict[str, str], empty_queue: None, work_dir: Path
) -> Iterator[Callable[..., Terminal]]:
    """Start the program in a terminal; all that were started end with the test."""
    running: list[Terminal] = []

    def start(
        *argv: str, columns: int = 120, rows: int = 36, through: tuple[str, ...] = (), **env: str
    ) -> Terminal:
        surroundings = {**os.environ, **slurm_env, "LANG": "C.UTF-8", "COLORTERM": "truecolor", **env}
        surroundings.pop("TMUX", None)
        terminal = Terminal(
            [*through, "tfjobtui", *argv], surroundings, columns=columns, rows=rows, cwd=str(work_dir)
        )
        running.append(terminal)
        return terminal

    yield start
    for terminal in running:
        terminal.close()


def confirm(terminal: Terminal, pattern: str) -> None:
    """Wait for a dialog and say yes, slowly enough for it not to be taken for pasted text."""
    terminal.wait_for(pattern)
    for _ in range(20):
        terminal.pump(0.5)
        terminal.press("y")
        terminal.pump(0.5)
        if re.search(pattern, terminal.text) is None:
            return
    raise AssertionError(f"the dialog stays:\n{terminal.text}")


def submit(*argv: str) -> str:
    """`sbatch` with these arguments; gives the job's id."""
    done = subprocess.run(["sbatch", "--parsable", *argv], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def state_of(job_id: str) -> str:
    """The job's state, as squeue tells."""
    done = subprocess.run(
        ["squeue", "-h", "-t", "all", "-j", job_id, "-o", "%T"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip()
