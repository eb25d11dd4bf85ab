"""sinfo: this machine as the one node of the one partition."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tfjobtui.errors import FormatError
from tfjobtui.schedulers.local.commands import version
from tfjobtui.schedulers.local.commands.forms import cut
from tfjobtui.schedulers.local.commands.getopt import Parsed, Table, parse
from tfjobtui.schedulers.local.commands.refusal import RefusalError, refuse
from tfjobtui.schedulers.local.commands.show_machine import gres_text
from tfjobtui.schedulers.local.environment import CLUSTER
from tfjobtui.schedulers.local.machine import Machine, find_machine
from tfjobtui.schedulers.local.place import default_place, host_name
from tfjobtui.schedulers.local.store import Store

_TABLE = Table(
    "sinfo",
    with_value="""
    format:o Format:O partition:p nodes:n node=nodes nodelist=nodes states:t state=states sort:S clusters:M
    cluster=clusters
    """,
    flags="""
    noheader:h Node:N long:l summarize:s all:a exact:e responding:r dead:d hide local federation noconvert verbose:v
    list-reasons:R version:V help usage
    """,
    with_value_not_here="iterate:i",
    flags_not_here="json yaml bg:b reservation:T cluster-features future:F",
)
_DEFAULT = "%9P %.5a %.10l %.6D %.6t %N"
_LONG = "%9P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N"
_SUMMARY = "%9P %.5a %.10l %.16F %N"
_NODE = "%10N %.6D %.9P %6t"
_LONG_NODE = "%10N %.6D %.9P %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E"
_REASONS = "%20E %9u %19H %N"
_WIDE = 20


@dataclass(frozen=True, slots=True)
class _Node:
    """The machine, and what jobs hold of it."""

    machine: Machine
    cpus: int
    memory_bytes: int
    gpus: tuple[int, ...]

    @property
    def total(self) -> int:
        return len(self.machine.cpus)

    @property
    def state(self) -> str:
        if self.cpus >= self.total:
            return "allocated"
        return "mixed" if self.cpus or self.gpus else "idle"


class _Field(NamedTuple):
    title: str
    value: Callable[[_Node], str]


def _always(text: str) -> Callable[[_Node], str]:
    return lambda _: text


def _counts(node: _Node) -> str:
    return "0/1/0/1" if node.state == "idle" else "1/0/0/1"


def _used_gres(node: _Node) -> str:
    kinds = {gpu.index: gpu.kind for gpu in node.machine.gpus}
    found = []
    for kind in dict.fromkeys(kinds.values()):
        mine = [index for index in node.gpus if kinds.get(index) == kind]
        found.append(f"gpu:{kind}:{len(mine)}(IDX:{_ranges(mine) or 'N/A'})")
    return ",".join(found) or "gpu:0"


def _ranges(numbers: Sequence[int]) -> str:
    from tfjobtui.schedulers.local.commands.step_tasks import number_list

    return number_list(numbers)


def _free(_: _Node) -> str:
    return str(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20)


_SHORT = {"allocated": "alloc", "mixed": "mix", "idle": "idle"}
_FIELDS: Mapping[str, _Field] = {
    "available": _Field("AVAIL", _always("up")),
    "features": _Field("AVAIL_FEATURES", _always("(null)")),
    "features_act": _Field("ACTIVE_FEATURES", _always("(null)")),
    "allocmem": _Field("ALLOCMEM", lambda node: str(node.memory_bytes >> 20)),
    "cluster": _Field("CLUSTER", _always(CLUSTER)),
    "cores": _Field("CORES", _always("1")),
    "cpus": _Field("CPUS", lambda node: str(node.total)),
    "cpusload": _Field("CPU_LOAD", lambda _: f"{os.getloadavg()[0]:.2f}"),
    "cpusstate": _Field(
        "CPUS(A/I/O/T)", lambda node: f"{node.cpus}/{max(0, node.total - node.cpus)}/0/{node.total}"
    ),
    "disk": _Field("TMP_DISK", _always("0")),
    "freemem": _Field("FREE_MEM", _free),
    "gres": _Field("GRES", lambda node: gres_text(node.machine) or "(null)"),
    "gresused": _Field("GRES_USED", _used_gres),
    "groups": _Field("GROUPS", _always("all")),
    "memory": _Field("MEMORY", lambda node: str(node.machine.memory_bytes >> 20)),
    "nodeai": _Field("NODES(A/I)", lambda node: _counts(node)[:3]),
    "nodeaiot": _Field("NODES(A/I/O/T)", _counts),
    "nodehost": _Field("HOSTNAMES", lambda _: host_name()),
    "nodelist": _Field("NODELIST", lambda _: host_name()),
    "nodes": _Field("NODES", _always("1")),
    "oversubscribe": _Field("OVERSUBS", _always("NO")),
    "partition": _Field("PARTITION", _always(f"{CLUSTER}*")),
    "partitionname": _Field("PARTITION", _always(CLUSTER)),
    "reason": _Field("REASON", _always("none")),
    "root": _Field("ROOT", _always("no")),
    "size": _Field("JOB_SIZE", _always("1")),
    "socketcorethread": _Field("S:C:T", lambda node: f"{node.total}:1:1"),
    "sockets": _Field("SOCKETS", lambda node: str(node.total)),
    "statecompact": _Field("STATE", lambda node: _SHORT[node.state]),
    "statecomplete": _Field("STATECOMPLETE", lambda node: node.state),
    "statelong": _Field("STATE", lambda node: node.state),
    "threads": _Field("THREADS", _always("1")),
    "time": _Field("TIMELIMIT", _always("infinite")),
    "timestamp": _Field("TIMESTAMP", _always("Unknown")),
    "user": _Field("USER", _always("Unknown")),
    "version": _Field("VERSION", _always(version.LIKE)),
    "weight": _Field("WEIGHT", _always("1")),
}
"""By the names of `-O`."""
_LETTERS: Mapping[str, str] = {
    "a": "available", "A": "nodeai", "b": "features_act", "c": "cpus", "C": "cpusstate", "d": "disk", "D": "nodes",
    "e": "freemem", "E": "reason", "f": "features", "F": "nodeaiot", "g": "groups", "G": "gres", "h": "oversubscribe",
    "H": "timestamp", "l": "time", "m": "memory", "n": "nodehost", "N": "nodelist", "O": "cpusload", "P": "partition",
    "r": "root", "R": "partitionname", "s": "size", "t": "statecompact", "T": "statelong", "u": "user",
    "U": "user", "v": "version", "V": "cluster", "w": "weight", "X": "sockets", "Y": "cores", "z": "socketcorethread",
    "Z": "threads",
}  # fmt: skip


def run(argv: Sequence[str]) -> int:
    """Print the table.

    Raises:
        RefusalError: an option or a field is wrong, or not for here.
    """
    options = parse(_TABLE, argv)
    if version.told("sinfo", options):
        return 0
    if options.rest:
        refuse("sinfo", f"Unrecognized option: {options.rest[0]}")
    for name in options.words("clusters") or ():
        if name not in (CLUSTER, "all"):
            refuse("sinfo", f"No cluster '{name}' known by database.")
    columns = _columns(options)
    node = _node()
    if not options.has("noheader"):
        if options.has("long"):
            print(time.strftime("%a %b %d %H:%M:%S %Y"))
        print("".join(column.shown(column.field.title) for column in columns))
    if _is_asked(options, node):
        print("".join(column.shown(column.field.value(node)) for column in columns))
    return 0


def _node() -> _Node:
    store = Store(default_place())
    held = [record.allocation for record in store.live() if record.allocation is not None]
    return _Node(
        find_machine(store.settings()),
        sum(len(one.cpus) for one in held),
        sum(one.memory_bytes for one in held),
        tuple(gpu for one in held for gpu in one.gpus),
    )


def _is_asked(options: Parsed, node: _Node) -> bool:
    if options.has("list-reasons") or options.has("dead"):
        return False
    partitions, states = options.words("partition"), options.words("states")
    if partitions is not None and CLUSTER not in partitions:
        return False
    if states is not None and not {"all", node.state, _SHORT[node.state]} & {
        word.casefold() for word in states
    }:
        return False
    return not options.has("nodes") or host_name() in _hosts(options.get("nodes"))


def _hosts(text: str) -> Sequence[str]:
    from tfjobtui.model import hostlist

    try:
        return hostlist.expand(text)
    except FormatError as error:
        raise RefusalError(f"sinfo: error: Invalid node list: {text}") from error


# ---- Columns


@dataclass(frozen=True, slots=True)
class _Column:
    field: _Field
    width: int
    is_right: bool
    before: str
    after: str

    def shown(self, text: str) -> str:
        # The list of nodes is the one column that is never cut.
        width = max(self.width, len(text)) if self.width and self.field.title == "NODELIST" else self.width
        return f"{self.before}{cut(text, width, right=self.is_right)}{self.after}"


def _columns(options: Parsed) -> list[_Column]:
    if options.has("Format"):
        return _by_names(options.get("Format"))
    return _by_letters(options.get("format") or _usual(options))


def _usual(options: Parsed) -> str:
    if os.environ.get("SINFO_FORMAT"):
        return os.environ["SINFO_FORMAT"]
    if options.has("list-reasons"):
        return _REASONS
    if options.has("summarize"):
        return _SUMMARY
    if options.has("Node"):
        return _LONG_NODE if options.has("long") else _NODE
    return _LONG if options.has("long") else _DEFAULT


_LETTER = re.compile(r"%(\.?)(\d*)(.)([^%]*)", re.DOTALL)


def _by_letters(text: str) -> list[_Column]:
    before, _, _ = text.partition("%")
    found: list[_Column] = []
    for match in _LETTER.finditer(text):
        if match[3] not in _LETTERS:
            raise RefusalError(f"Invalid node format specification: {match[3]}")
        found.append(
            _Column(_FIELDS[_LETTERS[match[3]]], int(match[2] or 0), bool(match[1]), before, match[4])
        )
        before = ""
    return found


_NAMED = re.compile(r"(?P<name>[^:]+)(?P<colon>:)?(?P<right>\.?)(?P<width>\d*)(?P<after>.*)", re.DOTALL)


def _by_names(text: str) -> list[_Column]:
    found: list[_Column] = []
    for word in text.split(","):
        match = _NAMED.fullmatch(word)
        name = match["name"].strip().casefold() if match else ""
        if match is None or name not in _FIELDS:
            refuse("sinfo", f"Invalid job format specification: {word.partition(':')[0]}")
        width = int(match["width"] or 0) if match["colon"] else _WIDE
        found.append(_Column(_FIELDS[name], width, bool(match["right"]), "", match["after"]))
    return found
