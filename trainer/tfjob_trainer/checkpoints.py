"""Saving and restoring: everything that a run needs to go on as if it had not been broken off."""

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from tfjob_trainer.errors import TrainerError
from tfjob_trainer.log import complain

PREFIX = "ckpt"
LITTER_AGE_S = 3600.0  # of exports: another program may just be writing one


class SaveError(TrainerError):
    """A checkpoint could not be written; the earlier ones are still there."""


class Progress:
    """Where a run stood when it was saved, in variables; the loop counts in plain numbers.

    step         steps done
    epochs_done  epochs whose end (validation, callbacks) is done; a checkpoint may lie between an epoch's
                 last step and its end
    sums         (2, 3) float64: of the epoch, of the log interval: sum of losses, right answers, examples
    best         (2,) float64: the best value of what best.keras is chosen by, NaN for none, and its epoch from 1
    """

    def __init__(self) -> None:
        self.step = tf.Variable(0, dtype=tf.int64, trainable=False)
        self.epochs_done = tf.Variable(0, dtype=tf.int64, trainable=False)
        self.sums = tf.Variable(np.zeros((2, 3)), dtype=tf.float64, trainable=False)
        self.best = tf.Variable([np.nan, 0.0], dtype=tf.float64, trainable=False)

    def note(self, step: int, epochs_done: int, sums: np.ndarray[Any, Any]) -> None:
        """Take over the loop's counts before a save."""
        self.step.assign(step)
        self.epochs_done.assign(epochs_done)
        self.sums.assign(sums)


class Checkpoints:
    """The checkpoints of a run, saved every `every_steps` steps (None: never by steps) or `every_s` seconds.

    Of several processes the chief saves. Only where reading the weights takes all of them (variables that are kept
    apart on each replica and added up when they are read) the others save too, into a temporary folder.
    """

    def __init__(
        self,
        folder: Path,
        model: Any,
        optimizer: Any,
        progress: Progress,
        *,
        every_steps: int | None,
        every_s: float,
        keep: int,
        is_chief: bool = True,
    ) -> None:
        self.folder = folder
        self.last_step: int | None = None  # of the last good checkpoint
        self._progress = progress
        self._every_steps = every_steps
        self._every_s = every_s
        self._saved_at = time.monotonic()
        self._is_chief = is_chief
        if is_chief:
            _clear_litter(folder)
        self._checkpoint = tf.train.Checkpoint(
            model=model,
            optimizer=optimizer,
            step=progress.step,
            epochs_done=progress.epochs_done,
            sums=progress.sums,
            best=progress.best,
            # TensorFlow does not see Keras' seed generators (dropout), and does not say so.
            seeds=[v.value for v in model.variables if v.path.endswith("seed_generator_state")],
        )
        self._saves = is_chief or _read_together([*model.variables, *optimizer.variables])
        self._scratch = (
            Path(tempfile.mkdtemp(prefix="tfjob-train-")) if self._saves and not is_chief else None
        )
        self._manager = tf.train.CheckpointManager(
            self._checkpoint, str(self._scratch or folder), max_to_keep=keep if is_chief else 1
        )

    def restore(self, path: str) -> None:
        """Load the checkpoint `path`, one that `find_good` has found.

        The optimizer has to be built before, else its slots would be left out in silence.
        """
        try:
            self._checkpoint.restore(path).assert_existing_objects_matched()
        except (AssertionError, ValueError, tf.errors.OpError) as error:
            raise TrainerError(
                f"the checkpoint {path} cannot be restored into this model: {str(error).splitlines()[0]}. "
                "Use another --model-dir, or the options and the version that made it"
            ) from error
        self.last_step = int(self._progress.step.numpy())

    def due_by_steps(self, step: int) -> bool:
        """Is it time to save after this step, for all processes alike?"""
        return self._every_steps is not None and step % self._every_steps == 0

    def due_by_time(self) -> bool:
        """Is it time to save, by the clock of this process?"""
        return time.monotonic() - self._saved_at >= self._every_s

    def save(self) -> tuple[str, float]:
        """Save the present step; returns the path ("": another process saves) and the seconds that it took.

        Raises SaveError where the disk is full or the quota used up; the last good checkpoint is still there.
        """
        began = time.monotonic()
        self._saved_at = began  # after a failure too: the next try comes with the next turn
        step = int(self._progress.step.numpy())
        if not self._saves:
            self.last_step = step
            return "", 0.0
        try:
            path = str(self._manager.save(checkpoint_number=step))
        except (OSError, tf.errors.OpError) as error:
            self._remove_failed(step)
            raise SaveError(
                f"cannot save a checkpoint in {self._manager.directory}: {short(error)}; {self._last_words()}"
            ) from error
        self.last_step = step
        self._saved_at = time.monotonic()
        return path, self._saved_at - began

    def _last_words(self) -> str:
        if self.last_step is None:
            return "there is no earlier one"
        return f"the one of step {self.last_step} is kept. Make room, or raise the quota"

    def _remove_failed(self, step: int) -> None:
        folder = Path(self._manager.directory)
        if self.last_step != step:
            for path in folder.glob(f"{PREFIX}-{step}.*"):
                path.unlink(missing_ok=True)
        _clear_litter(folder)

    def close(self) -> None:
        """Remove the temporary folder, where there is one."""
        if self._scratch:
            shutil.rmtree(self._scratch, ignore_errors=True)


def _read_together(variables: Iterable[Any]) -> bool:
    on_read = tf.VariableSynchronization.ON_READ
    return any(getattr(variable.value, "synchronization", None) == on_read for variable in variables)


def find_good(folder: Path) -> str | None:
    """The newest checkpoint that can be read to its end, None where there is none at all.

    Damaged ones are told of, and passed over. Raises TrainerError where all are damaged: to start from the
    beginning then has to be somebody's decision.
    """
    damaged = []
    for step in sorted(steps_in(folder), reverse=True):
        path = str(folder / f"{PREFIX}-{step}")
        try:
            reader = tf.train.load_checkpoint(path)
            for name in reader.get_variable_to_shape_map():
                reader.get_tensor(name)
        except (tf.errors.OpError, RuntimeError, ValueError, OSError) as error:
            damaged.append(step)
            complain(f"the checkpoint {path} is damaged ({short(error)}); taking the one before it")
            continue
        return path
    if damaged:
        raise TrainerError(
            f"every checkpoint in {folder} is damaged (steps {', '.join(map(str, damaged))}). To start from the "
            "beginning, remove them, or take another --model-dir"
        )
    return None


def steps_in(folder: Path) -> list[int]:
    """The steps of which there are checkpoints."""
    names = (re.fullmatch(rf"{PREFIX}-(\d+)\.index", path.name) for path in folder.glob(f"{PREFIX}-*.index"))
    return [int(match[1]) for match in names if match]


def short(error: Exception) -> str:
    """The first line of an error's message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _clear_litter(folder: Path) -> None:
    """Remove what a kill in the middle of saving has left."""
    for path in folder.glob(f"{PREFIX}-*_temp*"):
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
    for path in folder.glob(f"{PREFIX}-*.tempstate*"):
        path.unlink(missing_ok=True)
    whole = {f"{PREFIX}-{step}" for step in steps_in(folder)}
    for path in folder.glob(f"{PREFIX}-*.data-*"):
        if path.name.partition(".")[0] not in whole:  # its index, which is written last, is not there
            path.unlink(missing_ok=True)


def clear_exports(folder: Path) -> None:
    """Remove half-written models that a kill has left."""
    for path in folder.glob("*.tmp-*.keras"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > LITTER_AGE_S:
                path.unlink()


def export(model: Any, path: Path | None) -> None:
    """Write the whole model as `path` (.keras). Keras writes in place, so it goes beside it first.

    None: read the weights, as the chief does, and write nothing. Raises SaveError.
    """
    if path is None:
        model.get_weights()
        return
    temporary = path.with_name(f"{path.stem}.tmp-{os.getpid()}{path.suffix}")
    try:
        model.save(temporary)
        descriptor = os.open(temporary, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise SaveError(f"cannot write the model {path}: {error}") from error


def weights_sha256(model: Any) -> str:
    """A hash of all weights: two runs with the same have trained the same model."""
    digest = hashlib.sha256()
    for weight in model.get_weights():
        digest.update(np.ascontiguousarray(weight).tobytes())
    return digest.hexdigest()
