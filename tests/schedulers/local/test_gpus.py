"""GPUs by their many options."""

from __future__ import annotations

import pytest

from tfjobtui.errors import FormatError
from tfjobtui.schedulers.local.gpus import Gpus, Tasks, parse_gpus, parse_gres, settle


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("2", {None: 2}),
        ("a100:2", {"a100": 2}),
        ("a100", {"a100": 1}),
        ("0", {}),
        ("", {}),
        ("1k", {None: 1024}),
    ],
)
def test_numbers_of_gpus(text: str, kinds: dict[str | None, int]) -> None:
    assert parse_gpus(text) == kinds


@pytest.mark.parametrize("text", ["x:y:1", ":1", "a100:", "1.5"])
def test_what_is_no_number_of_gpus(text: str) -> None:
    with pytest.raises(FormatError):
        parse_gpus(text)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("gpu", {None: 1}),
        ("gpu:2", {None: 2}),
        ("gpu:a100:2", {"a100": 2}),
        ("gres:gpu:2", {None: 2}),
        ("gres/gpu:2", {None: 2}),
        ("none", {}),
        ("gpu:0", {}),
        ("gpu:1,gpu:2", {None: 2}),
    ],
)
def test_generic_resources(text: str, kinds: dict[str | None, int]) -> None:
    assert parse_gres(text) == kinds


@pytest.mark.parametrize("text", ["", "gpu:", "shard:1", "gpu:1,shard:1", "gpux:1", "gpu:a100:x"])
def test_what_is_not_counted_here(text: str) -> None:
    with pytest.raises(FormatError) as error:
        parse_gres(text)
    assert error.value.hint


@pytest.mark.parametrize(
    ("asked", "tasks", "expected"),
    [
        ({}, Tasks(), Gpus(0, None, None)),
        ({"job": {None: 2}}, Tasks(3), Gpus(2, None, 3)),
        ({"job": {"a100": 2}, "node": {"a100": 2}}, Tasks(), Gpus(2, "a100", None)),
        ({"task": {None: 2}}, Tasks(3), Gpus(6, None, 3)),
        ({"task": {None: 2}, "job": {None: 6}}, Tasks(), Gpus(6, None, 3)),
        ({"task": {None: 1}}, Tasks(nodes_are_said=True), Gpus(1, None, 1)),
        ({"task": {None: 1}}, Tasks(per_node=2, nodes_are_said=True), Gpus(2, None, 2)),
        ({"socket": {None: 2}}, Tasks(sockets=2), Gpus(4, None, None)),
        ({"job": {None: 2}}, Tasks(per_gpu=3), Gpus(2, None, 6)),
        ({}, Tasks(ntasks=6, per_gpu=3), Gpus(2, None, 6)),
    ],
)
def test_together(asked: dict[str, dict[str | None, int]], tasks: Tasks, expected: Gpus) -> None:
    assert settle(asked, tasks) == expected


@pytest.mark.parametrize(
    ("asked", "tasks", "words"),
    [
        ({"job": {None: 2, "a100": 1}}, Tasks(), "with and without type"),
        ({"job": {"v100": 1, "a100": 1}}, Tasks(), "a100, v100"),
        ({"job": {None: 2}, "node": {None: 1}}, Tasks(), "one node"),
        ({"job": {None: 1}, "node": {None: 2}}, Tasks(), "no multiple"),
        ({"job": {None: 3}, "task": {None: 2}}, Tasks(), "no multiple"),
        ({"job": {None: 4}, "task": {None: 2}}, Tasks(3), "2 tasks, and there are 3"),
        ({"task": {None: 2}}, Tasks(), "without either"),
        ({"task": {None: 1}}, Tasks(cpus=4, nodes_are_said=True), "without either"),
        ({"task": {None: 2}, "node": {None: 2}}, Tasks(2), "one node"),
        ({"socket": {None: 1}}, Tasks(), "--sockets-per-node"),
        ({}, Tasks(per_gpu=2), "--gpus or --ntasks"),
        ({}, Tasks(ntasks=3, per_gpu=2), "multiple"),
    ],
)
def test_what_does_not_go_together(asked: dict[str, dict[str | None, int]], tasks: Tasks, words: str) -> None:
    with pytest.raises(FormatError) as error:
        settle(asked, tasks)
    assert words in error.value.message
