"""The filter of the job list.

A filter is words with blanks between them; a job must match all of them.

```
word            name, id, state, partition, user, reason or nodes contain it
"two words"     the same with a blank in it
field:value     that field matches; several values with commas; `*` and `?` as in file names
field:>8        figures: > >= < <= =
-word           what does not match
```

Fields: id name state part user account qos reason node dir dep cluster; figures: gpu cpu mem nodes
time left limit prio restarts. Sizes take K M G T, times Slurm's forms (`90` minutes, `2:00:00`, `1-12`)
or `90s 30m 2h 1d`.
"""

from __future__ import annotations

import fnmatch
import math
import operator
import re
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass

from tfjobtui.errors import UsageError
from tfjobtui.model.job import Job

Test = Callable[[Job], bool]


@dataclass(frozen=True, slots=True)
class JobFilter:
    """A filter that was understood. An empty one matches everything."""

    text: str
    tests: tuple[Test, ...]

    def matches(self, job: Job) -> bool:
        return all(test(job) for test in self.tests)

    def __bool__(self) -> bool:
        return bool(self.tests)


EVERYTHING = JobFilter("", ())

_TEXT_FIELDS: dict[str, Callable[[Job], str]] = {
    "id": lambda job: str(job.id),
    "name": lambda job: job.name,
    "state": lambda job: job.state_text,
    "part": lambda job: job.partition,
    "user": lambda job: job.user,
    "account": lambda job: job.account,
    "qos": lambda job: job.qos,
    "reason": lambda job: job.reason,
    "node": lambda job: job.nodes,
    "dir": lambda job: job.work_dir,
    "dep": lambda job: job.dependency,
    "cluster": lambda job: job.cluster or "",
}
_FIGURES: dict[str, Callable[[Job], float | None]] = {
    "cpu": lambda job: job.cpus,
    "mem": lambda job: job.memory_bytes,
    "nodes": lambda job: job.node_count,
    "prio": lambda job: job.priority,
    "restarts": lambda job: job.restarts,
    "time": lambda job: job.time_used_s(time.time()),
    "left": lambda job: job.time_left_s(time.time()),
    "limit": lambda job: job.time_limit_s,
}
_OTHER_NAMES = {
    "partition": "part",
    "st": "state",
    "s": "state",
    "p": "part",
    "u": "user",
    "gpus": "gpu",
    "cpus": "cpu",
    "memory": "mem",
    "acct": "account",
    "nodelist": "node",
    "jobid": "id",
    "used": "time",
}
FIELDS = (*_TEXT_FIELDS, "gpu", *_FIGURES)
_COMPARE = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "=": operator.eq,
}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMGT]?)(?:i?B)?", re.IGNORECASE)
_SPAN = re.compile(r"(\d+(?:\.\d+)?)([smhd])", re.IGNORECASE)


def parse_filter(text: str) -> JobFilter:
    """Read a filter.

    Raises:
        UsageError: a field is not known, or a figure is none; the message names it.
    """
    tests = tuple(_word_test(word) for word in _words(text))
    return JobFilter(text.strip(), tests)


def _words(text: str) -> list[str]:
    """Split at blanks; quotes hold words together, and one that is still open (while typing) ends at the end."""
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    lexer.escape = ""
    lexer.quotes = '"'
    try:
        return list(lexer)
    except ValueError:
        return text.replace('"', "").split()


def _word_test(word: str) -> Test:
    if len(word) > 1 and word[0] in "-!":
        inner = _word_test(word[1:])
        return lambda job: not inner(job)
    field, colon, value = word.partition(":")
    if not colon:
        return _bare(word)
    name = _OTHER_NAMES.get(field.lower(), field.lower())
    if name == "gpu":
        return _gpu(value)
    if name in _TEXT_FIELDS:
        return _state(value) if name == "state" else _text(_TEXT_FIELDS[name], value)
    if name in _FIGURES:
        return _figure(name, value)
    raise UsageError(f"unknown filter field {field!r}", "Fields: " + " ".join(FIELDS))


def _bare(word: str) -> Test:
    needle = word.lower()

    def test(job: Job) -> bool:
        return (
            needle in job.name.lower()
            or needle in str(job.id)
            or needle in job.state_text.lower()
            or needle in job.partition.lower()
            or needle in job.user.lower()
            or needle in job.reason.lower()
            or needle in job.nodes.lower()
        )

    return test


def _patterns(value: str) -> list[Callable[[str], bool]]:
    """One test for each value between commas: a part of the text, or with `*` `?` the whole."""
    tests: list[Callable[[str], bool]] = []
    for part in value.lower().split(","):
        if not part:
            continue
        if "*" in part or "?" in part:
            regex = re.compile(fnmatch.translate(part))
            tests.append(lambda text, regex=regex: regex.match(text) is not None)  # type: ignore[misc]
        else:
            tests.append(lambda text, part=part: part in text)  # type: ignore[misc]
    return tests


def _text(read: Callable[[Job], str], value: str) -> Test:
    tests = _patterns(value)
    if not tests:
        return lambda job: True
    return lambda job: any(test(read(job).lower()) for test in tests)


def _state(value: str) -> Test:
    """Long names by their beginning (`run`), short ones whole (`PD`), and `active waiting ended bad`."""
    words = [part.lower() for part in value.split(",") if part]

    def test(job: Job) -> bool:
        state = job.state
        for word in words:
            if (
                state.short.lower() == word
                or state.group.value == word
                or state.long.lower().startswith(word)
            ):
                return True
            if word == "ended" and state.is_terminal:
                return True
            if state.long == "UNKNOWN" and job.state_text.lower().startswith(word):
                return True
        return not words

    return test


def _gpu(value: str) -> Test:
    """`gpu:>0`, `gpu:4`, `gpu:a100`, `gpu:a100>2`."""
    match = re.fullmatch(r"([^<>=]*?)(?:(>=|<=|>|<|=)(\d+)|)", value)
    if match is None:
        raise UsageError(f"not a GPU count or type: {value!r}", "Try gpu:>0 or gpu:a100.")
    kind, sign, number = match[1].lower(), match[2], match[3]
    if kind.isdigit() and sign is None:
        kind, sign, number = "", "=", kind
    compare, limit = _COMPARE[sign or ">"], int(number or 0)

    def test(job: Job) -> bool:
        count = sum(n for name, n in job.gpus.by_type if not kind or kind in (name or "").lower())
        return bool(compare(count, limit))

    return test if value else lambda job: job.gpus.count > 0


def _figure(name: str, value: str) -> Test:
    read = _FIGURES[name]
    match = re.fullmatch(r"(>=|<=|>|<|=)?(.*)", value)
    assert match is not None
    if not match[2]:
        return lambda job: True  # still being typed
    compare, limit = _COMPARE[match[1] or "="], _parse_figure(name, match[2])

    def test(job: Job) -> bool:
        figure = read(job)
        return figure is not None and bool(compare(figure, limit))

    return test


def _parse_figure(name: str, text: str) -> float:
    if name in ("time", "left", "limit"):
        return _parse_time(text)
    match = _SIZE.fullmatch(text)
    if match is None or (match[2] and name != "mem"):
        raise UsageError(f"not a figure: {text!r}", f"Try {name}:>8" + ("G." if name == "mem" else "."))
    power = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}[match[2].upper()]
    return float(match[1]) * float(1024**power)


def _parse_time(text: str) -> float:
    if text.lower() in ("inf", "unlimited"):
        return math.inf
    spans = _SPAN.findall(text)
    if spans and _SPAN.sub("", text) == "":
        return sum(
            float(number) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[unit.lower()] for number, unit in spans
        )
    days, dash, rest = text.rpartition("-")
    parts = rest.split(":")
    if not all(part.isdigit() for part in parts) or len(parts) > 3 or (dash and not days.isdigit()):
        raise UsageError(f"not a time: {text!r}", "Try 90 (minutes), 2:00:00, 1-12 or 2h.")
    numbers = [int(part) for part in parts]
    if dash:  # D-H[:M[:S]]
        hours, minutes, seconds = (*numbers, 0, 0)[:3]
        return int(days) * 86400 + hours * 3600 + minutes * 60 + seconds
    if len(numbers) == 1:
        return numbers[0] * 60
    if len(numbers) == 2:  # M:S, as Slurm reads it
        return numbers[0] * 60 + numbers[1]
    return numbers[0] * 3600 + numbers[1] * 60 + numbers[2]
