"""What Slurm's reasons mean, and what the job's owner can do.

Single reasons stand in `REASONS`; those about limits of an account or a QOS are built from their parts
(`AssocGrp` + `GRES` + `RunMinutes`), since Slurm has about 150 of them; sentences of slurmctld stand in
`SENTENCES` by how they begin. `{job}` in an advice is the job's id, quoted for a shell.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Meaning(NamedTuple):
    """A reason in words."""

    meaning: str
    advice: str


_WAIT = "Nothing to do but wait."
_OWN_TIME = "A shorter time limit may let it start in a gap: scontrol update JobId={job} TimeLimit=…"
_ASK = "Ask the administrators."
_READ_LOG = "Read the end of its log."

REASONS: dict[str, Meaning] = {
    "None": Meaning(
        "The scheduler has not looked at it yet.", "Wait; if it stays so for minutes, ask the administrators."
    ),
    "Prolog": Meaning("Its nodes are being prepared (the prolog runs).", _WAIT),
    "Priority": Meaning(
        "Jobs with a higher priority are ahead of it.",
        f"Wait, or ask for less. {_OWN_TIME}",
    ),
    "Dependency": Meaning(
        "It waits for another job.",
        "Wait, or drop the dependency: scontrol update JobId={job} Dependency=",
    ),
    "Resources": Meaning(
        "It is next in line and waits for free resources.",
        "Wait, or ask for fewer resources or another partition: scontrol update JobId={job} Partition=…",
    ),
    "PartitionNodeLimit": Meaning(
        "It asks for more nodes (or fewer) than the partition allows, or its nodes are down or drained.",
        "Change the number of nodes or the partition: scontrol update JobId={job} NumNodes=…",
    ),
    "PartitionTimeLimit": Meaning(
        "Its time limit is above the partition's maximum.",
        "Lower it: scontrol update JobId={job} TimeLimit=…",
    ),
    "PartitionDown": Meaning(
        "The partition is down: jobs queue in it but do not start.",
        "Wait, or choose another partition: scontrol update JobId={job} Partition=…",
    ),
    "PartitionInactive": Meaning(
        "The partition is inactive.",
        "Choose another partition: scontrol update JobId={job} Partition=…",
    ),
    "JobHeldAdmin": Meaning("An administrator holds it.", "Only an administrator can release it: ask them."),
    "JobHeldUser": Meaning("You hold it.", "Release it: scontrol release {job}"),
    "NvidiaImexChannels": Meaning("All NVIDIA IMEX channels are in use.", _WAIT),
    "BeginTime": Meaning(
        "Its begin time is still to come; a job that was requeued waits about two minutes.",
        "Wait, or start it now: scontrol update JobId={job} StartTime=now",
    ),
    "Licenses": Meaning("It waits for a license.", _WAIT),
    "AssociationJobLimit": Meaning(
        "Your account's limit on jobs is reached.", "Wait for your account's jobs to end."
    ),
    "AssociationResourceLimit": Meaning(
        "Your account's limit on resources is reached.",
        "Wait for your account's jobs to end, or ask for less.",
    ),
    "AssociationTimeLimit": Meaning(
        "Your account's limit on time is reached.", "Wait, or use another account."
    ),
    "Reservation": Meaning(
        "Its reservation is not active yet.",
        "Wait, or leave the reservation: scontrol update JobId={job} ReservationName=",
    ),
    "ReqNodeNotAvail": Meaning(
        "A node that it needs is down, drained, reserved or busy.",
        "If it names nodes (--nodelist), drop them; if maintenance is near, a time limit that ends before it "
        "lets the job start: scontrol update JobId={job} TimeLimit=…",
    ),
    "SchedDefer": Meaning(
        "The scheduler does not try jobs one by one at the moment they are submitted.", _WAIT
    ),
    "NodeDown": Meaning(
        "A node of its allocation died.", "Submit it again, or requeue it: scontrol requeue {job}"
    ),
    "BadConstraints": Meaning(
        "No node of the cluster can ever satisfy the request.",
        "Cancel it, and submit it again with other --constraint, --gres, --mem or --nodes.",
    ),
    "SystemFailure": Meaning("Slurm, a file system or the network failed.", _ASK),
    "JobLaunchFailure": Meaning(
        "It could not be launched: a bad program, a file system, or the node's environment.",
        "Check its script, its folder and the node, then release it: scontrol release {job}",
    ),
    "NonZeroExitCode": Meaning("Its script ended with an error.", _READ_LOG),
    "RaisedSignal": Meaning(
        "A signal ended it.",
        f"{_READ_LOG} Signal 53 means that the output file could not be created: does its folder exist?",
    ),
    "TimeLimit": Meaning(
        "It ran out of time.", "Give it more time (--time), and let it go on from a checkpoint."
    ),
    "InactiveLimit": Meaning(
        "Its allocation was idle for too long.", "Start the work at once in the allocation."
    ),
    "InvalidAccount": Meaning(
        "Its account is not valid (any more).", "Use another account: scontrol update JobId={job} Account=…"
    ),
    "InvalidQOS": Meaning("Its QOS is not valid.", "Use another QOS: scontrol update JobId={job} QOS=…"),
    "QOSUsageThreshold": Meaning(
        "The usage that its QOS allows is passed.",
        "Wait, or use another QOS: scontrol update JobId={job} QOS=…",
    ),
    "QOSJobLimit": Meaning("The QOS's limit on jobs is reached.", "Wait for jobs of this QOS to end."),
    "QOSResourceLimit": Meaning(
        "The QOS's limit on resources is reached.", "Wait for jobs of this QOS to end, or ask for less."
    ),
    "QOSTimeLimit": Meaning(
        "Its time limit is above what its QOS allows.", "Lower it: scontrol update JobId={job} TimeLimit=…"
    ),
    "Cleaning": Meaning("It was requeued, and its last run is still being cleaned up.", _WAIT),
    "QOSNotAllowed": Meaning(
        "Its QOS is not allowed in this partition or for this account.",
        "Use another QOS: scontrol update JobId={job} QOS=…",
    ),
    "AccountNotAllowed": Meaning(
        "Its account is not allowed in this partition.",
        "Use another account or partition: scontrol update JobId={job} Account=… (or Partition=…)",
    ),
    "DependencyNeverSatisfied": Meaning(
        "The job that it waits for failed or is gone: it will never start.",
        "Cancel it, or drop the dependency and it can run: scontrol update JobId={job} Dependency=",
    ),
    "JobHoldMaxRequeue": Meaning(
        "It was requeued too often and is held now.",
        "Remove the cause, then release it: scontrol release {job}",
    ),
    "JobArrayTaskLimit": Meaning(
        "The array's own limit of tasks at a time (%N) is reached.",
        "Wait, or raise it: scontrol update JobId={array} ArrayTaskThrottle=…",
    ),
    "BurstBufferResources": Meaning("There is not enough burst buffer free.", _WAIT),
    "BurstBufferStageIn": Meaning("Its burst buffer is being filled.", _WAIT),
    "BurstBufferOperation": Meaning(
        "A burst buffer operation failed.", "Its SystemComment has the words: scontrol show job {job}"
    ),
    "DeadLine": Meaning(
        "It could not end before its deadline.", "Submit it with a later --deadline, or a shorter --time."
    ),
    "PartitionConfig": Meaning(
        "The partition's settings forbid it at present.",
        "Look at them: scontrol show partition. Or choose another: scontrol update JobId={job} Partition=…",
    ),
    "AccountingPolicy": Meaning("A limit in accounting, without saying which.", _ASK),
    "FedJobLock": Meaning("It waits for the federation's lock.", _WAIT),
    "OutOfMemory": Meaning("It used all of its memory.", "Ask for more memory (--mem) and submit it again."),
    "MaxMemPerLimit": Meaning(
        "It asks for more memory per CPU or node than is allowed.",
        "Submit it with less: --mem or --mem-per-cpu.",
    ),
    "ReservationDeleted": Meaning(
        "Its reservation was deleted, and it is held.",
        "Leave the reservation: scontrol update JobId={job} ReservationName= "
        "Then release it: scontrol release {job}",
    ),
    "ReservationInvalid": Meaning(
        "Its reservation is not valid for it (any more).",
        "Leave or change the reservation: scontrol update JobId={job} ReservationName=",
    ),
    "Constraints": Meaning(
        "Its constraints cannot be met at this moment.",
        "Wait, or relax them: scontrol update JobId={job} Features=…",
    ),
    "MaxPoweredUpNodes": Meaning("As many cloud nodes as the cluster allows are powered up.", _WAIT),
    "MpiPortsBusy": Meaning("All ports that are reserved for MPI are busy.", _WAIT),
    "FrontEndDown": Meaning("No front-end node is up.", _WAIT),
    "BlockMaxError": Meaning("A block of the machine has too many errors.", _WAIT),
    "BlockFreeAction": Meaning("A block of the machine is being freed.", _WAIT),
    "PowerNotAvail": Meaning("There is not enough electrical power free.", _WAIT),
    "PowerReserved": Meaning("The electrical power that it needs is reserved.", _WAIT),
    "WaitingForScheduling": Meaning("The scheduler has not looked at it yet.", _WAIT),
}

SENTENCES: tuple[tuple[str, Meaning], ...] = (
    (
        "nodes required for job are down, drained or reserved",
        Meaning(
            "The nodes that it needs are down, drained, or kept for partitions with a higher priority.",
            "Wait, or ask for other nodes or another partition: scontrol update JobId={job} Partition=…",
        ),
    ),
    (
        "launch failed requeued held",
        Meaning(
            "It could not be launched; Slurm put it back into the queue and holds it.",
            "Check its script, its folder and the node, then release it: scontrol release {job}",
        ),
    ),
    (
        "user env retrieval failed requeued held",
        Meaning(
            "Your environment could not be read on the node (a slow or failing shell start-up file).",
            "Make your shell's start-up files quick, or submit without --export=NONE and --get-user-env; "
            "then release it: scontrol release {job}",
        ),
    ),
    (
        "job requeued in held state",
        Meaning("It was put back into the queue and is held.", "Release it: scontrol release {job}"),
    ),
    (
        "reservation ",
        Meaning(
            "The reservation that it ran under has ended.",
            "Leave the reservation: scontrol update JobId={job} ReservationName=",
        ),
    ),
    (
        "uid ",
        Meaning(
            "You are not in a group that may use this partition.",
            "Choose another partition: scontrol update JobId={job} Partition=…",
        ),
    ),
)
"""What slurmctld writes in place of a reason: how it begins, in small letters and with blanks."""

_RESOURCES = {
    "Cpu": "CPUs",
    "CPU": "CPUs",
    "Mem": "memory",
    "Memory": "memory",
    "Node": "nodes",
    "Energy": "energy",
    "GRES": "GPUs (or other GRES)",
    "License": "licenses",
    "BB": "burst buffer",
    "Billing": "billing units",
    "Unknown": "some resource",
    "Jobs": "running jobs",
    "Job": "running jobs",
    "SubmitJobs": "submitted jobs",
    "SubmitJob": "submitted jobs",
    "WallDuration": "wall time",
    "Wall": "total wall time",
}
_LIMIT = re.compile(
    r"(?P<owner>Assoc|QOS|)(?P<kind>Grp|Max|Min)"
    rf"(?P<what>{'|'.join(sorted(_RESOURCES, key=len, reverse=True))})"
    r"(?P<time>RunMinutes|RunMins|Minutes|Mins)?(?:Per(?P<scope>Job|Node|User|Account))?(?:Limit|NotSatisfied)?"
)
_OWNERS = {"Assoc": "your account (association)", "QOS": "its QOS", "": "its QOS"}
_OWN_JOBS = "Wait for jobs of yours to end."


def of_word(word: str) -> Meaning | None:
    """What one reason means, or `None` where it is not known."""
    known = REASONS.get(word)
    if known is not None:
        return known
    match = _LIMIT.fullmatch(word)
    return None if match is None else _limit(match)


def of_sentence(text: str) -> Meaning | None:
    """What a sentence of slurmctld means (scontrol writes it with `_` for blanks), or `None`."""
    plain = text.replace("_", " ").casefold()
    return next((meaning for start, meaning in SENTENCES if plain.startswith(start)), None)


def _limit(match: re.Match[str]) -> Meaning:
    """A limit: of whom (account, QOS), on what, counted how (now, or over time), for which jobs together."""
    owner, what, time = _OWNERS[match["owner"]], _RESOURCES[match["what"]], match["time"] or ""
    if match["kind"] == "Min":
        return Meaning(
            f"It asks for less than the minimum of {what} of {owner}.", _other(match, "Ask for more")
        )
    if match["kind"] == "Grp":
        return _group_limit(match, owner, what, time)
    over_time = (
        " × minutes" if time.startswith("Min") else " × remaining minutes of running jobs" if time else ""
    )
    limit = f"the limit of {owner} on {what}{over_time}"
    if match["scope"] == "Job":
        return Meaning(f"It asks for more than {limit} for one job.", _lower(match))
    if match["scope"] == "Node":
        return Meaning(f"It asks for more per node than {limit}.", _lower(match))
    if match["scope"] == "Account":
        return Meaning(
            f"Your account's jobs together have reached {limit}.", "Wait for jobs of your account to end."
        )
    shorter = f" {_OWN_TIME}" if time else ""
    return Meaning(f"Your own jobs together have reached {limit}.", f"{_OWN_JOBS}{shorter}")


def _group_limit(match: re.Match[str], owner: str, what: str, time: str) -> Meaning:
    if time.startswith("Run"):
        return Meaning(
            f"The group limit of {owner} on {what} × remaining minutes of running jobs is reached.",
            f"Wait for the group's jobs to go on or end. {_OWN_TIME}",
        )
    if time:
        return Meaning(
            f"The group's budget of {owner} is used up: {what} × minutes, of past and running jobs.",
            _other(match, "Wait until the usage decays or is reset"),
        )
    return Meaning(
        f"The group limit of {owner} on {what} is reached.",
        _other(match, "Wait for jobs of the group to end"),
    )


def _lower(match: re.Match[str]) -> str:
    if match["what"] in ("WallDuration", "Wall"):
        return "Lower its time limit: scontrol update JobId={job} TimeLimit=…"
    return _other(match, "Cancel it and ask for less")


def _other(match: re.Match[str], first: str) -> str:
    field = "Account" if match["owner"] == "Assoc" else "QOS"
    noun = "account" if field == "Account" else "QOS"
    return f"{first}, or use another {noun}: scontrol update JobId={{job}} {field}=…"
