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

from tfjobtui.errors import CommandError, StoreError, StoreVersionError
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local.place import Place
from tfjobtui.schedulers.local.records import JobRecord
from tfjobtui.schedulers.local.store import Store

_LOOK_S = 1.0
"""Between two looks at whether something has changed; a look reads a number from shared memory."""
_PASS_S = 5.0
"""Between two passes while nothing changes: for begin times and dead shepherds."""
_TROUBLE_S = 10.0
_PATIENCE_S = 1.0
"""Who only looks whether there is a waiter holds the lock for a moment."""


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
def _locked(place: Place, patience_s: float = 0.0) -> Iterator[bool]:
    """The lock of the waiter for a while; false where somebody else has it."""
    try:
        descriptor = os.open(place.waiter_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        yield False  # a full or a read-only disk: whoever changes the queue next tries again
        return
    try:
        yield _lock(descriptor, time.monotonic() + patience_s)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, end: float) -> bool:
    while True:
        try:
            # Not a record lock: that would be lost when this process closes another descriptor of the file.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            if time.monotonic() >= end:
                return False
            time.sleep(0.05)


def main(argv: list[str]) -> int:
    """Make passes until nothing waits or runs."""
    place = Place(Path(argv[0]))
    while True:
        with _locked(place, _PATIENCE_S) as got_it:
            if not got_it:
                return 0
            _serve(place)
        # Who has submitted something while the lock was being let go has seen a waiter.
        if not _has_come_meanwhile(place):
            return 0


def _has_come_meanwhile(place: Place) -> bool:
    if not place.database.exists():
        return False
    with contextlib.suppress(StoreError), contextlib.closing(Store(place)) as store:
        return is_needed(store.live())
    return False


def is_needed(records: Iterable[JobRecord]) -> bool:
    """Whether there is something to wait for: a job that runs, or one that may yet start by itself."""
    return any(
        record.state is not JobState.PENDING
        or not (record.held or record.reason == "DependencyNeverSatisfied")
        for record in records
    )


def _serve(place: Place) -> None:
    """Until nothing waits or runs, or the folder or the program is another one."""
    from tfjobtui.schedulers.local.dispatch import make_pass

    store: Store | None = None
    said = ""
    while place.folder.is_dir():
        try:
            store = store or Store(place)
            before = store.change_counter()
            report = make_pass(place, store)
            if not report.is_needed:
                store.close()
                return
            _sleep_until_change(store, before, report.next_s - time.time())
        except StoreVersionError:
            return  # the newer program's waiter shall have the lock
        except StoreError as error:
            if str(error) != said:
                said = str(error)
                sys.stderr.write(f"{said}\n")
            if store is not None:
                store.close()  # the file may be moved away, and another one begun
                store = None
            time.sleep(_TROUBLE_S)


def _sleep_until_change(store: Store, before: int, most_s: float) -> None:
    end = time.monotonic() + min(_PASS_S, most_s)
    while (left_s := end - time.monotonic()) > 0 and store.change_counter() == before:
        time.sleep(min(_LOOK_S, left_s))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
