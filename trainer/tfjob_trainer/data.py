"""What is trained on. The order of the examples is a pure function of seed and epoch.

So nothing about the position in the data has to be saved: a run that goes on at step s of epoch e takes the
batches that it would have taken without the break.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from tfjob_trainer import handwritten
from tfjob_trainer.errors import TrainerError


@dataclass(frozen=True, slots=True)
class ImageForm:
    """What a batch of features holds, for `models.build`."""

    shape: tuple[int, int, int]  # height, width, channels
    classes: int
    raw: bool  # True: uint8, 0 to 255, which the model brings into its range; False: float32 in [0, 1]


class Data(Protocol):
    """Examples of one training, as the engine takes them.

    An epoch has `training_examples // global_batch` steps on every worker, whatever is broken in the files.
    """

    @property
    def name(self) -> str: ...
    @property
    def form(self) -> ImageForm: ...
    @property
    def training_examples(self) -> int: ...
    @property
    def validation_examples(self) -> int:
        """0 where nothing is held back: `validation` then has no batches."""

    @property
    def broken_records(self) -> int:
        """How many broken records this process has passed over so far (with `skip_broken`)."""

    def training(self, epoch: int, first_step: int, global_batch: int, context: Any) -> Any:
        """Batches of (features, labels) for one input pipeline, from `first_step` of `epoch` to its end.

        `context` is TensorFlow's InputContext: a batch holds what one replica takes in one step. On a worker
        the steps do not depend on what other workers have; going on with another number of workers in the
        middle of an epoch takes other examples for the rest of it.
        """

    def validation(self, global_batch: int, context: Any, split: str = "validation") -> Any:
        """Batches of (features, labels, weights); weight 0 marks padding.

        Over all workers and replicas every example comes once; every replica gets the same number of batches.
        `split` "train": what is trained on, in the same way.
        """

    def explain(self, error: Exception, step: int) -> TrainerError | None:
        """What `error` means, where it came from the batches opened last in this process; None: not from here.

        `step` is that of the batch that could not be had, counted as in `training` (in validation: from 0).
        """


@dataclass(frozen=True, slots=True)
class DataOptions:
    """What to train on, and how it is brought into form."""

    seed: int
    folder: Path | None = None  # of a data set with dataset.json (--data-dir); None: digits, held in memory
    image_size: int | None = None  # side in pixels (--image-size); None: what the data set says, else 224
    augment: bool | None = None  # random crop and flip; None: what the data set says, else yes
    skip_broken: bool = False  # pass over broken records and count them, where they would end the run


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
    def form(self) -> ImageForm:
        height, width, channels = self.features.shape[1:]
        return ImageForm((height, width, channels), int(self.labels.max()) + 1, raw=False)

    @property
    def training_examples(self) -> int:
        return len(self.labels)

    @property
    def validation_examples(self) -> int:
        return len(self.held_labels)

    @property
    def broken_records(self) -> int:
        return 0

    def explain(self, error: Exception, step: int) -> TrainerError | None:
        """Nothing in memory is broken."""
        return None

    def training(self, epoch: int, first_step: int, global_batch: int, context: Any) -> Any:
        """Batches (per replica, 8, 8, 1) and (per replica,); an incomplete last batch is left out."""
        steps = self.training_examples // global_batch
        chosen = order(self.seed, epoch, self.training_examples)[
            first_step * global_batch : steps * global_batch
        ]
        return _batches((self.features[chosen], self.labels[chosen]), global_batch, context)

    def validation(self, global_batch: int, context: Any, split: str = "validation") -> Any:
        """As `training`, in a fixed order, with weights (per replica,): 1, and 0 for padding."""
        held = split == "validation"
        features, labels = (self.held_features, self.held_labels) if held else (self.features, self.labels)
        count = len(labels)
        padded = -(-count // global_batch) * global_batch
        chosen = np.arange(padded) % count
        weights = (np.arange(padded) < count).astype(np.float32)
        return _batches((features[chosen], labels[chosen], weights), global_batch, context)


def _batches(arrays: tuple[Any, ...], global_batch: int, context: Any) -> Any:
    """The share of this input pipeline, in batches for one replica."""
    per_replica = context.get_per_replica_batch_size(global_batch)
    dataset = tf.data.Dataset.from_tensor_slices(arrays).batch(per_replica, drop_remainder=True)
    return dataset.shard(context.num_input_pipelines, context.input_pipeline_id).prefetch(2)


def digits(seed: int) -> Data:
    """scikit-learn's 1797 images of handwritten digits, (8, 8, 1) in [0, 1]: 1500 to train, 297 held back."""
    loaded = handwritten.load()
    images = (loaded.images / 16.0).astype(np.float32)[..., np.newaxis]
    labels = loaded.labels.astype(np.int32)
    kept, held = loaded.kept, loaded.held
    return InMemory("digits", images[kept], labels[kept], images[held], labels[held], seed)


def open_data(options: DataOptions) -> Data:
    """The data that `options` ask for. Raises UsageError where the folder does not hold what it should."""
    if options.folder is None:
        return digits(options.seed)
    from tfjob_trainer import pipeline

    return pipeline.open_records(options)
