"""`jobs` and `show`: the queue as a table, and one job in full."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from tfjobtui.cli import json_output
from tfjobtui.cli.context import find_job, open_scheduler
from tfjobtui.cli.output import complain, print_json, print_pairs, print_row, width_of
from tfjobtui.cli.setup import load_config
from tfjobtui.config import Config, check_columns
from tfjobtui.diagnosis import ending, waiting
from tfjobtui.errors import QueryError, TfjobtuiError, UsageError
from tfjobtui.model.job import Job
from tfjobtui.model.text import cells, fit, printable
from tfjobtui.model.units import clock, duration, size
from tfjobtui.monitor.columns import COLUMNS, DEFAULT_COLUMNS, default_key, lay_out
from tfjobtui.monitor.filter import parse_filter
from tfjobtui.schedulers.scheduler import EndedJob, JobDetails, QueueAnswer, Scheduler


def run(options: argparse.Namespace) -> int:
    """List the jobs, or show one."""
    if options.command == "jobs":
        return _list(options)
    return _show(options)


# --- jobs -------------------------------------------------------------------------------------------------


def _list(options: argparse.Namespace) -> int:
    chosen = parse_filter(" ".join(_quoted(word) for word in options.filter))
    config = load_config(options.config)
    names = _columns(options, config)
    scheduler = open_scheduler(config, options)
    answer = asyncio.run(_query(scheduler, everyone=options.all))
    jobs = [job for job in answer.jobs if chosen.matches(job)]
    _sort(jobs, config.table.sort)
    if options.json:
        print_json(_as_json(answer, jobs))
    else:
        _print_jobs(jobs, names)
    for problem in answer.problems:
        complain(problem)
    return 0


async def _query(scheduler: Scheduler, *, everyone: bool) -> QueueAnswer:
    try:
        return await scheduler.jobs(everyone=everyone)
    finally:
        await scheduler.close()


def _quoted(word: str) -> str:
    """A word of the shell stays one word of the filter."""
    if not any(char.isspace() for char in word) or '"' in word:
        return word
    field, colon, value = word.partition(":")
    return f'{field}:"{value}"' if colon else f'"{word}"'


def _columns(options: argparse.Namespace, config: Config) -> tuple[str, ...]:
    check_columns(config, COLUMNS)
    if options.columns:
        names = tuple(name.strip() for name in options.columns.split(","))
        for name in names:
            if name not in COLUMNS:
                raise UsageError(f"there is no column {name!r}", f"There are: {', '.join(COLUMNS)}.")
        return names
    names = config.table.columns or DEFAULT_COLUMNS
    return ("user", *names) if options.all and "user" not in names else names


def _sort(jobs: list[Job], sort: str) -> None:
    column = COLUMNS.get(sort.removeprefix("-"))
    if column is None:
        jobs.sort(key=default_key)
    else:
        jobs.sort(key=column.sort_key, reverse=sort.startswith("-"))


def _as_json(answer: QueueAnswer, jobs: Sequence[Job]) -> dict[str, object]:
    return {
        "taken_at_s": round(answer.taken_at_s, 3),
        "query_duration_s": round(answer.duration_s, 3),
        "jobs": [json_output.job_as_json(job, answer.taken_at_s) for job in jobs],
        "problems": list(answer.problems),
    }


def _print_jobs(jobs: Sequence[Job], names: tuple[str, ...]) -> None:
    """On a terminal as wide as that is; into a pipe whole."""
    now = time.time()
    texts = [{name: COLUMNS[name].text(job, now) for name in names} for job in jobs]
    longest = {name: max((cells(row[name]) for row in texts), default=0) for name in names}
    width = width_of()
    if width is None:
        placed = [(COLUMNS[name], max(longest[name], len(COLUMNS[name].title))) for name in names]
    else:
        placed = [(item.column, item.width) for item in lay_out(names, width, longest)]
    gap = " " if width is not None else "  "
    titles = [fit(column.title, cell_count, right=column.right) for column, cell_count in placed]
    print(gap.join(titles).rstrip())
    for row in texts:
        print(gap.join(fit(row[column.name], room, right=column.right) for column, room in placed).rstrip())


# --- show -------------------------------------------------------------------------------------------------


def _show(options: argparse.Namespace) -> int:
    config = load_config(options.config)
    scheduler = open_scheduler(config, options)
    found = asyncio.run(_look_up(scheduler, options.job))
    if options.json:
        _print_found_json(found)
    else:
        _print_found(found)
    return 0


@dataclass(slots=True)
class _Found:
    """All that could be had about one job."""

    job: Job | None = None
    details: JobDetails | None = None
    ended: EndedJob | None = None
    problems: list[str] = field(default_factory=list)


async def _look_up(scheduler: Scheduler, text: str) -> _Found:
    """Ask the queue, the controller, and for what has ended accounting.

    Raises:
        TfjobtuiError: nobody knows the job.
    """
    found = _Found()
    try:
        target, found.job = await find_job(scheduler, text)
        try:
            found.details = await scheduler.details(target)
        except QueryError as error:
            found.problems.append(error.message)
        if (found.job is None or found.job.state.is_terminal) and scheduler.capabilities.accounting:
            try:
                found.ended = next(iter(await scheduler.ended([target])), None)
            except QueryError as error:
                found.problems.append(error.message)
        if found.job is None and found.details is None and found.ended is None:
            why = (
                " ".join(found.problems) or "Neither the queue nor accounting has it (or you may not see it)."
            )
            raise TfjobtuiError(f"there is no job {text}", why)
        return found
    finally:
        await scheduler.close()


def _print_found_json(found: _Found) -> None:
    now = time.time()
    print_json(
        {
            "job": None if found.job is None else json_output.job_as_json(found.job, now),
            "ended": None if found.ended is None else json_output.ended_as_json(found.ended),
            "details": None if found.details is None else dict(found.details.fields),
            "gpu_indexes": [] if found.details is None else list(found.details.gpu_indexes),
            "problems": found.problems,
        }
    )


def _print_found(found: _Found) -> None:
    job, ended = found.job, found.ended
    if job is not None:
        _print_job(job, found)
    elif ended is not None:
        _print_ended(ended)
    if found.details is not None:
        if found.details.gpu_indexes:
            print_pairs([("GPUs", "; ".join(found.details.gpu_indexes))])
        print("\nAll fields:")
        print_pairs(found.details.readable, indent="  ")
    for problem in found.problems:
        complain(problem)


def _print_job(job: Job, found: _Found) -> None:
    now = time.time()
    print_row([f"Job {job.id}", printable(job.name)])
    pairs = [("state", job.state_text)]
    if job.state.is_waiting:
        why = waiting.explain(job, found.details)
        pairs += [("reason", why.word), ("", why.meaning), ("what to do", why.advice)]
    elif job.state.is_terminal:
        end = ending.explain(job, found.ended)
        pairs += [("how it ended", end.meaning), ("what to do", end.advice)]
    start = "expected start" if job.state.is_waiting else "started"
    pairs += [
        ("user", f"{job.user}  account {job.account}" if job.account else job.user),
        ("partition", " ".join(part for part in (job.partition, job.qos and f"QOS {job.qos}") if part)),
        ("resources", _resources(job)),
        ("nodes", job.nodes),
        ("dependency", job.dependency),
        ("submitted", clock(job.submit_time_s, now)),
        (start, clock(job.start_time_s, now)),
        ("ended", clock(job.end_time_s, now) if job.state.is_terminal else ""),
        ("time used", duration(job.time_used_s(now))),
        ("time limit", duration(job.time_limit_s)),
        ("time left", duration(job.time_left_s(now))),
        ("restarts", str(job.restarts or "")),
        ("folder", job.work_dir),
        ("command", job.command),
    ]
    print_pairs(pairs)


def _print_ended(ended: EndedJob) -> None:
    now = time.time()
    end = ending.explain_ended(ended)
    print_row([f"Job {ended.id}", printable(ended.name)])
    print_pairs(
        [
            ("state", ended.state_text),
            ("how it ended", end.meaning),
            ("what to do", end.advice),
            ("user", f"{ended.user}  account {ended.account}" if ended.account else ended.user),
            ("partition", ended.partition),
            ("nodes", ended.nodes),
            ("submitted", clock(ended.submit_time_s, now)),
            ("started", clock(ended.start_time_s, now)),
            ("ended", clock(ended.end_time_s, now)),
            ("time limit", duration(ended.time_limit_s)),
            ("folder", ended.work_dir),
            ("submitted by", ended.submit_line),
        ]
    )


def _resources(job: Job) -> str:
    parts = [
        _count(job.node_count, "node"),
        _count(job.cpus, "CPU"),
        f"{size(job.memory_bytes)} memory" if job.memory_bytes else "",
        f"GPUs: {printable(str(job.gpus))}" if job.gpus.count else "",
    ]
    return ", ".join(part for part in parts if part)


def _count(number: int | None, noun: str) -> str:
    if not number:
        return ""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
