"""TFRecords as a stream of batches, in an order that is a pure function of seed, epoch and step.

    order (which records)  →  files read in turn, shuffled by group  →  skip to the step  →  parse, decode only what
    is kept, crop and mirror by (seed, epoch, record)  →  uint8 batches for each replica  →  prefetch

Every record has a number: its place in the row of all records, files in the manifest's order. A broken record
ends the run with the file and the place; with `skip_broken` another of its batch takes its place, so that the
steps stay what they are.
"""

import math
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from tfjob_trainer import images, limits, manifest, order, records
from tfjob_trainer.data import DataOptions, ImageForm
from tfjob_trainer.errors import TrainerError, UsageError
from tfjob_trainer.log import complain
from tfjob_trainer.manifest import TRAIN, VALIDATION, Manifest, Shard, Split

IMAGE_SIZE = 224
READ_BYTES = 1 << 20
SHUFFLE_RECORDS = 8192
SHUFFLE_BYTES = 512 << 20
TOLD = 10  # broken records that are named; the others are counted
PADDING = -1  # in place of a record's number


def open_records(options: DataOptions) -> "Records":
    """The data set in `options.folder`, from its dataset.json; every shard is looked at, none is read.

    Raises UsageError that names the file: no such folder, no dataset.json, a shard missing or of another size.
    """
    if options.folder is None:
        raise UsageError("no data folder was given")
    folder = options.folder.expanduser().absolute()
    described = manifest.read_checked(folder)
    size = options.image_size or described.image_size or IMAGE_SIZE
    augment = described.augment is not False if options.augment is None else options.augment
    return Records(folder, described, options.seed, size, augment, options.skip_broken)


@dataclass(frozen=True, slots=True)
class Opened:
    """The batches that were opened last in this process."""

    split: str
    shuffled: bool  # for training: by the seed, and without what does not fill a batch
    epoch: int
    first_step: int
    pipeline_batch: int  # records that this worker takes in a step
    pipelines: int
    pipeline: int


@dataclass(slots=True)
class Records:
    """A data set of TFRecords (a `data.Data`). Batches: uint8 (n, size, size, 3) and int32 (n,)."""

    folder: Path
    manifest: Manifest
    seed: int
    size: int
    augment: bool
    skip_broken: bool
    opened: Opened | None = None
    _broken: set[tuple[str, int]] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def name(self) -> str:
        return self.manifest.name

    @property
    def form(self) -> ImageForm:
        return ImageForm((self.size, self.size, 3), len(self.manifest.classes), raw=True)

    @property
    def training_examples(self) -> int:
        return self.split(TRAIN).examples

    @property
    def validation_examples(self) -> int:
        return self.split(VALIDATION).examples

    @property
    def broken_records(self) -> int:
        return len(self._broken)

    def split(self, name: str) -> Split:
        """The split of this name; an empty one where the data set has none."""
        return self.manifest.splits.get(name, Split(0, (), ()))

    def training(self, epoch: int, first_step: int, global_batch: int, context: Any) -> Any:
        """As in `data.Data`; an incomplete last batch is left out."""
        self.opened = _opened(TRAIN, True, epoch, first_step, global_batch, context)
        replicas = context.num_replicas_in_sync // context.num_input_pipelines
        steps = self.training_examples // global_batch - first_step
        dataset = self._stream(self.opened).map(
            self._decoder(epoch), num_parallel_calls=tf.data.AUTOTUNE, deterministic=True
        )
        dataset = dataset.batch(context.get_per_replica_batch_size(global_batch), drop_remainder=True)
        dataset = (
            self._mended(dataset)
            if self.skip_broken
            else dataset.map(lambda image, label, *_: (image, label))
        )
        return self._finished(dataset.take(max(0, steps) * replicas))

    def validation(self, global_batch: int, context: Any, split: str = VALIDATION) -> Any:
        """As in `data.Data`: every record of `split` once, padded to whole batches on all replicas."""
        self.opened = _opened(split, False, 0, 0, global_batch, context)
        per_replica = context.get_per_replica_batch_size(global_batch)
        dataset = self._stream(self.opened).concatenate(_paddings(self._share(self.opened)[1]))
        dataset = dataset.map(self._decoder(None), num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
        dataset = dataset.batch(per_replica, drop_remainder=True)
        return self._finished(dataset.map(lambda *batch: self._weighted(split, *batch)))

    def explain(self, error: Exception, step: int) -> TrainerError | None:
        """As in `data.Data`: reads the records of that step again, to find the one that is broken."""
        if self.opened is None or not isinstance(error, tf.errors.OpError):
            return None
        if isinstance(error, tf.errors.NotFoundError | tf.errors.PermissionDeniedError):
            return TrainerError(f"a file of the data set cannot be read: {records.short(error)}")
        found = self._find_broken(self.opened, step)
        if found is None:
            return None
        return TrainerError(
            f"{found}. Leave broken records out with --skip-broken, or find them all with: "
            f"tfjob-preprocess --check {self.folder}"
        )

    # ---- Reading.

    def _share(self, opened: Opened) -> tuple[tuple[int, int], int]:
        """The records of a worker, from and to (not included) in the epoch's row, and what pads them."""
        total, count = self.split(opened.split).examples, opened.pipelines
        if opened.shuffled:
            return (total * opened.pipeline // count, total * (opened.pipeline + 1) // count), 0
        each = math.ceil(total / (opened.pipeline_batch * count)) * opened.pipeline_batch
        low, high = (min(total, each * number) for number in (opened.pipeline, opened.pipeline + 1))
        return (low, high), each - (high - low)

    def _part(self, opened: Opened) -> order.Part:
        shards = self.split(opened.split).shards
        lengths = np.array([shard.examples for shard in shards], np.int64)
        shuffled = opened.shuffled
        files = order.file_order(self.seed, opened.epoch, len(shards)) if shuffled else np.arange(len(shards))
        (low, high), _ = self._share(opened)
        return order.cut(files, lengths, low, high)

    def _stream(self, opened: Opened) -> Any:
        """(Number, record) from the first step on."""
        part = self._part(opened)
        seeds = order.seeds(self.seed, opened.epoch, len(part.group_sizes()))[1:]
        part, groups, left = order.skip(part, opened.first_step * opened.pipeline_batch)
        buffer = self._shuffle_records() if opened.shuffled else 0
        return self._grouped(self.split(opened.split), part, seeds[groups:], buffer).skip(left)

    def _grouped(self, split: Split, part: order.Part, seeds: order.Ints, buffer: int) -> Any:
        numbers = np.concatenate([[0], np.cumsum([shard.examples for shard in split.shards])]).astype(
            np.int64
        )
        paths = np.array([str(self.folder / shard.file) for shard in split.shards] or [""])[part.files]
        segments = [
            tf.constant(column)
            for column in (paths, part.starts, part.counts, numbers[part.files] + part.starts)
        ]

        def group(first: Any, seed: Any) -> Any:
            # In this graph alone: what others ask of tf.random.set_seed must not change the order.
            tf.compat.v1.set_random_seed(1)
            own = tuple(column[first : first + order.GROUP] for column in segments)
            dataset = tf.data.Dataset.from_tensor_slices(own).interleave(
                self._segment,
                cycle_length=order.GROUP,
                num_parallel_calls=tf.data.AUTOTUNE,
                deterministic=True,
            )
            return dataset.shuffle(buffer, seed=seed, reshuffle_each_iteration=False) if buffer else dataset

        firsts = np.arange(0, len(part.files), order.GROUP, dtype=np.int64)
        # In parallel, though in turn: the next group fills its buffer while this one runs out.
        return tf.data.Dataset.from_tensor_slices((firsts, seeds)).interleave(
            group, cycle_length=1, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True
        )

    def _segment(self, path: Any, start: Any, count: Any, number: Any) -> Any:
        dataset = tf.data.TFRecordDataset(path, buffer_size=READ_BYTES).skip(start)
        if self.skip_broken:  # after a broken frame the rest of the file is lost
            dataset = dataset.ignore_errors().concatenate(tf.data.Dataset.from_tensors("").repeat())
        else:
            dataset = dataset.concatenate(tf.data.Dataset.from_tensors(path).map(_too_few))
        return tf.data.Dataset.zip((tf.data.Dataset.range(number, number + count), dataset))

    def _shuffle_records(self) -> int:
        """How many records are shuffled at a time: three such buffers leave most of the memory free."""
        split = self.split(TRAIN)
        mean = max(1, split.size_bytes // max(1, split.examples))
        return max(
            1, min(SHUFFLE_RECORDS, split.examples, min(SHUFFLE_BYTES, limits.memory_bytes() // 24) // mean)
        )

    # ---- Decoding.

    def _decoder(self, epoch: int | None) -> Any:
        """(Number, record) → (image, label, whether it is good, number); `epoch` None: for validation."""
        base, classes = self.manifest.label_base, len(self.manifest.classes)
        random = epoch is not None and self.augment
        key = int(order.seeds(self.seed, epoch or 0, 0)[0])

        def decode(number: Any, record: Any) -> Any:
            encoded, label = records.parse(record)
            label -= base
            tf.debugging.Assert((label >= 0) & (label < classes), [label, number])
            if random:
                image = images.random_crop(encoded, self.size, tf.stack([tf.constant(key, tf.int64), number]))
            else:
                image = (
                    images.centre(encoded, self.size) if self.augment else images.whole(encoded, self.size)
                )
            return tf.ensure_shape(image, self.form.shape), label, True, number

        def blank(number: Any) -> Any:
            return tf.zeros(self.form.shape, tf.uint8), 0, False, number

        def decode_or_blank(number: Any, record: Any) -> Any:
            one = tf.data.Dataset.from_tensors((number, record)).map(decode).ignore_errors()
            other = tf.data.Dataset.from_tensors(number).map(blank)
            return one.concatenate(other).take(1).get_single_element()

        good = decode_or_blank if self.skip_broken else decode
        if epoch is not None:
            return good
        return lambda number, record: tf.cond(
            number == PADDING, lambda: blank(number), lambda: good(number, record)
        )

    def _mended(self, dataset: Any) -> Any:
        """Batches in which a good example stands in for each broken one."""
        height, width, channels = self.form.shape
        nothing = (tf.zeros([1, height, width, channels], tf.uint8), tf.zeros([1], tf.int32), False)

        def mend(last: Any, batch: Any) -> Any:
            pictures, labels, good, numbers = batch

            def stand_in() -> Any:
                self._note(TRAIN, tf.boolean_mask(numbers, ~good))
                # The last good example of an earlier batch comes first, for a batch without any.
                have = tf.concat([[last[2]], good], 0)
                tf.debugging.Assert(tf.reduce_any(have), ["the first records are all broken"])
                chosen = tf.boolean_mask(tf.range(tf.size(have)), have)
                places = tf.range(tf.size(good))
                spread = tf.gather(chosen, tf.size(chosen) - 1 - places % tf.size(chosen))
                places = tf.where(good, places + 1, spread)
                return (
                    tf.gather(tf.concat([last[0], pictures], 0), places),
                    tf.gather(tf.concat([last[1], labels], 0), places),
                )

            mended = tf.cond(tf.reduce_all(good), lambda: (pictures, labels), stand_in)
            return (mended[0][-1:], mended[1][-1:], True), mended

        return dataset.scan(nothing, lambda last, batch: mend(last, batch))

    def _weighted(self, split: str, pictures: Any, labels: Any, good: Any, numbers: Any) -> Any:
        """A batch of validation with its weights."""
        if self.skip_broken:
            self._note(split, tf.boolean_mask(numbers, ~good & (numbers != PADDING)))
        return pictures, labels, tf.cast(good, tf.float32)

    def _note(self, split: str, numbers: Any) -> None:
        """In a graph: name and count broken records."""
        tf.numpy_function(lambda found: self._tell(split, found), [numbers], [], stateful=True)

    def _tell(self, split: str, numbers: Any) -> None:
        with self._lock:
            fresh = [int(number) for number in numbers if (split, int(number)) not in self._broken]
            for number in fresh:
                self._broken.add((split, number))
                if len(self._broken) <= TOLD:
                    path, index = self.locate(split, number)
                    complain(f"broken, left out: {path}: record {index}")
                if len(self._broken) == TOLD:
                    complain("more broken records are left out and counted without being named")

    def _finished(self, dataset: Any) -> Any:
        options = tf.data.Options()
        options.deterministic = True
        options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
        options.threading.private_threadpool_size = limits.cpus()
        options.threading.max_intra_op_parallelism = 1
        options.autotune.ram_budget = limits.memory_bytes() // 4
        return dataset.prefetch(tf.data.AUTOTUNE).with_options(options)

    # ---- What is broken.

    def locate(self, split: str, number: int) -> tuple[Path, int]:
        """The file of a record, and its place there from 0."""
        for shard in self.split(split).shards:
            if number < shard.examples:
                return self.folder / shard.file, number
            number -= shard.examples
        raise IndexError(f"{split} has no record {number}")

    def _find_broken(self, opened: Opened, step: int) -> str | None:
        """The first broken record from `step` on, in words."""
        stream = self._stream(replace(opened, first_step=step))
        try:
            for number, record in stream.take(2 * opened.pipeline_batch).as_numpy_iterator():
                try:
                    records.check(record, len(self.manifest.classes), self.manifest.label_base)
                except records.BrokenRecordError as error:
                    path, index = self.locate(opened.split, int(number))
                    return f"{path}: record {index} at offset {records.offset_of(path, index)} {error}"
        except tf.errors.OpError:
            part, _, _ = order.skip(self._part(opened), step * opened.pipeline_batch)
            shards = self.split(opened.split).shards
            return self._find_broken_file([shards[number] for number in part.files[: 2 * order.GROUP]])
        return None

    def _find_broken_file(self, shards: list[Shard]) -> str | None:
        for shard in shards:
            path, count = self.folder / shard.file, 0
            try:
                for _ in records.scan(path):
                    count += 1
            except records.BrokenShardError as error:
                return str(error)
            if count < shard.examples:
                return f"{path} has {count} records where {manifest.FILE_NAME} says {shard.examples}"
        return None


def _opened(
    split: str, shuffled: bool, epoch: int, first_step: int, global_batch: int, context: Any
) -> Opened:
    pipelines = context.num_input_pipelines
    number = context.input_pipeline_id
    return Opened(split, shuffled, epoch, first_step, global_batch // pipelines, pipelines, number)


def _paddings(count: int) -> Any:
    return tf.data.Dataset.from_tensors((tf.constant(PADDING, tf.int64), "")).repeat(count)


def _too_few(path: Any) -> Any:
    """In a graph: ends the stream with an error where a file has fewer records than it should."""
    tf.debugging.Assert(False, ["too few records in", path])
    return path
