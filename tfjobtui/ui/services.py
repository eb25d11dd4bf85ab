"""What the screens work with, put together by the command line."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from tfjobtui.config import Config
from tfjobtui.monitor.poller import QueuePoller
from tfjobtui.schedulers.scheduler import Scheduler

if TYPE_CHECKING:
    from tfjobtui.actions.command_log import CommandLog
    from tfjobtui.runs.records import RunRecords


class Services:
    """The parts that every screen may use. Those that the first rows do not need are made when asked for."""

    def __init__(self, config: Config, scheduler: Scheduler, poller: QueuePoller) -> None:
        self.config = config
        self.scheduler = scheduler
        self.poller = poller

    @cached_property
    def records(self) -> RunRecords:
        """The records of submitted runs."""
        from tfjobtui.runs.records import RunRecords

        return RunRecords.default()

    @cached_property
    def command_log(self) -> CommandLog:
        """The commands that were run for the user."""
        from tfjobtui.actions.command_log import CommandLog

        return CommandLog.default()
