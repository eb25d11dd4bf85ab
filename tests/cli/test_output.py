"""Text that fits its columns, also where characters are wide or none."""

from __future__ import annotations

import io

import pytest

from tfjobtui.cli.output import confirm, print_pairs, print_table
from tfjobtui.model.text import cells, fit


@pytest.mark.parametrize(("text", "width"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("×", 1), ("", 0)])
def test_cells(text: str, width: int) -> None:
    assert cells(text) == width


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("abc", 5, "abc  "),
        ("abcdef", 4, "abc…"),
        ("日本語", 5, "日本…"),
        ("日本語", 4, "日… "),
        ("abc", 1, "…"),
        ("abc", 0, ""),
    ],
)
def test_fit(text: str, width: int, shown: str) -> None:
    assert fit(text, width) == shown


def test_fit_on_the_right() -> None:
    assert fit("7", 3, right=True) == "  7"


def test_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("NAME", "N"), [("日本", "1"), ("a", "100")], right=(False, True))
    assert capsys.readouterr().out == "NAME    N\n日本    1\na     100\n"


def test_pairs_leave_out_what_is_empty_and_mark_controls(capsys: pytest.CaptureFixture[str]) -> None:
    print_pairs([("a", "x\x1b[2J"), ("long", ""), ("bb", "y")])
    assert capsys.readouterr().out == "a   x␛[2J\nbb  y\n"


@pytest.mark.parametrize(("typed", "meant"), [("y\n", True), ("\n", False), ("", False)])
def test_a_question_shows_the_commands_that_a_yes_runs(
    typed: str, meant: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keyboard = io.StringIO(typed)
    monkeypatch.setattr(keyboard, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", keyboard)
    commands = [("scancel", "-v", "5_[2-6]"), *[("scancel", str(number)) for number in range(5)]]
    assert confirm("Cancel 5?", yes=False, commands=commands) is meant
    asked = capsys.readouterr().err
    assert asked.startswith("$ scancel -v '5_[2-6]'\n$ scancel 0\n")
    assert asked.endswith("… 1 more commands like these\nCancel 5? [y/N] ")
