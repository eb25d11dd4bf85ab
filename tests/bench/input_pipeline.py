"""How fast images reach the training: the trainer's input pipeline ÷ the one that people write first.

    python tests/bench/input_pipeline.py [--pairs N] [--images N]

Both read the same TFRecords, made here from photographs that scikit-learn ships, cut to 500x375 as the mean
image of ImageNet. The naive one reads file after file, decodes whole images one at a time, crops them then, and
prefetches nothing. Between two batches of 64 the reader waits for 40 ms, as for a GPU. The two are measured in
turn; what counts is the median of the pairs' ratios. On two cores it has to be at least 1.4.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_sample_images

from tfjob_trainer import data, manifest, records

WANTED = 1.4
BATCH, STEP_S, SIZE = 64, 0.040, 224
SHARDS, CLASSES = 16, 10
HEIGHT, WIDTH = 375, 500


def main() -> int:
    options = _options()
    with tempfile.TemporaryDirectory(prefix="tfjobtui-bench-") as name:
        folder = Path(name)
        made = make_data(folder, options.images)
        print(
            f"{made.examples} JPEGs, {made.size_bytes / made.examples / 1000:.0f} kB each, {_cores()} cores"
        )
        ratios = []
        for number in range(options.pairs):
            slow = images_per_s(naive(folder), options.images)
            fast = images_per_s(ours(folder, number), options.images)
            ratios.append(fast / slow)
            print(f"naive {slow:.0f} images/s, ours {fast:.0f} images/s: {ratios[-1]:.2f}", flush=True)
    ratio = statistics.median(ratios)
    print(f"ours ÷ naive: median {ratio:.2f} of {len(ratios)} pairs; at least {WANTED} is wanted")
    return 0 if ratio >= WANTED else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--images", type=int, default=1024)
    return parser.parse_args()


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def make_data(folder: Path, count: int) -> manifest.Split:
    """`count` photographs in shards, with dataset.json; their record's layout is ImageNet's."""
    photographs = load_sample_images().images
    random = np.random.default_rng(0)
    shards = []
    for number in range(SHARDS):
        path = folder / f"train-{number:05}-of-{SHARDS:05}.tfrecord"
        mine = range(number, count, SHARDS)
        with tf.io.TFRecordWriter(str(path)) as writer:
            for index in mine:
                writer.write(_record(photographs[index % len(photographs)], index, random))
        shards.append(manifest.Shard(path.name, len(mine), path.stat().st_size, _sha256(path)))
    split = manifest.Split(count, (0,) * CLASSES, tuple(shards))
    classes = tuple(map(str, range(CLASSES)))
    manifest.write(
        folder, manifest.Manifest("photographs", classes, {manifest.TRAIN: split}, image_size=SIZE)
    )
    return split


def _record(photograph: Any, index: int, random: np.random.Generator) -> bytes:
    top = random.integers(photograph.shape[0] - HEIGHT)
    left = random.integers(photograph.shape[1] - WIDTH)
    picture = photograph[top : top + HEIGHT, left : left + WIDTH]
    return records.make(
        tf.io.encode_jpeg(picture, quality=92).numpy(),
        height=HEIGHT,
        width=WIDTH,
        channels=3,
        label=index % CLASSES,
        text=b"",
        filename=f"{index}.jpg".encode(),
    )


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def naive(folder: Path) -> Any:
    """As in many a tutorial."""

    def decode(record: Any) -> Any:
        encoded, label = records.parse(record)
        image = tf.io.decode_jpeg(encoded, channels=3)
        begin, extent, _ = tf.image.sample_distorted_bounding_box(
            tf.shape(image),
            tf.zeros([1, 0, 4]),
            min_object_covered=0.0,
            area_range=(0.08, 1.0),
            use_image_if_no_bounding_boxes=True,
        )
        image = tf.image.resize(tf.slice(image, begin, extent), [SIZE, SIZE])
        return tf.image.random_flip_left_right(tf.ensure_shape(image, [SIZE, SIZE, 3])) / 255.0, label

    options = tf.data.Options()
    options.experimental_optimization.map_parallelization = False
    files = sorted(str(path) for path in folder.glob("train-*"))
    dataset = tf.data.TFRecordDataset(files).shuffle(256, seed=0).map(decode)
    return dataset.batch(BATCH, drop_remainder=True).with_options(options)


def ours(folder: Path, epoch: int) -> Any:
    """As the trainer reads."""
    opened = data.open_data(data.DataOptions(seed=0, folder=folder))
    return opened.training(epoch, 0, BATCH, tf.distribute.InputContext())


def images_per_s(batches: Iterable[Any], count: int) -> float:
    """From the first batch asked for to the last, with a step after each."""
    began = time.perf_counter()
    seen = 0
    for features, _ in batches:
        seen += int(features.shape[0])
        time.sleep(STEP_S)
    if seen != count // BATCH * BATCH:
        raise SystemExit(f"{seen} images came, not {count}")
    return seen / (time.perf_counter() - began)


if __name__ == "__main__":
    sys.exit(main())
