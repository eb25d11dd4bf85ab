"""Keys that the configuration sets: read as they are written, refused where they mean nothing or two things."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfjobtui.config import load
from tfjobtui.errors import ConfigError
from tfjobtui.ui.keymap import keymap


def read(folder: Path, text: str) -> dict[str, str]:
    file = folder / "config.toml"
    file.write_text(f"[keys]\n{text}\n")
    return keymap(load(folder / "none.toml", file))


@pytest.mark.parametrize(
    ("keys", "names"),
    [
        ("d", "d"),
        ("X", "X"),
        ("&", "ampersand"),
        ("ampersand", "ampersand"),
        ("-,f9", "minus,f9"),
        ("Ctrl+X", "ctrl+x"),
        ("ctrl+delete", "ctrl+delete"),
        ("F9", "f9"),
        ("Insert", "insert"),
    ],
)
def test_keys_by_character_or_name(tmp_path: Path, keys: str, names: str) -> None:
    found = read(tmp_path, f'"jobs.cancel" = "{keys}"')
    assert found == {"jobs.cancel": names}


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ('"jobs.cancell" = "d"', "keys.jobs.cancell: there is no action 'jobs.cancell'", "jobs.cancel"),
        ('"jobs.cancel" = "delet"', "keys.jobs.cancel: there is no key 'delet'", "'delete'"),
        ('"jobs.cancel" = "notakey+++"', "there is no key 'notakey+++'", "Keys are such as"),
        ('"jobs.cancel" = "h"', "keys.jobs.cancel: the key h is that of jobs.hold", "jobs.hold another key"),
        ('"jobs.cancel" = "?"', "the key question_mark is that of app.help", "app.help"),
        ('"jobs.cancel" = "j"', "the key j is that of", "another key"),
        ('"jobs.cancel" = "&"\n"jobs.hold" = "ampersand"', "the key ampersand is that of", "another key"),
    ],
)
def test_what_means_nothing_or_two_things(tmp_path: Path, text: str, message: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text)
    assert str(tmp_path / "config.toml") in caught.value.message
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_two_actions_can_change_their_keys(tmp_path: Path) -> None:
    found = read(tmp_path, '"jobs.cancel" = "h"\n"jobs.hold" = "x,delete"')
    assert found == {"jobs.cancel": "h", "jobs.hold": "x,delete"}


def test_without_keys_nothing_is_imported_or_set(tmp_path: Path) -> None:
    assert keymap(load(tmp_path / "a", tmp_path / "b")) == {}
