"""sinfo: this machine as the one node of the one partition."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tfjobtui.errors import UsageError
from tfjobtui.schedulers.local.commands.columns import cell
from tfjobtui.schedulers.local.commands.getopt import Table, parse
from tfjobtui.schedulers.local.machine import find_machine
from tfjobtui.schedulers.local.place import default_place, host_name
from tfjobtui.schedulers.local.store import Store

_TABLE = Table(
    with_value="format:o partition:p nodes:n states:t sort:S clusters:M",
    flags="noheader:h Node:N long:l summarize:s all:a responding:r version:V local federation",
)
_FIELD = re.compile(r"%(?P<right>\.?)(?P<width>\d*)(?P<letter>[A-Za-z])")
_TITLES = {
    "P": "PARTITION", "R": "PARTITION", "a": "AVAIL", "l": "TIMELIMIT", "D": "NODES", "t": "STATE", "T": "STATE",
    "N": "NODELIST", "G": "GRES", "c": "CPUS", "C": "CPUS(A/I/O/T)", "m": "MEMORY", "e": "FREE_MEM", "n": "HOSTNAMES",
    "E": "REASON", "f": "AVAIL_FEATURES",
}  # fmt: skip
_DEFAULT = "%9P %.5a %.10l %.6D %.6t %N"
_NODE = "%N %.6D %.9P %.6t"
_SUMMARY = "%9P %.5a %.10l %.16C %N"


def run(argv: Sequence[str]) -> int:
    """Print the table."""
    options = parse("sinfo", _TABLE, argv)
    usual = _NODE if options.has("Node") else _SUMMARY if options.has("summarize") else _DEFAULT
    form = options.get("format") or usual
    for match in _FIELD.finditer(form):
        if match["letter"] not in _TITLES:
            raise UsageError(f"Invalid node format specification: %{match['letter']} (not known here)")
    if not options.has("noheader"):
        print(_filled(form, _TITLES))
    if options.get("partition", "local") == "local":
        print(_filled(form, _values()))
    return 0


def _values() -> dict[str, str]:
    store = Store(default_place())
    machine = find_machine(store.settings())
    held = [record.allocation for record in store.live() if record.allocation is not None]
    used = sum(len(allocation.cpus) for allocation in held)
    taken = sum(allocation.memory_bytes for allocation in held)
    count = len(machine.cpus)
    state = "alloc" if used >= count else "mix" if used else "idle"
    gres = ",".join(f"gpu:{gpu.kind}:1" for gpu in machine.gpus) or "(null)"
    return {
        "P": "local*", "R": "local", "a": "up", "l": "infinite", "D": "1", "t": state,
        "T": {"alloc": "allocated", "mix": "mixed"}.get(state, state), "N": host_name(), "n": host_name(),
        "G": gres, "c": str(count), "C": f"{used}/{count - used}/0/{count}", "m": str(machine.memory_bytes >> 20),
        "e": str((machine.memory_bytes - taken) >> 20), "E": "none", "f": "(null)",
    }  # fmt: skip


def _filled(form: str, values: dict[str, str]) -> str:
    def one(match: re.Match[str]) -> str:
        text, width = values[match["letter"]], int(match["width"] or 0)
        return cell(text, width, left=not match["right"]) if width else text

    return _FIELD.sub(one, form).rstrip()
