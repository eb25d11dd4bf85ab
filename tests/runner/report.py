"""Progress, stage by stage, and the sum at the end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


class RunError(Exception):
    """Something that stops the whole run, in words for the person who started it."""


@dataclass
class Report:
    """What has been done so far, and what came of it."""

    started: float = field(default_factory=time.monotonic)
    failed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def say(self, text: str) -> None:
        """One line, with the seconds since the start."""
        print(f"[{time.monotonic() - self.started:6.1f} s] {text}", flush=True)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """A part of the work, announced at its start and timed at its end."""
        self.say(f"{name} ...")
        start = time.monotonic()
        yield
        self.say(f"{name}: took {time.monotonic() - start:.1f} s")

    def check(self, name: str, rc: int) -> None:
        """Note how a check ended; a failed one doesn't stop those after it."""
        if rc != 0:
            self.failed.append(name)
            self.say(f"{name}: FAILED (rc {rc})")

    def note(self, text: str) -> None:
        """Something the reader has to know at the end."""
        self.notes.append(text)
        self.say(text)

    def close(self) -> int:
        """Print the sum; the exit status."""
        print()
        for text in self.notes:
            print(f"NOTE: {text}")
        self.say(f"FAILED: {', '.join(self.failed)}" if self.failed else "all passed")
        return 1 if self.failed else 0
