"""The number formats of a run, and what makes float16 safe.

bfloat16 has the range of float32 and needs no care. float16 overflows, so the loss is scaled up and a step
with an overflow is left out. Keras decides that from the gradients of one replica before they are summed:
where only one replica overflows, the weights of all become infinite. `agree_on_overflow` makes them agree.
"""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf


def choose(asked: str, capabilities: Sequence[tuple[int, int]]) -> str:
    """The policy's name. "auto" takes bfloat16 where every GPU has it in hardware, and else float32."""
    if asked != "auto":
        return asked
    fit = bool(capabilities) and all(major >= 8 for major, _minor in capabilities)
    return "mixed_bfloat16" if fit else "float32"


def wrap_optimizer(optimizer: Any, policy: str) -> Any:
    """`optimizer`, with loss scaling where the policy needs it."""
    return keras.optimizers.LossScaleOptimizer(optimizer) if policy == "mixed_float16" else optimizer


def scale_loss(optimizer: Any, loss: Any, policy: str) -> Any:
    """The loss to take gradients of; a scalar."""
    return optimizer.scale_loss(loss) if policy == "mixed_float16" else loss


def agree_on_overflow(gradients: list[Any]) -> list[Any]:
    """Called in a replica: all gradients as NaN if those of any replica have an overflow, else unchanged."""
    finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(gradient)) for gradient in gradients])
    context = tf.distribute.get_replica_context()
    good = context.all_reduce(tf.distribute.ReduceOp.SUM, tf.cast(finite, tf.float32))
    all_good = good >= tf.cast(context.num_replicas_in_sync, tf.float32)
    return [tf.where(all_good, gradient, tf.cast(float("nan"), gradient.dtype)) for gradient in gradients]
