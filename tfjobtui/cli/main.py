"""The command `tfjobtui`: reads the arguments, runs the command, turns errors into messages and exit codes.

Exit codes: 0 all is well; 1 refused or failed; 2 wrong usage, a wrong configuration, or no Slurm on this
machine; 130 after Ctrl+C. Nothing is imported here that the given command does not need: `--version`
and the first rows of the screen are waited for.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tfjobtui import __version__
from tfjobtui.errors import TfjobtuiError, UsageError

if TYPE_CHECKING:
    import argparse

INTERRUPTED = 130
BROKEN_PIPE = 141
"""What a shell reports of a command that SIGPIPE ended."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and give its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words in (["--version"], ["-V"]):
        print(f"tfjobtui {__version__}")
        return 0
    try:
        code = _run(words)
        sys.stdout.flush()
    except TfjobtuiError as error:
        return _tell(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _drop_stdout()
        return BROKEN_PIPE
    return code


def _run(words: list[str]) -> int:
    if hasattr(sys.stdout, "reconfigure"):
        # A locale without UTF-8 must not end the program over a name with an accent.
        sys.stdout.reconfigure(errors="replace")
    if not words:  # the usual start does not wait for the parser to be imported
        from tfjobtui.cli import screen

        return screen.run()
    if words[0] == "local" and len(words) > 1 and not words[1].startswith("-"):
        # What follows is another command's: its options are not ours, and scripts call it often.
        from tfjobtui.cli import local

        return local.run(words[1], words[2:])
    from tfjobtui.cli import arguments

    return _command(arguments.parse(words))


def _command(options: argparse.Namespace) -> int:
    """Import the module of the command, and no other."""
    command = options.command
    if command is None:
        from tfjobtui.cli import screen

        return screen.run(options.config, options.clusters, options.scheduler)
    if command in ("jobs", "show"):
        from tfjobtui.cli import jobs

        return jobs.run(options)
    if command == "local":
        from tfjobtui.cli import local

        return local.run(options.local_command, options.local_arguments)
    if command == "cluster":
        from tfjobtui.cli import cluster

        return cluster.run(options)
    if command == "logs":
        from tfjobtui.cli import logs

        return logs.run(options)
    if command in ("submit", "resubmit", "templates"):
        from tfjobtui.cli import submit

        return submit.run(options)
    if command == "doctor":
        from tfjobtui.cli import doctor

        return doctor.run(options)
    from tfjobtui.cli import control

    return control.run(options)


def _tell(error: TfjobtuiError) -> int:
    from tfjobtui.cli.output import complain

    complain(error.message, error.hint)
    return 2 if isinstance(error, UsageError) else 1


def _drop_stdout() -> None:
    """Whoever read our output has gone; the interpreter must not try to flush into nothing at its end."""
    import os

    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


if __name__ == "__main__":
    raise SystemExit(main())
