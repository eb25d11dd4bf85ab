"""Looking at a screen in a pilot test, and comparing it with a stored picture of it in plain text."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from textual.app import App
from textual.pilot import Pilot

SNAPSHOTS = Path(__file__).parent / "snapshots"
UPDATE = "TFJOBTUI_UPDATE_SNAPSHOTS"


def screen_lines(app: App[Any]) -> list[str]:
    """The lines of the screen as text, without trailing blanks."""
    return [
        "".join(segment.text for segment in strip).rstrip()
        for strip in app.screen._compositor.render_strips()
    ]


def screen_text(app: App[Any]) -> str:
    return "\n".join(screen_lines(app))


async def until(pilot: Pilot[Any], test: Callable[[], bool], what: str = "") -> None:
    """Let the program go on until the test holds.

    Raises:
        AssertionError: it did not hold after 400 rounds (some 10 s); the message holds the screen.
    """
    for _ in range(400):
        if test():
            return
        await pilot.pause(0.025)
    raise AssertionError(f"did not happen: {what}\n{screen_text(pilot.app)}")


async def until_text(pilot: Pilot[Any], text: str) -> None:
    """Let the program go on until the screen shows the text."""
    await until(pilot, lambda: text in screen_text(pilot.app), repr(text))


def check_snapshot(app: App[Any], name: str) -> None:
    """Compare the screen with `snapshots/NAME.txt`; with the variable UPDATE set, write it anew."""
    path = SNAPSHOTS / f"{name}.txt"
    shown = screen_text(app).rstrip("\n") + "\n"
    if os.environ.get(UPDATE):
        path.parent.mkdir(exist_ok=True)
        path.write_text(shown, encoding="utf-8")
    stored = path.read_text(encoding="utf-8")
    assert shown == stored, f"the screen is not as in {path} (set {UPDATE}=1 to accept it):\n{shown}"
