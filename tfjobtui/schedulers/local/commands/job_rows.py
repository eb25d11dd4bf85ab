"""A job, or a step of one, as the commands print it: what several of them need to know about it."""

from __future__ import annotations

import functools
import math
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tfjobtui.model.job import Gpus
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local.commands.forms import exact_size
from tfjobtui.schedulers.local.environment import CLUSTER
from tfjobtui.schedulers.local.place import host_name
from tfjobtui.schedulers.local.records import JobRecord, StepRecord, Usage
from tfjobtui.schedulers.local.store import Store

if TYPE_CHECKING:
    from tfjobtui.schedulers.local.machine import Machine

MIN_JOB_AGE_S = 300.0
"""For so long an ended job is still in the queue, as with Slurm's MinJobAge; sacct tells of it for longer."""
_MEBIBYTE = 1 << 20
_NO_TASK = 4294967294


def is_in_queue(record: JobRecord, now_s: float) -> bool:
    """Whether squeue and scontrol know the job."""
    return not record.state.is_terminal or (record.end_s or 0.0) > now_s - MIN_JOB_AGE_S


class Surroundings:
    """What rows need besides their records; asked for when it is first needed, since some of it takes its time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.now_s = time.time()
        self.host = host_name()

    @functools.cached_property
    def machine(self) -> Machine:
        from tfjobtui.schedulers.local.machine import find_machine

        return find_machine(self._store.settings())

    @functools.cached_property
    def user(self) -> str:
        import pwd

        try:
            return pwd.getpwuid(os.getuid()).pw_name
        except KeyError:
            return str(os.getuid())

    @functools.cached_property
    def group(self) -> str:
        import grp

        try:
            return grp.getgrgid(os.getgid()).gr_name
        except KeyError:
            return str(os.getgid())


@dataclass(frozen=True, slots=True)
class Row:
    """A job, or one of its steps."""

    record: JobRecord
    around: Surroundings
    step: StepRecord | None = None

    @property
    def usage(self) -> Usage:
        return Usage() if self.step is None else self.step.usage

    @property
    def state(self) -> JobState:
        return self.record.state if self.step is None else self.step.state

    @property
    def is_pending(self) -> bool:
        return self.record.state is JobState.PENDING

    @property
    def has_begun(self) -> bool:
        return self.record.start_s is not None

    @property
    def start_s(self) -> float | None:
        return self.record.start_s if self.step is None else self.step.start_s

    @property
    def end_s(self) -> float | None:
        return self.record.end_s if self.step is None else self.step.end_s

    @property
    def eligible_s(self) -> float | None:
        """From when on it may start, or might have; `None` of one that is held."""
        record = self.record
        if self.is_pending and record.held:
            return None
        return record.request.begin_s if record.eligible_s is None else record.eligible_s

    @property
    def due_s(self) -> float | None:
        """When the job ended, or has to end; `None` where that is not known."""
        record = self.record
        if record.end_s is not None or record.start_s is None or math.isinf(record.time_limit_s):
            return record.end_s
        return record.start_s + record.time_limit_s

    @property
    def elapsed_s(self) -> int:
        """Whole seconds from the start to the end, or to now."""
        if self.start_s is None:
            return 0
        end_s = self.around.now_s if self.end_s is None else self.end_s
        return max(0, int(end_s) - int(self.start_s))

    @property
    def cpus(self) -> int:
        request, held = self.record.request, self.record.allocation
        if held is not None:
            return len(held.cpus)
        return len(self.around.machine.cpus) if request.exclusive else request.cpus

    @property
    def memory_bytes(self) -> int:
        """What it holds, or will hold."""
        request, held = self.record.request, self.record.allocation
        if held is not None:
            return held.memory_bytes
        return request.memory_bytes or self.around.machine.memory_for(request)

    @property
    def gpus(self) -> Gpus:
        request, held = self.record.request, self.record.allocation
        count, kind = request.gpus, request.gpu_type
        if held is not None:
            count, kind = len(held.gpus), held.gpu_type
        return Gpus(((kind, count),)) if count else Gpus()

    @property
    def partition(self) -> str:
        return self.record.request.partition or CLUSTER

    @property
    def priority(self) -> int:
        return 0 if self.record.held else max(1, 1_000_000 + self.record.priority)

    @property
    def nodes(self) -> str:
        return self.around.host if self.has_begun else ""

    @property
    def reason(self) -> str:
        return self.record.reason or "None"

    @property
    def array_id(self) -> str:
        """`12`, `12_3`, `12_[4-9%2]`."""
        record, text = self.record, str(self.record.job_id)
        if record.array_tasks is None or not record.array_throttle:
            return text
        return f"{text.removesuffix(']')}%{record.array_throttle}]"

    @property
    def array_task(self) -> str:
        record = self.record
        if record.array_tasks is None:
            return "N/A" if record.array_task_id is None else str(record.array_task_id)
        return (
            f"{record.array_tasks}%{record.array_throttle}"
            if record.array_throttle
            else str(record.array_tasks)
        )

    @property
    def command(self) -> str:
        """The script and its arguments; `(null)` for one from standard input or `--wrap`."""
        request = self.record.request
        if request.script_is_wrapped or not request.command:
            return "(null)"
        return " ".join([request.command, *request.arguments])

    @property
    def dependency(self) -> str:
        """As scontrol writes what is left to wait for: `afterok:12(unfulfilled)`."""
        text = self.record.dependency
        separator = "?" if "?" in text else ","
        words = (f"{word}(unfulfilled)" if ":" in word else word for word in text.split(separator) if word)
        return separator.join(words) or "(null)"

    @property
    def tres(self) -> tuple[str, ...]:
        """`cpu=4`, `mem=3G`, `node=1`, `billing=4`, `gres/gpu=1`, `gres/gpu:a100=1`."""
        words = [
            f"cpu={self.cpus}",
            f"mem={exact_size(self.memory_bytes // _MEBIBYTE, 'M')}",
            "node=1",
            f"billing={self.cpus}",
        ]
        for kind, count in self.gpus.by_type:
            words.append(f"gres/gpu={count}")
            words += [f"gres/gpu:{kind}={count}"] if kind else []
        return tuple(words)

    def tres_per(self, what: str) -> str:
        """The GPUs as they were asked for, per `job`, `node`, `socket` or `task`: `gres:gpu:2`, or nothing."""
        request = self.record.request
        said = dict(request.variables)
        asked = next(
            (name for name, variable in _PER.items() if variable in said), "node" if request.gpus else ""
        )
        if asked != what:
            return ""
        text = said.get(_PER.get(what, ""), "")
        if not text:
            text = f"{request.gpu_type}:{request.gpus}" if request.gpu_type else str(request.gpus)
        return f"gres:gpu:{text}"

    @property
    def least_memory(self) -> tuple[str, str]:
        """What was asked for as `MinMemoryNode` or `MinMemoryCPU`, and its size: `400M`, or 0."""
        request = self.record.request
        if request.memory_per_cpu is not None:
            return "MinMemoryCPU", exact_size(request.memory_per_cpu // _MEBIBYTE, "M")
        return "MinMemoryNode", exact_size((request.memory_per_node or 0) // _MEBIBYTE, "M")

    def file(self, pattern: str) -> str:
        """The file that a pattern of the job means; of the waiting rest of an array as Slurm writes it."""
        from tfjobtui.schedulers.local.job_process import log_path

        record = self.record
        if record.array_tasks is not None:
            record = replace(record, array_tasks=None, array_task_id=_NO_TASK)
        return log_path(record, pattern)


_PER = {"job": "GPUS", "node": "GPUS_PER_NODE", "socket": "GPUS_PER_SOCKET", "task": "GPUS_PER_TASK"}


def each_task(record: JobRecord) -> Iterator[JobRecord]:
    """The waiting rest of an array as one record for each task; any other record as it is."""
    if record.array_tasks is None:
        yield record
        return
    for task in record.array_tasks:
        yield replace(record, array_tasks=None, array_task_id=task)


def only_task(record: JobRecord, task: int) -> JobRecord:
    """Of an array's waiting rest the one task that is meant."""
    return record if record.array_tasks is None else replace(record, array_tasks=None, array_task_id=task)
