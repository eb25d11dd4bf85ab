"""How a job ended, in words, and what its owner can do about it.

Slurm tells a state, an exit code and a signal (`FAILED`, `0:53`). From 128 on the exit code of a shell
is a signal too: 137 is 128 + 9.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import NamedTuple

from tfjobtui.diagnosis import reasons
from tfjobtui.model.job import ExitCode, Job
from tfjobtui.model.state import JobState
from tfjobtui.model.text import printable
from tfjobtui.model.units import duration, size
from tfjobtui.schedulers.scheduler import EndedJob


@dataclass(frozen=True, slots=True)
class Ending:
    """How a job ended. `word` is the state, with the exit code where it says something."""

    word: str
    meaning: str
    advice: str

    def __str__(self) -> str:
        return " ".join(part for part in (self.meaning, self.advice) if part)


class _Facts(NamedTuple):
    """What is known of an end, from the queue or from accounting."""

    state: JobState
    state_text: str
    exit: ExitCode | None
    reason: str = ""
    time_limit_s: float | None = None
    memory_bytes: int | None = None
    ran: bool = True
    cancelled_by_uid: int | None = None


def explain(job: Job, ended: EndedJob | None = None) -> Ending:
    """How this job ended; what accounting knows of it comes before what the queue said last."""
    facts = _Facts(
        job.state,
        job.state_text,
        job.exit_code,
        job.reason,
        job.time_limit_s,
        job.memory_bytes,
        job.start_time_s is not None,
    )
    if ended is not None:
        facts = _with_accounting(facts, ended)
    return _explain(facts)


def explain_ended(ended: EndedJob) -> Ending:
    """How a job ended that only accounting knows."""
    return _explain(_with_accounting(_Facts(ended.state, ended.state_text, ended.exit_code), ended))


def _with_accounting(facts: _Facts, ended: EndedJob) -> _Facts:
    return facts._replace(
        state=ended.state,
        state_text=ended.state_text,
        exit=ended.exit_code or facts.exit,
        time_limit_s=ended.time_limit_s if ended.time_limit_s is not None else facts.time_limit_s,
        ran=ended.start_time_s is not None,
        cancelled_by_uid=ended.cancelled_by_uid,
    )


class _Words(NamedTuple):
    meaning: str
    advice: str = ""


_NO_OUTPUT_FILE = _Words(
    "The output file could not be created: does its folder exist?",
    "Make the folder of --output and --error, or name another, and submit it again. There is no log.",
)
_OUT_OF_MEMORY = _Words(
    "It used more memory than it had asked for.",
    "Ask for more (--mem), or use less: a smaller batch, a smaller shuffle buffer, fewer cached data.",
)

_SIGNALS: dict[int, _Words] = {
    2: _Words("It was interrupted (SIGINT)."),
    4: _Words(
        "It ran an instruction that the CPU does not have (SIGILL).",
        "The program was built for a newer CPU: ask for other nodes (--constraint), or use another build.",
    ),
    6: _Words(
        "It aborted itself (SIGABRT).", "The end of its log says why: often a failed check or CUDA error."
    ),
    7: _Words(
        "It had a bus error (SIGBUS).", "Often /dev/shm or a disk is full: look at the end of its log."
    ),
    8: _Words("It made an arithmetic error (SIGFPE).", "Read the end of its log."),
    9: _Words(
        "It was killed (SIGKILL).",
        "Often its memory was used up (see the end of its log), or it did not end in time when told to.",
    ),
    11: _Words(
        "It crashed (SIGSEGV).", "Read the end of its log; a library that does not fit is the usual cause."
    ),
    12: _Words("Signal USR2 ended it: nothing in it handles that signal."),
    10: _Words("Signal USR1 ended it: nothing in it handles that signal."),
    13: _Words("It wrote to a pipe that nobody reads (SIGPIPE)."),
    15: _Words("It was told to end (SIGTERM): cancelled, preempted, or out of time."),
    24: _Words("It used all of its CPU time (SIGXCPU).", "Look at `ulimit -t` in its script."),
    25: _Words("It wrote a file larger than is allowed (SIGXFSZ).", "Look at `ulimit -f` and your quota."),
    52: _Words("Its script could not be executed.", "Look at its first line (#!) and at the file's rights."),
    53: _NO_OUTPUT_FILE,
    54: _Words(
        "The prolog of its node failed.", "Submit it again; if it happens again, tell the administrators."
    ),
    125: _OUT_OF_MEMORY,
}
_CODES: dict[int, _Words] = {
    1: _Words("Its script ended with an error (exit code 1).", "Read the end of its log."),
    2: _Words(
        "Its script was called wrongly, or has an error in it (exit code 2).", "Read the end of its log."
    ),
    126: _Words(
        "A command in its script could not be executed (exit code 126).",
        "Look at the rights of the file (chmod +x) and at its first line.",
    ),
    127: _Words(
        "A command in its script was not found (exit code 127).",
        "Load its module or environment in the script; the end of the log names the command.",
    ),
}
_STATES: dict[JobState, _Words] = {
    JobState.COMPLETED: _Words("It ended well."),
    JobState.NODE_FAIL: _Words(
        "A node of it failed.", "Submit it again; with --requeue Slurm does that by itself."
    ),
    JobState.BOOT_FAIL: _Words(
        "Its nodes could not be booted.", "Submit it again, or tell the administrators."
    ),
    JobState.DEADLINE: _Words(
        "It could not end before its deadline.", "Submit it with a later --deadline, or with less --time."
    ),
    JobState.PREEMPTED: _Words(
        "A job with a higher priority took its place.",
        "Submit it again; with --requeue and checkpoints it goes on by itself.",
    ),
    JobState.REVOKED: _Words("It runs on another cluster of the federation."),
    JobState.GONE: _Words(
        "It left the queue, and nothing tells how it ended: there is no accounting here, or not yet.",
        "The end of its log may tell.",
    ),
}


def _explain(facts: _Facts) -> Ending:
    words = _words(facts)
    return Ending(_word(facts), words.meaning, words.advice)


def _word(facts: _Facts) -> str:
    state = facts.state.long if facts.state is not JobState.UNKNOWN else printable(facts.state_text)
    if facts.state is JobState.GONE:
        return "gone"
    if facts.exit is None or (facts.exit.code, facts.exit.signal) == (0, 0):
        return state
    return f"{state} {facts.exit}"


def _words(facts: _Facts) -> _Words:
    if facts.state is JobState.CANCELLED:
        return _cancelled(facts)
    if facts.state is JobState.TIMEOUT:
        return _timeout(facts)
    if facts.state is JobState.OUT_OF_MEMORY:
        return _out_of_memory(facts)
    if facts.state is JobState.FAILED:
        return _failed(facts)
    known = _STATES.get(facts.state)
    if known is not None:
        return known
    return _Words(f"It has not ended: its state is {printable(facts.state_text) or facts.state.long}.")


def _cancelled(facts: _Facts) -> _Words:
    when = "" if facts.ran else " before it started"
    uid = facts.cancelled_by_uid
    if uid is None:
        return _Words(f"It was cancelled{when}.")
    if uid == os.getuid():
        return _Words(f"You cancelled it{when}.")
    if uid == 0:
        return _Words(f"An administrator or Slurm itself cancelled it{when}.", "Ask the administrators why.")
    return _Words(f"{_user(uid)} cancelled it{when}.")


def _user(uid: int) -> str:
    import pwd  # may ask a directory service: only for somebody else's uid

    try:
        return f"User {printable(pwd.getpwuid(uid).pw_name)}"
    except (KeyError, OverflowError):
        return f"User {uid}"


def _timeout(facts: _Facts) -> _Words:
    limit = f" of {duration(facts.time_limit_s)}" if facts.time_limit_s else ""
    return _Words(
        f"It reached its time limit{limit}.",
        "Give it more time (--time), and let it go on from its last checkpoint.",
    )


def _out_of_memory(facts: _Facts) -> _Words:
    asked = f" ({size(facts.memory_bytes)})" if facts.memory_bytes else ""
    return _Words(f"It used more memory than it had asked for{asked}.", _OUT_OF_MEMORY.advice)


def _failed(facts: _Facts) -> _Words:
    number = facts.exit.signal if facts.exit else 0
    if number == 125:
        return _out_of_memory(facts)
    if number:
        return _SIGNALS.get(number) or _Words(f"Signal {number} ended it.", "Read the end of its log.")
    code = facts.exit.code if facts.exit else 0
    if code:
        return _failed_with(code)
    reason = reasons.of_word(facts.reason) or reasons.of_sentence(facts.reason)
    if reason is not None and facts.reason != "None":
        return _Words(
            reason.meaning, reason.advice if "{" not in reason.advice else "Read the end of its log."
        )
    return _Words("It failed.", "Read the end of its log.")


def _failed_with(code: int) -> _Words:
    known = _CODES.get(code)
    if known is not None:
        return known
    signal = _SIGNALS.get(code - 128) if code > 128 else None
    if signal is not None and code - 128 < 32:
        return _Words(
            f"{signal.meaning.removesuffix('.')}: exit code {code}.", signal.advice or "Read its log."
        )
    return _Words(f"Its script ended with exit code {code}.", "Read the end of its log.")
