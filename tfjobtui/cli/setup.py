"""The configuration, and the settings of the scheduler that follow from it.

It stands at the beginning of every start: nothing heavy is imported here.
"""

from __future__ import annotations

from pathlib import Path

from tfjobtui.config import Config, load
from tfjobtui.errors import UsageError
from tfjobtui.paths import site_config, user_config
from tfjobtui.schedulers.slurm.settings import USUAL_FOLDERS, SlurmSettings


def load_config(named: str | None, *, quiet: bool = False) -> Config:
    """Both files, or the site's and the one that was named; warnings go to the terminal unless `quiet`."""
    user_file = Path(named).expanduser() if named else user_config()
    config = load(site_config(), user_file, user_must_exist=bool(named))
    if not quiet:
        from tfjobtui.cli.output import complain

        for warning in config.warnings:
            complain(warning)
    return config


def slurm_settings(config: Config, clusters: str | None) -> SlurmSettings:
    """The settings of the Slurm client: the clusters of the command line come before the file's."""
    names = tuple(name for name in clusters.split(",") if name) if clusters else config.slurm.clusters
    return SlurmSettings(
        commands=config.slurm.commands,
        clusters=names,
        query_timeout_s=config.slurm.query_timeout_s,
        action_timeout_s=config.slurm.action_timeout_s,
    )


def no_slurm() -> UsageError:
    """What is said on a machine without Slurm's commands."""
    return UsageError(
        "there is no Slurm on this machine: the command squeue was not found",
        f"Looked for on the PATH, and in {', '.join(USUAL_FOLDERS)}.\n"
        "Log in to a node of the cluster, load Slurm's module, or name the commands in the configuration:\n"
        '  [slurm.commands]\n  squeue = "/path/to/squeue"\n'
        "`tfjobtui doctor` tells more.",
    )
