"""`submit`, `resubmit` and `templates`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from tfjobtui.actions import resubmit, trainer_setup
from tfjobtui.actions.command_log import CommandLog
from tfjobtui.actions.personal_defaults import personal_defaults
from tfjobtui.actions.resubmit import ResubmitPlan
from tfjobtui.actions.submit import (
    SubmitOutcome,
    SubmitPlan,
    load_templates,
    plan_script,
    plan_template,
    submit,
)
from tfjobtui.actions.submit_line import in_shell
from tfjobtui.cli.arguments import sbatch_options
from tfjobtui.cli.context import find_job, open_scheduler
from tfjobtui.cli.output import complain, confirm, print_json, print_table
from tfjobtui.cli.setup import load_config
from tfjobtui.config import Config
from tfjobtui.errors import UsageError
from tfjobtui.model.text import printable
from tfjobtui.paths import is_file
from tfjobtui.runs.records import RunRecords
from tfjobtui.schedulers.scheduler import Scheduler
from tfjobtui.templates import catalogue
from tfjobtui.templates.catalogue import Template


def run(options: argparse.Namespace) -> int:
    """Submit, submit again, or list the templates."""
    config = load_config(options.config)
    if options.command == "templates":
        return _list(config, as_json=options.json)
    if options.command == "submit":
        return _submit(options, config)
    return _resubmit(options, config)


# --- submit -----------------------------------------------------------------------------------------------


def _submit(options: argparse.Namespace, config: Config) -> int:
    template = _template(options, config)
    plan = _plan(options, config, template)
    if options.dry_run:
        _show(plan)
        return 0
    scheduler = open_scheduler(config, options)
    for outcome in asyncio.run(_make(scheduler, plan, template, sets_up=options.set_up)):
        _tell(outcome)
    return 0


def _plan(options: argparse.Namespace, config: Config, template: Template | None) -> SubmitPlan:
    """What is to be submitted: a template by its name, or a script by its path."""
    given = sbatch_options(options)
    cluster = _one_cluster(options, config)
    work_dir = str(Path.cwd())
    if template is None:
        path = Path(options.what)
        return plan_script(path, given, options.script_arguments, work_dir, cluster)
    if options.script_arguments:
        raise UsageError("a template takes no arguments", "Its parameters are set by --set NAME=VALUE.")
    changes = _as_directives(given)
    defaults = personal_defaults(template.text, changes)
    for option in defaults.options:
        changes[option.name] = option.value or ""
    return plan_template(template, _settings(options.settings), changes, work_dir, cluster, defaults.notes)


def _template(options: argparse.Namespace, config: Config) -> Template | None:
    """The template that is meant, or `None` where it is a script."""
    path = Path(options.what)
    if "/" in options.what or (path.suffix in catalogue.SUFFIXES and is_file(path)):
        # A file that has parameters of a template can be filled in like one.
        return catalogue.read(path) if options.settings else None
    templates = load_templates(config)
    if is_file(path) and all(template.name != options.what for template in templates):
        if options.settings:
            raise UsageError(f"{options.what} is a script: it has no parameters to set")
        return None
    try:
        return catalogue.find(templates, options.what)
    except UsageError as error:
        if any(template.name == options.what for template in templates):
            raise  # it is broken
        message = f"there is neither a template nor a file {options.what!r}"
        raise UsageError(message, error.hint or "`tfjobtui templates` lists the templates.") from error


def _settings(words: Sequence[str]) -> dict[str, str]:
    values = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise UsageError(f"--set {word}: a value is missing", "It is --set NAME=VALUE.")
        values[name] = value
    return values


def _as_directives(given: Sequence[str]) -> dict[str, str | None]:
    """Options for a template go into the script, so that it tells all of what runs."""
    changes: dict[str, str | None] = {}
    for option in given:
        name, _, value = option.removeprefix("--").partition("=")
        changes[name] = value
    if "no-requeue" in changes:
        changes["requeue"] = None
    return changes


def _one_cluster(options: argparse.Namespace, config: Config) -> str | None:
    """The cluster to submit to; of several the first, which is the one that is named first."""
    names = options.clusters.split(",") if options.clusters else list(config.slurm.clusters)
    return names[0] if names else None


async def _make(
    scheduler: Scheduler, plan: SubmitPlan, template: Template | None, *, sets_up: bool
) -> list[SubmitOutcome]:
    """Submit it, where TensorFlow is missing and wanted after the job that installs it."""
    outcomes: list[SubmitOutcome] = []

    async def send(some: SubmitPlan) -> SubmitOutcome:
        outcome = await submit(scheduler, RunRecords.default(), CommandLog.default(), some)
        outcomes.append(outcome)
        return outcome

    try:
        if template is not None and scheduler.capabilities.runs_here:
            plan = await _with_trainer(scheduler, plan, template, send, sets_up=sets_up)
        await send(plan)
    finally:
        await scheduler.close()
    return outcomes


async def _with_trainer(
    scheduler: Scheduler,
    plan: SubmitPlan,
    template: Template,
    send: Callable[[SubmitPlan], Awaitable[SubmitOutcome]],
    *,
    sets_up: bool,
) -> SubmitPlan:
    """The plan as it can run here: with the environment that was installed before, or after installing it."""
    if known := trainer_setup.known_values(template):
        if plan.values.get("VENV") or plan.values.get("MODULES"):
            return plan
        return trainer_setup.with_environment(plan, Path(known["VENV"]))
    if not await trainer_setup.is_missing(template, plan.values):
        return plan
    found = trainer_setup.set_up(catalogue.load([catalogue.shipped_folder()]), plan.work_dir)
    size = f"about {trainer_setup.SIZE_GB} GB"
    question = f"TensorFlow was not found for the trainer. Install it first, as a job ({size})?"
    if found is None or not (sets_up or (sys.stdin.isatty() and confirm(question, yes=False))):
        complain("TensorFlow was not found for the trainer", "`--set-up` installs it first, as a job.")
        return plan
    job_id = trainer_setup.running_set_up((await scheduler.jobs()).jobs)
    return trainer_setup.after(plan, job_id or (await send(found.plan)).submitted.id, found.folder)


def _show(plan: SubmitPlan) -> None:
    """The script on standard output, what is done with it beside it."""
    print(f"tfjobtui: in {printable(plan.work_dir)}: {printable(in_shell(plan.command))}", file=sys.stderr)
    for note in plan.notes:
        complain(note)
    sys.stdout.flush()
    sys.stdout.buffer.write(plan.script.encode("utf-8", "surrogateescape"))


def _tell(outcome: SubmitOutcome) -> None:
    for line in outcome.submitted.messages.splitlines():
        print(printable(line), file=sys.stderr)
    for note in outcome.notes:
        complain(note)
    print(outcome.summary)


# --- resubmit ---------------------------------------------------------------------------------------------


def _resubmit(options: argparse.Namespace, config: Config) -> int:
    scheduler = open_scheduler(config, options)
    outcome = asyncio.run(_again(scheduler, options))
    if outcome is not None:
        _tell(outcome)
        return 0
    return 0 if options.dry_run else 1


async def _again(scheduler: Scheduler, options: argparse.Namespace) -> SubmitOutcome | None:
    """Submit again what was shown; `None` where it was only looked at, or not wanted."""
    try:
        records = RunRecords.default()
        target, job = await find_job(scheduler, options.job)
        plan = await resubmit.plan_target(scheduler, records, target, job)
        if options.dry_run:
            _show(plan.submission)
        for sentence in plan.missing:
            complain(sentence)
        if options.dry_run:
            return None
        if not confirm(_question(plan), yes=options.yes):
            complain("nothing was done")
            return None
        return await resubmit.submit(scheduler, records, CommandLog.default(), plan)
    finally:
        await scheduler.close()


def _question(plan: ResubmitPlan) -> str:
    command = in_shell(plan.submission.command)
    return f"Submit {command} in {plan.work_dir} (the script is from {plan.source})?"


# --- templates --------------------------------------------------------------------------------------------


def _list(config: Config, *, as_json: bool) -> int:
    templates = load_templates(config)
    if as_json:
        print_json({"templates": [_as_json(template) for template in templates]})
        return 0
    rows = [
        (printable(item.name), printable(item.title), printable(str(item.path)))
        for item in templates
        if not item.error
    ]
    print_table(("NAME", "TITLE", "FILE"), rows)
    for item in templates:
        if item.error:
            complain(f"{item.path} is broken: {item.error}")
    return 0


def _as_json(template: Template) -> dict[str, object]:
    return {
        "name": template.name,
        "title": template.title,
        "about": template.about,
        "path": str(template.path),
        "error": template.error,
        "parameters": [
            {
                "name": item.name,
                "type": item.kind,
                "default": item.default,
                "help": item.help,
                "minimum": item.minimum,
                "maximum": item.maximum,
                "above": item.above,
                "choices": list(item.choices),
            }
            for item in template.parameters
            if item.is_shown
        ],
        "options": [{"name": item.name, "value": item.value} for item in template.directives],
    }
