"""The options of a submission, out of its command line as accounting keeps it.

The words of that line are joined by blanks, without their quotes: `--comment=a b` and two words look the
same. So it is used only where it can be read in one way: every word before the script is an option or the
value of one, and where the script begins is known from elsewhere.

The database may not have every character of it: `?` can stand in place of one.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePath

from tfjobtui.directives import Option, split_options
from tfjobtui.errors import FormatError

NOT_THE_JOBS = frozenset(
    {"parsable", "wait", "quiet", "verbose", "test-only", "clusters", "wrap", "help", "usage", "version"}
)
"""Options that say how sbatch is to be run, not what the job is."""


@dataclass(frozen=True, slots=True)
class Submission:
    """What is known of a job from elsewhere, to read its command line by.

    `command` is the script's path with its arguments as the scheduler tells it, empty where it came from
    standard input, and `None` where that is not known. `script` is the text of the script: of `--wrap` it
    has the command. `name` is the job's name (or empty), `work_dir` its folder.
    """

    command: str | None
    script: str = ""
    name: str = ""
    work_dir: str = ""


Components = tuple[tuple[Option, ...], ...]
"""The options of each part of a het job; of any other job there is one part."""


def read_options(submit_line: str, job: Submission) -> Components | None:
    """The options of the job; `None` where the line can be read in several ways."""
    program, _, body = submit_line.partition(" ")
    if program.rpartition("/")[2] != "sbatch":
        return None
    body, named = _without_name(body, job.name)
    if " --wrap" in f" {body}":
        before = _without_wrap(body, job.script)
    else:
        command = command_of(submit_line, job) if job.command is None else job.command
        before = _before_command(body, command) if command else None if command is None else body
    if before is None:
        return None
    parts = [_only_options(part) for part in f" {before} ".split(" : ")]
    if any(part is None for part in parts):
        return None
    found = tuple(part for part in parts if part is not None)
    if len(found) > 1:
        return None if named else found
    return _named(found[0], named, job.name)


def _without_name(body: str, name: str) -> tuple[str, bool]:
    """The line without a name that has blanks in it, which is known; and whether it was there."""
    if not re.search(r"\s", name):
        return body, False
    for form in (f"-J {name}", f"-J{name}", f"--job-name={name}", f"--job-name {name}"):
        if f" {body} ".count(f" {form} ") == 1:
            before, _, after = f" {body} ".partition(f" {form} ")
            return f"{before} {after}".strip(" "), True
    return body, False


def _named(options: tuple[Option, ...], is_cut_out: bool, name: str) -> Components | None:
    """With the name as it is: accounting may have put `?` in place of its letters."""
    if is_cut_out:
        return ((*options, Option("job-name", name)),)
    told = value_of(options, "job-name")
    if name.startswith(f"{told} ") and told:
        return None  # the rest of the name was taken for options
    if told and told != name and _is_same_but_for_marks(told, name):
        return (tuple(Option("job-name", name) if item.name == "job-name" else item for item in options),)
    return (options,)


def _is_same_but_for_marks(told: str, name: str) -> bool:
    return len(told) == len(name) and all(mark in (char, "?") for mark, char in zip(told, name, strict=True))


def value_of(options: Iterable[Option], name: str) -> str:
    """The value of the last option of that name, or an empty text."""
    return next((option.value or "" for option in reversed(tuple(options)) if option.name == name), "")


def first_options(submit_line: str) -> tuple[Option, ...]:
    """The options that the line begins with: good enough to look for a file, not to submit again."""
    try:
        return split_options(submit_line.split()[1:])[0]
    except FormatError:
        return ()


def _only_options(text: str) -> tuple[Option, ...] | None:
    words = text.split()
    if "  " in text.strip(" ") or "\n" in text:
        return None  # an empty value or several blanks in one: the words are not what they seem
    try:
        options, rest = split_options(words)
    except FormatError:
        return None
    return None if rest else tuple(option for option in options if option.name not in NOT_THE_JOBS)


def command_of(submit_line: str, job: Submission) -> str | None:
    """The script with its arguments out of the line alone; `None` where it is not certain where it begins.

    A single word after the options is the script where it looks like one, and is not the second word of a
    value; one with arguments where the file still holds the job's script.
    """
    body = submit_line.partition(" ")[2]
    try:
        _, rest = split_options(body.split())
    except FormatError:
        return None
    command = " ".join(rest)
    if not body.endswith(command):
        return None
    if not rest or _holds(rest[0], job) or (len(rest) == 1 and _looks_like_script(rest[0], job)):
        return command
    return None


def with_arguments(command: str, submit_line: str) -> str:
    """The script's path as the scheduler tells it, with its arguments out of the line.

    Slurm 22.05 tells both; 24.11 and later the path alone.
    """
    body = submit_line.partition(" ")[2]
    try:
        _, rest = split_options(body.rpartition(" : ")[2].split())  # of a het job its last part
    except FormatError:
        return command
    given = " ".join(rest)
    is_short = len(rest) > 1 and PurePath(rest[0]).name == PurePath(command).name
    if not is_short or not f" {body}".endswith(f" {given}") or _before_command(body, command) is not None:
        return command
    return f"{command} {given.partition(' ')[2]}"


def _looks_like_script(word: str, job: Submission) -> bool:
    path = PurePath(word)
    return path.suffix in _SUFFIXES or path.name == job.name


def _holds(word: str, job: Submission) -> bool:
    """Whether this file holds the job's script."""
    if not job.work_dir:
        return False
    try:
        with Path(job.work_dir, word).open("rb") as file:
            text = file.read(_MOST_BYTES).decode("utf-8", "surrogateescape")
    except (OSError, ValueError):
        return False
    return text.rstrip("\n") == job.script.rstrip("\n")


_MOST_BYTES = 4 << 20
"""No script is larger."""


_SUFFIXES = frozenset({".sh", ".bash", ".sbatch", ".slurm", ".job", ".batch", ".py", ".pl"})


def _without_wrap(body: str, script: str) -> str | None:
    """The line without `--wrap` and its command, which stands in the script that sbatch made of it."""
    head, _, command = script.partition("\n\n")
    command = command.strip("\n")
    if "sbatch --wrap" not in head or not command:
        return None
    for form in (f"--wrap={command}", f"--wrap {command}"):
        before, found, after = body.partition(form)
        if found and form not in after and "--wrap" not in before:
            return f"{before.strip()} {after.strip()}".strip()
    return None


def _before_command(body: str, command: str) -> str | None:
    """What stands before the script, which may have been named by a shorter path than the scheduler tells."""
    path, blank, arguments = command.partition(" ")
    if f" {body}".endswith(f" {command}"):
        return body[: len(body) - len(command)].strip()
    tail = f"{path.rpartition('/')[2]}{blank}{arguments}"
    padded = f" {body}"
    if not padded.endswith((f" {tail}", f"/{tail}")):
        return None
    before = padded[: len(padded) - len(tail)]
    # `../jobs/` in front of the name belongs to the path.
    return before.rpartition(" ")[0].strip()


def in_shell(words: Iterable[str]) -> str:
    """Words as they would be typed."""
    return " ".join(shlex.quote(word) for word in words)
