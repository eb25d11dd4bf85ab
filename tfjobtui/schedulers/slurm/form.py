"""How squeue is asked: which fields, with separators of our own.

With `-O` (Slurm 20.11 to 26.05) every field has the width 0 (whole and unpadded) and the suffix 0x1F, the
last one 0x1E, and squeue puts a newline after each row. At a site whose squeue takes no `-O`, `-o` gives
the same form with fewer fields. Neither escapes anything: names and paths may hold any byte.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

FIELD_END = "\x1f"
ROW_END = "\x1e"

# Name of the field in `-O`, and its letter in `-o` where there is one. The free texts stand last, so that
# a separator inside one of them can't move the fields before it; the id of the user ends the row.
FIELDS: Mapping[str, str] = {
    "JobArrayID": "i",
    "JobID": "A",
    "State": "T",
    "UserName": "u",
    "Reason": "r",
    "Account": "a",
    "Partition": "P",
    "QOS": "q",
    "Reservation": "v",
    "Feature": "f",
    "Dependency": "E",
    "PriorityLong": "Q",
    "RestartCnt": "",
    "SubmitTime": "V",
    "EligibleTime": "",
    "StartTime": "S",
    "EndTime": "e",
    "TimeLimit": "l",
    "NumNodes": "D",
    "NumCPUs": "C",
    "tres-alloc": "",
    "tres-per-node": "b",
    "NodeList": "N",
    "BatchHost": "B",
    "SchedNodes": "Y",
    "exit_code": "",
    "Cluster": "",
    "Name": "j",
    "Command": "o",
    "WorkDir": "Z",
    "StdOut": "",
    "StdErr": "",
    "UserID": "U",
}


@dataclass(frozen=True, slots=True)
class Layout:
    """Which fields are asked for, in which form."""

    names: tuple[str, ...]
    is_short: bool = False

    @property
    def option(self) -> tuple[str, str]:
        """The option of squeue that asks for them."""
        last = len(self.names) - 1
        ends = [ROW_END if index == last else FIELD_END for index in range(last + 1)]
        if self.is_short:
            text = "".join(f"%{FIELDS[name]}{end}" for name, end in zip(self.names, ends, strict=True))
            return "-o", text
        return "-O", ",".join(f"{name}:0{end}" for name, end in zip(self.names, ends, strict=True))


def layout(*, clusters: bool = False, short: bool = False, without: frozenset[str] = frozenset()) -> Layout:
    """The fields to ask for: with the cluster where several are watched; `without` what squeue refused."""
    left_out = set(without)
    if not clusters:
        left_out.add("Cluster")
    left_out |= {name for name, letter in FIELDS.items() if not letter} if short else {"tres-per-node"}
    return Layout(tuple(name for name in FIELDS if name not in left_out), short)


def arguments(
    shape: Layout, *, uid: int | None, clusters: Sequence[str], is_federated: bool
) -> tuple[str, ...]:
    """The arguments of `squeue` for the jobs of one user (by number: a name costs a look-up), or for all.

    `-t all` keeps those that have just ended, `-a` those in hidden partitions. `--local` saves a request
    for the federation's state.
    """
    where: tuple[str, ...] = ("-M", ",".join(clusters)) if clusters else () if is_federated else ("--local",)
    whose = () if uid is None else ("-u", str(uid))
    return (*where, "-h", "-a", "-t", "all", *whose, *shape.option)
