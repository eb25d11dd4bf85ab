"""What can be done, by key: gathered from the bindings themselves, for the help, the palette and the configuration."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from textual.app import App, SystemCommand
from textual.binding import Binding
from textual.dom import DOMNode
from textual.screen import Screen

_KEY_NAMES = {
    "question_mark": "?",
    "slash": "/",
    "backslash": "\\",
    "asterisk": "*",
    "at": "@",
    "colon": ":",
    "escape": "Esc",
    "enter": "Enter",
    "space": "Space",
    "pagedown": "PgDn",
    "pageup": "PgUp",
    "delete": "Del",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "tab": "Tab",
    "full_stop": ".",
    "comma": ",",
    "plus": "+",
    "minus": "-",
    "less_than_sign": "<",
    "greater_than_sign": ">",
    "home": "Home",
    "end": "End",
}

BOUND = (
    ("tfjobtui.ui.widgets.job_table", "JobTable", "List"),
    ("tfjobtui.ui.screens.jobs", "JobsScreen", "Jobs"),
    ("tfjobtui.ui.widgets.log_view", "LogView", "Log"),
    ("tfjobtui.ui.widgets.lines_view", "LinesView", "Text"),
    ("tfjobtui.ui.widgets.filter_bar", "FilterBar", "Filter"),
    ("tfjobtui.ui.app", "TfjobtuiApp", "Everywhere"),
)
"""Whose keys can be remapped: module, class, and what the user calls it."""
_TITLES = {name: title for _, name, title in BOUND}


@dataclass(frozen=True, slots=True)
class HelpEntry:
    """One binding as the user reads it."""

    keys: str
    description: str
    tooltip: str
    id: str


@dataclass(frozen=True, slots=True)
class HelpGroup:
    """The bindings of one part of the screen."""

    title: str
    entries: tuple[HelpEntry, ...]


def key_text(keys: str) -> str:
    """`question_mark,f1` → `? F1`."""
    return " ".join(_one_key(key) for key in keys.split(","))


def _one_key(key: str) -> str:
    key = key.strip()
    if key.startswith("ctrl+"):
        return f"Ctrl+{_one_key(key[5:])}"
    if key.startswith("shift+"):
        return f"Shift+{_one_key(key[6:])}"
    if len(key) > 1 and key[0] == "f" and key[1:].isdigit():
        return key.upper()
    return _KEY_NAMES.get(key, key)


def bindings_of(node: type | DOMNode) -> Iterator[Binding]:
    """The bindings that a class brings itself, those of its bases after them, each action once."""
    kind = node if isinstance(node, type) else type(node)
    seen: set[str] = set()
    for base in kind.__mro__:
        if not base.__module__.startswith("tfjobtui."):
            continue
        for binding in base.__dict__.get("BINDINGS", ()):
            if isinstance(binding, Binding) and binding.id and binding.id not in seen:
                seen.add(binding.id)
                yield binding


def _entries(node: type | DOMNode, keymap: dict[str, str]) -> tuple[HelpEntry, ...]:
    return tuple(
        HelpEntry(
            key_text(keymap.get(binding.id or "", binding.key)),
            binding.description,
            binding.tooltip or binding.description,
            binding.id or "",
        )
        for binding in bindings_of(node)
    )


def help_groups(screen: Screen[Any], app: App[Any]) -> tuple[HelpGroup, ...]:
    """What can be done now: where the focus is, then around it, then everywhere."""
    groups: list[HelpGroup] = []
    keymap = dict(app._keymap)
    nodes: Iterable[DOMNode] = screen.focused.ancestors_with_self if screen.focused else (screen, app)
    for node in nodes:
        entries = _entries(node, keymap)
        if entries:
            groups.append(HelpGroup(_title(node), entries))
    return tuple(groups)


def _title(node: DOMNode) -> str:
    for base in type(node).__mro__:
        if base.__name__ in _TITLES:
            return _TITLES[base.__name__]
    return type(node).__name__


def palette_commands(screen: Screen[Any], app: App[Any]) -> Iterator[SystemCommand]:
    """Every action that the focus offers, for the command palette."""
    node, keymap = screen.focused or screen, dict(app._keymap)
    for owner in node.ancestors_with_self:
        for binding in bindings_of(owner):
            title = f"{binding.description}  ({key_text(keymap.get(binding.id or '', binding.key))})"
            yield SystemCommand(title, binding.tooltip or "", _runner(app, binding.action, owner))


def _runner(app: App[Any], action: str, owner: DOMNode) -> Any:
    async def run() -> None:
        await app.run_action(action, owner)

    return run


def all_binding_ids() -> set[str]:
    """The ids of all bindings that can be remapped."""
    ids: set[str] = set()
    for module, name, _ in BOUND:
        kind = getattr(importlib.import_module(module), name)
        ids.update(binding.id for binding in bindings_of(kind) if binding.id)
    return ids
