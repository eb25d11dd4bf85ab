"""Submitting a script, and having one back."""

from __future__ import annotations

import os
import time

from tfjobtui.errors import CommandError, CommandTimeoutError, QueryError, SubmissionError
from tfjobtui.schedulers.scheduler import (
    CommandRecord,
    Forecast,
    StoredScript,
    SubmitRequest,
    Submitted,
    Target,
)
from tfjobtui.schedulers.slurm import argv, environment, start_test
from tfjobtui.schedulers.slurm.accounting import AccountingReader, since_option
from tfjobtui.schedulers.slurm.failures import last_words
from tfjobtui.schedulers.slurm.refusals import explained
from tfjobtui.schedulers.slurm.runner import Runner
from tfjobtui.schedulers.slurm.sacct import parse_script
from tfjobtui.schedulers.slurm.sbatch import parse_answer

UNCLEAR = (
    "The job may have been taken all the same: look for its name in the queue before you submit it again."
)


async def submit(runner: Runner, request: SubmitRequest) -> Submitted:
    """Run sbatch in the request's folder.

    Raises:
        SubmissionError: see `Submission.submit`.
    """
    env = environment.without_slurm() | dict(request.environment)
    script = os.path.abspath(request.script_path)  # noqa: PTH100 - it shall not resolve links
    arguments = argv.submit(request.options, script, request.arguments, cluster=request.cluster)
    started_at_s = time.time()
    try:
        done = await runner.act("sbatch", arguments, env=env, cwd=request.work_dir or None)
    except CommandTimeoutError as error:
        raise SubmissionError(f"{error.message}.", UNCLEAR, argv=error.argv) from error
    except CommandError as error:
        message = f"The job was not submitted: {error.message}."
        raise SubmissionError(message, error.hint, argv=error.argv) from error
    said = "\n".join(part for part in (done.stdout_text.strip(), done.stderr_text) if part)
    taken = parse_answer(done.stdout_text) if done.returncode == 0 else None
    if taken is None:
        message, hint = _refusal(done.returncode, said)
        raise SubmissionError(message, hint, argv=done.argv, returncode=done.returncode, said=said)
    record = CommandRecord(done.argv, started_at_s, done.duration_s, done.returncode, said)
    messages = "\n".join(part for part in (taken.remarks, done.stderr_text) if part)
    return Submitted(taken.id, taken.cluster or request.cluster, messages, record)


async def forecast(runner: Runner, request: SubmitRequest) -> Forecast:
    """Ask `sbatch --test-only` in the request's folder.

    Raises:
        SubmissionError: see `Submission.forecast`.
    """
    env = environment.without_slurm() | dict(request.environment) | {"SLURM_TIME_FORMAT": "%s"}
    script = os.path.abspath(request.script_path)  # noqa: PTH100 - it shall not resolve links
    words = argv.submit(("--test-only", *request.options), script, request.arguments, cluster=request.cluster)
    started_at_s = time.time()
    try:
        done = await runner.act("sbatch", words, env=env, cwd=request.work_dir or None)
    except CommandError as error:
        raise SubmissionError(f"{error.message}.", error.hint, argv=error.argv) from error
    said = "\n".join(part for part in (done.stdout_text.strip(), done.stderr_text) if part)
    answer = start_test.parse_answer(said) if done.returncode == 0 else None
    if answer is None:
        message, hint = _refusal(done.returncode or 1, said)
        raise SubmissionError(message, hint, argv=done.argv, returncode=done.returncode, said=said)
    return Forecast(
        answer.start_s,
        answer.nodes,
        answer.partition,
        answer.cpus,
        answer.preempts,
        answer.remarks,
        CommandRecord(done.argv, started_at_s, done.duration_s, done.returncode, said),
    )


def _refusal(returncode: int, said: str) -> tuple[str, str]:
    """A sentence for the user, and what can be done."""
    if returncode == 0:
        return f"sbatch gave no job id. It said: {said or 'nothing'}", UNCLEAR
    if "timed out" in said.lower():
        return f"sbatch got no answer from slurmctld: {last_words(said)}", UNCLEAR
    told, hint = explained(said)
    return "\n".join(part for part in (said or f"exit code {returncode}", told) if part), hint


async def stored_script(runner: Runner, accounting: AccountingReader, target: Target) -> StoredScript | None:
    """The script from slurmctld, else from accounting, with the submit line where that is kept."""
    text, source = await _from_controller(runner, target), "slurmctld"
    if text is None:
        text, source = await _from_accounting(runner, target), "accounting"
    if text is None:
        return None
    line = await accounting.submit_line(target)
    missing: tuple[str, ...] = ("the environment that it was submitted with",)
    if not line:
        missing = ("options and arguments given on the command line, if any", *missing)
    return StoredScript(text, source, missing, line)


async def _from_controller(runner: Runner, target: Target) -> str | None:
    try:
        done = await runner.raw_query("scontrol", argv.write_script(target))
    except QueryError:
        return None
    # It ends with 0 even where it gives no script.
    failed = done.returncode != 0 or done.stdout.startswith(b"job script retrieval failed")
    return None if failed or not done.stdout.strip() else done.stdout_text


async def _from_accounting(runner: Runner, target: Target) -> str | None:
    try:
        done = await runner.query("sacct", argv.stored_script(target, since_option(target.submit_time_s)))
    except QueryError:
        return None
    return parse_script(done.stdout_text)
