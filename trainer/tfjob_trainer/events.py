"""TensorBoard's event files, written without the tensorboard package and at a fraction of tf.summary's cost.

An event file is a row of records (length, checksum, bytes, checksum), each an Event message; a scalar is a
tensor with the metadata of the plugin "scalars", as tf.summary.scalar writes it.
"""

import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

_PLUGIN = "scalars"


class EventFile:
    """One event file in `folder`, made at the first scalar. A disk that fails costs scalars only."""

    _made = 0

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writer: Any = None
        self._dead = False

    def scalars(self, values: Mapping[str, float], step: int) -> None:
        """Add one event with all values; in memory until `flush`."""
        if self._dead or not values:
            return
        event = tf.compat.v1.Event(wall_time=time.time(), step=step)
        for tag, value in values.items():
            entry = event.summary.value.add(tag=tag)
            entry.tensor.dtype = 1  # float
            entry.tensor.tensor_shape.SetInParent()
            entry.tensor.float_val.append(value)
            entry.metadata.plugin_data.plugin_name = _PLUGIN
            entry.metadata.data_class = 1  # scalar
        self._write(event)

    def flush(self) -> None:
        """Put on disk what was added."""
        self._safely(lambda: self._writer.flush() if self._writer else None)

    def close(self) -> None:
        """Flush, and end the file."""
        self._safely(lambda: self._writer.close() if self._writer else None)
        self._writer = None

    def _write(self, event: Any) -> None:
        def write() -> None:
            if self._writer is None:
                self._writer = self._open()
            self._writer.write(event.SerializeToString())

        self._safely(write)

    def _open(self) -> Any:
        self._folder.mkdir(parents=True, exist_ok=True)
        EventFile._made += 1
        moment = f"{time.time():.6f}".replace(".", "")[:10]
        name = f"events.out.tfevents.{moment}.{socket.gethostname()}.{os.getpid()}.{EventFile._made}.v2"
        writer = tf.io.TFRecordWriter(str(self._folder / name))
        first = tf.compat.v1.Event(wall_time=time.time(), file_version="brain.Event:2")
        writer.write(first.SerializeToString())
        return writer

    def _safely(self, action: Any) -> None:
        try:
            action()
        except (OSError, tf.errors.OpError):
            self._dead, self._writer = True, None
