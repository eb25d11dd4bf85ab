"""The process that makes passes for as long as jobs wait or run.

There is at most one for a place: it holds a lock on a file. Nothing depends on it but how soon a begin time
or a dead shepherd is noticed while no program is open; any pass starts it where it is not there.

    python -m tfjobtui.schedulers.local.waiter FOLDER
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from tfjobtui.errors import CommandError, StoreError
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local.place import Place
from tfjobtui.schedulers.local.records import JobRecord
from tfjobtui.schedulers.local.store import Store

_LOOK_S = 0.25
"""Between two looks at whether something has changed; a look reads a number from shared memory."""
_PASS_S = 5.0
"""Between two passes while nothing changes: for begin times and dead shepherds."""
_TROUBLE_S = 10.0


def ensure(place: Place) -> None:
    """Start a waiter if there is none."""
    if is_there(place):
        return
    from tfjobtui.schedulers.local import spawning

    with contextlib.suppress(CommandError):
        spawning.start("waiter", place, token="waiter", log=place.folder / "waiter.log")


def is_there(place: Place) -> bool:
    """Whether a waiter holds the lock."""
    with _locked(place) as got_it:
        return not got_it


@contextlib.contextmanager
def _locked(place: Place) -> Iterator[bool]:
    """The lock of the waiter for a while; false where somebody else has it."""
    try:
        descriptor = os.open(place.waiter_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        yield False  # a full or a read-only disk: whoever changes the queue next tries again
        return
    try:
        try:
            # Not a record lock: that would be lost when this process closes another descriptor of the file.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        yield True
    finally:
        os.close(descriptor)


def main(argv: list[str]) -> int:
    """Make passes until nothing waits or runs."""
    place = Place(Path(argv[0]))
    with _locked(place) as got_it:
        if got_it:
            _serve(place)
    return 0


def is_needed(records: Iterable[JobRecord]) -> bool:
    """Whether there is something to wait for: a job that runs, or one that may yet start by itself."""
    return any(
        record.state is not JobState.PENDING
        or not (record.held or record.reason == "DependencyNeverSatisfied")
        for record in records
    )


def _serve(place: Place) -> None:
    from tfjobtui.schedulers.local.dispatch import make_pass

    store: Store | None = None
    while True:
        try:
            store = store or Store(place)
            make_pass(place, store)
            if not is_needed(store.live()):
                return
            _sleep_until_change(store)
        except StoreError as error:
            if not place.folder.is_dir():
                return  # it was taken away with all its jobs
            sys.stderr.write(f"{error}\n")
            time.sleep(_TROUBLE_S)


def _sleep_until_change(store: Store) -> None:
    before = store.change_counter()
    end = time.monotonic() + _PASS_S
    while time.monotonic() < end and store.change_counter() == before:
        time.sleep(_LOOK_S)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
