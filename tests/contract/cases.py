"""Jobs that have nothing to do with each other: submitted together, looked at one by one."""

from __future__ import annotations

import getpass
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.contract.side import Side
from tfjobtui.model.ids import JobId
from tfjobtui.model.job import ExitCode
from tfjobtui.model.state import JobState

GOOD = ExitCode(0)
SEEN = {"CONTRACT_SEEN": "yes", "CONTRACT_OTHER": "1"}
"""In the environment of each submission."""


@dataclass(frozen=True)
class Case:
    """A script, and how it has to end.

    `log` is the file, relative to the tests' folder, `has` and `lacks` what is in it, `matches` what its whole
    lines are like. In all of them `{id}` (`{id:05}`), `{user}` and `{folder}` stand for what they name. `makes`
    are folders, and `files` files, that are to be there before.
    """

    body: str
    options: tuple[str, ...] = ()
    state: JobState = JobState.COMPLETED
    exit_code: ExitCode = GOOD
    arguments: tuple[str, ...] = ()
    interpreter: str = "/bin/bash"
    head: str = ""
    log: str = ""
    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    matches: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)


def submit_all(side: Side, cases: Mapping[str, Case]) -> dict[str, JobId]:
    """All of them at once."""
    found = {}
    for name, case in cases.items():
        for path in case.makes:
            (side.folder / path).mkdir()
        for path, text in case.files.items():
            (side.folder / path).write_text(text)
        found[name] = side.submit(
            case.body,
            *(option.replace("{folder}", str(side.folder)) for option in case.options),
            arguments=case.arguments,
            head=case.head,
            interpreter=case.interpreter,
            environment=SEEN,
        )
    return found


def check(side: Side, case: Case, job: JobId) -> None:
    """Wait for its end and compare."""

    def filled(text: str) -> str:
        return text.format(id=job.job, user=getpass.getuser(), folder=side.folder)

    row = side.end(job)
    log = side.folder / filled(case.log) if case.log else None
    text = log.read_text(errors="replace") if log is not None and log.exists() else "(no log)"
    assert (row.state, row.exit_code) == (case.state, case.exit_code), text
    if log is None:
        return
    assert log.exists(), sorted(str(path) for path in side.folder.rglob("*.out"))
    for words in case.has:
        assert filled(words) in text
    for words in case.lacks:
        assert words not in text
    lines = text.splitlines()
    for pattern in case.matches:
        assert any(re.fullmatch(pattern, line) for line in lines), (pattern, text)
