"""A pseudo terminal for the first task (`srun --pty`)."""

from __future__ import annotations

import contextlib
import fcntl
import os
import selectors
import signal
import termios
import tty
from typing import Any

from tfjobtui.schedulers.local.commands.step_streams import write_all

_PIECE_BYTES = 1 << 16


def is_terminal() -> bool:
    """Whether srun itself has a terminal for its input."""
    return os.isatty(0)


class Terminal:
    """Passes keys and output between srun's own terminal and the task's."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        """Make a terminal of the size of srun's own.

        Raises:
            OSError: there is none to be had.
        """
        self._selector = selector
        self._master, self.slave = os.openpty()
        self._before: list[Any] | None = None
        self._follow_size()
        signal.signal(signal.SIGWINCH, lambda *_: self._follow_size())

    def _follow_size(self) -> None:
        with contextlib.suppress(OSError):
            size = fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(8))
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)

    def begin(self) -> None:
        """Once the task runs: from now on every key is the task's."""
        os.close(self.slave)
        self._before = termios.tcgetattr(0)
        tty.setraw(0, termios.TCSANOW)
        self._selector.register(0, selectors.EVENT_READ, self._keys)
        self._selector.register(self._master, selectors.EVENT_READ, self._output)

    def _keys(self) -> None:
        with contextlib.suppress(OSError):
            write_all(self._master, os.read(0, _PIECE_BYTES))

    def _output(self) -> None:
        try:
            data = os.read(self._master, _PIECE_BYTES)
        except OSError:  # how Linux tells that nobody has the other end open
            data = b""
        if data:
            write_all(1, data)
        else:
            self._selector.unregister(self._master)

    def stop_keys(self) -> None:
        """Nobody is left to type for."""
        with contextlib.suppress(KeyError):
            self._selector.unregister(0)

    def end(self) -> None:
        """Give srun's terminal back as it was."""
        if self._before is not None:
            termios.tcsetattr(0, termios.TCSADRAIN, self._before)
