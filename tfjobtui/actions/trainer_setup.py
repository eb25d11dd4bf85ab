"""TensorFlow for the trainer, where jobs run on this machine: whether it is there, and a job that installs it.

It is large (1.8 GB; 4 GB with CUDA), so that the program never brings it along. The template `trainer-setup`
installs it into a virtual environment of the user's; what is submitted before it is done waits for that job.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tfjobtui import directives
from tfjobtui.actions.submit import SubmitPlan, plan_template, trainer_path
from tfjobtui.errors import CommandError
from tfjobtui.model.ids import JobId
from tfjobtui.model.job import Job
from tfjobtui.paths import data_dir, is_file
from tfjobtui.process import run
from tfjobtui.templates import block
from tfjobtui.templates.catalogue import Template
from tfjobtui.templates.parameters import SET_TRAINER

TEMPLATE = "trainer-setup"
SIZE_GB = 1.8
"""Without CUDA; with it about 4."""
_TIMEOUT_S = 20.0
_MARK = "tfjobtui-setup"
"""The template writes this file last."""


@dataclass(frozen=True, slots=True)
class SetUp:
    """What an installation would be: its submission, and the folder of the environment."""

    plan: SubmitPlan
    folder: Path


def environment_folder() -> Path:
    """Where the template installs it unless told otherwise."""
    return data_dir() / "trainer"


def installed_environment() -> Path | None:
    """The environment, where the installation was finished."""
    folder = environment_folder()
    return folder if is_file(folder / _MARK) and is_file(folder / "bin" / "python") else None


def known_values(template: Template) -> Mapping[str, str]:
    """Values for a template's parameters that this machine offers: the environment as its VENV."""
    folder = installed_environment()
    has_venv = any(item.name == "VENV" and item.is_shown for item in template.parameters)
    return {"VENV": str(folder)} if folder is not None and has_venv and needs_trainer(template) else {}


def needs_trainer(template: Template) -> bool:
    """Whether a template starts the trainer."""
    return any(item.set_by == SET_TRAINER for item in template.parameters)


async def is_missing(template: Template, values: Mapping[str, str]) -> bool:
    """Whether a job of this template would find no TensorFlow here, by what the template itself tries.

    With a VENV or MODULES the user has settled it; then it is not looked for.
    """
    if not needs_trainer(template) or values.get("VENV") or values.get("MODULES"):
        return False
    for argv in (("tfjob-train", "--check"), ("python3", trainer_path(), "--check")):
        try:
            if (await run(argv, timeout_s=_TIMEOUT_S)).returncode == 0:
                return False
        except CommandError:
            continue
    return True


def set_up(templates: Iterable[Template], work_dir: str) -> SetUp | None:
    """The installation; `None` where its template is not there."""
    template = next((item for item in templates if item.name == TEMPLATE and not item.error), None)
    if template is None:
        return None
    folder = environment_folder()
    values = {"VENV": str(folder), "PYTHON": _base_python()}
    return SetUp(plan_template(template, values, {"output": str(_log_pattern())}, work_dir), folder)


def _log_pattern() -> Path:
    """Not into the folder of the user's work: it is no job of theirs."""
    return data_dir() / "trainer-setup-%j.out"


def _base_python() -> str:
    """The Python that this program's environment was made from: it can make another one."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for name in (version, "python3", "python"):
        path = os.path.join(sys.base_prefix, "bin", name)  # noqa: PTH118
        if is_file(path):
            return path
    return sys.executable


def running_set_up(jobs: Iterable[Job]) -> JobId | None:
    """An installation that has been submitted and has not ended."""
    return next((job.id for job in jobs if job.name == TEMPLATE and not job.state.is_terminal), None)


def with_environment(plan: SubmitPlan, folder: Path) -> SubmitPlan:
    """The submission with this environment as its VENV.

    Raises:
        FormatError: the script no longer has the line for it.
    """
    script = block.fill(plan.script, {"VENV": str(folder)})
    return replace(plan, script=script, values={**plan.values, "VENV": str(folder)})


def after(plan: SubmitPlan, set_up_job: JobId, folder: Path) -> SubmitPlan:
    """The submission with the environment that the installation makes, waiting for its end.

    Raises:
        FormatError: the script no longer has the line for it.
    """
    ready = with_environment(plan, folder)
    found = [item.value for item in directives.read(ready.script) if item.name == "dependency" and item.value]
    waits = ",".join([*found[-1:], f"afterok:{set_up_job}"])
    return replace(
        ready, script=directives.change(ready.script, {"dependency": waits, "kill-on-invalid-dep": "yes"})
    )
