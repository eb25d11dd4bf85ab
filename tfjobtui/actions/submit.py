"""Submitting a template or a script: what is shown is what runs, and what is kept is enough to run it again."""

from __future__ import annotations

import asyncio
import getpass
import os
import platform
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import tfjobtui
from tfjobtui import directives
from tfjobtui.actions.command_log import CommandLog
from tfjobtui.actions.git import GitState, git_state
from tfjobtui.actions.output_folders import make_output_folders
from tfjobtui.actions.personal_defaults import personal_defaults
from tfjobtui.config import Config
from tfjobtui.directives import Option, split_options
from tfjobtui.errors import ActionError, FormatError, SubmissionError, UsageError
from tfjobtui.paths import make_private, state_dir
from tfjobtui.runs.records import RunRecord, RunRecords
from tfjobtui.schedulers.scheduler import CommandRecord, Scheduler, SubmitRequest, Submitted
from tfjobtui.templates import catalogue
from tfjobtui.templates.catalogue import Template
from tfjobtui.templates.rendering import render

_KEPT_SCRIPTS = 200
_MAX_NAME_BYTES = 255
_MAX_SCRIPT_BYTES = 4 << 20
"""slurmctld takes 4 MB by default (`max_script_size`)."""


@dataclass(frozen=True, slots=True)
class SubmitPlan:
    """A submission as it will be made.

    `script` is the whole text that will run. `file_name` is its base name, which is the job's name where
    nothing else says one. `script_path` is the user's own file that holds it, or empty: then it is written
    into a private folder. `options` and `arguments` are words of the command line. `notes` are sentences on
    what of the user's surroundings was passed over.
    """

    script: str
    file_name: str
    work_dir: str
    options: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    script_path: str = ""
    template: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    cluster: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def command(self) -> tuple[str, ...]:
        """The command line, with the script by the name that the user knows."""
        return ("sbatch", *self.options, self.script_path or self.file_name, *self.arguments)

    def all_options(self) -> tuple[Option, ...]:
        """The script's options, then the command line's: of those with one name the last counts.

        Raises:
            FormatError: sbatch would refuse one of them.
        """
        written = tuple(Option(item.name, item.value) for item in directives.read(self.script))
        return (*written, *split_options(self.options)[0])


@dataclass(frozen=True, slots=True)
class SubmitOutcome:
    """A submission that was taken. `notes` are sentences for the user: what was made, what did not work."""

    submitted: Submitted
    record: RunRecord
    notes: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        cluster = f" on {self.submitted.cluster}" if self.submitted.cluster else ""
        return f"submitted job {self.submitted.id}{cluster}"


def plan_template(
    template: Template,
    values: Mapping[str, str],
    options: Mapping[str, str | None],
    work_dir: str,
    cluster: str | None = None,
    notes: tuple[str, ...] = (),
) -> SubmitPlan:
    """A template with its parameters and options (by the long names of sbatch's) written into it.

    Raises:
        UsageError: a value does not fit.
        FormatError: the template is broken.
    """
    script = render(template, values, options, trainer_path())
    return SubmitPlan(
        script,
        template.path.name,
        work_dir,
        template=template.name,
        values=dict(values),
        cluster=cluster,
        notes=notes,
    )


def plan_script(
    path: Path, options: Sequence[str], arguments: Sequence[str], work_dir: str, cluster: str | None = None
) -> SubmitPlan:
    """A script of the user's, with options of sbatch's before it and its own arguments after it.

    The user's own defaults (`SBATCH_ACCOUNT` …) become options too, where nothing else says it.

    Raises:
        UsageError: it cannot be read, or is nothing that sbatch takes.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    _check_script(path, content)
    text = content.decode("utf-8", "surrogateescape")
    absolute = str(path if path.is_absolute() else Path.cwd() / path)
    defaults = personal_defaults(text, _names(options))
    return SubmitPlan(
        text,
        path.name,
        work_dir,
        (*options, *(option.argument for option in defaults.options)),
        tuple(arguments),
        absolute,
        cluster=cluster,
        notes=defaults.notes,
    )


def _names(options: Sequence[str]) -> list[str]:
    try:
        return [option.name for option in split_options(options)[0]]
    except FormatError:
        return []  # sbatch will refuse it, in its own words


def _check_script(path: Path, content: bytes) -> None:
    """What sbatch refuses anyway, in words that say what to do."""
    if not content.startswith(b"#!"):
        raise UsageError(f"{path} is no script", "Its first line must name its interpreter: #!/bin/bash")
    if len(content) > _MAX_SCRIPT_BYTES:
        raise UsageError(f"{path} is too large for a script: {len(content)} bytes")
    if b"\0" in content:
        raise UsageError(f"{path} is no script: it has NUL characters in it")
    if b"\r\n" in content:
        raise UsageError(f"{path} has the line ends of DOS", f"Take them out: sed -i 's/\\r$//' {path}")


def load_templates(config: Config) -> tuple[Template, ...]:
    """The templates there are: the shipped ones, the site's, and the user's."""
    return catalogue.load([catalogue.shipped_folder(), *config.templates.folders])


def trainer_path() -> str:
    """The folder of the trainer's package that came with this program, or an empty text. It is not imported."""
    beside = Path(tfjobtui.__file__).parents[1]
    for folder in (beside / "tfjob_trainer", beside / "trainer" / "tfjob_trainer"):
        if (folder / "__main__.py").is_file():
            return str(folder)
    return ""


async def submit(
    scheduler: Scheduler, records: RunRecords, log: CommandLog, plan: SubmitPlan
) -> SubmitOutcome:
    """Make the submission, and keep its record.

    Raises:
        SubmissionError: it was refused, or it is not known whether it was taken; the message says which.
        ActionError: this scheduler takes none.
    """
    if not scheduler.capabilities.submit:
        raise ActionError(scheduler.capabilities.submit.reason)
    notes = (*plan.notes, *_make_folders(plan))
    try:
        script_path = plan.script_path or str(_write_script(plan))
    except OSError as error:
        why = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        raise ActionError(f"the script cannot be written into the state folder: {why}") from error
    asked = asyncio.create_task(git_state(plan.work_dir))
    try:
        submitted = await _submit(scheduler, log, plan, script_path)
        git = await asked
    finally:
        asked.cancel()
    record = _record(plan, submitted, git)
    try:
        records.save(record)
    except OSError as error:
        notes += (f"The record of the run could not be kept: {error.strerror}.",)
    return SubmitOutcome(submitted, record, notes)


async def _submit(scheduler: Scheduler, log: CommandLog, plan: SubmitPlan, script_path: str) -> Submitted:
    request = SubmitRequest(
        script_path=script_path,
        options=plan.options,
        arguments=plan.arguments,
        work_dir=plan.work_dir,
        cluster=plan.cluster,
    )
    started = time.time()
    try:
        submitted = await scheduler.submit(request)
    except SubmissionError as error:
        argv = error.argv or ("sbatch", *plan.options, script_path, *plan.arguments)
        said = error.said or error.message
        record = CommandRecord(argv, started, time.time() - started, error.returncode, said)
        log.add("submit (refused)" if error.returncode is not None else "submit", [record])
        raise
    log.add(f"submit {submitted.id}", [submitted.command])
    return submitted


def _make_folders(plan: SubmitPlan) -> tuple[str, ...]:
    try:
        options = plan.all_options()
    except FormatError:
        return ()  # sbatch will refuse it, in its own words
    return make_output_folders(options, plan.work_dir, getpass.getuser(), _job_name(plan))


def _write_script(plan: SubmitPlan) -> Path:
    """The script under its own name in a private folder: sbatch takes the job's name from the file's."""
    folder = state_dir() / "scripts"
    make_private(folder)
    _let_old_go(folder)
    own = make_private(
        folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{time.monotonic_ns() % 10**6}"
    )
    path = own / _safe_name(plan.file_name)
    path.write_bytes(plan.script.encode("utf-8", "surrogateescape"))
    path.chmod(0o700)
    return path


def _safe_name(name: str) -> str:
    """As the name of a file: a job's name may have slashes in it, and be longer than a file's."""
    safe = re.sub(r"[/\0]", "_", name)
    while len(os.fsencode(safe)) > _MAX_NAME_BYTES:
        safe = safe[:-1]
    return "job.sbatch" if safe in {"", ".", ".."} else safe


def _let_old_go(folder: Path) -> None:
    """Slurm has its own copy; these are kept for a while to be looked at."""
    for old in sorted(folder.iterdir())[:-_KEPT_SCRIPTS]:
        shutil.rmtree(old, ignore_errors=True)


def _record(plan: SubmitPlan, submitted: Submitted, git: GitState | None) -> RunRecord:
    return RunRecord(
        job_id=submitted.id.job,
        submitted_at_s=submitted.command.started_at_s,
        script=plan.script,
        cluster=submitted.cluster,
        user=getpass.getuser(),
        host=platform.node(),
        job_name=_job_name(plan),
        options=plan.options,
        arguments=plan.arguments,
        work_dir=plan.work_dir,
        template=plan.template,
        values=dict(plan.values),
        argv=submitted.command.argv,
        script_path=plan.script_path or plan.file_name,
        git_commit=git.commit if git is not None else "",
        git_dirty=git.is_dirty if git is not None else None,
    )


def _job_name(plan: SubmitPlan) -> str:
    """The name that sbatch gives the job: that of the options, else of the file."""
    try:
        options = plan.all_options()
    except FormatError:
        return plan.file_name
    named = next((option.value for option in reversed(options) if option.name == "job-name"), None)
    return named or plan.file_name
