"""Following one file that grows: by polling, from its end, whatever its size.

The file is opened anew by its path at each poll, because network file systems show new data only then, and
their events never come. Nothing is raised for a fault of the file system: each poll says what it found.
"""

from __future__ import annotations

import contextlib
import enum
import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from tfjobtui.logs.kept import Block, LogLines
from tfjobtui.logs.lines import LogLine
from tfjobtui.logs.terminal_line import ShownLine, TerminalLines
from tfjobtui.model.text import printable

TAIL_BYTES = 256 * 1024
"""How much of the end is shown first, and how much more with each step back."""
READ_BYTES = 4 * 1024 * 1024
"""At most so much is read by one call: parsing holds the interpreter."""
SKIP_BYTES = 2 * READ_BYTES
"""Further behind than this, the reader goes to the end and says how much it left out."""
KEEP_CHARACTERS = 20 * 1024 * 1024
KEEP_LINES = 50_000

_PIECE_BYTES = 256 * 1024
_BLOCK_BYTES = 256 * 1024
_SAMPLE_BYTES = 1024


class ChangeKind(enum.Enum):
    """What a poll found."""

    NONE = "none"
    APPENDED = "appended"
    TRUNCATED = "truncated"
    """Cut and, where there is text already, written anew: what was shown stays, a marker says so."""
    REPLACED = "replaced"
    """Another file has taken the name."""
    DELETED = "deleted"
    CREATED = "created"
    """It was not there, and now is."""
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class LogChange:
    """What a poll found, and from which line on the view is to be drawn again.

    `first_changed` is the number (as of `LogLines.at`) of the first line that is new or different, `None`
    where all is as it was. `dropped` is how many of the oldest lines were let go. `is_behind` says that
    there is more to read at once. `message` is a sentence for the user about the file's state.
    """

    kind: ChangeKind
    first_changed: int | None = None
    dropped: int = 0
    is_behind: bool = False
    message: str = ""


@dataclass(frozen=True, slots=True)
class _File:
    """An open file as it is at one poll."""

    fd: int
    identity: tuple[int, int]
    size: int
    modified_ns: int

    def read(self, offset: int, count: int) -> bytes:
        """Up to `count` bytes; fewer only at the end."""
        parts: list[bytes] = []
        while count > 0:
            part = os.pread(self.fd, count, offset)
            if not part:
                break
            parts.append(part)
            offset += len(part)
            count -= len(part)
        return b"".join(parts)


class LogReader:
    """The lines of a growing file. Not for use from two threads at a time.

    `poll()` reads what is new, `load_earlier()` what lies before the first line; `lines` is the result.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        tail_bytes: int = TAIL_BYTES,
        read_bytes: int = READ_BYTES,
        skip_bytes: int = SKIP_BYTES,
        keep_characters: int = KEEP_CHARACTERS,
        keep_lines: int = KEEP_LINES,
    ) -> None:
        self.path = Path(path)
        self.lines = LogLines()
        self._tail_bytes = tail_bytes
        self._read_bytes = read_bytes
        self._skip_bytes = max(skip_bytes, read_bytes)
        self._keep_characters = keep_characters
        self._keep_lines = keep_lines
        self._terminal = TerminalLines()
        self._blocks: list[Block] = []
        self._identity: tuple[int, int] | None = None
        self._offset = 0
        self._line_start = 0
        self._head = b""
        self._last = b""
        self._seen: tuple[int, int] | None = None
        self._was_absent = False
        self._count = 0
        self._characters = 0
        self._size = 0

    @property
    def size_bytes(self) -> int:
        """The file's size at the last poll that reached it."""
        return self._size

    @property
    def has_earlier(self) -> bool:
        """Whether the file has more before the first line."""
        return bool(self._first_offset())

    def poll(self) -> LogChange:
        """Look at the file, and read what is new in it."""
        first, end = self.lines.first_index, self.lines.end_index - self.lines.has_unfinished
        try:
            file = _opened(self.path)
        except (OSError, ValueError) as error:
            return self._unreachable(error)
        try:
            kind, has_read = self._polled(file)
            if kind is ChangeKind.NONE:
                return LogChange(kind)
            dropped = max(0, self.lines.first_index - first)
            return LogChange(kind, end, dropped, has_read and file.size > self._offset)
        except OSError as error:
            return LogChange(ChangeKind.ERROR, None, message=_reason(self.path, error))
        finally:
            with contextlib.suppress(OSError):
                os.close(file.fd)

    def load_earlier(self) -> LogChange:
        """Read the block before the first line; `kind` is `NONE` where there is nothing more to load."""
        offset = self._first_offset()
        if not offset:
            return LogChange(ChangeKind.NONE)
        if not self._has_room(0.9):  # else the next lines at the end would push these out again
            self._mark_start()
            return LogChange(ChangeKind.NONE, message="More lines of this log are not kept in memory.")
        try:
            file = _opened(self.path)
        except (OSError, ValueError) as error:
            return LogChange(ChangeKind.ERROR, message=_reason(self.path, error))
        try:
            if file.identity != self._identity or not self._is_same(file):
                return LogChange(ChangeKind.NONE)  # the next poll will say what happened to it
            self._prepend(file, offset)
        except OSError as error:
            return LogChange(ChangeKind.ERROR, message=_reason(self.path, error))
        finally:
            with contextlib.suppress(OSError):
                os.close(file.fd)
        return LogChange(ChangeKind.APPENDED, self.lines.first_index)

    # ---- What happened to the file

    def _unreachable(self, error: OSError | ValueError) -> LogChange:
        message = _reason(self.path, error)
        if getattr(error, "errno", None) not in (errno.ENOENT, errno.ENOTDIR):
            return LogChange(ChangeKind.ERROR, message=message)
        with contextlib.suppress(OSError, ValueError), os.scandir(self.path.parent):
            pass  # opening the folder makes NFS forget that the file was absent
        was_absent, self._was_absent = self._was_absent, True
        if self._identity is None or was_absent:
            return LogChange(ChangeKind.NONE, message=message)
        return LogChange(
            ChangeKind.DELETED, message=f"{printable(str(self.path))} was deleted; its lines stay."
        )

    def _polled(self, file: _File) -> tuple[ChangeKind, bool]:
        """What has happened to the file, and whether anything was read from it."""
        was_absent, self._was_absent = self._was_absent, False
        self._size = file.size
        kind = self._compared(file)
        self._seen = (file.size, file.modified_ns)
        has_read = self._read(file)
        if was_absent:
            return ChangeKind.CREATED, has_read
        return kind or (ChangeKind.APPENDED if has_read else ChangeKind.NONE), has_read

    def _compared(self, file: _File) -> ChangeKind | None:
        """Make ready to read this file; `None` where it is the one that was read before, gone on."""
        if self._identity is None:
            self._begin(file, _tail_start(file, self._tail_bytes, self._read_bytes))
            return None
        if file.identity != self._identity:
            self._start_anew(file, "a new file has taken the place of this one", keep_last=True)
            return ChangeKind.REPLACED
        if self._seen == (file.size, file.modified_ns) and file.size == self._offset:
            return None
        if not self._is_same(file):
            self._start_anew(file, "the file was cut to nothing here and written anew", keep_last=False)
            return ChangeKind.TRUNCATED
        return None

    def _is_same(self, file: _File) -> bool:
        """Whether what was read is still there: a file that was cut and grew again may be any size.

        The bytes decide, not the size: some network file systems show data before the size they belong to.
        """
        if file.read(0, len(self._head)) != self._head:
            return False
        return file.read(self._offset - len(self._last), len(self._last)) == self._last

    def _start_anew(self, file: _File, remark: str, *, keep_last: bool) -> None:
        last = self._terminal.finish()
        if keep_last and last is not None:
            self._add([last], 0)
        for block in self._blocks:
            block.start = None
        self._begin(file, 0)
        self._mark(remark)

    def _begin(self, file: _File, offset: int) -> None:
        """Go on at this offset of this file, with a new block and nothing pending."""
        self._identity = file.identity
        self._offset = self._line_start = offset
        self._head = file.read(0, min(_SAMPLE_BYTES, offset))
        self._last = b""
        self._terminal.reset()
        self.lines.set_unfinished(None)
        self._blocks.append(Block(offset))

    # ---- Reading forwards

    def _read(self, file: _File) -> bool:
        """Read on, at most `read_bytes`; say whether there was anything."""
        behind = file.size - self._offset
        if behind > self._skip_bytes:
            self._skip(file)
        limit = self._offset + self._read_bytes
        has_read = False
        while self._offset < limit:
            data = file.read(self._offset, min(_PIECE_BYTES, limit - self._offset))
            if not data:
                break
            has_read = True
            self._take(data)
        self.lines.set_unfinished(self._terminal.current())
        return has_read

    def _take(self, data: bytes) -> None:
        if len(self._head) < _SAMPLE_BYTES and self._offset == len(self._head):
            self._head += data[: _SAMPLE_BYTES - len(self._head)]
        self._last = data[-_SAMPLE_BYTES:]
        lines = self._terminal.feed(data)
        self._offset += len(data)
        if lines:
            end = self._offset - len(data) + data.rfind(b"\n") + 1
            self._add(lines, end - self._line_start)
            self._line_start = end
            self._drop_blocks()

    def _skip(self, file: _File) -> None:
        start = self._offset
        last = self._terminal.finish()
        if last is not None:
            self._add([last], 0)
        self._begin(file, max(start, _tail_start(file, self._tail_bytes, self._tail_bytes)))
        self._mark(f"{_size_text(self._offset - start)} were written faster than they can be shown: left out")

    def _add(self, lines: list[ShownLine], file_bytes: int) -> None:
        """Add finished lines that took so many bytes of the file."""
        block = self._blocks[-1]
        if block.file_bytes >= _BLOCK_BYTES:
            block = Block(None if block.start is None else block.start + block.file_bytes)
            self._blocks.append(block)
        self._count += len(lines)
        self._characters += block.add(lines, file_bytes)
        self.lines.append(lines)

    def _mark(self, remark: str) -> None:
        self._add([LogLine(f"── {remark} ──", (), True)], 0)

    # ---- What is kept

    def _drop_blocks(self) -> None:
        """Let the oldest blocks go while there is too much; the newest stays, however large."""
        has_dropped = False
        while len(self._blocks) > 1 and not self._has_room(1):
            oldest = self._blocks.pop(0)
            self._count -= len(oldest.lines)
            self._characters -= oldest.characters
            self.lines.drop_first(len(oldest.lines))
            has_dropped = True
        if has_dropped:
            self._mark_start()

    def _has_room(self, part: float) -> bool:
        """Whether what is kept is below this part of what may be."""
        return self._count <= self._keep_lines * part and self._characters <= self._keep_characters * part

    def _first_offset(self) -> int | None:
        return self._blocks[0].start if self._blocks else None

    def _mark_start(self) -> None:
        offset = self._first_offset()
        what = "earlier lines" if offset is None else f"{_size_text(offset)} before this"
        self.lines.set_marker(f"── {what} are not kept in memory ──")

    # ---- Reading backwards

    def _prepend(self, file: _File, end: int) -> None:
        start = _line_start(file, max(0, end - self._tail_bytes), end, self._read_bytes)
        terminal = TerminalLines()
        lines = terminal.feed(file.read(start, end - start))
        last = terminal.finish()
        if last is not None:
            lines.append(last)
        block = Block(start)
        self._count += len(lines)
        self._characters += block.add(lines, end - start)
        self._blocks.insert(0, block)
        self.lines.set_marker("")
        self.lines.prepend(lines)


def _opened(path: Path) -> _File:
    """Open without waiting (a pipe would wait for its writer).

    Raises:
        OSError: it can't be opened, or is no plain file.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            code = errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.EINVAL
            raise OSError(code, "it is not a plain file")
    except OSError:
        os.close(fd)
        raise
    return _File(fd, (status.st_dev, status.st_ino), status.st_size, status.st_mtime_ns)


def _tail_start(file: _File, tail_bytes: int, reach: int) -> int:
    return _line_start(file, file.size - tail_bytes, file.size, reach)


def _line_start(file: _File, wanted: int, end: int, reach: int) -> int:
    """An offset at or after `wanted` where a line begins, before `end`.

    Where none begins there, the search goes back, at most `reach` bytes from `end`; in a line that is
    longer still, a carriage return or at least a whole character is taken.
    """
    if wanted <= 0:
        return 0
    data = file.read(wanted - 1, end - wanted + 1)
    found = data.find(b"\n")
    if 0 <= found < len(data) - 1:
        return wanted + found
    start = max(0, end - max(reach, end - wanted))
    before = file.read(start, wanted - start)
    found = before.rfind(b"\n")
    if found < 0 and start > 0:
        found = before.find(b"\r")
    if found >= 0 or start == 0:
        return start + found + 1
    rest = data[1:5]
    return wanted + len(rest) - len(rest.lstrip(_CONTINUATION))


_CONTINUATION = bytes(range(0x80, 0xC0))
"""The bytes of UTF-8 that begin no character."""


def _reason(path: Path, error: OSError | ValueError) -> str:
    shown = printable(str(path))
    if isinstance(error, FileNotFoundError):
        return f"{shown} is not there."
    if isinstance(error, PermissionError):
        return f"{shown} may not be read by you."
    return f"{shown} can't be read: {getattr(error, 'strerror', None) or error}"


def _size_text(count: int) -> str:
    amount, units = float(count), ["bytes", "KiB", "MiB", "GiB"]
    while amount >= 1024 and len(units) > 1:
        amount /= 1024
        del units[0]
    return f"{amount:.0f} bytes" if units[0] == "bytes" else f"{amount:.1f} {units[0]}"
