"""Stand-ins for Slurm's commands: shell scripts, for faults that a real cluster has rarely."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tfjobtui.schedulers.slurm.client import SlurmScheduler
from tfjobtui.schedulers.slurm.settings import COMMANDS, Commands, SlurmSettings


class StandIns:
    """A folder of commands. Each call is noted in `calls`, a line with its arguments."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls_file = folder / "calls"

    def make(self, name: str, body: str) -> Path:
        """Write the command `name`, a shell script."""
        path = self.folder / name
        head = f'#!/bin/bash\nprintf "%s\\n" "{name} $*" >> {self.calls_file}\n'
        path.write_text(head + body + "\n")
        path.chmod(0o755)
        return path

    @property
    def calls(self) -> list[str]:
        """The calls until now; each begins with the command's name."""
        text = self.calls_file.read_text() if self.calls_file.exists() else ""
        return [line for line in text.splitlines() if line.split(" ")[0] in COMMANDS]

    def scheduler(self, **settings: object) -> SlurmScheduler:
        """A client that knows only these commands."""
        paths = {name: str(self.folder / name) for name in COMMANDS if (self.folder / name).exists()}
        return SlurmScheduler(SlurmSettings(**settings), Commands(paths))  # type: ignore[arg-type]


@pytest.fixture
def standins(tmp_path: Path) -> StandIns:
    """An empty folder of stand-ins."""
    return StandIns(tmp_path)


@contextlib.asynccontextmanager
async def closing(scheduler: SlurmScheduler) -> AsyncIterator[SlurmScheduler]:
    """The client, closed at the end."""
    try:
        yield scheduler
    finally:
        await scheduler.close()


async def reached(condition: Callable[[], bool], within_s: float = 10) -> bool:
    """Whether a condition comes true within that time."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        if condition():
            return True
        await asyncio.sleep(0.02)
    return condition()


async def gone(pid: int, within_s: float = 5) -> bool:
    """Whether a process has ended within that time."""
    return await reached(lambda: not _runs(pid), within_s)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
