"""What the machine has for jobs, and what it can never do."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.schedulers.local.queue import MACHINE, python, request
from tfjobtui.probe import nvml
from tfjobtui.probe.nvml import Gpu, GpuSample
from tfjobtui.schedulers.local import machine
from tfjobtui.schedulers.local.machine import GpuDevice, find_machine, refusal
from tfjobtui.schedulers.local.settings import LocalSettings

GIB = 1 << 30


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"cpus_per_task": 5}, "5 CPUs, and this machine has 4"),
        ({"ntasks": 3, "cpus_per_task": 2}, "6 CPUs"),
        ({"memory_per_node": 9 * GIB}, "9G of memory, and this machine has 8G"),
        ({"cpus_per_task": 4, "memory_per_cpu": 3 * GIB}, "12G of memory"),
        ({"gpus": 3}, "3 GPUs, and this machine has 2"),
        ({"gpus": 1, "gpu_type": "h100"}, "of type h100, and this machine has 0 (its GPUs: nvidia_a100)"),
    ],
)
def test_what_can_never_run_here_is_told(values: dict[str, object], words: str) -> None:
    assert words in refusal(request(**values), MACHINE)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"cpus_per_task": 4},
        {"memory_per_node": 8 * GIB},
        {"memory_per_node": 0},
        {"gpus": 2, "gpu_type": "a100"},
        {"exclusive": True},
    ],
)
def test_what_can_run_here(values: dict[str, object]) -> None:
    assert refusal(request(**values), MACHINE) == ""


def test_a_machine_without_gpus() -> None:
    assert "NVML finds none" in refusal(request(gpus=1), replace(MACHINE, gpus=()))


def test_a_type_is_its_whole_name_or_a_part_of_it() -> None:
    gpus = (GpuDevice(0, "a", "nvidia_a100"), GpuDevice(1, "b", "nvidia_a100-sxm4-80gb"))
    both = replace(MACHINE, gpus=gpus)
    assert both.gpus_of(None) == both.gpus_of("A100") == gpus
    assert both.gpus_of("nvidia_a100") == gpus[:1]
    assert both.gpus_of("sxm4") == gpus[1:]
    assert both.gpus_of("v100") == ()


def test_this_machine() -> None:
    found = find_machine(LocalSettings())
    assert found.cpus
    assert set(found.cpus) <= set(range(os.cpu_count() or 1))
    assert 1 << 20 < found.memory_bytes <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def test_a_process_with_few_cpus_does_not_take_them_for_all() -> None:
    """A command in a job has the job's CPUs only, and plans for the whole machine; its own are left as they are."""
    code = (
        "import os; from tfjobtui.schedulers.local.machine import _cpus; before = _cpus()\n"
        "os.sched_setaffinity(0, before[:1]); print(_cpus() == before, os.sched_getaffinity(0) == {before[0]})"
    )
    assert python("-c", code).communicate()[0].split() == ["True", "True"]


def test_settings_are_limits() -> None:
    whole = find_machine(LocalSettings())
    some = find_machine(LocalSettings(cpus=1, memory_bytes=64 << 20))
    assert (some.cpus, some.memory_bytes) == (whole.cpus[:1], 64 << 20)
    more = find_machine(LocalSettings(cpus=10_000, memory_bytes=1 << 60))
    assert more == whole


def test_gpus_that_are_in_use_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = tuple(Gpu(index, f"GPU-{index}", "NVIDIA A100", None) for index in range(3))
    samples = tuple(
        GpuSample(index, f"GPU-{index}", None, None, None, None, None, (5,) if index else ())
        for index in range(3)
    )
    monkeypatch.setattr(nvml, "list_gpus", lambda: gpus)
    monkeypatch.setattr(nvml, "sample_gpus", lambda: samples)
    assert [gpu.is_busy for gpu in find_machine(LocalSettings()).gpus] == [False, True, True]
    assert [gpu.uuid for gpu in find_machine(LocalSettings(gpus=1)).gpus] == ["GPU-0"]
    assert find_machine(LocalSettings(gpus=0)).gpus == ()


@pytest.mark.parametrize(
    ("files", "memory", "cpus"),
    [
        ({"memory.max": "max\n", "cpu.max": "max 100000\n"}, None, None),
        ({"memory.max": "1048576\n", "cpu.max": "150000 100000\n"}, 1 << 20, 2),
        ({"memory.max": "1048576\n", "sub/memory.max": "524288\n"}, 1 << 19, None),
        ({"cpu.max": "20000 100000\n"}, None, 1),
        ({"memory.limit_in_bytes": "9223372036854771712\n", "cpu.cfs_quota_us": "-1\n"}, None, None),
        (
            {"memory.limit_in_bytes": "4096\n", "cpu.cfs_quota_us": "400000", "cpu.cfs_period_us": "100000"},
            4096,
            4,
        ),
        ({}, None, None),
    ],
)
def test_limits_of_control_groups(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: dict[str, str],
    memory: int | None,
    cpus: int | None,
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(machine, "_control_groups", lambda controller: iter((tmp_path / "sub", tmp_path)))
    assert (machine._memory_limit(), machine._cpu_quota()) == (memory, cpus)


def test_the_control_groups_above_count_too() -> None:
    found = list(machine._control_groups("memory", Path("/nowhere")))
    assert found == list(dict.fromkeys(found))
    assert {Path("/nowhere"), Path("/nowhere/memory")} & set(found)
