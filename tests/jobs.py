"""Jobs for tests, made from the few fields that a test is about."""

from __future__ import annotations

from typing import Any

from tfjobtui.model.ids import JobId
from tfjobtui.model.job import Gpus, Job
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.scheduler import QueueAnswer


def make_job(job_id: str = "100", state: str = "RUNNING", **fields: Any) -> Job:
    """A job of this id and state (its long name), the other fields as given or plain.

    `gpus` may be a pair such as ("a100", 2).
    """
    parsed = JobId.parse(job_id)
    cluster = fields.get("cluster")
    gpus = fields.pop("gpus", None)
    defaults: dict[str, Any] = {
        "raw_id": fields.pop("raw_id", parsed.job + (parsed.task or 0)),
        "name": "train",
        "user": "ada",
        "user_id": 1001,
        "partition": "gpu",
        "cpus": 4,
        "memory_bytes": 8 << 30,
        "node_count": 1,
        "submit_time_s": 1_700_000_000,
        "time_limit_s": 3600.0,
        "work_dir": "/w",
    }
    key = f"{cluster}/{parsed.key}" if cluster else parsed.key
    return Job(
        id=parsed,
        key=key,
        state=JobState.of(state),
        state_text=state,
        gpus=Gpus((gpus,)) if gpus else Gpus(),
        **{**defaults, **fields},
    )


def answer(*jobs: Job, silent: tuple[str, ...] = (), duration_s: float = 0.1) -> QueueAnswer:
    """A reading of the queue with these jobs."""
    return QueueAnswer(jobs, taken_at_s=1_700_000_100.0, duration_s=duration_s, silent_clusters=silent)
