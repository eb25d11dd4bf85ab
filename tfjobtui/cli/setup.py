"""The configuration, and the settings of the scheduler that follow from it.

It stands at the beginning of every start: nothing heavy is imported here.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tfjobtui.config import Config, load
from tfjobtui.paths import site_config, user_config
from tfjobtui.schedulers.slurm.settings import SlurmSettings

if TYPE_CHECKING:
    from tfjobtui.schedulers.local.settings import LocalSettings


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


def local_settings(config: Config) -> LocalSettings:
    """The settings of the embedded scheduler."""
    from tfjobtui.schedulers.local.moments import size_bytes
    from tfjobtui.schedulers.local.settings import LocalSettings

    local = config.local
    return LocalSettings(
        kill_wait_s=local.kill_wait_s,
        cpus=local.cpus or None,
        memory_bytes=size_bytes(local.memory) if local.memory else None,
        gpus=None if local.gpus < 0 else local.gpus,
        keep_days=local.keep_days,
    )
