"""How states look: a colour by their group. The signs are in `job_grid`."""

from __future__ import annotations

from rich.style import Style

from tfjobtui.model.state import JobState, StateGroup
from tfjobtui.ui.job_grid import sign_of

__all__ = ["sign_of", "style_of"]

# Names from the 16 colours, which every terminal has and every user's scheme keeps readable.
GROUP_STYLE = {
    StateGroup.WAITING: Style(color="yellow"),
    StateGroup.ACTIVE: Style(color="green", bold=True),
    StateGroup.GOOD: Style(color="cyan"),
    StateGroup.BAD: Style(color="red", bold=True),
    StateGroup.NEUTRAL: Style(color="magenta"),
}


def style_of(state: JobState) -> Style:
    return GROUP_STYLE[state.group]
