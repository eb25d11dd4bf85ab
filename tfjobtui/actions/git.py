"""Which commit a folder is at: what a run is to be compared with later."""

from __future__ import annotations

import os
from dataclasses import dataclass

from tfjobtui.errors import CommandError
from tfjobtui.process import run

_TIMEOUT_S = 3.0


@dataclass(frozen=True, slots=True)
class GitState:
    """The commit of a working tree, and whether a file that git knows was changed since."""

    commit: str
    is_dirty: bool


async def git_state(folder: str) -> GitState | None:
    """The state of the folder's repository; `None` where there is none, no git, or no answer in time."""
    # No lock: the user's own git must not fail because of a look.
    env = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    argv = ("git", "-C", folder, "status", "--porcelain=v2", "--branch", "--untracked-files=no")
    try:
        done = await run(argv, timeout_s=_TIMEOUT_S, env=env)
    except CommandError:
        return None
    if done.returncode != 0:
        return None
    lines = done.stdout_text.splitlines()
    commit = next(
        (line.removeprefix("# branch.oid ") for line in lines if line.startswith("# branch.oid ")), ""
    )
    if not commit or commit == "(initial)":
        return None
    return GitState(commit, any(not line.startswith("#") for line in lines))
