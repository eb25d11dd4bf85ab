"""sbatch, srun, scontrol and the like, as far as scripts use them: for jobs, and for users by `tfjobtui local`.

`install` puts a small script for each into a folder that a job's PATH begins with. What an option or a field is
not known here ends with an error, and never with something else than Slurm would print.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfjobtui.schedulers.local.place import Place

NAMES = ("sbatch", "srun", "scontrol", "squeue", "scancel", "sacct", "sstat", "sinfo")


def install(place: Place) -> None:
    """Write the scripts, where they are not there or name another Python.

    Raises:
        OSError: they cannot be written.
    """
    # Every command imports this package: only who writes them pays for it.
    from tfjobtui.schedulers.local.commands.installing import write_scripts

    write_scripts(place)
