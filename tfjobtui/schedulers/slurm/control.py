"""Cancel, hold, release, requeue and change: one command for many jobs, one result for each."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tfjobtui.errors import CommandError
from tfjobtui.process import Completed
from tfjobtui.schedulers.scheduler import ActionResult, CommandRecord, Target
from tfjobtui.schedulers.slurm import argv
from tfjobtui.schedulers.slurm.failures import known_failure, last_words
from tfjobtui.schedulers.slurm.refusals import (
    ALREADY_ENDED,
    NONE_LEFT,
    Complaint,
    complaints,
    explained,
    is_about,
)
from tfjobtui.schedulers.slurm.runner import Runner

MOST_IDS = 500
"""In one command: the line stays short enough for every system, and slurmctld gets a breath between."""


@dataclass(frozen=True, slots=True)
class _Call:
    """One command, and the places of the targets that it is for."""

    command: str
    arguments: tuple[str, ...]
    group: Sequence[int]


def calls(action: str, targets: Sequence[Target], signal: str | None = None) -> Iterator[_Call]:
    """What an action runs: a call for each cluster, and for those of which only what waits is meant."""
    for group in _groups(targets):
        first = targets[group[0]]
        ids = [argv.action_id(targets[at]) for at in group]
        if action == "cancel":
            arguments = argv.cancel(
                ids, cluster=first.cluster, signal=signal, pending_only=first.pending_only
            )
            yield _Call("scancel", arguments, group)
        else:
            yield _Call("scontrol", argv.control(action, ids, cluster=first.cluster), group)


async def act(
    runner: Runner, action: str, targets: Sequence[Target], signal: str | None = None
) -> tuple[ActionResult, ...]:
    """`scancel`, or `scontrol hold`, `release` or `requeue`."""
    results: dict[int, ActionResult] = {}
    for call in calls(action, targets, signal):
        results |= await _act(runner, call.command, call.arguments, targets, call.group)
    return tuple(results[at] for at in range(len(targets)))


async def update(runner: Runner, target: Target, changes: Mapping[str, str]) -> ActionResult:
    """`scontrol update`."""
    results = await _act(runner, "scontrol", argv.update(target, changes), (target,), [0])
    return results[0]


def _groups(targets: Sequence[Target]) -> list[list[int]]:
    """Places of the targets that one command can take, in their order."""
    groups: dict[tuple[str | None, bool], list[int]] = {}
    for at, target in enumerate(targets):
        groups.setdefault((target.cluster, target.pending_only), []).append(at)
    return [
        places[start : start + MOST_IDS]
        for places in groups.values()
        for start in range(0, len(places), MOST_IDS)
    ]


async def _act(
    runner: Runner, command: str, arguments: Sequence[str], targets: Sequence[Target], group: Sequence[int]
) -> dict[int, ActionResult]:
    started_at_s, started = time.time(), time.monotonic()
    try:
        done = await runner.act(command, arguments)
    except CommandError as error:
        record = CommandRecord(error.argv, started_at_s, time.monotonic() - started, None, error.message)
        words = f"{error.message}. {error.hint or _UNKNOWN_END}"
        return {at: ActionResult(targets[at], False, words, record) for at in group}
    record = CommandRecord(done.argv, started_at_s, done.duration_s, done.returncode, _said(done))
    said = complaints(record.output)
    return {at: _result(done, record, said, targets[at]) for at in group}


_UNKNOWN_END = "It is not known whether it was done: the next refresh of the queue shows it."


def _said(done: Completed) -> str:
    """What the command said, without what `scancel -v` tells of plugins."""
    text = f"{done.stdout_text.strip()}\n{done.stderr_text}".strip()
    return "\n".join(line for line in text.splitlines() if not line.startswith("scancel: select/"))


def _result(
    done: Completed, record: CommandRecord, said: Sequence[Complaint], target: Target
) -> ActionResult:
    about_it = [complaint for complaint in said if is_about(complaint, target)]
    mine = [complaint.words for complaint in about_it if not complaint.is_success]
    if mine and len(mine) < len(about_it):  # an array, of which some tasks were refused
        refused = ", ".join(complaint.about for complaint in about_it if not complaint.is_success)
        return ActionResult(target, True, f"Not for {refused}: {_told(mine[0])}", record)
    if mine:
        is_cancel = record.argv[0].endswith("scancel")
        if is_cancel and all(ALREADY_ENDED.search(words) for words in mine):
            return ActionResult(target, True, "It had already ended.", record)
        if target.pending_only and all(NONE_LEFT.search(words) for words in mine):
            return ActionResult(target, True, "None of it was waiting any more.", record)
        return ActionResult(target, False, _told(mine[0]), record)
    if done.returncode == 0 or said:  # what was said is about others
        return ActionResult(target, True, "", record)
    return ActionResult(
        target, False, _told(last_words(record.output) or f"exit code {done.returncode}"), record
    )


def _told(words: str) -> str:
    """Slurm's own words, and what they mean."""
    failure = known_failure(words)
    told, hint = explained(words)
    if not told and failure is not None:
        told, hint = f"{failure.message[0].upper()}{failure.message[1:]}.", ""
    return " ".join(
        part for part in (f"{words}." if told and words[-1:] != "." else words, told, hint) if part
    )
