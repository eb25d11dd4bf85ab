"""Giving the terminal to another program: an editor, a pager, a shell inside a job."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping, Sequence

from textual.app import App, SuspendNotSupported

from tfjobtui import process
from tfjobtui.errors import CommandError, TfjobtuiError


def editor_argv(path: str) -> list[str]:
    """The user's editor with a file: $VISUAL, $EDITOR, else the first that is there.

    Raises:
        TfjobtuiError: there is none.
    """
    for variable in ("VISUAL", "EDITOR"):
        words = shlex.split(os.environ.get(variable, ""))
        if words:
            return [*words, path]
    for name in ("nano", "vim", "vi", "less"):
        if shutil.which(name):
            return [name, path]
    raise TfjobtuiError("no editor was found", "Set EDITOR in your shell's profile.")


def run(
    app: App[object],
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    before: str = "",
) -> int | None:
    """Suspend the screen, run the command, and draw the screen anew. `None` if it could not be started."""
    try:
        with app.suspend():
            if before:
                print(before, flush=True)  # noqa: T201 - the terminal is the command's now
            code = process.foreground(argv, env=env, cwd=cwd)
    except SuspendNotSupported:
        app.notify("This terminal cannot be lent to another program.", severity="error", markup=False)
        return None
    except CommandError as error:
        app.notify(str(error), severity="error", markup=False)
        return None
    return code
