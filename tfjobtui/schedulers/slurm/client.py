"""Slurm as a `Scheduler`: the parts put together.

The parts that the first rows do not need are imported when they are first used: each costs the start of
the program a millisecond or several.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tfjobtui.errors import QueryError
from tfjobtui.schedulers.scheduler import (
    YES,
    ActionResult,
    Capabilities,
    Capability,
    EndedJob,
    Forecast,
    JobDetails,
    Partition,
    PriorityFactor,
    QueueAnswer,
    StepUsage,
    StoredScript,
    SubmitRequest,
    Submitted,
    Target,
)
from tfjobtui.schedulers.slurm import argv
from tfjobtui.schedulers.slurm.accounting import NONE_HERE, AccountingReader
from tfjobtui.schedulers.slurm.early import EarlyQuery
from tfjobtui.schedulers.slurm.failures import NO_SUCH_JOB, query_error
from tfjobtui.schedulers.slurm.queue import QueueReader
from tfjobtui.schedulers.slurm.runner import Runner, SingleFlight, has_failed
from tfjobtui.schedulers.slurm.scontrol_config import SiteConfig, parse_config
from tfjobtui.schedulers.slurm.settings import Commands, SlurmSettings, discover

if TYPE_CHECKING:
    from tfjobtui.model.node import Node

OLDEST = (22, 5)
"""Older releases work as far as they can."""


class SlurmScheduler:
    """Slurm's client commands; nothing is run before it is asked for."""

    def __init__(self, settings: SlurmSettings | None = None, commands: Commands | None = None) -> None:
        self.settings = settings or SlurmSettings()
        self.commands = commands or discover(self.settings)
        self._runner = Runner(self.settings, self.commands)
        self._queue = QueueReader(self._runner)
        self._accounting = AccountingReader(self._runner)
        self._details: SingleFlight[JobDetails | None] = SingleFlight()
        self._site: SiteConfig | None = None
        self._learning: asyncio.Task[None] | None = None
        self._first_answer_s: float | None = None

    # What there is

    @property
    def capabilities(self) -> Capabilities:
        site = self._site or SiteConfig()
        scontrol = self._needs("scontrol")
        everyone = Capability(False, "This site shows each user only their own jobs.")
        basic = Capability(False, "This site orders jobs by their age alone.")
        return Capabilities(
            name="Slurm",
            version=site.version,
            accounting=self._accounting.capability,
            everyone=everyone if site.hides_jobs else YES,
            shell=self._needs("srun"),
            priority=self._needs("sprio") if site.has_priorities else basic,
            submit=self._needs("sbatch"),
            forecast=self._needs("sbatch"),
            hold=scontrol,
            requeue=scontrol,
            update=scontrol,
        )

    def _needs(self, command: str) -> Capability:
        if self.commands.get(command) is not None:
            return YES
        return Capability(False, f"{command} was not found on this machine.")

    @property
    def notes(self) -> tuple[str, ...]:
        """What is different at this site, in sentences for the user."""
        notes = [*self._queue.notes]
        notes += [f"{name} was not found on this machine." for name in self.commands.missing]
        if not self._accounting.capability and "sacct" not in self.commands.missing:
            notes.append(self._accounting.capability.reason)
        site = self._site
        if site is not None and site.hides_jobs:
            notes.append("This site shows each user only their own jobs.")
        if site is not None and (version := _release(site.version)) is not None and version < OLDEST:
            notes.append(
                f"Slurm {site.version} is older than 22.05, the oldest release that is supported:"
                " some of what is shown may be missing."
            )
        return tuple(notes)

    async def learn(self) -> None:
        """Ask once what is particular here: the version, federation, hidden jobs. One request."""
        if self._site is not None:
            return
        if self.commands.get("scontrol") is not None:
            with contextlib.suppress(QueryError):
                done = await self._runner.query("scontrol", argv.show_config())
                self._site = parse_config(done.stdout_text)
        elif self.commands.get("squeue") is not None:
            with contextlib.suppress(QueryError):
                done = await self._runner.query("squeue", ("--version",))
                self._site = SiteConfig(version=done.stdout_text.split()[-1])
        if self._site is not None:
            self._queue.is_federated = self._site.is_federated and not self.settings.clusters
            if not self._site.has_accounting and self._accounting.capability:
                self._accounting.capability = NONE_HERE

    # The queue

    def adopt(self, query: EarlyQuery) -> None:
        """Take over a query of the user's own jobs that was started early; the first `jobs()` gives its answer."""
        self._queue.adopt(query)

    def early_answer(self) -> QueueAnswer | None:
        """The answer to such a query, if it has come and is good; the first `jobs()` gives it again."""
        return self._queue.early_answer()

    async def jobs(self, *, everyone: bool = False) -> QueueAnswer:
        answer = await self._queue.jobs(everyone=everyone)
        if self._first_answer_s is None:
            self._first_answer_s = answer.taken_at_s
        # Not with the first rows, which are waited for, nor in a command that asks only once.
        elif self._first_answer_s != answer.taken_at_s and self._learning is None:
            self._learning = asyncio.create_task(self.learn())
        return answer

    async def details(self, target: Target) -> JobDetails | None:
        return await self._details.get(target, lambda: self._ask_details(target))

    async def _ask_details(self, target: Target) -> JobDetails | None:
        from tfjobtui.schedulers.slurm import scontrol_job

        arguments = argv.show_job(target, is_federated=self._queue.is_federated)
        done = await self._runner.raw_query("scontrol", arguments)
        if has_failed(done):
            if NO_SUCH_JOB.search(done.stderr_text) or NO_SUCH_JOB.search(done.stdout_text):
                return None
            raise query_error(done)
        return scontrol_job.details(done.stdout_text, target)

    async def priority(self, target: Target) -> tuple[PriorityFactor, ...]:
        from tfjobtui.schedulers.slurm import sprio

        done = await self._runner.raw_query("sprio", argv.priority(target, sprio.FORM))
        if sprio.NO_SUCH_JOB.search(done.stdout_text + done.stderr_text):
            return ()
        if has_failed(done):
            raise query_error(done)
        return sprio.parse_factors(done.stdout_text)

    # Actions

    def action_commands(
        self, action: str, targets: Sequence[Target], signal: str | None = None
    ) -> tuple[tuple[str, ...], ...]:
        from tfjobtui.schedulers.slurm import control

        found = control.calls(action, targets, signal)
        return tuple((self.commands.get(call.command) or call.command, *call.arguments) for call in found)

    async def cancel(self, targets: Sequence[Target], signal: str | None = None) -> tuple[ActionResult, ...]:
        from tfjobtui.schedulers.slurm import control

        return await control.act(self._runner, "cancel", targets, signal)

    async def hold(self, targets: Sequence[Target]) -> tuple[ActionResult, ...]:
        from tfjobtui.schedulers.slurm import control

        return await control.act(self._runner, "hold", targets)

    async def release(self, targets: Sequence[Target]) -> tuple[ActionResult, ...]:
        from tfjobtui.schedulers.slurm import control

        return await control.act(self._runner, "release", targets)

    async def requeue(self, targets: Sequence[Target]) -> tuple[ActionResult, ...]:
        from tfjobtui.schedulers.slurm import control

        return await control.act(self._runner, "requeue", targets)

    async def update(self, target: Target, changes: Mapping[str, str]) -> ActionResult:
        from tfjobtui.schedulers.slurm import control

        return await control.update(self._runner, target, changes)

    async def submit(self, request: SubmitRequest) -> Submitted:
        from tfjobtui.schedulers.slurm import submission

        return await submission.submit(self._runner, request)

    async def forecast(self, request: SubmitRequest) -> Forecast:
        from tfjobtui.schedulers.slurm import submission

        return await submission.forecast(self._runner, request)

    # What was, and what there is

    async def stored_script(self, target: Target) -> StoredScript | None:
        from tfjobtui.schedulers.slurm import submission

        return await submission.stored_script(self._runner, self._accounting, target)

    async def ended(self, targets: Sequence[Target]) -> tuple[EndedJob, ...]:
        return await self._accounting.ended(targets)

    async def partitions(self) -> tuple[Partition, ...]:
        from tfjobtui.schedulers.slurm import sinfo

        form = argv.partitions(sinfo.PARTITION_FORM, self.settings.clusters)
        done = await self._runner.query("sinfo", form)
        return sinfo.parse_partitions(done.stdout_text)

    async def nodes(self) -> tuple[Node, ...]:
        """The nodes with their GPUs, each once."""
        from tfjobtui.schedulers.slurm import sinfo

        done = await self._runner.query("sinfo", argv.nodes(sinfo.NODE_FORM, self.settings.clusters))
        return sinfo.parse_nodes(done.stdout_text)

    # Steps

    def shell_argv(self, target: Target, node: str | None = None) -> tuple[str, ...]:
        from tfjobtui.schedulers.slurm import steps

        return steps.shell_argv(self._runner, target, node)

    def foreground_environment(self) -> Mapping[str, str]:
        from tfjobtui.schedulers.slurm import steps

        return steps.foreground_environment()

    async def step_usage(self, target: Target) -> tuple[StepUsage, ...]:
        """What the steps of a running job have used; empty where there are no figures yet."""
        from tfjobtui.schedulers.slurm import steps

        return await steps.step_usage(self._runner, target)

    async def close(self) -> None:
        self._queue.close()
        if self._learning is not None:
            self._learning.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._learning


def _release(version: str) -> tuple[int, int] | None:
    match = re.match(r"(\d+)\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else None
