"""The first query of the queue, started with as little imported as possible: squeue works while Python imports."""

from __future__ import annotations

import os
from typing import NamedTuple

from tfjobtui.process import EarlyProcess
from tfjobtui.schedulers.slurm import environment, form
from tfjobtui.schedulers.slurm.settings import Commands, SlurmSettings


class EarlyQuery(NamedTuple):
    """A query of the user's own jobs that is under way, and the layout of its answer."""

    process: EarlyProcess
    shape: form.Layout


def start(settings: SlurmSettings, commands: Commands) -> EarlyQuery | None:
    """Start it now; `None` where there is no squeue."""
    path = commands.get("squeue")
    if path is None:
        return None
    shape = form.layout(clusters=bool(settings.clusters))
    arguments = form.arguments(shape, uid=os.getuid(), clusters=settings.clusters, is_federated=False)
    process = EarlyProcess(
        (path, *arguments), timeout_s=settings.query_timeout_s, env=environment.for_queries()
    )
    return EarlyQuery(process, shape)
