"""From the options of a submission, each read by itself, to what the job asks for: what they say together."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tfjobtui.errors import FormatError
from tfjobtui.model import hostlist
from tfjobtui.schedulers.local import gpus
from tfjobtui.schedulers.local.arrays import step_of
from tfjobtui.schedulers.local.option_table import PASSED_OVER
from tfjobtui.schedulers.local.request import JobRequest

_MEBIBYTE = 1 << 20
_MOST_PATH_BYTES = 4096
_MEMORY = {"mem": "memory_per_node", "mem-per-cpu": "memory_per_cpu", "mem-per-gpu": "memory_per_gpu"}


@dataclass(frozen=True, slots=True)
class Known:
    """A value, and the option that gave it. `where` is `line 3: ` of a directive, and of the environment its
    variable; `by_environment` is told from the others because those come before it."""

    value: Any
    option: str
    text: str
    where: str = ""
    by_environment: bool = False

    def wrong(self, reason: str, hint: str = "") -> FormatError:
        """An error about it that says where it stands."""
        given = f"--{self.option}={self.text}" if self.text else f"--{self.option}"
        return FormatError(f"{self.where}{given}: {reason}", hint)


@dataclass(frozen=True, slots=True)
class Script:
    """What is submitted, besides the options. `path` is absolute, and empty without a file."""

    path: str
    arguments: tuple[str, ...]
    submit_dir: str
    is_wrapped: bool
    now_s: float

    @property
    def name(self) -> str:
        """The job's name where none is given."""
        return os.path.basename(self.path) or ("wrap" if self.is_wrapped else "sbatch")  # noqa: PTH119 - a text


def build(known: Mapping[str, Known], script: Script, notes: Sequence[str]) -> JobRequest:
    """The whole request.

    Raises:
        FormatError: options do not go together, or ask for more than one machine.
    """
    return _Assembly(_expanded(known), script).build(notes)


def _expanded(known: Mapping[str, Known]) -> Mapping[str, Known]:
    """With `--tres-per-task` as the options that say the same."""
    tres = known.get("tres-per-task")
    if tres is None:
        return known
    parts = {name: Known(value, tres.option, tres.text, tres.where) for name, value in tres.value.items()}
    return {**parts, **known}


@dataclass
class _Assembly:
    known: Mapping[str, Known]
    script: Script
    variables: dict[str, str] = field(default_factory=dict)

    def get(self, name: str, default: Any = None) -> Any:
        found = self.known.get(name)
        return default if found is None else found.value

    def build(self, notes: Sequence[str]) -> JobRequest:
        self._check_times()
        tasks = self._settled_tasks()
        self._check_nodes(tasks.get("ntasks"))
        array = self.get("array", ("", None))
        if array[1] is not None:
            self.variables["ARRAY_TASK_STEP"] = str(step_of(array[0]))
        self._set_variables()
        texts = {
            name: self.get(name, "") for name in ("partition", "account", "qos", "comment", "dependency")
        }
        return JobRequest(
            name=self.get("job-name", self.script.name),
            command=self.script.path,
            arguments=self.script.arguments,
            script_is_wrapped=self.script.is_wrapped,
            array=array[1],
            time_limit_s=self.get("time", float("inf")),
            signal=self.get("signal"),
            requeue=self.get("requeue"),
            hold=self.get("hold", False),
            nice=self.get("nice", 0),
            begin_s=self.get("begin"),
            deadline_s=self.get("deadline"),
            kill_on_invalid_dependency=self.get("kill-on-invalid-dep") == "yes",
            export=self.get("export", "ALL"),
            exclusive=self.get("exclusive", False),
            append=self.get("open-mode") == "a",
            variables=tuple(self.variables.items()),
            notes=(*notes, *self._notes()),
            **self._paths(),
            **self._memory(tasks["gpus"]),
            **tasks,
            **texts,
        )

    def _paths(self) -> dict[str, Any]:
        """Patterns get the folder in front and stay as they are, as sbatch does it."""
        submit_dir = self.script.submit_dir
        work_dir = _joined(submit_dir, self.get("chdir", submit_dir))
        paths: dict[str, Any] = {"work_dir": work_dir, "submit_dir": submit_dir}
        for name, target in (("output", "stdout"), ("error", "stderr"), ("input", "stdin")):
            if name in self.known:
                paths[target] = _joined(work_dir, self.get(name))
        for path in paths.values():
            if len(os.fsencode(path)) > _MOST_PATH_BYTES:
                raise FormatError(
                    "Pathname of a file, directory or other parameter too long",
                    f"It may have {_MOST_PATH_BYTES} bytes.",
                )
        return paths

    def _check_times(self) -> None:
        now_s, begin_s, deadline_s = self.script.now_s, self.get("begin"), self.get("deadline")
        if deadline_s is not None and deadline_s < now_s:
            raise self.known["deadline"].wrong("this moment has passed")
        if deadline_s is not None and begin_s is not None and deadline_s < begin_s:
            raise self.known["deadline"].wrong("Incompatible begin and deadline time specification")
        if self.get("time-min", 0) > self.get("time", float("inf")):
            raise self.known["time-min"].wrong("it is more than --time")

    def _memory(self, gpu_count: int) -> dict[str, Any]:
        """Those that the environment asks for give way to the others; of one source there may be one only."""
        named = [name for name in _MEMORY if name in self.known]
        strong = [name for name in named if not self.known[name].by_environment]
        chosen = strong or named
        if len(chosen) > 1:
            raise self.known[chosen[-1]].wrong(
                "--mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.", "Take one of them out."
            )
        if chosen == ["mem-per-gpu"] and not gpu_count:
            raise self.known["mem-per-gpu"].wrong(
                f"{gpus.INVALID}: it did not request any GPU", "Ask for one: --gpus=1."
            )
        # No memory at all per CPU means, as with --mem, all there is.
        if chosen == ["mem-per-cpu"] and self.get("mem-per-cpu") == 0:
            return {"memory_per_node": 0}
        return {_MEMORY[name]: self.get(name) for name in chosen}

    # ---- Tasks, GPUs, nodes

    def _settled_tasks(self) -> dict[str, Any]:
        """`ntasks` and its kin, and the GPUs, each of which may follow from the other."""
        self._check_per_gpu()
        per_node, cpus_per_task = self.get("ntasks-per-node"), self.get("cpus-per-task")
        settled = self._settled_gpus(self._ntasks())
        per_gpu = self.get("cpus-per-gpu", 0)
        if per_gpu and cpus_per_task and settled.count:
            raise self.known["cpus-per-gpu"].wrong(
                "--cpus-per-gpu is mutually exclusive with --cpus-per-task"
            )
        return {
            "ntasks": settled.ntasks,
            "ntasks_per_node": per_node,
            "cpus_per_task": cpus_per_task,
            "min_cpus": max(self.get("mincpus", 0), per_gpu * settled.count),
            "overcommit": self.get("overcommit", False),
            "gpus": settled.count,
            "gpu_type": settled.kind,
        }

    def _ntasks(self) -> int | None:
        """How many tasks are asked for, if that is said in one way or another."""
        if "ntasks" in self.known:
            return int(self.get("ntasks"))
        low, high = self.get("nodes", (1, 1))
        if low != high:
            return None
        if "ntasks-per-node" in self.known:
            return int(self.get("ntasks-per-node"))
        parts = [self.get(name) for name in ("sockets-per-node", "cores-per-socket", "threads-per-core")]
        parts = list(self.get("extra-node-info", parts))
        if ("nodes" in self.known or "extra-node-info" in self.known) and any(parts):
            return int(parts[0] or 1) * int(parts[1] or 1) * int(parts[2] or 1)
        return None

    def _check_per_gpu(self) -> None:
        for name in ("gpus-per-task", "gpus-per-socket", "ntasks-per-node"):
            if "ntasks-per-gpu" in self.known and name in self.known:
                raise self.known[name].wrong(f"--{name} is mutually exclusive with --ntasks-per-gpu")

    def _settled_gpus(self, ntasks: int | None) -> gpus.Gpus:
        asked: dict[str, dict[str | None, int]] = {"job": {}, "node": {}, "socket": {}, "task": {}}
        forms = [("gpus", "job"), ("gpus-per-node", "node"), ("gres", "node")]
        forms += [("gpus-per-socket", "socket"), ("gpus-per-task", "task")]
        last: Known | None = None
        for name, level in forms:
            if name in self.known:
                last = self.known[name]
                asked[level].update(last.value[1] if isinstance(last.value, tuple) else last.value)
        low, high = self.get("nodes", (1, 1))
        tasks = gpus.Tasks(
            ntasks,
            self.get("ntasks-per-node"),
            self.get("ntasks-per-gpu"),
            self.get("sockets-per-node"),
            self.get("cpus-per-task"),
            "nodes" in self.known and low == high,
        )
        try:
            return gpus.settle(asked, tasks)
        except FormatError as error:
            where = last or self.known["ntasks-per-gpu"]
            raise where.wrong(error.message, error.hint) from error

    def _check_nodes(self, ntasks: int | None) -> None:
        """One node must do: sbatch itself takes no more nodes than there are tasks."""
        low, _ = self.get("nodes", (1, 1))
        if low > 1 and (ntasks is None or ntasks > 1):
            raise self.known["nodes"].wrong("this machine is one node; several nodes need Slurm")
        per_node = self.get("ntasks-per-node")
        if per_node and ntasks and ntasks > per_node:
            raise self.known["ntasks-per-node"].wrong(
                f"{ntasks} tasks need several nodes then; this machine is one node",
                "Leave it out, or use a cluster with Slurm.",
            )
        nodelist = self.known.get("nodelist")
        if nodelist is not None and len(_hosts(nodelist)) > 1:
            raise nodelist.wrong("this machine is one node; several nodes need Slurm")

    # ---- What sbatch says to the job

    def _set_variables(self) -> None:
        for name, variable in _VARIABLES.items():
            found = self.known.get(name)
            if found is not None:
                self.variables[variable] = (
                    found.value[0] if isinstance(found.value, tuple) else str(found.value)
                )
        if "mem-per-gpu" in self.known:
            self.variables["MEM_PER_GPU"] = str(self.get("mem-per-gpu") // _MEBIBYTE)
        if self.get("hint", "multithread") != "multithread":
            self.variables.setdefault("THREADS_PER_CORE", "1")
        if self.get("distribution") == "plane":
            self.variables["DIST_PLANESIZE"] = self.known["distribution"].text.partition("=")[2]
        if self.get("export", "ALL").upper() != "ALL":
            self.variables["GET_USER_ENV"] = "1"

    def _notes(self) -> list[str]:
        notes = []
        for name, reason in PASSED_OVER.items():
            found = self.known.get(name)
            if found is None or found.value is False:
                continue
            if name == "get-user-env" and self.get("export", "ALL").upper() != "ALL":
                continue  # the login's environment is read then
            notes.append(f"{found.where}--{found.option} was passed over: {reason}.")
        return notes


_VARIABLES = {
    "acctg-freq": "ACCTG_FREQ",
    "cpus-per-gpu": "CPUS_PER_GPU",
    "distribution": "DISTRIBUTION",
    "gpu-bind": "GPU_BIND",
    "gpu-freq": "GPU_FREQ",
    "gpus": "GPUS",
    "gpus-per-node": "GPUS_PER_NODE",
    "gpus-per-socket": "GPUS_PER_SOCKET",
    "gpus-per-task": "GPUS_PER_TASK",
    "hint": "HINT",
    "ntasks-per-core": "NTASKS_PER_CORE",
    "ntasks-per-gpu": "NTASKS_PER_GPU",
    "ntasks-per-socket": "NTASKS_PER_SOCKET",
    "open-mode": "OPEN_MODE",
    "threads-per-core": "THREADS_PER_CORE",
}
"""What sbatch sets by an option, without `SLURM_` in front."""


def _joined(folder: str, name: str) -> str:
    return name if name.startswith("/") else f"{folder}/{name}"


def _hosts(given: Known) -> tuple[str, ...]:
    try:
        return () if "/" in given.text else tuple(dict.fromkeys(hostlist.expand(given.text)))
    except FormatError as error:
        raise given.wrong("Invalid node name specified") from error
