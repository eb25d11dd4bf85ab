"""sbatch, srun, scontrol and the like, as far as scripts use them: for jobs, and for users by `tfjobtui local`.

`install` puts a small script for each into a folder that a job's PATH begins with. What an option or a field is
not known here ends with an error, and never with something else than Slurm would print.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from pathlib import Path

import tfjobtui
from tfjobtui.schedulers.local.place import Place

NAMES = ("sbatch", "srun", "scontrol", "squeue", "scancel", "sacct", "sstat", "sinfo")
_RUNNER = "run.py"


def install(place: Place) -> None:
    """Write the scripts, where they are not there or name another Python.

    Raises:
        OSError: they cannot be written.
    """
    place.bin.mkdir(mode=0o700, parents=True, exist_ok=True)
    root = str(Path(tfjobtui.__file__).parents[1])
    _write(
        place.bin / _RUNNER,
        f"import sys\n\nsys.path.insert(0, {root!r})\n"
        "from tfjobtui.schedulers.local.commands.__main__ import main\n\nsys.exit(main(sys.argv[1:]))\n",
        0o600,
    )
    # Isolated: a job's own PYTHONPATH and environment do not reach into this Python, nor are they changed.
    call = shlex.join([sys.executable, "-I", str(place.bin / _RUNNER)])
    for name in NAMES:
        _write(place.bin / name, f'#!/bin/sh\nexec {call} {name} "$@"\n', 0o700)


def _write(path: Path, text: str, mode: int) -> None:
    with contextlib.suppress(OSError):
        if path.read_text() == text:
            return
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text)
    temporary.chmod(mode)
    temporary.replace(path)
