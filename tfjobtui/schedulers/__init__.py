"""What runs jobs: the protocols in `scheduler`, Slurm's client in `slurm`."""
