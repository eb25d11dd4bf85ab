"""What `sbatch --parsable` prints: the id, perhaps the cluster, and whatever the site adds."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tfjobtui.model.ids import JobId

_PARSABLE = re.compile(r"(\d+)(?:;(\S+))?", re.ASCII)
_SENTENCE = re.compile(r"Submitted batch job (\d+)(?: on cluster (\S+))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Taken:
    """The id of a job that was taken, and the other lines on standard output (banners of the site)."""

    id: JobId
    cluster: str | None
    remarks: str


def parse_answer(stdout: str) -> Taken | None:
    """Find the id: the last line that is one, else in Slurm's sentence; `None` where there is none."""
    lines = stdout.splitlines()
    for form in (_PARSABLE.fullmatch, _SENTENCE.match):
        for at in range(len(lines) - 1, -1, -1):
            match = form(lines[at].strip())
            if match:
                others = lines[:at] + lines[at + 1 :]
                return Taken(JobId(int(match[1])), match[2], "\n".join(others).strip())
    return None
