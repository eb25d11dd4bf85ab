"""What `--version` and `--help` say."""

from __future__ import annotations

from tfjobtui import __version__
from tfjobtui.schedulers.local.commands.getopt import Parsed

LIKE = "22.05.8"
"""The release of Slurm whose words and forms these commands have."""


def told(command: str, options: Parsed) -> bool:
    """Answer `--version`, `--help` and `--usage`, and say whether one of them was asked for."""
    if options.has("version"):
        say_version()
        return True
    if options.has("help") or options.has("usage"):
        say_help(command)
        return True
    return False


def say_version() -> None:
    """`slurm` and a release, which scripts compare, and who says it."""
    print(f"slurm-tfjobtui {LIKE} (tfjobtui {__version__}, local scheduler)")


def say_help(command: str) -> None:
    """Where the options are explained."""
    print(
        f"{command} of tfjobtui's local scheduler: the options are those of Slurm's own {command} that have a"
        f" meaning on one machine.\nSee https://slurm.schedmd.com/{command}.html; another one ends with a message."
    )
