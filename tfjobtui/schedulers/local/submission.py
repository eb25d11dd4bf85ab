"""Taking a script: reading its options, seeing whether it can ever run here, keeping it."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tfjobtui.errors import StoreError, SubmissionError
from tfjobtui.model.ids import JobId
from tfjobtui.schedulers.local import options
from tfjobtui.schedulers.local.environment import umask
from tfjobtui.schedulers.local.machine import Machine, refusal
from tfjobtui.schedulers.local.options import ParsedJob
from tfjobtui.schedulers.local.records import JobRecord
from tfjobtui.schedulers.local.store import Store
from tfjobtui.schedulers.scheduler import CommandRecord, SubmitRequest, Submitted

_DROPPED = ("SLURM_", "SLURMD_", "SBATCH_", "SRUN_", "TFJOBTUI_LOCAL_")


def submit(store: Store, request: SubmitRequest, machine: Machine) -> Submitted:
    """Take a script of the program's: what of the user's surroundings are `SBATCH_*` variables does not count.

    Raises:
        SubmissionError: it was refused; the message says why.
    """
    started_at_s = time.time()
    path = Path(request.script_path)
    argv = ("tfjobtui", "local", "sbatch", *request.options, str(path), *request.arguments)
    try:
        script = path.read_bytes()
    except OSError as error:
        raise SubmissionError(f"{path} cannot be read: {error.strerror}", argv=argv, returncode=1) from error
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_DROPPED)}
    environment |= dict(request.environment)
    folder = request.work_dir or str(Path.cwd())
    try:
        parsed = options.parse_job(
            script.decode("utf-8", "surrogateescape"),
            command_line=request.options,
            environment=request.environment,
            script_path=os.path.abspath(path),  # noqa: PTH100 - it shall not resolve links
            arguments=request.arguments,
            submit_dir=folder,
            now_s=started_at_s,
        )
        record = keep(store, parsed, script, environment, machine, argv)
    except SubmissionError as error:
        raise SubmissionError(
            error.message, error.hint, argv=argv, returncode=1, said=error.said or error.message
        ) from error
    words = f"Submitted batch job {record.id}"
    command = CommandRecord(argv, started_at_s, time.time() - started_at_s, 0, words)
    return Submitted(JobId(record.id), None, "\n".join(parsed.request.notes), command)


def keep(
    store: Store,
    parsed: ParsedJob,
    script: bytes,
    environment: Mapping[str, str],
    machine: Machine,
    argv: Sequence[str],
) -> JobRecord:
    """Keep a job that can run here.

    Raises:
        SubmissionError: it never can, it waits for a job that is not known, or it could not be kept.
    """
    request = replace(parsed.request, submit_line=shlex.join(argv), umask=umask())
    why_not = refusal(request, machine)
    if why_not:
        raise SubmissionError(
            f"Requested node configuration is not available: {why_not}",
            "Ask for less, or use a cluster with Slurm.",
        )
    try:
        return store.submit(request, script, environment, time.time())
    except StoreError as error:
        raise SubmissionError(f"The job was not submitted: {error.message}", error.hint) from error
