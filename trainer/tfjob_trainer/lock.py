"""`lock.json`: which live process trains in a run folder. Two at once would spoil each other's checkpoints.

It holds up on NFS: it is made by a link, which is atomic there, and its sign of life is the file's time, set
and compared by the file server's clock alone. One key per line:

    version, host, boot (of the machine), pid, started (clock ticks after boot), pids (pid namespace), job_id,
    restart, token (of this lock), time (seconds since 1970)

A lock is stale, and taken over with a word, when its process is known to be dead (same machine), when it is
of an earlier start of the same job, or when it shows no sign of life for STALE_S.
"""

import contextlib
import json
import os
import socket
import threading
import time
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tfjob_trainer.errors import TrainerError, UsageError
from tfjob_trainer.job import Job
from tfjob_trainer.log import say

VERSION = 1
FILE_NAME = "lock.json"
BEAT_S = 10.0
STALE_S = 45.0


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that holds, or wants to hold, a run folder."""

    host: str
    boot: str
    pid: int
    started: str
    pids: str
    job_id: str | None
    restart: int
    token: str
    time: float

    def __str__(self) -> str:
        job = f"job {self.job_id}, " if self.job_id else ""
        return f"{job}process {self.pid} on {self.host}"


def ourselves(job: Job) -> Holder:
    """This process."""
    return Holder(
        host=socket.gethostname(),
        boot=_read(Path("/proc/sys/kernel/random/boot_id")),
        pid=os.getpid(),
        started=_start_of(os.getpid()) or "",
        pids=_namespace(),
        job_id=job.job_id,
        restart=job.restart,
        token=uuid.uuid4().hex,
        time=time.time(),
    )


class RunLock:
    """The lock of a run folder, held from `take` to `release` by signs of life from a thread."""

    def __init__(self, folder: Path, job: Job, *, beat_s: float = BEAT_S, stale_s: float = STALE_S) -> None:
        self._path = folder / FILE_NAME
        self._us = ourselves(job)
        self._beat_s = beat_s
        self._stale_s = stale_s
        self._released = threading.Event()

    def take(self) -> None:
        """Hold the folder. Raises UsageError that names the holder where a live one has it.

        A holder on another machine is watched for a sign of life: that takes up to `stale_s`.
        """
        while not self._create():
            found = _holder(self._path)
            if found is None:
                continue  # it has just gone
            why = self._why_stale(found)
            if why is None:
                raise UsageError(
                    f"the run folder {self._path.parent} is in use by {found}: wait for its end, or cancel it, or "
                    f"take another --model-dir"
                )
            if self._remove(found):
                say(f"the run folder was left locked by {found} ({why}): taken over")
        threading.Thread(target=self._beat, name="lock", daemon=True).start()

    def check(self) -> None:
        """Raise TrainerError where somebody else has taken the folder over, as after a long suspension."""
        found = _holder(self._path)
        if found is not None and found.token != self._us.token:
            raise TrainerError(
                f"the run folder was taken over by {found}; nothing more is written there from here"
            )

    def release(self) -> None:
        """Let the folder go, if it is still ours."""
        self._released.set()
        with contextlib.suppress(OSError):
            found = _holder(self._path)
            if found is not None and found.token == self._us.token:
                self._path.unlink(missing_ok=True)

    def _create(self) -> bool:
        """Make the lock with all of its contents at once, unless there is one."""
        text = "{\n" + ",\n".join(
            f" {json.dumps(key)}: {json.dumps(value)}"
            for key, value in {"version": VERSION, **asdict(self._us)}.items()
        )
        draft = self._path.with_name(f".{FILE_NAME}.{self._us.token}")
        try:
            draft.write_text(text + "\n}\n")
            with contextlib.suppress(FileExistsError):
                os.link(draft, self._path)
            # A link whose answer got lost on NFS has been made all the same: the count tells.
            return draft.stat().st_nlink == 2
        except PermissionError:  # a file system without links
            return self._create_without_link(text + "\n}\n")
        except OSError as error:
            raise UsageError(f"cannot lock the run folder {self._path.parent}: {error.strerror}") from None
        finally:
            draft.unlink(missing_ok=True)

    def _create_without_link(self, text: str) -> bool:
        try:
            with self._path.open("x") as file:
                file.write(text)
        except FileExistsError:
            return False
        return True

    def _why_stale(self, found: Holder) -> str | None:
        """Why the holder is certainly not at work, in words; None where it may be."""
        us = self._us
        if (found.boot, found.pids) == (us.boot, us.pids):
            return None if _start_of(found.pid) == found.started else "its process is dead"
        if found.job_id and found.job_id == us.job_id and found.restart < us.restart:
            return "an earlier start of this job"
        return self._watch(found)

    def _watch(self, found: Holder) -> str | None:
        """Look for a sign of life of a process on another machine."""
        age_s, seen = self._age_s(), _mtime(self._path)
        if age_s > self._stale_s:
            return f"no sign of life for {age_s:.0f} s"
        say(
            f"the run folder is locked by {found}; looking for a sign of life for up to {self._stale_s:.0f} s"
        )
        deadline = time.monotonic() + self._stale_s
        while time.monotonic() < deadline:
            time.sleep(min(1.0, self._beat_s / 4))
            if _mtime(self._path) != seen:
                return None if self._path.exists() else "it has just ended"
        return f"no sign of life for {self._age_s():.0f} s"

    def _age_s(self) -> float:
        """How long ago the sign of life was, by the clock of the file server."""
        probe = self._path.with_name(f".{FILE_NAME}.{self._us.token}.now")
        try:
            probe.touch()
            return (_mtime(probe) or 0.0) - (_mtime(self._path) or 0.0)
        finally:
            probe.unlink(missing_ok=True)

    def _remove(self, found: Holder) -> bool:
        """Take a stale lock away, and no other: two may try at once, and a new one may stand there already."""
        aside = self._path.with_name(f".{FILE_NAME}.{self._us.token}.stale")
        try:
            self._path.rename(aside)
        except FileNotFoundError:
            return False
        taken = _holder(aside)
        if taken is not None and taken.token != found.token:
            with contextlib.suppress(OSError):
                os.link(aside, self._path)
        aside.unlink(missing_ok=True)
        return taken is None or taken.token == found.token

    def _beat(self) -> None:
        while not self._released.wait(self._beat_s):
            with contextlib.suppress(OSError):
                os.utime(self._path)


def _holder(path: Path) -> Holder | None:
    """Who holds the lock; None where there is none. A file that cannot be read has an unknown holder."""
    for attempt in range(5):
        try:
            values: dict[str, Any] = json.loads(path.read_text())
            return Holder(**{name: values[name] for name in Holder.__slots__})
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):  # being written, or ESTALE after a replacement
            time.sleep(0.1 * attempt)
    return Holder("an unknown host", "", 0, "", "", None, 0, "", 0.0)


def _mtime(path: Path) -> float | None:
    """Opened first: that makes an NFS client ask the server anew."""
    try:
        with path.open("rb") as file:
            return os.fstat(file.fileno()).st_mtime
    except OSError:
        return None


def _start_of(pid: int) -> str | None:
    """When a process was started, in clock ticks after boot; None where there is none."""
    text = _read(Path(f"/proc/{pid}/stat"))
    fields = text.rpartition(")")[2].split()  # the name in front may hold anything
    return fields[19] if len(fields) > 19 and fields[0] not in "ZX" else None


def _namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
