"""The keys that the configuration sets in place of the program's own: read, checked, and in Textual's names."""

from __future__ import annotations

import importlib
import re
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from textual.keys import KEY_NAME_REPLACEMENTS, Keys

from tfjobtui.config import Config, check_keys
from tfjobtui.errors import ConfigError
from tfjobtui.ui.help_content import BOUND, bindings_of

_EVERYWHERE = frozenset({"JobsScreen", "TfjobtuiApp"})
"""Whose keys are there whatever part of the screen has the focus."""
_MODIFIERS = re.compile(r"(?:(?:ctrl|shift|alt|super|meta|hyper)\+)*")
_NAMED = frozenset(key.value for key in Keys) | {f"f{number}" for number in range(1, 25)}


class _Bound(NamedTuple):
    """A binding: its owner's class, and its keys."""

    owner: str
    keys: tuple[str, ...]


def keymap(config: Config) -> dict[str, str]:
    """`[keys]` as Textual takes it: action's id → names of keys with commas between them.

    Raises:
        ConfigError: there is no such action or key, or a key would have two meanings in one place.
    """
    if not config.keys:
        return {}
    bound = {name: found for kind in BOUND for name, found in _bound_by(*kind[:2])}
    check_keys(config, bound)
    changed = {action: _keys(config, action, text) for action, text in config.keys.items()}
    now = bound | {action: _Bound(bound[action].owner, keys) for action, keys in changed.items()}
    for action in changed:
        _check_clash(config, action, now)
    return {action: ",".join(keys) for action, keys in changed.items()}


def _bound_by(module: str, name: str) -> Iterator[tuple[str, _Bound]]:
    for binding in bindings_of(getattr(importlib.import_module(module), name)):
        if binding.id:
            keys = tuple(_textual_name(key.strip()) or key for key in binding.key.split(","))
            yield binding.id, _Bound(name, keys)


def _file(config: Config, action: str) -> Path:
    return config.origins.get(f"keys.{action}", Path("config.toml"))


def _keys(config: Config, action: str, text: str) -> tuple[str, ...]:
    keys = []
    for key in text.split(","):
        name = _textual_name(key)
        if name is None:
            import difflib  # only for an error

            close = difflib.get_close_matches(key, sorted(_NAMED), n=1, cutoff=0.4)
            hint = (
                f"The nearest key is {close[0]!r}."
                if close
                else "Keys are such as d, D, ?, f5, ctrl+d, delete."
            )
            raise ConfigError(f"{_file(config, action)}: keys.{action}: there is no key {key!r}", hint)
        keys.append(name)
    return tuple(keys)


def _textual_name(key: str) -> str | None:
    """`?` → `question_mark`, `Ctrl+D` → `ctrl+d`, `D` → `D`; `None` where there is no such key."""
    modifiers = _MODIFIERS.match(key.lower())
    at = modifiers.end() if modifiers is not None else 0
    before, name = key[:at].lower(), key[at:]
    if len(name) == 1:
        return before + _of_character(name.lower() if before else name)
    if name.lower() in _NAMED or (before + name).lower() in _NAMED:
        return before + name.lower()
    try:
        char = unicodedata.lookup(name.replace("_", " "))
    except KeyError:
        is_replaced = name in KEY_NAME_REPLACEMENTS.values()
        return before + name if is_replaced else None
    return before + _of_character(char)


def _of_character(char: str) -> str:
    if char.isalnum():
        return char
    name = unicodedata.name(char, char).lower().replace("-", "_").replace(" ", "_")
    return KEY_NAME_REPLACEMENTS.get(name, name)


def _check_clash(config: Config, action: str, bound: Mapping[str, _Bound]) -> None:
    """A key that has a meaning already would take it away, without a word."""
    mine = bound[action]
    for other, theirs in bound.items():
        meet = mine.owner == theirs.owner or not _EVERYWHERE.isdisjoint({mine.owner, theirs.owner})
        both = [key for key in mine.keys if key in theirs.keys] if meet and other != action else []
        if both:
            raise ConfigError(
                f"{_file(config, action)}: keys.{action}: the key {both[0]} is that of {other}",
                f"Give {other} another key too, or choose another one here.",
            )
