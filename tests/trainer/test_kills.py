"""Kills at random moments: three seeds; `make soak` has more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.trainer_kills import run_kills
from tests.trainer.running import state

pytestmark = pytest.mark.trainer


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_weights_are_those_of_an_undisturbed_run(
    finished: tuple[Path, str], tmp_path: Path, seed: int
) -> None:
    assert run_kills(tmp_path, seed, kills=2) == state(finished[0])["weights_sha256"]
