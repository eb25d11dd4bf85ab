"""What is kept of a run, and what the trainer leaves: their only readers and writers in this program."""
