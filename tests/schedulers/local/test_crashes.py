"""The embedded scheduler's processes killed at random; the long proof is in tests/soak."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.local_crashes import run_crashes


@pytest.mark.parametrize("seed", range(3))
def test_every_job_is_accounted_for(tmp_path: Path, seed: int) -> None:
    run_crashes(tmp_path, seed, kills=5)
