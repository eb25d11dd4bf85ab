"""The screens: everything that may take time is started before their library is imported."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from tfjobtui.cli.choice import Choice, choose
from tfjobtui.cli.setup import load_config, local_settings, slurm_settings
from tfjobtui.config import Config, Poll
from tfjobtui.errors import UsageError
from tfjobtui.schedulers.slurm.settings import SlurmSettings

if TYPE_CHECKING:
    from tfjobtui.schedulers.scheduler import QueueAnswer, Scheduler

_TEXTUAL = (
    "rich.console",
    "textual.geometry",
    "textual.css.stylesheet",
    "textual.dom",
    "textual.widget",
    "textual.app",
)
"""What importing Textual comes to, in pieces of some 30 ms."""
_LOCAL_POLL = Poll(interval_s=1.0, floor_s=0.5, unfocused_s=2.0, idle_s=5.0, asleep_s=30.0, details_s=2.0)
"""Reading a file of one's own costs nobody anything."""


def run(config_file: str | None = None, clusters: str | None = None, scheduler: str | None = None) -> int:
    """Open the screens; give the exit code.

    Another configuration file, other clusters or another scheduler than the configured ones may be given.
    """
    # The screen is drawn on standard error, as Textual does.
    if not (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()):
        raise UsageError(
            "the screens need a terminal",
            "For scripts and pipes there are one-shot commands: `tfjobtui jobs`, see `tfjobtui --help`.",
        )
    gc.disable()  # until the first rows are shown: there is no garbage yet, and looking for it costs a tenth
    config = load_config(config_file, quiet=True)
    settings = slurm_settings(config, clusters)
    choice = choose(config, settings, scheduler)
    if choice.warning:
        config = config._replace(warnings=(*config.warnings, choice.warning))
    if choice.is_local:
        return _run_local(config, clusters)
    return _run_slurm(config, settings, choice)


def _run_slurm(config: Config, settings: SlurmSettings, choice: Choice) -> int:
    from tfjobtui.schedulers.slurm import early

    query = early.start(settings, choice.commands)
    assert query is not None  # squeue was found
    try:
        from tfjobtui.schedulers.slurm.client import SlurmScheduler

        scheduler = SlurmScheduler(settings, choice.commands)
        scheduler.adopt(query)
        return _show(config, scheduler, scheduler.early_answer)
    finally:
        query.process.end()


def _run_local(config: Config, clusters: str | None) -> int:
    from tfjobtui.schedulers.local.client import LocalScheduler

    scheduler = LocalScheduler(local_settings(config))
    if clusters:
        raise UsageError(scheduler.capabilities.clusters.reason, "Leave --clusters out.")
    warnings = (*config.warnings, *scheduler.notes)
    return _show(config._replace(poll=_LOCAL_POLL, warnings=warnings), scheduler, scheduler.early_answer)


def _show(config: Config, scheduler: Scheduler, early_answer: Callable[[], QueueAnswer | None]) -> int:
    """Draw the first rows as soon as they are there, be it in the middle of importing Textual, and go on with it."""
    from tfjobtui.config import check_columns
    from tfjobtui.monitor.columns import COLUMNS
    from tfjobtui.monitor.view import JobView
    from tfjobtui.ui import first_frame
    from tfjobtui.ui.preferences import with_preferences

    check_columns(config, COLUMNS)
    config = with_preferences(config)
    view = JobView(config.table.sort)
    with first_frame.wiped_on_error():
        # Textual must find the terminal as it was: it gives it back so to an editor or a shell.
        with first_frame.quiet_terminal():
            for _ in _imports():
                if view.total == 0 and (answer := early_answer()) is not None and answer.jobs:
                    view.show({job.key: job for job in answer.jobs})
                    first_frame.draw(view, config)
        from tfjobtui.ui.app import run_app

        return run_app(config, scheduler, view)


def _imports() -> Iterator[None]:
    for name in _TEXTUAL:
        yield
        importlib.import_module(name)
    yield
