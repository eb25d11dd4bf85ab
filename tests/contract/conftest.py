"""The two schedulers, as parameters of every test in this folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.client import Cluster
from tests.contract.limits import submit_limited
from tests.contract.side import KILL_WAIT_S, Side
from tfjobtui.schedulers.local.client import LocalScheduler
from tfjobtui.schedulers.local.commands import install
from tfjobtui.schedulers.local.place import Place
from tfjobtui.schedulers.local.settings import LocalSettings
from tfjobtui.schedulers.slurm.client import SlurmScheduler


@pytest.fixture(scope="session", params=["local", pytest.param("slurm", marks=pytest.mark.slurm)])
def side(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    """A scheduler with nothing in it that is not the tests': one for all of them."""
    folder = tmp_path_factory.mktemp(f"contract-{request.param}")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("SLURM_", "SBATCH_"))]:
            patch.delenv(name)
        if request.param == "local":
            made = _local(folder)
        else:
            made = _slurm(folder, patch, request.getfixturevalue("cluster"))
        try:
            yield made
        finally:
            made.close()


@pytest.fixture(autouse=True)
def _tidy(side: Side) -> Iterator[None]:
    """What a test leaves behind must not take the next one's room; jobs of a whole module stay."""
    before = side.job_count
    yield
    side.tidy(before)


def _local(folder: Path) -> Side:
    scheduler = LocalScheduler(LocalSettings(kill_wait_s=KILL_WAIT_S), Place(folder / "state"))
    install(scheduler.place)  # a test may begin with a command
    return Side(scheduler, folder)


def _slurm(folder: Path, patch: pytest.MonkeyPatch, cluster: Cluster) -> Side:
    for name, value in cluster.env.items():
        patch.setenv(name, value)
    made = Side(SlurmScheduler(), folder, ("--partition=cpu", "--mem=16M"))
    made.early = submit_limited(made)
    return made
