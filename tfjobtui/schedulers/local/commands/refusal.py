"""What ends a command: the words for standard error, and the exit code."""

from __future__ import annotations

from typing import NoReturn


class RefusalError(Exception):
    """A command ends here. `words` are whole lines for standard error, with the command's name where it belongs."""

    def __init__(self, words: str, code: int = 1) -> None:
        super().__init__(words)
        self.words = words
        self.code = code


def refuse(command: str, words: str, code: int = 1) -> NoReturn:
    """End with `command: error: words`, as most of Slurm's messages are.

    Raises:
        RefusalError: always.
    """
    raise RefusalError(f"{command}: error: {words}", code)


def not_here(command: str, what: str, hint: str = "") -> NoReturn:
    """End over something that Slurm knows and the embedded scheduler does not.

    Raises:
        RefusalError: always.
    """
    after = f": {hint}" if hint else ""
    refuse(command, f"{what} is not supported by tfjobtui's local scheduler{after}")
