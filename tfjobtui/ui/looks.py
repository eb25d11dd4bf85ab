"""How states and figures look: a colour, and a sign, since colour alone tells a colour-blind user nothing."""

from __future__ import annotations

from rich.style import Style

from tfjobtui.model.state import JobState, StateGroup

# Names from the 16 colours, which every terminal has and every user's scheme keeps readable.
GROUP_STYLE = {
    StateGroup.WAITING: Style(color="yellow"),
    StateGroup.ACTIVE: Style(color="green", bold=True),
    StateGroup.GOOD: Style(color="cyan"),
    StateGroup.BAD: Style(color="red", bold=True),
    StateGroup.NEUTRAL: Style(color="magenta"),
}
GROUP_SIGN = {
    StateGroup.WAITING: "◌",
    StateGroup.ACTIVE: "▶",
    StateGroup.GOOD: "✓",
    StateGroup.BAD: "✗",
    StateGroup.NEUTRAL: "–",
}
STATE_SIGN = {
    JobState.SUSPENDED: "‖",
    JobState.STOPPED: "‖",
    JobState.COMPLETING: "◂",
    JobState.STAGE_OUT: "◂",
    JobState.CONFIGURING: "◔",
    JobState.UNKNOWN: "?",
    JobState.GONE: "?",
    JobState.PREEMPTED: "↯",
    JobState.REQUEUED: "↻",
    JobState.REQUEUE_HOLD: "↻",
}


def sign_of(state: JobState) -> str:
    """One cell that tells the state without colour."""
    return STATE_SIGN.get(state, GROUP_SIGN[state.group])


def style_of(state: JobState) -> Style:
    return GROUP_STYLE[state.group]
