"""The files that `srun --input`, `--output` and `--error` name, by srun's rules.

Source: `src/srun/libsrun/fname.c`. A name with `%t`, `%n`, `%N` or `%u` is a file for each task, opened by the
task in its own folder; any other one is opened by srun, once for all tasks, in the folder that srun is in.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

_PATTERN = re.compile(r"%(\d*)([a-zA-Z%])")
_OF_A_TASK = frozenset("tnNu")
_NUMBERS = frozenset("aAjJstn")
_MOST_DIGITS = 10
_NO_TASK = "4294967294"


class Kind(Enum):
    """What a name means."""

    OWN = "srun's own stream"
    ONE = "srun's own stream, of one task"
    NONE = "nothing"
    SHARED = "a file for all tasks"
    EACH = "a file for each task"


@dataclass(frozen=True, slots=True)
class Target:
    """A stream of the step. `text` is the pattern of a file, `task` that of `ONE`."""

    kind: Kind
    text: str = ""
    task: int = -1

    def reads(self, task: int) -> bool:
        """Whether srun's own stream is this task's."""
        return self.kind is Kind.OWN or (self.kind is Kind.ONE and self.task == task)


@dataclass(frozen=True, slots=True)
class StepIds:
    """What patterns are filled with: `base` is the environment of srun."""

    base: Mapping[str, str]
    step: int
    node: str

    def value(self, letter: str, task: int) -> str | None:
        job = self.base.get("SLURM_JOB_ID", "")
        values = {
            "j": job,
            "J": f"{job}.{self.step}",
            "s": str(self.step),
            "t": str(task),
            "n": "0",
            "N": self.node,
            "x": self.base.get("SLURM_JOB_NAME", ""),
            "A": self.base.get("SLURM_ARRAY_JOB_ID") or job,
            "a": self.base.get("SLURM_ARRAY_TASK_ID") or _NO_TASK,
            "u": self.base.get("SLURM_JOB_USER", ""),
            "%": "%",
        }
        return values.get(letter)


def target(text: str, task_count: int) -> Target:
    """What the value of an option means."""
    if text[:3].casefold() == "all" or text[:1] in ("", "-"):
        return Target(Kind.OWN)
    if text.casefold() == "none":
        return Target(Kind.NONE)
    if text.isascii() and text.isdigit() and int(text) < task_count:
        return Target(Kind.ONE, task=int(text))
    is_each = "\\" not in text and any(match[2] in _OF_A_TASK for match in _PATTERN.finditer(text))
    return Target(Kind.EACH if is_each else Kind.SHARED, text)


def expand(pattern: str, ids: StepIds, task: int) -> str:
    """Fill a pattern in; a backslash anywhere switches that off."""
    if "\\" in pattern:
        return pattern.replace("\\", "")

    def value(match: re.Match[str]) -> str:
        digits, letter = match[1], match[2]
        text = ids.value(letter, task)
        if text is None:
            return match[0]
        if not digits or letter not in _NUMBERS:
            return text
        number, dot, rest = text.partition(".")
        return number.zfill(min(int(digits[:9]), _MOST_DIGITS)) + dot + rest

    return _PATTERN.sub(value, pattern)


class Opened:
    """The step's files, each opened once."""

    def __init__(self, ids: StepIds, folder: str, *, append: bool) -> None:
        """`folder` is the tasks'; srun's own is the current one."""
        self._ids = ids
        self._folder = folder
        self._flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._flags |= 0 if append else os.O_TRUNC
        self._by_path: dict[str, int] = {}

    def write(self, where: Target, task: int) -> int:
        """A descriptor for a task's output into a file.

        Raises:
            OSError: it cannot be opened.
        """
        path = self._path(where, task)
        if path not in self._by_path:
            self._by_path[path] = os.open(path, self._flags, 0o666)
        return self._by_path[path]

    def read(self, where: Target, task: int) -> int:
        """A descriptor for a task's input, which it does not share with the others.

        Raises:
            OSError: it cannot be opened.
        """
        return os.open(self._path(where, task), os.O_RDONLY | os.O_CLOEXEC)

    def _path(self, where: Target, task: int) -> str:
        name = expand(where.text, self._ids, task)
        folder = self._folder if where.kind is Kind.EACH else os.getcwd()  # noqa: PTH109 - a text
        return os.path.join(folder, name)  # noqa: PTH118 - a text that may be any bytes
