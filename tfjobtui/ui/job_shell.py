"""A shell inside a running job's allocation."""

from __future__ import annotations

from typing import Any

from textual.app import App

from tfjobtui.errors import FormatError
from tfjobtui.model.hostlist import expand
from tfjobtui.model.job import Job
from tfjobtui.model.state import JobState
from tfjobtui.monitor.view import Row
from tfjobtui.schedulers.scheduler import Target
from tfjobtui.ui import foreground
from tfjobtui.ui.services import Services


async def open_shell(app: App[Any], services: Services, row: Row) -> None:
    """Ask for the node where there are several, and give the terminal to the shell until it ends."""
    job = next((job for job in row.jobs if job.state is JobState.RUNNING), row.job)
    refusal = _refusal(services, job)
    if refusal:
        app.notify(refusal, severity="warning", markup=False)
        return
    node = await _choose_node(app, job)
    if node is None:
        return
    argv = services.scheduler.shell_argv(Target.of(job), node or None)
    where = f"job {job.id}" + (f", {node}" if node else "")
    code = foreground.run(
        app,
        argv,
        env=services.scheduler.foreground_environment(),
        before=f"A shell in {where}; it ends with `exit`, and you are back in tfjobtui.",
    )
    services.poller.refresh_now()
    if code:
        app.notify(f"The shell in {where} ended with {code}.", severity="warning", markup=False)


def _refusal(services: Services, job: Job) -> str:
    """Why there can be no shell in this job, in a sentence; empty if there can."""
    if not services.config.jobs.shell:
        return "This site does not want shells to be opened inside jobs (jobs.shell in its configuration)."
    capability = services.scheduler.capabilities.shell
    if not capability:
        return capability.reason
    if job.state is not JobState.RUNNING:
        return f"Job {job.id} is {job.state.long}: a shell needs a running job."
    return ""


async def _choose_node(app: App[Any], job: Job) -> str | None:
    """The node: the only one without a question (empty), the chosen one, or `None` if the user thinks better of it."""
    try:
        nodes = expand(job.nodes)
    except FormatError:
        nodes = ()
    if len(nodes) < 2:
        return ""
    from tfjobtui.ui.screens.choose import ChoiceDialog

    choices = [
        (node, node + ("  (first: runs the script)" if number == 0 else ""))
        for number, node in enumerate(nodes)
    ]
    chosen: str | None = await app.push_screen_wait(
        ChoiceDialog(f"A shell in job {job.id} on which node?", choices)
    )
    return chosen
