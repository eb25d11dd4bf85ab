"""Optimizers and learning-rate schedules from the options."""

import math
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tfjob_trainer.options import Options


class Schedule(keras.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc]
    """A learning rate that rises in a straight line for `warmup_steps`, then stays, falls by a cosine, or in steps.

    `decay_steps` are the steps at which "step" multiplies it by `decay_rate`.
    """

    def __init__(
        self,
        kind: str,
        peak: float,
        warmup_steps: int,
        total_steps: int,
        decay_steps: Sequence[int] = (),
        decay_rate: float = 0.1,
    ) -> None:
        self.kind = kind
        self.peak = peak
        self.warmup_steps = warmup_steps
        self.total_steps = total_steps
        self.decay_steps = tuple(decay_steps)
        self.decay_rate = decay_rate

    def __call__(self, step: Any) -> Any:
        """The learning rate of the step that comes after `step` steps; float32."""
        done = tf.cast(step, tf.float32)
        rate = tf.constant(self.peak, tf.float32)
        if self.kind == "cosine":
            span = float(max(1, self.total_steps - self.warmup_steps))
            share = tf.clip_by_value((done - self.warmup_steps) / span, 0.0, 1.0)
            rate *= 0.5 * (1.0 + tf.cos(math.pi * share))
        for at in self.decay_steps if self.kind == "step" else ():
            rate = tf.where(done >= float(at), rate * self.decay_rate, rate)
        if self.warmup_steps:
            # The first step already moves: step 0 has the share 1/warmup_steps.
            rising = self.peak * (done + 1.0) / float(self.warmup_steps)
            rate = tf.where(done < float(self.warmup_steps), rising, rate)
        return rate

    def at(self, step: int) -> float:
        """The same in plain numbers: asking TensorFlow takes half a millisecond."""
        rate = self.peak
        if self.warmup_steps and step < self.warmup_steps:
            return self.peak * (step + 1) / self.warmup_steps
        if self.kind == "cosine":
            span = max(1, self.total_steps - self.warmup_steps)
            rate *= 0.5 * (1 + math.cos(math.pi * min(1.0, max(0.0, (step - self.warmup_steps) / span))))
        elif self.kind == "step":
            rate *= self.decay_rate ** sum(step >= at for at in self.decay_steps)
        return rate

    def get_config(self) -> dict[str, Any]:
        """For Keras: the arguments again."""
        names = ("kind", "peak", "warmup_steps", "total_steps", "decay_steps", "decay_rate")
        return {name: getattr(self, name) for name in names}


def peak_rate(options: Options, global_batch: int) -> float:
    """The highest learning rate, for the real batch."""
    if options.learning_rate_batch is None:
        return options.learning_rate
    return options.learning_rate * global_batch / options.learning_rate_batch


def make_schedule(options: Options, global_batch: int, steps_per_epoch: int, total_steps: int) -> Schedule:
    """The schedule that the options ask for."""
    return Schedule(
        options.schedule,
        peak_rate(options, global_batch),
        round(options.warmup_epochs * steps_per_epoch),
        total_steps,
        [round(epoch * steps_per_epoch) for epoch in options.decay_epochs],
        options.decay_rate,
    )


def make_optimizer(options: Options, schedule: Schedule, variables: Sequence[Any]) -> Any:
    """The optimizer, not built yet. SGD's weight decay is part of the loss, as in the published recipe."""
    if options.optimizer == "sgd":
        return keras.optimizers.SGD(schedule, momentum=options.momentum)
    if options.optimizer == "adam":
        return keras.optimizers.Adam(schedule)
    optimizer = keras.optimizers.AdamW(schedule, weight_decay=options.weight_decay)
    decayed = {id(variable) for variable in decayed_variables(variables)}
    optimizer.exclude_from_weight_decay(var_list=[v for v in variables if id(v) not in decayed])
    return optimizer


def decayed_variables(variables: Sequence[Any]) -> list[Any]:
    """Those that weight decay is for: kernels, not biases nor the parameters of a normalisation."""
    return [variable for variable in variables if len(variable.shape) > 1]


def l2_of(options: Options) -> float:
    """The factor of half the sum of squares that is added to the loss; 0 for none."""
    return options.weight_decay if options.optimizer == "sgd" else 0.0
