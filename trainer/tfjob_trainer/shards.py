"""What a worker process of `tfjob-preprocess` does: write a shard, or check one. One JSON object a line.

In, on stdin: first {"classes": [names], "skip_broken": …, "odd": …}, then tasks

    {"do": "write", "path": of the shard, "images": [[path, name, label], …]}
    {"do": "check", "path": …, "classes": number or null for any label, "label_base": …, "decode": …}

Out, on stdout: {"done": images since the last such line}, and for each task at last {"end": its result} or
{"failed": what went wrong, in words}. The process ends with its stdin, and when nobody reads from it any more.
"""

import contextlib
import hashlib
import json
import os
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from tfjob_trainer import convert, handwritten, records
from tfjob_trainer.sources import DIGITS

TELL_S = 0.25
LISTED = 20  # broken records of a shard that are told; after a broken image the others are read all the same
ANY_LABEL = 2**31 - 1


def main() -> int:
    """Work until stdin ends."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what is half written has to be removed
    tf.config.set_visible_devices([], "GPU")
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    begin = json.loads(sys.stdin.readline() or "{}")
    worker = Worker(begin["classes"], begin["skip_broken"], begin["odd"])
    for line in sys.stdin:
        try:
            worker.tell({"end": worker.do(json.loads(line))})
        except (OSError, tf.errors.OpError) as error:
            worker.tell({"failed": _words(error)})
    return 0


def _words(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{error.filename or ''}: {error.strerror or error}"
    return records.short(error)


class Worker:
    """Does tasks, and tells how far it is."""

    def __init__(self, classes: Sequence[str], skip_broken: bool, odd: bool) -> None:
        self._texts = [os.fsencode(name) for name in classes]
        self._skip_broken = skip_broken
        self._odd = odd
        self._digits: handwritten.Digits | None = None
        self._untold = 0
        self._told_at = time.monotonic()

    def do(self, task: Mapping[str, Any]) -> dict[str, Any]:
        """The result of a task."""
        if task["do"] == "write":
            return self._write(Path(task["path"]), task["images"])
        return self._check(Path(task["path"]), task["classes"], task["label_base"], task["decode"])

    def tell(self, message: Mapping[str, Any]) -> None:
        """Write a line, and before it what is not told yet."""
        if self._untold and "done" not in message:
            self.tell({"done": self._untold})
        self._untold, self._told_at = 0, time.monotonic()
        print(json.dumps(message), flush=True)

    def _count(self) -> None:
        self._untold += 1
        if time.monotonic() - self._told_at > TELL_S:
            self.tell({"done": self._untold})

    # ---- Writing.

    def _write(self, path: Path, images: Iterable[tuple[str, str, int]]) -> dict[str, Any]:
        """Write a shard beside its place and put it there when it is whole, or not at all."""
        temporary = path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}.tmp")
        try:
            counts, broken = self._fill(temporary, images)
            if broken and not self._skip_broken:
                return {"broken": broken}
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
                digest = hashlib.file_digest(file, "sha256").hexdigest()
                size = file.tell()
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        per_class = [counts[label] for label in range(len(self._texts))]
        return {
            "examples": counts.total(), "size_bytes": size, "sha256": digest, "per_class": per_class, "broken": broken,
        }  # fmt: skip

    def _fill(
        self, path: Path, images: Iterable[tuple[str, str, int]]
    ) -> tuple[Counter[int], list[list[str]]]:
        counts, broken = Counter[int](), []
        with tf.io.TFRecordWriter(str(path)) as writer:
            for where, name, label in images:
                try:
                    writer.write(self._record(where, name, label))
                    counts[label] += 1
                except convert.BrokenImageError as error:
                    broken.append([name, str(error)])
                self._count()
        return counts, broken

    def _record(self, where: str, name: str, label: int) -> bytes:
        jpeg = self._jpeg(where)
        return records.make(
            jpeg.encoded,
            height=jpeg.height,
            width=jpeg.width,
            channels=jpeg.channels,
            label=label,
            text=self._texts[label],
            filename=os.fsencode(name),
        )

    def _jpeg(self, where: str) -> convert.Jpeg:
        if where.startswith(f"{DIGITS}/"):
            self._digits = self._digits or handwritten.load()
            return convert.digit(int(where.removeprefix(f"{DIGITS}/")), self._digits)
        try:
            data = Path(where).read_bytes()
        except OSError as error:
            raise convert.BrokenImageError(f"cannot be read: {error.strerror}") from None
        return convert.to_jpeg(data, odd=self._odd)

    # ---- Checking.

    def _check(self, path: Path, classes: int | None, label_base: int, decode: bool) -> dict[str, Any]:
        """Read every record of a shard; what it holds, and what is wrong with it."""
        counts, problems, texts = Counter[int](), [], dict[int, str]()
        examples = 0
        try:
            for offset, record in records.scan(path):
                try:
                    label, text = records.check(
                        record, ANY_LABEL if classes is None else classes, label_base, decode=decode
                    )
                    counts[label] += 1
                    texts.setdefault(label, os.fsdecode(text))
                except records.BrokenRecordError as error:
                    problems.append(f"{path}: record {examples} at offset {offset} {error}")
                examples += 1
                self._count()
        except records.BrokenShardError as error:
            problems.append(f"{error}; what follows in this file cannot be read")
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            size = file.tell()
        return {
            "examples": examples,
            "size_bytes": size,
            "sha256": digest,
            "counts": sorted(counts.items()),
            "texts": sorted(texts.items()),
            "problems": problems[:LISTED],
            "problem_count": len(problems),
        }


def run() -> int:
    """`main`, quiet where the process that gives the tasks is gone."""
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        return main()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is still buffered goes nowhere
    return 1
