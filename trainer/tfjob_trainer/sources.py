"""Which images a data set is made from: a folder with a sub-folder for each class, a CSV, or the digits.

    folder/CLASS/….jpg              a part of each class is held back for validation
    folder/train/CLASS/….jpg        and folder/val (or validation, test)/CLASS/….jpg: as they are divided there
    list.csv                        path,label[,split]; a path is relative to the CSV's folder
    digits                          scikit-learn's

What is held back, and which shard an image goes to, hangs on its path alone: an image that is added or removed
moves no other one.
"""

import csv
import hashlib
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from tfjob_trainer.errors import UsageError
from tfjob_trainer.manifest import TRAIN, VALIDATION

IMAGE_SUFFIXES = frozenset(
    ".jpg .jpeg .jpe .jfif .png .bmp .gif .webp .tif .tiff .heic .avif".split()
)  # the last ones are not converted, but named as what they are
SPLITS = {
    "train": TRAIN, "training": TRAIN,
    "val": VALIDATION, "valid": VALIDATION, "validation": VALIDATION, "test": VALIDATION,
}  # fmt: skip
DIGITS = "digits"
DIGITS_BYTES = 1000  # of one of them as a JPEG, about
LISTED = 5  # of many, in a message


@dataclass(frozen=True, slots=True)
class Image:
    """An image to be taken up. The path of a digit is its number, below the folder `digits`."""

    path: str  # where it is read from
    name: str  # relative to the source: what is written into its record, and hashed
    label: int
    split: str
    size_bytes: int
    mtime_ns: int

    @property
    def hash(self) -> bytes:
        """Of its name: as good as random, and always the same."""
        return hashlib.sha256(os.fsencode(self.name)).digest()


@dataclass(frozen=True, slots=True)
class Source:
    """All images of a data set, and what is known of it."""

    name: str
    classes: tuple[str, ...]
    images: tuple[Image, ...]
    passed_over: Counter[str]  # files of other kinds, by suffix
    image_size: int | None = None
    augment: bool | None = None


def read(source: str, held_back: float) -> Source:
    """The images of `source`: a folder, a CSV file, or the word "digits".

    `held_back` is the part of each class for validation where the source does not divide it. Raises UsageError
    with the file and what to do.
    """
    path = Path(source).expanduser().absolute()
    if source == DIGITS and not path.exists():
        return _digits()
    if path.is_file():
        found = _from_csv(path)
    elif path.is_dir():
        found = _from_folder(path)
    else:
        raise UsageError(
            f"--source {source}: there is no such folder or file, and it is not the word {DIGITS}"
        )
    _check(found, path)
    if not any(image.split == VALIDATION for image in found.images):
        found = replace(found, images=tuple(hold_back(found.images, held_back)))
    return found


def hold_back(images: Iterable[Image], part: float) -> Iterator[Image]:
    """The same images; `part` of each class, chosen by their hashes, for validation."""
    by_class: dict[int, list[Image]] = {}
    for image in images:
        by_class.setdefault(image.label, []).append(image)
    for members in by_class.values():
        members.sort(key=lambda image: image.hash)
        # At least one where any is wanted, and never the last one for training.
        count = min(math.ceil(len(members) * part), len(members) - 1)
        for index, image in enumerate(members):
            yield replace(image, split=VALIDATION) if index < count else image


def _check(found: Source, path: Path) -> None:
    if not found.images:
        raise UsageError(
            f"{path} holds no images (files that end in {', '.join(sorted(IMAGE_SUFFIXES)[:4])}, …)"
        )
    if len(found.classes) < 2:
        raise UsageError(
            f"{path} has images of one class only ({found.classes[0]}); two or more are needed. "
            "A folder has to have a sub-folder for each class"
        )
    trained = {image.label for image in found.images if image.split == TRAIN}
    missing = [name for label, name in enumerate(found.classes) if label not in trained]
    if missing:
        raise UsageError(f"no images to train on for: {_some(missing)}. Add some, or remove these classes")


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:LISTED])
    return f"{shown} and {len(names) - LISTED} more" if len(names) > LISTED else shown


# ---- A folder.


def _from_folder(root: Path) -> Source:
    tops = _folders(root)
    divided = {SPLITS[name.lower()]: path for name, path in tops.items() if name.lower() in SPLITS}
    if TRAIN not in divided:
        divided = {TRAIN: root}
    elif set(tops) != {path.name for path in divided.values()}:
        others = sorted(set(tops) - {path.name for path in divided.values()})
        raise UsageError(
            f"{root} is divided into {' and '.join(sorted(path.name for path in divided.values()))}, but also has "
            f"{_some(others)}: move these out of it"
        )
    classes = tuple(sorted(_folders(divided[TRAIN])))
    if not classes:
        raise UsageError(
            f"{divided[TRAIN]} has no sub-folders: it has to have one for each class, with its images"
        )
    labels = {name: label for label, name in enumerate(classes)}
    wanted: list[tuple[Path, int, str]] = []
    for split, folder in divided.items():
        found = _folders(folder)
        unknown = sorted(set(found) - set(labels))
        if unknown:
            raise UsageError(f"{folder} has classes that {divided[TRAIN]} does not have: {_some(unknown)}")
        wanted += [(found[name], labels[name], split) for name in sorted(found)]
    return _listed(root, classes, wanted)


def _listed(root: Path, classes: tuple[str, ...], wanted: Sequence[tuple[Path, int, str]]) -> Source:
    """The images of all classes' folders: (folder, label, split) each."""
    images: list[Image] = []
    passed_over: Counter[str] = Counter()
    with ThreadPoolExecutor(16) as threads:  # each look at a file waits for the file system
        listed = threads.map(lambda place: _images(root, *place), wanted)
        for (path, _, _), (members, others) in zip(wanted, listed, strict=True):
            if not members:
                raise UsageError(f"{path} holds no images. Remove it if it is not a class")
            images += members
            passed_over += others
    return Source(root.name, classes, tuple(images), passed_over)


def _folders(path: Path) -> dict[str, Path]:
    try:
        return {
            entry.name: path / entry.name
            for entry in os.scandir(path)
            if _visible(entry.name) and entry.is_dir()
        }
    except OSError as error:
        raise UsageError(f"cannot read the folder {path}: {error.strerror}") from None


def _visible(name: str) -> bool:
    return not name.startswith((".", "__MACOSX"))


def _images(root: Path, folder: Path, label: int, split: str) -> tuple[list[Image], Counter[str]]:
    """The images below a class's folder, and what else is there by suffix."""
    found: list[Image] = []
    others: Counter[str] = Counter()

    def refuse(error: OSError) -> None:
        raise UsageError(f"cannot read the folder {error.filename}: {error.strerror}") from None

    for where, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = sorted(filter(_visible, folders))
        for name in sorted(filter(_visible, files)):
            suffix = os.path.splitext(name)[1].lower()  # noqa: PTH122 - a million of them: no Path for each
            if suffix not in IMAGE_SUFFIXES:
                others[suffix or "(none)"] += 1
                continue
            path = f"{where}/{name}"
            found.append(_image(path, os.path.relpath(path, root), label, split, path))
    return found, others


def _image(path: str, name: str, label: int, split: str, told: str) -> Image:
    try:
        status = os.stat(path)  # noqa: PTH116 - as above
    except OSError as error:
        raise UsageError(f"{told}: cannot be read: {error.strerror}") from None
    return Image(path, name, label, split, status.st_size, status.st_mtime_ns)


# ---- A CSV.


def _from_csv(path: Path) -> Source:
    rows = list(_rows(path))
    if (
        rows
        and not Path(path.parent, rows[0][1]).exists()
        and rows[0][2].lower() in ("label", "class", "target")
    ):
        rows = rows[1:]  # a header
    names = {label for _, _, label, _ in rows}
    numbers = all(name.isdecimal() for name in names)
    classes = tuple(sorted(names, key=int) if numbers else sorted(names))
    labels = {name: label for label, name in enumerate(classes)}
    images = tuple(
        _image(
            str(path.parent / file), file, labels[label], split, f"{path}, line {line}: {path.parent / file}"
        )
        for line, file, label, split in rows
    )
    doubled = [name for name, count in Counter(image.name for image in images).items() if count > 1]
    if doubled:
        raise UsageError(f"{path} has files more than once: {_some(doubled)}")
    return Source(path.stem, classes, images, Counter())


def _rows(path: Path) -> Iterator[tuple[int, str, str, str]]:
    """(Line, file, label, split) of each row."""
    try:
        with path.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
            reader = csv.reader(file)
            for row in reader:
                cells = [cell.strip() for cell in row]
                if not any(cells):
                    continue
                split = SPLITS.get(cells[2].lower(), "") if len(cells) == 3 and cells[2] else TRAIN
                header = reader.line_num == 1 and len(cells) == 3 and not split
                if len(cells) not in (2, 3) or not cells[0] or not cells[1] or not (split or header):
                    raise UsageError(
                        f"{path}, line {reader.line_num}: {','.join(row)[:80]!r} is not path,label or "
                        "path,label,split (train or validation)"
                    )
                yield reader.line_num, cells[0], cells[1], split
    except (OSError, csv.Error) as error:
        raise UsageError(f"cannot read {path}: {error}") from None


# ---- The digits.


def _digits() -> Source:
    from tfjob_trainer import handwritten  # brings NumPy

    loaded = handwritten.load()
    held = set(loaded.held.tolist())
    images = tuple(
        Image(
            f"{DIGITS}/{index}",
            f"{DIGITS}/{index}",
            int(label),
            VALIDATION if index in held else TRAIN,
            DIGITS_BYTES,
            0,
        )
        for index, label in enumerate(loaded.labels)
    )
    # A mirrored digit is another one, or none.
    return Source(DIGITS, handwritten.CLASSES, images, Counter(), image_size=32, augment=False)
