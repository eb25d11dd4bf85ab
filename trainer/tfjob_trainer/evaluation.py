"""The part of `tfjob-evaluate` that needs TensorFlow: model, data, and the sums over all replicas."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from tfjob_trainer import data, models
from tfjob_trainer.data import Data, DataOptions
from tfjob_trainer.devices import Devices, open_devices
from tfjob_trainer.errors import TrainerError, UsageError
from tfjob_trainer.evaluate import BATCH_SIZE, BEST_FILE, LAST_FILE, Options
from tfjob_trainer.log import say

TOP = 5


def run(folder: Path, settings: Mapping[str, Any], options: Options) -> dict[str, Any]:
    """The figures for evaluation.json. `settings` are the run's, from run.json."""
    devices = open_devices(options.device, None)
    examples = data.open_data(_data_options(settings, options))
    count = examples.validation_examples if options.split == "validation" else examples.training_examples
    if not count:
        raise UsageError(
            f"the data set {examples.name} has nothing held back; evaluate another: --data-dir, --split"
        )
    with devices.strategy.scope():
        model, source = load(folder, settings, examples, options.which)
    _check_output(model, examples, source)
    batch = _batch_size(settings, options, devices)
    say(f"devices: {devices.description}; model {source}; {count} examples of {examples.name}, batch {batch}")
    sums = _sum(model, examples, devices, batch, options.split)
    return {
        "model": source,
        "data": {
            "name": examples.name,
            "folder": _folder(settings, options),
            "split": options.split,
            "image_size": examples.form.shape[0],
        },
        "count": int(sums[3]),
        "broken": examples.broken_records,
        "loss": sums[0] / sums[3],
        "top1": sums[1] / sums[3],
        "top5": sums[2] / sums[3] if examples.form.classes > TOP else None,
        "precision": model.dtype_policy.name,
        "devices": devices.description,
        "batch_size": batch,
    }


def _folder(settings: Mapping[str, Any], options: Options) -> Path | None:
    chosen = options.data_dir or settings.get("data_dir")
    return Path(chosen).expanduser().absolute() if chosen else None


def _data_options(settings: Mapping[str, Any], options: Options) -> DataOptions:
    return DataOptions(
        seed=settings.get("seed", 0),
        folder=_folder(settings, options),
        image_size=settings.get("image_size"),
        augment=settings.get("augment"),
        skip_broken=options.skip_broken,
    )


def _batch_size(settings: Mapping[str, Any], options: Options, devices: Devices) -> int:
    """What was asked for, or the run's; the next number that the replicas can share."""
    wanted = options.batch_size or settings.get("batch_size") or BATCH_SIZE
    return -(-int(wanted) // devices.replicas) * devices.replicas


def load(folder: Path, settings: Mapping[str, Any], examples: Data, which: str) -> tuple[Any, Path]:
    """The model of a run and the file it came from: an exported one, else the latest checkpoint."""
    names = (BEST_FILE, LAST_FILE) if which == "best" else (LAST_FILE,)
    for name in names:
        if (folder / name).exists():
            return _exported(folder / name, settings, examples), folder / name
    latest = tf.train.latest_checkpoint(str(folder / "checkpoints"))
    if latest is None:
        raise UsageError(f"{folder} has neither a model ({', '.join(names)}) nor a checkpoint yet")
    model = _built(settings, examples)
    try:
        tf.train.Checkpoint(model=model).restore(latest).assert_existing_objects_matched().expect_partial()
    except (AssertionError, ValueError, tf.errors.OpError) as error:
        raise TrainerError(
            f"the checkpoint {latest} cannot be loaded: {str(error).splitlines()[0]}"
        ) from error
    return model, Path(latest)


def _exported(path: Path, settings: Mapping[str, Any], examples: Data) -> Any:
    try:
        if ":" in settings.get("model", ""):  # a user's own can have layers that only its module knows
            model = _built(settings, examples)
            model.load_weights(path)
            return model
        return keras.saving.load_model(path, compile=False)
    except (ValueError, TypeError, OSError) as error:
        raise TrainerError(f"the model {path} cannot be loaded: {str(error).splitlines()[0]}") from error


def _built(settings: Mapping[str, Any], examples: Data) -> Any:
    name = settings.get("model")
    if not name:
        raise UsageError("run.json does not say which model was trained; it cannot be built again")
    return models.build(name, settings.get("seed", 0), settings.get("precision", "float32"), examples.form)


def _check_output(model: Any, examples: Data, source: Path) -> None:
    """Do model and data belong together? Raises UsageError."""
    shape = getattr(model, "output_shape", None)
    if isinstance(shape, tuple) and shape[-1] != examples.form.classes:
        raise UsageError(
            f"{source} tells {shape[-1]} classes apart, but the data set {examples.name} has {examples.form.classes}"
        )
    wanted = getattr(model, "input_shape", None)
    if isinstance(wanted, tuple) and tuple(wanted[1:]) != examples.form.shape:
        raise UsageError(f"{source} takes images of {wanted[1:]}, but the data gives {examples.form.shape}")


def _sum(model: Any, examples: Data, devices: Devices, batch: int, split: str) -> list[float]:
    """[sum of losses, right at once, right among five, examples]."""
    strategy = devices.strategy
    batches = strategy.distribute_datasets_from_function(
        lambda context: examples.validation(batch, context, split)
    )
    step = _make_step(model, strategy)
    sums = tf.zeros(4, tf.float64)
    done = 0
    try:
        for values in batches:
            sums += step(values)
            done += 1
    except tf.errors.OpError as error:
        raise examples.explain(error, done) or error from error
    return [float(value) for value in sums.numpy()]


def _make_step(model: Any, strategy: Any) -> Callable[[Any], Any]:
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

    def on_replica(features: Any, labels: Any, weights: Any) -> Any:
        logits = model(features, training=False)
        losses = loss_of(labels, logits)
        first = tf.cast(tf.equal(tf.argmax(logits, -1, output_type=labels.dtype), labels), tf.float32)
        among = tf.cast(tf.math.in_top_k(labels, logits, TOP), tf.float32)
        # Padding has no weight, but its loss can be anything.
        counted = [tf.where(weights > 0, value * weights, 0.0) for value in (losses, first, among, weights)]
        return tf.stack([tf.reduce_sum(value) for value in counted])

    def step(batch: Any) -> Any:
        sums = strategy.run(on_replica, args=batch)
        return tf.cast(strategy.reduce(tf.distribute.ReduceOp.SUM, sums, axis=None), tf.float64)

    compiled: Callable[[Any], Any] = tf.function(step, reduce_retracing=True)
    return compiled
