"""What of this machine the embedded scheduler may use, and its manners."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """The section `[local]` of the configuration.

    `kill_wait_s` lies between TERM and KILL, as Slurm's KillWait does. `cpus`, `memory_bytes` and `gpus` are how
    much may be used of what there is; `None` is all. Ended jobs are kept for `keep_days`.
    """

    kill_wait_s: float = 30.0
    cpus: int | None = None
    memory_bytes: int | None = None
    gpus: int | None = None
    keep_days: float = 30.0

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @staticmethod
    def from_json(text: str) -> LocalSettings:
        """Read what `to_json` wrote; keys of a newer program are passed over."""
        known = {field.name for field in dataclasses.fields(LocalSettings)}
        return LocalSettings(**{name: value for name, value in json.loads(text).items() if name in known})
