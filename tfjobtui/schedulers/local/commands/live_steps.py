"""The steps of a running job, as its shepherd tells them."""

from __future__ import annotations

import sys

from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local import channel, rows
from tfjobtui.schedulers.local.records import JobRecord, StepRecord

_BATCH = "batch"


def steps_of(record: JobRecord, command: str) -> tuple[StepRecord, ...]:
    """The batch step, then srun's, those that have ended too; empty where the shepherd does not answer."""
    if record.state not in (JobState.RUNNING, JobState.COMPLETING):
        return record.steps
    try:
        answer = channel.ask(record.token, {"do": "usage"})
    except channel.NotReachableError as error:
        sys.stderr.write(f"{command}: error: job {record.job_id}: {error}\n")
        return ()
    batch = StepRecord(
        name=_BATCH,
        title=_BATCH,
        tasks=1,
        start_s=record.start_s or 0.0,
        end_s=None,
        state=JobState.RUNNING,
        exit_code=None,
        usage=rows.usage_of(answer["usage"]),
    )
    return (batch, *map(rows.step_of, answer["steps"]))
