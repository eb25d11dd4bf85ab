"""What `sprio` prints: the weighted terms of waiting jobs' priorities."""

from __future__ import annotations

import re

from tfjobtui.schedulers.scheduler import PriorityFactor
from tfjobtui.schedulers.slurm.form import FIELD_END, ROW_END

_TERMS = {
    "A": "Age",
    "B": "Association",
    "F": "Fair share",
    "J": "Job size",
    "P": "Partition",
    "Q": "QOS",
    "S": "Site",
    "N": "Nice",
    "T": "TRES",
}
FORM = "%i" + "".join(f"{FIELD_END}%{letter}" for letter in _TERMS) + ROW_END
NO_SUCH_JOB = re.compile(r"unable to find jobs matching", re.IGNORECASE)


def parse_factors(text: str) -> tuple[PriorityFactor, ...]:
    """Read the first row, the greatest term first. Nice lowers a priority; terms of 0 are kept."""
    row = text.split(ROW_END, 1)[0]
    values = [value.strip() for value in row.split(FIELD_END)]
    if len(values) != len(_TERMS) + 1:
        return ()
    factors: list[PriorityFactor] = []
    for name, value in zip(_TERMS.values(), values[1:], strict=True):
        if name == "TRES":
            pairs = (item.partition("=") for item in value.split(",") if "=" in item)
            factors.extend(PriorityFactor(f"TRES {kind}", _number(amount)) for kind, _, amount in pairs)
        else:
            number = _number(value)
            factors.append(PriorityFactor(name, -number if name == "Nice" and number else number))
    return tuple(sorted(factors, key=lambda factor: -factor.value))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
