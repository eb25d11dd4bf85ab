"""Steps inside a running job: a shell, and what its steps have used."""

from __future__ import annotations

import os
from collections.abc import Mapping

from tfjobtui.errors import QueryError
from tfjobtui.schedulers.scheduler import StepUsage, Target
from tfjobtui.schedulers.slurm import argv, environment, sstat
from tfjobtui.schedulers.slurm.failures import known_failure, query_error
from tfjobtui.schedulers.slurm.runner import Runner


def shell_argv(runner: Runner, target: Target, node: str | None) -> tuple[str, ...]:
    """The command for a shell in the job's allocation.

    Raises:
        CommandNotFoundError: there is no srun on this machine.
    """
    command = (os.environ.get("SHELL") or "/bin/bash", "-l")
    return (runner.path("srun"), *argv.shell(target, node, command))


def foreground_environment() -> Mapping[str, str]:
    """The user's environment without what would aim srun at an outer allocation."""
    return environment.without_slurm()


async def step_usage(runner: Runner, target: Target) -> tuple[StepUsage, ...]:
    """What the steps of a running job have used; empty where there are no figures (yet).

    Raises:
        QueryError: Slurm did not answer.
    """
    done = await runner.raw_query("sstat", argv.step_usage(target, sstat.FIELDS))
    steps = sstat.parse_steps(done.stdout_text)
    if not steps and (failure := known_failure(done.stderr_text)) is not None:
        raise QueryError(failure.message, failure.hint)
    if not steps and done.returncode != 0:
        raise query_error(done)
    return steps
