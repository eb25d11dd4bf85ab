"""What this machine has for jobs: CPUs, memory, GPUs."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tfjobtui.model.units import size
from tfjobtui.probe import nvml
from tfjobtui.schedulers.local.request import JobRequest
from tfjobtui.schedulers.local.settings import LocalSettings

_MOST_CPUS = 8192
"""As many as a Linux kernel can be built for (NR_CPUS)."""


@dataclass(frozen=True, slots=True)
class GpuDevice:
    """A GPU that jobs may get. `is_busy`: a process that is no job of ours computes on it."""

    index: int
    uuid: str
    kind: str
    is_busy: bool = False


@dataclass(frozen=True, slots=True)
class Machine:
    """What jobs may have: CPUs by number, memory in bytes, GPUs."""

    cpus: tuple[int, ...]
    memory_bytes: int
    gpus: tuple[GpuDevice, ...] = ()

    def gpus_of(self, kind: str | None) -> tuple[GpuDevice, ...]:
        """Those of a type. A part of its name will do: `a100` means `nvidia_a100-sxm4-40gb` too."""
        if kind is None:
            return self.gpus
        wanted = kind.casefold()
        exact = tuple(gpu for gpu in self.gpus if gpu.kind.casefold() == wanted)
        return exact or tuple(gpu for gpu in self.gpus if wanted in gpu.kind.casefold())

    def cpus_for(self, request: JobRequest) -> int:
        return len(self.cpus) if request.exclusive else request.cpus

    def memory_for(self, request: JobRequest) -> int:
        """What is set aside for it: what it asked for, else its share by CPUs; 0 asks for everything."""
        asked = request.memory_bytes
        if asked == 0 or (asked is None and request.exclusive):
            return self.memory_bytes
        if asked is not None:
            return asked
        return self.memory_bytes * self.cpus_for(request) // max(1, len(self.cpus))


def find_machine(settings: LocalSettings) -> Machine:
    """This machine, as far as it may be used: by its control groups and the settings."""
    cpus = _cpus()
    cpus = cpus[: _cpu_quota() or len(cpus)]
    memory = min(filter(None, (_physical_memory(), _memory_limit(), settings.memory_bytes)))
    busy = {sample.index for sample in nvml.sample_gpus() if sample.pids}
    gpus = tuple(GpuDevice(gpu.index, gpu.uuid, gpu.kind, gpu.index in busy) for gpu in nvml.list_gpus())
    return Machine(cpus[: settings.cpus], memory, gpus if settings.gpus is None else gpus[: settings.gpus])


def _cpus() -> tuple[int, ...]:
    """The CPUs that the kernel would give a process of ours that asks for all.

    The affinity of this process does not tell: a command in a job has the job's CPUs only.
    """
    found: set[int] = os.sched_getaffinity(0)

    def ask() -> None:  # in a thread that ends: only its own affinity is changed
        nonlocal found
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, range(_MOST_CPUS))
            found = os.sched_getaffinity(0)

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    return tuple(sorted(found))


def _physical_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _memory_limit() -> int | None:
    """The lowest memory limit of the control groups that this process is in, in bytes."""
    limits: list[int] = []
    for folder in _control_groups("memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            with contextlib.suppress(OSError, ValueError):
                limits.append(int((folder / name).read_text()))
    # Version 1 writes a number near 2^63 for "no limit".
    return min((limit for limit in limits if 0 < limit < 1 << 60), default=None)


def _cpu_quota() -> int | None:
    """The CPUs that the lowest quota of the control groups comes to."""
    found: list[float] = []
    for folder in _control_groups("cpu"):
        with contextlib.suppress(OSError, ValueError):
            quota, period = (folder / "cpu.max").read_text().split()
            found.append(int(quota) / int(period))
        with contextlib.suppress(OSError, ValueError):
            quota, period = ((folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
            found.append(int(quota) / int(period))
    lowest = min((quota for quota in found if quota > 0), default=None)
    return None if lowest is None else max(1, round(lowest))


def _control_groups(controller: str, root: Path = Path("/sys/fs/cgroup")) -> Iterator[Path]:
    """The folders of this process' control group and of those above it, of version 2 and of version 1.

    In a container `/proc/self/cgroup` may name a path of the host's, which is not there: the root is, always.
    """
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if number != "0" and controller not in controllers.split(","):
            continue
        top = root if number == "0" else root / controller
        own = PurePosixPath(path.lstrip("/"))
        yield from dict.fromkeys((top / own, *(top / above for above in own.parents)))


def refusal(request: JobRequest, machine: Machine) -> str:
    """Why a job can never run here, in a sentence; an empty text where it can."""
    cpus, memory = machine.cpus_for(request), machine.memory_for(request)
    if cpus > len(machine.cpus):
        return f"it asks for {cpus} CPUs, and this machine has {len(machine.cpus)}"
    if memory > machine.memory_bytes:
        return f"it asks for {size(memory)} of memory, and this machine has {size(machine.memory_bytes)}"
    return _gpu_refusal(request, machine)


def _gpu_refusal(request: JobRequest, machine: Machine) -> str:
    if request.gpus and not machine.gpus:
        return "it asks for a GPU, and NVML finds none on this machine"
    fitting = machine.gpus_of(request.gpu_type)
    if request.gpus > len(fitting):
        if request.gpu_type is not None:
            return (
                f"it asks for {request.gpus} GPUs of type {request.gpu_type}, and this machine has"
                f" {len(fitting)} (its GPUs: {_kinds(machine.gpus)})"
            )
        return f"it asks for {request.gpus} GPUs, and this machine has {len(machine.gpus)}"
    return ""


def _kinds(gpus: Iterable[GpuDevice]) -> str:
    return ", ".join(dict.fromkeys(gpu.kind for gpu in gpus))
