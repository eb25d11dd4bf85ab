"""What the user last chose in the program itself: columns, order, theme. The configuration's file comes first.

`preferences.json` in the state folder: `{"v": 1, "columns": ["id", …], "sort": "-priority", "theme": "nord"}`.
A file that cannot be read is as good as none.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

from tfjobtui.config import Config
from tfjobtui.monitor.columns import COLUMNS
from tfjobtui.paths import make_private, state_dir

VERSION = 1


def _file() -> Path:
    return state_dir() / "preferences.json"


def _read() -> dict[str, Any]:
    try:
        text = _file().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return {}
    import json  # only where there is a file

    try:
        values = json.loads(text)
    except ValueError:
        return {}
    return values if isinstance(values, dict) and values.get("v") == VERSION else {}


def with_preferences(config: Config) -> Config:
    """The configuration, with what was last chosen where it says nothing."""
    values = _read()
    columns, sort, theme = values.get("columns"), values.get("sort"), values.get("theme")
    table, ui = config.table, config.ui
    if not table.columns and isinstance(columns, list) and all(name in COLUMNS for name in columns):
        table = table._replace(columns=tuple(columns))
    if not table.sort and isinstance(sort, str) and sort.removeprefix("-") in COLUMNS:
        table = table._replace(sort=sort)
    if "ui.theme" not in config.origins and isinstance(theme, str) and theme:
        ui = ui._replace(theme=theme)
    return config._replace(table=table, ui=ui)


def remember(**chosen: Any) -> None:
    """Keep a choice (`columns`, `sort` or `theme`) for the next start; a full disk is no reason to complain."""
    import json

    values = {**_read(), "v": VERSION, **chosen}
    with contextlib.suppress(OSError):
        make_private(_file().parent)
        partial = _file().with_name(f"preferences.{os.getpid()}.tmp")
        partial.write_text(json.dumps(values), encoding="utf-8")
        partial.replace(_file())
