"""Starting the scheduler's own processes: shepherds and the waiter."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import tfjobtui
from tfjobtui.process import detached
from tfjobtui.schedulers.local import logout
from tfjobtui.schedulers.local.place import FOLDER_VARIABLE, TOKEN_VARIABLE, Place

ROOT = str(Path(tfjobtui.__file__).parents[1])
"""The folder that the package lies in."""
_DROPPED = ("SLURM_", "SBATCH_", "SRUN_", "TFJOBTUI_LOCAL_", "PYTHON")


def start(module: str, place: Place, *words: str, token: str, log: Path) -> None:
    """Start a module of this package as a process of its own that outlives whoever starts it.

    `token` marks it in its environment: what ends a job's processes sees by it that they are not the job's.

    Raises:
        CommandNotFoundError: it could not be started.
    """
    argv = (sys.executable, "-P", "-m", f"tfjobtui.schedulers.local.{module}", str(place.folder), *words)
    detached((*logout.launcher(), *argv), env=_environment(place, token), log=str(log))


def _environment(place: Place, token: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_DROPPED)}
    inside_a_job = TOKEN_VARIABLE in os.environ
    path = [ROOT] if inside_a_job else [ROOT, *filter(None, [os.environ.get("PYTHONPATH")])]
    return kept | {
        "PYTHONPATH": os.pathsep.join(path),
        FOLDER_VARIABLE: str(place.folder),
        TOKEN_VARIABLE: token,
    }
