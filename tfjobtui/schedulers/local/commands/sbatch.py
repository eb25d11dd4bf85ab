"""sbatch: hand a script over."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tfjobtui.errors import FormatError, SubmissionError
from tfjobtui.model.ids import JobId
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local import commands, options, submission
from tfjobtui.schedulers.local.commands import version
from tfjobtui.schedulers.local.commands.passes import make_pass_soon
from tfjobtui.schedulers.local.commands.refusal import RefusalError, refuse
from tfjobtui.schedulers.local.environment import CLUSTER
from tfjobtui.schedulers.local.machine import Machine, find_machine, refusal
from tfjobtui.schedulers.local.options import ParsedJob, SubmitFlags
from tfjobtui.schedulers.local.place import TOKEN_VARIABLE, default_place, host_name
from tfjobtui.schedulers.local.records import JobRecord
from tfjobtui.schedulers.local.store import Store

_DROPPED = ("SLURM_", "SLURMD_", "SRUN_", "TFJOBTUI_LOCAL_")
_BAD_USAGE = 255
_LOOK_S = 0.1
_LONGEST_LOOK_S = 2.0


@dataclass(frozen=True, slots=True)
class _Script:
    """`path` is empty for one from standard input or `--wrap`."""

    path: str
    text: bytes
    arguments: tuple[str, ...] = ()


def run(argv: Sequence[str]) -> int:
    """Submit; print the id.

    Raises:
        RefusalError: it is not submitted; the words say why.
    """
    try:
        typed, rest = options.flags_of(argv)
    except FormatError as error:
        # As getopt says it, for scripts that look for it.
        unknown = re.sub(r"^sbatch has no option (--\S+)$", r"unrecognized option '\1'", error.message)
        words = f'sbatch: {unknown}\nTry "sbatch --help" for more information'
        raise RefusalError(words, _BAD_USAGE) from error
    if typed.version or typed.help:
        version.say_version() if typed.version else version.say_help("sbatch")
        return 0
    script = _script(typed, rest)
    store = Store(default_place())
    machine = find_machine(store.settings())
    parsed = _parsed(script, argv)
    if parsed.flags.test_only:
        return _test_only(store, parsed, machine)
    record = _keep(store, parsed, script, machine, argv)
    _say(parsed, record)
    make_pass_soon(store)
    return _wait(store, record) if parsed.flags.wait else 0


def _script(typed: SubmitFlags, rest: Sequence[str]) -> _Script:
    if typed.wrap is not None:
        if rest:
            refuse("sbatch", "Script arguments not permitted with --wrap option")
        text = f"#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{typed.wrap}\n"
        return _Script("", os.fsencode(text))
    if not rest:
        return _Script("", sys.stdin.buffer.read())
    path = _found(rest[0])
    try:
        return _Script(path, Path(path).read_bytes(), tuple(rest[1:]))
    except OSError as error:
        raise RefusalError(f"sbatch: error: Unable to open file {rest[0]}") from error


def _found(name: str) -> str:
    """The absolute name of a script: here, or for a name without a folder on the PATH, as sbatch looks for it."""
    here = os.path.abspath(name)  # noqa: PTH100 - links stay
    if "/" in name or os.path.exists(here):  # noqa: PTH110
        return here
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        path = os.path.join(folder, name)  # noqa: PTH118
        if folder and os.path.isfile(path):  # noqa: PTH113
            return path
    return here


def _parsed(script: _Script, argv: Sequence[str]) -> ParsedJob:
    try:
        return options.parse_job(
            script.text.decode("utf-8", "surrogateescape"),
            command_line=argv,
            environment=os.environ,
            script_path=script.path,
            arguments=script.arguments,
            submit_dir=_current_folder(),
            now_s=time.time(),
        )
    except SubmissionError as error:
        raise RefusalError(_lines(error.message, error.hint)) from error


def _current_folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - a text
    except OSError as error:
        raise RefusalError(f"sbatch: fatal: getcwd failed: {error.strerror}") from error


def _lines(message: str, hint: str) -> str:
    """Each line as sbatch says it."""
    lines = [f"sbatch: error: {line}" for line in message.splitlines()]
    return "\n".join([*lines, *(f"sbatch: {line}" for line in hint.splitlines())])


def _keep(
    store: Store, parsed: ParsedJob, script: _Script, machine: Machine, argv: Sequence[str]
) -> JobRecord:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_DROPPED)}
    _leave_job(environment, store)
    try:
        commands.install(store.place)
        return submission.keep(store, parsed, script.text, environment, machine, ("sbatch", *argv))
    except SubmissionError as error:
        message = f"Batch job submission failed: {error.message}"
        raise RefusalError(_lines(message, error.hint)) from error
    except OSError as error:
        raise RefusalError(
            f"sbatch: error: Batch job submission failed: {store.place.bin}: {error.strerror}"
        ) from error


def _leave_job(environment: dict[str, str], store: Store) -> None:
    """A job that was submitted by a job gets the bin folder anew, and not a second time."""
    if TOKEN_VARIABLE in os.environ:
        own = str(store.place.bin)
        words = environment.get("PATH", "").split(os.pathsep)
        environment["PATH"] = os.pathsep.join(word for word in words if word != own)


def _say(parsed: ParsedJob, record: JobRecord) -> None:
    flags = parsed.flags
    if not flags.quiet:
        for note in parsed.request.notes:
            sys.stderr.write(f"sbatch: {note}\n")
    if flags.parsable:
        print(record.id, flush=True)
    elif not flags.quiet:
        print(f"Submitted batch job {record.id}", flush=True)


def _test_only(store: Store, parsed: ParsedJob, machine: Machine) -> int:
    why_not = refusal(parsed.request, machine)
    if why_not:
        raise RefusalError(f"allocation failure: Requested node configuration is not available: {why_not}")
    cpus = machine.cpus_for(parsed.request)
    busy = store.live()
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(parsed.request.begin_s))
    # When what is ahead of it ends is not known: the earliest moment is told, as Slurm's estimate is one too.
    number = max((record.id for record in busy), default=0) + 1
    sys.stderr.write(
        f"sbatch: Job {number} to start at {moment} using {cpus} processors on nodes {host_name()}"
        f" in partition {parsed.request.partition or CLUSTER}\n"
    )
    return 0


def _wait(store: Store, record: JobRecord) -> int:
    """Until it has ended; its exit code, of an array the highest."""
    look_s = _LOOK_S
    while True:
        rows = store.find(JobId(record.id))
        if not rows or all(row.state.is_terminal for row in rows):
            return max((_code(row) for row in rows), default=1)
        time.sleep(look_s)
        look_s = min(_LONGEST_LOOK_S, look_s * 1.1)


def _code(row: JobRecord) -> int:
    """The job's exit code; 1 for one that was ended by a signal or by the scheduler."""
    code = row.exit_code
    if code is not None and code.code and not code.signal:
        return code.code
    return 0 if row.state is JobState.COMPLETED else 1
