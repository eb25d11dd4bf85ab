"""How far a long piece of work is: a bar on a terminal, plain lines in a file or a pipe."""

import shutil
import sys
import time
from types import TracebackType
from typing import Self

from tfjob_trainer.log import say

TERMINAL_S = 0.1
PLAIN_S = 1.0
PLAIN_LATER_S = 10.0  # between plain lines, after the first minute
RECENT_S = 10.0  # the rate is that of the last so many seconds at least


class Progress:
    """Counts images; a context manager that says where it ended."""

    def __init__(self, what: str, total: int | None, done: int = 0) -> None:
        self._what = what
        self._total = total
        self._done = done
        self._began = self._told = time.monotonic()
        self._marks = [(self._began, done)]  # (time, done), for the rate
        self._terminal = sys.stdout.isatty()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._terminal:
            print("\r\033[K", end="", flush=True)
        if error is None:
            took_s = time.monotonic() - self._began
            say(f"{self._what}: {self._done} images, {took_s:.1f} s")

    def add(self, count: int) -> None:
        """So many more are done; 0 to show only that time goes by."""
        self._done += count
        now = time.monotonic()
        plain_s = PLAIN_S if now - self._began < 60 else PLAIN_LATER_S
        if now - self._told >= (TERMINAL_S if self._terminal else plain_s):
            self._told = now
            self._show(self.line(now))

    def line(self, now: float) -> str:
        """What is shown at the time `now`, without the bar."""
        if self._done == self._marks[0][1]:
            return f"{self._what}: starting"
        rate = self._rate(now)
        shown = f"{self._done}" if self._total is None else f"{self._done} of {self._total}"
        line = f"{self._what}: {shown} images, {rate:.0f} images/s"
        if self._total and rate > 0:
            line += f", {_duration((self._total - self._done) / rate)} left"
        return line

    def _rate(self, now: float) -> float:
        self._marks.append((now, self._done))
        while len(self._marks) > 2 and now - self._marks[1][0] >= RECENT_S:
            self._marks.pop(0)
        began, done = self._marks[0]
        return (self._done - done) / (now - began) if now > began else 0.0

    def _show(self, line: str) -> None:
        if not self._terminal:
            say(line)
            return
        bar = ""
        if self._total:
            filled = min(20, 20 * self._done // self._total)
            bar = f"[{'#' * filled}{'.' * (20 - filled)}] "
        width = shutil.get_terminal_size().columns - 1
        print(f"\r\033[K{(bar + line)[:width]}", end="", flush=True)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
