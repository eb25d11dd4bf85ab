"""The screen of the whole cluster."""

from __future__ import annotations

from tests.actions.fakes import FakeScheduler, job
from tests.monitor.test_cluster import NODES, PARTITIONS, node
from tests.ui.screens import screen_text, until_text
from tests.ui.test_dialogs import LARGE, SMALL, DialogApp
from tfjobtui.errors import QueryError
from tfjobtui.schedulers.scheduler import Capability, Partition
from tfjobtui.ui.screens.cluster import ClusterScreen


class Inventory(FakeScheduler):
    fails = False

    async def partitions(self) -> tuple[Partition, ...]:
        if self.fails:
            raise QueryError("sinfo did not answer")
        return PARTITIONS


def scheduler(*others: object) -> Inventory:
    made = Inventory(*others)  # type: ignore[arg-type]
    made.node_list = NODES
    return made


async def test_it_shows_what_is_free_and_whose_jobs_are_where() -> None:
    mine = job("7", nodes="g1", node_count=1)
    app = DialogApp()
    inventory = scheduler(mine, job("8", nodes="g3", node_count=1, user="[other]"))
    async with app.run_test(size=LARGE) as pilot:
        await app.push_screen(ClusterScreen(inventory, (mine,), "u"))
        await until_text(pilot, "you 7")
        text = screen_text(app)
        assert "4 nodes (1 out of service) · 5 of 12 a100 GPUs free" in text
        assert "bad [disk]" in text
        assert "[other]" not in text
        await pilot.press("w")
        await until_text(pilot, "[other] 8")
        await pilot.press("f")
        await pilot.pause()
        assert "c1 " not in screen_text(app)
        await pilot.press("escape")
        assert not isinstance(app.screen, ClusterScreen)


async def test_a_small_terminal_shows_nodes_and_reasons() -> None:
    app = DialogApp()
    async with app.run_test(size=SMALL) as pilot:
        await app.push_screen(ClusterScreen(scheduler(), (), "u"))
        await until_text(pilot, "bad [disk]")


async def test_a_failure_keeps_what_is_shown_and_says_so() -> None:
    app = DialogApp()
    inventory = scheduler()
    inventory.fails = True
    async with app.run_test(size=LARGE) as pilot:
        await app.push_screen(ClusterScreen(inventory, (), "u"))
        await until_text(pilot, "sinfo did not answer")
        inventory.fails = False
        await pilot.press("f5")
        await until_text(pilot, "g3 ")
        inventory.fails = True
        await pilot.press("f5")
        await until_text(pilot, "sinfo did not answer")
        assert "g3 " in screen_text(app)


async def test_where_others_may_not_be_seen_the_reason_is_told() -> None:
    app = DialogApp()
    inventory = scheduler()
    inventory.capabilities = inventory.capabilities.__class__(
        "x", everyone=Capability(False, "Only your own.")
    )
    async with app.run_test(size=LARGE) as pilot:
        await app.push_screen(ClusterScreen(inventory, (), "u"))
        await until_text(pilot, "g3 ")
        await pilot.press("w")
        assert app.toasts == ["Only your own."]


async def test_thousands_of_nodes_are_laid_out_in_slices() -> None:
    app = DialogApp()
    inventory = scheduler()
    inventory.node_list = tuple(node(f"n{number:04}", used=number % 5) for number in range(3000))
    async with app.run_test(size=LARGE) as pilot:
        await app.push_screen(ClusterScreen(inventory, (), "u"))
        await until_text(pilot, "3000 nodes")
        await until_text(pilot, "n0000")
