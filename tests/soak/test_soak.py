"""The long proofs, with fixed seeds; `make soak` runs them, and `make test` three seeds of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.client import Cluster
from tests.soak.controller import run_faults
from tests.soak.local_crashes import run_crashes
from tests.soak.monkey import run_monkey
from tests.soak.trainer_kills import SETUPS, run_kills


@pytest.mark.parametrize("seed", range(10, 22))
async def test_random_keys(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EDITOR", "true")
    await run_monkey(seed, keys=400)


@pytest.mark.slurm
@pytest.mark.parametrize("seed", range(10, 13))
async def test_controller_faults(cluster: Cluster, slurm_env: dict[str, str], seed: int) -> None:
    await run_faults(cluster, seed, rounds=6)


@pytest.mark.trainer
@pytest.mark.parametrize("setup", SETUPS)
def test_trainer_kills(tmp_path: Path, setup: str) -> None:
    weights = set()
    for seed in range(10, 15):
        folder = tmp_path / str(seed)
        folder.mkdir()
        weights.add(run_kills(folder, seed, kills=4, setup=setup))
    assert len(weights) == 1


@pytest.mark.parametrize("seed", range(10, 20))
def test_local_scheduler_crashes(seed: int, tmp_path: Path) -> None:
    """A hundred kills in all."""
    run_crashes(tmp_path, seed, kills=10)
