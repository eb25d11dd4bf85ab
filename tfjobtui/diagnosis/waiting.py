"""Why a job waits, in words, and what its owner can do about it."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from tfjobtui.diagnosis import reasons
from tfjobtui.diagnosis.reasons import Meaning
from tfjobtui.model.job import Job
from tfjobtui.model.state import JobState
from tfjobtui.model.text import printable
from tfjobtui.schedulers.scheduler import JobDetails


@dataclass(frozen=True, slots=True)
class Explanation:
    """A reason in words. `word` is the scheduler's own text, fit to be shown; `advice` may be empty."""

    word: str
    meaning: str
    advice: str

    def __str__(self) -> str:
        return " ".join(part for part in (self.meaning, self.advice) if part)


def explain(job: Job, details: JobDetails | None = None) -> Explanation:
    """Why this job waits. A reason that is not known is shown as the scheduler has it."""
    reason = job.reason
    by_state = _BY_STATE.get(job.state)
    if by_state is not None and (not reason or reason == "None"):
        return _explanation(job.state_text, by_state, job)
    found = explain_reason(reason, job)
    dependency = (details.get("Dependency") if details else "") or job.dependency
    if found.word.startswith("Dependency") and dependency:
        return Explanation(found.word, f"{found.meaning} {dependency_in_words(dependency)}", found.advice)
    comment = details.get("SystemComment") if details else ""
    if found.word.startswith("BurstBuffer") and comment:
        return Explanation(found.word, f"{found.meaning} {printable(comment)}", found.advice)
    return found


def explain_reason(reason: str, job: Job) -> Explanation:
    """One reason of a job's: a word, words with commas between them, or a sentence."""
    text = reason.strip().removeprefix("(").removesuffix(")") if reason.startswith("(") else reason.strip()
    if not text:
        return _explanation("", reasons.REASONS["None"], job)
    sentence = reasons.of_sentence(text)
    if sentence is not None:
        return _with_rest(text, sentence, _tail_of_sentence(text), job)
    parts = [part.strip() for part in text.split(",")]
    meanings = [reasons.of_word(part) for part in parts]
    if len(parts) > 1 and all(meanings):  # an array's waiting rest, merged from tasks with several reasons
        return _joined(text, [meaning for meaning in meanings if meaning is not None], job)
    word, rest = _leading_word(text)
    meaning = reasons.of_word(word)
    if meaning is None:
        return Explanation(printable(text), f"The scheduler says: {printable(text)}", "")
    return _with_rest(text, meaning, rest, job)


_BY_STATE: dict[JobState, Meaning] = {
    JobState.CONFIGURING: Meaning("Its nodes are booting or being prepared.", "Wait; it starts by itself."),
    JobState.REQUEUED: Meaning(
        "It is being put back into the queue.", "Wait; it will be queued in a moment."
    ),
    JobState.REQUEUE_FED: Meaning("It is being put back into the queue of the federation.", "Wait."),
    JobState.REQUEUE_HOLD: Meaning(
        "It was put back into the queue and is held.", "Release it: scontrol release {job}"
    ),
    JobState.SPECIAL_EXIT: Meaning(
        "It ended with a special exit code, was put back into the queue and is held.",
        "Read its log, then release it: scontrol release {job}",
    ),
    JobState.RESV_DEL_HOLD: reasons.REASONS["ReservationDeleted"],
}

_WORD = re.compile(r"[A-Za-z]+(?=$|[,:(_ ])")


def _leading_word(text: str) -> tuple[str, str]:
    """`ReqNodeNotAvail, UnavailableNodes:n1` → the word, and what follows it."""
    match = _WORD.match(text)
    if match is None:
        return text, ""
    return match[0], text[match.end() :].lstrip(",:_ ").replace(",_", ", ")


def _tail_of_sentence(text: str) -> str:
    """Slurm's own sentence is kept, since it may name a node, a group or a reservation."""
    return text.replace("_", " ")


def _with_rest(text: str, meaning: Meaning, rest: str, job: Job) -> Explanation:
    found = _explanation(text, meaning, job)
    if not rest:
        return found
    return Explanation(found.word, f"{found.meaning} ({printable(_spelled_out(rest))})", found.advice)


_NODE_LIST = re.compile(r"UnavailableNodes:\s*(\S*)")


def _spelled_out(rest: str) -> str:
    return _NODE_LIST.sub(lambda match: f"not available: {match[1]}" if match[1] else "no node named", rest)


def _joined(text: str, meanings: list[Meaning], job: Job) -> Explanation:
    advice = list(dict.fromkeys(meaning.advice for meaning in meanings))
    both = Meaning(" ".join(meaning.meaning for meaning in meanings), " ".join(advice))
    return _explanation(text, both, job)


def _explanation(text: str, meaning: Meaning, job: Job) -> Explanation:
    advice = meaning.advice.replace("{job}", shlex.quote(str(job.id))).replace("{array}", str(job.id.job))
    return Explanation(printable(text), meaning.meaning, advice)


# --- dependencies -----------------------------------------------------------------------------------------

_KINDS = {
    "after": "to have started",
    "afterany": "to end",
    "afterok": "to end well",
    "afternotok": "to fail",
    "aftercorr": "to end well, task by task",
    "afterburstbuffer": "to end and its burst buffer to be emptied",
    "expand": "to be there, to grow it",
}
_TERM = re.compile(r"(?P<kind>[a-z]+)(?::(?P<jobs>[^()]*))?(?:\((?P<state>[^)]*)\))?")


def dependency_in_words(text: str) -> str:
    """`afterok:12_*(unfulfilled),afterany:13(failed)` in words; what is not understood stays."""
    either = "?" in text
    terms = [_term_in_words(term) for term in re.split(r"[,?]", text) if term]
    return f"It waits for {(' or ' if either else ' and ').join(terms)}." if terms else ""


def _term_in_words(term: str) -> str:
    match = _TERM.fullmatch(term)
    if match is None:
        return printable(term)
    state = f" ({match['state']})" if match["state"] and match["state"] != "unfulfilled" else ""
    if match["kind"] == "singleton":
        return f"earlier jobs of the same name to end{state}"
    until = _KINDS.get(match["kind"])
    if until is None or not match["jobs"]:
        return printable(term)
    jobs = [_job_in_words(item) for item in match["jobs"].split(":")]
    return f"{' and '.join(jobs)} {until}{state}"


def _job_in_words(item: str) -> str:
    job, _, minutes = item.partition("+")
    whole = f"all tasks of job {job.removesuffix('_*')}" if job.endswith("_*") else f"job {job}"
    later = f" (and {minutes} minutes more)" if minutes else ""
    return printable(f"{whole}{later}")
