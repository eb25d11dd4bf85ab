"""`dataset.json`: what a folder of TFRecords holds. Written last, so that a folder that has it is whole.

    version      1
    name         of the data set, for people
    classes      names; their order gives the labels from 0
    label_base   what stands in the records for the first class: 0, or 1 in the data sets of older scripts
    image_size   side in pixels that suits the images; null where nothing is known
    augment      whether random crops and flips suit them; null where nothing is known
    skipped      images that were left out because they are broken
    source       a hash of what it was made from; null where that is not known
    splits       "train" and perhaps "validation", each
        examples    records
        per_class   records of each class
        shards      in order, each: file (its name in the folder), examples, size_bytes, sha256

Readers ignore keys that they don't know. Nothing in it depends on when, where or by how many processes it was
made.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tfjob_trainer.errors import UsageError
from tfjob_trainer.files import replace_atomically

VERSION = 1
FILE_NAME = "dataset.json"
TRAIN, VALIDATION = "train", "validation"


@dataclass(frozen=True, slots=True)
class Shard:
    """One file of records."""

    file: str
    examples: int
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Split:
    """The records that are trained on, or those that are held back."""

    examples: int
    per_class: tuple[int, ...]
    shards: tuple[Shard, ...]

    @property
    def size_bytes(self) -> int:
        return sum(shard.size_bytes for shard in self.shards)


@dataclass(frozen=True, slots=True)
class Manifest:
    """What dataset.json says."""

    name: str
    classes: tuple[str, ...]
    splits: Mapping[str, Split]
    label_base: int = 0
    image_size: int | None = None
    augment: bool | None = None
    skipped: int = 0
    source: str | None = None


def write(folder: Path, manifest: Manifest) -> None:
    """Replace dataset.json in `folder`."""
    text = json.dumps({"version": VERSION, **asdict(manifest)}, indent=1, ensure_ascii=False)
    replace_atomically(folder / FILE_NAME, text + "\n")


def read(folder: Path) -> Manifest | None:
    """What dataset.json in `folder` says, None where there is none. Raises UsageError for a foreign file."""
    path = folder / FILE_NAME
    try:
        values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if values["version"] != VERSION:
            raise UsageError(f"{path} has version {values['version']}, this trainer knows version {VERSION}")
        splits = {name: _split(split) for name, split in values["splits"].items()}
        known = {name: values[name] for name in Manifest.__slots__ if name in values}
        return Manifest(**{**known, "classes": tuple(values["classes"]), "splits": splits})
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(
            f"{path} is not a description of a data set ({type(error).__name__}: {error}). "
            f"Remove it and run: tfjob-preprocess --check {folder}"
        ) from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None


def _split(values: Mapping[str, Any]) -> Split:
    shards = tuple(
        Shard(str(shard["file"]), int(shard["examples"]), int(shard["size_bytes"]), str(shard["sha256"]))
        for shard in values["shards"]
    )
    split = Split(int(values["examples"]), tuple(map(int, values["per_class"])), shards)
    if split.examples != sum(shard.examples for shard in shards):
        raise ValueError(f"{split.examples} examples, but its shards have another sum")
    return split


def read_checked(folder: Path) -> Manifest:
    """As `read`, and look at every shard: it has to be there, in the size that it was written with.

    Raises UsageError that names the file and says what to do.
    """
    if not folder.is_dir():
        why = "is not a folder" if folder.exists() else "does not exist"
        raise UsageError(f"the data folder {folder} {why}")
    manifest = read(folder)
    if manifest is None:
        raise UsageError(_no_manifest(folder))
    if not manifest.splits.get(TRAIN, Split(0, (), ())).examples:
        raise UsageError(f"{folder / FILE_NAME} has no examples to train on")
    for split in manifest.splits.values():
        for shard in split.shards:
            _check_file(folder, shard)
    return manifest


def _no_manifest(folder: Path) -> str:
    if any(looks_like_shard(path) for path in folder.iterdir()):
        return f"{folder} has TFRecords but no {FILE_NAME}; run: tfjob-preprocess --check {folder}"
    return (
        f"{folder} has no {FILE_NAME} and no TFRecords: it is not a data set for the trainer. Make one from "
        f"images: tfjob-preprocess --source {folder} --out FOLDER"
    )


def looks_like_shard(path: Path) -> bool:
    """By its name: train-00000-of-01024, x.tfrecord, validation-00000-of-00128.tfrecords."""
    named = path.name.startswith(("train-", "validation-", "val-")) and "-of-" in path.name
    recorded = path.suffix in (".tfrecord", ".tfrecords")
    return (named or recorded) and not path.name.startswith(".")


def _check_file(folder: Path, shard: Shard) -> None:
    path = folder / shard.file
    try:
        size = path.stat().st_size
    except OSError as error:
        raise UsageError(
            f"{path}, a file of this data set, cannot be read ({error.strerror}). "
            "Copy it again, or make the data set again with tfjob-preprocess --restart"
        ) from None
    if size != shard.size_bytes:
        raise UsageError(
            f"{path} has {size} bytes where {FILE_NAME} says {shard.size_bytes}: it was cut off or changed. "
            "Copy it again, or make the data set again with tfjob-preprocess --restart"
        )
