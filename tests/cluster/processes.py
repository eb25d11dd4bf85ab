"""Starting and ending processes so that none is left behind, however the supervisor ends.

Three nets: a child gets SIGKILL from the kernel when the supervisor dies (PR_SET_PDEATHSIG); orphans of
our daemons become our children (PR_SET_CHILD_SUBREAPER), so that they can be reaped; and everything
carries a token in its environment, by which the next start finds what slipped through.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import pwd
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

TOKEN = "TFJOBTUI_CLUSTER_TOKEN"
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Finished:
    """What a command that ran to its end (or to its time limit: rc 124) left."""

    rc: int
    stdout: str
    stderr: str


def become_subreaper() -> None:
    """Let orphaned descendants become children of this process instead of init's."""
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent(sig: signal.Signals = signal.SIGKILL) -> Callable[[], None]:
    """A preexec_fn: the kernel sends the child `sig` when the thread that started it ends."""
    parent = os.getpid()

    def ask_kernel() -> None:
        _libc.prctl(PR_SET_PDEATHSIG, int(sig), 0, 0, 0)
        if os.getppid() != parent:  # it died before we asked
            os._exit(1)

    return ask_kernel


def clean_environment(account: pwd.struct_passwd, **extra: str) -> dict[str, str]:
    """The environment of a fresh login of `account`, with `extra` added."""
    return {
        "HOME": account.pw_dir,
        "USER": account.pw_name,
        "LOGNAME": account.pw_name,
        "SHELL": "/bin/bash",
        "PATH": SYSTEM_PATH,
        "LANG": "C.UTF-8",
        **extra,
    }


class Children:
    """All processes that the supervisor starts.

    They are started and reaped in one thread: PR_SET_PDEATHSIG looks at the starting thread, and a
    process id can be told from an orphan's only when starting and reaping can't interleave.
    """

    def __init__(self) -> None:
        self._running: dict[int, subprocess.Popen[bytes]] = {}

    def start(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        stdout: IO[bytes],
        stderr: IO[bytes],
        stdin: IO[bytes] | int = subprocess.DEVNULL,
        cwd: str = "/",
        account: pwd.struct_passwd | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a process in a session of its own, as root or as `account`."""
        process = subprocess.Popen(
            argv,
            env=dict(env),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=cwd,
            start_new_session=True,
            preexec_fn=die_with_parent(),
            user=account.pw_uid if account else None,
            group=account.pw_gid if account else None,
            extra_groups=os.getgrouplist(account.pw_name, account.pw_gid) if account else None,
            umask=0o022,
        )
        self._running[process.pid] = process
        return process

    async def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        text: str = "",
        cwd: str = "/",
        account: pwd.struct_passwd | None = None,
        timeout_s: float = 30.0,
    ) -> Finished:
        """Run a command to its end. Files, not pipes: what it leaves in the background can't hold us up."""
        with (
            tempfile.TemporaryFile() as stdin,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            stdin.write(text.encode())
            stdin.seek(0)
            process = self.start(argv, env=env, stdin=stdin, stdout=out, stderr=err, cwd=cwd, account=account)
            rc = await wait(process, timeout_s)
            if rc is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await wait(process, 5)
                rc = 124
            out.seek(0)
            err.seek(0)
            return Finished(rc, out.read().decode(errors="replace"), err.read().decode(errors="replace"))

    def reap(self) -> None:
        """Take the exit status of every child that has ended: ours and adopted ones."""
        for pid, process in list(self._running.items()):
            if process.poll() is not None:
                del self._running[pid]
        with contextlib.suppress(ChildProcessError):
            while self._reap_orphan():
                pass

    def _reap_orphan(self) -> bool:
        """Reap one adopted child. One of ours that ends just now is left to its Popen."""
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None or ended.si_pid in self._running:
            return False
        os.waitid(os.P_PID, ended.si_pid, os.WEXITED | os.WNOHANG)
        return True


async def wait(process: subprocess.Popen[bytes], timeout_s: float) -> int | None:
    """The exit status, or None when it still runs after `timeout_s`."""
    try:
        watched = os.pidfd_open(process.pid)
    except ProcessLookupError:  # reaped already
        return process.poll()
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(watched, ended.set)
    try:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), timeout_s)
    finally:
        loop.remove_reader(watched)
        os.close(watched)
    return process.poll()


def end_all_with_token(token: str, tries: int = 100) -> int:
    """Kill every process that carries the token, and what those and this process started, until none is left.

    The slurmstepd of 26.05 wipes its environment, and so its token; it is found as a child of the supervisor.
    Returns how many there were. The state of a test cluster is thrown away, so none needs a soft end.
    """
    ended: set[int] = set()
    for _ in range(tries):
        found = _with_descendants(_carriers(token) | {os.getpid()}) - _own_line()
        if not found:
            return len(ended)
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        ended |= found
        time.sleep(0.02)
        _reap_children()
    raise TimeoutError(f"processes of {token} survive SIGKILL: {sorted(found)}")


def _reap_children() -> None:
    """Reap every child that has ended, orphans that we adopted among them."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _carriers(token: str) -> set[int]:
    """The processes whose environment holds the token. A zombie has no environment any more."""
    entry = f"{TOKEN}={token}".encode()
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if entry in (folder / "environ").read_bytes().split(b"\0"):
                found.add(int(folder.name))
    return found


def _parents() -> dict[int, int]:
    """The parent of each living process."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            # The name in brackets can hold anything: read from its end.
            state, parent = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
            if state != "Z":
                parents[int(folder.name)] = int(parent)
    return parents


def _with_descendants(roots: set[int]) -> set[int]:
    """`roots` and every living process below them."""
    parents = _parents()
    found = roots & parents.keys()
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def _own_line() -> set[int]:
    """This process and its ancestors: never to be ended by it."""
    parents = _parents()
    line, pid = set(), os.getpid()
    while pid:
        line.add(pid)
        pid = parents.get(pid, 0)
    return line
