"""What `sbatch --test-only` says: when and where a job would start, or why it would be refused.

It says so on standard error, also where all is well, and uses up a job id each time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tfjobtui.schedulers.slurm.fields import parse_time

_STARTS = re.compile(
    r"sbatch: Job \d+ to start at (?P<when>\S+)(?: a)? using (?P<cpus>\d+) processors on nodes? (?P<nodes>\S+)"
    r"(?: in partition (?P<partition>\S+))?",
    re.ASCII,
)
_PREEMPTS = re.compile(r"Preempts: (?P<ids>[\d,]+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Answer:
    """`start_s` is a moment; `remarks` is everything else that was said."""

    start_s: int
    nodes: str
    partition: str
    cpus: int
    preempts: tuple[str, ...]
    remarks: str


def parse_answer(text: str) -> Answer | None:
    """Read it; `None` where there is no start in it."""
    match = _STARTS.search(text)
    when = parse_time(match["when"]) if match is not None else None
    if match is None or when is None:
        return None
    preempts = _PREEMPTS.search(text)
    rest = text.replace(match[0], "").replace(preempts[0] if preempts is not None else "", "")
    return Answer(
        when,
        match["nodes"],
        match["partition"] or "",
        int(match["cpus"]),
        tuple(preempts["ids"].split(",")) if preempts is not None else (),
        "\n".join(line.strip() for line in rest.splitlines() if line.strip()),
    )
