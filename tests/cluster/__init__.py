"""A real Slurm cluster in one private folder: see cluster.py (serve, stop) and client.py (for tests)."""
