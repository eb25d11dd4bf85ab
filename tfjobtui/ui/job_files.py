"""A job's files in the user's editor."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

from textual.app import App

from tfjobtui.errors import TfjobtuiError
from tfjobtui.model.text import printable
from tfjobtui.monitor.view import Row
from tfjobtui.schedulers.scheduler import Target
from tfjobtui.ui import foreground
from tfjobtui.ui.services import Services


def edit_log(app: App[Any], path: Path) -> None:
    """Open the log in view."""
    try:
        argv = foreground.editor_argv(str(path))
    except TfjobtuiError as error:
        app.notify(str(error), severity="error", markup=False)
        return
    foreground.run(app, argv)


async def edit_script(app: App[Any], services: Services, row: Row) -> None:
    """Open a copy of the job's script: the scheduler has its own, which no editor can change.

    Raises:
        TfjobtuiError: the script cannot be had back, or there is no editor.
    """
    job = row.members[0] if row.members else row.job
    stored = await services.scheduler.stored_script(Target.of(job))
    if stored is None:
        raise TfjobtuiError(f"The script of job {job.id} cannot be had back from the scheduler.")
    name = re.sub(r"[^\w.-]+", "_", printable(job.name))[:60] or "script"
    try:
        with tempfile.TemporaryDirectory(prefix="tfjobtui-") as folder:
            path = Path(folder) / f"{name}-{job.id.job}.sh"
            path.write_text(stored.text, encoding="utf-8", errors="surrogateescape")
            foreground.run(app, foreground.editor_argv(str(path)))
            after = path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise TfjobtuiError(f"The copy of the script is gone: {error}") from error
    if after != stored.text:
        app.notify(
            "That was a copy: the job runs the script it was submitted with. To run a changed one, resubmit (r).",
            severity="warning",
            markup=False,
        )
