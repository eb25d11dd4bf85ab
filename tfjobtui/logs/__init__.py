"""A job's log: where it is, how it grows, and what a terminal would have shown of it."""
