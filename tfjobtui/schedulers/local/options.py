"""What sbatch's options ask for: the command line over the environment over the script's directives."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tfjobtui import directives
from tfjobtui.errors import FormatError, SubmissionError, TfjobtuiError
from tfjobtui.schedulers.local import assembly
from tfjobtui.schedulers.local.assembly import Known, Script
from tfjobtui.schedulers.local.option_table import READERS, SAME
from tfjobtui.schedulers.local.request import JobRequest

_MOST_SCRIPT_BYTES = 4 << 20
_BLANKS = " \t\n\v\f\r"

_VARIABLES = """
ACCOUNT=account ARRAY_INX=array ACCTG_FREQ=acctg-freq BATCH=batch BURST_BUFFER=bb
CLUSTER_CONSTRAINT=cluster-constraint CLUSTERS=clusters CONSTRAINT=constraint CONTAINER=container
CONTAINER_ID=container-id CORE_SPEC=core-spec CPU_FREQ_REQ=cpu-freq CPUS_PER_GPU=cpus-per-gpu
DELAY_BOOT=delay-boot DISTRIBUTION=distribution ERROR=error EXCLUSIVE=exclusive EXPORT=export
GET_USER_ENV=get-user-env GPU_BIND=gpu-bind GPU_FREQ=gpu-freq GPUS=gpus GPUS_PER_NODE=gpus-per-node
GPUS_PER_SOCKET=gpus-per-socket GPUS_PER_TASK=gpus-per-task GRES=gres GRES_FLAGS=gres-flags HINT=hint
INPUT=input JOB_NAME=job-name MEM_BIND=mem-bind MEM_PER_CPU=mem-per-cpu MEM_PER_GPU=mem-per-gpu
MEM_PER_NODE=mem NETWORK=network NO_KILL=no-kill NO_REQUEUE=no-requeue OPEN_MODE=open-mode OUTPUT=output
OVERCOMMIT=overcommit PARTITION=partition POWER=power PROFILE=profile QOS=qos REQ_SWITCH=switches
REQUEUE=requeue RESERVATION=reservation SIGNAL=signal SPREAD_JOB=spread-job THREAD_SPEC=thread-spec
THREADS_PER_CORE=threads-per-core TIMELIMIT=time TRES_PER_TASK=tres-per-task USE_MIN_NODES=use-min-nodes
WAIT=wait WAIT_ALL_NODES=wait-all-nodes WCKEY=wckey
"""
_BY_ENVIRONMENT = (
    ("SLURM_CLUSTERS", "clusters"),
    ("SLURM_HINT", "hint"),
    *((f"SBATCH_{name}", option) for name, _, option in (word.partition("=") for word in _VARIABLES.split())),
)
"""Input variables of sbatch(1), and the options that they stand for."""
_COMMAND_LINE_ONLY = frozenset({"help", "quiet", "usage", "verbose", "version", "wrap"})
"""sbatch passes over these in a script."""


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
    """What to run, and how the command is to behave (which the script and the environment may say too)."""

    request: JobRequest
    flags: SubmitFlags


def flags_of(command_line: Sequence[str]) -> tuple[SubmitFlags, tuple[str, ...]]:
    """The command line's own flags, and the words after the options: the script and its arguments.

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
    Neither the environment nor the umask of the submission, nor its words, are part of the request.

    Raises:
        SubmissionError: sbatch would refuse it, or this machine cannot do it; for a directive the message names
            its line.
    """
    try:
        typed, _ = flags_of(command_line)
        is_wrapped = typed.wrap is not None
        if not is_wrapped:
            _check_script(script)
        known: dict[str, Known] = {}
        _take(known, () if is_wrapped else _directives(script), now_s)
        _take(known, _from_environment(environment), now_s)
        _take(known, _typed(command_line), now_s)
        notes = [] if is_wrapped else _other_systems(script, known)
        submitted = Script(script_path, tuple(arguments), submit_dir, is_wrapped, now_s)
        return ParsedJob(assembly.build(known, submitted, notes), _flags(typed, known))
    except TfjobtuiError as error:
        raise SubmissionError(error.message, error.hint, returncode=1, said=error.message) from error


def _flags(typed: SubmitFlags, known: Mapping[str, Known]) -> SubmitFlags:
    return SubmitFlags(
        parsable="parsable" in known,
        test_only="test-only" in known,
        wait="wait" in known,
        quiet=typed.quiet,
        wrap=typed.wrap,
        version=typed.version,
        help=typed.help,
    )


def _check_script(script: str) -> None:
    """What sbatch refuses whatever the options are (`_get_script_buffer` in `sbatch.c`)."""
    if not script:
        raise FormatError("Batch script is empty!", "Give the name of a script, or a command with --wrap.")
    if not script.partition("\0")[0].strip(_BLANKS):
        raise FormatError("Batch script contains only whitespace!")
    if not script.startswith("#!"):
        raise FormatError(
            "This does not look like a batch script. The first line must start with #! followed by the path"
            " to an interpreter.",
            "For instance: #!/bin/sh",
        )
    if "\0" in script:
        raise FormatError(
            "The Slurm controller does not allow scripts that contain a NULL character '\\0'.",
            "Is it a program? Then: sbatch --wrap PROGRAM",
        )
    if "\r\n" in script:
        raise FormatError(
            "Batch script contains DOS line breaks (\\r\\n) instead of expected UNIX line breaks (\\n).",
            "Take them out: sed -i 's/\\r$//' SCRIPT",
        )
    if len(script.encode("utf-8", "surrogateescape")) > _MOST_SCRIPT_BYTES:
        raise FormatError("the script is too long", f"It may have {_MOST_SCRIPT_BYTES >> 20} MiB.")


# ---- Where options stand


@dataclass(frozen=True, slots=True)
class _Given:
    """An option as it was given, and where."""

    name: str
    value: str | None
    where: str = ""
    by_environment: bool = False


def _directives(script: str) -> Iterator[_Given]:
    for line in directives.separators(script):
        raise FormatError(
            f"line {line}: a heterogeneous job (#SBATCH hetjob) needs Slurm: this machine is one node"
        )
    for item in directives.read(script):
        if item.name not in _COMMAND_LINE_ONLY:
            yield _Given(item.name, item.value, f"line {item.line}: ")


def _from_environment(environment: Mapping[str, str]) -> Iterator[_Given]:
    for variable, name in _BY_ENVIRONMENT:
        if variable in environment:
            yield _Given(name, environment[variable], f"{variable}: ", by_environment=True)


def _typed(command_line: Sequence[str]) -> Iterator[_Given]:
    for option in directives.split_options(command_line)[0]:
        yield _Given(option.name, option.value)


_OTHER_SYSTEM = re.compile(r"#(PBS|BSUB)\b")


def _other_systems(script: str, known: Mapping[str, Known]) -> list[str]:
    """A note on directives of other systems, which sbatch translates and this does not."""
    if "ignore-pbs" in known:
        return []
    for number, line in enumerate(script.split("\n"), 1):
        if line.strip(_BLANKS) and not line.lstrip(_BLANKS).startswith("#"):
            break
        match = _OTHER_SYSTEM.match(line)
        if match is not None:
            return [f"line {number}: #{match[1]} lines were passed over: write them as #SBATCH lines."]
    return []


# ---- Reading them


def _take(known: dict[str, Known], given: Iterable[_Given], now_s: float) -> None:
    """Add the options of a source; of those with one meaning the last counts."""
    for item in given:
        if item.by_environment and item.name in _FLAGS and not _is_on(item.value or ""):
            known.pop(_place(item.name), None)
            continue
        text = "" if item.name in _FLAGS and item.by_environment else item.value or ""
        value = _read(item, text, now_s)
        known[_place(item.name)] = Known(value, item.name, text, item.where, item.by_environment)


_FLAGS = frozenset({"no-requeue", "overcommit", "requeue", "spread-job", "use-min-nodes", "wait"})
"""Options without a value; a variable that stands for one says yes or no."""


def _is_on(value: str) -> bool:
    """As sbatch reads it: empty, `yes`, and any number but 0 say yes."""
    return value.casefold() in ("", "yes") or re.fullmatch(r"\s*[+-]?0*[1-9]\d*", value) is not None


def _place(name: str) -> str:
    return SAME.get(name, name)


def _read(item: _Given, value: str, now_s: float) -> object:
    reader = READERS.get(item.name)
    if reader is None:
        return value
    try:
        return reader(value, now_s)
    except FormatError as error:
        raise FormatError(
            f"{item.where}Invalid --{item.name} specification: {error.message}", error.hint
        ) from error
    except (ValueError, OverflowError) as error:  # more digits than a number may have
        raise FormatError(f"{item.where}Invalid --{item.name} specification: it is too large") from error
