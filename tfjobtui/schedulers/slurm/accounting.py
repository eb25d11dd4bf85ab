"""How jobs ended, from Slurm's accounting; it asks slurmdbd, never slurmctld."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tfjobtui.errors import QueryError
from tfjobtui.model.ids import JobId
from tfjobtui.schedulers.scheduler import YES, Capability, EndedJob, Target
from tfjobtui.schedulers.slurm import argv
from tfjobtui.schedulers.slurm.failures import NO_ACCOUNTING, query_error
from tfjobtui.schedulers.slurm.runner import Runner, has_failed
from tfjobtui.schedulers.slurm.sacct import known_fields, latest, parse_rows

MARGIN_S = 3600
"""Before the earliest submission: clocks differ, and an hour is told twice a year."""
SLACK_S = 60
MOST_IDS = 500

NONE_HERE = Capability(
    False, "This site keeps no accounting: how a job ended is known only while the queue still has it."
)


class AccountingReader:
    """Asks sacct; knows which fields this version has, and whether there is accounting at all."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._names: tuple[str, ...] | None = None
        self.capability = YES
        if runner.commands.get("sacct") is None:
            self.capability = Capability(False, "sacct was not found on this machine.")

    async def ended(self, targets: Sequence[Target]) -> tuple[EndedJob, ...]:
        """The ends of these jobs, one query for all; who still waits or runs is left out."""
        if not targets or not self.capability:
            return ()
        records = await self._records(targets)
        wanted = _ByJob(targets)
        found: list[EndedJob] = []
        for record in latest(records):
            same = [target for target in wanted.of(record) if _is_same(record, target)]
            if record.state.is_terminal and same:
                found += _told_of(record, same)
        return tuple(found)

    async def submit_line(self, target: Target) -> str:
        """The command that submitted the job, or an empty text."""
        try:
            records = await self._records((target,)) if self.capability else ()
        except QueryError:
            return ""
        same = [record for record in records if _is_same(record, target, with_tasks=True)]
        return same[-1].submit_line if same else ""

    async def _records(self, targets: Sequence[Target]) -> tuple[EndedJob, ...]:
        names = await self._known_names()
        records: list[EndedJob] = []
        for start in range(0, len(targets), MOST_IDS):
            some = targets[start : start + MOST_IDS]
            clusters = sorted({target.cluster for target in some if target.cluster})
            times = [target.submit_time_s for target in some]
            known = [moment for moment in times if moment is not None]
            since = since_option(min(known)) if len(known) == len(times) else None
            ids = list(dict.fromkeys(_query_id(target) for target in some))
            arguments = argv.accounting(ids, names, clusters=clusters, since=since)
            done = await self._runner.raw_query("sacct", arguments)
            if has_failed(done):
                if NO_ACCOUNTING.search(done.stderr_text):
                    self.capability = NONE_HERE
                    return ()
                raise query_error(done)
            records += parse_rows(done.stdout_text, names)
        return tuple(records)

    async def _known_names(self) -> tuple[str, ...]:
        if self._names is None:
            done = await self._runner.query("sacct", ("--helpformat",))
            self._names = known_fields(done.stdout_text)
        return self._names


def since_option(submit_time_s: int | None) -> str | None:
    """The start of the time to look in, for `-S`: ids are used again after years."""
    if submit_time_s is None:
        return None
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(submit_time_s - MARGIN_S))


def _query_id(target: Target) -> str:
    # An array's rest may have become any number of records, and the parts of a het job may have one in
    # common: the id of the whole finds them all.
    return str(target.id) if target.id.tasks is None and target.id.het_offset is None else str(target.id.job)


def _told_of(record: EndedJob, targets: Sequence[Target]) -> list[EndedJob]:
    """The record, or as many as there are parts of a het job that it is the only one of."""
    parts = [target for target in targets if target.id.het_offset is not None]
    if not parts or record.id.het_offset is not None:
        return [record]
    whole = [record] if len(parts) < len(targets) else []
    return whole + [replace(record, id=part.id, raw_id=part.raw_id or record.raw_id) for part in parts]


class _ByJob:
    """The targets by their job number, own or array's."""

    def __init__(self, targets: Iterable[Target]) -> None:
        self._by_number: dict[int, list[Target]] = {}
        for target in targets:
            for number in {target.id.job, target.raw_id or target.id.job}:
                self._by_number.setdefault(number, []).append(target)

    def of(self, record: EndedJob) -> list[Target]:
        numbers = {record.id.job, record.raw_id}
        return [target for number in numbers for target in self._by_number.get(number, ())]


def _is_same(record: EndedJob, target: Target, *, with_tasks: bool = False) -> bool:
    """Whether a record is the target's, and not that of another job which had the same id before."""
    if target.user and record.user and target.user != record.user:
        return False
    early = (
        target.submit_time_s is not None
        and record.submit_time_s is not None
        and record.submit_time_s < target.submit_time_s - SLACK_S
    )
    return not early and (_covers(target.id, record) or (with_tasks and record.id.job == target.id.job))


def _covers(wanted: JobId, record: EndedJob) -> bool:
    if wanted == record.id:
        return True
    if wanted.task is None and wanted.tasks is None and wanted.het_offset is None:
        # A whole array or het job, or a task by its own number.
        return wanted.job in {record.id.job, record.raw_id}
    if wanted.het_offset is not None:
        # From 24.11 on, a het job that was cancelled while it waited has one record, under its own id.
        return record.id == wanted.leader
    if wanted.tasks is not None and wanted.job == record.id.job:
        # A rest that was cancelled as a whole is recorded under the array's own id.
        return record.id.task is None or record.id.task in wanted.tasks
    return False
