"""The TFRecords that ImageNet has come in since the Inception models, and what can be wrong in one.

    image/encoded        the file's bytes, a JPEG
    image/format         "JPEG"
    image/colorspace     "RGB", "Grayscale"
    image/channels       3, 1
    image/height, image/width   in pixels
    image/class/label    the label, from dataset.json's label_base
    image/class/text     the class's name
    image/filename       where it came from, relative to the source

The trainer reads image/encoded and image/class/label; the others are for other programs.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf

ENCODED, LABEL, TEXT = "image/encoded", "image/class/label", "image/class/text"
FRAME_BYTES = 16  # of a record besides its data: length, its checksum, checksum of the data
NO_LABEL = -(2**31)


class BrokenRecordError(Exception):
    """A record that cannot be used; the message says why."""


class BrokenShardError(Exception):
    """A file that cannot be read on from `offset`, in record `index` (from 0)."""

    def __init__(self, path: Path, index: int, offset: int, why: str) -> None:
        super().__init__(f"{path}: record {index} at offset {offset}: {why}")
        self.index = index


def make(
    encoded: bytes, *, height: int, width: int, channels: int, label: int, text: bytes, filename: bytes
) -> bytes:
    """A record as it is written: the same bytes for the same values."""
    values: dict[str, bytes | int] = {
        ENCODED: encoded,
        "image/format": b"JPEG",
        "image/colorspace": b"Grayscale" if channels == 1 else b"RGB",
        "image/channels": channels,
        "image/height": height,
        "image/width": width,
        LABEL: label,
        TEXT: text,
        "image/filename": filename,
    }
    feature = {name: _feature(value) for name, value in values.items()}
    example = tf.train.Example(features=tf.train.Features(feature=feature))
    return bytes(example.SerializePartialToString(deterministic=True))


def _feature(value: bytes | int) -> Any:
    if isinstance(value, bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))


def parse(record: Any) -> tuple[Any, Any]:
    """In a graph: a record → (bytes of the image, label int32 as it stands there)."""
    features = tf.io.parse_single_example(
        record,
        {
            ENCODED: tf.io.FixedLenFeature([], tf.string),
            LABEL: tf.io.FixedLenFeature([], tf.int64),
        },
    )
    return features[ENCODED], tf.cast(features[LABEL], tf.int32)


def check(record: bytes, classes: int, label_base: int, *, decode: bool = True) -> tuple[int, bytes]:
    """(Label from 0, class text or b"") of a good record. Raises BrokenRecordError for another one."""
    try:
        feature = tf.train.Example.FromString(record).features.feature
    except Exception as error:  # noqa: BLE001 - protobuf's implementations differ in what they raise
        raise BrokenRecordError(f"is not a tf.train.Example ({error})") from None
    labels: list[int] = list(feature[LABEL].int64_list.value) if LABEL in feature else []
    images: list[bytes] = list(feature[ENCODED].bytes_list.value) if ENCODED in feature else []
    if len(labels) != 1 or len(images) != 1:
        missing = ENCODED if len(images) != 1 else LABEL
        raise BrokenRecordError(f"has no {missing}: it is not in the layout of ImageNet")
    label = labels[0] - label_base
    if not 0 <= label < classes:
        raise BrokenRecordError(
            f"has label {labels[0]}, where the {classes} classes have {label_base} to {label_base + classes - 1}"
        )
    if decode:
        check_image(images[0])
    texts: list[bytes] = list(feature[TEXT].bytes_list.value) if TEXT in feature else []
    return label, texts[0] if texts else b""


def check_image(encoded: bytes) -> Any:
    """The decoded image, (height, width, 3) uint8, of what training can decode. Raises BrokenRecordError."""
    try:
        return tf.io.decode_jpeg(encoded, channels=3)
    except tf.errors.OpError as error:
        raise BrokenRecordError(f"has no JPEG that can be decoded ({short(error)})") from None


def short(error: Exception) -> str:
    """TensorFlow's message without where in the graph it came from."""
    text = str(error).split("}} ", 1)[-1].split("\n", 1)[0]
    return text.split(" [Op:", 1)[0].strip()


def scan(path: Path) -> Iterator[tuple[int, bytes]]:
    """(Offset, data) of each record, checksums checked. Raises BrokenShardError where it cannot go on."""
    offset = index = 0
    try:
        for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
            yield offset, record
            offset += len(record) + FRAME_BYTES
            index += 1
    except tf.errors.OpError as error:
        raise BrokenShardError(path, index, offset, short(error)) from None


def offset_of(path: Path, index: int) -> int:
    """Where record `index` of a file begins, by the lengths of those before it."""
    offset = 0
    with path.open("rb") as file:
        for _ in range(index):
            file.seek(offset)
            (length,) = struct.unpack("<Q", file.read(8))
            offset += length + FRAME_BYTES
    return offset
