"""What a job asks for: the script's directives, the environment and the command line, read and checked."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass
from typing import Any

from tfjobtui.model.ids import TaskSet


@dataclass(frozen=True, slots=True)
class LimitSignal:
    """`--signal=[B:]SIG@T`: a signal `before_s` seconds before the time limit, to the steps or to the batch shell."""

    number: int
    before_s: int
    to_batch: bool = False


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A job as it was asked for; absent is `None`, texts are empty.

    Sizes are in bytes, times in seconds. `time_limit_s` is infinite without a limit. `begin_s` is a moment.
    `stdout`, `stderr`, `stdin` are absolute patterns as sbatch hands them over (the folder in front, nothing
    expanded); an empty `stdout` is the default, an empty `stderr` goes with standard output.
    `requeue` is `None` where nothing says it: then the user may requeue it, and a lost machine does not.
    `export` is sbatch's (`ALL`, `NONE`, `ALL,A=1`, `A,B=2`; empty is none). `min_cpus` are CPUs that it gets at
    least, whatever its tasks need; with `overcommit` its tasks need one together. `variables` are what sbatch
    itself sets by the options, without `SLURM_` in front. `notes` are sentences on options that have no
    meaning on one machine and were passed over.
    """

    name: str
    command: str
    work_dir: str
    submit_dir: str = ""
    arguments: tuple[str, ...] = ()
    script_is_wrapped: bool = False
    stdout: str = ""
    stderr: str = ""
    stdin: str = ""
    append: bool = False
    partition: str = ""
    account: str = ""
    qos: str = ""
    comment: str = ""
    time_limit_s: float = math.inf
    signal: LimitSignal | None = None
    requeue: bool | None = None
    hold: bool = False
    nice: int = 0
    begin_s: float | None = None
    deadline_s: float | None = None
    dependency: str = ""
    kill_on_invalid_dependency: bool = False
    array: TaskSet | None = None
    export: str = "ALL"
    ntasks: int | None = None
    ntasks_per_node: int | None = None
    cpus_per_task: int | None = None
    memory_per_node: int | None = None
    memory_per_cpu: int | None = None
    memory_per_gpu: int | None = None
    gpus: int = 0
    gpu_type: str | None = None
    exclusive: bool = False
    min_cpus: int = 0
    overcommit: bool = False
    variables: tuple[tuple[str, str], ...] = ()
    umask: int = 0o022
    submit_line: str = ""
    notes: tuple[str, ...] = ()

    @property
    def task_count(self) -> int:
        return self.ntasks or self.ntasks_per_node or 1

    @property
    def cpus(self) -> int:
        """CPUs in all; a machine that is asked for whole is counted by the planning."""
        needed = 1 if self.overcommit else self.task_count * (self.cpus_per_task or 1)
        return max(needed, self.min_cpus)

    @property
    def memory_bytes(self) -> int | None:
        """Memory in all, or `None` where nothing was asked for; 0 asks for all there is, as `--mem=0` does."""
        if self.memory_per_node is not None:
            return self.memory_per_node
        if self.memory_per_cpu is not None:
            return self.memory_per_cpu * self.cpus
        if self.memory_per_gpu is not None:
            return self.memory_per_gpu * self.gpus
        return None

    def to_json(self) -> str:
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        values["time_limit_s"] = None if math.isinf(self.time_limit_s) else self.time_limit_s
        if self.signal is not None:
            values["signal"] = [self.signal.number, self.signal.before_s, self.signal.to_batch]
        if self.array is not None:
            values["array"] = [list(self.array.ranges), self.array.throttle]
        return json.dumps(values)

    @staticmethod
    def from_json(text: str) -> JobRequest:
        """Read what `to_json` wrote; keys of a newer program are passed over."""
        known = {field.name for field in dataclasses.fields(JobRequest)}
        values: dict[str, Any] = {name: value for name, value in json.loads(text).items() if name in known}
        values["time_limit_s"] = math.inf if values.get("time_limit_s") is None else values["time_limit_s"]
        if values.get("signal") is not None:
            values["signal"] = LimitSignal(*values["signal"])
        if values.get("array") is not None:
            ranges, throttle = values["array"]
            values["array"] = TaskSet(tuple((a, b, c) for a, b, c in ranges), throttle)
        for name in ("arguments", "notes"):
            values[name] = tuple(values.get(name, ()))
        values["variables"] = tuple((name, value) for name, value in values.get("variables", ()))
        return JobRequest(**values)
