"""Which scheduler is meant: Slurm's, or the embedded one of this machine.

`auto` takes Slurm wherever its commands or its configuration are, answering or not: a login node must never
start to train because slurmctld is down. It stands at the beginning of every start: nothing heavy is imported.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from tfjobtui.config import Config
from tfjobtui.errors import UsageError
from tfjobtui.schedulers.slurm.settings import Commands, SlurmSettings, discover

NAMES = ("auto", "slurm", "local")
_CONFIGURATION = ("/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf", "/usr/local/etc/slurm.conf")
_VARIABLES = ("SLURM_CONF", "SLURM_CONF_SERVER")
_JOB_OF_OURS = "TFJOBTUI_LOCAL_FOLDER"
"""In the environment of the local scheduler's jobs, whose PATH begins with commands that look like Slurm's."""


class Choice(NamedTuple):
    """The scheduler, why it is this one, and a warning where there is one."""

    is_local: bool
    why: str
    commands: Commands
    warning: str = ""


def choose(config: Config, settings: SlurmSettings, asked: str | None = None) -> Choice:
    """Choose by the command line, else by the configuration.

    Raises:
        UsageError: Slurm is to be used, and its commands are not here.
    """
    wanted = asked or config.scheduler.use
    commands = discover(settings)
    if wanted == "auto" and _JOB_OF_OURS in os.environ and os.environ.get("SLURM_CLUSTER_NAME") == "local":
        return Choice(True, "this is within a job of the local scheduler", commands)
    signs = [] if wanted == "slurm" else list(_signs(settings, commands))
    if wanted == "local":
        warning = (
            f"This machine has Slurm ({signs[0]}): jobs of the local scheduler run on this machine itself,"
            " which must not be a login node."
            if signs
            else ""
        )
        return Choice(True, "it was asked for", commands, warning)
    if wanted == "auto" and not signs:
        return Choice(True, "there is no Slurm on this machine", commands)
    if commands.get("squeue") is None:
        raise no_slurm(signs)
    return Choice(False, "it was asked for" if wanted == "slurm" else signs[0], commands)


def _signs(settings: SlurmSettings, commands: Commands) -> Iterator[str]:
    """What of Slurm is here."""
    for name in ("squeue", "sbatch", "scontrol", "sinfo", "srun"):
        path = commands.get(name)
        if path is not None:
            yield path
    for name, path in settings.commands.items():
        yield f"[slurm.commands] {name} = {path}"
    for variable in _VARIABLES:
        if os.environ.get(variable):
            yield f"{variable}={os.environ[variable]}"
    for path in _CONFIGURATION:
        if os.path.exists(path):  # noqa: PTH110 - pathlib costs a start some milliseconds
            yield path


def no_slurm(signs: list[str]) -> UsageError:
    """What is said where Slurm is to be used and its commands are not here."""
    from tfjobtui.schedulers.slurm.settings import USUAL_FOLDERS

    found = f"There is {signs[0]}, so that this machine is taken for a cluster's.\n" if signs else ""
    return UsageError(
        "Slurm's commands are not on this machine: squeue was not found",
        f"{found}Looked for on the PATH, and in {', '.join(USUAL_FOLDERS)}.\n"
        "Log in to a node of the cluster, load Slurm's module, or name the commands in the configuration:\n"
        '  [slurm.commands]\n  squeue = "/path/to/squeue"\n'
        "`tfjobtui --scheduler local` runs jobs on this machine instead; `tfjobtui doctor` tells more.",
    )
