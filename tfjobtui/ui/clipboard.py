"""Copying to the clipboard of the terminal that the user sits at, also over ssh and inside tmux."""

from __future__ import annotations

import os

from textual.app import App

from tfjobtui import process
from tfjobtui.errors import CommandError


async def copy(app: App[object], text: str) -> str:
    """Copy a text; gives a sentence that says how.

    OSC 52 goes to the terminal. tmux drops it by default (`set-clipboard external` takes it from tmux
    itself alone), so inside tmux its own `load-buffer -w` is used too, which passes the text on.
    """
    app.copy_to_clipboard(text)
    if not os.environ.get("TMUX"):
        return "copied"
    try:
        done = await process.run(
            ["tmux", "load-buffer", "-w", "-"], timeout_s=3, stdin=text.encode(errors="replace")
        )
    except CommandError:
        return "copied (by OSC 52; tmux did not answer)"
    return "copied, also to tmux's buffer" if done.returncode == 0 else "copied (by OSC 52)"
