"""Text that fits its columns, also where characters are wide or none."""

from __future__ import annotations

import pytest

from tfjobtui.cli.output import cells, fit, print_pairs, print_table


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
