"""The cluster as a whole: its partitions and nodes, and what of them is free.

A node that stands in several partitions counts once in every total. What a node holds that takes no jobs
(down, drained, …) is not free, whoever holds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tfjobtui.errors import FormatError
from tfjobtui.model import hostlist
from tfjobtui.model.job import Job
from tfjobtui.model.node import Node
from tfjobtui.model.text import cells, fit, printable
from tfjobtui.model.units import duration, size
from tfjobtui.schedulers.scheduler import Partition


@dataclass(frozen=True, slots=True)
class GpuCount:
    """GPUs of one type; `kind` is `None` where the site names none. `free` can be had now, `off` cannot be
    used at all, because their node takes no jobs."""

    kind: str | None
    total: int
    free: int
    off: int = 0

    @property
    def used(self) -> int:
        return self.total - self.free - self.off


@dataclass(frozen=True, slots=True)
class Capacity:
    """What some nodes have together, and what of it is free. Bytes for memory."""

    nodes: int
    nodes_off: int
    cpus: int
    cpus_free: int
    memory_bytes: int
    memory_free_bytes: int
    gpus: tuple[GpuCount, ...]

    @property
    def gpus_free(self) -> int:
        return sum(item.free for item in self.gpus)


@dataclass(frozen=True, slots=True)
class ClusterView:
    """Partitions with the capacity of their nodes, and the capacity of all nodes."""

    partitions: tuple[tuple[Partition, Capacity], ...]
    nodes: tuple[Node, ...]
    whole: Capacity


def view_of(partitions: Iterable[Partition], nodes: Iterable[Node]) -> ClusterView:
    """Put the answers together; the usual partition first, then those with the most free GPUs, closed ones last."""
    nodes = tuple(nodes)
    rows = [(item, capacity([node for node in nodes if item.name in node.partitions])) for item in partitions]
    rows.sort(key=lambda row: (not row[0].is_default, not row[0].is_up, -row[1].gpus_free, row[0].name))
    return ClusterView(tuple(rows), nodes, capacity(nodes))


def capacity(nodes: Sequence[Node]) -> Capacity:
    """What these nodes have together."""
    usable = [node for node in nodes if node.state.takes_jobs]
    return Capacity(
        nodes=len(nodes),
        nodes_off=len(nodes) - len(usable),
        cpus=sum(node.cpus or 0 for node in nodes),
        cpus_free=sum(max(0, (node.cpus or 0) - (node.cpus_used or 0)) for node in usable),
        memory_bytes=sum(node.memory_bytes or 0 for node in nodes),
        memory_free_bytes=sum(
            max(0, (node.memory_bytes or 0) - (node.memory_used_bytes or 0)) for node in usable
        ),
        gpus=_gpus(nodes),
    )


def _gpus(nodes: Sequence[Node]) -> tuple[GpuCount, ...]:
    totals: dict[str | None, list[int]] = {}
    for node in nodes:
        free = dict(node.gpus_free_by_type)
        for kind, count in node.gpus.by_type:
            sums = totals.setdefault(kind, [0, 0, 0])
            sums[0] += count
            sums[1 if node.state.takes_jobs else 2] += free.get(kind, 0)
    return tuple(
        GpuCount(kind, total, free, off)
        for kind, (total, free, off) in sorted(totals.items(), key=lambda item: item[0] or "")
    )


def holders(jobs: Iterable[Job]) -> Mapping[str, tuple[Job, ...]]:
    """The running jobs on each node, by the node's name."""
    found: dict[str, list[Job]] = {}
    for job in jobs:
        if not job.state.is_active or not job.nodes:
            continue
        try:
            names = hostlist.expand(job.nodes)
        except FormatError:
            continue
        for name in names:
            found.setdefault(name, []).append(job)
    return {name: tuple(on_it) for name, on_it in found.items()}


# ---- As tables of text


@dataclass(frozen=True, slots=True)
class TextRow:
    """One row of a table. `tone` is `good` (something is free), `bad` (out of service) or empty."""

    texts: tuple[str, ...]
    tone: str = ""


PARTITION_TITLES = ("PARTITION", "LIMIT", "NODES", "CPUS FREE", "MEM FREE", "GPUS FREE")
NODE_TITLES = ("NODE", "STATE", "CPUS FREE", "MEM FREE", "GPUS FREE", "PARTITIONS", "JOBS AND REASONS")


def partition_rows(view: ClusterView) -> tuple[TextRow, ...]:
    """The partitions, the usual one marked with `*`, as sinfo does."""
    return tuple(_partition_row(item, has) for item, has in view.partitions)


def _partition_row(partition: Partition, has: Capacity) -> TextRow:
    off = f" ({has.nodes_off} off)" if has.nodes_off else ""
    texts = (
        f"{partition.name}{'*' if partition.is_default else ''}",
        duration(partition.max_time_s) if partition.is_up else "down",
        f"{has.nodes}{off}",
        f"{has.cpus_free}/{has.cpus}",
        f"{size(has.memory_free_bytes)}/{size(has.memory_bytes)}",
        gpus_text(has.gpus),
    )
    tone = "bad" if not partition.is_up else "good" if has.gpus_free else ""
    return TextRow(texts, tone)


def node_rows(view: ClusterView, on_nodes: Mapping[str, Sequence[Job]], own_user: str) -> tuple[TextRow, ...]:
    """The nodes, those with the most free GPUs first and those out of service last.

    `on_nodes` are the jobs that are known to be on each; of others' jobs there may be more.
    """
    order = sorted(
        view.nodes,
        key=lambda node: (not node.state.takes_jobs, -node.gpus_free, not node.gpus.count, node.name),
    )
    return tuple(_node_row(node, on_nodes.get(node.name, ()), own_user) for node in order)


def _node_row(node: Node, jobs: Sequence[Job], own_user: str) -> TextRow:
    has = capacity([node])
    words = [node.reason] if node.reason else []
    words += [_held(user, on_it) for user, on_it in _by_user(jobs, own_user)]
    texts = (
        f"{node.cluster}/{node.name}" if node.cluster else node.name,
        node.state.text,
        "" if node.cpus is None else f"{has.cpus_free}/{has.cpus}",
        "" if node.memory_bytes is None else f"{size(has.memory_free_bytes)}/{size(has.memory_bytes)}",
        gpus_text(has.gpus),
        " ".join(sorted(node.partitions)),
        ", ".join(words),
    )
    tone = "bad" if not node.state.takes_jobs else "good" if has.gpus_free else ""
    return TextRow(texts, tone)


def _by_user(jobs: Sequence[Job], own_user: str) -> list[tuple[str, list[Job]]]:
    found: dict[str, list[Job]] = {}
    for job in jobs:
        found.setdefault("you" if job.user == own_user else job.user, []).append(job)
    return sorted(found.items(), key=lambda item: (item[0] != "you", item[0]))


def _held(user: str, jobs: Sequence[Job]) -> str:
    """`you 12 (2 GPUs)`; of several jobs their number, with the GPUs of those that lie on one node only."""
    what = str(jobs[0].id) if len(jobs) == 1 else f"{len(jobs)} jobs"
    gpus = sum(job.gpus.count for job in jobs if (job.node_count or 1) == 1)
    return f"{user} {what}" + (f" ({gpus} GPU{'s' if gpus > 1 else ''})" if gpus else "")


def gpus_text(gpus: Iterable[GpuCount]) -> str:
    """`a100 6/8  v100 0/2`: free of all, by type."""
    return "  ".join(f"{item.kind or 'GPU'} {item.free}/{item.total}" for item in gpus)


def headline(view: ClusterView) -> str:
    """The whole cluster in a line."""
    has = view.whole
    parts = [
        f"{has.nodes} nodes" + (f" ({has.nodes_off} out of service)" if has.nodes_off else ""),
        *(
            f"{item.free} of {item.total} {item.kind or ''}{' ' if item.kind else ''}GPUs free"
            for item in has.gpus
        ),
        f"{has.cpus_free} of {has.cpus} CPUs free",
    ]
    return " · ".join(parts)


GAP = 2
"""Cells between two columns."""
_LEAST_LAST = 24


@dataclass(frozen=True, slots=True)
class Table:
    """A table for a number of cells: which columns are shown, and how wide each is."""

    columns: tuple[int, ...]
    widths: tuple[int, ...]


def lay_out(titles: Sequence[str], rows: Iterable[TextRow], room: int, optional: int) -> Table:
    """Columns as wide as their widest text; the last takes what is left of `room`.

    The column `optional` is left out where the last one would be cut to fewer than 24 cells without that.
    """
    widest = [len(title) for title in titles]
    for row in rows:
        widest = [max(width, cells(text)) for width, text in zip(widest, row.texts, strict=True)]
    columns = tuple(range(len(titles)))
    used = sum(widest[:-1]) + GAP * (len(titles) - 1)
    if room - used < min(widest[-1], _LEAST_LAST):
        columns = tuple(column for column in columns if column != optional)
        used -= widest[optional] + GAP
    last = max(len(titles[-1]), room - used)
    return Table(columns, (*(widest[column] for column in columns[:-1]), last))


def line(texts: Sequence[str], table: Table) -> str:
    """One row of the table, cut and padded; control characters are made visible."""
    chosen = (texts[column] for column in table.columns)
    shown = [fit(printable(text), width) for text, width in zip(chosen, table.widths, strict=True)]
    return (" " * GAP).join(shown).rstrip()


PARTITION_OPTIONAL = PARTITION_TITLES.index("MEM FREE")
NODE_OPTIONAL = NODE_TITLES.index("PARTITIONS")
