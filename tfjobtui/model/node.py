"""A node of the cluster, and what may be expected of it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tfjobtui.model.job import NO_GPUS, Gpus

_MARKS = {
    "*": "NOT_RESPONDING",
    "~": "POWERED_DOWN",
    "#": "POWERING_UP",
    "%": "POWERING_DOWN",
    "!": "POWER_DOWN",
    "$": "MAINT",
    "@": "REBOOT_REQUESTED",
    "^": "REBOOT_ISSUED",
    "-": "PLANNED",
    "+": "COMPLETING",
}
"""The suffixes of node states (sinfo(1), NODE STATE CODES)."""
_SHORT = {
    "ALLOC": "ALLOCATED",
    "MIX": "MIXED",
    "COMP": "COMPLETING",
    "DRAINED": "DRAIN",
    "DRAINING": "DRAIN",
    "DRNG": "DRAIN",
    "DRAIN": "DRAIN",
    "FAILING": "FAIL",
    "RESV": "RESERVED",
    "PLND": "PLANNED",
}
_TAKES_NO_JOBS = frozenset(
    {
        "DOWN",
        "DRAIN",
        "FAIL",
        "NOT_RESPONDING",
        "MAINT",
        "REBOOT",
        "REBOOT_ISSUED",
        "REBOOT_REQUESTED",
        "INVAL",
        "FUTURE",
        "UNKNOWN",
        "ERROR",
        "POWERING_DOWN",
        "POWER_DOWN",
        "INVALID_REG",
    }
)


@dataclass(frozen=True, slots=True)
class NodeState:
    """A node's state: the scheduler's own text, and the words in it without their short forms and suffixes."""

    text: str
    words: frozenset[str]

    @staticmethod
    def of(text: str) -> NodeState:
        """Read `idle`, `mix*`, `MIXED+DRAIN+PLANNED*`."""
        body = text.rstrip("".join(_MARKS))
        marks = text[len(body) :]
        words = {_SHORT.get(word, word) for word in re.split(r"[+,]", body.upper()) if word}
        return NodeState(text, frozenset(words | {_MARKS[mark] for mark in marks}))

    @property
    def takes_jobs(self) -> bool:
        """Whether something that fits could start there now. A powered-down node of a cloud does, later."""
        return not self.words & _TAKES_NO_JOBS


@dataclass(frozen=True, slots=True)
class Node:
    """A node, whatever the number of partitions it stands in.

    `cpus`, `memory_bytes` and `gpus` are what it has, `…_used` what jobs hold of it; `None` is not known.
    `reason` is an administrator's word on why it is out of service. `features` are names to ask for it by.
    """

    name: str
    partitions: tuple[str, ...]
    state: NodeState
    gpus: Gpus = NO_GPUS
    gpus_used: Gpus = NO_GPUS
    cpus: int | None = None
    cpus_used: int | None = None
    memory_bytes: int | None = None
    memory_used_bytes: int | None = None
    reason: str = ""
    features: str = ""
    cluster: str | None = None

    @property
    def gpus_free(self) -> int:
        """GPUs that nobody holds, whether or not the node takes jobs."""
        return max(0, self.gpus.count - self.gpus_used.count)

    @property
    def gpus_free_by_type(self) -> tuple[tuple[str | None, int], ...]:
        """The same by type; what is used without a type is taken from the types in their order."""
        used = dict(self.gpus_used.by_type)
        untyped = used.pop(None, 0)
        free = []
        for kind, count in self.gpus.by_type:
            left = max(0, count - used.get(kind, 0))
            taken = min(left, untyped)
            untyped -= taken
            free.append((kind, left - taken))
        return tuple(free)
