"""What a run leaves for programs to read, and the only place where the format is written down.

All files lie in the run folder. Each holds `"version": 1`; a reader ignores keys that it does not know, and
refuses a higher version. Times are seconds since 1970 (float), durations end in `_s`. JSON has no NaN and
no infinities: such a figure is the string "NaN", "Infinity" or "-Infinity". A figure that is not known is
absent or null, never 0.

`run.json`, replaced atomically at the start of each attempt: what runs, where, with what
    version, created (of the first attempt), started (of this one), attempt (from 0), rank
    job: {job_id, name, restart, cluster, nodes, partition}   null where unknown or outside Slurm
    host, hosts (of all processes, by rank), pid, user, command (list), folder_at_start, python, tensorflow, keras
    settings: the options in force, chosen values filled in (recipe, model, data_dir, epochs, steps, batch_size
        (examples per step over all replicas), accumulate, optimizer, learning_rate (the highest), schedule, seed,
        device, replicas (in all), workers, precision, log_steps, checkpoint_steps, checkpoint_minutes, …)
    data: {name, training_examples, validation_examples, classes}
    model: {name, parameters}
    steps_per_epoch, total_steps, folder, checkpoints, tensorboard   (absolute paths)

`status.json`, replaced atomically at log intervals (at most once a second) and at each change: the latest of
everything, from the process of rank 0
    version, time, attempt, rank, status (as in state.json), host, pid, step, total_steps, epoch (epochs
    begun, from 1), epochs, and the latest known of: loss, accuracy, samples_per_s, data_wait_s,
    learning_rate, val_loss, val_accuracy, val_top5_accuracy, eta_s (seconds to the last step at the latest
    speed), checkpoint_step (of the last good one), best: {name, value, epoch}, usage (as below)

`telemetry-<attempt>-<rank>.jsonl`, appended to, one JSON object per line; the last line may be unfinished
    every line: version, kind, time, step (steps done, over all attempts)
    kind "start"       attempt, rank, restart, job_id, host, pid
    kind "step"        epoch, loss, accuracy (means since the line before, over all replicas), samples_per_s (in
                       all), data_wait_s (time that this process waited for input since the line before),
                       learning_rate
    kind "epoch"       epoch, loss, accuracy (means of the whole epoch, before a stop too), learning_rate, and
                       where there was a validation val_loss, val_accuracy, val_top5_accuracy (many classes)
    kind "usage"       what this process and its GPUs consume, every 10 s: see `usage`
    kind "best"        epoch, name, value: best.keras was replaced
    kind "checkpoint"  path, duration_s (what saving took)
    kind "checkpoint_failed"   message
    kind "end"         status, message

Each process has its own file; "best" and "epoch" of other ranks than 0 say nothing more than its.
After a kill the steps since the last checkpoint are done again: of two lines for one step, the one from the
later attempt counts.
"""

import getpass
import json
import math
import os
import socket
import threading
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
WRITE_EVERY_S = 1.0


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
    """The writer of one attempt's files. A disk that fails costs figures, never the training.

    Lines that may come `soon` are kept in memory for at most WRITE_EVERY_S and written together. May be used from
    several threads.
    """

    def __init__(self, folder: Path, attempt: int, rank: int = 0) -> None:
        self.folder = folder
        self.attempt = attempt
        self.rank = rank
        self._lock = threading.RLock()
        self._lines: list[str] = []
        self._status: dict[str, Any] = {
            "version": VERSION,
            "attempt": attempt,
            "rank": rank,
            "host": socket.gethostname(),
            "pid": os.getpid(),
        }
        self._status_is_new = False
        self._written_at = 0.0
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

    def event(self, kind: str, step: int, *, soon: bool = False, **values: Any) -> None:
        """Add one line; written at once unless it may come `soon`."""
        record = {"version": VERSION, "kind": kind, "time": time.time(), "step": step, **values}
        line = json.dumps(plain(record), allow_nan=False) + "\n"
        with self._lock:
            self._lines.append(line)
        self.flush(due_only=soon)

    def status(self, *, soon: bool = False, **values: Any) -> None:
        """Renew status.json: what is given now over what was known before. Rank 0 only."""
        if self.rank:
            return
        with self._lock:
            self._status |= {"time": time.time(), **values}
            self._status_is_new = True
        self.flush(due_only=soon)

    def flush(self, *, due_only: bool = False) -> None:
        """Write what is in memory; with `due_only` unless that was done a moment ago."""
        with self._lock:
            if due_only and time.monotonic() - self._written_at < WRITE_EVERY_S:
                return
            self._written_at = time.monotonic()
            if self._lines:
                # One write, so that a reader never sees two lines mixed.
                self._safely(os.write, self._descriptor, "".join(self._lines).encode())
                self._lines.clear()
            if self._status_is_new:
                text = json.dumps(plain(self._status), indent=1, allow_nan=False) + "\n"
                self._safely(partial(replace_atomically, durable=False), self.folder / STATUS_FILE, text)
                self._status_is_new = False

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
