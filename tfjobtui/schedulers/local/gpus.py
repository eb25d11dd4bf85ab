"""GPUs that a job asks for: `--gpus`, `--gres` and their kin, put together as Slurm does.

Source: `gres_job_state_validate` and what it calls in Slurm's `gres.c`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tfjobtui.errors import FormatError

_COUNT = re.compile(r"(\d+)([kmgtp]?)", re.ASCII | re.IGNORECASE)
_FACTORS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}
_NAMES = {
    "job": "--gpus",
    "node": "--gpus-per-node (or --gres=gpu)",
    "socket": "--gpus-per-socket",
    "task": "--gpus-per-task",
}
INVALID = "Invalid generic resource (gres) specification"

Kinds = Mapping[str | None, int]
"""How many of each type; `None` is any type."""


def parse_gpus(text: str) -> dict[str | None, int]:
    """What follows `--gpus=`: `2`, `a100:2`, `a100`, with commas between several types.

    Raises:
        FormatError: it is none of them.
    """
    return dict(item for word in text.split(",") if word for item in _gpu(word))


def parse_gres(text: str) -> dict[str | None, int]:
    """What follows `--gres=`: `gpu`, `gpu:2`, `gpu:a100:2`, `none`.

    Raises:
        FormatError: it is none of them, or asks for something else than GPUs.
    """
    found: dict[str | None, int] = {}
    if text.casefold() == "none":
        return found
    if not text:
        raise FormatError(INVALID, "Leave it out, or ask for a GPU: --gres=gpu:1.")
    for word in text.split(","):
        name, colon, rest = re.sub(r"^gres[:/]", "", word).partition(":")
        if name not in ("gpu", ""):
            raise FormatError(f"{name!r} is not counted on this machine", "GPUs are: --gres=gpu:1.")
        if name:
            found.update(_gpu(rest if colon else "1"))
    return found


def _gpu(word: str) -> list[tuple[str | None, int]]:
    kind, colon, count = word.rpartition(":")
    if not colon and not word[:1].isdigit():
        kind, count = word, "1"
    match = _COUNT.fullmatch(count)
    if match is None or not word or ":" in kind or (colon and not kind):
        raise FormatError(f"{word!r} is no number of GPUs", "Try 1, or a100:1 for a type.")
    number = int(match[1]) * _FACTORS[match[2].lower()]
    return [(kind or None, number)] if number else []


@dataclass(frozen=True, slots=True)
class Tasks:
    """What else a job says of its tasks; absent is `None`."""

    ntasks: int | None = None
    per_node: int | None = None
    per_gpu: int | None = None
    sockets: int | None = None
    cpus: int | None = None
    nodes_are_said: bool = False


@dataclass(frozen=True, slots=True)
class Gpus:
    """What a job gets: GPUs in all, of one type or of any, and the tasks that follow from them."""

    count: int
    kind: str | None
    ntasks: int | None


def settle(asked: Mapping[str, Kinds], tasks: Tasks) -> Gpus:
    """Put together what was asked for by `job`, `node`, `socket` and `task`.

    Raises:
        FormatError: it does not fit together, or needs more than one machine.
    """
    kind = _one_kind(asked)
    counts = {level: kinds[kind] for level, kinds in asked.items() if kinds}
    _check_order(counts)
    if not counts and tasks.per_gpu is not None:
        counts = {"job": _gpus_for_tasks(tasks)}
    ntasks = _ntasks(counts, tasks)
    total = max(
        counts.get("job", 0),
        counts.get("node", 0),
        counts.get("socket", 0) * (tasks.sockets or 1),
        counts.get("task", 0) * (ntasks or 1),
    )
    if "task" in counts and "node" in counts and counts["task"] * (ntasks or 1) > counts["node"]:
        raise _several_nodes("--gpus-per-task of all tasks is more than --gpus-per-node")
    return Gpus(total, kind, ntasks)


def _one_kind(asked: Mapping[str, Kinds]) -> str | None:
    kinds = {kind for found in asked.values() for kind in found}
    if None in kinds and len(kinds) > 1:
        raise FormatError(
            "Invalid GRES specification (with and without type identification)",
            "Name the type of all GPUs, or of none.",
        )
    if len(kinds) > 1:
        named = ", ".join(sorted(kind for kind in kinds if kind))
        raise FormatError(f"GPUs of several types in one job ({named}) need Slurm", "Ask for one type.")
    return next(iter(kinds), None)


def _check_order(counts: Mapping[str, int]) -> None:
    """A job's GPUs are no fewer than a node's, and these no fewer than a task's or a socket's."""
    for larger, smaller in (
        ("job", "node"),
        ("job", "socket"),
        ("job", "task"),
        ("node", "task"),
        ("node", "socket"),
        ("socket", "task"),
    ):
        if larger not in counts or smaller not in counts:
            continue
        if counts[smaller] > counts[larger] or counts[larger] % counts[smaller]:
            raise FormatError(f"{INVALID}: {_NAMES[larger]} is no multiple of {_NAMES[smaller]}")
    if counts.get("job", 0) > counts.get("node", counts.get("job", 0)):
        raise _several_nodes("--gpus is more than --gpus-per-node")


def _several_nodes(why: str) -> FormatError:
    return FormatError(f"{why}: this machine is one node; several nodes need Slurm")


def _gpus_for_tasks(tasks: Tasks) -> int:
    assert tasks.per_gpu is not None
    ntasks = tasks.ntasks or (tasks.per_gpu if tasks.nodes_are_said else None)
    if ntasks is None:
        raise FormatError(f"{INVALID}: --ntasks-per-gpu needs --gpus or --ntasks")
    if ntasks % tasks.per_gpu:
        raise FormatError(f"{INVALID}: -n/--ntasks has to be a multiple of --ntasks-per-gpu")
    return ntasks // tasks.per_gpu


def _ntasks(counts: Mapping[str, int], tasks: Tasks) -> int | None:
    """The number of tasks, also as it follows from the GPUs."""
    if "socket" in counts and tasks.sockets is None:
        raise FormatError(
            f"{INVALID}: --gpus-per-socket option requires --sockets-per-node specification",
            "On one machine --gpus says the same.",
        )
    if tasks.per_gpu is not None:
        return max(counts.get("job", 0), counts.get("node", 0)) * tasks.per_gpu
    per_task = counts.get("task")
    if per_task is None:
        return tasks.ntasks
    ntasks = tasks.ntasks or (_implied_ntasks(tasks) if tasks.nodes_are_said else None)
    if "job" in counts:
        from_gpus = counts["job"] // per_task
        if ntasks not in (None, from_gpus):
            raise FormatError(
                f"{INVALID}: --gpus and --gpus-per-task give {from_gpus} tasks, and there are {ntasks}"
            )
        return from_gpus
    if ntasks is None:
        raise FormatError(
            f"{INVALID}: --gpus-per-task used without either --gpus or -n/--ntasks is not allowed"
        )
    return ntasks


def _implied_ntasks(tasks: Tasks) -> int | None:
    return tasks.per_node or (1 if tasks.cpus is None else None)
