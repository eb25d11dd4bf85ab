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
        TfjobtuiError: there is none, or the variable cannot be read.
    """
    for variable in ("VISUAL", "EDITOR"):
        value = os.environ.get(variable, "")
        try:
            words = shlex.split(value)
        except ValueError:
            raise TfjobtuiError(
                f"{variable} cannot be read: {value}", "A quote in it is not closed."
            ) from None
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
    code, problem = None, ""
    try:
        with app.suspend():
            if before:
                print(before, flush=True)  # noqa: T201 - the terminal is the command's now
            try:
                code = process.foreground(argv, env=env, cwd=cwd)
            except CommandError as error:  # not out of the `with`: the screen would not come back
                problem = str(error)
    except SuspendNotSupported:
        problem = "This terminal cannot be lent to another program."
    if problem:
        app.notify(problem, severity="error", markup=False)
    return code
