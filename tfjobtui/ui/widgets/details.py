"""Everything about one job, laid out: what it is, why it waits or how it ended, what it has, its times and files."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.style import Style
from rich.text import Text

from tfjobtui.diagnosis import ending, waiting
from tfjobtui.model.job import Job
from tfjobtui.model.state import JobState
from tfjobtui.model.text import printable
from tfjobtui.model.units import clock, duration, size
from tfjobtui.monitor.view import Row
from tfjobtui.schedulers.scheduler import JobDetails, PriorityFactor
from tfjobtui.ui.looks import sign_of, style_of
from tfjobtui.ui.widgets.lines_view import LinesView

LABEL = Style(dim=True)
HEAD = Style(bold=True, underline=True)
ADVICE = Style(color="yellow")
_SHOWN = frozenset(
    {
        "JobId",
        "JobName",
        "UserId",
        "JobState",
        "Reason",
        "Dependency",
        "TimeLimit",
        "SubmitTime",
        "EligibleTime",
        "StartTime",
        "EndTime",
        "Partition",
        "Account",
        "QOS",
        "NodeList",
        "BatchHost",
        "NumNodes",
        "NumCPUs",
        "Command",
        "WorkDir",
        "StdErr",
        "StdOut",
        "Restarts",
        "Priority",
        "RunTime",
    }
)
"""Fields of scontrol that stand in the layout already."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What is known of the job in view. `note` says what is on its way or could not be had."""

    row: Row | None = None
    details: JobDetails | None = None
    priority: tuple[PriorityFactor, ...] | None = None
    note: str = ""


Pair = tuple[str, str]


class DetailsView(LinesView):
    """The details of the job under the cursor."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.shown = Shown()

    def show_job(self, shown: Shown) -> None:
        """Show what is known now; at the top again if it is another job."""
        before, self.shown = self.shown.row, shown
        if before is None or shown.row is None or before.key != shown.row.key:
            self.scroll_to(y=0, animate=False)
        self.show(lambda width: list(_lines(shown, width)))


def _lines(shown: Shown, width: int) -> Iterator[Text]:
    if shown.row is None:
        yield Text("No job is selected.", style=LABEL)
        return
    job, details, now = shown.row.job, shown.details, time.time()
    yield _headline(shown.row)
    yield from _why(job, details, width)
    if shown.row.members:
        yield from _array_lines(shown.row, width)
    blocks = [_resources(job, details), _times(job, now), _identity(job, details)]
    yield from _columns(blocks, width)
    yield from _wide(_files(job, details), width)
    if shown.priority is not None:
        yield from _priority_lines(shown.priority)
    if details is not None:
        yield Text("")
        yield Text("Everything the scheduler says", style=HEAD)
        yield from _wide([(k, v) for k, v in details.readable if k not in _SHOWN], width)
    if shown.note:
        yield Text(shown.note, style=LABEL)


def _headline(row: Row) -> Text:
    job = row.job
    text = Text()
    state = printable(job.state_text) if job.state is JobState.UNKNOWN else job.state.long
    text.append(f"{sign_of(job.state)} {state}", style=style_of(job.state))
    text.append(f"  {job.id}  ", style="bold")
    text.append(printable(job.name))
    if job.nodes:
        text.append(f"  on {printable(job.nodes)}", style=LABEL)
    return text


def _why(job: Job, details: JobDetails | None, width: int) -> Iterator[Text]:
    """Why it waits, or how it ended, in words, and what can be done."""
    if job.state.is_waiting:
        reason = waiting.explain(job, details)
        what, advice = f"{reason.word}: {reason.meaning}" if reason.word else reason.meaning, reason.advice
    elif job.state.is_terminal:
        how = ending.explain(job)
        what, advice = f"{how.word}: {how.meaning}" if how.word else how.meaning, how.advice
    else:
        return
    yield from _wrapped(printable(what), width, Style())
    if advice:
        yield from _wrapped(f"→ {printable(advice)}", width, ADVICE)


def _wrapped(text: str, width: int, style: Style) -> Iterator[Text]:
    import textwrap

    for line in textwrap.wrap(text, width, break_long_words=True, subsequent_indent="  "):
        yield Text(line, style=style)


def _array_lines(row: Row, width: int) -> Iterator[Text]:
    counts = "  ".join(f"{number} {state.long.lower()}" for state, number in row.counts())
    throttle = next(
        (job.id.tasks.throttle for job in row.members if job.id.tasks and job.id.tasks.throttle), None
    )
    limit = f"  (at most {throttle} at a time)" if throttle else ""
    yield from _wrapped(f"Array of tasks: {counts}{limit}; f unfolds it", width, Style())


def _resources(job: Job, details: JobDetails | None) -> tuple[str, list[Pair]]:
    get = details.get if details else lambda name: ""
    pairs = [
        ("GPUs", str(job.gpus) if job.gpus.count else "none"),
        ("CPUs", str(job.cpus or "")),
        ("Memory", size(job.memory_bytes)),
        ("Nodes", f"{job.node_count or ''}  {job.nodes}".strip()),
        ("Planned on", job.sched_nodes),
        ("Per node", get("TresPerNode")),
        ("Per task", get("TresPerTask")),
        ("Constraint", job.features),
        ("Reservation", job.reservation),
    ]
    if details:
        pairs += [("Devices", line) for line in details.gpu_indexes]
    return "Resources", pairs


def _times(job: Job, now: float) -> tuple[str, list[Pair]]:
    def moment(at: int | None) -> str:
        if at is None:
            return ""
        apart = at - now
        ago = f"{duration(-apart)} ago" if apart <= 0 else f"in {duration(apart)}"
        return f"{clock(at, now)} ({ago})"

    limit = "no limit" if job.time_limit_s and math.isinf(job.time_limit_s) else duration(job.time_limit_s)
    pairs = [("Submitted", moment(job.submit_time_s))]
    if job.state.is_waiting:
        pairs.append(("Starts about", moment(job.start_time_s) or "no estimate yet"))
        if job.eligible_time_s and job.eligible_time_s > now:
            pairs.append(("Not before", moment(job.eligible_time_s)))
    else:
        pairs.append(("Started", moment(job.start_time_s)))
    if job.state.is_terminal:
        pairs.append(("Ended", moment(job.end_time_s)))
    pairs += [
        ("Time used", duration(job.time_used_s(now))),
        ("Time limit", limit),
        ("Time left", duration(job.time_left_s(now))),
        ("Requeued", f"{job.restarts} times" if job.restarts else ""),
    ]
    return "Times", pairs


def _identity(job: Job, details: JobDetails | None) -> tuple[str, list[Pair]]:
    get = details.get if details else lambda name: ""
    return "Job", [
        ("Partition", job.partition),
        ("Account", job.account),
        ("QOS", job.qos),
        ("Owner", f"{job.user} ({job.user_id})" if job.user_id is not None else job.user),
        ("Cluster", job.cluster or ""),
        ("Own id", str(job.raw_id) if job.id.task is not None else ""),
        ("Priority", str(job.priority) if job.priority is not None else ""),
        ("Requeue", {"1": "allowed", "0": "not allowed"}.get(get("Requeue"), "")),
        ("Dependency", waiting.dependency_in_words(job.dependency) if job.dependency else ""),
        ("Comment", get("Comment")),
        ("Exit code", str(job.exit_code) if job.exit_code and job.state.is_terminal else ""),
    ]


def _files(job: Job, details: JobDetails | None) -> list[Pair]:
    get = details.get if details else lambda name: ""
    return [
        ("Folder", job.work_dir),
        ("Script", get("Command") or job.command),
        ("Output", get("StdOut") or job.stdout_pattern),
        ("Errors", get("StdErr") or job.stderr_pattern),
    ]


def _columns(blocks: Sequence[tuple[str, list[Pair]]], width: int) -> Iterator[Text]:
    """The blocks beside each other where there is room, else below each other."""
    count = max(1, min(len(blocks), width // 38))
    column_width = width // count
    for start in range(0, len(blocks), count):
        group = [
            (title, [(label, printable(value)) for label, value in pairs if value])
            for title, pairs in blocks[start : start + count]
        ]
        yield Text("")
        yield _beside([Text(title, style=HEAD) for title, _ in group], column_width)
        for line in range(max(len(pairs) for _, pairs in group)):
            cells = [_pair(pairs[line]) if line < len(pairs) else Text("") for _, pairs in group]
            yield _beside(cells, column_width)


def _beside(cells: Sequence[Text], width: int) -> Text:
    line = Text()
    for cell in cells:
        cell.truncate(width - 1, overflow="ellipsis", pad=True)
        line.append_text(cell).append(" ")
    return line


def _pair(pair: Pair) -> Text:
    text = Text(f"{pair[0]:<13}", style=LABEL)
    text.append(pair[1], style=Style(dim=False))
    return text


def _wide(pairs: Sequence[Pair], width: int) -> Iterator[Text]:
    """Values that may be long: wrapped, never cut."""
    label_width = max((len(label) for label, value in pairs if value), default=0) + 2
    room = max(10, width - label_width)
    for label, value in pairs:
        shown = printable(value)
        for at in range(0, len(shown), room):
            text = Text(f"{label if at == 0 else '':<{label_width}}", style=LABEL)
            text.append(shown[at : at + room], style=Style(dim=False))
            yield text


def _priority_lines(factors: Sequence[PriorityFactor]) -> Iterator[Text]:
    yield Text("")
    yield Text("Priority, by its factors", style=HEAD)
    if not factors:
        yield Text("The scheduler tells no factors of this job.", style=LABEL)
        return
    most = max(abs(factor.value) for factor in factors) or 1
    for factor in factors:
        bar = "█" * round(20 * abs(factor.value) / most)
        yield Text(f"{factor.name:<14}{factor.value:>12,.0f} {bar}")
