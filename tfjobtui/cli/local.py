"""`local`: the embedded scheduler's own sbatch, squeue, scancel …, for a user's shell and scripts."""

from __future__ import annotations

from collections.abc import Sequence

from tfjobtui.errors import UsageError
from tfjobtui.schedulers.local import commands
from tfjobtui.schedulers.local.commands.__main__ import main
from tfjobtui.schedulers.local.place import default_place


def run(command: str, arguments: Sequence[str]) -> int:
    """Run one of the commands, or tell where they are.

    Raises:
        UsageError: there is no such command.
    """
    if command == "path":
        place = default_place()
        commands.install(place)
        print(place.bin)
        return 0
    if command not in commands.NAMES:
        names = ", ".join(commands.NAMES)
        raise UsageError(f"there is no command {command!r}", f"There are: path, {names}.")
    return main([command, *arguments])
