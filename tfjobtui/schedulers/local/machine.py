"""What this machine has for jobs: CPUs, memory, GPUs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tfjobtui.model.units import size
from tfjobtui.probe import nvml
from tfjobtui.schedulers.local.request import JobRequest
from tfjobtui.schedulers.local.settings import LocalSettings


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
    """This machine, as far as it may be used: by the affinity, the control group and the settings."""
    cpus = tuple(sorted(os.sched_getaffinity(1) if _may_ask_of_init() else os.sched_getaffinity(0)))
    cpus = cpus[: _cpu_quota() or len(cpus)]
    memory = min(_physical_memory(), _cgroup_limit() or _physical_memory())
    busy = {sample.index for sample in nvml.sample_gpus() if sample.pids}
    gpus = tuple(GpuDevice(gpu.index, gpu.uuid, gpu.kind, gpu.index in busy) for gpu in nvml.list_gpus())
    return Machine(
        cpus[: settings.cpus],
        min(memory, settings.memory_bytes or memory),
        gpus if settings.gpus is None else gpus[: settings.gpus],
    )


def _may_ask_of_init() -> bool:
    """A job's own command must not take the job's CPUs for all there are; init's are those of the machine."""
    with contextlib.suppress(OSError):
        os.sched_getaffinity(1)
        return True
    return False


def _physical_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _cgroup_limit() -> int | None:
    """The memory limit that a container runs under, if any."""
    for name in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            limit = int(Path(name).read_text())
            return limit if limit < 1 << 60 else None
    return None


def _cpu_quota() -> int | None:
    """The CPUs that a container's quota comes to (`cpu.max` of cgroup v2), if any."""
    with contextlib.suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return max(1, round(int(quota) / int(period)))
    return None


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
