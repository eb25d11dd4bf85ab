"""What `scontrol show config` tells of a site: lines of `Key = value`."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE = re.compile(r"^(\w+)(?:\[\d+\])?\s*= ?(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SiteConfig:
    """What matters here of a site's configuration."""

    version: str = ""
    has_accounting: bool = True
    is_federated: bool = False
    """Whether its users see the jobs of the whole federation unless they ask for less (`fed_display`)."""
    hides_jobs: bool = False
    has_priorities: bool = True


def parse_config(text: str) -> SiteConfig:
    """Read the answer; what is missing counts as usual."""
    values = dict(_LINE.findall(text))
    return SiteConfig(
        version=values.get("SLURM_VERSION", ""),
        has_accounting=values.get("AccountingStorageType", "").strip()
        not in {"accounting_storage/none", "(null)"},
        is_federated="fed_display" in values.get("FederationParameters", ""),
        hides_jobs="jobs" in values.get("PrivateData", "").split(","),
        has_priorities=values.get("PriorityType", "") != "priority/basic",
    )
