"""Job templates: scripts that plain `sbatch` runs, with a header that tells which values may be filled in."""
