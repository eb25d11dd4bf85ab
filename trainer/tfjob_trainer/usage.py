"""What this process and its GPUs consume, sampled by a thread: /proc, and NVML where it can be imported.

One sample, as it stands in the telemetry (see there); what is not known is left out:
    cpu_percent          of this process since the sample before, 100 for a whole CPU
    cpus                 that the process may use
    rss_bytes, rss_peak_bytes    memory of this process
    node_load, node_memory_available_bytes, disk_free_bytes (where the run folder lies)
    gpus: [{index, uuid, name, utilization_percent, memory_used_bytes, memory_total_bytes, power_w,
           temperature_c, allocated_bytes, allocated_peak_bytes}]   the last two: TensorFlow's own, by its order
"""

import contextlib
import os
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tfjob_trainer import limits

EVERY_S = 10.0


class Sampler:
    """Calls `take` with a sample every `every_s` seconds, from `start` to `end`, in a thread of its own."""

    def __init__(
        self, folder: Path, take: Callable[[dict[str, Any]], None], gpus: int, every_s: float = EVERY_S
    ) -> None:
        self._folder = folder
        self._take = take
        self._every_s = every_s
        self._ended = threading.Event()
        self._cpu = (time.monotonic(), _cpu_s())
        self._gpus = Gpus(gpus) if gpus else None

    def start(self) -> None:
        """Begin to sample."""
        threading.Thread(target=self._run, name="usage", daemon=True).start()

    def end(self) -> None:
        """Sample no more."""
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(self._every_s):
            self._take(self.sample())

    def sample(self) -> dict[str, Any]:
        """The figures of now."""
        values: dict[str, Any] = {"cpu_percent": self._cpu_percent(), "cpus": limits.cpus(), **_memory()}
        with contextlib.suppress(OSError):
            values["node_load"] = round(os.getloadavg()[0], 2)
        with contextlib.suppress(OSError):
            values["disk_free_bytes"] = shutil.disk_usage(self._folder).free
        if self._gpus:
            values["gpus"] = self._gpus.sample()
        return values

    def _cpu_percent(self) -> float:
        then, used = self._cpu
        self._cpu = (time.monotonic(), _cpu_s())
        passed = max(1e-9, self._cpu[0] - then)
        return round(100 * (self._cpu[1] - used) / passed, 1)


def _cpu_s() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _memory() -> dict[str, int]:
    """Of this process and of the node, in bytes."""
    found = {}
    for path, names in (
        ("/proc/self/status", {"VmRSS": "rss_bytes", "VmHWM": "rss_peak_bytes"}),
        ("/proc/meminfo", {"MemAvailable": "node_memory_available_bytes"}),
    ):
        with contextlib.suppress(OSError, ValueError, IndexError):
            for line in Path(path).read_text().splitlines():
                key, _, rest = line.partition(":")
                if key in names:
                    found[names[key]] = int(rest.split()[0]) * 1024
    return found


class Gpus:
    """The GPUs that TensorFlow uses, by NVML and by TensorFlow's allocator."""

    def __init__(self, count: int, environment: Mapping[str, str] = os.environ) -> None:
        self._count = count
        self._nvml: Any = None
        self._handles: list[Any] = []
        try:
            import pynvml

            pynvml.nvmlInit()
            self._nvml = pynvml
            self._handles = [self._handle(name) for name in visible(count, environment)]
        except Exception:  # noqa: BLE001 - no package, no driver, a foreign device: there are no figures then
            self._handles = []

    def _handle(self, name: str) -> Any:
        """NVML does not know CUDA_VISIBLE_DEVICES: its entries are indexes or (parts of) UUIDs."""
        if name.isdecimal():
            return self._nvml.nvmlDeviceGetHandleByIndex(int(name))
        return self._nvml.nvmlDeviceGetHandleByUUID(name.encode())

    def sample(self) -> list[dict[str, Any]]:
        """One object for each GPU."""
        return [self._of(index) for index in range(self._count)]

    def _of(self, index: int) -> dict[str, Any]:
        values: dict[str, Any] = {"index": index}
        if index < len(self._handles):
            nvml, handle = self._nvml, self._handles[index]
            _put(values, nvml.nvmlDeviceGetUUID, handle, lambda v: {"uuid": _text(v)})
            _put(values, nvml.nvmlDeviceGetName, handle, lambda v: {"name": _text(v)})
            _put(values, nvml.nvmlDeviceGetUtilizationRates, handle, lambda v: {"utilization_percent": v.gpu})
            _put(
                values,
                nvml.nvmlDeviceGetMemoryInfo,
                handle,
                lambda v: {"memory_used_bytes": v.used, "memory_total_bytes": v.total},
            )
            _put(values, nvml.nvmlDeviceGetPowerUsage, handle, lambda v: {"power_w": round(v / 1000, 1)})
            celsius = lambda h: nvml.nvmlDeviceGetTemperature(h, nvml.NVML_TEMPERATURE_GPU)  # noqa: E731
            _put(values, celsius, handle, lambda v: {"temperature_c": v})
        with contextlib.suppress(Exception):  # not on this device
            import tensorflow as tf

            memory = tf.config.experimental.get_memory_info(f"GPU:{index}")
            values |= {"allocated_bytes": memory["current"], "allocated_peak_bytes": memory["peak"]}
        return values


def _put(
    values: dict[str, Any], ask: Callable[[Any], Any], handle: Any, name: Callable[[Any], dict[str, Any]]
) -> None:
    """A figure that this GPU does not have (MIG has no utilisation) is left out."""
    with contextlib.suppress(Exception):
        values |= name(ask(handle))


def visible(count: int, environment: Mapping[str, str]) -> list[str]:
    """NVML's names of the first `count` GPUs that CUDA shows."""
    names = [name.strip() for name in environment.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    return (names or [str(index) for index in range(count)])[:count]


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
