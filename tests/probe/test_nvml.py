"""NVIDIA's GPUs by NVML, through a library that stands in for it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from tfjobtui.probe import nvml
from tfjobtui.probe.nvml import Gpu, GpuSample

CODES = sorted(
    {
        value
        for name, value in vars(pynvml).items()
        if name.startswith("NVML_ERROR_") and isinstance(value, int) and value
    }
)
UUIDS = ("GPU-a", "GPU-b")


class Library:
    """Two GPUs. `errors` has the code that a function answers with; `count` how often it was begun and ended."""

    NVML_TEMPERATURE_GPU = 0

    def __init__(self) -> None:
        self.errors: dict[str, int] = {}
        self.open = 0
        self.lost: set[int] = set()

    def __getattribute__(self, name: str) -> Any:
        errors = object.__getattribute__(self, "__dict__").get("errors", {})
        if name in errors:

            def fail(*_: object) -> None:
                raise pynvml.NVMLError(errors[name])

            return fail
        return object.__getattribute__(self, name)

    def nvmlInit(self) -> None:
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        if index in self.lost:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> str:
        return UUIDS[handle]

    def nvmlDeviceGetName(self, handle: int) -> str:
        return ("NVIDIA A100-SXM4-40GB", "NVIDIA H100")[handle]

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:
        return SimpleNamespace(total=40 << 30, used=handle << 30)

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:
        return SimpleNamespace(gpu=50 + handle, memory=3)

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:
        return 65_500

    def nvmlDeviceGetTemperature(self, handle: int, sensor: int) -> int:
        return 41

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[Any]:
        return [SimpleNamespace(pid=17, usedGpuMemory=None)] if handle else []


ASKED = [name for name in vars(Library) if name.startswith("nvmlDevice")]


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    made = Library()
    monkeypatch.setitem(sys.modules, "pynvml", made)  # type: ignore[arg-type]
    yield made
    assert made.open == 0


def test_what_there_is(library: Library) -> None:
    first, second = nvml.list_gpus()
    assert first == Gpu(0, "GPU-a", "NVIDIA A100-SXM4-40GB", 40 << 30)
    assert (first.kind, second.kind) == ("nvidia_a100-sxm4-40gb", "nvidia_h100")


def test_what_they_do(library: Library) -> None:
    first, second = nvml.sample_gpus()
    assert first == GpuSample(0, "GPU-a", 50, 0, 40 << 30, 65.5, 41, ())
    assert (second.pids, second.memory_used_bytes) == ((17,), 1 << 30)


@pytest.mark.parametrize("code", CODES)
def test_every_error_is_no_answer(library: Library, code: int) -> None:
    for name in ASKED:
        library.errors = {name: code}
        gpus, samples = nvml.list_gpus(), nvml.sample_gpus()
        is_none = name in ("nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex")
        assert len(gpus) == len(samples) == (0 if is_none else 2)
    library.errors = dict.fromkeys(ASKED[2:], code)
    assert nvml.list_gpus()[0] == Gpu(0, "", "gpu", None)
    assert nvml.sample_gpus()[1] == GpuSample(1, "", None, None, None, None, None, ())


@pytest.mark.parametrize("code", CODES)
def test_a_library_that_cannot_begin_has_no_gpus(library: Library, code: int) -> None:
    library.errors = {"nvmlInit": code}
    assert nvml.list_gpus() == nvml.sample_gpus() == ()


def test_one_that_fell_off_the_bus_does_not_hide_the_other(library: Library) -> None:
    library.lost = {0}
    assert [gpu.index for gpu in nvml.list_gpus()] == [1]
    assert [sample.index for sample in nvml.sample_gpus()] == [1]


def test_older_bindings_give_bytes(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Library, "nvmlDeviceGetName", lambda self, handle: b"NVIDIA V100")
    assert nvml.list_gpus()[0].kind == "nvidia_v100"


def test_without_the_library_there_are_no_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)  # importing it then raises
    assert nvml.list_gpus() == nvml.sample_gpus() == ()


def test_the_real_library_is_asked_without_harm() -> None:
    """With a driver or without one."""
    assert len(nvml.list_gpus()) == len(nvml.sample_gpus())


def test_nobody_else_imports_the_library() -> None:
    root = Path(nvml.__file__).parents[1]
    found = subprocess.run(
        ("grep", "-rlE", r"(import|from) pynvml|import_module\(.pynvml", "--include=*.py", root),
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout.split() == [nvml.__file__]
