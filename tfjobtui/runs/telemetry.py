"""What the trainer tells of a run, in the run folder: `run.json`, `status.json`, `telemetry-<attempt>-<rank>.jsonl`.

Version 1. The first two are replaced atomically, so that a reader sees one or the other state, whole; the third
is appended to, a JSON object per line, and its last line may be unfinished. What stands in them is written down
in the trainer's own `tfjob_trainer/telemetry.py`. Unknown keys are ignored and a higher version is refused. Times
are seconds since the epoch, durations end in `_s`. A figure that JSON can't hold is the text "NaN", "Infinity" or
"-Infinity"; one that is not known is absent or null.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfjobtui.errors import FormatError

VERSION = 1
RUN_FILE = "run.json"
STATUS_FILE = "status.json"

_MAX_BYTES = 4 * 1024 * 1024
_NO_JSON_NUMBERS = ("NaN", "Infinity", "-Infinity")


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What runs: of the latest attempt. `settings` are the trainer's options in force."""

    attempt: int | None = None
    created_s: float | None = None
    started_s: float | None = None
    job_id: str | None = None
    host: str = ""
    command: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    data_name: str = ""
    steps_per_epoch: int | None = None
    total_steps: int | None = None
    folder: str = ""
    checkpoints: str = ""
    tensorboard: str = ""


@dataclass(frozen=True, slots=True)
class Best:
    """The best epoch so far by `name`, whose model is kept as best.keras."""

    name: str
    value: float
    epoch: int | None


@dataclass(frozen=True, slots=True)
class RunStatus:
    """How far it is. `epoch` counts the epochs that have begun, from 1; `eta_s` is seconds to the end."""

    status: str = ""
    time_s: float | None = None
    attempt: int | None = None
    step: int | None = None
    total_steps: int | None = None
    epoch: int | None = None
    epochs: int | None = None
    loss: float | None = None
    accuracy: float | None = None
    val_loss: float | None = None
    val_accuracy: float | None = None
    learning_rate: float | None = None
    samples_per_s: float | None = None
    data_wait_s: float | None = None
    eta_s: float | None = None
    checkpoint_step: int | None = None
    best: Best | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a telemetry file: `kind` is step, epoch, usage, checkpoint, … `values` is what else stands there."""

    kind: str
    time_s: float | None
    step: int | None
    values: Mapping[str, Any]

    def number(self, name: str) -> float | None:
        """The figure `name`; `None` where it is not there, or is no number."""
        return _number(self.values, name)


def read_run(folder: Path) -> RunInfo | None:
    """What runs in this folder; `None` where the trainer has not said yet.

    Raises:
        FormatError: the file can't be read, or is of a newer trainer.
    """
    values = _read(folder / RUN_FILE)
    if values is None:
        return None
    job, data, settings = (_map(values, key) for key in ("job", "data", "settings"))
    command = values.get("command")
    return RunInfo(
        attempt=_integer(values, "attempt"),
        created_s=_number(values, "created"),
        started_s=_number(values, "started"),
        job_id=_text(job, "job_id") or None,
        host=_text(values, "host"),
        command=tuple(str(word) for word in command) if isinstance(command, list) else (),
        settings=tuple((str(key), "" if value is None else str(value)) for key, value in settings.items()),
        data_name=_text(data, "name"),
        steps_per_epoch=_integer(values, "steps_per_epoch"),
        total_steps=_integer(values, "total_steps"),
        folder=_text(values, "folder"),
        checkpoints=_text(values, "checkpoints"),
        tensorboard=_text(values, "tensorboard"),
    )


def read_status(folder: Path) -> RunStatus | None:
    """How far the run in this folder is; `None` where the trainer has not said yet.

    Raises:
        FormatError: the file can't be read, or is of a newer trainer.
    """
    values = _read(folder / STATUS_FILE)
    if values is None:
        return None
    return RunStatus(
        status=_text(values, "status"),
        time_s=_number(values, "time"),
        attempt=_integer(values, "attempt"),
        step=_integer(values, "step"),
        total_steps=_integer(values, "total_steps"),
        epoch=_integer(values, "epoch"),
        epochs=_integer(values, "epochs"),
        loss=_number(values, "loss"),
        accuracy=_number(values, "accuracy"),
        val_loss=_number(values, "val_loss"),
        val_accuracy=_number(values, "val_accuracy"),
        learning_rate=_number(values, "learning_rate"),
        samples_per_s=_number(values, "samples_per_s"),
        data_wait_s=_number(values, "data_wait_s"),
        eta_s=_number(values, "eta_s"),
        checkpoint_step=_integer(values, "checkpoint_step"),
        best=_best(_map(values, "best")),
    )


def read_lines(path: Path, offset: int = 0) -> tuple[tuple[Line, ...], int]:
    """The whole lines of a telemetry file from byte `offset` on, at most 4 MiB of them, and where to go on.

    A line that can't be read is left out; one that is not finished yet comes the next time. No file: no lines.

    Raises:
        FormatError: the file can't be read.
    """
    try:
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read(_MAX_BYTES)
    except FileNotFoundError:
        return (), offset
    except OSError as error:
        raise FormatError(f"{path} can't be read: {error.strerror}") from error
    whole = data.rfind(b"\n") + 1
    if not whole and len(data) == _MAX_BYTES:  # no telemetry line is that long
        whole = len(data)
    found = (_line(text) for text in data[:whole].splitlines())
    return tuple(line for line in found if line is not None), offset + whole


def _line(text: bytes) -> Line | None:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if (
        not isinstance(values, dict)
        or not isinstance(version := values.get("version"), int)
        or version > VERSION
    ):
        return None
    return Line(_text(values, "kind"), _number(values, "time"), _integer(values, "step"), values)


def _best(values: Mapping[str, Any]) -> Best | None:
    value = _number(values, "value")
    return None if value is None else Best(_text(values, "name"), value, _integer(values, "epoch"))


def _read(path: Path) -> Mapping[str, Any] | None:
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise FormatError(f"{path} can't be read: {error.strerror}") from error
    try:
        values = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path} is not JSON: {error}") from None
    if not isinstance(values, dict) or not isinstance(values.get("version"), int):
        raise FormatError(f"{path} is not a file of the trainer's")
    if values["version"] > VERSION:
        raise FormatError(
            f"{path} is of version {values['version']}; this program reads up to {VERSION}",
            "Update tfjobtui to that of the trainer.",
        )
    return values


def _map(values: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = values.get(key)
    return value if isinstance(value, dict) else {}


def _text(values: Mapping[str, Any], key: str) -> str:
    value = values.get(key)
    return value if isinstance(value, str) else ""


def _number(values: Mapping[str, Any], key: str) -> float | None:
    value = values.get(key)
    if isinstance(value, str):
        return float(value) if value in _NO_JSON_NUMBERS else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _integer(values: Mapping[str, Any], key: str) -> int | None:
    value = values.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
