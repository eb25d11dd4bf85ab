"""What the program asks of a scheduler: small protocols, and the values that pass through them.

Every method is a coroutine that raises `tfjobtui.errors.QueryError` when a question gets no answer, so
that "no answer" is never taken for "no job". Actions do not raise for a refusal: they give one
`ActionResult` for each target, with the command that was run and the scheduler's own words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tfjobtui.model.ids import JobId
from tfjobtui.model.job import ExitCode, Job
from tfjobtui.model.node import Node
from tfjobtui.model.state import JobState
from tfjobtui.model.units import stamp


@dataclass(frozen=True, slots=True)
class Capability:
    """Whether something can be done here, and if not, why, in a sentence for the user."""

    available: bool
    reason: str = ""

    def __bool__(self) -> bool:
        return self.available


YES = Capability(True)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What this scheduler can do. `name` and `version` are shown in the header."""

    name: str
    version: str = ""
    accounting: Capability = YES
    everyone: Capability = YES
    """Other users' jobs can be listed."""
    shell: Capability = YES
    priority: Capability = YES
    """The factors of a waiting job's priority can be asked for."""
    submit: Capability = YES
    hold: Capability = YES
    requeue: Capability = YES
    update: Capability = YES
    forecast: Capability = YES
    """When something would start can be asked without submitting it."""
    clusters: Capability = YES
    """Several clusters can be watched (`--clusters`)."""
    runs_here: bool = False
    """Jobs run on this machine, so that what is not installed here is not there for them either."""


@dataclass(frozen=True, slots=True)
class QueueAnswer:
    """One reading of the queue.

    `problems` says which rows could not be read, and how; the others are kept. `duration_s` is the
    time that the query took. `silent_clusters` are those of several clusters that gave no answer:
    nothing may be concluded about their jobs.
    """

    jobs: tuple[Job, ...]
    taken_at_s: float
    duration_s: float
    problems: tuple[str, ...] = ()
    silent_clusters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JobDetails:
    """Everything the scheduler tells of one job: its fields in order, and what was read from them.

    `fields` are the scheduler's own names and values (`TresPerNode`, `gres/gpu:a100:2`). `gpu_indexes`
    are lines such as `gpu01: a100 0-1`.
    """

    job_id: JobId
    fields: tuple[tuple[str, str], ...]
    gpu_indexes: tuple[str, ...] = ()

    def get(self, name: str) -> str:
        """The value of a field, or an empty text; `(null)`, `N/A` and their kin are empty too."""
        for key, value in self.fields:
            if key == name:
                return "" if value in NO_VALUE else value
        return ""

    @property
    def readable(self) -> tuple[tuple[str, str], ...]:
        """The fields as a person reads them: moments, which are seconds since the epoch, by the clock."""
        return tuple((name, _by_clock(name, value)) for name, value in self.fields)


def _by_clock(name: str, value: str) -> str:
    is_moment = name.endswith(("Time", "Eval")) and value.isascii() and value.isdigit() and len(value) >= 9
    return stamp(int(value)) if is_moment and len(value) < 12 else value


NO_VALUE = frozenset({"(null)", "N/A", "n/a", "None", "Unknown", "NONE", "None assigned"})


@dataclass(frozen=True, slots=True)
class EndedJob:
    """How a job ended, as accounting tells."""

    id: JobId
    raw_id: int
    name: str
    state: JobState
    state_text: str
    user: str = ""
    cancelled_by_uid: int | None = None
    account: str = ""
    partition: str = ""
    submit_time_s: int | None = None
    start_time_s: int | None = None
    end_time_s: int | None = None
    time_limit_s: float | None = None
    exit_code: ExitCode | None = None
    nodes: str = ""
    work_dir: str = ""
    submit_line: str = ""
    stdout_pattern: str = ""
    stderr_pattern: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """A job as it was when the user chose it, so that a later refresh cannot change what is meant.

    `pending_only` spares what has started since (`scancel --state=PENDING`). `submit_time_s` tells a
    job from a later one with the same id. `raw_id` is the scheduler's own id of the record, which
    srun takes where it does not take `123_4`.
    """

    id: JobId
    cluster: str | None
    name: str
    user: str
    submit_time_s: int | None
    pending_only: bool = False
    raw_id: int | None = None

    @staticmethod
    def of(job: Job, *, whole: bool = False, pending_only: bool = False) -> Target:
        """The job itself, or with `whole` the array or het job that it belongs to."""
        return Target(
            job.id.leader if whole else job.id,
            job.cluster,
            job.name,
            job.user,
            job.submit_time_s,
            pending_only,
            None if whole else job.raw_id,
        )


@dataclass(frozen=True, slots=True)
class CommandRecord:
    """A command that was run for the user, for the command log: what, when, and how it ended."""

    argv: tuple[str, ...]
    started_at_s: float
    duration_s: float
    returncode: int | None
    output: str = ""


@dataclass(frozen=True, slots=True)
class ActionResult:
    """What became of one target. `message` is the scheduler's own words, in case of a refusal explained."""

    target: Target
    ok: bool
    message: str
    command: CommandRecord


@dataclass(frozen=True, slots=True)
class SubmitRequest:
    """A script to be submitted.

    `script` is the whole text. `script_path` is the file that is handed to the scheduler (it holds
    `script`). `options` are command-line options (`--partition=gpu`), `arguments` the script's own.
    """

    script_path: str
    options: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    work_dir: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    cluster: str | None = None


@dataclass(frozen=True, slots=True)
class Submitted:
    """A submission that was taken. `messages` are the scheduler's and the site's remarks."""

    id: JobId
    cluster: str | None
    messages: str
    command: CommandRecord


@dataclass(frozen=True, slots=True)
class Forecast:
    """When and where a job would start if it were submitted now.

    `start_s` is a moment. `preempts` are the ids of jobs that it would put aside. `messages` are the
    scheduler's and the site's other remarks.
    """

    start_s: float
    nodes: str
    partition: str
    cpus: int | None
    preempts: tuple[str, ...]
    messages: str
    command: CommandRecord


@dataclass(frozen=True, slots=True)
class StoredScript:
    """A job's script as it can be had back; `source` says from where, `missing` what is not in it.

    `submit_line` is the command that submitted it, where that is kept: its words joined by blanks without
    quotes, so it is to be read by a person.
    """

    text: str
    source: str
    missing: tuple[str, ...] = ()
    submit_line: str = ""


@dataclass(frozen=True, slots=True)
class StepUsage:
    """What a step has used until now; `None` is "no figure yet", which is not zero.

    `step` is `batch`, `extern`, `0` …; `cpu_s` the CPU seconds of all its tasks; `peak_rss_bytes` the
    highest sample of one task.
    """

    step: str
    tasks: int | None
    cpu_s: float | None
    peak_rss_bytes: int | None
    memory_bytes: int | None
    gpu_percent: int | None = None
    gpu_memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class PriorityFactor:
    """One term of a waiting job's priority: its weighted value."""

    name: str
    value: float


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition as `sinfo` shows it; `max_time_s` infinite without a limit."""

    name: str
    is_default: bool
    is_up: bool
    max_time_s: float | None
    node_count: int
    gpu_types: tuple[tuple[str | None, int], ...] = ()


class Queue(Protocol):
    """Reading the queue."""

    async def jobs(self, *, everyone: bool = False) -> QueueAnswer:
        """The user's own jobs, or everybody's; also those that ended lately, if the scheduler keeps them."""
        ...

    async def details(self, target: Target) -> JobDetails | None:
        """All of one job, or `None` where the scheduler no longer has it."""
        ...

    async def priority(self, target: Target) -> tuple[PriorityFactor, ...]:
        """The factors of a waiting job's priority, greatest first."""
        ...


class Control(Protocol):
    """Changing jobs. One result for each target, in their order."""

    def action_commands(
        self, action: str, targets: Sequence[Target], signal: str | None = None
    ) -> tuple[tuple[str, ...], ...]:
        """The commands that `cancel`, `hold`, `release` or `requeue` would run, without running them."""
        ...

    async def cancel(
        self, targets: Sequence[Target], signal: str | None = None
    ) -> tuple[ActionResult, ...]: ...

    async def hold(self, targets: Sequence[Target]) -> tuple[ActionResult, ...]: ...

    async def release(self, targets: Sequence[Target]) -> tuple[ActionResult, ...]: ...

    async def requeue(self, targets: Sequence[Target]) -> tuple[ActionResult, ...]: ...

    async def update(self, target: Target, changes: Mapping[str, str]) -> ActionResult:
        """Change fields by the scheduler's own names: `{"TimeLimit": "2:00:00"}`."""
        ...


class Submission(Protocol):
    """Submitting, and having a script back."""

    async def submit(self, request: SubmitRequest) -> Submitted:
        """Hand the script over.

        Raises:
            SubmissionError: it was refused, or it is not known whether it was taken; the message says which.
        """
        ...

    async def forecast(self, request: SubmitRequest) -> Forecast:
        """Ask when and where it would start, without submitting it.

        Raises:
            SubmissionError: it would be refused, or nothing is known; the message says which.
        """
        ...

    async def stored_script(self, target: Target) -> StoredScript | None:
        """The script of a job of the user's, or `None` where it cannot be had back."""
        ...


class Accounting(Protocol):
    """What has ended."""

    async def ended(self, targets: Sequence[Target]) -> tuple[EndedJob, ...]:
        """How these jobs ended, in one query; those that accounting does not know (yet) are left out."""
        ...


class Inventory(Protocol):
    """What the cluster has."""

    async def partitions(self) -> tuple[Partition, ...]: ...

    async def nodes(self) -> tuple[Node, ...]:
        """The nodes, each once, in the scheduler's order."""
        ...


class Steps(Protocol):
    """Steps inside a job's allocation."""

    def shell_argv(self, target: Target, node: str | None = None) -> tuple[str, ...]:
        """The command that opens a shell inside the job's allocation on that node, in the foreground."""
        ...

    async def step_usage(self, target: Target) -> tuple[StepUsage, ...]:
        """What the steps of a running job have used until now; empty where there are no figures yet."""
        ...

    def foreground_environment(self) -> Mapping[str, str]:
        """The environment for that command: without the settings of an outer allocation."""
        ...


class Scheduler(Queue, Control, Submission, Accounting, Inventory, Steps, Protocol):
    """Everything together, as one object."""

    @property
    def capabilities(self) -> Capabilities: ...

    async def close(self) -> None:
        """End what is still running."""
        ...
