"""What happened, as messages between the workers and the screens; all names are in the past tense."""

from __future__ import annotations

from textual.message import Message

from tfjobtui.monitor.poller import Refreshed, RefreshFailed


class QueueRead(Message):
    """A reading of the queue came in, and the view has been arranged anew."""

    def __init__(self, update: Refreshed) -> None:
        super().__init__()
        self.update = update


class QueueNotRead(Message):
    """A reading failed: what is shown stays."""

    def __init__(self, update: RefreshFailed) -> None:
        super().__init__()
        self.update = update
