"""Where Slurm's commands are, and how they are to be used. Nothing here runs one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field

COMMANDS = ("squeue", "scontrol", "scancel", "sbatch", "srun", "sacct", "sstat", "sinfo", "sprio")

USUAL_FOLDERS = (
    "/usr/bin",
    "/usr/local/bin",
    "/opt/slurm/bin",
    "/opt/slurm/current/bin",
    "/usr/local/slurm/bin",
    "/usr/slurm/bin",
    "/usr/lib/slurm/bin",
    "/cm/shared/apps/slurm/current/bin",
    "/apps/slurm/bin",
    "/opt/software/slurm/bin",
)
"""Where sites install Slurm; looked at after the PATH."""


@dataclass(frozen=True, slots=True)
class SlurmSettings:
    """What a site or a user can set.

    `commands` names a command's file where it is not to be looked for. `clusters` are the clusters to
    watch (`-M`); without any, the local one is. Times are in seconds.
    """

    commands: Mapping[str, str] = field(default_factory=dict)
    clusters: tuple[str, ...] = ()
    query_timeout_s: float = 30
    action_timeout_s: float = 60


@dataclass(frozen=True, slots=True)
class Commands:
    """The commands that were found, by name; and in which folders was looked."""

    paths: Mapping[str, str]

    def get(self, name: str) -> str | None:
        return self.paths.get(name)

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(name for name in COMMANDS if name not in self.paths)


def discover(settings: SlurmSettings, path: str | None = None) -> Commands:
    """Find the commands: as set, on the PATH (or on `path`), beside squeue, or in the usual folders."""
    places = os.environ.get("PATH", os.defpath) if path is None else path
    found: dict[str, str] = {}
    for name in COMMANDS:
        explicit = settings.commands.get(name)
        # What was set is taken as it is: a wrong path shall fail under its own name, not be replaced.
        where = explicit or shutil.which(name, path=places)
        if where:
            found[name] = where
    beside = [os.path.dirname(found["squeue"])] if "squeue" in found else []  # noqa: PTH120
    extra = os.pathsep.join([*beside, *USUAL_FOLDERS])
    for name in COMMANDS:
        if name not in found and (where := shutil.which(name, path=extra)):
            found[name] = where
    return Commands(found)
