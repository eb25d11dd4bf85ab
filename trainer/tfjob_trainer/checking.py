"""Reading a data set of TFRecords as a whole: is it what its dataset.json says, can it be trained on?

Where another program has made the TFRecords, dataset.json is written from what is found in them.
"""

from collections import Counter
from pathlib import Path

from tfjob_trainer import manifest
from tfjob_trainer.errors import TrainerError, UsageError
from tfjob_trainer.log import complain, say
from tfjob_trainer.making import (
    NAMED,
    WORK_FOLDER,
    Options,
    Results,
    open_workers,
    printable,
    size_text,
    totals,
)
from tfjob_trainer.manifest import TRAIN, VALIDATION, Manifest, Shard, Split
from tfjob_trainer.progress import Progress


def check(folder: Path, options: Options) -> int:
    """Read the data set in `folder` as a whole; where it has no dataset.json, make it. Returns the exit code."""
    if not folder.is_dir():
        raise UsageError(f"--check {folder}: there is no such folder")
    if (folder / WORK_FOLDER).is_dir() and not (folder / manifest.FILE_NAME).exists():
        raise UsageError(f"{folder} is not finished: start the tfjob-preprocess that makes it again")
    described = manifest.read(folder)
    files = _files(folder, described)
    say(
        f"{folder}: {sum(map(len, files.values()))} files, {size_text(sum(p.stat().st_size for p in _flat(files)))}"
    )
    results = _check_files(files, described, options)
    problems = [problem for path in _flat(files) for problem in results[path]["problems"]]
    count = sum(result["problem_count"] for result in results.values())
    if described:
        wrong = _compare(folder, described, results)
        problems, count = problems + wrong, count + len(wrong)
    for problem in problems[: 2 * NAMED]:
        complain(problem)
    if count > 2 * NAMED:
        complain(f"and {count - 2 * NAMED} more")
    if described is None and (not count or options.skip_broken):
        described = _describe(folder, files, results, options)
        manifest.write(folder, described)
        say(f"wrote {folder / manifest.FILE_NAME}")
    if described:
        _say_check(described)
    if count:
        say(f"{count} fault(s); tfjob-train --skip-broken passes over broken records")
        return 1
    say(
        "everything is as it should be"
        if not options.quick
        else "everything can be read; no image was decoded"
    )
    return 0


def _files(folder: Path, described: Manifest | None) -> dict[str, list[Path]]:
    if described:
        for split in described.splits.values():
            for shard in split.shards:
                if not (folder / shard.file).is_file():
                    raise TrainerError(
                        f"{folder / shard.file} is missing: copy it again, or make the data set again"
                    )
        return {
            name: [folder / shard.file for shard in split.shards] for name, split in described.splits.items()
        }
    files: dict[str, list[Path]] = {}
    for path in sorted(filter(manifest.looks_like_shard, folder.iterdir())):
        held = path.name.lower().startswith(("val", "test"))
        files.setdefault(VALIDATION if held else TRAIN, []).append(path)
    if TRAIN not in files:
        raise UsageError(
            f"{folder} has no TFRecords to train on (train-00000-of-00128, or names that end in .tfrecord)"
        )
    return files


def _flat(files: dict[str, list[Path]]) -> list[Path]:
    return [path for paths in files.values() for path in paths]


def _check_files(files: dict[str, list[Path]], described: Manifest | None, options: Options) -> Results:
    tasks = [
        {
            "do": "check",
            "path": str(path),
            "classes": len(described.classes) if described else None,
            "label_base": described.label_base if described else 0,
            "decode": not options.quick,
        }
        for path in _flat(files)
    ]
    total = sum(split.examples for split in described.splits.values()) if described else None
    with open_workers(len(tasks), options) as workers, Progress("checking", total) as progress:
        return {Path(task["path"]): result for task, result in workers.results(tasks, progress.add)}


def _compare(folder: Path, described: Manifest, results: Results) -> list[str]:
    """Where the files are not what dataset.json says."""
    wrong = []
    for split in described.splits.values():
        counts: Counter[int] = Counter()
        for shard in split.shards:
            result = results[folder / shard.file]
            counts.update(dict(result["counts"]))
            if result["problem_count"]:
                continue
            for what in ("examples", "size_bytes", "sha256"):
                if result[what] != getattr(shard, what):
                    said = f"{getattr(shard, what)}, not {result[what]}"
                    wrong.append(f"{folder / shard.file}: {manifest.FILE_NAME} says {what} {said}")
                    break
    return wrong


def _describe(folder: Path, files: dict[str, list[Path]], results: Results, options: Options) -> Manifest:
    """A dataset.json for the TFRecords of another program."""
    found = Counter[int]()
    texts: dict[int, str] = {}
    for path in _flat(files):
        found.update(dict(results[path]["counts"]))
        texts |= {label: text for label, text in results[path]["texts"] if text}
    if not found:
        raise TrainerError(f"{folder} has no record that can be used")
    base = options.label_base if options.label_base is not None else int(min(found) == 1)
    if min(found) < base:
        raise UsageError(f"--label-base {base}, but there are records with label {min(found)}")
    if base and options.label_base is None:
        say(
            "the labels begin with 1: the first class is taken to be that one (--label-base 0 says otherwise)"
        )
    labels = range(base, max(found) + 1)
    names = [printable(texts.get(label, "")) or str(label) for label in labels]
    if len(set(names)) < len(names):
        names = [str(label) for label in labels]
    splits = {}
    for split, paths in files.items():
        counts = Counter[int]()
        for path in paths:
            counts.update(dict(results[path]["counts"]))
        shards = tuple(
            Shard(path.name, *(results[path][what] for what in ("examples", "size_bytes", "sha256")))
            for path in paths
        )
        per_class = tuple(counts[label] for label in labels)
        splits[split] = Split(sum(shard.examples for shard in shards), per_class, shards)
    return Manifest(options.name or folder.name, tuple(names), splits, label_base=base)


def _say_check(described: Manifest) -> None:
    say(f"{described.name}: {totals(described)}")
    for name, split in described.splits.items():
        pairs = sorted(zip(split.per_class, described.classes, strict=False))
        if pairs:
            (low, few), (high, many) = pairs[0], pairs[-1]
            say(f"{name}: from {low} ({few}) to {high} ({many}) records a class")
