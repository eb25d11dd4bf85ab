"""How a start of a job went, in a file that has its room before the job begins: a full disk cannot lose the end.

The file has two slots of 16 KiB, written in turn; the one with the higher number counts, and a slot that was
cut off by a crash fails its checksum, so that the other one counts. A slot holds, in ASCII and ended by a line
feed: the number, the CRC-32 of the text in 8 hex digits, the length of the text, and the text itself, which is
JSON: `{"started": "BOOT PID TICKS" or null, "ending": {…} or null}`.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfjobtui.schedulers.local import rows
from tfjobtui.schedulers.local.identity import ProcessIdentity
from tfjobtui.schedulers.local.records import Ending

_SLOT_BYTES = 16384
_MOST_STEPS = 20
"""So many of a job's steps are sure to have room; with more, the last ones are kept."""


@dataclass(frozen=True, slots=True)
class JournalState:
    """`started` is the process of the script; `None` as long as it was not started."""

    started: ProcessIdentity | None = None
    ending: Ending | None = None


class Journal:
    """The writer; there is one for each start."""

    def __init__(self, path: Path) -> None:
        """Make the file with all its room.

        Raises:
            OSError: there is no room.
        """
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._number = 0
        self._state = JournalState()
        try:
            # Zeros that are written, not only reserved: some file systems reserve nothing.
            os.pwrite(self._descriptor, b"\0" * (2 * _SLOT_BYTES), 0)
            self._write()
        except OSError:
            os.close(self._descriptor)
            raise

    def set_started(self, script: ProcessIdentity) -> None:
        """The script runs as this process."""
        self._state = JournalState(script, None)
        self._write()

    def set_ending(self, ending: Ending) -> None:
        """It is over."""
        self._state = JournalState(self._state.started, ending)
        self._write()

    def _write(self) -> None:
        self._number += 1
        data = _slot(self._number, _text(self._state))
        os.pwrite(self._descriptor, data, _SLOT_BYTES * (self._number % 2))
        with contextlib.suppress(OSError):  # some network file systems refuse it, and have written it
            os.fdatasync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)


def read(path: Path) -> JournalState | None:
    """What the file says; `None` where there is none, or nothing whole in it."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    found = [_parse(data[at : at + _SLOT_BYTES]) for at in (0, _SLOT_BYTES)]
    whole = [item for item in found if item is not None]
    return max(whole, key=lambda item: item[0])[1] if whole else None


def _text(state: JournalState) -> bytes:
    started = None if state.started is None else rows.identity_value(state.started)
    ending = None if state.ending is None else rows.ending_value(state.ending)
    text = _json(started, ending)
    if len(text) > _SLOT_BYTES - 64 and ending is not None:
        ending["steps"] = ending["steps"][-_MOST_STEPS:]
        text = _json(started, ending)
    if len(text) > _SLOT_BYTES - 64 and ending is not None:
        ending["steps"] = []
        text = _json(started, ending)
    return text


def _json(started: str | None, ending: dict[str, Any] | None) -> bytes:
    return json.dumps({"started": started, "ending": ending}).encode("ascii")


def _slot(number: int, text: bytes) -> bytes:
    return b"%d %08x %d\n%s\n" % (number, zlib.crc32(text), len(text), text)


def _parse(slot: bytes) -> tuple[int, JournalState] | None:
    head, _, rest = slot.partition(b"\n")
    words = head.split(b" ")
    if len(words) != 3 or not all(words) or not words[0].isdigit() or not words[2].isdigit():
        return None
    text = rest[: int(words[2])]
    if len(text) != int(words[2]) or b"%08x" % zlib.crc32(text) != words[1]:
        return None
    values = json.loads(text)
    ending = values["ending"]
    state = JournalState(
        rows.identity_of(values["started"]), None if ending is None else rows.ending_of(ending)
    )
    return int(words[0]), state
