"""What both schedulers have to do alike: the same scripts, the same expectations, on real Slurm and on this machine."""
