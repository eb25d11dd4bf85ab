"""Where the output of a job is: of one in the queue, and of one that has left it.

The queue's pattern is asked first, the controller's path where that is not enough, and accounting (from
Slurm 24.05 on it keeps the patterns) or the command line of the submission for what has ended.
"""

from __future__ import annotations

from tfjobtui.actions.submit_line import first_options, value_of
from tfjobtui.errors import QueryError
from tfjobtui.logs.location import LogLocation, LogQuery, locate
from tfjobtui.logs.patterns import PatternIds
from tfjobtui.model.job import Job
from tfjobtui.model.stream import Stream
from tfjobtui.schedulers.scheduler import EndedJob, JobDetails, Scheduler, Target

_FIELDS = {Stream.STDOUT: "StdOut", Stream.STDERR: "StdErr"}


def of_job(
    job: Job, stream: Stream = Stream.STDOUT, details: JobDetails | None = None, version: str = ""
) -> LogLocation:
    """The log of a job that stands in the queue; `details` make it surer. Looks at files, asks nobody."""
    path = details.get(_FIELDS[stream]) if details is not None else ""
    return locate(LogQuery.of(job, stream, path, release(version)))


def of_ended(ended: EndedJob, stream: Stream = Stream.STDOUT, version: str = "") -> LogLocation:
    """The log of a job that only accounting knows: its patterns, else what its submission named."""
    line = first_options(ended.submit_line)
    stdout = ended.stdout_pattern or value_of(line, "output")
    stderr = ended.stderr_pattern or value_of(line, "error")
    first_node = "" if any(mark in ended.nodes for mark in ",[") else ended.nodes
    query = LogQuery(
        stream=stream,
        ids=PatternIds(
            job_id=ended.raw_id,
            array_job_id=ended.id.job if ended.id.is_array else None,
            array_task_id=ended.id.task,
            node=first_node,
            user=ended.user,
            job_name=ended.name,
        ),
        stdout_pattern=stdout,
        stderr_pattern=stderr,
        work_dir=ended.work_dir,
        state=ended.state,
        exit_code=ended.exit_code,
        start_time_s=ended.start_time_s,
        slurm_version=release(version),
    )
    return locate(query)


async def find(
    scheduler: Scheduler, target: Target, job: Job | None, stream: Stream = Stream.STDOUT
) -> LogLocation | None:
    """The log of a job, asking as little as is needed; `None` where nobody knows the job.

    Raises:
        QueryError: accounting gave no answer, and nothing else knows the job.
    """
    version = scheduler.capabilities.version
    if job is not None:
        found = of_job(job, stream, None, version)
        if found.exists or job.state.is_waiting:
            return found
        try:
            details = await scheduler.details(target)
        except QueryError:
            return found
        return of_job(job, stream, details, version) if details is not None else found
    if not scheduler.capabilities.accounting:
        return None
    ended = next(iter(await scheduler.ended([target])), None)
    return None if ended is None else of_ended(ended, stream, version)


def release(version: str) -> tuple[int, int] | None:
    """`22.05.8` → (22, 5)."""
    parts = version.split(".")
    if len(parts) < 2 or not (parts[0].isdigit() and parts[1].isdigit()):
        return None
    return int(parts[0]), int(parts[1])
