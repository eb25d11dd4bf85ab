"""The queue: own jobs or everybody's, one `squeue` for each reading."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Mapping

from tfjobtui.errors import CommandError, QueryError
from tfjobtui.model.job import Job
from tfjobtui.process import Completed, EarlyProcess
from tfjobtui.schedulers.scheduler import QueueAnswer
from tfjobtui.schedulers.slurm import form
from tfjobtui.schedulers.slurm.early import EarlyQuery
from tfjobtui.schedulers.slurm.failures import known_failure, query_error, unanswered
from tfjobtui.schedulers.slurm.form import Layout, layout
from tfjobtui.schedulers.slurm.runner import Runner, SingleFlight, has_failed
from tfjobtui.schedulers.slurm.squeue import Reader, Reading

_UNKNOWN_FIELD = re.compile(rb"Invalid job format specification: ([\w-]+)")
MOST_TRIES = 6


class QueueReader:
    """Asks squeue, and learns what this site's squeue takes."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self.is_federated = False
        self._is_short = False
        self._has_worked = False
        self._refused: frozenset[str] = frozenset()
        self._reader = Reader(self._layout())
        self._rows: dict[bool, Mapping[bytes, Job]] = {}
        self._early: EarlyQuery | None = None
        self._ready: QueueAnswer | None = None
        self._warm = Reading()
        """Rows of the early query that were read while the others were still on their way."""
        self._arrived = (b"", 0)
        self._flight: SingleFlight[QueueAnswer] = SingleFlight()

    @property
    def notes(self) -> tuple[str, ...]:
        """What is different at this site, in sentences."""
        notes: list[str] = []
        if self._is_short:
            notes.append(
                "The squeue of this site takes no -O: restarts, memory, output files and exit codes are not"
                " known, and GPUs only where they were asked for by node."
            )
        if self._refused:
            notes.append(f"The squeue of this site does not know: {', '.join(sorted(self._refused))}.")
        if self.is_federated:
            notes.append("The jobs of the whole federation are shown.")
        return tuple(notes)

    def adopt(self, query: EarlyQuery) -> None:
        """Take over a query of own jobs that is under way."""
        self._early = query

    def warm_up(self) -> bool:
        """Read rows of the early query that have come so far, for some milliseconds; false if there are none."""
        if self._early is None:
            return False
        rest, number = self._arrived
        if len(rest) < PIECE:
            more, number = self._early.process.arrived(number)
            rest += more
        end = rest.rfind(_ROW_END, 0, PIECE) + len(_ROW_END)
        is_some = end >= len(_ROW_END)
        if is_some:
            self._reader.parse(rest[:end], into=self._warm)
            rest = rest[end:]
        self._arrived = (rest, number)
        return is_some

    def early_answer(self) -> QueueAnswer | None:
        """The answer to the query that was started early, if it has come and is good; `jobs()` gives it again."""
        if self._ready is not None or self._early is None:
            return self._ready
        if not self._early.process.is_done():
            while self.warm_up():
                pass
            return None
        done = self._early.process.completed
        if done is None or self._has_no_answer(done) or not self._has_rows(done):
            return None  # `jobs()` looks closer
        self._early = None
        self._has_worked = True
        reading = self._reader.parse(done.stdout, self._take_warm())
        self._rows[False] = reading.rows
        taken_at_s = time.time()
        self._ready = QueueAnswer(tuple(reading.jobs), taken_at_s, done.duration_s, tuple(reading.problems))
        return self._ready

    def _take_warm(self) -> Mapping[bytes, Job]:
        """The rows that were read in advance, once; what was odd about them comes up again with the whole."""
        warm, self._warm, self._arrived = self._warm.rows, Reading(), (b"", 0)
        return warm

    async def jobs(self, *, everyone: bool) -> QueueAnswer:
        """Read the queue once; callers at the same time share the answer."""
        return await self._flight.get(everyone, lambda: self._ask(everyone))

    def close(self) -> None:
        if self._early is not None:
            self._early.process.end()
            self._early = None

    async def _ask(self, everyone: bool) -> QueueAnswer:
        ready, self._ready = self._ready, None
        if ready is not None and not everyone:
            return ready
        for _ in range(MOST_TRIES):
            shape = self._layout()
            done = await self._run(shape, everyone)
            if not self._learn(done, shape):
                break
        if self._has_no_answer(done):
            self._is_short = self._is_short and self._has_worked  # -O was not what was wrong
            raise query_error(done)
        if not self._has_rows(done):
            self._is_short = False
            raise QueryError(
                "squeue of this site answers in a form of its own",
                "`commands.squeue` in the configuration can name Slurm's own squeue.",
            )
        self._has_worked = True
        return await self._read(done, shape, everyone)

    async def _run(self, shape: Layout, everyone: bool) -> Completed:
        if not everyone and self._early is not None and self._early.shape == shape:
            async with self._runner.query_slot("squeue"):
                return await self._early_result(self._early.process)
        return await self._runner.raw_query("squeue", self._arguments(shape, everyone=everyone))

    async def _early_result(self, early: EarlyProcess) -> Completed:
        try:
            while not early.is_done():  # noqa: ASYNC110 - set by a thread that began before there was a loop
                await asyncio.sleep(0 if self.warm_up() else 0.005)
            return await early.result()
        except CommandError as error:
            raise unanswered(error) from error
        except asyncio.CancelledError:
            early.end()
            raise
        finally:
            self._early = None

    def _arguments(self, shape: Layout, *, everyone: bool) -> tuple[str, ...]:
        return form.arguments(
            shape,
            uid=None if everyone else os.getuid(),
            clusters=self._runner.settings.clusters,
            is_federated=self.is_federated,
        )

    def _layout(self) -> Layout:
        return layout(
            clusters=bool(self._runner.settings.clusters), short=self._is_short, without=self._refused
        )

    def _learn(self, done: Completed, shape: Layout) -> bool:
        """Adapt to what this squeue refused; whether it is worth to ask again."""
        unknown = _UNKNOWN_FIELD.search(done.stderr) if done.returncode else None
        if unknown is not None and not shape.is_short:
            name = unknown[1].decode()
            known = next((one for one in shape.names if one.lower() == name.lower()), None)
            if known is not None and known not in _NEEDED:
                self._refused |= {known}
                return True
        if shape.is_short or self._has_worked:
            return False
        text = done.stderr_text + done.stdout_text[:2000] if done.returncode else ""
        # A wrapper may refuse -O in words of its own, or print its usual table in spite of it.
        refuses = bool(done.returncode) and known_failure(text) is None
        if refuses or not (self._has_no_answer(done) or self._has_rows(done)):
            self._is_short = True
            return True
        return False

    def _has_no_answer(self, done: Completed) -> bool:
        # With several clusters, one that does not answer gives an error text and exit code 0.
        some_missing = bool(self._runner.settings.clusters) and b"error:" in done.stderr
        return some_missing or has_failed(done)

    def _has_rows(self, done: Completed) -> bool:
        # First what is found at once: the other goes through 20 MB of a long queue.
        return b"\x1f" in done.stdout or not done.stdout.replace(b"CLUSTER:", b"").strip()

    async def _read(self, done: Completed, shape: Layout, everyone: bool) -> QueueAnswer:
        if self._reader.shape != shape:
            self._reader = Reader(shape)
            self._rows.clear()
        taken_at_s = time.time()
        reading = Reading()
        known = self._rows.get(everyone) or self._take_warm()
        # The first rows are waited for; later a rest lets the threads of keys and screen have the interpreter.
        rest_s = 0.001 if everyone in self._rows else 0.0
        for _ in self._reader.steps(done.stdout, reading, known):
            await asyncio.sleep(rest_s)
        self._rows[everyone] = reading.rows
        return QueueAnswer(tuple(reading.jobs), taken_at_s, done.duration_s, tuple(reading.problems))


PIECE = 1 << 16
"""Bytes that are read in advance at once: some 150 rows, a millisecond or two."""
_ROW_END = b"\x1e\n"
_NEEDED = frozenset({"JobArrayID", "JobID", "State", "Name", "UserID"})
