"""`state.json`: how a run stands. The batch script decides from this file alone, not from exit codes.

One key per line, so that a shell can read it with sed:

    version   1
    status    running | stopped | completed | failed
              running is also what a killed run leaves; stopped: asked by a signal, saved, to be started again
    step      steps done, over all attempts
    epoch     epochs done
    job_id    Slurm's job id ("12", "12_3" for an array task), null outside Slurm
    restart   SLURM_RESTART_COUNT of the job that wrote this
    attempt   how often training was started in this folder, from 0
    time      seconds since 1970
    message   why, in words; null where there is nothing to say

A completed run also has `metrics` (final figures by name) and `weights_sha256` (of all weights, to compare
two runs). Readers ignore keys that they don't know.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfjob_trainer.errors import UsageError
from tfjob_trainer.files import replace_atomically
from tfjob_trainer.telemetry import plain

VERSION = 1
FILE_NAME = "state.json"
STATUSES = ("running", "stopped", "completed", "failed")


@dataclass(frozen=True, slots=True)
class State:
    """How a run stood when the file was written."""

    status: str
    step: int
    epoch: int
    job_id: str | None
    restart: int
    attempt: int
    time: float
    message: str | None = None
    metrics: dict[str, float] | None = None
    weights_sha256: str | None = None


def write(folder: Path, state: State) -> None:
    """Replace the state file in `folder`."""
    values = {"version": VERSION, **{name: getattr(state, name) for name in State.__slots__}}
    present = {key: value for key, value in values.items() if key not in _ONLY_WHEN_SET or value is not None}
    lines = (
        f" {json.dumps(key)}: {json.dumps(plain(value), allow_nan=False)}" for key, value in present.items()
    )
    replace_atomically(folder / FILE_NAME, "{\n" + ",\n".join(lines) + "\n}\n")


_ONLY_WHEN_SET = ("metrics", "weights_sha256")


def read(folder: Path) -> State | None:
    """The state in `folder`, None where no run has started there yet."""
    path = folder / FILE_NAME
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        values: dict[str, Any] = json.loads(text)
        version = values["version"]
        known = {name: values[name] for name in State.__slots__ if name in values}
        state = State(**known)
    except (ValueError, TypeError, KeyError) as error:
        raise UsageError(f"{path} is not a state file of tfjob-train ({error}); use another folder") from None
    if version != VERSION:
        raise UsageError(f"{path} has version {version}, this trainer knows version {VERSION}")
    return state
