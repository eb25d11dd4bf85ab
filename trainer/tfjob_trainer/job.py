"""What Slurm says about the job that we are, from its environment."""

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Job:
    """The job of this attempt. Outside Slurm `job_id` is None and `restart` 0."""

    job_id: str | None  # "12", or "12_3" for an array task: what the user types
    name: str
    restart: int  # how often Slurm has started this job again
    cluster: str | None
    nodes: str | None  # Slurm's node list, "gpu[01-02]"
    partition: str | None

    @property
    def folder_name(self) -> str | None:
        """The run folder's name, "train-12"; None outside Slurm."""
        return f"{safe_name(self.name)}-{self.job_id}" if self.job_id else None


def safe_name(name: str) -> str:
    """A job name as part of a path: anything but ASCII letters, digits, `.`, `_` and `-` becomes `_`."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", name)


def from_environment(environment: Mapping[str, str]) -> Job:
    """The job that the variables in `environment` tell of."""
    job_id = environment.get("SLURM_JOB_ID")
    master, task = environment.get("SLURM_ARRAY_JOB_ID"), environment.get("SLURM_ARRAY_TASK_ID")
    if master and task:
        job_id = f"{master}_{task}"
    restart = environment.get("SLURM_RESTART_COUNT", "")
    return Job(
        job_id=job_id or None,
        name=environment.get("SLURM_JOB_NAME") or "train",
        restart=int(restart) if restart.isdecimal() else 0,
        cluster=environment.get("SLURM_CLUSTER_NAME") or None,
        nodes=environment.get("SLURM_JOB_NODELIST") or None,
        partition=environment.get("SLURM_JOB_PARTITION") or None,
    )
