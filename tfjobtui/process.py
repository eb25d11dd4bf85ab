"""The only door to a subprocess.

Every command is an argument list in a session of its own, so that its whole group can be ended: with
TERM, a wait, then KILL, when its time is over or its caller goes away. Output is bytes; standard input is
empty unless given.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfjobtui.errors import CommandNotFoundError, CommandTimeoutError

if TYPE_CHECKING:
    import asyncio

GRACE_S = 1.0
"""Between TERM and KILL."""


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that ended by itself. A negative `returncode` is the signal that ended it."""

    argv: tuple[str, ...]
    returncode: int
    stdout: bytes
    stderr: bytes
    duration_s: float

    @property
    def stdout_text(self) -> str:
        """Standard output; bytes that are no UTF-8 stay as surrogates, so that paths can be had back."""
        return self.stdout.decode("utf-8", "surrogateescape")

    @property
    def stderr_text(self) -> str:
        return self.stderr.decode("utf-8", "replace").strip()


async def run(
    argv: Sequence[str],
    *,
    timeout_s: float,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    cwd: str | None = None,
) -> Completed:
    """Run a command to its end and capture what it says.

    Raises:
        CommandNotFoundError: it is not there, or may not be executed.
        CommandTimeoutError: it did not end within `timeout_s` seconds; its group was ended.
    """
    import asyncio  # not above: the first query is started before it is imported

    started = time.monotonic()
    try:
        child = await asyncio.create_subprocess_exec(
            *argv,
            stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            cwd=cwd,
            start_new_session=True,
        )
    except OSError as error:
        raise _not_started(argv, error, cwd) from error
    try:
        async with asyncio.timeout(timeout_s):
            stdout, stderr = await child.communicate(stdin)
    except TimeoutError:
        await _end_group(child)
        raise _timed_out(argv, timeout_s) from None
    except BaseException:  # cancelled: whoever waited has gone, and nobody else will end the command
        await _end_group(child)
        raise
    # The pipes are at their end, but asyncio closes them a round later, which the loop may not live to see.
    child._transport.close()  # type: ignore[attr-defined]
    return Completed(tuple(argv), child.returncode or 0, stdout, stderr, time.monotonic() - started)


async def _end_group(child: asyncio.subprocess.Process) -> None:
    """TERM to the whole group, a wait, KILL for what is left."""
    import asyncio

    _signal_group(child.pid, signal.SIGTERM)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(GRACE_S):
            await child.wait()
    _signal_group(child.pid, signal.SIGKILL)
    # A grandchild in another session may still hold the pipes: do not wait for their end.
    child._transport.close()  # type: ignore[attr-defined]
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(GRACE_S):
            await child.wait()


def _signal_group(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _not_started(argv: Sequence[str], error: OSError, cwd: str | None) -> CommandNotFoundError:
    if cwd is not None and not os.path.isdir(cwd):  # noqa: PTH112 - a Path would cost an import for nothing
        return CommandNotFoundError(f"the folder {cwd} is not there any more", argv)
    return CommandNotFoundError(
        f"{argv[0]} cannot be run: {error.strerror}",
        argv,
        "`tfjobtui doctor` shows which commands were found and where.",
    )


def _timed_out(argv: Sequence[str], timeout_s: float) -> CommandTimeoutError:
    return CommandTimeoutError(f"{os.path.basename(argv[0])} gave no answer within {timeout_s:.0f} s", argv)  # noqa: PTH119


class EarlyProcess:
    """A command that is started before there is an event loop, and read by a thread meanwhile.

    The first query of the queue runs while the screen's library is being imported. The thread only
    reads pipes: it holds the interpreter for none of that time.
    """

    def __init__(
        self, argv: Sequence[str], *, timeout_s: float, env: Mapping[str, str] | None = None
    ) -> None:
        self._argv = tuple(argv)
        self._timeout_s = timeout_s
        self._started = time.monotonic()
        self._result: Completed | None = None
        self._error: Exception | None = None
        self._done = threading.Event()
        self._pieces: list[bytes] = []
        try:
            self._child = subprocess.Popen(
                self._argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=None if env is None else dict(env),
                start_new_session=True,
            )
        except OSError as error:
            self._error = _not_started(argv, error, None)
            self._done.set()
            return
        threading.Thread(target=self._read, name="early-query", daemon=True).start()

    def _read(self) -> None:
        stderr: list[bytes] = []
        is_whole = self._read_pipes(stderr)
        for pipe in (self._child.stdout, self._child.stderr):
            assert pipe is not None
            pipe.close()
        if is_whole:
            try:
                returncode = self._child.wait(self._left_s())
            except subprocess.TimeoutExpired:
                is_whole = False
        if is_whole:
            duration_s = time.monotonic() - self._started
            stdout = b"".join(self._pieces)
            self._result = Completed(self._argv, returncode, stdout, b"".join(stderr), duration_s)
        else:
            self.end()
            self._error = _timed_out(self._argv, self._timeout_s)
        self._done.set()

    def _left_s(self) -> float:
        return max(0.0, self._started + self._timeout_s - time.monotonic())

    def _read_pipes(self, stderr: list[bytes]) -> bool:
        """Read both pipes to their ends; false if the time was over before."""
        with selectors.DefaultSelector() as selector:
            for pipe, pieces in ((self._child.stdout, self._pieces), (self._child.stderr, stderr)):
                assert pipe is not None
                selector.register(pipe, selectors.EVENT_READ, pieces)
            while selector.get_map():
                ready = selector.select(self._left_s())
                if not ready:
                    return False
                for key, _ in ready:
                    if piece := os.read(key.fd, 1 << 16):
                        key.data.append(piece)
                    else:
                        selector.unregister(key.fileobj)
        return True

    def arrived(self, start: int) -> tuple[bytes, int]:
        """What has come on standard output since `start` (0, then the number that was given last time)."""
        end = len(self._pieces)
        return b"".join(self._pieces[start:end]), end

    def end(self) -> None:
        """End the command and its group."""
        if not self._done.is_set():
            _signal_group(self._child.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(GRACE_S)
            _signal_group(self._child.pid, signal.SIGKILL)

    def is_done(self) -> bool:
        return self._done.is_set()

    @property
    def completed(self) -> Completed | None:
        """What came of it, if it has ended by itself."""
        return self._result

    async def result(self) -> Completed:
        """Wait for the end, without holding up the event loop.

        Raises:
            CommandNotFoundError, CommandTimeoutError: as `run` does.
        """
        import asyncio

        while not self._done.is_set():  # noqa: ASYNC110 - set by a thread that began before there was a loop
            await asyncio.sleep(0.005)
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result


def foreground(argv: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: str | None = None) -> int:
    """Give the terminal to a command (an editor, a shell) and wait for its end.

    It stays in the session and process group of the program, so that the terminal's keys reach it.
    Gives its exit code.

    Raises:
        CommandNotFoundError: it is not there, or may not be executed.
    """
    # Ctrl+C belongs to the command while it has the terminal.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        child = subprocess.Popen(
            tuple(argv),
            env=None if env is None else dict(env),
            cwd=cwd,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        return child.wait()
    except OSError as error:
        raise _not_started(argv, error, cwd) from error
    finally:
        signal.signal(signal.SIGINT, before)


def detached(argv: Sequence[str], *, env: Mapping[str, str], log: str) -> None:
    """Start a command that goes on without us: nobody's child, in a session of its own, its output in a file.

    It begins with no signal ignored or blocked. Where the file cannot be written, its output is lost.

    Raises:
        CommandNotFoundError: it is not there, or may not be executed.
    """
    try:
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError:
        output = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    try:
        child = subprocess.Popen(
            tuple(argv),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=dict(env),
            cwd="/",
            start_new_session=True,
            preexec_fn=_leave_parent,
        )
    except OSError as error:
        raise _not_started(argv, error, "/") from error
    finally:
        os.close(output)
    child.wait()  # for the one in between, which has ended


def _leave_parent() -> None:
    """In the new process: let a child of it go on, so that nobody has to wait for the command's end."""
    if os.fork():
        os._exit(0)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
