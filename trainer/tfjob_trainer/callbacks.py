"""Keras callbacks that report a run. They serve in `model.fit` of a user's own script too:

    from tfjob_trainer.callbacks import TelemetryCallback
    from tfjob_trainer.telemetry import Telemetry, next_attempt
    model.fit(…, callbacks=[TelemetryCallback(Telemetry(folder, next_attempt(folder)), steps, epochs)])

In our own loop `logs` of a batch is empty but at the end of a log interval: reading a figure makes the host
wait for the device.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from tfjob_trainer.log import progress
from tfjob_trainer.telemetry import Telemetry

BATCH_SCALARS = ("loss", "accuracy", "samples_per_s", "data_wait_s")


def figures(logs: Mapping[str, Any] | None) -> dict[str, float]:
    """The logs of Keras as plain floats."""
    return {name: float(value) for name, value in (logs or {}).items()}


class TelemetryCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Writes telemetry lines and status.json, every `every` batches that have figures."""

    def __init__(
        self, telemetry: Telemetry, steps_per_epoch: int, epochs: int, *, first_step: int = 0, every: int = 1
    ) -> None:
        super().__init__()
        self._telemetry = telemetry
        self._steps_per_epoch = steps_per_epoch
        self._epochs = epochs
        self._every = every
        self._step = first_step
        self._epoch = 0
        self._timed = (time.monotonic(), first_step)

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        self._epoch = epoch

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        self._step += 1
        values = figures(logs)
        if not values or self._step % self._every:
            return
        self._telemetry.event("step", self._step, epoch=self._epoch + 1, **values)
        self._telemetry.status(status="running", **self._position(), eta_s=self._time_left(), **values)

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        values = figures(logs)
        self._telemetry.event("epoch", self._step, epoch=epoch + 1, **values)
        self._telemetry.status(status="running", **self._position(), **values)

    def _position(self) -> dict[str, int]:
        total = self._steps_per_epoch * self._epochs
        return {"step": self._step, "total_steps": total, "epoch": self._epoch + 1, "epochs": self._epochs}

    def _time_left(self) -> float | None:
        then, step = self._timed
        self._timed = (time.monotonic(), self._step)
        if self._step == step:
            return None
        pace_s = (self._timed[0] - then) / (self._step - step)
        return pace_s * (self._steps_per_epoch * self._epochs - self._step)


class BatchScalars(keras.callbacks.Callback):  # type: ignore[misc]
    """TensorBoard scalars batch_* at the true step over all attempts, on disk at once.

    Keras' own batch scalars are running means of the epoch, start at 0 again in every attempt, and make it
    leave out the epoch's scalars unless their interval divides the epoch.
    """

    def __init__(self, folder: Path, *, first_step: int = 0) -> None:
        super().__init__()
        self._writer = tf.summary.create_file_writer(str(folder))
        self._step = first_step

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        self._step += 1
        if not logs:
            return
        with self._writer.as_default(step=self._step):
            for name in BATCH_SCALARS:
                if name in logs:
                    tf.summary.scalar(f"batch_{name}", logs[name])
        self._writer.flush()

    def on_train_end(self, logs: Mapping[str, Any] | None = None) -> None:
        self._writer.close()


class LogLines(keras.callbacks.Callback):  # type: ignore[misc]
    """One plain line per log interval, and one per epoch."""

    def __init__(self, steps_per_epoch: int, epochs: int, *, first_step: int = 0) -> None:
        super().__init__()
        self._total = steps_per_epoch * epochs
        self._epochs = epochs
        self._step = first_step
        self._epoch = 0

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        self._epoch = epoch

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        self._step += 1
        if not logs:
            return
        speed = f"  {logs['samples_per_s']:.0f} samples/s" if "samples_per_s" in logs else ""
        progress(f"{self._head()}  loss {logs['loss']:.4f}  accuracy {logs['accuracy']:.4f}{speed}")

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        told = "  ".join(f"{name} {value:.4f}" for name, value in (logs or {}).items())
        progress(f"{self._head()}  epoch done: {told}")

    def _head(self) -> str:
        return f"step {self._step}/{self._total}  epoch {self._epoch + 1}/{self._epochs}"
