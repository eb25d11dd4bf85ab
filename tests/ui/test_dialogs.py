"""The dialogs that ask before something is done to jobs, over a program that has nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from textual import events
from textual.app import App
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Button, Input, OptionList

from tfjobtui.actions.command_log import CommandLog
from tfjobtui.model.ids import JobId
from tfjobtui.model.job import Job
from tfjobtui.model.state import JobState
from tfjobtui.monitor.columns import COLUMNS, DEFAULT_COLUMNS
from tfjobtui.monitor.view import JobView, Row
from tfjobtui.schedulers.scheduler import ActionResult, Capabilities, CommandRecord, Target
from tfjobtui.ui.help_content import HelpEntry, HelpGroup
from tfjobtui.ui.job_actions import JobActions
from tfjobtui.ui.screens.change import ChangeDialog, changes_for
from tfjobtui.ui.screens.choose import ChoiceDialog
from tfjobtui.ui.screens.columns import ColumnsDialog
from tfjobtui.ui.screens.command_log import CommandLogScreen, EntriesView
from tfjobtui.ui.screens.confirm import CancelDialog, ConfirmDialog, MessageDialog
from tfjobtui.ui.screens.dialog import Dialog
from tfjobtui.ui.screens.help import HelpScreen
from tfjobtui.ui.selection import select

HOSTILE = "we|ird [red]na=me[/] $x \x1b[2J"
SMALL = (80, 24)
LARGE = (200, 50)


def job(text: str = "123", state: JobState = JobState.RUNNING, name: str = "train", **fields: Any) -> Job:
    job_id = JobId.parse(text)
    values: dict[str, Any] = {
        "user": "me",
        "partition": "gpu",
        "time_limit_s": 7200.0,
        "submit_time_s": 1000,
        **fields,
    }
    return Job(job_id, job_id.key, job_id.job, name, state, state.long, **values)


def rows_of(*jobs: Job) -> list[Row]:
    view = JobView()
    view.show({job.key: job for job in jobs})
    return view.rows


ARRAY = (
    job("11_2"),
    job("11_3"),
    job("11_[4-10%2]", JobState.PENDING),
    job("11_1", JobState.COMPLETED),
)


def ids_of(target: Target) -> str:
    return f"{target.id}{' pending' if target.pending_only else ''}"


class FakeScheduler:
    """Notes what it is asked to do; refuses what is in `refusals`."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Target, ...], Any]] = []
        self.refusals: dict[str, str] = {}
        self.capabilities = Capabilities("fake")

    def _answer(self, verb: str, targets: Sequence[Target], extra: Any = None) -> tuple[ActionResult, ...]:
        self.calls.append((verb, tuple(targets), extra))
        record = CommandRecord((verb, *(str(target.id) for target in targets)), 1000.0, 0.1, 0, "")
        refused = [self.refusals.get(str(target.id), "") for target in targets]
        return tuple(
            ActionResult(target, not words, words, record)
            for target, words in zip(targets, refused, strict=True)
        )

    def action_commands(
        self, action: str, targets: Sequence[Target], signal: str | None = None
    ) -> tuple[tuple[str, ...], ...]:
        words = (*((signal,) if signal else ()), *(ids_of(target) for target in targets))
        return ((action, *words),)

    async def cancel(self, targets: Sequence[Target], signal: str | None = None) -> tuple[ActionResult, ...]:
        return self._answer("cancel", targets, signal)

    async def hold(self, targets: Sequence[Target]) -> tuple[ActionResult, ...]:
        return self._answer("hold", targets)

    async def release(self, targets: Sequence[Target]) -> tuple[ActionResult, ...]:
        return self._answer("release", targets)

    async def requeue(self, targets: Sequence[Target]) -> tuple[ActionResult, ...]:
        return self._answer("requeue", targets)

    async def update(self, target: Target, changes: Mapping[str, str]) -> ActionResult:
        return self._answer("update", [target], dict(changes))[0]


class DialogApp(App[None]):
    """A program with nothing but the dialogs, and the actions that open them."""

    def __init__(self, *known: Job) -> None:
        super().__init__()
        self.scheduler = FakeScheduler()
        self.refreshes = 0
        store = SimpleNamespace(jobs={job.key: job for job in known})
        poller = SimpleNamespace(store=store, action_done=self._action_done)
        services: Any = SimpleNamespace(scheduler=self.scheduler, poller=poller, command_log=CommandLog(None))
        self.actions = JobActions(self, services)
        self.answers: list[object] = []
        self.copied = ""

    def _action_done(self) -> None:
        self.refreshes += 1

    def copy_to_clipboard(self, text: str) -> None:
        self.copied = text

    async def ask(self, dialog: Screen[Any]) -> None:
        await self.push_screen(dialog, self.answers.append)

    @property
    def toasts(self) -> list[str]:
        return [note.message for note in self._notifications]


@pytest.fixture(autouse=True)
def _no_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Dialog, "GUARD_S", 0)


@pytest.fixture(autouse=True)
def _no_tmux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMUX", raising=False)


def screen_text(app: App[Any]) -> str:
    """What is on the screen, as text."""
    return "\n".join(
        "".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips()
    )


def assert_buttons_seen(app: App[Any]) -> None:
    """Every button, and what has the focus, is whole and on the screen."""
    screen = app.screen.region
    for widget in [*app.screen.query(Button), *([app.focused] if app.focused else [])]:
        assert widget.region.area > 0
        assert screen.contains_region(widget.region), f"{widget} at {widget.region}"
        assert app.screen.query_one("#box").region.contains_region(widget.region)


def long_list(count: int) -> list[Row]:
    return rows_of(*(job(str(number), name=HOSTILE) for number in range(1000, 1000 + count)))


def dialogs() -> Iterator[tuple[str, Any]]:
    """Each dialog at its fullest."""
    many = [*rows_of(*ARRAY), *long_list(40)]
    words = f"{HOSTILE}\n" * 60
    group = HelpGroup("List", tuple(HelpEntry("j ↓", "Down", "One job down " * 9, "x") for _ in range(50)))
    log = CommandLog(None)
    log.add(
        "cancel [red]1[/]",
        [CommandRecord(("scancel", HOSTILE, "a b"), 1000.0, 0.25, n % 2, words) for n in range(9)],
    )
    commands = [("scancel", "-v", HOSTILE, *(str(number) for number in range(1000, 1400)))] * 5
    yield "cancel", lambda: CancelDialog(select(many, ARRAY), lambda choice: commands)
    yield (
        "confirm",
        lambda: ConfirmDialog(
            "Requeue", words[:300], [HOSTILE] * 40, yes="Requeue 40 jobs", commands=commands
        ),
    )
    yield "message", lambda: MessageDialog("Cancel: refused", words)
    yield "change", lambda: ChangeDialog(changes_for([*rows_of(job("9", JobState.PENDING, HOSTILE)), *many]))
    yield "choose", lambda: ChoiceDialog("Node [red]", [(str(n), f"{n} {HOSTILE}") for n in range(60)])
    yield "columns", ColumnsDialog
    yield "log", lambda: CommandLogScreen(log)
    yield "help", lambda: HelpScreen([group])


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "200x50"])
@pytest.mark.parametrize(("name", "make"), list(dialogs()), ids=[name for name, _ in dialogs()])
async def test_every_dialog_fits_and_its_escape_key_does_nothing(
    name: str, make: Any, size: tuple[int, int]
) -> None:
    app = DialogApp()
    async with app.run_test(size=size) as pilot:
        await app.ask(make())
        await pilot.pause()
        assert_buttons_seen(app)
        assert "\x1b" not in screen_text(app)
        await pilot.press("escape")
        assert app.answers in ([None], [False])
        assert app.is_running


@pytest.mark.parametrize(("name", "make"), list(dialogs()), ids=[name for name, _ in dialogs()])
async def test_q_closes_the_dialog_and_not_the_program(name: str, make: Any) -> None:
    app = DialogApp()
    async with app.run_test(size=SMALL) as pilot:
        await app.ask(make())
        if isinstance(app.focused, Input):  # there it is a letter
            await pilot.press("shift+tab")
        await pilot.press("q")
        assert app.answers in ([None], [False])
        assert app.is_running


@pytest.mark.parametrize(("name", "make"), list(dialogs()), ids=[name for name, _ in dialogs()])
async def test_pasted_text_triggers_nothing(name: str, make: Any) -> None:
    app = DialogApp()
    async with app.run_test(size=SMALL) as pilot:
        await app.ask(make())
        app.post_message(events.Paste("y\ny\nq\n"))
        await pilot.pause()
        assert not app.answers
        assert len(app.screen_stack) == 2


async def test_names_are_drawn_as_typed() -> None:
    app = DialogApp()
    async with app.run_test(size=LARGE) as pilot:
        await app.ask(CancelDialog(select(rows_of(job("12_[1-10]", JobState.PENDING, HOSTILE)))))
        await pilot.pause()
        text = screen_text(app)
        assert "we|ird [red]na=me[/]" in text
        assert "12_[1-10]" in text


# --- the guard ---------------------------------------------------------------------------------------------


async def test_keys_that_come_right_after_the_opening_do_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Dialog, "GUARD_S", 1000)
    app = DialogApp()
    async with app.run_test(size=SMALL) as pilot:
        await app.ask(ConfirmDialog("Requeue", "Sure?"))
        await pilot.press("y", "tab", "enter", "y")
        assert not app.answers
        await pilot.press("n")
        assert app.answers == [False]


async def test_a_key_in_the_middle_of_a_burst_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Dialog, "GUARD_S", 1e-9)
    monkeypatch.setattr(Dialog, "BURST_S", 1000)
    app = DialogApp()
    async with app.run_test(size=SMALL) as pilot:
        await app.ask(ConfirmDialog("Requeue", "Sure?"))
        dialog = app.screen
        assert isinstance(dialog, Dialog)
        dialog._last_key_at = -5000.0  # long ago
        await pilot.press("y")
        waited = dialog.is_about_to_act  # for what follows
        await pilot.press("e", "s", "enter")
        assert (waited, dialog.is_about_to_act) == (True, False)
        assert not app.answers


async def test_a_single_key_is_taken_with_the_guard_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Dialog, "GUARD_S", 1e-9)
    monkeypatch.setattr(Dialog, "BURST_S", 1e-9)
    app = DialogApp()
    async with app.run_test(size=SMALL) as pilot:
        await app.ask(ConfirmDialog("Requeue", "Sure?"))
        await pilot.press("y")
        await until(pilot, lambda: app.answers == [True])


async def until(pilot: Pilot[Any], done: Any) -> None:
    for _ in range(200):
        if done():
            return
        await pilot.pause(0.01)
    raise AssertionError("it did not come to that")


async def test_enter_presses_the_harmless_button_first() -> None:
    app = DialogApp()
    async with app.run_test(size=SMALL) as pilot:
        await app.ask(ConfirmDialog("Requeue", "Sure?"))
        await pilot.press("enter")
        assert app.answers == [False]
        await app.ask(ConfirmDialog("Requeue", "Sure?"))
        await pilot.press("tab", "enter")
        assert app.answers == [False, True]


# --- actions -----------------------------------------------------------------------------------------------


async def act(app: DialogApp, pilot: Pilot[None], verb: str, rows: list[Row], *keys: str) -> None:
    """Start an action and press keys in its dialog."""
    worker = app.run_worker(getattr(app.actions, verb)(rows), exit_on_error=True)
    await until(pilot, lambda: len(app.screen_stack) > 1 or worker.is_finished)
    await pilot.press(*keys)
    await pilot.pause()


def ids(app: DialogApp, call: int = -1) -> list[str]:
    return [
        f"{target.id}{' pending' if target.pending_only else ''}" for target in app.scheduler.calls[call][1]
    ]


async def test_cancel_asks_and_says_what_it_did() -> None:
    app = DialogApp()
    async with app.run_test(size=SMALL) as pilot:
        await act(app, pilot, "cancel", rows_of(job(name=HOSTILE)), "y")
        assert [call[0] for call in app.scheduler.calls] == ["cancel"]
        assert ids(app) == ["123"]
        assert app.toasts == ["Cancelled 123."]
        assert app.refreshes == 1
        await pilot.pause()


@pytest.mark.parametrize("key", ["n", "q", "escape", "enter"])
async def test_cancel_left_does_nothing(key: str) -> None:
    app = DialogApp()
    async with app.run_test(size=SMALL) as pilot:
        await act(app, pilot, "cancel", rows_of(job()), key)
        assert not app.scheduler.calls
        assert not app.refreshes


async def test_cancel_of_an_array_spares_what_runs_unless_told_otherwise() -> None:
    app = DialogApp(*ARRAY)
    async with app.run_test(size=SMALL) as pilot:
        await act(app, pilot, "cancel", rows_of(*ARRAY), "y")
        assert ids(app) == ["11_[4-10] pending"]
        await act(app, pilot, "cancel", rows_of(*ARRAY), "j", "y")
        assert ids(app) == ["11"]
        assert not app.scheduler.calls[-1][1][0].pending_only


async def test_the_dialog_shows_the_command_that_a_yes_would_run() -> None:
    app = DialogApp(*ARRAY)
    async with app.run_test(size=SMALL) as pilot:
        worker = app.run_worker(app.actions.cancel(rows_of(*ARRAY)))
        await until(pilot, lambda: len(app.screen_stack) > 1)
        await pilot.pause()
        assert "$ cancel '11_[4-10] pending'" in screen_text(app)
        await pilot.press("j")
        await until(pilot, lambda: "$ cancel 11 " in screen_text(app))
        await pilot.press("tab", "tab", "tab", "down")
        await until(pilot, lambda: "$ cancel TERM 11_2 11_3" in screen_text(app))
        await pilot.press("n")
        await worker.wait()
        worker = app.run_worker(app.actions.requeue(rows_of(job("30"), job("31"))))
        await until(pilot, lambda: "$ requeue 31 30" in screen_text(app))
        await pilot.press("n")
        await worker.wait()


async def test_the_question_about_an_array_counts_what_the_filter_hides() -> None:
    app = DialogApp(*ARRAY)
    async with app.run_test(size=SMALL) as pilot:
        worker = app.run_worker(app.actions.cancel(rows_of(ARRAY[2])))
        await until(pilot, lambda: len(app.screen_stack) > 1)
        await pilot.pause()
        text = screen_text(app)
        assert "only the 7 waiting tasks" in text
        assert "the whole array, with its 2 running" in text
        await pilot.press("n")
        await worker.wait()


async def test_one_question_for_all_arrays_and_the_others_with_them() -> None:
    rows = rows_of(*ARRAY, job("20_[1-5]", JobState.PENDING), job("30"), job("31", JobState.FAILED))
    app = DialogApp(*ARRAY)
    async with app.run_test(size=SMALL) as pilot:
        worker = app.run_worker(app.actions.cancel(rows))
        await until(pilot, lambda: len(app.screen_stack) > 1)
        await pilot.pause()
        text = screen_text(app)
        assert "3 jobs:" in text
        assert "Left out: 1 that ended already." in text
        await pilot.press("y")
        await worker.wait()
        assert sorted(ids(app)) == ["11_[4-10] pending", "20_[1-5] pending", "30"]


async def test_a_signal_goes_only_to_what_runs() -> None:
    app = DialogApp(*ARRAY)
    async with app.run_test(size=SMALL) as pilot:
        await act(app, pilot, "cancel", rows_of(*ARRAY))
        app.screen.query_one("#signal", OptionList).focus()
        await pilot.press("j", "j")
        await pilot.pause()
        assert "Send SIGUSR1" in str(app.screen.query_one("#yes", Button).label)
        await pilot.press("y")
        await pilot.pause()
        assert app.scheduler.calls[-1][2] == "USR1"
        assert sorted(ids(app)) == ["11_2", "11_3"]


async def test_a_refresh_does_not_change_the_target() -> None:
    rows = rows_of(job())
    app = DialogApp()
    async with app.run_test(size=SMALL) as pilot:
        await act(app, pilot, "cancel", rows)
        rows[:] = rows_of(job("999"))
        await pilot.press("y")
        await pilot.pause()
        assert ids(app) == ["123"]


async def test_a_refusal_is_shown_in_the_commands_own_words_and_can_be_copied() -> None:
    words = "scancel: error: Kill job error on job id 123: Access/permission denied [/]"
    app = DialogApp()
    app.scheduler.refusals["123"] = words
    async with app.run_test(size=SMALL) as pilot:
        await act(app, pilot, "cancel", rows_of(job(), job("124")), "y")
        await until(pilot, lambda: isinstance(app.screen, MessageDialog))
        await pilot.pause()
        text = screen_text(app)
        assert "Done for 1 of 2 jobs." in text
        assert "Access/permission denied [/]" in text
        await pilot.press("y")
        assert words in app.copied
        await pilot.press("enter")
        assert len(app.screen_stack) == 1
        assert app.refreshes == 1


async def test_nothing_is_asked_about_what_has_ended() -> None:
    app = DialogApp()
    async with app.run_test(size=SMALL) as pilot:
        ended = rows_of(job(state=JobState.COMPLETED))
        for verb in ("cancel", "hold", "release", "change"):
            await act(app, pilot, verb, ended)
            assert len(app.screen_stack) == 1
        assert len(app.toasts) == 4
        assert not app.scheduler.calls


async def test_hold_and_release_of_one_job_need_no_question() -> None:
    app = DialogApp()
    async with app.run_test(size=SMALL) as pilot:
        waiting = rows_of(job(state=JobState.PENDING))
        await act(app, pilot, "hold", waiting)
        await act(app, pilot, "release", waiting)
        assert [call[0] for call in app.scheduler.calls] == ["hold", "release"]


async def test_hold_of_several_asks_and_takes_of_an_array_what_waits() -> None:
    app = DialogApp(*ARRAY)
    async with app.run_test(size=SMALL) as pilot:
        await act(app, pilot, "hold", rows_of(*ARRAY, job("30", JobState.PENDING)), "y")
        assert sorted(ids(app)) == ["11_[4-10]", "30"]


async def test_requeue_always_asks_and_says_what_becomes_of_the_log() -> None:
    app = DialogApp()
    async with app.run_test(size=SMALL) as pilot:
        await act(app, pilot, "requeue", rows_of(job()))
        await pilot.pause()
        assert "log is emptied" in screen_text(app)
        await pilot.press("y")
        await pilot.pause()
        assert [call[0] for call in app.scheduler.calls] == ["requeue"]
        await act(app, pilot, "requeue", rows_of(job(state=JobState.PENDING)))
        assert "waits already" in app.toasts[-1]


# --- changing ----------------------------------------------------------------------------------------------


async def test_the_time_limit_is_shown_checked_and_changed() -> None:
    app = DialogApp()
    async with app.run_test(size=SMALL) as pilot:
        await act(app, pilot, "change", rows_of(job(state=JobState.PENDING)))
        await pilot.pause()
        entry = app.screen.query_one("#value", Input)
        assert entry.value == "02:00:00"
        assert entry.has_focus
        await pilot.press(*"1:30")  # takes the place of the old value
        await pilot.pause()
        assert "1 minutes and 30 seconds" in screen_text(app).replace("\n", " ")
        await pilot.press("ctrl+u", *"soon", "enter")
        await pilot.pause()
        assert "not a time" in screen_text(app)
        assert not app.scheduler.calls
        await pilot.press("ctrl+u", *"90m", "enter")
        await pilot.pause()
        assert app.scheduler.calls[-1][2] == {"TimeLimit": "01:30:00"}


async def test_up_and_down_choose_the_field_while_the_value_is_typed() -> None:
    app = DialogApp()
    async with app.run_test(size=SMALL) as pilot:
        await act(app, pilot, "change", rows_of(job("7", JobState.PENDING, qos="normal")))
        assert "Change time limit of job 7 (enter)" in screen_text(app)
        await pilot.press("down", "down", "up", "down")
        await pilot.pause()
        assert "Change QOS of job 7 (enter)" in screen_text(app)
        await pilot.press(*"high", "enter")  # takes the place of the old value
        await pilot.pause()
        assert app.scheduler.calls[-1][2] == {"QOS": "high"}


async def test_ctrl_c_in_a_field_leaves_the_dialog() -> None:
    app = DialogApp()
    async with app.run_test(size=SMALL) as pilot:
        await app.ask(ChangeDialog(changes_for(rows_of(job("7", JobState.PENDING)))))
        await pilot.press("ctrl+c")
        assert app.answers == [None]


async def test_only_what_can_be_changed_in_the_state_is_offered() -> None:
    running = {field.name for field in changes_for(rows_of(job())).fields}
    assert "TimeLimit" in running
    assert "Partition" not in running
    assert "ArrayTaskThrottle" not in running
    assert "ArrayTaskThrottle" in {field.name for field in changes_for(rows_of(*ARRAY)).fields}


async def test_the_same_change_for_several_goes_to_those_that_it_fits() -> None:
    app = DialogApp()
    async with app.run_test(size=SMALL) as pilot:
        rows = rows_of(job("1", JobState.PENDING), job("2", JobState.PENDING, partition="cpu"), job("3"))
        await act(app, pilot, "change", rows, "down")
        await pilot.pause()
        entry = app.screen.query_one("#value", Input)
        assert entry.value == ""
        assert "Applies to 2 of the 3 jobs" in screen_text(app)
        assert "Change partition of 3 jobs (enter)" in screen_text(app)
        await pilot.press(*"gpu", "enter")
        await pilot.pause()
        assert sorted(ids(app, call)[0] for call in range(2)) == ["1", "2"]
        assert len(app.scheduler.calls) == 2


async def test_an_unchanged_value_is_not_sent() -> None:
    app = DialogApp()
    async with app.run_test(size=SMALL) as pilot:
        await act(app, pilot, "change", rows_of(job(state=JobState.PENDING)), "enter")
        await pilot.pause()
        assert "has this value already" in screen_text(app)
        assert not app.scheduler.calls


# --- choosing, columns, command log, help ------------------------------------------------------------------


async def test_a_choice_by_keys_and_by_letters() -> None:
    app = DialogApp()
    async with app.run_test(size=SMALL) as pilot:
        choices = [("", "none [red]"), ("g1", "gpu01"), ("g2", "gpu02")]
        await app.ask(ChoiceDialog("Node", choices, current="g1"))
        await pilot.press("j", "enter")
        await app.ask(ChoiceDialog("Node", choices))
        await pilot.press("slash", *"u01")
        await pilot.pause()
        assert "gpu02" not in screen_text(app)
        await pilot.press("enter")
        await app.ask(ChoiceDialog("Node", choices))
        await pilot.press("slash", "q", "escape")  # the first escape drops the filter
        await pilot.press("enter")
        assert app.answers == ["g2", "g1", ""]


async def test_columns_are_shown_hidden_and_moved() -> None:
    app = DialogApp()
    async with app.run_test(size=SMALL) as pilot:
        await app.ask(ColumnsDialog(("id", "name", "state")))
        await pilot.press("j", "space", "K", "space", "enter")
        assert app.answers == [("name", "id", "state")]
        await app.ask(ColumnsDialog(("id",)))
        await pilot.press("space", "enter")  # the last one stays
        await app.ask(ColumnsDialog(("id",)))
        await pilot.press("r", "enter")
        assert app.answers[1:] == [("id",), DEFAULT_COLUMNS]
        assert set(DEFAULT_COLUMNS) < set(COLUMNS)


async def test_the_command_log_shows_the_newest_and_copies_its_command(tmp_path: Path) -> None:
    earlier = CommandLog(tmp_path / "log" / "commands.jsonl")
    earlier.add("hold 5", [CommandRecord(("scontrol", "hold", "5"), 1000.0, 0.1, 0, "")])
    log = CommandLog(earlier.path)
    output = "scancel: error: [red]no[/]"
    log.add("cancel 6", [CommandRecord(("scancel", "a b"), 2000.0, 0.1, 1, output)])
    app = DialogApp()
    async with app.run_test(size=SMALL) as pilot:
        await app.ask(CommandLogScreen(log))
        await pilot.pause()
        view = app.screen.query_one(EntriesView)
        assert output in view.plain
        assert view.plain.index("scontrol hold 5") < view.plain.index("scancel 'a b'")
        await pilot.press("y")
        assert app.copied == "scancel 'a b'"
        await pilot.press("k", "y")
        assert app.copied == "scontrol hold 5"
        await pilot.press("at")
        assert len(app.screen_stack) == 1


async def test_the_help_of_the_list_has_the_grammar_of_the_filter() -> None:
    app = DialogApp()
    async with app.run_test(size=LARGE) as pilot:
        group = HelpGroup("List", (HelpEntry("j ↓", "Down", "One job down [red]", "list.down"),))
        await app.ask(HelpScreen([group]))
        await pilot.pause()
        text = screen_text(app)
        assert "One job down [red]" in text
        assert "field:value" in text
        await pilot.press("question_mark")
        assert len(app.screen_stack) == 1


def test_every_binding_of_a_dialog_can_be_explained() -> None:
    for kind in (
        Dialog,
        CancelDialog,
        ConfirmDialog,
        MessageDialog,
        ChangeDialog,
        ChoiceDialog,
        ColumnsDialog,
    ):
        for binding in kind.BINDINGS:
            assert not isinstance(binding, tuple)
            assert binding.id
            assert binding.description
            assert binding.tooltip
