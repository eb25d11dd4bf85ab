"""Kills at random moments: one seed for each setup; `make soak` has more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.trainer_kills import run_kills
from tests.trainer.running import state

pytestmark = pytest.mark.trainer


def test_one_device(finished: tuple[Path, str], tmp_path: Path) -> None:
    assert run_kills(tmp_path, 4, kills=1) == state(finished[0])["weights_sha256"]


@pytest.mark.parametrize(("setup", "seed"), [("two replicas", 10), ("two workers", 9)])
def test_several(two_replicas: Path, tmp_path: Path, setup: str, seed: int) -> None:
    """Two workers train the same weights, to the bit, as two replicas of one."""
    assert run_kills(tmp_path, seed, kills=1, setup=setup) == state(two_replicas)["weights_sha256"]
