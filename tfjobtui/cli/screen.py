"""The screens: everything that may take time is started before their library is imported."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Iterator

from tfjobtui.cli.setup import load_config, no_slurm, slurm_settings
from tfjobtui.config import Config
from tfjobtui.errors import UsageError
from tfjobtui.schedulers.slurm import early
from tfjobtui.schedulers.slurm.settings import Commands, SlurmSettings, discover

_TEXTUAL = (
    "rich.console",
    "textual.geometry",
    "textual.css.stylesheet",
    "textual.dom",
    "textual.widget",
    "textual.app",
)
"""What importing Textual comes to, in pieces of some 30 ms."""


def run(config_file: str | None = None, clusters: str | None = None) -> int:
    """Open the screens, with another configuration file or other clusters if given; give the exit code."""
    # The screen is drawn on standard error, as Textual does.
    if not (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()):
        raise UsageError(
            "the screens need a terminal",
            "For scripts and pipes there are one-shot commands: `tfjobtui jobs`, see `tfjobtui --help`.",
        )
    gc.disable()  # until the first rows are shown: there is no garbage yet, and looking for it costs a tenth
    config = load_config(config_file, quiet=True)
    settings = slurm_settings(config, clusters)
    commands = discover(settings)
    query = early.start(settings, commands)
    if query is None:
        raise no_slurm()
    try:
        return _show(config, settings, commands, query)
    finally:
        query.process.end()


def _show(config: Config, settings: SlurmSettings, commands: Commands, query: early.EarlyQuery) -> int:
    """Draw the first rows as soon as they are there, be it in the middle of importing Textual, and go on with it."""
    from tfjobtui.config import check_columns
    from tfjobtui.monitor.columns import COLUMNS
    from tfjobtui.monitor.view import JobView
    from tfjobtui.schedulers.slurm.client import SlurmScheduler
    from tfjobtui.ui import first_frame
    from tfjobtui.ui.preferences import with_preferences

    check_columns(config, COLUMNS)
    config = with_preferences(config)
    scheduler = SlurmScheduler(settings, commands)
    scheduler.adopt(query)
    view = JobView(config.table.sort)
    with first_frame.wiped_on_error():
        # Textual must find the terminal as it was: it gives it back so to an editor or a shell.
        with first_frame.quiet_terminal():
            for _ in _imports():
                if view.total == 0 and (answer := scheduler.early_answer()) is not None and answer.jobs:
                    view.show({job.key: job for job in answer.jobs})
                    first_frame.draw(view, config)
        from tfjobtui.ui.app import run_app

        return run_app(config, scheduler, view)


def _imports() -> Iterator[None]:
    for name in _TEXTUAL:
        yield
        importlib.import_module(name)
    yield
