"""What a job uses, sampled by its shepherd over the whole tree of its processes.

CPU time is that of the processes that live, with their ended children, and of those that the shepherd itself
has taken the ends of (`getrusage(RUSAGE_CHILDREN)`); likewise I/O, whose counters in `/proc/PID/io` a parent
takes over from each child that it waits for. Memory is the sum of resident sets, shared pages counted in each.
"""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tfjobtui.schedulers.local.records import Usage

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(slots=True)
class Sampler:
    """Adds up the samples of one job. `gpus` are the indexes of its GPUs."""

    gpus: tuple[int, ...] = ()
    _own_io: tuple[int, int] = field(default_factory=lambda: _io(os.getpid()) or (0, 0))
    _peak_rss: int = 0
    _rss: int = 0
    _cpu_s: float = 0.0
    _read: int | None = None
    _written: int | None = None
    _gpu_sum: float = 0.0
    _gpu_count: int = 0
    _gpu_memory: int | None = None

    def sample(self, extra: Iterable[int] = ()) -> int:
        """Look at the descendants of this process, and those of `extra`; gives their resident memory in bytes."""
        pids = tuple(tree((os.getpid(),))) + tuple(pid for root in extra for pid in (root, *tree((root,))))
        pids = tuple(dict.fromkeys(pids))
        self._rss = sum(_rss(pid) for pid in pids)
        self._peak_rss = max(self._peak_rss, self._rss)
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        living = sum(cpu_seconds(pid) for pid in pids)
        # A process that ends between two looks shall not make the sum go back.
        self._cpu_s = max(self._cpu_s, ended.ru_utime + ended.ru_stime + living)
        self._sample_io(pids)
        return self._rss

    def _sample_io(self, pids: Iterable[int]) -> None:
        own = _io(os.getpid())
        if own is None:
            return
        totals = [own[0] - self._own_io[0], own[1] - self._own_io[1]]
        for pid in pids:
            found = _io(pid)
            if found is not None:
                totals = [totals[0] + found[0], totals[1] + found[1]]
        self._read = max(self._read or 0, totals[0])
        self._written = max(self._written or 0, totals[1])

    def sample_gpus(self) -> None:
        """One sample of the job's GPUs by NVML."""
        if not self.gpus:
            return
        from tfjobtui.probe import nvml

        own = [item for item in nvml.sample_gpus() if item.index in self.gpus]
        rates = [item.utilisation_percent for item in own if item.utilisation_percent is not None]
        memory = [item.memory_used_bytes for item in own if item.memory_used_bytes is not None]
        if rates:
            self._gpu_sum += sum(rates) / len(rates)
            self._gpu_count += 1
        if memory:
            self._gpu_memory = max(self._gpu_memory or 0, sum(memory))

    @property
    def usage(self) -> Usage:
        return Usage(
            cpu_s=round(self._cpu_s, 3),
            peak_rss_bytes=self._peak_rss,
            rss_bytes=self._rss,
            read_bytes=self._read,
            written_bytes=self._written,
            gpu_percent=self._gpu_sum / self._gpu_count if self._gpu_count else None,
            gpu_memory_bytes=self._gpu_memory,
        )


def tree(roots: Iterable[int]) -> Iterator[int]:
    """The living descendants of some processes, without these."""
    todo = list(roots)
    seen = set(todo)
    while todo:
        for child in _children(todo.pop()):
            if child not in seen:
                seen.add(child)
                todo.append(child)
                yield child


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - called often
            with contextlib.suppress(OSError, ValueError):
                text = Path(f"/proc/{pid}/task/{thread}/children").read_text()
                found.extend(map(int, text.split()))
    return found


def cpu_seconds(pid: int) -> float:
    """User and system time of a process and of its children that it has waited for."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / _TICKS_PER_S


def _rss(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * _PAGE_BYTES
    except (OSError, IndexError):
        return 0


def proportional_memory(pids: Iterable[int]) -> int:
    """The memory of processes with shared pages counted once among them (`Pss` of smaps_rollup), in bytes."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
                    break
    return total


def _io(pid: int) -> tuple[int, int] | None:
    try:
        lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    except OSError:
        return None
    values = dict(line.split(": ") for line in lines)
    return int(values["read_bytes"]), int(values["write_bytes"])


def kernel_oom_kills() -> int | None:
    """How often the kernel has killed a process for want of memory since the boot (`oom_kill` of /proc/vmstat)."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return None
