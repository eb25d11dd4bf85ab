"""The long proofs, with fixed seeds; `make soak` runs them, and `make test` three seeds of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.client import Cluster
from tests.soak.controller import run_faults
from tests.soak.monkey import run_monkey


@pytest.mark.parametrize("seed", range(10, 40))
async def test_random_keys(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EDITOR", "true")
    await run_monkey(seed, keys=600)


@pytest.mark.slurm
@pytest.mark.parametrize("seed", range(10, 16))
async def test_controller_faults(cluster: Cluster, slurm_env: dict[str, str], seed: int) -> None:
    await run_faults(cluster, seed, rounds=8)
