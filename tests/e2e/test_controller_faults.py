"""Faults of slurmctld under the client: three seeds; `make soak` has many more."""

from __future__ import annotations

import pytest

from tests.cluster.client import Cluster
from tests.soak.controller import run_faults

pytestmark = pytest.mark.slurm


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_no_job_is_said_to_have_ended(cluster: Cluster, slurm_env: dict[str, str], seed: int) -> None:
    counts = await run_faults(cluster, seed, rounds=2)
    assert counts["failed"] >= 2
    assert counts["read"] >= 6
