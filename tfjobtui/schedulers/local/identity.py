"""Which process is meant: boot id, pid and start ticks. A pid alone is soon another's."""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """A process of this machine. `start_ticks` is field 22 of `/proc/PID/stat` (proc(5)): ticks since the boot,
    which a changed clock does not move."""

    boot_id: str
    pid: int
    start_ticks: int

    @staticmethod
    def of(pid: int) -> ProcessIdentity | None:
        """The process that has this pid now, or `None` where there is none."""
        ticks = start_ticks(pid)
        return None if ticks is None else ProcessIdentity(boot_id(), pid, ticks)

    def is_alive(self) -> bool:
        """Whether this very process still runs; a zombie does not."""
        if self.boot_id != boot_id():
            return False
        found = _stat(self.pid)
        return found is not None and found[1] == self.start_ticks and found[0] not in "ZX"

    def send(self, number: signal.Signals | int) -> bool:
        """Send a signal to this very process; `False` where it is gone."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except OSError:
            return False
        try:
            # The descriptor holds the process: after this look it cannot become another one.
            if not self.is_alive():
                return False
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(descriptor, number)
                return True
            return False
        finally:
            os.close(descriptor)


def boot_id() -> str:
    """A text that is new with each boot of the machine. TFJOBTUI_BOOT_ID stands in for it in tests."""
    given = os.environ.get("TFJOBTUI_BOOT_ID")
    return given or Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def start_ticks(pid: int) -> int | None:
    """When the process started, in ticks since the boot, or `None` where there is none."""
    found = _stat(pid)
    return None if found is None else found[1]


def _stat(pid: int) -> tuple[str, int] | None:
    """Its state letter and start ticks."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The name in parentheses may hold anything, also blanks and parentheses.
    fields = text.rpartition(b")")[2].split()
    return (fields[0].decode(), int(fields[19])) if len(fields) > 19 else None
