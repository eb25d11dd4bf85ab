"""What `sinfo` prints: partitions (`-o`), and nodes with their GPUs (`-N -O`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tfjobtui.model.job import Gpus
from tfjobtui.model.node import Node, NodeState
from tfjobtui.schedulers.scheduler import Partition
from tfjobtui.schedulers.slurm.fields import MEBIBYTE, parse_count, parse_duration, parse_size
from tfjobtui.schedulers.slurm.form import FIELD_END, ROW_END
from tfjobtui.schedulers.slurm.tres import added, parse_gres, times

PARTITION_FORM = FIELD_END.join(("%P", "%a", "%l", "%D", "%G")) + ROW_END
_NODE_FIELDS = (
    "NodeList",
    "Partition",
    "StateComplete",
    "CPUsState",
    "Memory",
    "AllocMem",
    "Gres",
    "GresUsed",
    "Features",
    "Reason",
)
NODE_FORM = ",".join(f"{name}:0{ROW_END if name == _NODE_FIELDS[-1] else FIELD_END}" for name in _NODE_FIELDS)


def parse_partitions(text: str) -> tuple[Partition, ...]:
    """Read the partitions; sinfo prints one row for each kind of node in each."""
    found: dict[str, Partition] = {}
    for name, state, limit, count, gres in _rows(text, 5):
        nodes = parse_count(count) or 0
        gpus = times(parse_gres(gres), nodes)
        plain = name.removesuffix("*")
        before = found.get(plain)
        if before is None:
            found[plain] = Partition(
                plain, name.endswith("*"), state == "up", parse_duration(limit), nodes, gpus.by_type
            )
        else:
            found[plain] = replace(
                before,
                node_count=before.node_count + nodes,
                gpu_types=added(Gpus(before.gpu_types), gpus).by_type,
            )
    return tuple(found.values())


def parse_nodes(text: str) -> tuple[Node, ...]:
    """Read the nodes: each once, with all its partitions."""
    found: dict[tuple[str | None, str], Node] = {}
    for cluster, row in _rows_by_cluster(text, len(_NODE_FIELDS)):
        name, partition = row[0], row[1].removesuffix("*")
        before = found.get((cluster, name))
        if before is None:
            found[cluster, name] = _node(row, partition, cluster)
        elif partition not in before.partitions:
            found[cluster, name] = replace(before, partitions=(*before.partitions, partition))
    return tuple(found.values())


def _node(row: list[str], partition: str, cluster: str | None) -> Node:
    name, _, state, cpus, memory, used_memory, gres, gres_used, features, reason = row
    used, _, _, total = (parse_count(part) for part in (cpus.split("/") + [""] * 4)[:4])
    return Node(
        name=name,
        partitions=(partition,),
        state=NodeState.of(state),
        gpus=parse_gres(gres),
        gpus_used=parse_gres(gres_used),
        cpus=total,
        cpus_used=used,
        memory_bytes=parse_size(memory, MEBIBYTE),
        memory_used_bytes=parse_size(used_memory, MEBIBYTE),
        reason="" if reason in _NO_WORD else reason,
        features="" if features in _NO_WORD else features,
        cluster=cluster,
    )


_NO_WORD = frozenset({"none", "None", "(null)", "N/A"})


def _rows(text: str, width: int) -> list[list[str]]:
    return [row for _, row in _rows_by_cluster(text, width)]


def _rows_by_cluster(text: str, width: int) -> Iterator[tuple[str | None, list[str]]]:
    """The rows, each with the cluster that heads it: with -M sinfo prints `CLUSTER: name` before its rows."""
    cluster: str | None = None
    for record in text.split(ROW_END):
        row = record.lstrip("\n").split(FIELD_END)
        *heads, row[0] = row[0].split("\n")
        for head in heads:
            if head.startswith(_CLUSTER):
                cluster = head.removeprefix(_CLUSTER).strip()
        if len(row) == width:
            yield cluster, row


_CLUSTER = "CLUSTER:"
