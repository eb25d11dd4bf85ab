"""What can be changed of a job after its submission: Slurm's names, when, and which values fit."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tfjobtui.errors import UsageError
from tfjobtui.model.job import Job
from tfjobtui.model.units import duration


@dataclass(frozen=True, slots=True)
class Checked:
    """A value as the scheduler takes it, and what the user should know about it (or an empty text)."""

    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Field:
    """A field that can be changed. `name` is the scheduler's; `help` says what fits.

    `while_active` is true where it can be changed of a running job too; `arrays_only` where it makes
    sense for an array alone. `check` raises `UsageError`.
    """

    name: str
    title: str
    help: str
    check: Callable[[str], Checked]
    while_active: bool = False
    arrays_only: bool = False
    running_note: str = ""

    def is_open(self, job: Job) -> bool:
        """Whether it can be changed of this job in its present state."""
        if self.arrays_only and not job.id.is_array:
            return False
        return job.state.is_waiting or (self.while_active and job.state.is_active)


def changeable(job: Job) -> tuple[Field, ...]:
    """The fields that can be changed of this job now."""
    return tuple(field for field in FIELDS if field.is_open(job))


def field_named(name: str) -> Field:
    """The field of that name, in any case.

    Raises:
        UsageError: there is none; the message names the nearest.
    """
    for field in FIELDS:
        if field.name.casefold() == name.casefold():
            return field
    import difflib  # only for an error

    names = [field.name for field in FIELDS]
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"The nearest is {close[0]}." if close else f"There are: {', '.join(names)}."
    raise UsageError(f"{name} cannot be changed", hint)


# --- values -----------------------------------------------------------------------------------------------

_CLOCK = re.compile(r"(?P<sign>[+-]?)(?:(?P<days>\d+)-)?(?P<rest>\d+(?::\d{1,2}){0,2})", re.ASCII)
_SPAN = re.compile(r"(\d+)([dhms])", re.ASCII)
_UNIT_S = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMGT]?)B?", re.IGNORECASE | re.ASCII)
_MEBIBYTES = {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024 * 1024}


def time_limit(text: str) -> Checked:
    """`30` (minutes), `1:30:00`, `2-12`, `90m`, `1h30m`, `UNLIMITED`, and with `+` or `-` a change of it."""
    value = text.strip()
    if value.upper() in ("UNLIMITED", "INFINITE"):
        return Checked("UNLIMITED", "Without a limit, if the partition allows it.")
    if _SPAN.sub("", value.lower()) == "" and value:
        seconds = sum(int(number) * _UNIT_S[unit] for number, unit in _SPAN.findall(value.lower()))
        return Checked(_slurm_time(seconds), f"That is {duration(seconds)}.")
    match = _CLOCK.fullmatch(value)
    if match is None:
        raise UsageError(
            f"not a time: {text!r}", "Try 30 (minutes), 1:30:00, 2-12 (2 days, 12 hours) or 90m."
        )
    seconds = _clock_seconds(match)
    if seconds == 0:
        raise UsageError("a time limit of 0 would end the job at once", "Cancel it instead.")
    change = {"+": "more than now", "-": "less than now"}.get(match["sign"], "")
    note = f"That is {duration(seconds)} {change}".rstrip() + "."
    if match["days"] is None and match["rest"].count(":") == 1:
        minutes, rest = match["rest"].split(":")
        note = (
            f"Slurm reads {value} as {minutes} minutes and {rest} seconds; "
            f"for {minutes} hours and {rest} minutes write {value}:00."
        )
    return Checked(value, note)


def _clock_seconds(match: re.Match[str]) -> int:
    """Slurm's reading: `M`, `M:S`, `H:M:S`, `D-H`, `D-H:M`, `D-H:M:S`."""
    parts = [int(part) for part in match["rest"].split(":")]
    if match["days"] is not None:
        hours, minutes, seconds = (*parts, 0, 0)[:3]
        return int(match["days"]) * 86400 + hours * 3600 + minutes * 60 + seconds
    if len(parts) == 3:
        return parts[0] * 3600 + parts[1] * 60 + parts[2]
    return parts[0] * 60 + (parts[1] if len(parts) == 2 else 0)


def _slurm_time(seconds: int) -> str:
    days, rest = divmod(seconds, 86400)
    clock = f"{rest // 3600:02}:{rest % 3600 // 60:02}:{rest % 60:02}"
    return f"{days}-{clock}" if days else clock


def _whole(least: int) -> Callable[[str], Checked]:
    def check(text: str) -> Checked:
        if not (text.strip().isascii() and text.strip().isdigit()) or int(text) < least:
            raise UsageError(f"not a whole number from {least} on: {text!r}")
        return Checked(text.strip())

    return check


def _name(text: str) -> Checked:
    """A name of Slurm's, or several with commas between them."""
    value = text.strip()
    if not value or any(char.isspace() or ord(char) < 32 for char in value):
        raise UsageError(f"not a name: {text!r}", "It has no blanks.")
    return Checked(value)


def _free(text: str) -> Checked:
    if any(ord(char) < 32 for char in text):
        raise UsageError("it has a control character in it")
    if len(text.encode(errors="surrogateescape")) > 1024:
        raise UsageError("it is longer than the 1024 bytes that Slurm takes")
    return Checked(text)


def _optional(check: Callable[[str], Checked], note: str) -> Callable[[str], Checked]:
    return lambda text: check(text) if text.strip() else Checked("", note)


_NODES = re.compile(r"\d+(-\d+)?", re.ASCII)


def _nodes(text: str) -> Checked:
    if _NODES.fullmatch(text.strip()) is None:
        raise UsageError(f"not a number of nodes: {text!r}", "Try 2, or 2-4.")
    return Checked(text.strip())


def _memory(text: str) -> Checked:
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"not a size: {text!r}", "Try 64G.")
    mebibytes = float(match[1]) * _MEBIBYTES[match[2].upper()]
    # scontrol takes whole mebibytes alone, without a unit.
    return Checked(str(max(1, round(mebibytes))), f"That is {mebibytes:g} MiB for each node.")


_START = re.compile(
    r"now(\+\d+[a-z]*)?|\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?)?|\d\d?:\d\d(:\d\d)?|[a-z]+", re.IGNORECASE
)


def _start(text: str) -> Checked:
    if _START.fullmatch(text.strip()) is None:
        raise UsageError(f"not a time: {text!r}", "Try now, now+1hour, 16:00, tomorrow or 2030-01-31T08:00.")
    return Checked(text.strip())


FIELDS: tuple[Field, ...] = (
    Field(
        "TimeLimit",
        "time limit",
        "30 (minutes), 1:30:00, 2-12, 90m; of a running job it can only be lowered",
        time_limit,
        while_active=True,
        running_note="Only an administrator can raise the limit of a running job.",
    ),
    Field("Partition", "partition", "a partition, or several with commas", _name),
    Field("QOS", "QOS", "a quality of service", _name),
    Field("Account", "account", "an account that you may use", _name),
    Field("Nice", "nice", "0 to lower numbers of priority: the more, the later", _whole(0)),
    Field(
        "Dependency",
        "dependency",
        "afterok:123, afterany:123:124, singleton; empty: none",
        _optional(_name, "It will wait for no other job."),
    ),
    Field("StartTime", "begin time", "now, now+1hour, 16:00, 2030-01-31T08:00", _start),
    Field("NumNodes", "nodes", "2, or 2-4", _nodes),
    Field("Gres", "GPUs for each node", "gpu:2, gpu:a100:2", _name),
    Field("MinMemoryNode", "memory for each node", "64G", _memory),
    Field("Features", "constraint", "a feature; empty: any node", _optional(_name, "Any node will do.")),
    Field(
        "ReservationName", "reservation", "a reservation; empty: none", _optional(_name, "No reservation.")
    ),
    Field(
        "ArrayTaskThrottle",
        "tasks at a time",
        "how many tasks of the array may run at once; 0: no limit",
        _whole(0),
        while_active=True,
        arrays_only=True,
    ),
    Field("JobName", "name", "any text", _free, while_active=True),
    Field("Comment", "comment", "any text", _free, while_active=True),
)
