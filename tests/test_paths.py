"""The checks of files and folders never raise."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tfjobtui.paths import is_file, is_folder


def test_a_folder_and_a_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert is_folder(tmp_path)
    assert is_file(file)
    assert not is_folder(file)
    assert not is_file(tmp_path / "none")


def test_what_may_not_be_entered_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", refuse)
        found = is_folder("/root/x"), is_file("/root/x")
    assert found == (False, False)
