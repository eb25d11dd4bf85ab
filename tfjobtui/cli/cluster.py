"""`cluster`: partitions and nodes, what of them is free, and whose jobs hold the rest."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import getpass
import math
from collections.abc import Sequence
from typing import Any

from tfjobtui.cli.context import open_scheduler
from tfjobtui.cli.output import complain, print_json, width_of
from tfjobtui.cli.setup import load_config
from tfjobtui.model.job import Job
from tfjobtui.monitor import cluster
from tfjobtui.monitor.cluster import Capacity, ClusterView, TextRow
from tfjobtui.schedulers.scheduler import Scheduler

_ENOUGH = 10_000
"""Cells of a line that is written into a pipe: nothing is cut there."""


def run(options: argparse.Namespace) -> int:
    """Print the tables, or one JSON object."""
    scheduler = open_scheduler(load_config(options.config), options)
    view, jobs = asyncio.run(_read(scheduler, everyone=options.who))
    if options.json:
        print_json(_as_json(view))
        return 0
    print(cluster.headline(view))
    print()
    nodes = cluster.node_rows(view, cluster.holders(jobs), getpass.getuser())
    _print(cluster.PARTITION_TITLES, cluster.partition_rows(view), cluster.PARTITION_OPTIONAL)
    print()
    _print(cluster.NODE_TITLES, nodes, cluster.NODE_OPTIONAL)
    return 0


async def _read(scheduler: Scheduler, *, everyone: bool) -> tuple[ClusterView, tuple[Job, ...]]:
    try:
        capability = scheduler.capabilities.everyone
        if everyone and not capability:
            complain(capability.reason)
        partitions, nodes, answer = await asyncio.gather(
            scheduler.partitions(), scheduler.nodes(), scheduler.jobs(everyone=everyone and bool(capability))
        )
    finally:
        await scheduler.close()
    return cluster.view_of(partitions, nodes), answer.jobs


def _print(titles: Sequence[str], rows: Sequence[TextRow], optional: int) -> None:
    table = cluster.lay_out(titles, rows, width_of() or _ENOUGH, optional)
    for texts in (titles, *(row.texts for row in rows)):
        print(cluster.line(texts, table))


def _as_json(view: ClusterView) -> dict[str, Any]:
    return {
        "whole": _capacity(view.whole),
        "partitions": [
            {
                "name": item.name,
                "is_default": item.is_default,
                "is_up": item.is_up,
                "max_time_s": None
                if item.max_time_s is None or math.isinf(item.max_time_s)
                else item.max_time_s,
                **_capacity(has),
            }
            for item, has in view.partitions
        ],
        "nodes": [
            {
                "name": node.name,
                "cluster": node.cluster,
                "state": node.state.text,
                "takes_jobs": node.state.takes_jobs,
                "partitions": list(node.partitions),
                "features": node.features,
                "reason": node.reason,
                **_capacity(cluster.capacity([node])),
            }
            for node in view.nodes
        ],
    }


def _capacity(has: Capacity) -> dict[str, Any]:
    values = dataclasses.asdict(has)
    return values | {"gpus": [dataclasses.asdict(item) for item in has.gpus]}
