"""Runs the program as its users do: in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Answer:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def environment(**more: str) -> dict[str, str]:
    """This process' environment, with the program to be found whatever the folder is."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "TFJOBTUI_SITE_CONFIG": "/nonexistent/config.toml", **more}


def tfjobtui(
    *words: str, cwd: Path | None = None, stdin: str = "", timeout_s: float = 60, **env: str
) -> Answer:
    """Run a command to its end; standard input is no terminal."""
    done = subprocess.run(
        [sys.executable, "-m", "tfjobtui", *words],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        cwd=cwd,
        env=environment(**env),
        check=False,
    )
    return Answer(done.returncode, done.stdout, done.stderr)
