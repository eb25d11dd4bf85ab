"""Submitting a template, and submitting a job again, over a program that has nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Button, Input

from tests.ui.test_dialogs import (
    LARGE,
    SMALL,
    DialogApp,
    FakeScheduler,
    assert_buttons_seen,
    job,
    rows_of,
    screen_text,
    until,
)
from tfjobtui.actions.command_log import CommandLog
from tfjobtui.errors import QueryError, SubmissionError, UsageError
from tfjobtui.model.ids import JobId
from tfjobtui.runs.records import RunRecords
from tfjobtui.schedulers.scheduler import (
    CommandRecord,
    Partition,
    StoredScript,
    SubmitRequest,
    Submitted,
    Target,
)
from tfjobtui.templates import catalogue
from tfjobtui.templates.catalogue import Template
from tfjobtui.ui import foreground, submit_form
from tfjobtui.ui.job_actions import JobActions
from tfjobtui.ui.screens.choose import ChoiceDialog
from tfjobtui.ui.screens.confirm import MessageDialog
from tfjobtui.ui.screens.dialog import Dialog
from tfjobtui.ui.screens.resubmit import ResubmitScreen
from tfjobtui.ui.screens.submit import SubmitScreen
from tfjobtui.ui.submit_form import FormState, fields_of, make_plan, problems
from tfjobtui.ui.widgets.lines_view import LinesView

TEMPLATE = """#!/bin/bash
#SBATCH --job-name=train
#SBATCH --time=00:30:00
#TFJOB title = "Train [red]it[/]"
#TFJOB param EPOCHS int default=12 min=1 max=100 help="Passes over the data."
#TFJOB param DEVICE choice default=auto choices=auto,cpu,gpu help="Where."
# >>> parameters
EPOCHS="${EPOCHS:-12}"
DEVICE="${DEVICE:-auto}"
# <<< parameters
echo "$EPOCHS $DEVICE"
"""


class SubmitScheduler(FakeScheduler):
    """Takes submissions, or refuses them; has three partitions and one script."""

    def __init__(self) -> None:
        super().__init__()
        self.refusal = ""
        self.requests: list[tuple[SubmitRequest, str]] = []
        self.script: StoredScript | None = None
        self.has_partitions = True

    async def partitions(self) -> tuple[Partition, ...]:
        if not self.has_partitions:
            raise QueryError("sinfo gave no answer")
        return tuple(Partition(name, name == "gpu", True, 3600.0, 4) for name in ("cpu", "gpu", "long"))

    async def submit(self, request: SubmitRequest) -> Submitted:
        self.requests.append((request, Path(request.script_path).read_text()))
        if self.refusal:
            raise SubmissionError(self.refusal)
        record = CommandRecord(("sbatch", request.script_path), 1000.0, 0.1, 0, "")
        return Submitted(JobId(77), None, "", record)

    async def stored_script(self, target: Target) -> StoredScript | None:
        self.asked = target
        return self.script

    async def details(self, target: Target) -> None:
        return None


class SubmitApp(DialogApp):
    """The same with services that can submit."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.scheduler: SubmitScheduler = SubmitScheduler()
        self.results: list[Submitted | None] = []
        poller = SimpleNamespace(store=SimpleNamespace(jobs={}), action_done=self._action_done)
        services: Any = SimpleNamespace(
            scheduler=self.scheduler,
            poller=poller,
            command_log=CommandLog(None),
            records=RunRecords(folder / "records"),
            config=SimpleNamespace(templates=SimpleNamespace(folders=())),
        )
        self.actions = JobActions(self, services)

    async def submit(self) -> None:
        self.results.append(await self.actions.submit())

    async def resubmit(self, row: Any) -> None:
        self.results.append(await self.actions.resubmit(row))


@pytest.fixture(autouse=True)
def _no_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Dialog, "GUARD_S", 0)


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one template, in place of the shipped ones; the work is done in another."""
    folder = tmp_path / "shipped"
    folder.mkdir()
    (folder / "train.sbatch").write_text(TEMPLATE)
    monkeypatch.setattr(catalogue, "shipped_folder", lambda: folder)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return folder


@pytest.fixture
def app(tmp_path: Path, shipped: Path) -> Iterator[SubmitApp]:
    yield SubmitApp(tmp_path)
    shutil.rmtree(tmp_path / "records", ignore_errors=True)


async def open_form(app: SubmitApp, pilot: Pilot[None]) -> SubmitScreen:
    app.run_worker(app.submit())
    await until(pilot, lambda: isinstance(app.screen, SubmitScreen) and app.focused is not None)
    await pilot.pause()
    screen = app.screen
    assert isinstance(screen, SubmitScreen)
    return screen


async def fill(app: SubmitApp, pilot: Pilot[None], field: str, value: str) -> None:
    app.screen.query_one(f"#{field}", Input).value = value
    await pilot.pause()


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "200x50"])
async def test_the_form_fits_and_shows_the_script(app: SubmitApp, size: tuple[int, int]) -> None:
    async with app.run_test(size=size) as pilot:
        await open_form(app, pilot)
        assert_buttons_seen(app)
        assert "Train [red]it[/]" in screen_text(app)
        if size is SMALL:
            assert 'echo "$EPOCHS $DEVICE"' not in screen_text(app)
            await pilot.press("ctrl+t")
            await pilot.pause()
            assert_buttons_seen(app)
        assert 'echo "$EPOCHS $DEVICE"' in screen_text(app)
        await pilot.press("escape")
        await pilot.pause()
        assert app.results == [None]
        assert not app.scheduler.requests


async def test_what_is_shown_is_what_runs(app: SubmitApp) -> None:
    async with app.run_test(size=LARGE) as pilot:
        screen = await open_form(app, pilot)
        await fill(app, pilot, "option-job-name", "we|ird [red]na=me")
        await fill(app, pilot, "option-time", "90m")
        await fill(app, pilot, "parameter-EPOCHS", "3")
        shown = screen.query_one("#preview", LinesView).plain
        await pilot.press("ctrl+s")
        await until(pilot, lambda: app.results)
        request, script = app.scheduler.requests[0]
        assert shown == script
        assert "EPOCHS=3" in script
        assert '--job-name="we|ird [red]na=me"' in script
        assert "--time=01:30:00" in script
        assert request.work_dir == str(Path.cwd())
        result = app.results[0]
        assert result is not None
        assert result.id == JobId(77)
        assert "Submitted job 77." in app.toasts[-1]
        assert app.refreshes == 1


async def test_an_error_stands_at_its_field_and_nothing_is_submitted(app: SubmitApp) -> None:
    async with app.run_test(size=LARGE) as pilot:
        screen = await open_form(app, pilot)
        await fill(app, pilot, "parameter-EPOCHS", "1000")
        assert "EPOCHS is at most 100" in screen_text(app)
        screen.query_one("#option-qos").focus()
        await pilot.press("ctrl+s")
        await pilot.pause()
        assert not app.scheduler.requests
        assert app.focused is screen.query_one("#parameter-EPOCHS")


async def test_how_a_time_is_read_is_said(app: SubmitApp) -> None:
    async with app.run_test(size=SMALL) as pilot:
        screen = await open_form(app, pilot)
        screen.query_one("#option-time").focus()
        await fill(app, pilot, "option-time", "1:30")
        await pilot.pause()
        assert "1 minutes and 30 seconds" in screen_text(app)


async def test_a_refusal_is_shown_and_the_form_comes_back_as_it_was(app: SubmitApp) -> None:
    app.scheduler.refusal = "sbatch: error: invalid partition specified: [nopart]"
    async with app.run_test(size=SMALL) as pilot:
        await open_form(app, pilot)
        await fill(app, pilot, "option-partition", "nopart")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: isinstance(app.screen, MessageDialog))
        await pilot.pause()
        assert "invalid partition specified: [nopart]" in screen_text(app)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, SubmitScreen) and app.focused is not None)
        assert app.screen.query_one("#option-partition", Input).value == "nopart"
        await pilot.press("escape")
        await pilot.pause()
        assert app.results == [None]


async def test_values_are_kept_for_the_next_opening(app: SubmitApp) -> None:
    async with app.run_test(size=SMALL) as pilot:
        await open_form(app, pilot)
        await fill(app, pilot, "parameter-EPOCHS", "7")
        await pilot.press("escape")
        await open_form(app, pilot)
        assert app.screen.query_one("#parameter-EPOCHS", Input).value == "7"
        await pilot.press("escape")


@pytest.mark.parametrize("has_partitions", [True, False])
async def test_partitions_can_be_chosen_or_typed(app: SubmitApp, has_partitions: bool) -> None:
    app.scheduler.has_partitions = has_partitions
    async with app.run_test(size=SMALL) as pilot:
        screen = await open_form(app, pilot)
        entry = screen.query_one("#option-partition", Input)
        entry.focus()
        if has_partitions:
            await until(pilot, lambda: screen._partitions)
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
            await pilot.press("j", "enter")
            await pilot.pause()
            assert entry.value == "cpu"
        else:
            await pilot.press(*"long")
            assert entry.value == "long"
        await pilot.press("escape")


async def test_of_several_templates_one_is_chosen_and_a_broken_one_shows_its_error(
    app: SubmitApp, shipped: Path
) -> None:
    (shipped / "another.sbatch").write_text(TEMPLATE.replace("Train", "Another"))
    (shipped / "bad.sbatch").write_text("no script")
    async with app.run_test(size=SMALL) as pilot:
        app.run_worker(app.submit())
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        await pilot.pause()
        text = screen_text(app)
        assert "Another [red]it[/]" in text
        assert "✗" in text
        await pilot.press("k", "enter")  # the broken one, above the usual one
        await until(pilot, lambda: "bad is broken" in screen_text(app))
        await pilot.press("ctrl+s")
        await pilot.pause()
        assert not app.scheduler.requests
        await pilot.press("escape")


async def test_a_script_that_was_edited_runs_as_it_is(
    app: SubmitApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    def edit(_app: object, argv: list[str], **_: object) -> int:
        path = Path(argv[-1])
        path.write_text(path.read_text() + "echo by hand\n")
        return 0

    monkeypatch.setenv("VISUAL", "edit")
    monkeypatch.setattr(foreground, "run", edit)
    async with app.run_test(size=LARGE) as pilot:
        await open_form(app, pilot)
        await pilot.press("ctrl+e")
        await pilot.pause()
        assert "echo by hand" in screen_text(app)
        await pilot.press("ctrl+r")
        await pilot.pause()
        assert "echo by hand" not in screen_text(app)
        await pilot.press("ctrl+e", "ctrl+s")
        await until(pilot, lambda: app.results)
        assert app.scheduler.requests[0][1].endswith("echo by hand\n")


async def test_an_editor_that_takes_the_file_away_is_told(
    app: SubmitApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VISUAL", "edit")
    monkeypatch.setattr(foreground, "run", lambda _app, argv, **_: Path(argv[-1]).unlink())
    async with app.run_test(size=SMALL) as pilot:
        await open_form(app, pilot)
        await pilot.press("ctrl+e")
        await pilot.pause()
        assert "No such file" in app.toasts[-1]
        monkeypatch.setattr(foreground, "run", lambda *_, **__: 1)
        await pilot.press("ctrl+e")
        await pilot.pause()
        assert app.toasts[-1] == "The editor ended with 1: the script is as it was."


async def test_down_goes_from_field_to_field_where_the_form_scrolls(app: SubmitApp) -> None:
    async with app.run_test(size=(80, 14)) as pilot:
        await open_form(app, pilot)
        fields = [entry.id for entry in app.screen.query(Input)]
        await pilot.press(*["down"] * (len(fields) - 1))
        assert app.focused is not None
        assert app.focused.id == fields[-1]
        await pilot.press("up")
        assert app.focused.id == fields[-2]


def test_the_help_of_a_parameter_tells_its_limits_in_full(shipped: Path) -> None:
    (shipped / "train.sbatch").write_text(
        TEMPLATE.replace("min=1 max=100", "min=0 max=2147483647").replace("default=12", "default=0")
    )
    helps = {item.label: item.help for item in fields_of(catalogue.read(shipped / "train.sbatch"))}
    assert helps["EPOCHS"] == "Passes over the data. (a whole number from 0 to 2147483647; usually 0)"
    assert helps["DEVICE"] == "Where. (one of auto, cpu, gpu; usually auto)"


async def test_pasted_keys_do_not_submit(app: SubmitApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Dialog, "GUARD_S", 1e-9)
    monkeypatch.setattr(Dialog, "BURST_S", 1000)
    async with app.run_test(size=SMALL) as pilot:
        screen = await open_form(app, pilot)
        await pilot.press("a", "ctrl+s")
        screen.query_one("#submit", Button).focus()
        await pilot.press("enter")
        await pilot.pause()
        assert not screen.is_about_to_act
        assert not app.scheduler.requests
        await pilot.press("escape")


# --- the form without a screen -----------------------------------------------------------------------------


def template(text: str, folder: Path) -> Template:
    path = folder / "t.sbatch"
    path.write_text(text)
    found = catalogue.read(path)
    assert not found.error
    return found


def test_the_form_has_the_templates_options_and_the_usual_ones(tmp_path: Path) -> None:
    text = TEMPLATE.replace(
        "#TFJOB title", "#SBATCH -G 2 --mem-per-gpu=8G --requeue --comment='a b'\n#TFJOB title"
    )
    ids = [item.id for item in fields_of(template(text, tmp_path))]
    assert "option-gpus" in ids
    assert "option-gpus-per-node" not in ids
    assert "option-mem" not in ids
    assert "option-comment" in ids
    assert "option-requeue" not in ids
    assert "option-partition" in ids
    assert ids[-1] == submit_form.FOLDER


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("option-time", "soon"),
        ("option-time", "+30"),
        ("option-partition", "a b"),
        ("option-job-name", "a\nb"),
        ("option-cpus-per-task", "0"),
        ("option-mem", "much"),
        ("option-gpus-per-node", "a100"),
        ("parameter-EPOCHS", "x"),
        ("folder", "/not/there"),
    ],
)
def test_a_value_that_does_not_fit_is_told_at_its_field(tmp_path: Path, field: str, value: str) -> None:
    fields = fields_of(template(TEMPLATE, tmp_path))
    assert list(problems(fields, {field: value})) == [field]


def test_an_option_that_is_emptied_is_taken_out_of_the_script(tmp_path: Path) -> None:
    found = template(TEMPLATE, tmp_path)
    plan = make_plan(found, fields_of(found), {"option-time": "", "option-mem": "4G"})
    assert "--time" not in plan.script
    assert "#SBATCH --mem=4G" in plan.script
    with pytest.raises(UsageError):
        make_plan(found, fields_of(found), {"option-mem": "x"})


def test_the_users_own_defaults_stand_in_the_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"ACCOUNT": "lab", "WCKEY": "w1", "TIMELIMIT": "5", "EXCLUSIVE": ""}.items():
        monkeypatch.setenv(f"SBATCH_{name}", value)
    found = template(TEMPLATE, tmp_path)
    fields = {item.id: item for item in fields_of(found)}
    assert fields["option-account"].default == "lab"
    assert "SBATCH_ACCOUNT" in fields["option-account"].help
    assert fields["option-wckey"].default == "w1"
    plan = make_plan(found, tuple(fields.values()), {})
    for line in ("--account=lab", "--wckey=w1", "--exclusive"):
        assert f"#SBATCH {line}\n" in plan.script
    (note,) = plan.notes
    assert note.startswith("SBATCH_TIMELIMIT=5 is not used: the script says --time=")
    plan = make_plan(found, tuple(fields.values()), {"option-account": "", "option-wckey": "w2"})
    assert "--account" not in plan.script
    assert "#SBATCH --wckey=w2\n" in plan.script


def test_the_state_keeps_the_templates_apart(tmp_path: Path) -> None:
    state = FormState()
    first = template(TEMPLATE, tmp_path)
    state.of(first)["option-mem"] = "4G"
    assert state.of(first) == {"option-mem": "4G"}


# --- again -------------------------------------------------------------------------------------------------


async def test_a_job_is_submitted_again_after_a_look(app: SubmitApp, tmp_path: Path) -> None:
    app.scheduler.script = StoredScript("#!/bin/bash\necho [red]\n", "Slurm's own copy")
    rows = rows_of(job("9", name="we|ird", work_dir=str(tmp_path), command=str(tmp_path / "a b.sh")))
    async with app.run_test(size=SMALL) as pilot:
        app.run_worker(app.resubmit(rows[0]))
        await until(pilot, lambda: isinstance(app.screen, ResubmitScreen))
        await pilot.pause()
        assert_buttons_seen(app)
        text = screen_text(app)
        assert "Submit job 9 again" in text
        assert "echo [red]" in text
        assert "Slurm's own copy" in text
        assert "cannot be had back" in text.replace("\n", " ")
        await pilot.press("y")
        await until(pilot, lambda: app.results)
        assert app.scheduler.requests[0][1] == app.scheduler.script.text


@pytest.mark.parametrize("key", ["n", "escape", "q"])
async def test_a_look_alone_submits_nothing(app: SubmitApp, tmp_path: Path, key: str) -> None:
    app.scheduler.script = StoredScript("#!/bin/bash\n", "Slurm's own copy")
    rows = rows_of(job("9", work_dir=str(tmp_path), command="/x/a.sh"))
    async with app.run_test(size=SMALL) as pilot:
        app.run_worker(app.resubmit(rows[0]))
        await until(pilot, lambda: isinstance(app.screen, ResubmitScreen))
        await pilot.press(key)
        await until(pilot, lambda: app.results)
        assert app.results == [None]
        assert not app.scheduler.requests


async def test_a_script_that_is_lost_is_said(app: SubmitApp) -> None:
    async with app.run_test(size=SMALL) as pilot:
        app.run_worker(app.resubmit(rows_of(job("9"))[0]))
        await until(pilot, lambda: isinstance(app.screen, MessageDialog))
        await pilot.pause()
        assert "cannot be had back" in screen_text(app)
        await pilot.press("escape")
        await until(pilot, lambda: app.results == [None])


async def test_of_an_arrays_row_the_whole_array_is_meant(app: SubmitApp) -> None:
    async with app.run_test(size=SMALL) as pilot:
        rows = rows_of(job("11_2"), job("11_[4-10%2]"))
        app.run_worker(app.resubmit(rows[0]))
        await until(pilot, lambda: isinstance(app.screen, MessageDialog))
        assert app.scheduler.asked.id == JobId(11)
        await pilot.press("escape")
