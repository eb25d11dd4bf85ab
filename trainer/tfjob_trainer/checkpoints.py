"""Saving and restoring: everything that a run needs to go on as if it had not been broken off."""

import hashlib
import os
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from tfjob_trainer.errors import TrainerError

KEPT = 3


class Progress:
    """Where a run stood when it was saved, in variables; the loop counts in plain numbers.

    step         steps done
    epochs_done  epochs whose end (validation, callbacks) is done; a checkpoint may lie between an epoch's
                 last step and its end
    sums         (2, 3) float64: of the epoch, of the log interval: sum of losses, right answers, examples
    """

    def __init__(self) -> None:
        self.step = tf.Variable(0, dtype=tf.int64, trainable=False)
        self.epochs_done = tf.Variable(0, dtype=tf.int64, trainable=False)
        self.sums = tf.Variable(np.zeros((2, 3)), dtype=tf.float64, trainable=False)

    def note(self, step: int, epochs_done: int, sums: list[Any]) -> None:
        """Take over the loop's counts before a save."""
        self.step.assign(step)
        self.epochs_done.assign(epochs_done)
        self.sums.assign(tf.stack(sums))


class Checkpoints:
    """The checkpoints of a run in `folder`, saved every `every_steps` steps or `every_s` seconds."""

    def __init__(
        self, folder: Path, model: Any, optimizer: Any, progress: Progress, every_steps: int, every_s: float
    ) -> None:
        self._progress = progress
        self._every_steps = every_steps
        self._every_s = every_s
        self._saved_at = time.monotonic()
        _clear_litter(folder)
        self._checkpoint = tf.train.Checkpoint(
            model=model,
            optimizer=optimizer,
            step=progress.step,
            epochs_done=progress.epochs_done,
            sums=progress.sums,
            # TensorFlow does not see Keras' seed generators (dropout), and does not say so.
            seeds=[v.value for v in model.variables if v.path.endswith("seed_generator_state")],
        )
        self._manager = tf.train.CheckpointManager(self._checkpoint, str(folder), max_to_keep=KEPT)

    def restore(self) -> str | None:
        """Load the latest checkpoint and return its path; None where there is none.

        The optimizer has to be built before, else its slots would be left out in silence.
        """
        path: str | None = self._manager.latest_checkpoint
        if path is None:
            return None
        try:
            self._checkpoint.restore(path).assert_existing_objects_matched()
        except (AssertionError, ValueError, tf.errors.OpError) as error:
            raise TrainerError(
                f"the checkpoint {path} cannot be restored into this model: {str(error).splitlines()[0]}. "
                "Use another --model-dir, or the options and the version that made it"
            ) from error
        return path

    def due(self, step: int) -> bool:
        """Is it time to save after this step?"""
        return step % self._every_steps == 0 or time.monotonic() - self._saved_at >= self._every_s

    def save(self) -> tuple[str, float]:
        """Save the present step, unless that is done; returns the path and the seconds that it took."""
        began = time.monotonic()
        step = int(self._progress.step.numpy())
        try:
            path = str(self._manager.save(checkpoint_number=step))
        except (OSError, tf.errors.OpError) as error:
            raise TrainerError(
                f"cannot save a checkpoint in {self._manager.directory}: {str(error).splitlines()[0]}. "
                "The earlier ones are kept; make room and start the run again"
            ) from error
        self._saved_at = time.monotonic()
        return path, self._saved_at - began


def _clear_litter(folder: Path) -> None:
    """Remove what a kill in the middle of saving has left."""
    for path in folder.glob("ckpt-*_temp*"):
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def export(model: Any, path: Path) -> None:
    """Write the whole model as `path` (.keras). Keras writes in place, so it goes beside it first."""
    temporary = path.with_name(f"{path.stem}.tmp-{os.getpid()}{path.suffix}")
    try:
        model.save(temporary)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise TrainerError(f"cannot write the model {path}: {error}") from error


def weights_sha256(model: Any) -> str:
    """A hash of all weights: two runs with the same have trained the same model."""
    digest = hashlib.sha256()
    for weight in model.get_weights():
        digest.update(np.ascontiguousarray(weight).tobytes())
    return digest.hexdigest()
