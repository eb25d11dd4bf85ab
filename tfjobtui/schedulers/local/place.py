"""Where the embedded scheduler keeps its files: one private folder for each machine and user.

```
<state folder>/local/<host name>-<first 8 of the machine id>/     0700
    queue.db                    the jobs
    waiter.lock                 held by the one waiter
    bin/                        sbatch, srun, scontrol … for scripts
    jobs/<raw id>/script        what runs, as it was submitted
    jobs/<raw id>/environment   NAME=VALUE, each ended by NUL
    jobs/<raw id>/journal-<token>   how a start went (`journal`)
    jobs/<raw id>/shepherd.log
```

A home folder may be shared by several machines: each has its own queue, since a job is a process of one.
A started task of an array uses the script and the environment of the array (`JobRecord.array_job_id`).
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

from tfjobtui.paths import make_private, state_dir

FOLDER_VARIABLE = "TFJOBTUI_LOCAL_FOLDER"
"""Names the folder; jobs get it, so that their commands find the queue that runs them."""
TOKEN_VARIABLE = "TFJOBTUI_LOCAL_TOKEN"
"""In the environment of everything that a start of a job runs."""

_NETWORK = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "lustre",
        "gpfs",
        "beegfs",
        "ceph",
        "afs",
        "9p",
        "glusterfs",
        "orangefs",
        "pvfs2",
        "panfs",
        "wekafs",
        "fuse.sshfs",
        "fuse.glusterfs",
        "fuse.ceph",
        "fuse.s3fs",
        "fuse.rclone",
        "fuse.juicefs",
    }
)


@dataclass(frozen=True, slots=True)
class Place:
    """The folder, and the names in it."""

    folder: Path

    @property
    def database(self) -> Path:
        return self.folder / "queue.db"

    @property
    def waiter_lock(self) -> Path:
        return self.folder / "waiter.lock"

    @property
    def bin(self) -> Path:
        return self.folder / "bin"

    def job_folder(self, job: int) -> Path:
        return self.folder / "jobs" / str(job)

    def script(self, job: int) -> Path:
        return self.job_folder(job) / "script"

    def environment(self, job: int) -> Path:
        return self.job_folder(job) / "environment"

    def journal(self, job: int, token: str) -> Path:
        return self.job_folder(job) / f"journal-{token}"

    def make(self) -> None:
        """Make the folder.

        Raises:
            OSError: it cannot be made.
        """
        make_private(self.folder)
        make_private(self.folder / "jobs")

    @property
    def is_on_network(self) -> bool:
        """Whether it lies on a network file system, where SQLite's WAL does not work."""
        return file_system(self.folder) in _NETWORK


def default_place() -> Place:
    """This machine's, or the one that the environment names."""
    named = os.environ.get(FOLDER_VARIABLE)
    if named:
        return Place(Path(named))
    return Place(state_dir() / "local" / f"{host_name()}-{_machine_id()[:8]}")


def host_name() -> str:
    """The short host name, which is also the name of the one node."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", platform.node().partition(".")[0]) or "localhost"


def _machine_id() -> str:
    for name in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        with contextlib.suppress(OSError):
            text = Path(name).read_text().strip()
            if re.fullmatch(r"[0-9a-f]{32}", text):
                return text
    return "0" * 32


def file_system(path: Path, mounts: str | None = None) -> str:
    """The type of the file system that a path lies on, by `/proc/self/mounts`; empty where it cannot be told."""
    if mounts is None:
        try:
            mounts = Path("/proc/self/mounts").read_text(errors="surrogateescape")
        except OSError:
            return ""
    real = os.path.realpath(path)
    best, found = -1, ""
    for line in mounts.splitlines():
        words = line.split(" ")
        if len(words) < 3:
            continue
        point = re.sub(r"\\(\d{3})", lambda match: chr(int(match[1], 8)), words[1])
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        # Of two mounts at one place the later one counts.
        if inside and len(point) >= best:
            best, found = len(point), words[2]
    return found
