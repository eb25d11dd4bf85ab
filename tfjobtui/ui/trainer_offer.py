"""Offering to install TensorFlow, where jobs run on this machine and a template would not find it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from textual.app import App

from tfjobtui.actions import trainer_setup
from tfjobtui.actions.submit import SubmitPlan
from tfjobtui.schedulers.scheduler import Submitted
from tfjobtui.templates.catalogue import Template
from tfjobtui.ui.screens.choose import ChoiceDialog
from tfjobtui.ui.services import Services

Send = Callable[[SubmitPlan], Awaitable[Submitted | None]]


async def with_trainer(
    app: App[Any], services: Services, plan: SubmitPlan, templates: Sequence[Template], send: Send
) -> SubmitPlan | None:
    """The plan as it can run here; `None` where the user goes back, or the installation was refused.

    Raises:
        FormatError: the script was changed so that it has no place for the environment.
    """
    template = next((item for item in templates if item.name == plan.template and not item.error), None)
    if template is None or not services.scheduler.capabilities.runs_here:
        return plan
    if not await trainer_setup.is_missing(template, plan.values):
        return plan
    found = trainer_setup.set_up(templates, plan.work_dir)
    wanted = await _ask(app) if found is not None else False
    if found is None or not wanted:
        return None if wanted is None else plan
    job_id = trainer_setup.running_set_up(services.poller.store.jobs.values())
    if job_id is None:
        submitted = await send(found.plan)
        if submitted is None:
            return None
        job_id = submitted.id
    return trainer_setup.after(plan, job_id, found.folder)


async def _ask(app: App[Any]) -> bool | None:
    """Whether to install it; `None` to go back to the form."""
    choices = [
        (True, f"Install it as a job (about {trainer_setup.SIZE_GB} GB; 4 GB with CUDA), then run this"),
        (False, "Submit this as it is"),
    ]
    dialog = ChoiceDialog("TensorFlow was not found for the trainer", choices, is_danger=True)
    wanted: bool | None = await app.push_screen_wait(dialog)
    return wanted
