"""Lending the terminal to an editor or a shell."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tfjobtui.errors import TfjobtuiError
from tfjobtui.ui import foreground


class LendingApp:
    """Notes when the terminal is lent, and like Textual does not take it back after an error."""

    def __init__(self) -> None:
        self.told: list[str] = []

    @contextmanager
    def suspend(self) -> Iterator[None]:
        self.told.append("lent")
        yield
        self.told.append("back")

    def notify(self, message: str, **_: object) -> None:
        self.told.append(message)


def test_the_screen_comes_back_after_a_command_that_is_not_there() -> None:
    app: Any = LendingApp()
    assert foreground.run(app, ["/nonexistent/editor", "file"]) is None
    assert app.told[:2] == ["lent", "back"]
    assert "/nonexistent/editor cannot be run" in app.told[2]


def test_an_editor_with_an_open_quote_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", '"vi')
    with pytest.raises(TfjobtuiError, match="EDITOR cannot be read"):
        foreground.editor_argv("file")
