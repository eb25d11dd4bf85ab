"""The loop. One for every strategy: a Keras model in `strategy.run`, never `model.fit`.

(`fit` of Keras 3 does not work under MultiWorkerMirroredStrategy, and goes on only at whole epochs.)
"""

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from tfjob_trainer.agreement import Agreement
from tfjob_trainer.checkpoints import Checkpoints, Progress, SaveError, export
from tfjob_trainer.errors import TrainerError
from tfjob_trainer.log import complain
from tfjob_trainer.steps import TOP_FROM_CLASSES, Plan, Sums, make_evaluate_step, make_train_step

EPOCH, INTERVAL = 0, 1  # rows of the sums


@dataclass(frozen=True, slots=True)
class Best:
    """What the best model is, and where it is kept."""

    name: str  # "val_accuracy", or "val_loss", of which the lowest is best
    path: Any  # None: another process keeps it

    def improves(self, value: float, best: float) -> bool:
        """Is `value` better than `best` (NaN: there is none)?"""
        if math.isnan(value):
            return False
        return math.isnan(best) or (value < best if self.name.endswith("loss") else value > best)


@dataclass(slots=True)
class Surroundings:
    """Whom the loop tells what it does."""

    note: Callable[..., None]  # telemetry: kind, step, values
    check_folder: Callable[[], None]  # raises TrainerError where the folder is not ours any more
    best: Best
    go_on_with_nan: bool = False


class Pace:
    """How fast training goes, without what comes between the steps (validation, saving, the first compilation)."""

    def __init__(self) -> None:
        self.steps: int | None = None  # since the last figures; None before the first step is done
        self.data_wait_s = 0.0
        self._began = 0.0

    def begin(self) -> None:
        """Start anew."""
        self.steps, self.data_wait_s, self._began = 0, 0.0, time.perf_counter()

    @contextlib.contextmanager
    def interrupted(self) -> Iterator[None]:
        """The time in the block does not count."""
        left = time.perf_counter()
        yield
        self._began += time.perf_counter() - left

    def figures(self, batch: int) -> dict[str, float]:
        """samples_per_s and data_wait_s since the last figures; none where no step was timed."""
        passed = time.perf_counter() - self._began
        found = {"data_wait_s": self.data_wait_s}
        if self.steps:
            found["samples_per_s"] = self.steps * batch / passed
        self.begin()
        return found


class Engine:
    """Trains a plan from wherever its progress stands to the end, or to a stop request."""

    def __init__(
        self,
        plan: Plan,
        progress: Progress,
        checkpoints: Checkpoints,
        agreement: Agreement,
        surroundings: Surroundings,
    ) -> None:
        self._plan = plan
        self._progress = progress
        self._checkpoints = checkpoints
        self._agreement = agreement
        self._around = surroundings
        self._pending = Sums(plan.strategy)
        self._train_step = make_train_step(plan, self._pending)
        self._evaluate_step = make_evaluate_step(plan)
        self._pace = Pace()
        self.step = int(progress.step.numpy())  # done, over all attempts
        self.epochs_done = int(progress.epochs_done.numpy())  # validation included
        self.stopped: str | None = None  # the signal that all processes have agreed to stop for
        self._sums = progress.sums.numpy()  # as Progress.sums

    @property
    def best(self) -> tuple[float, int]:
        """The best value so far (NaN: none), and its epoch from 1."""
        value, epoch = (float(number) for number in self._progress.best.numpy())
        return value, int(epoch)

    @property
    def finished(self) -> bool:
        """Is there nothing left to train?"""
        return self.epochs_done >= self._plan.epochs or self.step >= self._plan.total_steps

    def train(self, callbacks: Any) -> dict[str, float]:
        """Run; `callbacks` is a Keras CallbackList. Returns the last epoch's figures; empty after a stop."""
        logs: dict[str, float] = {}
        callbacks.on_train_begin()
        self.stopped = self._agreement.after_step(False).stop  # a signal that came during the start
        while not self.finished and not self.stopped:
            logs = self._train_epoch(self.epochs_done, callbacks)
        callbacks.on_train_end(logs)
        self.save(must=True)
        return {} if self.stopped else logs

    def save(self, *, must: bool = False) -> None:
        """Save a checkpoint of the present step and note it.

        Where the disk refuses, training goes on (the next try is when the next one is due), unless it `must`
        be saved: then this raises SaveError.
        """
        self._take_pending()
        self._check_finite(self._sums[EPOCH][0])
        self._around.check_folder()
        self._progress.note(self.step, self.epochs_done, self._sums)
        try:
            path, seconds = self._checkpoints.save()
        except SaveError as error:
            self._around.note("checkpoint_failed", self.step, message=str(error))
            if must:
                raise
            complain(f"{error}; training goes on")
            return
        if path:
            self._around.note("checkpoint", self.step, path=path, duration_s=seconds)

    # ---- Epochs and steps.

    def _train_epoch(self, epoch: int, callbacks: Any) -> dict[str, float]:
        plan = self._plan
        first = self.step - epoch * plan.steps_per_epoch
        last = min(plan.total_steps - epoch * plan.steps_per_epoch, plan.steps_per_epoch)
        callbacks.on_epoch_begin(epoch)
        for index, batch in self._timed(self._training_batches(epoch, first), first, last):
            callbacks.on_train_batch_begin(index)
            self._train_step(batch)
            self.step += 1
            if self._pace.steps is None:
                self._take_pending()  # waits for the step: it compiled, which is not the pace of training
                self._pace.begin()
            else:
                self._pace.steps += 1
            callbacks.on_train_batch_end(index, self._interval_logs())
            if self._stop_or_save():
                return {}
        with self._pace.interrupted():
            return self._end_epoch(epoch, callbacks)

    def _training_batches(self, epoch: int, first_step: int) -> Any:
        plan = self._plan
        return plan.strategy.distribute_datasets_from_function(
            lambda context: plan.data.training(epoch, first_step, plan.global_batch, context)
        )

    def _timed(self, batches: Any, first: int, last: int) -> Iterator[tuple[int, Any]]:
        """Batches `first` to `last` (not included) with their numbers, measuring how long the loop waits for them."""
        if first >= last:
            return
        iterator = iter(batches)
        for index in range(first, last):
            began = time.perf_counter()
            batch = self._next(iterator, index)
            self._pace.data_wait_s += time.perf_counter() - began
            yield index, batch

    def _next(self, iterator: Any, index: int) -> Any:
        try:
            return next(iterator)
        except StopIteration:
            raise TrainerError(f"the data ended at step {index} of the epoch: files were changed") from None
        except tf.errors.OpError as error:
            explained = self._plan.data.explain(error, index)
            raise explained or error from error

    def _stop_or_save(self) -> bool:
        """Save if it is time; True where the loop ends, for all processes at the same step."""
        decision = self._agreement.after_step(self._checkpoints.due_by_time())
        if decision.stop:
            self.stopped = decision.stop
            return True
        if decision.save or self._checkpoints.due_by_steps(self.step):
            with self._pace.interrupted():
                self.save()
        return False

    # ---- Figures.

    def _interval_logs(self) -> dict[str, float] | None:
        """The figures of the log interval that ends with this step; None inside an interval."""
        step = self.step
        if step % self._plan.log_steps and step != self._plan.total_steps:
            return None
        self._take_pending()
        logs = self._means(INTERVAL)
        self._check_finite(logs.get("loss", 0.0))
        logs |= self._pace.figures(self._plan.global_batch)
        logs["learning_rate"] = self._learning_rate()
        return logs

    def _learning_rate(self) -> float:
        return self._plan.rate(self.step)

    def _take_pending(self) -> None:
        """Add up what the replicas have counted."""
        self._sums = self._sums + self._pending.take()

    def _means(self, row: int) -> dict[str, float]:
        """Mean loss and accuracy of what was summed up in `row`, which starts again from 0."""
        logs = means(self._sums[row])
        self._sums[row] = 0.0
        return logs

    def _check_finite(self, loss: float) -> None:
        """Raise TrainerError where the loss is not a number, before bad weights take the place of good ones."""
        if math.isfinite(loss) or self._around.go_on_with_nan:
            return
        kept = self._checkpoints.last_step
        raise TrainerError(
            f"the loss is {'not a number' if math.isnan(loss) else 'infinite'} at step {self.step}: nothing was saved "
            f"since step {kept or 0}, so a new start goes on from there. Often the learning rate is too high, its "
            "warm-up too short, or there are bad values in the data; --go-on-with-nan trains on all the same"
        )

    # ---- The end of an epoch.

    def _end_epoch(self, epoch: int, callbacks: Any) -> dict[str, float]:
        """Validation, the best model, the callbacks. An epoch that --steps has cut off stays open."""
        self._take_pending()
        held = self._validate(callbacks) if self._wants_validation(epoch) else {}
        if self.stopped:
            return {}
        whole = self.step == (epoch + 1) * self._plan.steps_per_epoch
        epoch_means = self._means(EPOCH) if whole else means(self._sums[EPOCH])
        logs = {**epoch_means, **{f"val_{name}": value for name, value in held.items()}}
        logs["learning_rate"] = self._learning_rate()
        self._keep_best(logs, epoch)
        if whole:
            self.epochs_done += 1
        callbacks.on_epoch_end(epoch, logs)
        return logs

    def _wants_validation(self, epoch: int) -> bool:
        every = self._plan.validate_epochs
        if not every or not self._plan.data.validation_examples:
            return False
        return (
            (epoch + 1) % every == 0 or epoch + 1 >= self._plan.epochs or self.step >= self._plan.total_steps
        )

    def _keep_best(self, logs: dict[str, float], epoch: int) -> None:
        """Export the model if it is the best so far. The value is saved with the checkpoints."""
        best = self._around.best
        if best.name not in logs or not best.improves(logs[best.name], self.best[0]):
            return
        self._around.check_folder()
        try:
            export(self._plan.model, best.path)
        except SaveError as error:
            complain(f"{error}; training goes on, with the best model of before")
            return
        self._progress.best.assign([logs[best.name], epoch + 1.0])
        self._around.note("best", self.step, epoch=epoch + 1, name=best.name, value=logs[best.name])

    def _validate(self, callbacks: Any) -> dict[str, float]:
        """Figures over the validation examples; stops half-way on a stop request."""
        plan = self._plan
        batches = plan.strategy.distribute_datasets_from_function(
            lambda context: plan.data.validation(plan.global_batch, context)
        )
        sums = tf.zeros(4, tf.float64)
        callbacks.on_test_begin()
        iterator = iter(batches)
        for index in range(math.ceil(plan.data.validation_examples / plan.global_batch)):
            callbacks.on_test_batch_begin(index)
            sums += self._evaluate_step(self._next(iterator, index))
            callbacks.on_test_batch_end(index)
            if decision := self._agreement.after_step(False).stop:
                self.stopped = decision
                return {}
        logs = validation_means(np.asarray(sums, np.float64), plan.classes)
        callbacks.on_test_end(logs)
        return logs


def means(sums: Any) -> dict[str, float]:
    """Mean loss and accuracy from (sum of losses, right answers, examples)."""
    loss, right, examples = (float(value) for value in sums)
    return {"loss": loss / examples, "accuracy": right / examples} if examples else {}


def validation_means(sums: Any, classes: int) -> dict[str, float]:
    """As `means`, with the accuracy among the first five where there are many classes."""
    logs = means(sums[:3])
    if logs and classes >= TOP_FROM_CLASSES:
        logs["top5_accuracy"] = float(sums[3]) / float(sums[2])
    return logs
