"""Trackable resources and generic resources: how many GPUs, of which type, and how much memory.

Two notations: TRES (`cpu=2,mem=8G,gres/gpu=2,gres/gpu:a100=2`, where the typed and the untyped entry
name the same GPUs) and GRES (`gpu:a100:4(S:0-1)`, `gres/gpu:2`, `gpu:(null):2(IDX:0-1)`).
"""

from __future__ import annotations

import re

from tfjobtui.model.job import NO_GPUS, Gpus
from tfjobtui.schedulers.slurm.fields import MEBIBYTE, parse_count, parse_size


def parse_tres(text: str) -> dict[str, str]:
    """Read `cpu=2,mem=512M,gres/gpu=2`. What is no `name=value` is left out."""
    pairs = (part.partition("=") for part in text.split(","))
    return {name: value for name, equals, value in pairs if equals and name}


def tres_memory(tres: dict[str, str]) -> int | None:
    """The memory in bytes; a number without a unit is MiB."""
    value = tres.get("mem")
    return None if value is None else parse_size(value, MEBIBYTE)


def tres_gpus(tres: dict[str, str]) -> Gpus:
    """The GPUs, each counted once.

    Sites may track the untyped entry, the typed ones, or both. The untyped one is the total where it is
    there; what of it has no type is counted without one.
    """
    typed: list[tuple[str | None, int]] = []
    total: int | None = None
    for name, value in tres.items():
        if name == "gres/gpu":
            total = parse_count(value)
        elif name.startswith("gres/gpu:"):
            count = parse_count(value)
            if count:
                typed.append((name[len("gres/gpu:") :], count))
    known = sum(count for _, count in typed)
    if total is not None and total != known:
        typed = [*typed, (None, total - known)] if total > known else [(None, total)]
    return _gpus(typed)


def parse_gres(text: str) -> Gpus:
    """Read the GPUs of a GRES list: of a node, of what is used on it, or of a request per node."""
    found: list[tuple[str | None, int]] = []
    for part in _COMMA.split(text):
        bare = _BRACKETS.sub("", part)  # `(S:0-1)`, `(IDX:0-2)`, and the type `(null)`
        words = [word for word in _WORDS.split(bare) if word]
        if words and words[0] == "gres":
            words = words[1:]
        if not words or words[0] != "gpu":
            continue
        count = parse_count(words[-1]) if len(words) > 1 else None
        kinds = [word for word in (words[1:] if count is None else words[1:-1]) if word != "no_consume"]
        found.append((":".join(kinds) or None, 1 if count is None else count))
    return _gpus(found)


_COMMA = re.compile(r",(?![^()]*\))")
_BRACKETS = re.compile(r"\([^()]*\)")
_WORDS = re.compile(r"[:=/]")


def times(gpus: Gpus, factor: int) -> Gpus:
    """So many GPUs on each of `factor` nodes."""
    return Gpus(tuple((kind, count * factor) for kind, count in gpus.by_type)) if factor else NO_GPUS


def added(*several: Gpus) -> Gpus:
    """All of them together, by type."""
    return _gpus([item for gpus in several for item in gpus.by_type])


def _gpus(items: list[tuple[str | None, int]]) -> Gpus:
    sums: dict[str | None, int] = {}
    for kind, count in items:
        if count > 0:
            sums[kind] = sums.get(kind, 0) + count
    return Gpus(tuple(sums.items())) if sums else NO_GPUS
