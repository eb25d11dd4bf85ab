"""What `scontrol show job` prints (`slurm_sprint_job_info`), with or without `-o` and `-d`.

Values are neither quoted nor escaped. In the form with lines each line begins with three blanks and a key,
and a free text is always the last value of its line. With `-o` the name goes up to the user's id, and the
paths are found by the keys around them.
"""

from __future__ import annotations

import re

from tfjobtui.schedulers.scheduler import JobDetails, Target

Fields = tuple[tuple[str, str], ...]

_FREE = frozenset(
    {"JobName", "Comment", "AdminComment", "SystemComment", "Extra", "Network", "BurstBuffer", "Command"}
    | {"WorkDir", "StdErr", "StdIn", "StdOut", "Container", "SubmitLine"}
)
_COMMENTS = frozenset({"Comment", "AdminComment", "SystemComment"})
_KEY = r"[A-Z][A-Za-z0-9_]*(?:[:/][A-Za-z:]+)*"
_LINE = re.compile(rf"\n   (?={_KEY}=)|\n     (?=Nodes=)")
_VALUE = re.compile(rf" (?={_KEY}=)")
_RECORD = re.compile(r"\n\s*\n(?=JobId=\d)")
_ONE_LINE_RECORD = re.compile(r"\n(?=JobId=\d)")
_USER = r" (?:(?P<sluid>SLUID=\w+) )?(?=UserId=\S*\(\d+\) GroupId=\S*\(\d+\) )"
_TAIL = re.compile(
    r" (?=(?:WorkDir|ClusterFeatures|AdminComment|SystemComment|Comment|StdErr|StdIn|StdOut|Switches|Power"
    r"|BurstBuffer|CpuFreq\w+|Container|ContainerID|Cron\w+|Gres\w+|KillOInInvalidDependent|MailUser|MailType"
    r"|Tres\w+|MemPerTres|NtasksPerTRES|SubmitLine|Extra)=)"
)


def parse_records(text: str) -> tuple[Fields, ...]:
    """Read all records of an answer, each as its keys and values in Slurm's order."""
    text = text.strip("\n")
    if not text.startswith("JobId="):
        return ()
    first = text.split("\n", 1)[0]
    if " UserId=" in first:
        return tuple(_fields(_unfolded(record)) for record in _ONE_LINE_RECORD.split(text))
    return tuple(_fields(_LINE.split(record.rstrip())) for record in _RECORD.split(text))


def _fields(lines: list[str]) -> Fields:
    found: list[tuple[str, str]] = []
    for line in lines:
        rest = line
        while rest:
            key, _, after = rest.partition("=")
            if key in _FREE:
                # 24.11 puts a blank behind a comment.
                found.append((key, after.rstrip(" ") if key in _COMMENTS else after))
                break
            parts = _VALUE.split(after, maxsplit=1)
            found.append((key, parts[0].strip()))
            rest = parts[1] if len(parts) > 1 else ""
    return tuple(found)


def _unfolded(record: str) -> list[str]:
    """The record of `-o` in lines, as it would be without."""
    at_dir = record.rfind(" WorkDir=")
    at_command = record.rfind(" Command=", 0, at_dir if at_dir >= 0 else None)
    head = record if at_command < 0 else record[:at_command]
    tail = [] if at_command < 0 else _TAIL.split(record[at_command + 1 :])
    users = list(re.finditer(_USER, head))
    if users:
        user = users[-1]
        between = [user["sluid"]] if user["sluid"] else []
        return [head[: user.start()], *between, head[user.end() :], *tail]
    return [head, *tail]


def details(text: str, target: Target) -> JobDetails | None:
    """The record of the target among those of an answer; `None` where there is none."""
    records = parse_records(text)
    if not records:
        return None
    fields = next((record for record in records if _is_of(dict(record), target)), records[0])
    return JobDetails(target.id, fields, _gpu_indexes(fields))


def _is_of(values: dict[str, str], target: Target) -> bool:
    job = target.id
    if job.task is not None:
        return values.get("ArrayTaskId") == str(job.task)
    if job.het_offset is not None:
        return values.get("HetJobOffset", values.get("PackJobOffset")) == str(job.het_offset)
    return values.get("JobId") == str(job.job)


_INDEXES = re.compile(r"gpu(?::(?P<kind>[^:(]+))?(?::\d+)?\(IDX:(?P<indexes>[^)]*)\)")


def _gpu_indexes(fields: Fields) -> tuple[str, ...]:
    """Lines such as `gpu01: a100 0-1`, from the lines by group of nodes that `-d` adds."""
    lines: list[str] = []
    nodes = ""
    for key, value in fields:
        if key == "Nodes":
            nodes = value
        elif key == "GRES" and nodes:
            for match in _INDEXES.finditer(value):
                kind = match["kind"] or ""
                lines.append(f"{nodes}: {f'{kind} ' if kind else ''}{match['indexes']}")
    return tuple(lines)
