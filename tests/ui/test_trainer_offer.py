"""Offering to install TensorFlow before something is submitted that needs it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.actions.fakes import FakeScheduler, job
from tests.ui.screens import until
from tests.ui.test_dialogs import LARGE, DialogApp
from tfjobtui import directives
from tfjobtui.actions import trainer_setup
from tfjobtui.actions.submit import SubmitPlan, plan_template
from tfjobtui.model.ids import JobId
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.scheduler import Capabilities, CommandRecord, Submitted
from tfjobtui.templates import catalogue
from tfjobtui.ui.screens.choose import ChoiceDialog
from tfjobtui.ui.trainer_offer import with_trainer

TEMPLATES = catalogue.load([catalogue.shipped_folder()])


class Case:
    """A program that submits the template `train` on a machine without TensorFlow."""

    def __init__(self, tmp_path: Path, *known: Any) -> None:
        self.app = DialogApp(*known)
        self.services: Any = self.app.actions._services
        self.services.scheduler = FakeScheduler()
        self.services.scheduler.capabilities = Capabilities("local", runs_here=True)
        self.sent: list[SubmitPlan] = []
        self.plan = plan_template(catalogue.find(TEMPLATES, "train"), {}, {}, str(tmp_path))
        self.results: list[SubmitPlan | None] = []

    async def send(self, plan: SubmitPlan) -> Submitted | None:
        self.sent.append(plan)
        return Submitted(JobId(12), None, "", CommandRecord(("sbatch",), 0.0, 0.0, 0))

    async def ask(self) -> None:
        self.results.append(await with_trainer(self.app, self.services, self.plan, TEMPLATES, self.send))

    async def choose(self, pilot: Pilot[Any], *keys: str) -> None:
        self.app.run_worker(self.ask())
        await until(pilot, lambda: isinstance(self.app.screen, ChoiceDialog), "the offer")
        await pilot.pause(ChoiceDialog.GUARD_S)
        for key in keys:
            await pilot.press(key)
        await until(pilot, lambda: bool(self.results), "an answer")


@pytest.fixture(autouse=True)
def _no_tensorflow(monkeypatch: pytest.MonkeyPatch) -> None:
    async def is_missing(*_: Any) -> bool:
        return True

    monkeypatch.setattr(trainer_setup, "is_missing", is_missing)


async def test_yes_submits_the_installation_and_what_waits_for_it(tmp_path: Path) -> None:
    case = Case(tmp_path)
    async with case.app.run_test(size=LARGE) as pilot:
        await case.choose(pilot, "enter")
    assert [plan.template for plan in case.sent] == ["trainer-setup"]
    (plan,) = case.results
    assert plan is not None
    options = {item.name: item.value for item in directives.read(plan.script)}
    assert options["dependency"] == "afterok:12"
    assert plan.values["VENV"] == str(trainer_setup.environment_folder())


async def test_an_installation_that_runs_is_waited_for(tmp_path: Path) -> None:
    case = Case(tmp_path, job("7", JobState.RUNNING, name="trainer-setup"))
    async with case.app.run_test(size=LARGE) as pilot:
        await case.choose(pilot, "enter")
    assert case.sent == []
    (plan,) = case.results
    assert plan is not None
    assert "afterok:7" in plan.script


async def test_it_can_be_submitted_as_it_is(tmp_path: Path) -> None:
    case = Case(tmp_path)
    async with case.app.run_test(size=LARGE) as pilot:
        await case.choose(pilot, "j", "enter")
    assert case.results == [case.plan]


async def test_leaving_goes_back(tmp_path: Path) -> None:
    case = Case(tmp_path)
    async with case.app.run_test(size=LARGE) as pilot:
        await case.choose(pilot, "escape")
    assert case.results == [None]


async def test_where_jobs_run_elsewhere_nothing_is_asked(tmp_path: Path) -> None:
    case = Case(tmp_path)
    case.services.scheduler.capabilities = Capabilities("Slurm")
    async with case.app.run_test(size=LARGE):
        await case.ask()
    assert case.results == [case.plan]
