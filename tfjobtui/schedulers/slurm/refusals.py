"""Why an action was refused: Slurm's words, told plainly, with what can be done."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tfjobtui.errors import FormatError
from tfjobtui.model.ids import JobId
from tfjobtui.schedulers.scheduler import Target

_TABLE: tuple[tuple[str, str, str], ...] = (
    (
        "access/permission denied|invalid user id|user not permitted",
        "Slurm does not permit it: the job is somebody else's, or this is for administrators.",
        "",
    ),
    ("job/step already completing or completed|job has already finished", "It has already ended.", ""),
    (
        "individual component of heterogeneous",
        "A part of a heterogeneous job cannot be cancelled alone: cancel the whole job.",
        "",
    ),
    ("invalid job id specified|not found$|no active jobs match", "Slurm no longer has this job.", ""),
    (
        "job is pending execution",
        "It is waiting already; only a job that has started can be requeued.",
        "",
    ),
    (
        "only batch jobs are accepted",
        "Only batch jobs can be requeued, and this one was started by srun or salloc.",
        "",
    ),
    (
        "job is no longer pending",
        "It is not waiting any more, and this can only be changed before the start.",
        "",
    ),
    (
        "requested operation is presently disabled",
        "Slurm does not do this for this job: it has --no-requeue, or the site has turned it off.",
        "",
    ),
    (
        "invalid partition|partition specified",
        "There is no such partition, or it is not open to you.",
        "`sinfo` lists the partitions.",
    ),
    (
        "invalid account or account/partition",
        "The account is not known, or may not use this partition.",
        "Choose another --account, or ask for access.",
    ),
    (
        "invalid qos",
        "The quality of service (QOS) is not known, or not open to you.",
        "Choose another --qos.",
    ),
    (
        "invalid generic resource|gres",
        "No node has the GPUs or other resources in this form.",
        "Check the GPU type and number (--gres, --gpus).",
    ),
    (
        "node configuration is not available|node count specification invalid|more processors requested",
        "No nodes of this partition can ever give what was asked for.",
        "Ask for fewer nodes, GPUs, CPUs or less memory, or another partition.",
    ),
    (
        "memory required by task is not available|memory specification",
        "So much memory is not to be had.",
        "Lower --mem.",
    ),
    (
        "time limit is invalid",
        "The time limit is missing, or above what the partition allows.",
        "Set a shorter --time.",
    ),
    (
        "invalid job array",
        "The list of array tasks is wrong, or the array is larger than the site allows.",
        "",
    ),
    (
        "accounting/qos policy|submit limit",
        "A limit of your account or QOS is reached (number, size or time of jobs).",
        "Wait for jobs to end, or ask for less.",
    ),
    ("group not permitted", "Your group may not use this partition.", "Choose another partition."),
    ("dependency problem", "The job that it is to wait for is not known.", "Check --dependency."),
    ("pathname of a file, directory or other parameter too long", "A path, name or comment is too long.", ""),
    (
        "does not look like a batch script|batch script is empty|only whitespace",
        "It is no batch script: its first line must begin with #! and name a shell.",
        "",
    ),
    ("dos line breaks", "The script has the line ends of DOS.", "`dos2unix` or the editor can change them."),
    ("unrecognized option|invalid directive found", "An option of the script or the command is wrong.", ""),
    ("job queue full", "The queue is full.", "Try again later."),
    (
        "resource temporarily unavailable",
        "Slurm could not do it at this moment.",
        "Try again. From 24.11 on Slurm often says this of a change of partition to users who have no"
        " account in its accounting.",
    ),
)
_RULES = tuple(
    (re.compile(pattern, re.IGNORECASE | re.MULTILINE), told, hint) for pattern, told, hint in _TABLE
)

ALREADY_ENDED = re.compile(r"already (completing or completed|finished)", re.IGNORECASE)
NONE_LEFT = re.compile(r"no active jobs match|invalid job id specified", re.IGNORECASE)


def explained(words: str) -> tuple[str, str]:
    """A sentence for the user, and what can be done; both empty where the words are not known."""
    return next(((told, hint) for rule, told, hint in _RULES if rule.search(words)), ("", ""))


@dataclass(frozen=True, slots=True)
class Complaint:
    """A message of scancel or scontrol, and the id that it is about."""

    about: str
    words: str

    @property
    def is_success(self) -> bool:
        """`22_3: No error`, said of one task where another one was refused."""
        return self.words == "No error"


_FORMS = (
    re.compile(r"Kill job error on job id (?P<id>\S+): (?P<words>.+)"),
    re.compile(r"^(?P<words>.+) for job (?P<id>\d\S*)$"),
    re.compile(r"^(?P<id>\d+_\S+): (?P<words>.+)$"),
    re.compile(r"^Job (?P<id>\d\S*) (?P<words>not found)$"),
)


def complaints(text: str) -> tuple[Complaint, ...]:
    """What is said about single jobs."""
    found: list[Complaint] = []
    for line in text.splitlines():
        match = next((match for form in _FORMS if (match := form.search(line.strip()))), None)
        if match is not None:
            found.append(Complaint(match["id"], match["words"]))
    return tuple(found)


def is_about(complaint: Complaint, target: Target) -> bool:
    """Whether a message is about a target: by its id, or about one of the tasks that the target stands for."""
    about = complaint.about
    if about == str(target.id) or (target.raw_id is not None and about == str(target.raw_id)):
        return True
    job, _, rest = about.partition("_")
    if job != str(target.id.job) or target.id.het_offset is not None:
        return False
    if target.id.task is None and (target.id.tasks is None or not rest):
        return True
    try:
        said = JobId.parse(about)
    except FormatError:
        return target.id.task is None
    if target.id.task is not None:
        return target.id.task in (said.tasks or ())  # 26.05 says `8_[3]` also of one
    meant = target.id.tasks or ()
    return said.task in meant if said.tasks is None else any(task in meant for task in said.tasks)
