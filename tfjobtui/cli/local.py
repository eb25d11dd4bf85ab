"""`local`: the embedded scheduler's own sbatch, squeue, scancel …, for a user's shell and scripts."""

from __future__ import annotations

import argparse

from tfjobtui.errors import UsageError
from tfjobtui.schedulers.local import commands
from tfjobtui.schedulers.local.commands.__main__ import main
from tfjobtui.schedulers.local.place import default_place


def run(options: argparse.Namespace) -> int:
    """Run one of the commands, or tell where they are."""
    if options.local_command == "path":
        place = default_place()
        commands.install(place)
        print(place.bin)
        return 0
    if options.local_command not in commands.NAMES:
        names = ", ".join(commands.NAMES)
        raise UsageError(f"there is no command {options.local_command!r}", f"There are: path, {names}.")
    return main([options.local_command, *options.local_arguments])
