"""The record of a submission: enough to run it again, and to tell later what was run.

One JSON object a file, `<submitted, ms>-<job>-<cluster>.json`, version 1. Keys are the fields of
`RunRecord`; a reader ignores keys that it does not know, takes the default for one that is absent, and
refuses a higher version. Bytes of a script that are no UTF-8 stand as lone surrogates (`\\udcff`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tfjobtui.errors import FormatError
from tfjobtui.model.ids import JobId
from tfjobtui.paths import make_private, state_dir

VERSION = 1
MAX_RECORDS = 10_000
"""The oldest go when there are more."""
CLOCK_TOLERANCE_S = 300
"""How far this machine's clock and the controller's may be apart, and how long sbatch may have taken."""

_MAX_BYTES = 16 * 1024 * 1024
_NAME = re.compile(r"(?P<ms>\d{13,})-(?P<job>\d+)-(?P<cluster>[^/]*)\.json", re.ASCII)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One submission, as it was made.

    `job_id` is the job's number, of an array the array's. `submitted_at_s` is this machine's clock,
    `submit_time_s` the controller's where it is known. `options` and `arguments` are words of the command
    line, `argv` is the whole of it. `values` are the template's parameters. `environment` has the names of
    the variables that had a part in it. `git_dirty` is `None` where `work_dir` is no git checkout.
    """

    job_id: int
    submitted_at_s: float
    script: str
    cluster: str | None = None
    submit_time_s: int | None = None
    user: str = ""
    host: str = ""
    job_name: str = ""
    options: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    work_dir: str = ""
    template: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    argv: tuple[str, ...] = ()
    script_path: str = ""
    git_commit: str = ""
    git_dirty: bool | None = None
    environment: tuple[str, ...] = ()
    version: int = VERSION


class RunRecords:
    """The records in a folder. What can't be read is told in `problems` and left out."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.problems: tuple[str, ...] = ()
        """What went wrong with the last `find` or `recent`, a sentence each."""

    @staticmethod
    def default() -> RunRecords:
        """The user's own, in the program's state folder."""
        return RunRecords(state_dir() / "runs")

    def save(self, record: RunRecord) -> Path:
        """Keep a record; it is on the disk, whole, when this returns.

        Raises:
            OSError: it could not be written.
        """
        make_private(self.folder)
        cluster = quote(record.cluster or "", safe="").replace(".", "%2E")
        path = self.folder / f"{int(record.submitted_at_s * 1000):013d}-{record.job_id}-{cluster}.json"
        values = {key: getattr(record, key) for key in ("version", *_FIELDS)}
        _write_atomically(path, json.dumps(values | {"values": dict(record.values)}, indent=1).encode())
        with contextlib.suppress(OSError):
            self._let_old_go()
        return path

    def find(
        self,
        cluster: str | None,
        job_id: JobId | int,
        submit_time_s: int | None = None,
        *,
        was_requeued: bool = False,
    ) -> RunRecord | None:
        """The record of a job, for a task of an array that of the array.

        Ids are used again after years, so that the submit time has to fit where it is known; a requeue
        sets it anew, after which any record from before it will do. Without a time the newest is given.
        A record or a question without a cluster fits every cluster.
        """
        job = job_id if isinstance(job_id, int) else job_id.job
        for record in self._read(job):
            if cluster is not None and record.cluster is not None and record.cluster != cluster:
                continue
            if submit_time_s is None or _fits(record, submit_time_s, was_requeued):
                return record
        return None

    def recent(self, count: int) -> tuple[RunRecord, ...]:
        """The newest records, newest first."""
        records = []
        for record in self._read(None):
            records.append(record)
            if len(records) >= count:
                break
        return tuple(records)

    def _read(self, job: int | None) -> Iterator[RunRecord]:
        """The records, or those of one job, newest first."""
        self.problems = ()
        try:
            names = self._names()
        except FileNotFoundError:
            return
        except OSError as error:
            self._report(self.folder, error.strerror or str(error))
            return
        for _, number, name in sorted(names, reverse=True):
            if job is None or number == job:
                record = self._record(self.folder / name)
                # The name says where to look; what counts is the record.
                if record is not None and (job is None or record.job_id == job):
                    yield record

    def _names(self) -> list[tuple[int, int, str]]:
        """Time, job and name of each file that has a record's name."""
        with os.scandir(self.folder) as entries:
            matches = (_NAME.fullmatch(entry.name) for entry in entries)
            return [(int(match["ms"]), int(match["job"]), match[0]) for match in matches if match]

    def _record(self, path: Path) -> RunRecord | None:
        try:
            with path.open("rb") as file:
                return parse(file.read(_MAX_BYTES))
        except OSError as error:
            self._report(path, error.strerror or str(error))
        except FormatError as error:
            self._report(path, error.message)
        return None

    def _report(self, path: Path, what: str) -> None:
        self.problems += (f"{path}: {what}",)

    def _let_old_go(self) -> None:
        names = self._names()
        # A tenth more, so that this is not done at each save.
        if len(names) > MAX_RECORDS * 11 // 10:
            for _, _, name in sorted(names)[:-MAX_RECORDS]:
                (self.folder / name).unlink()


def _fits(record: RunRecord, submit_time_s: int, was_requeued: bool) -> bool:
    if record.submit_time_s is not None and not was_requeued:
        return record.submit_time_s == submit_time_s
    later = submit_time_s - record.submitted_at_s
    return later >= -CLOCK_TOLERANCE_S and (was_requeued or later <= CLOCK_TOLERANCE_S)


_FIELDS = tuple(item.name for item in dataclasses.fields(RunRecord) if item.name != "version")


def parse(data: bytes) -> RunRecord:
    """Read a record.

    Raises:
        FormatError: it is none, or from a newer program.
    """
    try:
        values = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"it is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise FormatError("it is not a JSON object")
    version = values.get("version")
    if not isinstance(version, int) or version < 1:
        raise FormatError("it has no version")
    if version > VERSION:
        raise FormatError(f"it is of version {version}; this program reads up to {VERSION}")
    for name in ("job_id", "submitted_at_s", "script"):
        if name not in values:
            raise FormatError(f"it has no {name}")
    known = {name: _checked(name, values[name]) for name in _FIELDS if name in values}
    return RunRecord(**known)


def _checked(name: str, value: Any) -> Any:
    """The value in the type of its field."""
    kind = _TYPES.get(name, "text")
    is_right = {
        "number": isinstance(value, int | float) and not isinstance(value, bool),
        "integer": isinstance(value, int) and not isinstance(value, bool),
        "integer or none": value is None or (isinstance(value, int) and not isinstance(value, bool)),
        "text or none": value is None or isinstance(value, str),
        "bool or none": value is None or isinstance(value, bool),
        "texts": isinstance(value, list) and all(isinstance(item, str) for item in value),
        "map": isinstance(value, dict) and all(isinstance(item, str) for item in value.values()),
        "text": isinstance(value, str),
    }[kind]
    if not is_right:
        raise FormatError(f"{name} is not of the right kind: {value!r:.100}")
    return tuple(value) if kind == "texts" else value


_TYPES = {
    "job_id": "integer",
    "submitted_at_s": "number",
    "cluster": "text or none",
    "submit_time_s": "integer or none",
    "options": "texts",
    "arguments": "texts",
    "argv": "texts",
    "environment": "texts",
    "values": "map",
    "git_dirty": "bool or none",
}


def _write_atomically(path: Path, data: bytes) -> None:
    """Write a file that only its owner may read, whole or not at all."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    _sync(path.parent)


def _sync(folder: Path) -> None:
    """Make a rename last. Some network file systems refuse this for a folder, and need it less."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
