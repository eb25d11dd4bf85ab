"""Being asked to stop: by Slurm before the time limit, at a pre-emption, or by a person."""

import signal
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT)


class StopRequest:
    """Remembers the first stop signal; the loop looks at it after every step.

    `install` is called twice: at the start, so that a signal which comes while TensorFlow is imported is
    not lost (the default action of USR1 would end the job as failed), and again once the strategy exists,
    since a multi-worker strategy takes SIGTERM for itself.
    """

    def __init__(self) -> None:
        self.received: str | None = None  # the signal's name, "SIGUSR1"

    @property
    def number(self) -> int:
        """The signal's number; 0 where none has come."""
        return int(signal.Signals[self.received]) if self.received else 0

    def install(self) -> None:
        """Take the stop signals from now on."""
        for number in SIGNALS:
            signal.signal(number, self._note)

    def ignore(self) -> None:
        """Let late signals pass: the run has ended, and one in the shutdown would spoil the exit code."""
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGINT and self.received == "SIGINT":
            raise KeyboardInterrupt  # a second Ctrl-C: the person does not want to wait for the save
        if self.received is None:
            self.received = signal.Signals(number).name
