"""Making a data set of TFRecords, safely against being broken off at any moment.

Every shard is a task of its own: which images it holds hangs on their names alone. A shard is written beside its
place and renamed; then a note of it is written in `.tfjob-preprocess/`. A run that is broken off takes up where
it was: shards whose note still fits are kept. At the end every record is read again, and dataset.json is written
last.
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from tfjob_trainer import limits, manifest, sources
from tfjob_trainer.errors import TrainerError, UsageError
from tfjob_trainer.files import replace_atomically
from tfjob_trainer.log import say
from tfjob_trainer.manifest import TRAIN, VALIDATION, Manifest, Shard, Split
from tfjob_trainer.progress import Progress
from tfjob_trainer.workers import Task, Workers

WORK_FOLDER = ".tfjob-preprocess"
BROKEN_FILE = "broken.txt"
SHARD_BYTES = 128 << 20
READ_IN_TURN = 16  # so many shards at least, as far as there are images for them
SHARD_EXAMPLES = 64
NAMED = 10  # broken files on the screen; all of them stand in BROKEN_FILE
FORMAT = 1  # of what is written for an image: another one makes every shard anew


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked of `tfjob-preprocess`."""

    source: str | None
    out: Path | None
    check: Path | None
    name: str | None
    validation: float
    shards: int | None
    workers: int | None
    skip_broken: bool
    convert_odd: bool
    restart: bool
    label_base: int | None
    quick: bool


@dataclass(frozen=True, slots=True)
class Planned:
    """A shard that is to be, or is there."""

    path: Path
    split: str
    images: tuple[sources.Image, ...]

    @property
    def note(self) -> Path:
        return self.path.parent / WORK_FOLDER / f"{self.path.name}.json"

    def digest(self, convert_odd: bool) -> str:
        """Of everything that decides its bytes."""
        digest = hashlib.sha256(f"{FORMAT} {convert_odd}".encode())
        for image in self.images:
            digest.update(
                f"\0{image.label}\0{image.size_bytes}\0{image.mtime_ns}\0".encode() + os.fsencode(image.name)
            )
        return digest.hexdigest()


def make(options: Options) -> None:
    """Make the data set, or go on with it. Raises TrainerError."""
    assert options.source is not None
    assert options.out is not None
    out = options.out.expanduser().absolute()
    _check_places(options.source, out)
    source = sources.read(options.source, options.validation)
    _say_source(source, options)
    out.mkdir(parents=True, exist_ok=True)
    with _locked(out):
        if options.restart:
            _clear(out)
        planned = plan(source, out, options)
        digest = _digest(planned, options)
        if _is_complete(out, digest, options):
            return
        _clear_litter(out, planned)
        with open_workers(len(planned), options, source.classes) as workers:
            results = _write_all(planned, source, options, workers)
            shards = _read_again(planned, results, source, workers)
        _finish(out, source, shards, results, digest, options)


def _check_places(source: str, out: Path) -> None:
    root = Path(source).expanduser().absolute()
    if root.is_dir() and out.resolve().is_relative_to(root.resolve()):
        raise UsageError(f"--out {out} lies in the source {root}: take a folder outside of it")


def _say_source(source: sources.Source, options: Options) -> None:
    splits = Counter(image.split for image in source.images)
    sizes = Counter(image.label for image in source.images).values()
    total = sum(image.size_bytes for image in source.images)
    say(
        f"{options.source}: {len(source.images)} images ({size_text(total)}) in {len(source.classes)} classes of "
        f"{min(sizes)} to {max(sizes)}; {splits[TRAIN]} to train, {splits[VALIDATION]} for validation"
    )
    if source.passed_over:
        kinds = ", ".join(f"{count} {suffix}" for suffix, count in source.passed_over.most_common(5))
        say(f"passed over, since they are no images by their names: {kinds}")


def size_text(count: float) -> str:
    for unit in ("size_bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "size_bytes" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


@contextlib.contextmanager
def _locked(out: Path) -> Iterator[None]:
    """Keep a second run off the folder, where its file system can lock."""
    (out / WORK_FOLDER).mkdir(exist_ok=True)
    with (out / WORK_FOLDER / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise UsageError(f"another tfjob-preprocess is at work in {out}") from None
        yield


def _clear(out: Path) -> None:
    """Remove what a run of ours has made: the files that dataset.json or the notes name."""
    described = manifest.read(out)
    names = (
        {shard.file for split in described.splits.values() for shard in split.shards} if described else set()
    )
    names |= {note.name.removesuffix(".json") for note in (out / WORK_FOLDER).glob("*.tfrecord.json")}
    (out / manifest.FILE_NAME).unlink(missing_ok=True)  # first: the folder is no data set any more
    for name in sorted(names):
        if Path(name).name == name:
            (out / name).unlink(missing_ok=True)
    for path in (out / WORK_FOLDER).glob("*.json"):
        path.unlink(missing_ok=True)


def _clear_litter(out: Path, planned: Sequence[Planned]) -> None:
    """Remove what a kill in the middle of writing has left, and shards of an earlier plan."""
    for path in out.glob(".*.tfrecord.*.tmp"):
        path.unlink(missing_ok=True)
    wanted = {shard.note for shard in planned}
    for note in set((out / WORK_FOLDER).glob("*.tfrecord.json")) - wanted:
        (out / note.name.removesuffix(".json")).unlink(missing_ok=True)
        note.unlink(missing_ok=True)


def plan(source: sources.Source, out: Path, options: Options) -> list[Planned]:
    """The shards, each with its images in an order that has nothing to do with their classes."""
    kept = _counts_before(out)
    planned = []
    for split in (TRAIN, VALIDATION):
        images = [image for image in source.images if image.split == split]
        count = kept.get(split) or _shard_count(images)
        count = options.shards or count if split == TRAIN else count
        members: list[list[tuple[bytes, sources.Image]]] = [[] for _ in range(count)]
        for image in images:
            members[int.from_bytes(image.hash[:8]) % count].append((image.hash, image))
        for number, pairs in enumerate(members):
            chosen = tuple(image for _, image in sorted(pairs, key=lambda pair: (pair[0], pair[1].name)))
            if chosen:
                planned.append(Planned(out / f"{split}-{number:05}-of-{count:05}.tfrecord", split, chosen))
        kept[split] = count
    replace_atomically(out / WORK_FOLDER / "counts.json", json.dumps(kept))
    return planned


def _counts_before(out: Path) -> dict[str, int]:
    """How many shards an earlier run has begun: with another number all of them would be others."""
    with contextlib.suppress(OSError, ValueError):
        counts: dict[str, int] = json.loads((out / WORK_FOLDER / "counts.json").read_text())
        return counts
    return {}


def _shard_count(images: Sequence[sources.Image]) -> int:
    by_size = -(-sum(image.size_bytes for image in images) // SHARD_BYTES)
    return max(1, by_size, min(READ_IN_TURN, len(images) // SHARD_EXAMPLES))


def _digest(planned: Sequence[Planned], options: Options) -> str:
    digest = hashlib.sha256()
    for shard in planned:
        digest.update(f"{shard.path.name} {shard.digest(options.convert_odd)}\n".encode())
    return digest.hexdigest()


def _is_complete(out: Path, digest: str, options: Options) -> bool:
    """Is the data set made already? Raises UsageError where another one is in the folder."""
    described = manifest.read(out)
    if described is None:
        known = {note.name.removesuffix(".json") for note in (out / WORK_FOLDER).glob("*.tfrecord.json")}
        foreign = [
            path.name for path in out.iterdir() if manifest.looks_like_shard(path) and path.name not in known
        ]
        # A kill between the renaming of a shard and its note leaves a shard without one.
        if foreign and not known and not (out / WORK_FOLDER / "counts.json").exists():
            raise UsageError(f"{out} has TFRecords of another origin ({foreign[0]}): take another --out")
        return False
    shutil.rmtree(
        out / WORK_FOLDER, ignore_errors=True
    )  # nothing is at work in a folder that has dataset.json
    if described.source != digest or (described.skipped and not options.skip_broken):
        raise UsageError(
            f"{out} holds a data set that was made from something else, or with other options. "
            "Take another --out, or --restart to make it anew"
        )
    manifest.read_checked(out)
    say(f"complete already: {totals(described)}; nothing to do")
    return True


def totals(described: Manifest) -> str:
    parts = [
        f"{split.examples} {name} in {len(split.shards)} shards" for name, split in described.splits.items()
    ]
    size = sum(split.size_bytes for split in described.splits.values())
    left_out = f", {described.skipped} left out as broken" if described.skipped else ""
    return f"{', '.join(parts)}, {len(described.classes)} classes, {size_text(size)}{left_out}"


Results = dict[Path, dict[str, Any]]


def _write_all(
    planned: Sequence[Planned], source: sources.Source, options: Options, workers: Workers
) -> Results:
    """Write the shards that are not there yet. Raises TrainerError where images are broken."""
    results = {shard.path: note for shard in planned if (note := _note(shard, options))}
    waiting = [shard for shard in planned if shard.path not in results]
    if results:
        say(f"going on: {len(results)} of {len(planned)} shards are there already")
    if not waiting:
        return results
    _check_room(waiting)
    by_path = {str(shard.path): shard for shard in waiting}
    tasks = [_write_task(shard) for shard in sorted(waiting, key=lambda shard: -len(shard.images))]
    done = sum(len(shard.images) for shard in planned if shard.path in results)
    broken: list[tuple[str, str]] = []
    with Progress("writing", len(source.images), done) as progress:
        for task, result in workers.results(tasks, progress.add):
            shard = by_path[task["path"]]
            broken += [(name, why) for name, why in result["broken"]]
            if "sha256" in result:
                note = {"digest": shard.digest(options.convert_odd), **result}
                replace_atomically(shard.note, json.dumps(note))
                results[shard.path] = note
    if len(results) < len(planned):
        _fail_broken(planned[0].path.parent, broken)
    return results


def _note(shard: Planned, options: Options) -> dict[str, Any] | None:
    """What was noted of a shard that is there, whole and of the same images; else None."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        note: dict[str, Any] = json.loads(shard.note.read_text())
        same = (
            note["digest"] == shard.digest(options.convert_odd)
            and note["size_bytes"] == shard.path.stat().st_size
        )
        return note if same and (options.skip_broken or not note["broken"]) else None
    return None


def _write_task(shard: Planned) -> Task:
    images = [(image.path, image.name, image.label) for image in shard.images]
    return {"do": "write", "path": str(shard.path), "images": images}


def open_workers(tasks: int, options: Options, classes: Sequence[str] = ()) -> Workers:
    count = min(options.workers or limits.cpus(), tasks)
    begin = {"classes": classes, "skip_broken": options.skip_broken, "odd": options.convert_odd}
    return Workers(count, begin)


def _check_room(waiting: Sequence[Planned]) -> None:
    folder = waiting[0].path.parent
    needed = sum(image.size_bytes for shard in waiting for image in shard.images)
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise TrainerError(
            f"{folder} lies on a disk with {size_text(free)} free; about {size_text(needed)} are needed"
        )


def _fail_broken(out: Path, broken: list[tuple[str, str]]) -> NoReturn:
    listed = _write_broken(out, broken)
    raise TrainerError(
        f"{len(broken)} image(s) cannot be taken: {_named(broken)}. All of them stand in {listed}. Put them right or "
        "remove them, or leave them out with --skip-broken (--convert-odd converts those in CMYK, with 16 bits or "
        "animated), and run again; finished shards are kept"
    )


def _named(broken: Sequence[tuple[str, str]]) -> str:
    shown = "; ".join(f"{name} {why}" for name, why in sorted(broken)[:NAMED])
    return f"{shown}; and {len(broken) - NAMED} more" if len(broken) > NAMED else shown


def _write_broken(out: Path, broken: Sequence[tuple[str, str]]) -> Path:
    lines = "".join(f"{name}\t{why}\n" for name, why in sorted(broken))
    path = out / BROKEN_FILE
    replace_atomically(path, lines.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
    return path


def _read_again(
    planned: Sequence[Planned], results: Results, source: sources.Source, workers: Workers
) -> dict[str, list[Shard]]:
    """Read every record from the disk and compare. Raises TrainerError; a shard that is wrong is removed."""
    tasks = [
        {
            "do": "check",
            "path": str(shard.path),
            "classes": len(source.classes),
            "label_base": 0,
            "decode": False,
        }
        for shard in planned
    ]
    bad = []
    with Progress("checking", sum(note["examples"] for note in results.values())) as progress:
        for task, result in workers.results(tasks, progress.add):
            note = results[Path(task["path"])]
            found = dict(result["counts"])
            same = [found.get(label, 0) for label in range(len(source.classes))] == note["per_class"]
            if result["problem_count"] or result["sha256"] != note["sha256"] or not same:
                bad.append(task["path"])
    for path in bad:
        Path(path).unlink(missing_ok=True)
    if bad:
        raise TrainerError(
            f"{len(bad)} shard(s) are not on the disk as they were written ({bad[0]}): the disk or its file system "
            "is at fault. They are removed; run the same again"
        )
    shards: dict[str, list[Shard]] = {}
    for shard in planned:
        note = results[shard.path]
        entry = Shard(shard.path.name, note["examples"], note["size_bytes"], note["sha256"])
        shards.setdefault(shard.split, []).append(entry)
    return shards


def _finish(
    out: Path,
    source: sources.Source,
    shards: dict[str, list[Shard]],
    results: Results,
    digest: str,
    options: Options,
) -> None:
    broken = [(name, why) for note in results.values() for name, why in note["broken"]]
    per_class: dict[str, Counter[int]] = {}
    for path, note in results.items():
        counts = per_class.setdefault(path.name.split("-", 1)[0], Counter())
        counts.update(dict(enumerate(note["per_class"])))
    empty = [name for label, name in enumerate(source.classes) if not per_class[TRAIN][label]]
    if empty:
        raise TrainerError(
            f"nothing is left to train on of: {', '.join(empty[:5])}. All of their images are broken"
        )
    described = Manifest(
        name=options.name or source.name,
        classes=tuple(printable(name) for name in source.classes),
        splits={name: _split(shards[name], per_class[name], len(source.classes)) for name in shards},
        image_size=source.image_size,
        augment=source.augment,
        skipped=len(broken),
        source=digest,
    )
    if broken:
        say(f"left out as broken, see {_write_broken(out, broken)}: {_named(broken)}")
    else:
        (out / BROKEN_FILE).unlink(missing_ok=True)
    manifest.write(out, described)
    shutil.rmtree(out / WORK_FOLDER, ignore_errors=True)
    say(f"done: {totals(described)}; train with: tfjob-train --data-dir {out}")


def _split(shards: Sequence[Shard], counts: Counter[int], classes: int) -> Split:
    return Split(
        sum(shard.examples for shard in shards),
        tuple(counts[label] for label in range(classes)),
        tuple(shards),
    )


def printable(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "replace")
