"""The two outputs of a job."""

from __future__ import annotations

import enum


class Stream(enum.Enum):
    """Which output of a job."""

    STDOUT = "stdout"
    STDERR = "stderr"
