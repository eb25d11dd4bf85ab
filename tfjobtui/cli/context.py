"""What every command needs: the scheduler, and the jobs that the user named."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from tfjobtui.cli.choice import choose
from tfjobtui.cli.output import complain
from tfjobtui.cli.setup import local_settings, slurm_settings
from tfjobtui.config import Config
from tfjobtui.errors import FormatError, UsageError
from tfjobtui.model.ids import JobId
from tfjobtui.model.job import Job
from tfjobtui.schedulers.scheduler import Scheduler, Target


def open_scheduler(config: Config, options: argparse.Namespace) -> Scheduler:
    """The scheduler that is meant (`--scheduler`), for the clusters that were named (`--clusters`) or are configured.

    Raises:
        UsageError: Slurm is meant, and it is not here; or clusters were named, and it is not meant.
    """
    settings = slurm_settings(config, options.clusters)
    choice = choose(config, settings, options.scheduler)
    if choice.warning:
        complain(choice.warning)
    if not choice.is_local:
        from tfjobtui.schedulers.slurm.client import SlurmScheduler

        return SlurmScheduler(settings, choice.commands)
    from tfjobtui.schedulers.local.client import LocalScheduler

    scheduler = LocalScheduler(local_settings(config))
    if options.clusters:
        raise UsageError(scheduler.capabilities.clusters.reason, "Leave --clusters out.")
    return scheduler


def parse_id(text: str) -> JobId:
    """A job id of the command line.

    Raises:
        UsageError: it is none.
    """
    try:
        return JobId.parse(text)
    except FormatError as error:
        raise UsageError(error.message, error.hint) from error


def matching(jobs: Sequence[Job], wanted: JobId) -> list[Job]:
    """The rows that an id means: of a whole array or het job, of one task, or of a raw id."""
    same = [job for job in jobs if job.id.job == wanted.job]
    if wanted == wanted.leader:
        return same or [job for job in jobs if job.raw_id == wanted.job]
    if wanted.tasks is not None:
        tasks = wanted.tasks
        return [
            job
            for job in same
            if job.id.task in tasks or (job.id.tasks is not None and _overlap(job, wanted))
        ]
    if wanted.task is not None:
        own = [job for job in same if job.id.task == wanted.task]
        rest = [job for job in same if job.id.tasks is not None and wanted.task in job.id.tasks]
        # The rest of an array that was cancelled before it started is listed under the array's own id.
        return own or rest or [job for job in same if job.id == wanted.leader and job.state.is_terminal]
    return [job for job in same if job.id == wanted]


def _overlap(job: Job, wanted: JobId) -> bool:
    assert job.id.tasks is not None
    assert wanted.tasks is not None
    few, many = sorted((job.id.tasks, wanted.tasks), key=len)
    return any(task in many for task in few)


def target_of(wanted: JobId, rows: Sequence[Job], *, pending_only: bool = False) -> Target:
    """What an action is to be done to: the id as it was given, with what its rows tell of the job."""
    if not rows:
        return Target(wanted, None, "", "", None, pending_only)
    job = rows[0]
    # A raw id of an array's task is replaced by the id that everybody sees.
    chosen = wanted if job.id.job == wanted.job else job.id
    return Target(chosen, job.cluster, job.name, job.user, job.submit_time_s, pending_only)


async def find_job(scheduler: Scheduler, text: str) -> tuple[Target, Job | None]:
    """The job that one id means, with its row in the queue where it has one.

    Raises:
        UsageError: it is no id.
        QueryError: the queue gave no answer.
    """
    wanted = parse_id(text)
    answer = await scheduler.jobs()
    rows = matching(answer.jobs, wanted)
    if not rows:
        return target_of(wanted, rows), None
    # Of an array's rows the one that runs says the most.
    rows.sort(key=lambda job: not job.state.is_active)
    return target_of(wanted, rows), rows[0]
