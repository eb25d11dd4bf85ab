"""The lines that a person reads in the job's log."""

import sys

_program = "tfjob-train"
_quiet = False


def set_program(name: str) -> None:
    """The command that we are, which stands before every line."""
    global _program
    _program = name


def become_worker(name: str) -> None:
    """We are one of several processes, and not the one that speaks for all: only complaints, with our name."""
    global _program, _quiet
    _program, _quiet = f"{_program}: {name}", True


def say(message: str) -> None:
    """Write what happened as one line to stdout, at once (a job's log is followed while it grows)."""
    if not _quiet:
        print(f"{_program}: {message}", flush=True)


def progress(line: str) -> None:
    """Write one line of figures to stdout, without the prefix."""
    if not _quiet:
        print(line, flush=True)


def complain(message: str) -> None:
    """Write what is wrong as one line to stderr."""
    print(f"{_program}: {message}", file=sys.stderr, flush=True)
