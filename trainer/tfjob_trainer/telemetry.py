"""What a run leaves for programs to read, and the only place where the format is written down.

All files lie in the run folder. Each holds `"version": 1`; a reader ignores keys that it does not know, and
refuses a higher version. Times are seconds since 1970 (float), durations end in `_s`. JSON has no NaN and
no infinities: such a figure is the string "NaN", "Infinity" or "-Infinity". A figure that is not known is
absent or null, never 0.

`run.json`, replaced atomically at the start of each attempt: what runs, where, with what
    version, created (of the first attempt), started (of this one), attempt (from 0), rank
    job: {job_id, name, restart, cluster, nodes, partition}   null where unknown or outside Slurm
    host, pid, user, command (list), folder_at_start, python, tensorflow, keras
    settings: the options in force, chosen values filled in (model, epochs, batch_size, learning_rate, seed,
        device, replicas, precision, log_steps, checkpoint_steps, checkpoint_minutes)
    data: {name, training_examples, validation_examples}
    steps_per_epoch, total_steps, folder, checkpoints, tensorboard   (absolute paths)

`status.json`, replaced atomically at each log interval and at each change: the latest of everything
    version, time, attempt, rank, status (as in state.json), host, pid, step, total_steps, epoch (epochs
    begun, from 1), epochs, and the latest known of: loss, accuracy, samples_per_s, data_wait_s,
    learning_rate, val_loss, val_accuracy, eta_s (seconds to the last step at the latest speed)

`telemetry-<attempt>-<rank>.jsonl`, appended to, one JSON object per line; the last line may be unfinished
    every line: version, kind, time, step (steps done, over all attempts)
    kind "start"       attempt, rank, restart, job_id, host, pid
    kind "step"        epoch, loss, accuracy (means since the line before), samples_per_s, data_wait_s
                       (time spent waiting for input since the line before), learning_rate
    kind "epoch"       epoch, loss, accuracy (means of the whole epoch, before a stop too), val_loss,
                       val_accuracy
    kind "checkpoint"  path, duration_s (what saving took)
    kind "end"         status, message

After a kill the steps since the last checkpoint are done again: of two lines for one step, the one from the
later attempt counts.
"""

import getpass
import json
import math
import os
import socket
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tfjob_trainer.files import replace_atomically
from tfjob_trainer.log import complain

VERSION = 1
RUN_FILE = "run.json"
STATUS_FILE = "status.json"


def plain(value: Any) -> Any:
    """`value` with each float that JSON cannot hold as its name ("NaN"), and paths as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def next_attempt(folder: Path, rank: int = 0) -> int:
    """The number of the attempt that starts now: one more than the highest that left a file."""
    numbers = (path.name.split("-")[1] for path in folder.glob(f"telemetry-*-{rank}.jsonl"))
    return max((int(number) for number in numbers if number.isdecimal()), default=-1) + 1


class Telemetry:
    """The writer of one attempt's files. A disk that fails costs figures, never the training."""

    def __init__(self, folder: Path, attempt: int, rank: int = 0) -> None:
        self.folder = folder
        self.attempt = attempt
        self.rank = rank
        self._status: dict[str, Any] = {
            "version": VERSION,
            "attempt": attempt,
            "rank": rank,
            "host": socket.gethostname(),
            "pid": os.getpid(),
        }
        self._complained = False
        path = folder / f"telemetry-{attempt}-{rank}.jsonl"
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def run(self, facts: Mapping[str, Any]) -> None:
        """Replace run.json; `facts` are its keys beyond those that are known here."""
        now = time.time()
        values = {
            "version": VERSION,
            "created": read_json(self.folder / RUN_FILE).get("created", now),
            "started": now,
            "attempt": self.attempt,
            "rank": self.rank,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "user": _user(),
            **facts,
        }
        self._safely(replace_atomically, self.folder / RUN_FILE, json.dumps(plain(values), indent=1) + "\n")

    def event(self, kind: str, step: int, **values: Any) -> None:
        """Append one line, with one write, so that two lines never mix."""
        record = {"version": VERSION, "kind": kind, "time": time.time(), "step": step, **values}
        line = json.dumps(plain(record), allow_nan=False) + "\n"
        self._safely(os.write, self._descriptor, line.encode())

    def status(self, **values: Any) -> None:
        """Replace status.json: what is given now over what was known before."""
        self._status |= {"time": time.time(), **values}
        text = json.dumps(plain(self._status), indent=1, allow_nan=False) + "\n"
        self._safely(partial(replace_atomically, durable=False), self.folder / STATUS_FILE, text)

    def _safely(self, write: Any, *arguments: Any) -> None:
        try:
            write(*arguments)
        except OSError as error:
            if not self._complained:
                complain(f"cannot write telemetry in {self.folder}: {error}; training goes on without")
            self._complained = True


def read_json(path: Path) -> dict[str, Any]:
    """The object in `path`; empty where there is none or it cannot be read."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return values if isinstance(values, dict) else {}


def _user() -> str | None:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user id without a name, in a container
        return None
