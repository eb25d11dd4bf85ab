"""slurmctld killed, stilled and brought back under the program, by a seed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from tests.cluster.client import Cluster
from tests.e2e.conftest import submit
from tfjobtui.model.state import JobState
from tfjobtui.monitor.pace import PaceLimits
from tfjobtui.monitor.poller import QueuePoller, Refreshed
from tfjobtui.schedulers.slurm.client import SlurmScheduler
from tfjobtui.schedulers.slurm.settings import SlurmSettings


async def run_faults(cluster: Cluster, seed: int, rounds: int) -> dict[str, int]:
    """Watch a running job through so many faults; gives how many readings came in and how many failed.

    Raises:
        AssertionError: the job was said to have ended, or the program did not recover by itself.
    """
    rng = random.Random(seed)
    job = submit("-p", "cpu", "-J", f"soak{seed}", "-t", "60", "--wrap", "sleep 3000")
    scheduler = SlurmScheduler(SlurmSettings(query_timeout_s=2.0))
    poller = QueuePoller(scheduler, PaceLimits(interval_s=0.3, floor_s=0.2))
    counts = {"read": 0, "failed": 0}
    task = asyncio.create_task(_watch(poller, job, counts))
    try:
        await _readings(poller, task, counts, 2)
        for number in range(rounds):
            undo = await asyncio.to_thread(_fault, cluster, rng, number == 0)
            failed = counts["failed"]
            await _until(task, lambda: counts["failed"] > failed, 60)  # noqa: B023 - awaited in this round
            await asyncio.to_thread(undo)
            poller.refresh_now()
            await _readings(poller, task, counts, 2)
    finally:
        task.cancel()
        await scheduler.close()
        await asyncio.to_thread(cluster.root, "scancel", job)
    return counts


def _fault(cluster: Cluster, rng: random.Random, is_first: bool) -> Callable[[], None]:
    """Do something to slurmctld; gives what undoes it.

    First it is ended softly: killed within seconds of a submission, slurmctld loses the job for good.
    """
    if is_first:
        cluster.stop_daemon("slurmctld")
        return lambda: cluster.start_daemon("slurmctld")
    if rng.random() < 0.5:
        cluster.kill_daemon("slurmctld")
        return lambda: cluster.start_daemon("slurmctld")
    cluster.pause_daemon("slurmctld")
    return lambda: cluster.resume_daemon("slurmctld")


async def _watch(poller: QueuePoller, job: str, counts: dict[str, int]) -> None:
    async for update in poller.updates():
        counts["read" if isinstance(update, Refreshed) else "failed"] += 1
        known = poller.own.get(job)
        if known is not None:
            assert not known.state.is_terminal, f"said to be {known.state} after {update}"
            assert known.state is not JobState.GONE


async def _readings(poller: QueuePoller, task: asyncio.Task[None], counts: dict[str, int], more: int) -> None:
    """Wait for that many more good readings; the delay after failures is cut short, as a user would."""
    wanted = counts["read"] + more

    def enough() -> bool:
        poller.refresh_now()
        return counts["read"] >= wanted

    await _until(task, enough, 120)


async def _until(task: asyncio.Task[None], test: Callable[[], bool], timeout_s: float) -> None:
    loop = asyncio.get_running_loop()
    until = loop.time() + timeout_s
    while not test():
        if task.done():
            task.result()
        assert loop.time() < until, "it did not recover, or did not notice"
        await asyncio.sleep(0.05)
