"""A program in a pseudo terminal: keys go in, a screen comes out.

For end-to-end tests the output goes through pyte, a terminal emulator, so that a test reads what a person
would see; the benchmarks look at the raw bytes, since emulating costs more than what they measure.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping, Sequence

KEYS = {
    "enter": "\r",
    "esc": "\x1b",
    "tab": "\t",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
    "home": "\x1b[H",
    "end": "\x1b[F",
    "pagedown": "\x1b[6~",
    "pageup": "\x1b[5~",
    "backspace": "\x7f",
}


class Terminal:
    """Runs a program in a pseudo terminal of a size. Use it as a context manager: its end ends the program."""

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        *,
        columns: int = 120,
        rows: int = 36,
        cwd: str | None = None,
        emulate: bool = True,
    ) -> None:
        self.columns, self.rows = columns, rows
        self.started_at = time.perf_counter()
        self.pid, self._fd = pty.fork()
        if self.pid == 0:  # the child: nothing but exec
            try:
                if cwd is not None:
                    os.chdir(cwd)
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
                os.execvpe(argv[0], list(argv), {"TERM": "xterm-256color", **env})
            finally:
                os._exit(127)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.raw = bytearray()
        self.exit_code: int | None = None
        self._screen = None
        if emulate:
            import pyte

            self._screen = pyte.Screen(columns, rows)
            self._stream = pyte.ByteStream(self._screen)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the program if it still runs."""
        if self.exit_code is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)
            if not self._wait_exit(2.0):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, signal.SIGKILL)
                self._wait_exit(2.0)
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.close(self._fd)

    def hang_up(self) -> None:
        """Take the terminal away, as a lost connection does."""
        os.close(self._fd)
        self._fd = -1

    def _wait_exit(self, timeout_s: float) -> bool:
        until = time.monotonic() + timeout_s
        while time.monotonic() < until:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.exit_code = os.waitstatus_to_exitcode(status)
                return True
            self.pump(0.02)
        return False

    def pump(self, timeout_s: float) -> bytes:
        """Take what the program has written, waiting at most that long for the first byte."""
        taken = b""
        if self._fd < 0:
            time.sleep(timeout_s)
            return taken
        while select.select([self._fd], [], [], 0 if taken else timeout_s)[0]:
            try:
                piece = os.read(self._fd, 65536)
            except OSError:  # EIO: the program has closed its terminal
                break
            if not piece:
                break
            taken += piece
        if taken:
            self.raw += taken
            if self._screen is not None:
                self._stream.feed(_for_pyte(taken))
        return taken

    def press(self, *keys: str) -> None:
        """Press keys: names of `KEYS`, `ctrl+x`, or characters."""
        for key in keys:
            if key.startswith("ctrl+"):
                text = chr(ord(key[5]) & 0x1F)
            else:
                text = KEYS.get(key, key)
            os.write(self._fd, text.encode())
            self.pump(0.02)

    def type(self, text: str) -> None:
        """Type a text, key by key."""
        for char in text:
            self.press(char)

    def resize(self, columns: int, rows: int) -> None:
        """Change the size of the terminal's window."""
        self.columns, self.rows = columns, rows
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        assert self._screen is not None
        self._screen.resize(rows, columns)

    @property
    def lines(self) -> list[str]:
        """The screen's lines, without trailing blanks."""
        assert self._screen is not None
        return [line.rstrip() for line in self._screen.display]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def wait_for(self, what: str | Callable[[Terminal], bool], timeout_s: float = 15.0) -> str:
        """Wait until the screen matches (a regular expression, or a test); gives the screen.

        Raises:
            AssertionError: it did not within the time; the message holds the screen.
        """
        until = time.monotonic() + timeout_s
        while time.monotonic() < until:
            if what(self) if callable(what) else re.search(what, self.text):
                return self.text
            self.pump(0.05)
        raise AssertionError(f"not on the screen within {timeout_s} s: {what}\n{self.text}")

    def wait_gone(self, pattern: str, timeout_s: float = 15.0) -> None:
        """Wait until the screen no longer matches."""
        self.wait_for(lambda terminal: re.search(pattern, terminal.text) is None, timeout_s)

    def wait_exit(self, timeout_s: float = 10.0) -> int:
        """Wait for the program's end; gives its exit code."""
        if self.exit_code is None and not self._wait_exit(timeout_s):
            raise AssertionError(f"the program did not end within {timeout_s} s:\n{self.text}")
        assert self.exit_code is not None
        return self.exit_code


_NOT_FOR_PYTE = re.compile(
    rb"\x1b\[[<>=?][0-9;]*[uq]|\x1b\[\?[0-9;]*\$p|\x1b\[>[0-9;]*m|\x1bP.*?\x1b\\", re.DOTALL
)


def _for_pyte(data: bytes) -> bytes:
    """Leave out queries and keyboard protocols that pyte would print as text."""
    return _NOT_FOR_PYTE.sub(b"", data)
