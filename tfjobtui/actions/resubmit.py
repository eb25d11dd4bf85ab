"""The same job again: same script, options, arguments and folder, as far as they can be had back.

Our own record of a run has all of it. Otherwise the script comes from the scheduler, the options from the
command line that accounting keeps, where that can be read in one way only. What cannot be had back is
told before anything is submitted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tfjobtui import directives
from tfjobtui.actions.command_log import CommandLog
from tfjobtui.actions.personal_defaults import personal_defaults
from tfjobtui.actions.submit import SubmitOutcome, SubmitPlan
from tfjobtui.actions.submit import submit as submit_plan
from tfjobtui.actions.submit_line import (
    Components,
    Submission,
    command_of,
    in_shell,
    read_options,
    with_arguments,
)
from tfjobtui.directives import Option, split_options
from tfjobtui.errors import ActionError, FormatError, QueryError
from tfjobtui.model.ids import JobId
from tfjobtui.model.job import Job
from tfjobtui.model.units import duration, size
from tfjobtui.paths import is_file, is_folder
from tfjobtui.runs.records import RunRecord, RunRecords
from tfjobtui.schedulers.scheduler import EndedJob, JobDetails, Scheduler, StoredScript, Target


@dataclass(frozen=True, slots=True)
class ResubmitPlan:
    """What would be submitted again. `source` says where the script is from, `missing` what is not as it was."""

    submission: SubmitPlan
    source: str
    missing: tuple[str, ...] = ()

    @property
    def script(self) -> str:
        return self.submission.script

    @property
    def options(self) -> tuple[str, ...]:
        return self.submission.options

    @property
    def arguments(self) -> tuple[str, ...]:
        return self.submission.arguments

    @property
    def work_dir(self) -> str:
        return self.submission.work_dir


_HAD = {name: name for name in ("account", "partition", "qos", "reservation")}


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of the job besides its script."""

    job: Job | None
    details: JobDetails | None
    ended: EndedJob | None

    @property
    def command(self) -> str | None:
        """The script's path with its arguments, empty without one (`--wrap`, standard input)."""
        if self.job is None and self.details is None:
            return None
        from_queue = self.job.command if self.job is not None else ""
        return (self.details.get("Command") if self.details else "") or from_queue

    def had(self, option: str) -> str:
        """What the job had of an option that says where it runs and who pays; empty where not known."""
        for source in (self.job, self.ended):
            if source is not None and (value := getattr(source, _HAD.get(option, ""), "")):
                return str(value)
        return ""

    @property
    def work_dir(self) -> str:
        from_queue = self.job.work_dir if self.job is not None else ""
        from_accounting = self.ended.work_dir if self.ended is not None else ""
        return from_queue or (self.details.get("WorkDir") if self.details else "") or from_accounting

    @property
    def submit_line(self) -> str:
        """The command line of the submission, where the controller (25.11 and later) or accounting has it."""
        from_accounting = self.ended.submit_line if self.ended is not None else ""
        return (self.details.get("SubmitLine") if self.details else "") or from_accounting

    @property
    def name(self) -> str:
        from_accounting = self.ended.name if self.ended is not None else ""
        return (self.job.name if self.job is not None else "") or from_accounting


async def plan(scheduler: Scheduler, records: RunRecords, job: Job) -> ResubmitPlan:
    """How this job would be submitted again.

    Raises:
        ActionError: its script cannot be had back.
        QueryError: the scheduler gave no answer.
    """
    return await plan_target(scheduler, records, Target.of(job), job)


async def plan_target(
    scheduler: Scheduler, records: RunRecords, target: Target, job: Job | None
) -> ResubmitPlan:
    """The same for a job that may have left the queue.

    Raises:
        ActionError, QueryError: as `plan`.
    """
    was_requeued = job is not None and job.restarts > 0
    record = records.find(target.cluster, target.id, target.submit_time_s, was_requeued=was_requeued)
    if record is not None:
        return _for_task(_from_record(record), target.id)
    stored = await scheduler.stored_script(target)
    if stored is None:
        raise ActionError(
            f"the script of job {target.id} cannot be had back",
            "It is kept by Slurm for a few minutes after the end, and longer only where accounting stores "
            "scripts. Submit the script itself: tfjobtui submit SCRIPT",
        )
    known = await _known(scheduler, target, job)
    if not known.work_dir:
        raise ActionError(f"the folder of job {target.id} is not known", "Submit its script from its folder.")
    return _for_task(_from_scheduler(stored, known, target), target.id)


async def submit(
    scheduler: Scheduler, records: RunRecords, log: CommandLog, plan: ResubmitPlan
) -> SubmitOutcome:
    """Submit what was shown.

    Raises:
        SubmissionError, ActionError: as `tfjobtui.actions.submit.submit`.
    """
    return await submit_plan(scheduler, records, log, plan.submission)


def _from_record(record: RunRecord) -> ResubmitPlan:
    missing = _folder_is_there(record.work_dir)
    submission = SubmitPlan(
        script=record.script,
        # The file may have been changed since: what was submitted is in the record.
        file_name=record.script_path.rpartition("/")[2] or "job",
        work_dir=record.work_dir,
        options=record.options,
        arguments=record.arguments,
        template=record.template,
        values=record.values,
        cluster=record.cluster,
    )
    return ResubmitPlan(submission, "the record of its submission", missing)


async def _known(scheduler: Scheduler, target: Target, job: Job | None) -> _Known:
    """Ask the controller, and accounting only where that no longer has the job."""
    try:
        details = await scheduler.details(target)
    except QueryError:
        details = None
    ended = None
    if job is None and details is None and scheduler.capabilities.accounting:
        ended = next(iter(await scheduler.ended([target])), None)
    return _Known(job, details, ended)


def _from_scheduler(stored: StoredScript, known: _Known, target: Target) -> ResubmitPlan:
    is_wrapped = "sbatch --wrap" in stored.text[:200]
    line = stored.submit_line or known.submit_line
    command = "" if is_wrapped else known.command
    if command and line:
        command = with_arguments(command, line)
    job = Submission(command, stored.text, known.name, known.work_dir)
    if command is None and line:
        command = command_of(line, job)
        job = replace(job, command=command)
    path, arguments, are_certain = _split_command(command or "")
    parts = read_options(line, job) if line else None
    missing = [*_folder_is_there(known.work_dir)]
    if parts is None:
        missing.append(_lost_options(known, stored.text, line))
        if command is None or (command and _may_lack_arguments(command, line)):
            missing.append("Arguments of the script, if it had any, cannot be had back.")
    if not are_certain:
        missing.append(f"Arguments with blanks in them cannot be told apart: {' '.join(arguments)}")
    options, doubts = _options(parts or ((),), known, stored.text)
    missing.append("The environment that it was submitted with is not kept: it gets the present one.")
    submission = SubmitPlan(
        script=stored.text,
        file_name=_file_name(path, command, is_wrapped, known.name),
        work_dir=known.work_dir,
        options=options,
        arguments=arguments,
        cluster=target.cluster,
    )
    return ResubmitPlan(submission, stored.source, (*missing, *doubts))


def _file_name(path: str, command: str | None, is_wrapped: bool, name: str) -> str:
    """What sbatch names the job after where nothing else says it; a script from standard input is `sbatch`."""
    if is_wrapped:
        return "wrap"
    return path.rpartition("/")[2] or ("sbatch" if command is not None else name) or "job"


def _options(parts: Components, known: _Known, script: str) -> tuple[tuple[str, ...], list[str]]:
    """The words of the command line, and sentences on what of it is in doubt."""
    # The folder that the scheduler tells is the one after --chdir.
    kept = [[option for option in part if option.name != "chdir"] for part in parts]
    doubts = []
    # The letters of a name that the queue tells are right.
    sure = known.job.name if known.job is not None else None
    values = [option for part in kept for option in part if option.value and option.value != sure]
    marked = [option.argument for option in values if "?" in (option.value or "")]
    if marked:
        doubts.append(f"Accounting may have put ? in place of letters: {in_shell(marked)}")
    if len(kept) == 1:
        own = personal_defaults(script, [option.name for option in kept[0]])
        for option, variable in zip(own.options, own.variables, strict=True):
            if option.value and known.had(option.name).casefold() == option.value.casefold():
                kept[0].append(option)
            else:
                doubts.append(f"{variable} is set in your environment, and is not used for this job.")
    words = [option.argument for option in kept[0]]
    for part in kept[1:]:
        words += [":", *(option.argument for option in part)]
    return tuple(words), doubts


def _split_command(command: str) -> tuple[str, tuple[str, ...], bool]:
    """The script's path, its arguments, and whether they are certain: blanks within one are not quoted."""
    if " " not in command or is_file(command):
        return command, (), True
    path, *arguments = command.split()
    return path, tuple(arguments), len(arguments) < 2 and command.count(" ") == 1


def _may_lack_arguments(command: str, line: str) -> bool:
    """Whether there may have been arguments: newer releases tell the script's path alone."""
    last = line.rpartition(" ")[2]
    return " " not in command and last.rpartition("/")[2] != command.rpartition("/")[2]


def _folder_is_there(folder: str) -> tuple[str, ...]:
    return () if is_folder(folder) else (f"Its folder is not there any more: {folder}",)


def _lost_options(known: _Known, script: str, line: str) -> str:
    """That the options are lost, with what the job had that its script does not ask for."""
    try:
        written = {item.name for item in directives.read(script)}
    except FormatError:
        written = set()
    had = [text for name, text in _had(known) if name not in written]
    parts = ["Options that were given on the command line cannot be had back."]
    if line:
        parts = ["Its command line can be read in several ways, so no option is taken from it."]
    if had:
        parts.append(f"It had, beyond its script: {', '.join(had)}.")
    if line:
        parts.append(f"The line is: {line}")
    return " ".join(parts)


def _had(known: _Known) -> Iterable[tuple[str, str]]:
    """What the job had, under the names of sbatch's options."""
    job, limit_s = known.job, None
    if known.name:
        yield "job-name", f"name {known.name}"
    for source in (job, known.ended):
        limit_s = limit_s if source is None or limit_s is not None else source.time_limit_s
    if limit_s is not None:
        yield "time", "no time limit" if math.isinf(limit_s) else f"time limit {duration(limit_s)}"
    if job is not None and job.gpus.count:
        yield "gpus", f"GPUs {job.gpus}"
    if job is not None and job.cpus:
        yield "cpus-per-task", f"CPUs {job.cpus}"
    if job is not None and job.memory_bytes:
        yield "mem", f"memory {size(job.memory_bytes)}"
    for name, word in (
        ("partition", "partition"),
        ("account", "account"),
        ("qos", "QOS"),
        ("reservation", "reservation"),
    ):
        if value := known.had(name):
            yield name, f"{word} {value}"


def _for_task(plan: ResubmitPlan, job_id: JobId) -> ResubmitPlan:
    """Of an array only the tasks that were chosen: the others have run already, or still do."""
    if job_id.task is None and job_id.tasks is None:
        return plan
    tasks = str(job_id.task) if job_id.tasks is None else str(job_id.tasks)
    throttle = f"%{job_id.tasks.throttle}" if job_id.tasks is not None and job_id.tasks.throttle else ""
    try:
        kept = [option for option in split_options(plan.options)[0] if option.name != "array"]
    except FormatError:
        kept = []
    options = tuple(option.argument for option in (*kept, Option("array", tasks + throttle)))
    return replace(plan, submission=replace(plan.submission, options=options))
