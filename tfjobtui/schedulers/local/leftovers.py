"""The processes of a job, found without its shepherd: by the token in their environment.

A process is a job's if its environment (`/proc/PID/environ`, which is the one that it was started with) has the
token, and so are the children of such a process, unless they carry another token (a shepherd that was started
from within a job). What cleared its environment and has lost its parents cannot be told from a stranger, and is
left alone; while the shepherd lives, such a process is its descendant and is found.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tfjobtui.schedulers.local.identity import ProcessIdentity
from tfjobtui.schedulers.local.place import TOKEN_VARIABLE

_WAIT_S = 5.0
_MARK = f"{TOKEN_VARIABLE}=".encode()


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    parent: int
    identity: ProcessIdentity
    token: str | None


def processes_of(token: str, roots: Iterable[int] = ()) -> tuple[ProcessIdentity, ...]:
    """The living processes of a job: those with the token, and the descendants of them and of `roots`.

    The roots themselves are not among them unless they have the token.
    """
    found = {process.pid: process for process in _own_processes()}
    children: dict[int, list[_Process]] = {}
    for process in found.values():
        children.setdefault(process.parent, []).append(process)
    todo = [process for process in found.values() if process.token == token]
    for root in roots:
        todo.extend(children.get(root, ()))
    seen: dict[int, ProcessIdentity] = {}
    while todo:
        process = todo.pop()
        if process.pid in seen or (process.token is not None and process.token != token):
            continue
        seen[process.pid] = process.identity
        todo.extend(children.get(process.pid, ()))
    for root in (*roots, os.getpid()):
        seen.pop(root, None)
    return tuple(seen.values())


def end_all(token: str, roots: Iterable[int] = (), *, reap: bool = False) -> bool:
    """Kill them, those that appear meanwhile too; whether there were any.

    With `reap` the ends of orphans that became this process' children are taken, all of its children's.
    """
    roots = tuple(roots)
    there_were = False
    end = time.monotonic() + _WAIT_S
    while time.monotonic() < end:
        found = processes_of(token, roots)
        if not found:
            break
        there_were = True
        for identity in found:
            identity.send(signal.SIGKILL)
        if reap:
            _reap_children()
        time.sleep(0.01)
    return there_were


def _reap_children() -> None:
    """Take the ends of orphans that became ours."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _own_processes() -> Iterator[_Process]:
    """This user's processes; those that end while they are looked at are left out."""
    uid = os.getuid()
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if entry.stat().st_uid == uid and (process := _look(int(entry.name))) is not None:
                yield process


def _look(pid: int) -> _Process | None:
    identity = ProcessIdentity.of(pid)
    if identity is None:
        return None
    stat = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    if stat[0] in (b"Z", b"X"):
        return None
    return _Process(pid, int(stat[1]), identity, _token(pid))


def _token(pid: int) -> str | None:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None  # it is ending, or changed its user
    for line in environment.split(b"\0"):
        if line.startswith(_MARK):
            return line[len(_MARK) :].decode("ascii", "replace")
    return None
