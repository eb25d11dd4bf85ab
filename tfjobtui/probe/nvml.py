"""NVIDIA's GPUs of this machine by NVML (package nvidia-ml-py, imported as `pynvml`).

This is the only place that knows the library. What it does not support, does not permit or cannot do is
`None`; a machine without the library, the driver or a GPU has no GPUs. Indexes are in PCI bus order, which is
CUDA's order only with CUDA_DEVICE_ORDER=PCI_BUS_ID.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

Value = TypeVar("Value")
_TEMPERATURE_GPU = 0
"""`NVML_TEMPERATURE_GPU`, the one sensor that there is."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU: `kind` is its type as schedulers write it (`nvidia_a100-sxm4-40gb`)."""

    index: int
    uuid: str
    name: str
    memory_bytes: int | None

    @property
    def kind(self) -> str:
        return self.name.lower().replace(" ", "_")


@dataclass(frozen=True, slots=True)
class GpuSample:
    """What a GPU does now. Percent, bytes, watts, degrees Celsius; `None` is "not told"."""

    index: int
    uuid: str
    utilisation_percent: int | None
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    power_w: float | None
    temperature_c: int | None
    pids: tuple[int, ...]
    """Processes that compute on it, as far as they may be seen."""


def list_gpus() -> tuple[Gpu, ...]:
    """The GPUs, in NVML's order; those that do not answer are left out."""
    with _library() as nvml:
        return () if nvml is None else tuple(_each(nvml, _gpu))


def sample_gpus() -> tuple[GpuSample, ...]:
    """One sample of each GPU."""
    with _library() as nvml:
        return () if nvml is None else tuple(_each(nvml, _sample))


@contextlib.contextmanager
def _library() -> Iterator[Any]:
    """The library, ready; `None` where it cannot be had."""
    try:
        nvml: Any = importlib.import_module("pynvml")
        nvml.nvmlInit()
    except Exception:  # noqa: BLE001 - a library of another vendor's driver: whatever it raises, there are no GPUs
        yield None
        return
    try:
        yield nvml
    finally:
        _ask(nvml.nvmlShutdown)


def _each(nvml: Any, read: Callable[[Any, int, Any], Value]) -> Iterator[Value]:
    for index in range(_ask(nvml.nvmlDeviceGetCount) or 0):
        handle = _ask(nvml.nvmlDeviceGetHandleByIndex, index)
        if handle is not None:
            yield read(nvml, index, handle)


def _gpu(nvml: Any, index: int, handle: Any) -> Gpu:
    memory = _ask(nvml.nvmlDeviceGetMemoryInfo, handle)
    return Gpu(
        index,
        _text(_ask(nvml.nvmlDeviceGetUUID, handle)),
        _text(_ask(nvml.nvmlDeviceGetName, handle)) or "gpu",
        None if memory is None else int(memory.total),
    )


def _sample(nvml: Any, index: int, handle: Any) -> GpuSample:
    memory = _ask(nvml.nvmlDeviceGetMemoryInfo, handle)
    rates = _ask(nvml.nvmlDeviceGetUtilizationRates, handle)
    power_mw = _ask(nvml.nvmlDeviceGetPowerUsage, handle)
    processes = _ask(nvml.nvmlDeviceGetComputeRunningProcesses, handle) or ()
    return GpuSample(
        index=index,
        uuid=_text(_ask(nvml.nvmlDeviceGetUUID, handle)),
        utilisation_percent=None if rates is None else int(rates.gpu),
        memory_used_bytes=None if memory is None else int(memory.used),
        memory_total_bytes=None if memory is None else int(memory.total),
        power_w=None if power_mw is None else power_mw / 1000,
        temperature_c=_ask(nvml.nvmlDeviceGetTemperature, handle, _TEMPERATURE_GPU),
        pids=tuple(int(process.pid) for process in processes),
    )


def _ask(function: Callable[..., Value], *values: Any) -> Value | None:
    """The answer, or `None` for any of NVML's errors: not supported, no permission, GPU lost …"""
    try:
        return function(*values)
    except Exception:  # noqa: BLE001 - NVMLError and its many kinds; a stub of a library may raise others
        return None


def _text(value: str | bytes | None) -> str:
    """Releases of the binding before 11.515 give bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value or ""
