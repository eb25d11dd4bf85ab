"""Runs Slurm's commands: few at a time, each kind of query one by one, never without a time-out."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Generic, TypeVar

from tfjobtui import process
from tfjobtui.errors import CommandError, CommandNotFoundError
from tfjobtui.process import Completed
from tfjobtui.schedulers.slurm import environment
from tfjobtui.schedulers.slurm.failures import query_error, unanswered
from tfjobtui.schedulers.slurm.settings import Commands, SlurmSettings

Answer = TypeVar("Answer")

MOST_PROCESSES = 3
MOST_QUERIES = 2
"""One fewer than processes: what the user asked for never waits behind queries that hang."""


class Runner:
    """Runs commands with the right environment and within the limits above."""

    def __init__(self, settings: SlurmSettings, commands: Commands) -> None:
        self.settings = settings
        self.commands = commands
        self._all = asyncio.Semaphore(MOST_PROCESSES)
        self._queries = asyncio.Semaphore(MOST_QUERIES)
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def path(self, command: str) -> str:
        """The file of a command.

        Raises:
            CommandNotFoundError: it was not found on this machine.
        """
        found = self.commands.get(command)
        if found is None:
            raise CommandNotFoundError(
                f"{command} was not found on this machine",
                (command,),
                f"Put its folder on the PATH, or set `commands.{command}` in the configuration.",
            )
        return found

    @contextlib.asynccontextmanager
    async def query_slot(self, command: str) -> AsyncIterator[None]:
        """Wait until a query by this command may run: one of its kind, and `MOST_QUERIES` in all."""
        async with self._locks[command], self._queries, self._all:
            yield

    async def raw_query(self, command: str, arguments: Sequence[str]) -> Completed:
        """Run a query and give what came, whatever its exit code.

        Raises:
            QueryError: the command is not there, or gave no answer in time.
        """
        try:
            argv = (self.path(command), *arguments)
            async with self.query_slot(command):
                return await process.run(
                    argv, timeout_s=self.settings.query_timeout_s, env=environment.for_queries()
                )
        except CommandError as error:
            raise unanswered(error) from error

    async def query(self, command: str, arguments: Sequence[str]) -> Completed:
        """Run a query that must succeed.

        Raises:
            QueryError: it did not. "Exit code 0, no output and an error text" is a failure as well.
        """
        done = await self.raw_query(command, arguments)
        if has_failed(done):
            raise query_error(done)
        return done

    async def act(
        self,
        command: str,
        arguments: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> Completed:
        """Run a command that changes something.

        Raises:
            CommandNotFoundError, CommandTimeoutError
        """
        argv = (self.path(command), *arguments)
        async with self._locks[f"{command} (action)"], self._all:
            return await process.run(
                argv,
                timeout_s=self.settings.action_timeout_s,
                env=environment.for_queries() if env is None else env,
                cwd=cwd,
            )


def has_failed(done: Completed) -> bool:
    """Whether a query gave no answer: several commands end with 0 after an error."""
    return done.returncode != 0 or (bool(done.stderr.strip()) and not done.stdout.strip())


class SingleFlight(Generic[Answer]):
    """Lets callers that ask the same while an answer is on its way share it.

    The work is cancelled when the last of them has gone.
    """

    def __init__(self) -> None:
        self._running: dict[Hashable, tuple[asyncio.Task[Answer], list[object]]] = {}

    async def get(self, key: Hashable, work: Callable[[], Awaitable[Answer]]) -> Answer:
        """The answer of `work`, or of the one that is under way for the same key."""
        running = self._running.get(key)
        if running is None or running[0].done():
            task = asyncio.ensure_future(_awaited(work))
            running = self._running[key] = (task, [])
        task, waiting = running
        me = object()
        waiting.append(me)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if waiting == [me] and not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
            raise
        finally:
            waiting.remove(me)
            if not waiting and self._running.get(key) is running:
                del self._running[key]


async def _awaited(work: Callable[[], Awaitable[Answer]]) -> Answer:
    return await work()
