"""Small data sets of TFRecords, made in a child process (this module needs TensorFlow)."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from tfjob_trainer import manifest, records

CLASSES = tuple("abcde")


def record(number: int, classes: int = len(CLASSES)) -> bytes:
    """A record whose image is as grey as its number says."""
    pixels = np.full((12, 16, 3), number % 256, np.uint8)
    return records.make(
        tf.io.encode_jpeg(pixels).numpy(),
        height=12,
        width=16,
        channels=3,
        label=number % classes,
        text=CLASSES[number % classes].encode(),
        filename=b"%d.jpg" % number,
    )


def make(folder: Path, train: list[int], validation: list[int]) -> None:
    """A data set with so many records in each shard, numbered in their order."""
    folder.mkdir()
    splits = {}
    for name, sizes in (("train", train), ("validation", validation)):
        shards, number = [], 0
        for index, size in enumerate(sizes):
            path = folder / f"{name}-{index:05}-of-{len(sizes):05}.tfrecord"
            shards.append(write(path, [record(number + place) for place in range(size)]))
            number += size
        splits[name] = manifest.Split(number, (0,) * len(CLASSES), tuple(shards))
    described = manifest.Manifest("small", CLASSES, splits, image_size=16, augment=False)
    manifest.write(folder, described)


def write(path: Path, data: list[bytes]) -> manifest.Shard:
    """A shard with these records."""
    with tf.io.TFRecordWriter(str(path)) as writer:
        for one in data:
            writer.write(one)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return manifest.Shard(path.name, len(data), path.stat().st_size, digest)


def change(folder: Path, file: str, data: bytes) -> None:
    """Put other bytes into a shard, and their number into dataset.json."""
    (folder / file).write_bytes(data)
    described = manifest.read(folder)
    assert described
    splits = {
        name: replace(
            split,
            shards=tuple(
                replace(shard, size_bytes=len(data)) if shard.file == file else shard
                for shard in split.shards
            ),
        )
        for name, split in described.splits.items()
    }
    manifest.write(folder, replace(described, splits=splits))


def context(pipelines: int = 1, pipeline: int = 0, replicas: int = 1) -> Any:
    """What TensorFlow tells a worker; `replicas` on each."""
    return tf.distribute.InputContext(pipelines, pipeline, pipelines * replicas)
