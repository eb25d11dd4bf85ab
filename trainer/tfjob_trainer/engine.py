"""The loop. One for every strategy: a Keras model in `strategy.run`, never `model.fit`.

(`fit` of Keras 3 does not work under MultiWorkerMirroredStrategy, and goes on only at whole epochs.)
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from tfjob_trainer import precision
from tfjob_trainer.checkpoints import Checkpoints, Progress
from tfjob_trainer.data import Data
from tfjob_trainer.stop import StopRequest
from tfjob_trainer.telemetry import Telemetry

EPOCH, INTERVAL = 0, 1  # rows of the sums


@dataclass(frozen=True, slots=True)
class Plan:
    """What to train and how long."""

    model: Any
    optimizer: Any
    strategy: Any
    data: Data
    policy: str
    global_batch: int
    epochs: int
    log_steps: int

    @property
    def steps_per_epoch(self) -> int:
        return self.data.training_examples // self.global_batch

    @property
    def total_steps(self) -> int:
        return self.steps_per_epoch * self.epochs


class Engine:
    """Trains a plan from wherever its progress stands to the end, or to a stop request."""

    def __init__(
        self,
        plan: Plan,
        progress: Progress,
        checkpoints: Checkpoints,
        telemetry: Telemetry,
        stop: StopRequest,
    ) -> None:
        self._plan = plan
        self._progress = progress
        self._checkpoints = checkpoints
        self._telemetry = telemetry
        self._stop = stop
        self._train_step = make_train_step(plan)
        self._evaluate_step = make_evaluate_step(plan)
        self._data_wait_s = 0.0
        self._interval_began = time.perf_counter()
        self.step = int(progress.step.numpy())  # done, over all attempts
        self.epochs_done = int(progress.epochs_done.numpy())  # validation included
        self._sums = tf.unstack(progress.sums.read_value())  # as Progress.sums, on the device
        self._interval_step = self.step

    def train(self, callbacks: Any) -> dict[str, float]:
        """Run; `callbacks` is a Keras CallbackList. Returns the last epoch's figures; empty after a stop."""
        logs: dict[str, float] = {}
        callbacks.on_train_begin()
        while self.epochs_done < self._plan.epochs and not self._stop.received:
            logs = self._train_epoch(self.epochs_done, callbacks)
        callbacks.on_train_end(logs)
        self.save()
        return {} if self.epochs_done < self._plan.epochs else logs

    def save(self) -> None:
        """Save a checkpoint of the present step and note it."""
        self._progress.note(self.step, self.epochs_done, self._sums)
        path, seconds = self._checkpoints.save()
        self._telemetry.event("checkpoint", self.step, path=path, duration_s=seconds)

    def _train_epoch(self, epoch: int, callbacks: Any) -> dict[str, float]:
        first = self.step - epoch * self._plan.steps_per_epoch
        callbacks.on_epoch_begin(epoch)
        for index, batch in enumerate(self._timed(self._batches(epoch, first)), start=first):
            callbacks.on_train_batch_begin(index)
            self._do_step(batch)
            callbacks.on_train_batch_end(index, self._interval_logs())
            if self._stop.received:
                return {}
            if self._checkpoints.due(self.step):
                self.save()
        return self._end_epoch(epoch, callbacks)

    def _batches(self, epoch: int, first_step: int) -> Any:
        plan = self._plan
        return plan.strategy.distribute_datasets_from_function(
            lambda context: plan.data.training(epoch, first_step, plan.global_batch, context)
        )

    def _timed(self, batches: Any) -> Any:
        """Pass batches on, measuring how long the loop waits for them."""
        iterator = iter(batches)
        while True:
            began = time.perf_counter()
            batch = next(iterator, None)
            self._data_wait_s += time.perf_counter() - began
            if batch is None:
                return
            yield batch

    def _do_step(self, batch: Any) -> None:
        sums = self._train_step(batch)
        self._sums = [so_far + sums for so_far in self._sums]
        self.step += 1

    def _interval_logs(self) -> dict[str, float] | None:
        """The figures of the log interval that ends with this step; None inside an interval."""
        step = self.step
        if step % self._plan.log_steps and step != self._plan.total_steps:
            return None
        logs = self._take_means(INTERVAL)
        now = time.perf_counter()
        samples = (step - self._interval_step) * self._plan.global_batch
        logs["samples_per_s"] = samples / (now - self._interval_began)
        logs["data_wait_s"] = self._data_wait_s
        logs["learning_rate"] = float(keras.ops.convert_to_numpy(self._plan.optimizer.learning_rate))
        self._interval_began, self._interval_step, self._data_wait_s = now, step, 0.0
        return logs

    def _take_means(self, row: int) -> dict[str, float]:
        """Mean loss and accuracy of what was summed up in `row`, which starts again from 0."""
        logs = means(self._sums[row].numpy())
        self._sums[row] = tf.zeros(3, tf.float64)
        return logs

    def _end_epoch(self, epoch: int, callbacks: Any) -> dict[str, float]:
        held = self._validate(callbacks)
        logs = {**self._take_means(EPOCH), **{f"val_{name}": value for name, value in held.items()}}
        self.epochs_done += 1
        callbacks.on_epoch_end(epoch, logs)
        return logs

    def _validate(self, callbacks: Any) -> dict[str, float]:
        plan = self._plan
        batches = plan.strategy.distribute_datasets_from_function(
            lambda context: plan.data.validation(plan.global_batch, context)
        )
        sums = tf.zeros(3, tf.float64)
        callbacks.on_test_begin()
        for index, batch in enumerate(batches):
            callbacks.on_test_batch_begin(index)
            sums += self._evaluate_step(batch)
            callbacks.on_test_batch_end(index)
        logs = means(sums.numpy())
        callbacks.on_test_end(logs)
        return logs


def means(sums: Any) -> dict[str, float]:
    """Mean loss and accuracy from (sum of losses, right answers, examples)."""
    loss, right, examples = (float(value) for value in sums)
    return {"loss": loss / examples, "accuracy": right / examples} if examples else {}


def make_train_step(plan: Plan) -> Callable[[Any], Any]:
    """A compiled step: a distributed batch → (sum of losses, right answers, examples) over all replicas."""
    model, optimizer, strategy, policy = plan.model, plan.optimizer, plan.strategy, plan.policy
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
    replicas = strategy.num_replicas_in_sync

    def on_replica(features: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            logits = model(features, training=True)
            losses = loss_of(labels, logits)
            # The optimizer sums gradients over replicas: a mean over the global batch makes that right.
            loss = tf.reduce_sum(losses) / plan.global_batch
            if model.losses:
                loss += tf.add_n(model.losses) / replicas
            scaled = precision.scale_loss(optimizer, loss, policy)
        gradients = tape.gradient(scaled, model.trainable_variables)
        if policy == "mixed_float16":
            gradients = precision.agree_on_overflow(gradients)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return _sums(losses, logits, labels, tf.ones_like(losses))

    return _on_all_replicas(strategy, on_replica)


def make_evaluate_step(plan: Plan) -> Callable[[Any], Any]:
    """As `make_train_step`, without learning, for batches with weights."""
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

    def on_replica(features: Any, labels: Any, weights: Any) -> Any:
        logits = plan.model(features, training=False)
        return _sums(loss_of(labels, logits), logits, labels, weights)

    return _on_all_replicas(plan.strategy, on_replica)


def _sums(losses: Any, logits: Any, labels: Any, weights: Any) -> Any:
    """(3,) float32 of one replica: sum of losses (batch,), right answers, examples, weighted."""
    right = tf.cast(tf.equal(tf.argmax(logits, axis=-1, output_type=labels.dtype), labels), tf.float32)
    return tf.stack([tf.reduce_sum(losses * weights), tf.reduce_sum(right * weights), tf.reduce_sum(weights)])


def _on_all_replicas(strategy: Any, on_replica: Callable[..., Any]) -> Callable[[Any], Any]:
    def step(batch: Any) -> Any:
        sums = strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(on_replica, args=batch), axis=None)
        return tf.cast(sums, tf.float64)

    compiled: Callable[[Any], Any] = tf.function(step, reduce_retracing=True)
    return compiled
