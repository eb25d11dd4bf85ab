"""The environment that Slurm's commands get.

Their output depends on the user's own settings (`SQUEUE_FORMAT`, `SACCT_FORMAT`, `SLURM_TIME_FORMAT`,
`SLURM_CLUSTERS` …), and inside an allocation `SLURM_*` aims them at the outer job. So these are taken
out, and what the parsers count on is put in.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

_PREFIXES = (
    "SLURM_",
    "SLURMD_",
    "SBATCH_",
    "SALLOC_",
    "SRUN_",
    "SQUEUE_",
    "SACCT_",
    "SINFO_",
    "SPRIO_",
    "SSTAT_",
    "SCANCEL_",
    "SCONTROL_",
    "SDIAG_",
    "SSHARE_",
    "SREPORT_",
    "PMI_",
    "PMIX_",
    "PMI2_",
    "PALS_",
)

_KEPT = frozenset({"SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT"})
"""How the cluster is found, and a token to be let in: no setting of an allocation or a format."""

TASK_LIST_BYTES = 4096
"""How long a list of array tasks may become before squeue cuts it with `...` (its default is 64)."""


def without_slurm(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment (this process's unless given) without settings of Slurm and of an outer allocation.

    It is what submissions and shells get: everything else of the user's stays as it is.
    """
    source = os.environ if environment is None else environment
    return {name: value for name, value in source.items() if name in _KEPT or not name.startswith(_PREFIXES)}


def for_queries(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of commands whose output is parsed: epoch times, whole task lists, no translations."""
    cleaned = without_slurm(environment)
    for name in [name for name in cleaned if name.startswith("LC_") or name in {"LANG", "LANGUAGE"}]:
        del cleaned[name]
    cleaned["LC_ALL"] = "C.UTF-8"
    cleaned["SLURM_TIME_FORMAT"] = "%s"
    cleaned["SLURM_BITSTR_LEN"] = str(TASK_LIST_BYTES)
    return cleaned
