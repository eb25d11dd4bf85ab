"""What flows through srun: standard input to the tasks, and their output where lines get labels.

Output without labels does not come through here: the tasks inherit srun's own descriptors. Standard input is
read as srun reads it: at once, for every task, whether a task reads it or not.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import stat

_PIECE_BYTES = 1 << 16
_MOST_PENDING_BYTES = 1 << 20


class Labels:
    """Passes lines on, each with the number of its task in front."""

    def __init__(self, selector: selectors.BaseSelector, task_count: int) -> None:
        self._selector = selector
        self._digits = len(str(max(0, task_count - 1)))

    def pipe(self, task: int, target: int) -> int:
        """The end of a pipe that a task writes to; its lines go to the descriptor `target`."""
        reading, writing = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(reading, False)
        line = _Lines(reading, target, f"{task:{self._digits}d}: ".encode())
        self._selector.register(reading, selectors.EVENT_READ, lambda: self._take(line))
        return writing

    def _take(self, line: _Lines) -> None:
        if not line.take():
            self._selector.unregister(line.reading)
            os.close(line.reading)


class _Lines:
    """One pipe: whole lines leave it, and at its end what is left."""

    def __init__(self, reading: int, target: int, label: bytes) -> None:
        self.reading = reading
        self._target = target
        self._label = label
        self._rest = b""

    def take(self) -> bool:
        """Pass on what has come; `False` at the end."""
        try:
            data = os.read(self.reading, _PIECE_BYTES)
        except BlockingIOError:
            return True
        *lines, self._rest = (self._rest + data).split(b"\n")
        if not data and self._rest:
            lines.append(self._rest)
        write_all(self._target, b"".join(self._label + line + b"\n" for line in lines))
        return bool(data)


def write_all(descriptor: int, data: bytes) -> None:
    """Write it whole, unless the other end has gone."""
    view = memoryview(data)
    with contextlib.suppress(BrokenPipeError):
        while view:
            view = view[os.write(descriptor, view) :]


class Input:
    """Hands srun's standard input to tasks."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self._selector = selector
        self._pending: dict[int, bytearray] = {}
        self._at_end = False
        self._is_reading = False

    def pipe(self) -> int:
        """The end of a pipe that a task reads from."""
        reading, writing = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(writing, False)
        self._pending[writing] = bytearray()
        return reading

    def begin(self) -> None:
        """Start to read, once the tasks run."""
        if self._pending:
            self._read_on()

    def _read_on(self) -> None:
        if not self._is_reading and not self._at_end:
            self._selector.register(0, selectors.EVENT_READ, self._take)
            self._is_reading = True

    def _stop_reading(self) -> None:
        if self._is_reading:
            self._selector.unregister(0)
            self._is_reading = False

    def _take(self) -> None:
        try:
            data = os.read(0, _PIECE_BYTES)
        except OSError:  # a terminal that has gone
            data = b""
        if not data:
            self._at_end = True
            self._stop_reading()
        for writing, pending in list(self._pending.items()):
            if data and not pending:
                self._selector.register(
                    writing, selectors.EVENT_WRITE, lambda writing=writing: self._give(writing)
                )
            pending += data
            if len(pending) > _MOST_PENDING_BYTES:
                self._stop_reading()
        if self._at_end:
            for writing in [writing for writing, pending in self._pending.items() if not pending]:
                self._close(writing)

    def _give(self, writing: int) -> None:
        pending = self._pending[writing]
        try:
            written = os.write(writing, bytes(pending[:_PIECE_BYTES])) if pending else 0
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._close(writing)
            return
        del pending[:written]
        if not pending:
            if self._at_end:
                self._close(writing)
            else:
                self._selector.unregister(writing)
        if len(pending) <= _MOST_PENDING_BYTES:
            self._read_on()

    def _close(self, writing: int) -> None:
        with contextlib.suppress(KeyError):
            self._selector.unregister(writing)
        del self._pending[writing]
        os.close(writing)
        if not self._pending:
            self._stop_reading()

    def end(self) -> None:
        """No task is left to read."""
        self._stop_reading()
        for writing in list(self._pending):
            self._close(writing)


def has_input() -> bool:
    """Whether srun's standard input can hold anything for the tasks."""
    try:
        info = os.fstat(0)
    except OSError:
        return False
    if stat.S_ISCHR(info.st_mode) and info.st_rdev == os.stat(os.devnull).st_rdev:  # noqa: PTH116
        return False
    # From the background a terminal may not be read: that would stop srun.
    return not os.isatty(0) or os.tcgetpgrp(0) == os.getpgrp()
