"""The commands that were run for the user: kept in memory, and appended to a file.

The file (`commands.jsonl` in the state folder) has one JSON object a line:

```
{"v": 1, "at_s": 1.7e9, "purpose": "cancel 123", "argv": ["scancel", "123"], "duration_s": 0.1,
 "returncode": 0, "output": "..."}
```

`returncode` is null where the command gave no answer. When the file is full it becomes
`commands.jsonl.1`, in place of the one before, so that the two never take more than twice `MAX_BYTES`.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfjobtui.errors import FormatError
from tfjobtui.paths import make_private, state_dir
from tfjobtui.schedulers.scheduler import CommandRecord

MAX_BYTES = 1 << 20
MAX_OUTPUT = 4000
"""Characters of a command's output that are kept."""
_KEEP = 500


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One command and what it was run for, in words (`cancel 123_[1-4]`)."""

    purpose: str
    record: CommandRecord


class CommandLog:
    """The newest commands, oldest first. A file that cannot be written never stops an action."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.problem = ""
        """Why the file could not be written, in a sentence; empty while all is well."""
        self._entries: deque[LogEntry] = deque(maxlen=_KEEP)

    @staticmethod
    def default() -> CommandLog:
        return CommandLog(state_dir() / "commands.jsonl")

    def __iter__(self) -> Iterator[LogEntry]:
        return iter(tuple(self._entries))

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, purpose: str, records: Iterable[CommandRecord]) -> None:
        """Note these commands; one that stands there twice (it served several jobs) is noted once."""
        entries = [LogEntry(purpose, record) for record in dict.fromkeys(records)]
        self._entries.extend(entries)
        if self.path is not None and entries:
            try:
                self._append(self.path, entries)
            except OSError as error:
                self.problem = f"{self.path} cannot be written: {error.strerror}"

    def earlier(self) -> tuple[LogEntry, ...]:
        """What the file has, also of earlier sessions, oldest first; broken lines are left out."""
        if self.path is None:
            return ()
        entries: list[LogEntry] = []
        for path in (self.path.with_name(f"{self.path.name}.1"), self.path):
            with contextlib.suppress(OSError):
                entries.extend(_entries(path.read_text(encoding="utf-8", errors="replace")))
        return tuple(entries[-_KEEP:])

    def _append(self, path: Path, entries: list[LogEntry]) -> None:
        make_private(path.parent)
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_size > MAX_BYTES:
                path.replace(path.with_name(f"{path.name}.1"))
        text = "".join(f"{json.dumps(_as_json(entry))}\n" for entry in entries)
        # One write to a file in append mode: two programs at once do not cut each other's lines.
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)


def _as_json(entry: LogEntry) -> dict[str, Any]:
    record = entry.record
    return {
        "v": 1,
        "at_s": record.started_at_s,
        "purpose": entry.purpose,
        "argv": list(record.argv),
        "duration_s": round(record.duration_s, 3),
        "returncode": record.returncode,
        "output": record.output[:MAX_OUTPUT],
    }


def _entries(text: str) -> Iterator[LogEntry]:
    for line in text.splitlines():
        with contextlib.suppress(FormatError):
            yield _parse(line)


def _parse(line: str) -> LogEntry:
    try:
        data = json.loads(line)
        record = CommandRecord(
            tuple(str(word) for word in data["argv"]),
            float(data["at_s"]),
            float(data["duration_s"]),
            None if data["returncode"] is None else int(data["returncode"]),
            str(data["output"]),
        )
        return LogEntry(str(data["purpose"]), record)
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"not a line of the command log: {line[:80]!r}") from error
