"""The lines that a person reads in the job's log."""

import sys

PREFIX = "tfjob-train: "


def say(message: str) -> None:
    """Write what happened as one line to stdout, at once (a job's log is followed while it grows)."""
    print(f"{PREFIX}{message}", flush=True)


def progress(line: str) -> None:
    """Write one line of figures to stdout, without the prefix."""
    print(line, flush=True)


def complain(message: str) -> None:
    """Write what is wrong as one line to stderr."""
    print(f"{PREFIX}{message}", file=sys.stderr, flush=True)
