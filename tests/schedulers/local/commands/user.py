"""A user with a shell, who has the commands on the PATH."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tests.schedulers.local.queue import clean_up
from tfjobtui.schedulers.local import commands
from tfjobtui.schedulers.local.place import FOLDER_VARIABLE, Place
from tfjobtui.schedulers.local.settings import LocalSettings
from tfjobtui.schedulers.local.store import Store

PATIENCE_S = 60.0
KILL_WAIT_S = 2.0
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Said:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


class User:
    """Commands in a folder of its own, on a queue of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "home of the user"
        self.folder.mkdir()
        self.place = Place(folder / "queue")
        store = Store(self.place)
        store.set_meta("settings", LocalSettings(kill_wait_s=KILL_WAIT_S).to_json())
        store.close()
        commands.install(self.place)
        self.environment = {
            "PATH": f"{self.place.bin}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            FOLDER_VARIABLE: str(self.place.folder),
        }
        self._scripts = 0

    def run(
        self,
        *argv: str,
        text: str = "",
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> Said:
        """Run a command to its end."""
        done = subprocess.run(
            argv,
            input=text.encode(),
            capture_output=True,
            cwd=folder or self.folder,
            env={**self.environment, **(environment or {})},
            timeout=PATIENCE_S,
            check=False,
        )
        return Said(done.returncode, done.stdout.decode(), done.stderr.decode())

    def ok(self, *argv: str, text: str = "", environment: Mapping[str, str] | None = None) -> str:
        """What a command says that must go well, without the last line's end."""
        said = self.run(*argv, text=text, environment=environment)
        assert (said.code, said.err) == (0, ""), said
        return said.out.rstrip("\n")

    def script(self, body: str, head: str = "") -> Path:
        """A batch script of these lines."""
        self._scripts += 1
        path = self.folder / f"script{self._scripts}.sh"
        path.write_text(f"#!/bin/bash\n{head}\n{body}\n")
        return path

    def submit(self, body: str, *options: str) -> str:
        """Submit a script of these lines; its id."""
        return self.ok("sbatch", "--parsable", *options, str(self.script(body)))

    def batch(self, body: str, *options: str, environment: Mapping[str, str] | None = None) -> str:
        """What a job of these lines has written, once it has ended."""
        log = self.folder / "batch.log"
        self.run(
            "sbatch",
            "--wait",
            f"--output={log}",
            *options,
            str(self.script(body)),
            environment=environment,
        )
        return log.read_text()

    def until(self, look: Callable[[], Value], holds: Callable[[Value], bool]) -> Value:
        """What is seen once a condition holds for it."""
        end = time.monotonic() + PATIENCE_S
        while not holds(value := look()):
            assert time.monotonic() < end, value
            time.sleep(0.05)
        return value

    def state(self, job: str) -> str:
        """A job's state, by sacct."""
        return self.ok("sacct", "-n", "-X", "-P", "-o", "state", "-j", job)

    def until_state(self, job: str, *states: str) -> str:
        return self.until(lambda: self.state(job), lambda state: state.split(" ")[0] in states)

    def close(self) -> None:
        clean_up(self.place)


PYTHON = sys.executable
