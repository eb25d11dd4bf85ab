"""Partitions and nodes put together: totals, what is free, and the tables."""

from __future__ import annotations

import math

from tests.actions.fakes import job
from tfjobtui.model.job import Gpus
from tfjobtui.model.node import Node, NodeState
from tfjobtui.model.state import JobState
from tfjobtui.monitor import cluster
from tfjobtui.schedulers.scheduler import Partition

GIB = 1 << 30


def node(
    name: str, state: str = "idle", *partitions: str, gpus: int = 4, used: int = 0, **more: object
) -> Node:
    kinds = {"gpus": Gpus((("a100", gpus),)), "gpus_used": Gpus((("a100", used),))} if gpus else {}
    fields: dict[str, object] = {
        "cpus": 16,
        "cpus_used": 2 * used,
        "memory_bytes": 64 * GIB,
        "memory_used_bytes": used * GIB,
        **kinds,
        **more,
    }
    return Node(name, partitions or ("gpu",), NodeState.of(state), **fields)  # type: ignore[arg-type]


PARTITIONS = (
    Partition("closed", False, False, math.inf, 1),
    Partition("short", False, True, 600.0, 2),
    Partition("gpu", True, True, 86400.0, 3),
)
NODES = (
    node("g1", "mixed", "gpu", "short", used=3),
    node("g2", "drained", "gpu", used=1, reason="bad [disk]"),
    node("g3", "idle", "gpu"),
    node("c1", "idle", "short", "closed", gpus=0),
)


def test_a_node_in_two_partitions_counts_once_and_what_is_drained_is_not_free() -> None:
    view = cluster.view_of(PARTITIONS, NODES)
    (gpus,) = view.whole.gpus
    assert (gpus.total, gpus.free, gpus.off, gpus.used) == (12, 5, 3, 4)
    assert (view.whole.nodes, view.whole.nodes_off) == (4, 1)
    assert (view.whole.cpus, view.whole.cpus_free) == (64, 10 + 16 + 16)
    assert view.whole.memory_free_bytes == (61 + 64 + 64) * GIB
    assert cluster.headline(view) == (
        "4 nodes (1 out of service) · 5 of 12 a100 GPUs free · 42 of 64 CPUs free"
    )


def test_the_usual_partition_comes_first_and_a_closed_one_last() -> None:
    rows = cluster.partition_rows(cluster.view_of(PARTITIONS, NODES))
    assert [row.texts[0] for row in rows] == ["gpu*", "short", "closed"]
    assert [row.tone for row in rows] == ["good", "good", "bad"]
    assert rows[0].texts[1:3] == ("1d 00:00", "3 (1 off)")
    assert rows[0].texts[5] == "a100 5/12"


def test_jobs_stand_beside_every_node_that_they_hold() -> None:
    jobs = (
        job("7", nodes="g[1,3]", node_count=2, gpus=Gpus((("a100", 8),))),
        job("8", nodes="g1", node_count=1, gpus=Gpus((("a100", 2),)), user="other"),
        job("9", nodes="g1", node_count=1, user="other"),
        job("10", JobState.COMPLETED, nodes="g1"),
        job("11", nodes="g[1"),
    )
    view = cluster.view_of(PARTITIONS, NODES)
    rows = {row.texts[0]: row for row in cluster.node_rows(view, cluster.holders(jobs), "u")}
    assert list(rows) == ["g3", "g1", "c1", "g2"]
    assert rows["g1"].texts[-1] == "you 7, other 2 jobs (2 GPUs)"
    assert rows["g3"].texts[-1] == "you 7"
    assert rows["g2"].texts[-1] == "bad [disk]"
    assert rows["g2"].tone == "bad"


def test_a_narrow_table_leaves_the_optional_column_out() -> None:
    rows = cluster.node_rows(cluster.view_of(PARTITIONS, NODES), {}, "u")
    wide = cluster.lay_out(cluster.NODE_TITLES, rows, 120, cluster.NODE_OPTIONAL)
    narrow = cluster.lay_out(cluster.NODE_TITLES, rows, 60, cluster.NODE_OPTIONAL)
    assert "PARTITIONS" in cluster.line(cluster.NODE_TITLES, wide)
    assert "PARTITIONS" not in cluster.line(cluster.NODE_TITLES, narrow)
    assert all(len(cluster.line(row.texts, wide)) <= 120 for row in rows)


def test_control_characters_are_made_visible() -> None:
    view = cluster.view_of((), (node("g1", reason="a\x1b[2Jb"),))
    (row,) = cluster.node_rows(view, {}, "u")
    table = cluster.lay_out(cluster.NODE_TITLES, (row,), 200, cluster.NODE_OPTIONAL)
    assert "a␛[2Jb" in cluster.line(row.texts, table)
