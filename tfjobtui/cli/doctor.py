"""`doctor`: what was found on this machine, what is missing, and what to do."""

from __future__ import annotations

import argparse
import asyncio
import textwrap
from collections.abc import Iterable, Iterator

from tfjobtui.cli import checks
from tfjobtui.cli.checks import Finding, Mark
from tfjobtui.cli.choice import choose
from tfjobtui.cli.output import print_json, uses_colour, width_of
from tfjobtui.cli.setup import load_config, local_settings, slurm_settings
from tfjobtui.config import Config
from tfjobtui.errors import ConfigError, TfjobtuiError, UsageError
from tfjobtui.model.text import printable
from tfjobtui.schedulers.slurm.client import SlurmScheduler
from tfjobtui.schedulers.slurm.settings import SlurmSettings

_SIGNS = {Mark.GOOD: "✓", Mark.NOTE: "·", Mark.POOR: "!", Mark.BAD: "✗"}
_COLOURS = {Mark.GOOD: "32", Mark.NOTE: "36", Mark.POOR: "33", Mark.BAD: "31"}


def run(options: argparse.Namespace) -> int:
    """Look at everything; 1 where something is missing that the program cannot do without."""
    findings = list(_findings(options))
    if options.json:
        print_json({"findings": [_as_json(finding) for finding in findings], "ok": _is_well(findings)})
    else:
        _print(findings)
    return 0 if _is_well(findings) else 1


def _findings(options: argparse.Namespace) -> Iterator[Finding]:
    yield from checks.program()
    config, error = _config(options)
    yield from checks.configuration(config, error, options.config)
    config = config or Config()
    yield from _scheduler(config, options)
    yield from checks.templates(config)
    yield from checks.tensorflow()
    yield from checks.gpus()
    yield from checks.terminal()
    yield from checks.path()


def _scheduler(config: Config, options: argparse.Namespace) -> Iterator[Finding]:
    """Slurm or this machine's own, whichever is used."""
    settings = slurm_settings(config, options.clusters)
    try:
        choice = choose(config, settings, options.scheduler)
    except UsageError:
        choice = None  # what is missing is found below
    if choice is not None and choice.is_local:
        from tfjobtui.cli.local_checks import local_scheduler

        yield from local_scheduler(local_settings(config), choice.why, choice.warning)
        return
    if choice is not None:
        yield Finding("scheduler", Mark.GOOD, "scheduler", f"Slurm: {choice.why}")
    found = list(checks.commands(settings))
    yield from found
    yield from checks.slurm_conf()
    if not any(finding.mark is Mark.BAD for finding in found):
        yield from asyncio.run(_ask_slurm(settings))


def _config(options: argparse.Namespace) -> tuple[Config | None, TfjobtuiError | None]:
    try:
        return load_config(options.config, quiet=True), None
    except ConfigError as error:
        return None, error


async def _ask_slurm(settings: SlurmSettings) -> list[Finding]:
    scheduler = SlurmScheduler(settings)
    try:
        return await checks.controller(scheduler)
    finally:
        await scheduler.close()


def _is_well(findings: Iterable[Finding]) -> bool:
    return all(finding.mark is not Mark.BAD for finding in findings)


def _as_json(finding: Finding) -> dict[str, str]:
    return {
        "id": finding.id,
        "mark": finding.mark.value,
        "title": finding.title,
        "text": finding.text,
        "advice": finding.advice,
    }


def _print(findings: list[Finding]) -> None:
    widest = max(len(finding.title) for finding in findings)
    for finding in findings:
        print(f"{_sign(finding.mark)} {finding.title:{widest}}  {printable(finding.text)}".rstrip())
        if finding.advice:
            print(_wrapped(printable(finding.advice), widest + 4))
    missing = [finding.title for finding in findings if finding.mark is Mark.BAD]
    print()
    print(f"Missing: {', '.join(missing)}." if missing else "All that is needed is there.")


def _wrapped(advice: str, indent: int) -> str:
    """An advice under its finding; on a terminal in as many lines as it takes."""
    first, rest = f"{' ' * indent}→ ", " " * (indent + 2)
    width = width_of()
    if width is None or width < indent + 30:
        return first + advice
    return textwrap.fill(
        advice,
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _sign(mark: Mark) -> str:
    if not uses_colour():
        return _SIGNS[mark]
    return f"\x1b[{_COLOURS[mark]}m{_SIGNS[mark]}\x1b[0m"
