"""What Slurm's commands say when they fail, in words for the user.

The texts are those of Slurm 20.11 to 26.05 (`slurm_errno.c` and the commands themselves); they are
matched as parts of what stood on stderr, since each command puts its own name in front.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tfjobtui.errors import CommandError, CommandNotFoundError, QueryError
from tfjobtui.process import Completed

LATER = "It is asked again by itself."


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure in plain words, and what can be done about it."""

    message: str
    hint: str = ""


_QUERIES: tuple[tuple[str, Failure], ...] = (
    (
        "accounting storage is disabled",
        Failure("this site keeps no accounting", "Only the queue tells how a job ended, for some minutes."),
    ),
    (
        "rate limit exceeded|rate limited",
        Failure("slurmctld limits how often each user may ask", "A longer refresh interval helps."),
    ),
    (
        "problem talking to the database|slurmdbd|persistinit|slurm_persist_conn|unable to contact slurm acc",
        Failure("the accounting database does not answer", LATER),
    ),
    (
        "socket timed out|timed out on send/recv|connection timed out",
        Failure("slurmctld is too busy to answer in time", LATER),
    ),
    (
        "zero bytes were transmitted|transport endpoint is not connected|header lengths are longer",
        Failure("slurmctld broke off its answer", LATER),
    ),
    ("standby mode", Failure("only Slurm's backup controller answers, and it is in standby mode", LATER)),
    (
        "incompatible versions",
        Failure(
            "this machine's Slurm commands do not fit the version of slurmctld",
            "The administrators can tell which commands to use (`tfjobtui doctor` shows the ones in use).",
        ),
    ),
    (
        "munge|protocol authentication error|invalid authentication credential|authentication plugin",
        Failure(
            "Slurm could not check who you are (munge on this machine)", "The administrators need to know."
        ),
    ),
    (
        "could not establish a configuration source|fetch_config|unable to process configuration|"
        "unable to find.*slurm.conf|slurm.conf: no such file",
        Failure(
            "no slurm.conf was found: this machine is not set up as a Slurm client", "Is SLURM_CONF right?"
        ),
    ),
    (
        "unable to contact slurm controller|connect failure|connection refused|no route to host|"
        "unable to establish controller|network is unreachable",
        Failure("slurmctld does not answer: it is down, or being restarted", LATER),
    ),
    (
        "no cluster .* known by database|can't find cluster|unknown cluster",
        Failure("no such cluster is known"),
    ),
    ("invalid user|user not found", Failure("Slurm does not know the user")),
    (
        "not running a supported priority plugin",
        Failure("this site orders jobs by their age alone (priority/basic)"),
    ),
    ("access/permission denied|user not permitted", Failure("Slurm does not permit this query")),
)

_TABLE = tuple((re.compile(pattern, re.IGNORECASE), failure) for pattern, failure in _QUERIES)

NO_ACCOUNTING = re.compile(r"accounting storage is disabled", re.IGNORECASE)
NO_SUCH_JOB = re.compile(r"invalid job id specified|^job \S+ not found$", re.IGNORECASE | re.MULTILINE)


def known_failure(text: str) -> Failure | None:
    """What is behind a command's error text, if it is one that is known."""
    return next((failure for pattern, failure in _TABLE if pattern.search(text)), None)


def last_words(text: str) -> str:
    """The line of an error text that says most: the last one that is an error, without the command's name."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"\w+: (error|fatal):", line)] or lines
    return re.sub(r"^\w+: (error|fatal): ", "", errors[-1]) if errors else ""


def query_error(done: Completed) -> QueryError:
    """The error for a query that was answered with an error."""
    command = done.argv[0].rsplit("/", 1)[-1]
    text = done.stderr_text or done.stdout_text[:2000]
    failure = known_failure(text)
    if failure is None:
        words = last_words(text) or f"exit code {done.returncode}"
        return QueryError(f"{command} failed: {words}", LATER)
    words = last_words(text)
    return QueryError(f"{failure.message} ({command}: {words})", failure.hint)


def unanswered(error: CommandError) -> QueryError:
    """The error for a query whose command could not be run, or gave no answer in time."""
    hint = error.hint if isinstance(error, CommandNotFoundError) else error.hint or LATER
    return QueryError(error.message, hint)
