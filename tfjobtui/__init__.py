"""tfjobtui: a terminal program for people who train TensorFlow models on Slurm clusters."""

__version__ = "0.1.0"
