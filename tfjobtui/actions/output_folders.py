"""The folders of a job's output files: Slurm up to 22.05 fails a job whose folder is not there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from tfjobtui.directives import Option
from tfjobtui.paths import is_folder

_KNOWN = re.compile(r"%([ux%])")


def make_output_folders(
    options: Iterable[Option], work_dir: str, user: str, job_name: str
) -> tuple[str, ...]:
    """Make the folders of `--output` and `--error` where they are missing.

    `options` are those that count, the script's before the command line's. Gives sentences about what was
    made, and about what could not be.
    """
    if not is_folder(work_dir):
        return ()  # sbatch will say so; making it again would hide that it is gone
    chosen = {option.name: option.value or "" for option in options}
    base = os.path.join(work_dir, chosen.get("chdir", ""))  # noqa: PTH118 - patterns are no paths yet
    notes = []
    for name in dict.fromkeys(chosen.get(key, "") for key in ("output", "error")):
        folder = os.path.dirname(os.path.join(base, name)) if name else ""  # noqa: PTH118, PTH120
        note = _make(folder, user, job_name) if folder else ""
        if note:
            notes.append(note)
    return tuple(notes)


def _make(pattern: str, user: str, job_name: str) -> str:
    """Make one folder; a sentence if there is something to tell."""
    folder = (
        pattern if "\\" in pattern else _KNOWN.sub(lambda found: _value(found[1], user, job_name), pattern)
    )
    if is_folder(folder):
        return ""
    if "%" in _KNOWN.sub("", pattern) and "\\" not in pattern:
        return (
            f"The folder {folder} of its output has parts that are known only when it runs; "
            "Slurm up to 22.05 fails the job if it is not there."
        )
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return f"The folder {folder} of its output cannot be made: {error.strerror}."
    return f"Made the folder {folder} for its output."


def _value(letter: str, user: str, job_name: str) -> str:
    return {"u": user, "x": job_name, "%": "%"}[letter]
