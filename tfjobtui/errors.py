"""Every error that tfjobtui raises on purpose.

```
TfjobtuiError                 has a message for the user and a hint what to do
├── UsageError                a wrong option or value; exit code 2
│   └── ConfigError           a configuration file, with its name and key
├── CommandError              a command of the system was run (or could not be)
│   ├── CommandNotFoundError
│   ├── CommandTimeoutError
│   └── CommandFailedError    it ended with an error; its own words are kept
├── QueryError                a query gave no answer; what was known stays known
│   └── StoreError            the embedded scheduler's own file
│       └── StoreVersionError a newer program has written it
├── ActionError               an action was refused; the scheduler's own words are kept
│   └── SubmissionError
└── FormatError               text that does not have the form its reader expects
```
"""

from __future__ import annotations

from collections.abc import Sequence


class TfjobtuiError(Exception):
    """Something that the user can be told in a sentence.

    `hint` says what to do about it, and is empty where nothing can be done.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class UsageError(TfjobtuiError):
    """A wrong option, argument or value."""


class ConfigError(UsageError):
    """A configuration file has a wrong key or value; the message names the file and the key."""


class CommandError(TfjobtuiError):
    """A command could not be run, or did not end well."""

    def __init__(self, message: str, argv: Sequence[str], hint: str = "") -> None:
        super().__init__(message, hint)
        self.argv = tuple(argv)


class CommandNotFoundError(CommandError):
    """The command is not on the PATH, or may not be executed."""


class CommandTimeoutError(CommandError):
    """The command gave no answer within its time; it was ended with everything it started."""


class CommandFailedError(CommandError):
    """The command ended with an error; `stderr` holds its own words."""

    def __init__(
        self, message: str, argv: Sequence[str], returncode: int, stderr: str, hint: str = ""
    ) -> None:
        super().__init__(message, argv, hint)
        self.returncode = returncode
        self.stderr = stderr


class QueryError(TfjobtuiError):
    """A query of the scheduler gave no answer; nothing may be concluded about any job."""


class StoreError(QueryError):
    """The file of the embedded scheduler's jobs cannot be read or written; the message says why."""


class StoreVersionError(StoreError):
    """The file was written by a newer program, and is not touched."""


class ActionError(TfjobtuiError):
    """The scheduler refused an action; the message holds its own words."""


class SubmissionError(ActionError):
    """A job was not submitted, or it is not known whether it was.

    `argv` is the command that was run, if one was; `returncode` is `None` where it gave no answer, and
    `said` is what it said.
    """

    def __init__(
        self,
        message: str,
        hint: str = "",
        *,
        argv: Sequence[str] = (),
        returncode: int | None = None,
        said: str = "",
    ) -> None:
        super().__init__(message, hint)
        self.argv = tuple(argv)
        self.returncode = returncode
        self.said = said


class FormatError(TfjobtuiError):
    """Text does not have the form that its reader expects."""
