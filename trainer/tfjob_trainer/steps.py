"""The compiled steps: what one replica does with a batch, under any strategy."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from tfjob_trainer import precision
from tfjob_trainer.data import Data
from tfjob_trainer.optimizers import decayed_variables

TOP = 5
TOP_FROM_CLASSES = 20  # with fewer classes, being among the first five says nothing


@dataclass(frozen=True, slots=True)
class Plan:
    """What to train and how long."""

    model: Any
    optimizer: Any
    rate: Callable[[int], float]  # the learning rate of the step that comes after so many
    strategy: Any
    data: Data
    policy: str
    global_batch: int
    accumulate: int  # parts in which a replica takes its share of a batch
    epochs: int  # a number that total_steps does not reach where only steps were asked for
    total_steps: int
    log_steps: int
    label_smoothing: float = 0.0
    l2: float = 0.0
    xla: bool = False
    validate_epochs: int = 1

    @property
    def steps_per_epoch(self) -> int:
        return self.data.training_examples // self.global_batch

    @property
    def classes(self) -> int:
        return self.data.form.classes


class Sums:
    """Sums over steps, kept on each replica and added up over all of them when they are taken.

    (3,) float64: sum of losses, right answers, examples. Taking is a collective: all processes do it at the
    same step.
    """

    def __init__(self, strategy: Any) -> None:
        with strategy.scope():
            kept = tf.Variable(
                tf.zeros(3, tf.float64),
                trainable=False,
                synchronization=tf.VariableSynchronization.ON_READ,
                aggregation=tf.VariableAggregation.SUM,
            )

        def on_replica() -> Any:
            value = kept.read_value()
            kept.assign(tf.zeros(3, tf.float64))
            return value

        self._kept = kept
        self._take = tf.function(
            lambda: strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(on_replica), axis=None)
        )

    def add(self, sums: Any) -> None:
        """In a replica: add (3,)."""
        self._kept.assign_add(tf.cast(sums, tf.float64))

    def take(self) -> np.ndarray[Any, Any]:
        """What was added since the last time, over all replicas."""
        taken: np.ndarray[Any, Any] = self._take().numpy()
        return taken


def make_train_step(plan: Plan, sums: Sums) -> Callable[[Any], None]:
    """A compiled step: a distributed batch changes the weights, and is counted in `sums`."""
    variables = plan.model.trainable_variables
    gradients_of = _gradients_of(plan)
    if plan.xla:
        gradients_of = tf.function(gradients_of, jit_compile=True)

    def on_replica(features: Any, labels: Any) -> None:
        gradients, counted = _accumulated(gradients_of, features, labels, plan)
        if plan.policy == "mixed_float16":
            gradients = precision.agree_on_overflow(gradients)
        plan.optimizer.apply_gradients(zip(gradients, variables, strict=True))
        sums.add(counted)

    return _on_all_replicas(plan.strategy, on_replica)


def _gradients_of(plan: Plan) -> Callable[[Any, Any], Any]:
    """(features, labels) of one replica → gradients, and sums as in `Sums`."""
    model, optimizer = plan.model, plan.optimizer
    variables = model.trainable_variables
    decayed = decayed_variables(variables) if plan.l2 else []
    share = 1.0 / (plan.strategy.num_replicas_in_sync * plan.accumulate)  # of what counts once per step

    def gradients_of(features: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            logits = tf.cast(model(features, training=True), tf.float32)
            losses = cross_entropy(labels, logits, plan.label_smoothing)
            # The optimizer sums gradients over replicas: a mean over the global batch makes that right.
            loss = tf.reduce_sum(losses) / plan.global_batch
            extra = [plan.l2 * tf.nn.l2_loss(variable.value) for variable in decayed] + list(model.losses)
            if extra:
                loss += share * tf.add_n([tf.cast(part, tf.float32) for part in extra])
            scaled = precision.scale_loss(optimizer, loss, plan.policy)
        gradients = tape.gradient(scaled, variables)
        gradients = [
            tf.zeros(variable.shape, variable.dtype) if gradient is None else tf.convert_to_tensor(gradient)
            for gradient, variable in zip(gradients, variables, strict=True)
        ]
        return gradients, counts(losses, logits, labels, tf.ones_like(losses))

    return gradients_of


def _accumulated(gradients_of: Callable[[Any, Any], Any], features: Any, labels: Any, plan: Plan) -> Any:
    """The gradients of a replica's share, taken in `plan.accumulate` parts, one after the other."""
    if plan.accumulate == 1:
        return gradients_of(features, labels)
    parts = [plan.accumulate, -1]
    all_features = tf.reshape(features, tf.concat([parts, tf.shape(features)[1:]], 0))
    all_features = tf.ensure_shape(all_features, [None, None, *features.shape[1:]])
    all_labels = tf.reshape(labels, parts)

    def add_part(index: Any, gradients: Any, counted: Any) -> Any:
        more, sums = gradients_of(all_features[index], all_labels[index])
        return index + 1, [one + two for one, two in zip(gradients, more, strict=True)], counted + sums

    nothing = [tf.zeros(variable.shape, variable.dtype) for variable in plan.model.trainable_variables]
    _, gradients, counted = tf.while_loop(
        lambda index, *_: index < plan.accumulate,
        add_part,
        [tf.constant(0), nothing, tf.zeros(3)],
        parallel_iterations=1,  # else all parts are in memory at the same time
    )
    return gradients, counted


def make_evaluate_step(plan: Plan) -> Callable[[Any], Any]:
    """A compiled step without learning, for batches with weights: (4,) over all replicas.

    Sum of losses (cross-entropy without smoothing), right answers, examples, right among the first five.
    """
    strategy, classes = plan.strategy, plan.classes

    def on_replica(features: Any, labels: Any, weights: Any) -> Any:
        logits = tf.cast(plan.model(features, training=False), tf.float32)
        sums = counts(cross_entropy(labels, logits, 0.0), logits, labels, weights)
        among = tf.cast(tf.math.in_top_k(labels, logits, min(TOP, classes)), tf.float32)
        return tf.concat([sums, [tf.reduce_sum(among * weights)]], 0)

    def step(batch: Any) -> Any:
        sums = strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(on_replica, args=batch), axis=None)
        return tf.cast(sums, tf.float64)

    compiled: Callable[[Any], Any] = tf.function(step, reduce_retracing=True)
    return compiled


def cross_entropy(labels: Any, logits: Any, smoothing: float) -> Any:
    """(batch,) float32; with `smoothing`, that share of a label is spread evenly over all classes."""
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    if not smoothing:
        return losses
    spread = -tf.reduce_mean(tf.nn.log_softmax(logits), axis=-1)
    return (1.0 - smoothing) * losses + smoothing * spread


def counts(losses: Any, logits: Any, labels: Any, weights: Any) -> Any:
    """(3,) float32: sum of losses, right answers, examples, weighted."""
    right = tf.cast(tf.equal(tf.argmax(logits, axis=-1, output_type=labels.dtype), labels), tf.float32)
    return tf.stack([tf.reduce_sum(losses * weights), tf.reduce_sum(right * weights), tf.reduce_sum(weights)])


def _on_all_replicas(strategy: Any, on_replica: Callable[..., None]) -> Callable[[Any], None]:
    def step(batch: Any) -> None:
        strategy.run(on_replica, args=batch)

    compiled: Callable[[Any], None] = tf.function(step, reduce_retracing=True)
    return compiled
