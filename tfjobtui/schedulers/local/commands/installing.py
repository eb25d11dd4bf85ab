"""Writing the scripts that make the commands: one for each, in a folder of their own."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from pathlib import Path

import tfjobtui
from tfjobtui.schedulers.local.commands import NAMES
from tfjobtui.schedulers.local.place import Place

_RUNNER = "run.py"
_PROGRAM = """\
import sys

root = {root!r}
if root not in sys.path:
    # Behind Python's own modules, before what else is installed.
    places = [index for index, path in enumerate(sys.path) if path.endswith("-packages")]
    sys.path.insert(min(places, default=len(sys.path)), root)
from tfjobtui.schedulers.local.commands.__main__ import main

sys.exit(main(sys.argv[1:]))
"""
_CALL = """\
#!/bin/sh
[ -x {python} ] || {{
  echo "{name}: error: tfjobtui is not at "{python}" any more; start it once, which writes {name} anew" >&2
  exit 127
}}
exec {python} -I {runner} {name} "$@"
"""


def write_scripts(place: Place) -> None:
    """Write the scripts, where they are not there or name another Python.

    They are isolated (`-I`): what a job's own Python needs in its environment does not reach into this one, and
    is there unchanged for what srun and sbatch start.

    Raises:
        OSError: they cannot be written.
    """
    place.bin.mkdir(mode=0o700, parents=True, exist_ok=True)
    root = str(Path(tfjobtui.__file__).parents[1])
    _write(place.bin / _RUNNER, _PROGRAM.format(root=root), 0o600)
    python, runner = shlex.quote(sys.executable), shlex.quote(str(place.bin / _RUNNER))
    for name in NAMES:
        _write(place.bin / name, _CALL.format(python=python, runner=runner, name=name), 0o700)


def _write(path: Path, text: str, mode: int) -> None:
    with contextlib.suppress(OSError):
        if path.read_text() == text:
            return
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text)
    temporary.chmod(mode)
    temporary.replace(path)
