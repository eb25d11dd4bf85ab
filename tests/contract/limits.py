"""Jobs that run into their limit, which takes more than a minute on the cluster."""

from __future__ import annotations

from tests.contract.side import Side
from tfjobtui.model.ids import JobId

_FOR_EVER = "while true; do sleep 0.1; done"
_WARNED = f"""trap "echo batch was warned" USR1
srun -n1 bash -c 'trap "echo task was warned" USR1; echo ready; {_FOR_EVER}' &
{_FOR_EVER}"""

LIMITED = {
    "heeds": (f'trap "echo got TERM; exit 7" TERM; echo ready; {_FOR_EVER}', ()),
    "ignores": (f"trap '' TERM; echo ready; {_FOR_EVER}", ()),
    "steps": (_WARNED, ("--signal=USR1@50",)),
    "batch": (_WARNED, ("--signal=B:USR1@50",)),
}
"""By the name of the log: the script, and its options."""


def submit_limited(side: Side) -> dict[str, JobId]:
    """All of them, with a limit of a minute."""
    return {
        name: side.submit(body, "-t", "1", "-o", f"limit-{name}.out", *options)
        for name, (body, options) in LIMITED.items()
    }
