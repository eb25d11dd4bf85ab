"""What doctor says of the surroundings, without a cluster."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tfjobtui.cli import checks


def test_a_folder_of_the_path_that_may_not_be_entered_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setenv("PATH", "/root/.cargo/bin")
    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", refuse)
        found = list(checks.path())
    assert found[-1].text == "not there: /root/.cargo/bin"


def test_a_slurm_conf_that_leads_nowhere_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    there = tmp_path / "slurm.conf"
    there.touch()
    monkeypatch.setenv("SLURM_CONF", str(there))
    assert not list(checks.slurm_conf())
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "none.conf"))
    assert "none.conf" in next(checks.slurm_conf()).text
