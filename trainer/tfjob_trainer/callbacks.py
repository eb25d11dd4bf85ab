"""Keras callbacks that report a run. They serve in `model.fit` of a user's own script too:

    from tfjob_trainer.callbacks import TelemetryCallback, TensorBoardCallback
    telling = [TelemetryCallback("runs/mine", batch_size=64), TensorBoardCallback("runs/mine/tensorboard")]
    model.fit(…, callbacks=telling)

In our own loop `logs` of a batch is None but at the end of a log interval: reading a figure makes the host
wait for the device. In `model.fit` they are there with every batch, and read every `every` batches.
"""

import math
import os
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from tfjob_trainer import job
from tfjob_trainer.events import EventFile
from tfjob_trainer.log import progress
from tfjob_trainer.telemetry import Telemetry, next_attempt

EVERY = 50
FLUSH_EVERY_S = 1.0

Logs = Mapping[str, Any] | None


def figures(logs: Logs) -> dict[str, Any]:
    """The logs of Keras as plain floats."""
    return {name: float(value) for name, value in (logs or {}).items()}


class _Counting(keras.callbacks.Callback):  # type: ignore[misc]
    """Counts steps over all attempts, and finds the batches whose figures are to be read."""

    def __init__(self, first_step: int, every: int) -> None:
        super().__init__()
        self.step = first_step
        self.epoch = 0  # from 0
        self._every = every

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        self.epoch = epoch

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        self.step += 1
        if logs and self.step % self._every == 0:
            self.on_figures(figures(logs))

    def on_figures(self, values: dict[str, Any]) -> None:
        """The figures of the batches since the last time."""


class TelemetryCallback(_Counting):
    """Writes telemetry lines and status.json; given a folder, run.json too and all that a run leaves.

    `total_steps`: where the run ends; None: as `model.fit` says. `batch_size`: for samples/s, where the loop does
    not tell them.
    """

    def __init__(
        self,
        telemetry: Telemetry | str | Path,
        *,
        total_steps: int | None = None,
        epochs: int | None = None,
        first_step: int = 0,
        every: int = EVERY,
        batch_size: int | None = None,
    ) -> None:
        super().__init__(first_step, every)
        self._own = not isinstance(telemetry, Telemetry)
        self._telemetry = telemetry if isinstance(telemetry, Telemetry) else _open(Path(telemetry))
        self._total_steps = total_steps
        self._epochs = epochs
        self._batch_size = batch_size
        self._timed = (time.monotonic(), first_step)

    def on_train_begin(self, logs: Logs = None) -> None:
        steps = self.params.get("steps")
        self._epochs = self._epochs or self.params.get("epochs")
        if self._total_steps is None and steps and self._epochs:
            self._total_steps = steps * self._epochs
        self._timed = (time.monotonic(), self.step)
        if self._own:
            self._begin(steps)

    def _begin(self, steps_per_epoch: int | None) -> None:
        ours = job.from_environment(os.environ)
        self._telemetry.run(
            {
                "job": asdict(ours),
                "command": sys.argv,
                "folder_at_start": Path.cwd(),
                "tensorflow": tf.__version__,
                "keras": keras.__version__,
                "settings": {"epochs": self._epochs, "batch_size": self._batch_size},
                "model": {"name": self.model.name, "parameters": self.model.count_params()},
                "steps_per_epoch": steps_per_epoch,
                "total_steps": self._total_steps,
                "folder": self._telemetry.folder,
            }
        )
        self._telemetry.event(
            "start",
            self.step,
            attempt=self._telemetry.attempt,
            rank=self._telemetry.rank,
            restart=ours.restart,
            job_id=ours.job_id,
            host=socket.gethostname(),
            pid=os.getpid(),
        )

    def on_figures(self, values: dict[str, Any]) -> None:
        pace_s = self._pace_s()
        if pace_s and self._batch_size and "samples_per_s" not in values:
            values["samples_per_s"] = self._batch_size / pace_s
        self._telemetry.event("step", self.step, soon=True, epoch=self.epoch + 1, **values)
        left_s = pace_s * (self._total_steps - self.step) if pace_s and self._total_steps else None
        self._telemetry.status(soon=True, status="running", **self._position(), eta_s=left_s, **values)

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        values = figures(logs)
        self._telemetry.event("epoch", self.step, epoch=epoch + 1, **values)
        self._telemetry.status(status="running", **self._position(), **values)

    def on_train_end(self, logs: Logs = None) -> None:
        if self._own:
            self._telemetry.event("end", self.step, status="completed")
            self._telemetry.status(status="completed", **self._position())
        self._telemetry.flush()

    def _position(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "total_steps": self._total_steps,
            "epoch": self.epoch + 1,
            "epochs": self._epochs,
        }

    def _pace_s(self) -> float | None:
        """Seconds per step since the last time."""
        then, step = self._timed
        self._timed = (time.monotonic(), self.step)
        return (self._timed[0] - then) / (self.step - step) if self.step > step else None


def _open(folder: Path) -> Telemetry:
    folder = folder.expanduser().absolute()
    folder.mkdir(parents=True, exist_ok=True)
    return Telemetry(folder, next_attempt(folder))


class TensorBoardCallback(_Counting):
    """Scalars for TensorBoard, under the names that Keras uses: train/ and validation/, epoch_* and batch_*.

    Unlike Keras' own it needs no tensorboard package, numbers batches over all attempts (`first_step`), shows
    the figures of the last interval instead of the epoch's running means, never leaves out the epoch's scalars,
    and is on disk within a second.
    """

    def __init__(self, folder: str | Path, *, first_step: int = 0, every: int = EVERY) -> None:
        super().__init__(first_step, every)
        self._train = EventFile(Path(folder) / "train")
        self._held = EventFile(Path(folder) / "validation")
        self._flushed_at = 0.0

    def on_figures(self, values: dict[str, Any]) -> None:
        self._train.scalars({f"batch_{name}": value for name, value in values.items()}, self.step)
        if time.monotonic() - self._flushed_at >= FLUSH_EVERY_S:
            self._flush()

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        values = figures(logs)
        held = {name.removeprefix("val_"): value for name, value in values.items() if name.startswith("val_")}
        trained = {name: value for name, value in values.items() if not name.startswith("val_")}
        rate = self._learning_rate()
        if rate is not None:
            trained.setdefault("learning_rate", rate)
        self._train.scalars({f"epoch_{name}": value for name, value in trained.items()}, epoch)
        self._held.scalars({f"epoch_{name}": value for name, value in held.items()}, epoch)
        self._flush()

    def on_train_end(self, logs: Logs = None) -> None:
        self._train.close()
        self._held.close()

    def _learning_rate(self) -> float | None:
        optimizer = getattr(self.model, "optimizer", None)
        return None if optimizer is None else float(keras.ops.convert_to_numpy(optimizer.learning_rate))

    def _flush(self) -> None:
        self._flushed_at = time.monotonic()
        self._train.flush()
        self._held.flush()


class LogLines(_Counting):
    """One plain line per log interval, and one per epoch."""

    def __init__(self, total_steps: int, epochs: int, *, first_step: int = 0) -> None:
        super().__init__(first_step, 1)
        self._total = total_steps
        self._epochs = epochs

    def on_figures(self, values: dict[str, Any]) -> None:
        speed = f"  {values['samples_per_s']:.0f} samples/s" if "samples_per_s" in values else ""
        told = "  ".join(f"{name} {values[name]:.4f}" for name in ("loss", "accuracy") if name in values)
        progress(f"{self._head()}  {told}{speed}")

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        values = figures(logs)
        names = sorted(
            values, key=lambda name: (name == "learning_rate", name.startswith("val_"), "loss" not in name)
        )
        told = "  ".join(f"{name} {_number(values[name])}" for name in names)
        progress(f"{self._head()}  epoch done: {told}")

    def _head(self) -> str:
        return f"step {self.step}/{self._total}  epoch {self.epoch + 1}/{self._epochs}"


def _number(value: float) -> str:
    """Four places, and more for what is small (a learning rate)."""
    return f"{value:.4f}" if value == 0 or not math.isfinite(value) or abs(value) >= 0.01 else f"{value:.4g}"
