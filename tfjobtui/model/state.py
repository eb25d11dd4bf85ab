"""The states of a job, as Slurm names them.

The names are those of `squeue -O State` and `sacct State`: the base states, and the flags that Slurm
prints in place of the base state. Only the *terminal* states are listed as such: whatever is not known
counts as active, so that no job is ever said to have ended because its state was new.
"""

from __future__ import annotations

from enum import Enum


class StateGroup(Enum):
    """How a state matters to its owner."""

    WAITING = "waiting"
    ACTIVE = "active"
    GOOD = "good"
    BAD = "bad"
    NEUTRAL = "neutral"


class JobState(Enum):
    """A state, with its short form (`squeue %t`) and its group."""

    PENDING = ("PENDING", "PD", StateGroup.WAITING)
    CONFIGURING = ("CONFIGURING", "CF", StateGroup.WAITING)
    REQUEUED = ("REQUEUED", "RQ", StateGroup.WAITING)
    REQUEUE_FED = ("REQUEUE_FED", "RF", StateGroup.WAITING)
    REQUEUE_HOLD = ("REQUEUE_HOLD", "RH", StateGroup.WAITING)
    RESV_DEL_HOLD = ("RESV_DEL_HOLD", "RD", StateGroup.WAITING)
    SPECIAL_EXIT = ("SPECIAL_EXIT", "SE", StateGroup.WAITING)
    RUNNING = ("RUNNING", "R", StateGroup.ACTIVE)
    COMPLETING = ("COMPLETING", "CG", StateGroup.ACTIVE)
    STAGE_OUT = ("STAGE_OUT", "SO", StateGroup.ACTIVE)
    SUSPENDED = ("SUSPENDED", "S", StateGroup.ACTIVE)
    STOPPED = ("STOPPED", "ST", StateGroup.ACTIVE)
    SIGNALING = ("SIGNALING", "SI", StateGroup.ACTIVE)
    RESIZING = ("RESIZING", "RS", StateGroup.ACTIVE)
    EXPEDITING = ("EXPEDITING", "EX", StateGroup.WAITING)
    COMPLETED = ("COMPLETED", "CD", StateGroup.GOOD)
    FAILED = ("FAILED", "F", StateGroup.BAD)
    TIMEOUT = ("TIMEOUT", "TO", StateGroup.BAD)
    NODE_FAIL = ("NODE_FAIL", "NF", StateGroup.BAD)
    OUT_OF_MEMORY = ("OUT_OF_MEMORY", "OOM", StateGroup.BAD)
    BOOT_FAIL = ("BOOT_FAIL", "BF", StateGroup.BAD)
    DEADLINE = ("DEADLINE", "DL", StateGroup.BAD)
    CANCELLED = ("CANCELLED", "CA", StateGroup.NEUTRAL)
    PREEMPTED = ("PREEMPTED", "PR", StateGroup.NEUTRAL)
    REVOKED = ("REVOKED", "RV", StateGroup.NEUTRAL)
    GONE = ("GONE", "??", StateGroup.NEUTRAL)
    """It left the queue and nothing tells how it ended (no accounting at this site, or not yet)."""
    UNKNOWN = ("UNKNOWN", "?", StateGroup.ACTIVE)
    """Not a state of ours: `Job.state_text` has Slurm's own word."""

    def __init__(self, long: str, short: str, group: StateGroup) -> None:
        self.long = long
        self.short = short
        self.group = group
        self.is_terminal = group in (StateGroup.GOOD, StateGroup.BAD, StateGroup.NEUTRAL)
        self.is_waiting = group is StateGroup.WAITING
        self.is_active = group is StateGroup.ACTIVE

    @staticmethod
    def of(text: str) -> JobState:
        """Read `RUNNING`, `CANCELLED by 1000`, `OUT_OF_ME+`, `R`; what is not known is `UNKNOWN`."""
        found = _BY_TEXT.get(text)
        if found is None:
            found = _read(text)
            if len(_BY_TEXT) < 1000:
                _BY_TEXT[text] = found
        return found


_BY_TEXT: dict[str, JobState] = {}
for _state in JobState:
    if _state not in (JobState.UNKNOWN, JobState.GONE):
        _BY_TEXT[_state.long] = _state
        _BY_TEXT[_state.short] = _state
_LONG = [state for state in JobState if state not in (JobState.UNKNOWN, JobState.GONE)]


def _read(text: str) -> JobState:
    words = text.split(None, 1)
    if not words:
        return JobState.UNKNOWN
    word = words[0].upper()
    if word in _BY_TEXT:
        return _BY_TEXT[word]
    if word.endswith("+"):  # a narrow sacct column cuts the word
        cut = [state for state in _LONG if state.long.startswith(word[:-1])]
        if len(cut) == 1:
            return cut[0]
    return JobState.UNKNOWN
