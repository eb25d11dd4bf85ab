"""`cancel`, `hold`, `release` and `requeue`."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence

from tfjobtui.actions.command_log import CommandLog
from tfjobtui.actions.control import Control, Outcome, check_signal
from tfjobtui.cli.context import matching, open_scheduler, parse_id, target_of
from tfjobtui.cli.output import complain, confirm
from tfjobtui.cli.setup import load_config
from tfjobtui.errors import QueryError
from tfjobtui.model.job import Job
from tfjobtui.model.text import printable
from tfjobtui.schedulers.scheduler import Scheduler, Target

_ASK = {"cancel": "Cancel", "requeue": "End and requeue"}


def run(options: argparse.Namespace) -> int:
    """Do it to the jobs that were named; 1 where one was refused."""
    ids = [parse_id(text) for text in options.jobs]
    if options.command == "cancel" and options.signal:
        check_signal(options.signal)
    config = load_config(options.config)
    scheduler = open_scheduler(config, options)

    async def act() -> Outcome | None:
        try:
            rows = await _own_rows(scheduler)
            pending = options.command == "cancel" and options.pending
            targets = [target_of(wanted, matching(rows, wanted), pending_only=pending) for wanted in ids]
            if options.command in _ASK and not _is_meant(scheduler, options, targets):
                return None
            return await _act(Control(scheduler, CommandLog.default()), options, targets)
        finally:
            await scheduler.close()

    outcome = asyncio.run(act())
    if outcome is None:
        complain("nothing was done")
        return 1
    if outcome.ok:
        print(outcome.summary)
        return 0
    complain(outcome.summary)
    return 1


def _is_meant(scheduler: Scheduler, options: argparse.Namespace, targets: Sequence[Target]) -> bool:
    """Ask, with the commands that a yes would run."""
    signal = check_signal(options.signal) if options.command == "cancel" and options.signal else None
    commands = scheduler.action_commands(options.command, targets, signal)
    return confirm(_question(options, targets), yes=options.yes, commands=commands)


async def _own_rows(scheduler: Scheduler) -> Sequence[Job]:
    """The user's jobs, to tell their names. An action does not depend on it: the ids are enough."""
    try:
        return (await scheduler.jobs()).jobs
    except QueryError as error:
        complain(f"the names of the jobs are not known: {error.message}")
        return ()


async def _act(control: Control, options: argparse.Namespace, targets: Sequence[Target]) -> Outcome:
    if options.command == "cancel":
        return await control.cancel(targets, options.signal)
    if options.command == "hold":
        return await control.hold(targets)
    if options.command == "release":
        return await control.release(targets)
    return await control.requeue(targets)


def _question(options: argparse.Namespace, targets: Sequence[Target]) -> str:
    names = ", ".join(f"{target.id} {printable(target.name)}".strip() for target in targets[:5])
    more = f" and {len(targets) - 5} more" if len(targets) > 5 else ""
    verb = _ASK[options.command]
    if options.command == "cancel" and options.signal:
        verb = f"Send {check_signal(options.signal)} to"
    what = "what waits of " if options.command == "cancel" and options.pending else ""
    return f"{verb} {what}{names}{more}?"
