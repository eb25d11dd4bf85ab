"""What is free over time, by the ends of what runs and of what is planned."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass

UNLIMITED_S = 365 * 86400.0
"""How long a job without a time limit is taken to run, as Slurm's backfill does."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a job needs, and for how long. `gpu_choice` are the GPUs that will do, best first."""

    cpus: int
    memory_bytes: int
    gpus: int
    gpu_choice: tuple[int, ...]
    duration_s: float


@dataclass(slots=True)
class _Segment:
    """From `start_s` to the start of the next segment this much is free."""

    start_s: float
    cpus: int
    memory_bytes: int
    gpus: frozenset[int]


class Profile:
    """The free CPUs, memory and GPUs from now on."""

    def __init__(self, now_s: float, cpus: int, memory_bytes: int, gpus: Sequence[int]) -> None:
        self._segments = [_Segment(now_s, cpus, memory_bytes, frozenset(gpus))]

    def take(self, start_s: float, end_s: float, cpus: int, memory_bytes: int, gpus: Sequence[int]) -> None:
        """Set something aside for a time."""
        first = self._cut(start_s)
        last = len(self._segments) if math.isinf(end_s) else self._cut(end_s)
        for segment in self._segments[first:last]:
            segment.cpus -= cpus
            segment.memory_bytes -= memory_bytes
            segment.gpus -= frozenset(gpus)

    def _cut(self, moment_s: float) -> int:
        """The index of the segment that begins then, which is made if there is none."""
        at = bisect.bisect_left(self._segments, moment_s, key=lambda segment: segment.start_s)
        if at < len(self._segments) and self._segments[at].start_s == moment_s:
            return at
        if at == 0:
            return 0
        before = self._segments[at - 1]
        self._segments.insert(at, _Segment(moment_s, before.cpus, before.memory_bytes, before.gpus))
        return at

    def earliest(self, need: Need) -> tuple[float, tuple[int, ...]] | None:
        """When it fits for its whole time, and with which GPUs; `None` for never."""
        for index, segment in enumerate(self._segments):
            gpus = self._fits(index, segment.start_s + need.duration_s, need)
            if gpus is not None:
                return segment.start_s, gpus
        return None

    def _fits(self, index: int, end_s: float, need: Need) -> tuple[int, ...] | None:
        """The GPUs that it gets if it fits from this segment to that moment."""
        free = frozenset(need.gpu_choice)
        for segment in self._segments[index:]:
            if segment.start_s >= end_s:
                break
            free &= segment.gpus
            if segment.cpus < need.cpus or segment.memory_bytes < need.memory_bytes or len(free) < need.gpus:
                return None
        return tuple(sorted([gpu for gpu in need.gpu_choice if gpu in free][: need.gpus]))
