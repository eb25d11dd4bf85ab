"""The screens: everything that may take time is started before their library is imported."""

from __future__ import annotations

import gc
import sys

from tfjobtui.cli.context import load_config, open_scheduler
from tfjobtui.errors import UsageError


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
    scheduler = open_scheduler(config, clusters)
    # squeue works while Python is busy importing.
    scheduler.start_first_query()
    from tfjobtui.ui.app import run_app

    return run_app(config, scheduler)
