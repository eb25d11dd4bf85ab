"""What the screens work with, put together by the command line."""

from __future__ import annotations

from dataclasses import dataclass

from tfjobtui.actions.command_log import CommandLog
from tfjobtui.config import Config
from tfjobtui.monitor.poller import QueuePoller
from tfjobtui.runs.records import RunRecords
from tfjobtui.schedulers.scheduler import Scheduler


@dataclass(frozen=True, slots=True)
class Services:
    """The parts that every screen may use."""

    config: Config
    scheduler: Scheduler
    poller: QueuePoller
    records: RunRecords
    command_log: CommandLog
