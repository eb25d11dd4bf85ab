"""What `sacct -n -P` prints: one row an allocation, nothing escaped, no mark at the end of a row.

The first fields are numbers and ids and the last one is the cluster's name, so that rows can be told
apart although a submit line may hold newlines: lines are joined until the count of fields fits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tfjobtui.errors import FormatError
from tfjobtui.model.ids import JobId
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.scheduler import EndedJob
from tfjobtui.schedulers.slurm.fields import (
    parse_count,
    parse_duration,
    parse_exit_code,
    parse_time,
    text_or_empty,
)
from tfjobtui.schedulers.slurm.form import FIELD_END

FIELDS = (
    "JobIDRaw", "JobID", "User", "State", "Submit", "Start", "End", "Timelimit", "ExitCode", "NodeList",
    "Account", "Partition", "JobName", "WorkDir", "SubmitLine", "StdOut", "StdErr", "Cluster",
)  # fmt: skip
_ROW = re.compile(rf"\d+{FIELD_END}\d+[^{FIELD_END}\n]*{FIELD_END}")


def known_fields(helpformat: str) -> tuple[str, ...]:
    """Those of `FIELDS` that this sacct has, from what `sacct --helpformat` prints."""
    has = {word.lower() for word in helpformat.split()}
    return tuple(name for name in FIELDS if name.lower() in has)


def parse_rows(
    text: str, names: Sequence[str] = FIELDS, problems: list[str] | None = None
) -> tuple[EndedJob, ...]:
    """Read all allocations, in sacct's order; steps are no jobs. Bad rows are told in `problems`."""
    jobs: list[EndedJob] = []
    for row in _joined(text, len(names)):
        values = row.split(FIELD_END)
        try:
            if len(values) != len(names):
                raise FormatError(f"{len(values)} fields in place of {len(names)}")
            record = dict(zip(names, values, strict=True))
            if "." not in record["JobID"]:
                jobs.append(_job(record))
        except (FormatError, ValueError) as error:
            if problems is not None:
                problems.append(f"sacct: a row that cannot be read ({error}): {row[:80]!r}")
    return tuple(jobs)


def _joined(text: str, width: int) -> Iterable[str]:
    row: str | None = None
    for line in text.split("\n"):
        if row is None:
            row = line
        elif row.count(FIELD_END) >= width - 1 or _ROW.match(line):
            if row:
                yield row
            row = line
        else:
            row = f"{row}\n{line}"
    if row and row.strip("\n"):
        yield row.rstrip("\n")


def _job(record: dict[str, str]) -> EndedJob:
    state_text = record["State"]
    by = re.fullmatch(r"CANCELLED by (\d+)", state_text)
    return EndedJob(
        id=JobId.parse(record["JobID"]),
        raw_id=parse_count(record["JobIDRaw"].split(".")[0]) or 0,
        name=record.get("JobName", ""),
        state=JobState.of(state_text),
        state_text=state_text,
        user=record.get("User", ""),
        cancelled_by_uid=int(by[1]) if by else None,
        account=text_or_empty(record.get("Account", "")),
        partition=text_or_empty(record.get("Partition", "")),
        submit_time_s=parse_time(record.get("Submit", "")),
        start_time_s=parse_time(record.get("Start", "")),
        end_time_s=parse_time(record.get("End", "")),
        time_limit_s=parse_duration(record.get("Timelimit", "")),
        exit_code=parse_exit_code(record.get("ExitCode", "")),
        nodes=text_or_empty(record.get("NodeList", "")),
        work_dir=record.get("WorkDir", ""),
        submit_line=record.get("SubmitLine", ""),
        stdout_pattern=text_or_empty(record.get("StdOut", "")),
        stderr_pattern=text_or_empty(record.get("StdErr", "")),
    )


def latest(jobs: Iterable[EndedJob]) -> tuple[EndedJob, ...]:
    """Of the several runs of a requeued job the last one."""
    newest: dict[tuple[str, int], EndedJob] = {}
    for job in jobs:
        key = (str(job.id), job.raw_id)
        before = newest.get(key)
        if before is None or (job.submit_time_s or 0) >= (before.submit_time_s or 0):
            newest[key] = job
    return tuple(newest.values())


def parse_script(text: str) -> str | None:
    """The script in what `sacct -B` prints; `None` where none was stored.

    The form is `Batch Script for N`, a rule of dashes, the script, and before Slurm 24.11 an empty line.
    """
    match = re.match(r"\s*Batch Script for [^\n]*\n-{10,}\n(.*)", text, re.DOTALL)
    if match is None or match[1].strip() in {"", "NONE"}:
        return None
    return match[1].rstrip("\n") + "\n"
