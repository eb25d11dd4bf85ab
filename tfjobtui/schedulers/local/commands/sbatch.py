"""sbatch: hand a script over."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tfjobtui import __version__
from tfjobtui.errors import SubmissionError
from tfjobtui.model.ids import JobId
from tfjobtui.schedulers.local import commands, dispatch, options, submission, waiter
from tfjobtui.schedulers.local.machine import find_machine, refusal
from tfjobtui.schedulers.local.options import ParsedJob, SubmitFlags
from tfjobtui.schedulers.local.place import TOKEN_VARIABLE, Place, default_place, host_name
from tfjobtui.schedulers.local.records import JobRecord
from tfjobtui.schedulers.local.store import Store

_DROPPED = ("SLURM_", "SLURMD_", "SRUN_", "TFJOBTUI_LOCAL_")
_LOOK_S = 0.2


def run(argv: Sequence[str]) -> int:
    """Submit; print the id."""
    flags, rest = options.flags_of(argv)
    if flags.version:
        print(f"tfjobtui {__version__} (local scheduler)")
        return 0
    script_path, script, arguments = _script(flags, rest)
    parsed = options.parse_job(
        script.decode("utf-8", "surrogateescape"),
        command_line=argv,
        environment=os.environ,
        script_path=script_path,
        arguments=arguments,
        submit_dir=str(Path.cwd()),
        now_s=time.time(),
    )
    place = default_place()
    store = Store(place)
    machine = find_machine(store.settings())
    if flags.test_only:
        return _test_only(parsed, refusal(parsed.request, machine))
    commands.install(place)
    record = submission.keep(store, parsed, script, _environment(), machine, ("sbatch", *argv))
    for note in parsed.request.notes:
        sys.stderr.write(f"sbatch: {note}\n")
    if not flags.quiet or flags.parsable:
        print(record.id if flags.parsable else f"Submitted batch job {record.id}", flush=True)
    start_soon(place, store)
    return _wait(store, record) if flags.wait else 0


def start_soon(place: Place, store: Store) -> None:
    """See that a pass is made; from within a job the waiter makes it, whose processes are not the job's."""
    if TOKEN_VARIABLE in os.environ and waiter.is_there(place):
        return
    dispatch.make_pass(place, store)


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(_DROPPED)}


def _script(flags: SubmitFlags, rest: Sequence[str]) -> tuple[str, bytes, tuple[str, ...]]:
    """The script's absolute name, its text and its arguments."""
    if flags.wrap is not None:
        if rest:
            raise SubmissionError("Script arguments are not permitted with the --wrap option")
        text = f"#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{flags.wrap}\n"
        return "", os.fsencode(text), ()
    if not rest:
        return "", sys.stdin.buffer.read(), ()
    path = Path(rest[0])
    try:
        return os.path.abspath(path), path.read_bytes(), tuple(rest[1:])  # noqa: PTH100 - links stay
    except OSError as error:
        raise SubmissionError(f"Unable to open file {path}") from error


def _test_only(parsed: ParsedJob, why_not: str) -> int:
    if why_not:
        sys.stderr.write(f"allocation failure: Requested node configuration is not available: {why_not}\n")
        return 1
    when = time.strftime("%Y-%m-%dT%H:%M:%S")
    sys.stderr.write(
        f"sbatch: Job 0 to start at {when} using {parsed.request.cpus} processors on nodes {host_name()}"
        " in partition local, when what is ahead of it has ended\n"
    )
    return 0


def _wait(store: Store, record: JobRecord) -> int:
    """Until it has ended; its exit code, of an array the highest."""
    while True:
        rows = store.find(JobId(record.id))
        if rows and all(row.state.is_terminal for row in rows):
            codes = [row.exit_code for row in rows if row.exit_code is not None]
            return max((code.code or (128 + code.signal if code.signal else 0) for code in codes), default=1)
        time.sleep(_LOOK_S)
