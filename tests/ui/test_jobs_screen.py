"""The jobs screen: what it shows, and what the keys do."""

from __future__ import annotations

import asyncio
import dataclasses
import math
from collections.abc import Callable

import pytest
from textual import events
from textual.widgets import Input

from tests.actions.fakes import FakeScheduler
from tests.jobs import make_job
from tests.ui.screens import check_snapshot, screen_lines, screen_text, until, until_text
from tfjobtui.config import Config, Poll, Table
from tfjobtui.errors import QueryError
from tfjobtui.model.job import ExitCode, Gpus, Job
from tfjobtui.schedulers.scheduler import Capabilities, Capability, QueueAnswer
from tfjobtui.ui.app import TfjobtuiApp
from tfjobtui.ui.screens.jobs import JobsScreen
from tfjobtui.ui.widgets.filter_bar import FilterBar
from tfjobtui.ui.widgets.job_table import JobTable

MakeApp = Callable[..., TfjobtuiApp]


def queue(now: float) -> list[Job]:
    """A queue with one of everything."""
    start = int(now)
    return [
        make_job(
            "5782_[5-100%4]",
            "PENDING",
            name="sweep-lr",
            reason="JobArrayTaskLimit",
            gpus=("a100", 1),
            time_limit_s=7200.0,
            raw_id=5782,
        ),
        make_job(
            "5782_3", name="sweep-lr", start_time_s=start - 300, nodes="gpu02", gpus=("a100", 1), raw_id=5790
        ),
        make_job(
            "5782_4", name="sweep-lr", start_time_s=start - 200, nodes="gpu02", gpus=("a100", 1), raw_id=5791
        ),
        dataclasses.replace(
            make_job(
                "6001",
                name="resnet50-imagenet-4gpu",
                start_time_s=start - 8130,
                nodes="gpu01",
                time_limit_s=28800.0,
                cpus=32,
                memory_bytes=128 << 30,
            ),
            gpus=Gpus((("a100", 4),)),
        ),
        make_job("6002", "PENDING", name="eval", reason="Priority", start_time_s=start + 5400, cpus=2),
        make_job("6003+0", "PENDING", name="het", reason="Resources", partition="cpu"),
        make_job("6004", "PENDING", name="held", reason="JobHeldUser", time_limit_s=math.inf),
        make_job(
            "5990",
            "FAILED",
            name="bad",
            end_time_s=start - 100,
            start_time_s=start - 200,
            exit_code=ExitCode(1),
            nodes="cpu01",
        ),
        make_job(
            "5991", "COMPLETED", name="prep", end_time_s=start - 50, start_time_s=start - 90, nodes="cpu01"
        ),
        make_job(
            "5992",
            "OUT_OF_MEMORY",
            name="big",
            end_time_s=start - 60,
            start_time_s=start - 90,
            exit_code=ExitCode(0, 125),
        ),
        make_job("5993", "NEW_STATE", name="we|ird [red]na=me", start_time_s=start - 30),
    ]


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (200, 50)])
async def test_the_list_in_three_sizes(
    make_app: MakeApp, stopped_clock: float, size: tuple[int, int]
) -> None:
    app = make_app(FakeScheduler(*queue(stopped_clock)))
    async with app.run_test(size=size) as pilot:
        await until_text(pilot, "● 0s ago")
        check_snapshot(app, f"list-{size[0]}x{size[1]}")


async def test_the_line_of_keys_has_whole_ones_and_always_the_help(
    make_app: MakeApp, stopped_clock: float
) -> None:
    app = make_app(FakeScheduler(*queue(stopped_clock)))
    async with app.run_test(size=(40, 20)) as pilot:
        await until_text(pilot, "● 0s ago")
        assert screen_lines(app)[-1].rstrip() == " enter details  l log  ? help  q quit"


async def test_a_filter_that_comes_at_once_is_text_and_not_keys(
    make_app: MakeApp, stopped_clock: float
) -> None:
    app = make_app(FakeScheduler(*queue(stopped_clock)))
    async with app.run_test() as pilot:
        await until_text(pilot, "● 0s ago")
        for char in "/nah":
            app.post_message(events.Key("slash" if char == "/" else char, char))
        await until_text(pilot, "filter / nah")
        assert len(app.screen_stack) == 1
        assert not app.services.poller.everyone


async def test_ctrl_q_alone_does_not_quit(make_app: MakeApp, stopped_clock: float) -> None:
    app = make_app(FakeScheduler(*queue(stopped_clock)))
    async with app.run_test() as pilot:
        await pilot.press("ctrl+q")
        await pilot.pause()
        assert app.is_running
        await pilot.press("ctrl+q")
        await pilot.pause()
        assert app.return_code == 0


async def test_names_are_drawn_as_typed(make_app: MakeApp) -> None:
    jobs = [make_job("1", name="we|ird [red]na=me"), make_job("12_[1-10]", "PENDING", name="[/]\x1b[2J")]
    app = make_app(FakeScheduler(*jobs))
    async with app.run_test(size=(120, 20)) as pilot:
        await until_text(pilot, "we|ird [red]na=me")
        assert "12_[1-10]" in screen_text(app)
        assert "[/]␛[2J" in screen_text(app)
        await pilot.press("G", "enter")
        await until_text(pilot, "12_[1-10]  [/]␛[2J")


async def test_moving_unfolding_and_going_back(make_app: MakeApp, stopped_clock: float) -> None:
    app = make_app(FakeScheduler(*queue(stopped_clock)))
    async with app.run_test(size=(120, 30)) as pilot:
        await until_text(pilot, "5782_[98 tasks]")
        view = app.query_one(JobTable).view
        await pilot.press("g")
        while view.current is not None and view.current.key != "5782_*":
            await pilot.press("j")
        await pilot.press("f")
        await until_text(pilot, "5782_[5-100%4]")
        await pilot.press("j", "f")
        await until(pilot, lambda: "5782_[5-100%4]" not in screen_text(app))
        assert view.current is not None
        assert view.current.key == "5782_*"


async def test_the_cursor_and_the_scroll_stay_through_a_refresh(make_app: MakeApp) -> None:
    scheduler = FakeScheduler(*(make_job(str(n)) for n in range(100, 200)))
    app = make_app(scheduler)
    async with app.run_test(size=(100, 20)) as pilot:
        await until_text(pilot, "199")
        table = app.query_one(JobTable)
        await pilot.press(*["ctrl+d"] * 6)
        key, line = table.view.cursor_key, table.view.cursor - table.scroll_offset.y
        assert table.scroll_offset.y > 0
        scheduler.queue += [make_job(str(n)) for n in range(300, 320)]
        app.services.poller.refresh_now()
        await until(pilot, lambda: len(table.view.rows) == 120)
        await pilot.pause()
        assert table.view.cursor_key == key
        assert table.view.cursor - table.scroll_offset.y == line


async def test_filter_while_typing_keep_and_drop(make_app: MakeApp, stopped_clock: float) -> None:
    app = make_app(FakeScheduler(*queue(stopped_clock)))
    async with app.run_test(size=(120, 30)) as pilot:
        await until_text(pilot, "resnet50")
        await pilot.press("slash")
        await pilot.press(*"gpu:>3")
        await until(pilot, lambda: len(app.query_one(JobTable).view.rows) == 1)
        await pilot.press("enter")
        await until_text(pilot, "/gpu:>3: 1")
        await pilot.press("escape")
        await until(pilot, lambda: len(app.query_one(JobTable).view.rows) == 9)
        await pilot.press("slash", *"nosuch:x")
        await until_text(pilot, "unknown filter field 'nosuch'")
        await pilot.press("escape")
        await until(pilot, lambda: not app.query("FilterBar"))
        assert len(app.query_one(JobTable).view.rows) == 9


async def test_a_filter_that_is_on_is_seen_on_a_narrow_terminal(
    make_app: MakeApp, stopped_clock: float
) -> None:
    app = make_app(FakeScheduler(*queue(stopped_clock)))
    async with app.run_test(size=(80, 24)) as pilot:
        await until_text(pilot, "5782_[98")
        await pilot.press("a")
        await until_text(pilot, "everybody's jobs")
        await pilot.press("slash", *"gpu:>0", "enter")
        await until(pilot, lambda: "· /gpu:>0: " in screen_lines(app)[0], "the filter is seen")


async def test_a_filter_typed_in_a_burst_is_kept_whole(make_app: MakeApp, stopped_clock: float) -> None:
    """Over a slow line the keys and Enter arrive in one piece."""
    app = make_app(FakeScheduler(*queue(stopped_clock)))
    async with app.run_test(size=(120, 30)) as pilot:
        await until_text(pilot, "resnet50")
        await pilot.press("slash")
        await until(pilot, lambda: bool(app.query("FilterBar Input")))
        bar = app.query_one(FilterBar)
        bar.query_one(Input).value = "gpu:>3"
        bar.action_keep()
        bar.post_message(FilterBar.Changed(bar, "gpu:>"))
        await until(pilot, lambda: not app.query("FilterBar"))
        await pilot.pause()
        assert app.query_one(JobTable).view.filter.text == "gpu:>3"


async def test_q_leaves_the_pane_first(make_app: MakeApp, stopped_clock: float) -> None:
    app = make_app(FakeScheduler(*queue(stopped_clock)))
    async with app.run_test(size=(120, 30)) as pilot:
        await until_text(pilot, "resnet50")
        await pilot.press("enter")
        await until_text(pilot, "Time limit")
        await pilot.press("enter")
        await until(pilot, lambda: app.screen.focused is not None and app.screen.focused.id == "pane-view")
        await pilot.press("q")
        await until(pilot, lambda: "Time limit" not in screen_text(app), "the pane is closed")
        assert not app._exit
        await pilot.press("q")
        await until(pilot, lambda: app._exit, "the program ends")


async def test_details_say_why_it_waits_and_what_to_do(make_app: MakeApp, stopped_clock: float) -> None:
    scheduler = FakeScheduler(make_job("6004", "PENDING", name="held", reason="JobHeldUser"))
    scheduler.details_of["6004"] = (
        ("JobId", "6004"),
        ("TresPerNode", "gres/gpu:a100:2"),
        ("Licenses", "matlab:1"),
    )
    app = make_app(scheduler)
    async with app.run_test(size=(120, 40)) as pilot:
        await until_text(pilot, "JobHeldUser")
        await pilot.press("enter")
        await until_text(pilot, "scontrol release 6004")
        await until_text(pilot, "matlab:1")
        assert ("details", "6004") in scheduler.calls


async def test_failure_keeps_the_rows_with_their_age_and_the_reason(make_app: MakeApp) -> None:
    class Failing(FakeScheduler):
        fails = False

        async def jobs(self, *, everyone: bool = False) -> QueueAnswer:
            if self.fails:
                raise QueryError("slurmctld did not answer")
            return await super().jobs(everyone=everyone)

    scheduler = Failing(make_job("1", name="precious"))
    app = make_app(scheduler)
    async with app.run_test(size=(120, 20)) as pilot:
        await until_text(pilot, "precious")
        scheduler.fails = True
        app.services.poller.refresh_now()
        await until_text(pilot, "slurmctld did not answer")
        assert "old, again in" in screen_text(app)
        assert "precious" in screen_text(app)
        assert "RUNNING" in screen_text(app)
        scheduler.fails = False
        app.services.poller.refresh_now()
        await until(pilot, lambda: "slurmctld" not in screen_text(app))


async def test_a_first_reading_that_fails_says_so_in_the_list(make_app: MakeApp) -> None:
    class Failing(FakeScheduler):
        async def jobs(self, *, everyone: bool = False) -> QueueAnswer:
            raise QueryError("Unable to contact slurm controller")

    app = make_app(Failing())
    async with app.run_test(size=(120, 20)) as pilot:
        await until_text(pilot, "The queue could not be read: Unable to contact slurm controller")


async def test_an_empty_queue_says_what_to_do(make_app: MakeApp) -> None:
    app = make_app(FakeScheduler())
    async with app.run_test(size=(80, 24)) as pilot:
        await until_text(pilot, "You have no jobs in the queue.  n submits one")


async def test_everyone_is_one_key_away(make_app: MakeApp) -> None:
    class Two(FakeScheduler):
        async def jobs(self, *, everyone: bool = False) -> QueueAnswer:
            self.calls.append(("jobs", everyone))
            jobs = (make_job("1"), make_job("2", user="bob")) if everyone else (make_job("1"),)
            return QueueAnswer(jobs, 1.8e9, 0.1)

    scheduler = Two()
    app = make_app(scheduler)
    async with app.run_test(size=(120, 20)) as pilot:
        await until_text(pilot, "my jobs: 1")
        await pilot.press("a")
        await until_text(pilot, "everybody's jobs: 2")
        assert "bob" in screen_text(app)
        assert "USER" in screen_text(app)
        await pilot.press("a")
        await until_text(pilot, "my jobs: 1")


async def test_where_others_are_hidden_the_key_says_why(make_app: MakeApp) -> None:
    scheduler = FakeScheduler(make_job("1"))
    scheduler.capabilities = Capabilities("Slurm", everyone=Capability(False, "Hidden here."))
    app = make_app(scheduler)
    async with app.run_test(size=(120, 20), notifications=True) as pilot:
        await until_text(pilot, "my jobs: 1")
        await pilot.press("a")
        await until_text(pilot, "Hidden here.")


async def test_marks_range_and_all(make_app: MakeApp) -> None:
    app = make_app(FakeScheduler(*(make_job(str(n)) for n in range(100, 110))))
    async with app.run_test(size=(100, 20)) as pilot:
        await until_text(pilot, "109")
        view = app.query_one(JobTable).view
        await pilot.press("space", "j", "v", "j", "j", "v")
        assert sorted(view.marks) == ["105", "106", "107", "109"]
        await until_text(pilot, "4 marked")
        await pilot.press("asterisk")
        assert len(view.marks) == 10
        await pilot.press("escape")
        assert not view.marks


async def test_pasted_text_triggers_nothing(make_app: MakeApp) -> None:
    from textual import events

    scheduler = FakeScheduler(make_job("1"))
    app = make_app(scheduler)
    async with app.run_test(size=(100, 20)) as pilot:
        await until_text(pilot, "train")
        app.post_message(events.Paste("xyq\n"))
        await pilot.pause()
        assert not app._exit
        assert len(app.screen_stack) == 1
        assert [call[0] for call in scheduler.calls] == ["jobs"]


async def test_sorting_by_a_click_on_the_header(make_app: MakeApp) -> None:
    app = make_app(FakeScheduler(make_job("1", name="b"), make_job("2", name="a"), make_job("3", name="c")))
    async with app.run_test(size=(120, 20)) as pilot:
        await until(pilot, lambda: len(app.query_one(JobTable).view.rows) == 3)
        await until_text(pilot, "ago")

        def names() -> str:
            return "".join(row.job.name for row in app.query_one(JobTable).view.rows)

        for expected in ("abc", "cba"):
            await until(pilot, lambda: "NAME" in screen_lines(app)[1])
            await pilot.click(JobTable, offset=(screen_lines(app)[1].index("NAME"), 0))
            await until(pilot, lambda: names() == expected)  # noqa: B023 - waited for in this round


async def test_configured_columns_sort_and_keys(make_app: MakeApp) -> None:
    config = Config(table=Table(columns=("id", "user", "name"), sort="-name"), keys={"jobs.filter": "ctrl+o"})
    app = make_app(FakeScheduler(make_job("1", name="a"), make_job("2", name="b")), config)
    async with app.run_test(size=(100, 20)) as pilot:
        await until_text(pilot, "ada")
        assert screen_lines(app)[1].split() == ["ID", "USER", "NAME▼"]
        assert [row.job.name for row in app.query_one(JobTable).view.rows] == ["b", "a"]
        await pilot.press("ctrl+o")
        await until(pilot, lambda: bool(app.query("FilterBar")))


async def test_ended_jobs_are_taken_off_the_list(make_app: MakeApp, stopped_clock: float) -> None:
    app = make_app(FakeScheduler(*queue(stopped_clock)), Config(poll=Poll()))
    async with app.run_test(size=(120, 30)) as pilot:
        await until_text(pilot, "OUT_OF_MEMORY")
        await pilot.press("D")
        await until(pilot, lambda: "OUT_OF_MEMORY" not in screen_text(app))
        assert "resnet50" in screen_text(app)


async def test_every_binding_has_an_id_a_tooltip_and_a_description() -> None:
    from tfjobtui.ui.help_content import BOUND, all_binding_ids, bindings_of

    assert JobsScreen.__name__ in [name for _, name, _ in BOUND]
    ids = all_binding_ids()
    assert {"jobs.cancel", "list.mark", "app.quit", "log.follow"} <= ids
    import importlib

    for module, name, _ in BOUND:
        for binding in bindings_of(getattr(importlib.import_module(module), name)):
            assert binding.id
            assert binding.description
            assert binding.tooltip


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (200, 50)])
async def test_details_in_three_sizes(make_app: MakeApp, stopped_clock: float, size: tuple[int, int]) -> None:
    scheduler = FakeScheduler(*queue(stopped_clock))
    scheduler.details_of["6001"] = (
        ("JobId", "6001"),
        ("StdOut", "/w/slurm-6001.out"),
        ("Command", "/w/train.sbatch --epochs 90"),
        ("TresPerNode", "gres/gpu:a100:4"),
        ("OverSubscribe", "OK"),
    )
    app = make_app(scheduler)
    async with app.run_test(size=size) as pilot:
        await until_text(pilot, "resnet50")
        app.query_one(JobTable).view.select("6001")
        await pilot.press("enter")
        await until_text(pilot, "/w/slurm-6001.out" if size[1] > 24 else "a100")
        await until(pilot, lambda: ("details", "6001") in scheduler.calls)
        await pilot.pause()
        check_snapshot(app, f"details-{size[0]}x{size[1]}")


async def test_hold_asks_nothing_and_so_obeys_no_burst(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text pasted into a terminal without bracketed paste arrives as keys at once."""
    scheduler = FakeScheduler(make_job("1", "PENDING"))
    app = make_app(scheduler)

    def held() -> int:
        return sum(call[0] == "hold" for call in scheduler.calls)

    monkeypatch.setattr(JobsScreen, "BURST_S", 60.0)
    async with app.run_test(size=(100, 20)) as pilot:
        await until_text(pilot, "train")
        await pilot.press("j", "h", "j")
        await pilot.pause()
        assert held() == 0
        monkeypatch.setattr(JobsScreen, "BURST_S", 0.001)
        await pilot.pause(0.05)
        await pilot.press("h")
        await until(pilot, lambda: held() == 1, "a lone key holds")


async def test_a_late_first_answer_is_told(make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(FakeScheduler):
        async def jobs(self, *, everyone: bool = False) -> QueueAnswer:
            await asyncio.Event().wait()
            raise AssertionError

    monkeypatch.setattr("tfjobtui.ui.screens.jobs.SLOW_S", 0.5)
    app = make_app(Slow())
    async with app.run_test(size=(120, 20)) as pilot:
        await until_text(pilot, "There was no answer for")


async def test_where_there_is_no_shell_the_program_does_not_stop(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.getpgrp", lambda: 5)
    monkeypatch.setattr("os.getsid", lambda pid: 5)
    app = make_app(FakeScheduler(make_job("1")))
    async with app.run_test(size=(120, 20), notifications=True) as pilot:
        await until_text(pilot, "train")
        await pilot.press("ctrl+z")
        await until_text(pilot, "no shell behind the program")
