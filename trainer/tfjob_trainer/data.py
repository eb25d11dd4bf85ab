"""What is trained on. The order of the examples is a pure function of seed and epoch.

So nothing about the position in the data has to be saved: a run that goes on at step s of epoch e takes the
batches that it would have taken without the break.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

VALIDATION_EXAMPLES = 297
_SPLIT_SEED = 20_240_101  # which examples are held back does not depend on the run's seed


class Data(Protocol):
    """Examples of one training, as the engine takes them."""

    @property
    def name(self) -> str: ...
    @property
    def training_examples(self) -> int: ...
    @property
    def validation_examples(self) -> int: ...

    def training(self, epoch: int, first_step: int, global_batch: int, context: Any) -> Any:
        """Batches of (features, labels) for one input pipeline, from `first_step` of `epoch` to its end.

        `context` is TensorFlow's InputContext: a batch holds what one replica takes in one step.
        """

    def validation(self, global_batch: int, context: Any) -> Any:
        """Batches of (features, labels, weights); weight 0 marks padding of the last batch."""


def order(seed: int, epoch: int, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The permutation of `count` examples in `epoch`."""
    return np.random.default_rng([seed, epoch]).permutation(count)


@dataclass(frozen=True, slots=True)
class InMemory:
    """A data set small enough to be held in memory: features (n, …) float32, labels (n,) int32."""

    name: str
    features: np.ndarray[Any, np.dtype[np.float32]]
    labels: np.ndarray[Any, np.dtype[np.int32]]
    held_features: np.ndarray[Any, np.dtype[np.float32]]
    held_labels: np.ndarray[Any, np.dtype[np.int32]]
    seed: int

    @property
    def training_examples(self) -> int:
        return len(self.labels)

    @property
    def validation_examples(self) -> int:
        return len(self.held_labels)

    def training(self, epoch: int, first_step: int, global_batch: int, context: Any) -> Any:
        """Batches (per replica, 8, 8, 1) and (per replica,); an incomplete last batch is left out."""
        steps = self.training_examples // global_batch
        chosen = order(self.seed, epoch, self.training_examples)[
            first_step * global_batch : steps * global_batch
        ]
        return _batches((self.features[chosen], self.labels[chosen]), global_batch, context)

    def validation(self, global_batch: int, context: Any) -> Any:
        """As `training`, in a fixed order, with weights (per replica,): 1, and 0 for padding."""
        count = self.validation_examples
        padded = -(-count // global_batch) * global_batch
        chosen = np.arange(padded) % count
        weights = (np.arange(padded) < count).astype(np.float32)
        return _batches(
            (self.held_features[chosen], self.held_labels[chosen], weights), global_batch, context
        )


def _batches(arrays: tuple[Any, ...], global_batch: int, context: Any) -> Any:
    """The share of this input pipeline, in batches for one replica."""
    per_replica = context.get_per_replica_batch_size(global_batch)
    dataset = tf.data.Dataset.from_tensor_slices(arrays).batch(per_replica, drop_remainder=True)
    return dataset.shard(context.num_input_pipelines, context.input_pipeline_id).prefetch(2)


def digits(seed: int) -> Data:
    """scikit-learn's 1797 images of handwritten digits, (8, 8, 1) in [0, 1]: 1500 to train, 297 held back."""
    from sklearn.datasets import load_digits

    loaded = load_digits()
    images = (loaded.images / 16.0).astype(np.float32)[..., np.newaxis]
    labels = loaded.target.astype(np.int32)
    mixed = np.random.default_rng(_SPLIT_SEED).permutation(len(labels))
    held, kept = mixed[:VALIDATION_EXAMPLES], mixed[VALIDATION_EXAMPLES:]
    return InMemory("digits", images[kept], labels[kept], images[held], labels[held], seed)


def load(model: str, seed: int) -> Data:
    """The data that the model of this name is trained on."""
    return {"digits": digits}[model](seed)
