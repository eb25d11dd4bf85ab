"""What was chosen in the program is there again at the next start; the configuration's file comes first."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfjobtui.config import Config, Table
from tfjobtui.paths import state_dir
from tfjobtui.ui.preferences import remember, with_preferences


def test_choices_come_back() -> None:
    assert with_preferences(Config()) == Config()
    remember(columns=["id", "name"])
    remember(sort="-priority")
    remember(theme="nord")
    config = with_preferences(Config())
    assert (config.table, config.ui.theme) == (Table(("id", "name"), "-priority"), "nord")


def test_the_file_comes_first() -> None:
    remember(columns=["id"], sort="name", theme="nord")
    written = Config(table=Table(("user", "id"), "cpus"), origins={"ui.theme": Path("config.toml")})
    assert with_preferences(written) == written


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"v": 99, "sort": "name"}', '{"v": 1, "columns": ["nosuch"], "sort": 3, "theme": []}'],
)
def test_a_broken_file_is_as_good_as_none(text: str) -> None:
    state_dir().mkdir(parents=True, exist_ok=True)
    (state_dir() / "preferences.json").write_text(text)
    assert with_preferences(Config()) == Config()
    remember(sort="name")
    assert with_preferences(Config()).table.sort == "name"


def test_a_folder_that_cannot_be_written_is_no_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(blocker))
    remember(sort="name")
    assert with_preferences(Config()) == Config()
