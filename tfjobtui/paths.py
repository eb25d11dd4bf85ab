"""The files of the program's own: configuration, state and cache, by the XDG base directory rules."""

from __future__ import annotations

import os
from pathlib import Path

SITE_CONFIG = Path("/etc/tfjobtui/config.toml")


def _base(variable: str, fallback: str) -> Path:
    value = os.environ.get(variable, "")
    # The XDG specification: a relative path is to be ignored.
    return Path(value) if value.startswith("/") else Path.home() / fallback


def user_config() -> Path:
    """The user's configuration file; it need not exist."""
    explicit = os.environ.get("TFJOBTUI_CONFIG", "")
    return Path(explicit) if explicit else _base("XDG_CONFIG_HOME", ".config") / "tfjobtui" / "config.toml"


def site_config() -> Path:
    """The site's configuration file; it need not exist."""
    return Path(os.environ.get("TFJOBTUI_SITE_CONFIG", "") or SITE_CONFIG)


def state_dir() -> Path:
    """Where records of runs and the command log are kept."""
    return _base("XDG_STATE_HOME", ".local/state") / "tfjobtui"


def data_dir() -> Path:
    """Where what was installed for the user is kept: the trainer's environment."""
    return _base("XDG_DATA_HOME", ".local/share") / "tfjobtui"


def is_folder(path: str | Path) -> bool:
    """Whether it is a folder; `Path.is_dir` raises where a folder above it may not be entered."""
    return os.path.isdir(path)  # noqa: PTH112


def is_file(path: str | Path) -> bool:
    """Whether it is a file; `Path.is_file` raises where a folder above it may not be entered."""
    return os.path.isfile(path)  # noqa: PTH113


def make_private(folder: Path) -> Path:
    """Make a folder that only its owner may enter, with its parents; give it back."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder
