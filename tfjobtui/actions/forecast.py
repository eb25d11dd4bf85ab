"""When and where a submission would start, and whether other GPUs would be had at once."""

from __future__ import annotations

import dataclasses
import re
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tfjobtui import directives
from tfjobtui.actions.submit import SubmitPlan
from tfjobtui.directives import Option
from tfjobtui.errors import ActionError, FormatError, QueryError, SubmissionError
from tfjobtui.model.node import Node
from tfjobtui.model.units import clock, duration
from tfjobtui.schedulers.scheduler import Forecast, Scheduler, SubmitRequest

SOON_S = 60.0
"""A start within that is "now": schedulers look at their queue every so often."""
_MOST_OTHERS = 2
"""Each question uses up a job id and costs a pass of the scheduler."""
_GPU_OPTIONS = ("gpus-per-node", "gpus", "gres")
_GPUS = re.compile(r"(?P<head>(?:gpu:)?)(?:(?P<kind>[A-Za-z][\w.+-]*):)?(?P<count>\d+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Outlook:
    """What the scheduler expects, and a change with which it would start now: what to set, in a sentence."""

    forecast: Forecast
    instead: str = ""

    def sentence(self, now_s: float) -> str:
        """`Would start in 2 h (16:40) on gpu01, partition gpu. 2 v100 GPUs would start now: …`."""
        answer = self.forecast
        wait_s = answer.start_s - now_s
        when = "now" if wait_s < SOON_S else f"in {duration(wait_s)} ({clock(answer.start_s, now_s)})"
        where = f" on {answer.nodes}" + (f", partition {answer.partition}" if answer.partition else "")
        parts = [f"Would start {when}{where}."]
        if answer.preempts:
            parts.append(f"It would put aside {', '.join(answer.preempts)}.")
        parts += [answer.messages] if answer.messages else []
        parts += [self.instead] if self.instead else []
        return " ".join(parts)


async def outlook(scheduler: Scheduler, plan: SubmitPlan) -> Outlook:
    """Ask when it would start; where that is later, whether GPUs of another type would be had now.

    Raises:
        SubmissionError: it would be refused; the message says why.
        ActionError: this scheduler cannot tell.
    """
    capability = scheduler.capabilities.forecast
    if not capability:
        raise ActionError(capability.reason)
    answer = await _ask(scheduler, plan)
    if answer.start_s - time.time() < SOON_S:
        return Outlook(answer)
    return Outlook(answer, await _instead(scheduler, plan))


async def _ask(scheduler: Scheduler, plan: SubmitPlan) -> Forecast:
    with tempfile.TemporaryDirectory(prefix="tfjobtui-") as folder:
        path = Path(folder, Path(plan.file_name).name or "job.sbatch")
        path.write_text(plan.script, encoding="utf-8", errors="surrogateescape")
        return await scheduler.forecast(
            SubmitRequest(str(path), plan.options, plan.arguments, plan.work_dir, cluster=plan.cluster)
        )


async def _instead(scheduler: Scheduler, plan: SubmitPlan) -> str:
    """A sentence on GPUs that would be had now, or an empty text."""
    asked = _asked_gpus(plan)
    if asked is None:
        return ""
    try:
        nodes = await scheduler.nodes()
    except QueryError:
        return ""
    name, count, kind = asked
    for other in list(_other_kinds(nodes, count, kind))[:_MOST_OTHERS]:
        value = f"gpu:{other}:{count}" if name == "gres" else f"{other}:{count}"
        try:
            answer = await _ask(scheduler, _with_option(plan, name, value))
        except SubmissionError:
            continue
        if answer.start_s - time.time() < SOON_S:
            plural = "s" if count > 1 else ""
            return f"{count} {other} GPU{plural} would start now: {name} {value}."
    return ""


def _asked_gpus(plan: SubmitPlan) -> tuple[str, int, str | None] | None:
    """The option that asks for GPUs, how many, and of which type; `None` where it is not so plain."""
    try:
        options = {option.name: option.value or "" for option in plan.all_options()}
    except FormatError:
        return None
    for name in _GPU_OPTIONS:
        match = _GPUS.fullmatch(options.get(name, ""))
        if match is not None and (name == "gres") == bool(match["head"]):
            return name, int(match["count"]), match["kind"]
    return None


def _other_kinds(nodes: Iterable[Node], count: int, kind: str | None) -> Iterator[str]:
    """Types of which a node that takes jobs has so many free, the most plentiful first."""
    free: dict[str, int] = {}
    for node in nodes:
        for other, left in node.gpus_free_by_type if node.state.takes_jobs else ():
            if other is not None and other != kind and left >= count:
                free[other] = free.get(other, 0) + left
    yield from sorted(free, key=lambda name: (-free[name], name))


def _with_option(plan: SubmitPlan, name: str, value: str) -> SubmitPlan:
    """The same with another value, on the command line where it stands there, else in the script."""
    given = directives.split_options(plan.options)[0]
    if any(option.name == name for option in given):
        return dataclasses.replace(plan, options=_replaced(given, name, value))
    return dataclasses.replace(plan, script=directives.change(plan.script, {name: value}))


def _replaced(options: Sequence[Option], name: str, value: str) -> tuple[str, ...]:
    return tuple(
        Option(name, value).argument if option.name == name else option.argument for option in options
    )
