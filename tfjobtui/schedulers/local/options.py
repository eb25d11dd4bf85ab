"""What sbatch's options ask for: the command line over the environment over the script's directives."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tfjobtui import directives
from tfjobtui.errors import FormatError, SubmissionError, TfjobtuiError
from tfjobtui.model.ids import parse_tasks
from tfjobtui.schedulers.local import dependencies, moments
from tfjobtui.schedulers.local.request import JobRequest

MAX_ARRAY_TASK = 1000
"""Slurm's default (`MaxArraySize` 1001 less one)."""
_MOST_TEXT = 1024
_MEMORY = ("mem", "mem-per-cpu", "mem-per-gpu")
_VARIABLES: Mapping[str, str] = {
    "SBATCH_ACCOUNT": "account",
    "SBATCH_ARRAY_INX": "array",
    "SBATCH_CLUSTERS": "clusters",
    "SLURM_CLUSTERS": "clusters",
    "SBATCH_CONSTRAINT": "constraint",
    "SBATCH_CPUS_PER_GPU": "cpus-per-gpu",
    "SBATCH_DEPENDENCY": "dependency",
    "SBATCH_DISTRIBUTION": "distribution",
    "SBATCH_ERROR": "error",
    "SBATCH_EXCLUSIVE": "exclusive",
    "SBATCH_EXPORT": "export",
    "SBATCH_GPUS": "gpus",
    "SBATCH_GPUS_PER_NODE": "gpus-per-node",
    "SBATCH_GPUS_PER_TASK": "gpus-per-task",
    "SBATCH_GRES": "gres",
    "SBATCH_INPUT": "input",
    "SBATCH_JOB_NAME": "job-name",
    "SBATCH_MEM_PER_NODE": "mem",
    "SBATCH_MEM_PER_CPU": "mem-per-cpu",
    "SBATCH_MEM_PER_GPU": "mem-per-gpu",
    "SBATCH_NO_REQUEUE": "no-requeue",
    "SBATCH_OPEN_MODE": "open-mode",
    "SBATCH_OUTPUT": "output",
    "SBATCH_PARTITION": "partition",
    "SBATCH_QOS": "qos",
    "SBATCH_REQUEUE": "requeue",
    "SBATCH_RESERVATION": "reservation",
    "SBATCH_SIGNAL": "signal",
    "SBATCH_TIMELIMIT": "time",
    "SBATCH_WAIT": "wait",
}
"""Input variables of sbatch(1) that mean something here."""
_VALUELESS = frozenset({"exclusive", "no-requeue", "requeue", "wait"})
_NO_EFFECT = frozenset(
    """
    acctg-freq autocomplete batch bb bbf bell burst-buffer comment-file contiguous core-spec cores-per-socket
    cpu-freq delay-boot distribution extra extra-node-info get-user-env gid gpu-bind gpu-freq gres-flags help hint
    ignore-pbs mail-user mcs-label mem-bind mincpus network no-kill nodefile ntasks-per-core ntasks-per-gpu
    ntasks-per-socket oom-kill-step overcommit oversubscribe power prefer priority profile propagate reboot
    resv-ports segment sockets-per-node spread-job stepmgr switches thread-spec threads-per-core tmp tres-bind
    tres-per-task uid use-min-nodes wait-all-nodes wckey
    """.split()
)
"""Options that change nothing on one machine: passed over without a word."""
_PASSED_OVER = {
    "constraint": "this machine has no features to choose nodes by",
    "reservation": "there are no reservations here",
    "nodelist": "there is one node here",
    "exclude": "there is one node here",
    "licenses": "licences are not counted here",
    "mail-type": "no mail is sent from here",
    "x11": "X11 is not forwarded",
    "container": "containers are not started by the scheduler here",
}


@dataclass(frozen=True, slots=True)
class SubmitFlags:
    """Options of the command itself."""

    parsable: bool = False
    test_only: bool = False
    wait: bool = False
    quiet: bool = False
    wrap: str | None = None
    version: bool = False
    help: bool = False


@dataclass(frozen=True, slots=True)
class ParsedJob:
    """What to run, and how the command is to behave."""

    request: JobRequest
    flags: SubmitFlags


@dataclass(frozen=True, slots=True)
class _Given:
    """An option and where it was given: `line 3: ` of a directive, else empty."""

    name: str
    value: str | None
    where: str = ""


def flags_of(command_line: Sequence[str]) -> tuple[SubmitFlags, tuple[str, ...]]:
    """The command's own flags, and the words after the options: the script and its arguments.

    Raises:
        FormatError: an option is not known or lacks its value.
    """
    options, rest = directives.split_options(command_line)
    given = {option.name: option.value for option in options}
    return SubmitFlags(
        parsable="parsable" in given,
        test_only="test-only" in given,
        wait="wait" in given,
        quiet="quiet" in given,
        wrap=given.get("wrap"),
        version="version" in given,
        help="help" in given or "usage" in given,
    ), rest


def parse_job(
    script: str,
    *,
    command_line: Sequence[str],
    environment: Mapping[str, str],
    script_path: str,
    arguments: Sequence[str],
    submit_dir: str,
    now_s: float,
) -> ParsedJob:
    """Put everything together.

    `script` is the whole text, `script_path` its absolute name (empty for one from standard input or `--wrap`).

    Raises:
        SubmissionError: sbatch would refuse it, or this machine cannot do it; for a directive the message names
            its line.
    """
    try:
        flags, _ = flags_of(command_line)
        if flags.wrap is None:
            _check_script(script)
        builder = _Builder(script_path, submit_dir, now_s, is_wrapped=flags.wrap is not None)
        builder.apply(_directives(script) if flags.wrap is None else ())
        builder.apply(_from_environment(environment))
        builder.apply([_Given(item.name, item.value) for item in directives.split_options(command_line)[0]])
        return ParsedJob(builder.build(arguments), flags)
    except TfjobtuiError as error:
        raise SubmissionError(error.message, error.hint, returncode=1, said=error.message) from error


def _check_script(script: str) -> None:
    """What sbatch refuses whatever the options are (`sbatch.c`, `_check_batch_script`)."""
    if not script:
        raise FormatError("Batch script is empty!")
    if not script.strip():
        raise FormatError("Batch script contains only whitespace!")
    if not script.startswith("#!"):
        raise FormatError(
            "This does not look like a batch script. The first line must start with #! followed by the path"
            " to an interpreter.",
            "For instance: #!/bin/sh",
        )
    if "\0" in script:
        raise FormatError("The SLURM batch script contains a NULL character!")
    if "\r\n" in script:
        raise FormatError(
            "Batch script contains DOS line breaks (\\r\\n) instead of expected UNIX line breaks (\\n).",
            "Take them out: sed -i 's/\\r$//' SCRIPT",
        )


def _directives(script: str) -> list[_Given]:
    found = directives.read(script)
    if any(item.component for item in found):
        raise FormatError("a heterogeneous job (#SBATCH hetjob) needs Slurm: this machine is one node")
    return [_Given(item.name, item.value, f"line {item.line}: ") for item in found]


def _from_environment(environment: Mapping[str, str]) -> Iterator[_Given]:
    for variable, name in _VARIABLES.items():
        if variable in environment:
            value = environment[variable]
            yield _Given(name, None if name in _VALUELESS else value, f"{variable}: ")


@dataclass
class _Builder:
    """Takes options one after the other; of those with one name the last counts."""

    script_path: str
    submit_dir: str
    now_s: float
    is_wrapped: bool = False
    fields: dict[str, Any] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    cpus_per_gpu: int | None = None
    gpus_per_task: int | None = None
    chdir: str = ""

    def apply(self, given: Sequence[_Given] | Iterator[_Given]) -> None:
        """Take the options of one source, and see that they agree among themselves."""
        options = list(given)
        memory = list(dict.fromkeys(item.name for item in options if item.name in _MEMORY))
        if len(memory) > 1:
            raise FormatError("--mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.")
        if memory:
            for name in ("memory_per_node", "memory_per_cpu", "memory_per_gpu"):
                self.fields.pop(name, None)
        for item in options:
            try:
                self._take(item)
            except FormatError as error:
                raise FormatError(f"{item.where}--{item.name}: {error.message}", error.hint) from error

    def _take(self, item: _Given) -> None:
        reader = _READERS.get(item.name)
        if reader is not None:
            reader(self, item.value or "")
        elif item.name in _PASSED_OVER:
            if item.name != "mail-type" or (item.value or "").upper() != "NONE":
                self.notes[item.name] = f"--{item.name} was passed over: {_PASSED_OVER[item.name]}."
        elif item.name not in _NO_EFFECT and item.name not in _FLAGS:
            self.notes[item.name] = f"--{item.name} was passed over: it has no meaning on one machine."

    def build(self, arguments: Sequence[str]) -> JobRequest:
        """The whole request."""
        values = dict(self.fields)
        work_dir = os.path.join(self.submit_dir, self.chdir)  # noqa: PTH118 - it need not exist
        for name in ("stdout", "stderr", "stdin"):
            if values.get(name):
                values[name] = os.path.join(work_dir, values[name])  # noqa: PTH118 - a pattern
        name = os.path.basename(self.script_path) or ("wrap" if self.is_wrapped else "sbatch")  # noqa: PTH119
        values.setdefault("name", name)
        self._settle_gpus(values)
        return JobRequest(
            command=self.script_path,
            work_dir=work_dir,
            submit_dir=self.submit_dir,
            arguments=tuple(arguments),
            script_is_wrapped=self.is_wrapped,
            notes=tuple(self.notes.values()),
            **values,
        )

    def _settle_gpus(self, values: dict[str, Any]) -> None:
        tasks = values.get("ntasks") or values.get("ntasks_per_node") or 1
        if self.gpus_per_task is not None:
            values["gpus"] = self.gpus_per_task * tasks
        gpus = values.get("gpus", 0)
        if self.cpus_per_gpu is not None and "cpus_per_task" not in values and gpus:
            values["cpus_per_task"] = max(1, math.ceil(self.cpus_per_gpu * gpus / tasks))


# ---- Readers of single options

_Reader = Callable[[_Builder, str], None]
_COUNT = re.compile(r"(\d+)([kKmM]?)", re.ASCII)
_NODES = re.compile(r"(\d+[kKmM]?)(?:-(\d+[kKmM]?))?(?::\d+)?", re.ASCII)
_GPUS = re.compile(r"(?:(?P<kind>[A-Za-z_][\w.+-]*)[:=])?(?P<count>\d+)", re.ASCII)


def _count(text: str) -> int:
    match = _COUNT.fullmatch(text)
    if match is None or int(match[1]) < 1:
        raise FormatError(f"{text!r} is no number from 1 on")
    return int(match[1]) * {"": 1, "k": 1024, "m": 1 << 20}[match[2].lower()]


def _text_field(name: str) -> _Reader:
    def read(builder: _Builder, value: str) -> None:
        if len(value.encode("utf-8", "surrogateescape")) > _MOST_TEXT:
            raise FormatError("Pathname of a file, directory or other parameter too long")
        builder.fields[name] = value

    return read


def _count_field(name: str) -> _Reader:
    def read(builder: _Builder, value: str) -> None:
        builder.fields[name] = _count(value)

    return read


def _memory_field(name: str) -> _Reader:
    def read(builder: _Builder, value: str) -> None:
        builder.fields[name] = moments.size_bytes(value)

    return read


def _time(builder: _Builder, value: str) -> None:
    builder.fields["time_limit_s"] = moments.time_limit_s(value)


def _signal(builder: _Builder, value: str) -> None:
    builder.fields["signal"] = moments.limit_signal(value)


def _begin(builder: _Builder, value: str) -> None:
    builder.fields["begin_s"] = moments.moment_s(value, builder.now_s)


def _deadline(builder: _Builder, value: str) -> None:
    builder.fields["deadline_s"] = moments.moment_s(value, builder.now_s)


def _dependency(builder: _Builder, value: str) -> None:
    builder.fields["dependency"] = str(dependencies.parse(value)) if value else ""


def _kill_on_invalid(builder: _Builder, value: str) -> None:
    if value.casefold() not in ("yes", "y", "no", "n"):
        raise FormatError("it is yes or no")
    builder.fields["kill_on_invalid_dependency"] = value.casefold().startswith("y")


def _array(builder: _Builder, value: str) -> None:
    tasks = parse_tasks(value)
    last = max((last for _, last, _ in tasks.ranges), default=-1)
    if last < 0 or last > MAX_ARRAY_TASK or tasks.is_cut or ("%" in value and not tasks.throttle):
        raise FormatError(
            "Invalid job array specification", f"Tasks are numbers up to {MAX_ARRAY_TASK}: 0-9%2."
        )
    builder.fields["array"] = tasks


def _nodes(builder: _Builder, value: str) -> None:
    match = _NODES.fullmatch(value)
    least = _count(match[1]) if match is not None else 0
    if match is None or (match[2] and _count(match[2]) < least):
        raise FormatError(f"{value!r} is no number of nodes", "Try 1.")
    if least > 1:
        raise FormatError(f"this machine is one node, and {least} are asked for: several nodes need Slurm")


def _gpu_count(value: str) -> tuple[str | None, int]:
    match = _GPUS.fullmatch(value)
    if match is None:
        raise FormatError(f"{value!r} is no number of GPUs", "Try 1, or a100:1.")
    return match["kind"], int(match["count"])


def _gpus(builder: _Builder, value: str) -> None:
    if "," in value:
        raise FormatError("GPUs of several types in one job need Slurm", "Ask for one type, or for none.")
    builder.fields["gpu_type"], builder.fields["gpus"] = _gpu_count(value)
    builder.gpus_per_task = None


def _gpus_per_task(builder: _Builder, value: str) -> None:
    builder.fields["gpu_type"], builder.gpus_per_task = _gpu_count(value)


def _gres(builder: _Builder, value: str) -> None:
    """`gpu:2`, `gpu:a100:2`, `gres/gpu:2`, `gpu`; anything else is not here."""
    builder.fields["gpus"], builder.fields["gpu_type"] = 0, None
    if value.casefold() in ("", "none"):
        return
    for part in value.split(","):
        name, _, rest = part.removeprefix("gres/").removeprefix("gres:").partition(":")
        if name != "gpu":
            raise FormatError(
                "Invalid generic resource (gres) specification", f"{name!r} is not counted here; gpu is."
            )
        if rest and not rest.rpartition(":")[2].isdigit():
            rest += ":1"
        builder.fields["gpu_type"], builder.fields["gpus"] = _gpu_count(rest or "1")


def _cpus_per_gpu(builder: _Builder, value: str) -> None:
    builder.cpus_per_gpu = _count(value)


def _exclusive(builder: _Builder, value: str) -> None:
    builder.fields["exclusive"] = value == ""


def _export(builder: _Builder, value: str) -> None:
    builder.fields["export"] = value or "ALL"


def _export_file(builder: _Builder, value: str) -> None:
    raise FormatError("it is not supported here", "Set the variables in the script, or by --export.")


def _hold(builder: _Builder, _: str) -> None:
    builder.fields["hold"] = True


def _nice(builder: _Builder, value: str) -> None:
    if re.fullmatch(r"-?\d+", value or "100") is None:
        raise FormatError(f"{value!r} is no number")
    # Only an administrator may raise a priority; Slurm lets the rest through as 0.
    builder.fields["nice"] = max(0, int(value or 100))


def _requeue(builder: _Builder, _: str) -> None:
    builder.fields["requeue"] = True


def _no_requeue(builder: _Builder, _: str) -> None:
    builder.fields["requeue"] = False


def _open_mode(builder: _Builder, value: str) -> None:
    if value.casefold() not in ("a", "append", "t", "truncate"):
        raise FormatError("it is append or truncate")
    builder.fields["append"] = value.casefold().startswith("a")


def _chdir(builder: _Builder, value: str) -> None:
    builder.chdir = value


def _clusters(builder: _Builder, value: str) -> None:
    if value not in ("", "local"):
        raise FormatError(
            f"there is no cluster {value!r} here", "This is the scheduler of this machine, `local`."
        )


_READERS: Mapping[str, _Reader] = {
    "account": _text_field("account"),
    "array": _array,
    "begin": _begin,
    "chdir": _chdir,
    "clusters": _clusters,
    "comment": _text_field("comment"),
    "cpus-per-gpu": _cpus_per_gpu,
    "cpus-per-task": _count_field("cpus_per_task"),
    "deadline": _deadline,
    "dependency": _dependency,
    "error": _text_field("stderr"),
    "exclusive": _exclusive,
    "export": _export,
    "export-file": _export_file,
    "gpus": _gpus,
    "gpus-per-node": _gpus,
    "gpus-per-socket": _gpus,
    "gpus-per-task": _gpus_per_task,
    "gres": _gres,
    "hold": _hold,
    "input": _text_field("stdin"),
    "job-name": _text_field("name"),
    "kill-on-invalid-dep": _kill_on_invalid,
    "mem": _memory_field("memory_per_node"),
    "mem-per-cpu": _memory_field("memory_per_cpu"),
    "mem-per-gpu": _memory_field("memory_per_gpu"),
    "nice": _nice,
    "no-requeue": _no_requeue,
    "nodes": _nodes,
    "ntasks": _count_field("ntasks"),
    "ntasks-per-node": _count_field("ntasks_per_node"),
    "open-mode": _open_mode,
    "output": _text_field("stdout"),
    "partition": _text_field("partition"),
    "qos": _text_field("qos"),
    "requeue": _requeue,
    "signal": _signal,
    "time": _time,
    "time-min": lambda builder, value: (moments.time_limit_s(value), None)[1],
}
_FLAGS = frozenset({"parsable", "test-only", "wait", "quiet", "verbose", "version", "usage", "help", "wrap"})
