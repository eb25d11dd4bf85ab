"""Random keys on a queue that misbehaves: three seeds; `make soak` has many more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.monkey import run_monkey


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_random_keys(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EDITOR", "true")
    await run_monkey(seed, keys=250)
