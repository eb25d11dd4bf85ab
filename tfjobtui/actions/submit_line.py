"""The options of a submission, out of its command line as accounting keeps it.

The words of that line are joined by blanks, without their quotes: `--comment=a b` and two words look the
same. So it is used only where it can be read in one way: every word before the script is an option or the
value of one, and where the script begins is known from elsewhere.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from tfjobtui.directives import Option, split_options
from tfjobtui.errors import FormatError

NOT_THE_JOBS = frozenset(
    {"parsable", "wait", "quiet", "verbose", "test-only", "clusters", "wrap", "help", "usage", "version"}
)
"""Options that say how sbatch is to be run, not what the job is."""


def read_options(submit_line: str, command: str, script: str) -> tuple[Option, ...] | None:
    """The options of the job; `None` where the line can be read in several ways.

    `command` is the script's path with its arguments as the scheduler tells it (or an empty text), which
    says where the options end. `script` is the text of the script: of `--wrap` it has the command.
    """
    program, _, body = submit_line.partition(" ")
    if program.rpartition("/")[2] != "sbatch":
        return None
    if " --wrap" in f" {body}":
        before = _without_wrap(body, script)
    elif command:
        before = _before_command(body, command)
    else:
        return _with_script_last(body)
    return None if before is None else _only_options(before)


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
    if "  " in text.strip():
        return None  # an empty value or several blanks in one: the words are not what they seem
    try:
        options, rest = split_options(words)
    except FormatError:
        return None
    return None if rest else tuple(option for option in options if option.name not in NOT_THE_JOBS)


def _with_script_last(body: str) -> tuple[Option, ...] | None:
    """Without knowing the script: it is the last word, if anything is; with arguments nothing is sure."""
    try:
        _, rest = split_options(body.split())
    except FormatError:
        return None
    if len(rest) > 1:
        return None
    return _only_options(body.removesuffix(rest[0]) if rest else body)


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
