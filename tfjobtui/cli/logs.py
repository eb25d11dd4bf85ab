"""`logs`: the output of a job, or of any log file, whole, its end, or followed.

Into a pipe the file goes byte for byte. On a terminal, and when followed, it is shown as a terminal would
have shown it, with every control character interpreted or taken out.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from tfjobtui.actions import logfiles
from tfjobtui.cli.context import find_job, open_scheduler
from tfjobtui.cli.output import complain, uses_colour, width_of
from tfjobtui.cli.setup import load_config
from tfjobtui.errors import FormatError, QueryError, TfjobtuiError
from tfjobtui.logs.lines import LogLine, Style
from tfjobtui.logs.location import LogLocation
from tfjobtui.logs.reader import LogReader
from tfjobtui.logs.terminal_line import ShownLine, TerminalLines
from tfjobtui.model.ids import JobId
from tfjobtui.model.job import Job
from tfjobtui.model.stream import Stream
from tfjobtui.model.text import cells, fit
from tfjobtui.schedulers.scheduler import Scheduler

_PIECE_BYTES = 1 << 20
_FOLLOW_LINES = 10
_LOOK_EVERY_S = 0.5
_SETTLE_S = 3.0
"""After the end of a job its last lines may still be on their way over a network file system."""


def run(options: argparse.Namespace) -> int:
    """Show the log, and follow it if that is wanted."""
    stream = Stream.STDERR if options.stderr else Stream.STDOUT
    if not _is_job(options.job):
        return _show_file(Path(options.job), options)
    config = load_config(options.config)
    scheduler = open_scheduler(config, options)
    if options.follow:
        return asyncio.run(_follow_job(scheduler, options, stream, config.poll.interval_s))
    location = asyncio.run(_locate(scheduler, options.job, stream))
    if location.path is None or not location.exists:
        raise TfjobtuiError(location.note or f"the log of job {options.job} is not there")
    if location.note:
        complain(location.note)
    return _show(location.path, options.lines)


def _is_job(text: str) -> bool:
    """A name with a slash, or that is no id, is a file's."""
    if "/" in text:
        return False
    try:
        JobId.parse(text)
    except FormatError:
        return False
    return True


def _show_file(path: Path, options: argparse.Namespace) -> int:
    if options.follow:
        return asyncio.run(_follow(path, _first_lines(options), _no_end()))
    return _show(path, options.lines)


def _first_lines(options: argparse.Namespace) -> int:
    return _FOLLOW_LINES if options.lines is None else int(options.lines)


async def _locate(scheduler: Scheduler, text: str, stream: Stream) -> LogLocation:
    """Where the log is.

    Raises:
        TfjobtuiError: nobody knows the job.
    """
    try:
        location, _ = await _find(scheduler, text, stream)
        return location
    finally:
        await scheduler.close()


async def _find(scheduler: Scheduler, text: str, stream: Stream) -> tuple[LogLocation, Job | None]:
    target, job = await find_job(scheduler, text)
    location = await logfiles.find(scheduler, target, job, stream)
    if location is None:
        raise TfjobtuiError(f"there is no job {text}", "Neither the queue nor accounting has it.")
    return location, job


# --- once -------------------------------------------------------------------------------------------------


def _show(path: Path, last: int | None) -> int:
    """Print the file, or its last lines.

    Raises:
        TfjobtuiError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            if last is not None:
                file.seek(_offset_of_last(file.fileno(), last))
            pieces = iter(lambda: file.read(_PIECE_BYTES), b"")
            if sys.stdout.isatty():
                _print_shown(pieces)
            else:
                sys.stdout.flush()
                for piece in pieces:
                    sys.stdout.buffer.write(piece)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise TfjobtuiError(f"{path} cannot be read: {error.strerror}") from error
    return 0


def _offset_of_last(descriptor: int, count: int) -> int:
    """Where the last `count` lines begin; the file is read backwards, in pieces."""
    end = os.fstat(descriptor).st_size
    if count == 0:
        return end
    position, wanted = end, count
    # The newline at the very end ends the last line, and begins none.
    if end and os.pread(descriptor, 1, end - 1) == b"\n":
        position -= 1
    while position > 0:
        start = max(0, position - _PIECE_BYTES)
        piece = os.pread(descriptor, position - start, start)
        at = len(piece)
        while wanted and (at := piece.rfind(b"\n", 0, at)) >= 0:
            wanted -= 1
        if not wanted:
            return start + at + 1
        position = start
    return 0


def _print_shown(pieces: Iterator[bytes]) -> None:
    lines = TerminalLines()
    for piece in pieces:
        for line in lines.feed(piece):
            print(_painted(line))
    last = lines.finish()
    if last is not None:
        print(_painted(last))


# --- followed ---------------------------------------------------------------------------------------------


async def _follow_job(
    scheduler: Scheduler, options: argparse.Namespace, stream: Stream, interval_s: float
) -> int:
    """Wait for the log, then follow it until the job has ended."""
    try:
        location, job = await _find(scheduler, options.job, stream)
        told = ""
        while not location.exists and location.may_appear and not (job is None or job.state.is_terminal):
            if location.note != told:
                told = location.note
                complain(told)
            await asyncio.sleep(interval_s)
            location, job = await _try_find(scheduler, options.job, stream, (location, job))
        if location.path is None or not location.exists:
            raise TfjobtuiError(location.note or f"the log of job {options.job} is not there")
        if location.note:
            complain(location.note)
        return await _follow(
            location.path, _first_lines(options), _until_end(scheduler, options, job, interval_s)
        )
    finally:
        await scheduler.close()


async def _try_find(
    scheduler: Scheduler, text: str, stream: Stream, before: tuple[LogLocation, Job | None]
) -> tuple[LogLocation, Job | None]:
    """A query without an answer says nothing about the job: what was known stays."""
    try:
        return await _find(scheduler, text, stream)
    except QueryError:
        return before


async def _no_end() -> AsyncIterator[bool]:
    while True:
        yield False


async def _until_end(
    scheduler: Scheduler, options: argparse.Namespace, job: Job | None, interval_s: float
) -> AsyncIterator[bool]:
    """Whether the job has ended, asked at most every `interval_s` seconds."""
    asked = time.monotonic()
    has_ended = job is None or job.state.is_terminal
    while True:
        if not has_ended and time.monotonic() - asked >= interval_s:
            try:
                _, job = await find_job(scheduler, options.job)
                has_ended = job is None or job.state.is_terminal
            except QueryError as error:
                complain(f"still following; the queue gave no answer: {error.message}")
            asked = time.monotonic()
        yield has_ended


async def _follow(path: Path, first: int, ended: AsyncIterator[bool]) -> int:
    """Print the end of the file and what comes to it, until there is an end and nothing more comes."""
    reader = LogReader(path)
    printer = _Printer(reader)
    quiet_since = time.monotonic()
    reader.poll()
    printer.start(first)
    async for is_over in ended:
        change = reader.poll()
        if change.message:
            complain(change.message)
        if printer.go_on() or change.is_behind:
            quiet_since = time.monotonic()
        elif is_over and time.monotonic() - quiet_since >= _SETTLE_S:
            break
        if not change.is_behind:
            await asyncio.sleep(_LOOK_EVERY_S)
    printer.finish()
    return 0


class _Printer:
    """Prints a reader's lines as they are finished; on a terminal also the last one as it stands."""

    def __init__(self, reader: LogReader) -> None:
        self._lines = reader.lines
        self._next = 0
        self._live = ""
        self._is_terminal = sys.stdout.isatty()

    def start(self, count: int) -> None:
        """Begin with the last `count` lines that are known."""
        self._next = max(self._lines.first_index, self._lines.end_index - count)
        self.go_on()

    def go_on(self) -> bool:
        """Print what is new; say whether there was anything."""
        lines = self._lines
        end = lines.end_index - lines.has_unfinished
        finished = range(max(self._next, lines.first_index), end)
        live = _painted(lines.at(end), width_of()) if self._is_terminal and lines.has_unfinished else ""
        if not finished and live == self._live:
            return False
        if self._live:
            print("\r\x1b[K", end="")
        for number in finished:
            print(_painted(lines.at(number)))
        self._next = max(self._next, end)
        self._live = live
        print(live, end="", flush=True)
        return True

    def finish(self) -> None:
        """The line that was never finished stays."""
        if self._live:
            print()
        elif self._lines.has_unfinished and not self._is_terminal:
            print(_painted(self._lines.at(self._lines.end_index - 1)))


def _painted(line: ShownLine, width: int | None = None) -> str:
    """A line with its colours where they are wanted; cut to `width` cells it loses them."""
    if isinstance(line, str):
        return line if width is None else fit(line, width - 1).rstrip()
    if width is not None and cells(line.text) >= width:
        return fit(line.text, width - 1).rstrip()
    return _coloured(line) if line.spans and uses_colour() else line.text


def _coloured(line: LogLine) -> str:
    parts, at = [], 0
    for span in line.spans:
        parts += [
            line.text[at : span.start],
            f"\x1b[{_codes(span.style)}m",
            line.text[span.start : span.end],
            "\x1b[0m",
        ]
        at = span.end
    return "".join([*parts, line.text[at:]])


def _codes(style: Style) -> str:
    switches = ((style.bold, 1), (style.dim, 2), (style.italic, 3), (style.underline, 4), (style.reverse, 7))
    codes = [str(code) for is_on, code in switches if is_on]
    for colour, base in ((style.fg, 38), (style.bg, 48)):
        if isinstance(colour, tuple):
            codes.append(f"{base};2;{colour[0]};{colour[1]};{colour[2]}")
        elif colour is not None:
            codes.append(f"{base};5;{colour}")
    return ";".join(codes)
