"""What `sinfo` prints: partitions (`-o`), and nodes with their GPUs (`-N -O`)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tfjobtui.model.job import Gpus
from tfjobtui.schedulers.scheduler import Partition
from tfjobtui.schedulers.slurm.fields import parse_count, parse_duration
from tfjobtui.schedulers.slurm.form import FIELD_END, ROW_END
from tfjobtui.schedulers.slurm.tres import added, parse_gres, times

PARTITION_FORM = FIELD_END.join(("%P", "%a", "%l", "%D", "%G")) + ROW_END
_NODE_FIELDS = ("NodeList", "Partition", "StateComplete", "Gres", "GresUsed")
NODE_FORM = ",".join(f"{name}:0{ROW_END if name == _NODE_FIELDS[-1] else FIELD_END}" for name in _NODE_FIELDS)


@dataclass(frozen=True, slots=True)
class Node:
    """A node, whatever the number of partitions it stands in."""

    name: str
    partitions: tuple[str, ...]
    state_text: str
    gpus: Gpus
    gpus_used: Gpus

    @property
    def gpus_free(self) -> int:
        return max(0, self.gpus.count - self.gpus_used.count)


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
    found: dict[str, Node] = {}
    for name, partition, state, gres, used in _rows(text, len(_NODE_FIELDS)):
        plain = partition.removesuffix("*")
        before = found.get(name)
        if before is None:
            found[name] = Node(name, (plain,), state, parse_gres(gres), parse_gres(used))
        elif plain not in before.partitions:
            found[name] = replace(before, partitions=(*before.partitions, plain))
    return tuple(found.values())


def _rows(text: str, width: int) -> list[list[str]]:
    rows = (record.lstrip("\n").split(FIELD_END) for record in text.split(ROW_END))
    # With -M sinfo heads each cluster's rows with `CLUSTER: name`.
    return [[row[0].rsplit("\n", 1)[-1], *row[1:]] for row in rows if len(row) == width]
