"""srun: a step in a job, from its script or, by `--jobid`, from anywhere on this machine.

The tasks take over standard output and error as they are, so that a log costs no copying, unless `--label` asks
for more. A step waits until the steps before it leave it CPUs and GPUs of the job, as on a cluster: with
`--exact` (or `--exclusive`, or `--cpus-per-task`) it takes what its tasks need, else all CPUs of the job, and with
`--overlap` it shares them.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from tfjobtui.errors import FormatError
from tfjobtui.schedulers.local import channel
from tfjobtui.schedulers.local.commands import version
from tfjobtui.schedulers.local.commands.getopt import Parsed, Table, parse
from tfjobtui.schedulers.local.commands.refusal import RefusalError, refuse
from tfjobtui.schedulers.local.commands.step import Step, tell
from tfjobtui.schedulers.local.commands.step_files import target
from tfjobtui.schedulers.local.commands.step_request import StepRequest
from tfjobtui.schedulers.local.commands.step_tasks import find_program
from tfjobtui.schedulers.local.place import FOLDER_VARIABLE, TOKEN_VARIABLE, host_name

_BAD_USAGE = 255
_TABLE = Table(
    "srun",
    with_value="""
    ntasks:n nodes:N cpus-per-task:c output:o error:e input:i chdir:D job-name:J time:t nodelist:w exclude:x
    wait:W gpus:G jobid gres gpus-per-node gpus-per-task gpus-per-socket export ntasks-per-node open-mode
    tasks-per-node=ntasks-per-node
    partition:p account:A distribution:m constraint:C dependency:d qos comment mem mem-per-cpu mem-per-gpu
    cpu-bind gpu-bind gpu-freq mem-bind mpi ntasks-per-core ntasks-per-socket ntasks-per-gpu hint network
    threads-per-core cores-per-socket sockets-per-node extra-node-info:B cpus-per-gpu gres-flags cpu-freq
    accel-bind signal slurmd-debug acctg-freq mincpus priority nice time-min tmp licenses:L reservation
    mail-type mail-user profile propagate core-spec:S thread-spec delay-boot deadline max-threads
    """,
    flags="""
    label:l unbuffered:u quiet:Q verbose:v overcommit:O disable-status:X quit-on-interrupt pty overlap exact
    whole contiguous oversubscribe:s preserve-env:E use-min-nodes reboot spread-job version:V help:h usage
    """,
    optional="kill-on-bad-exit:K exclusive immediate:I resv-ports no-kill:k x11",
    with_value_not_here="""
    relative:r bcast-exclude container epilog het-group multi-prog-file prolog task-epilog task-prolog tres-per-task
    cluster-constraint bb bbf begin:b switches uid gid wckey mcs-label power nodefile:F export-file
    """,
    flags_not_here="multi-prog no-allocate:Z bcast send-libs hold:H parallel debugger-test slurmstepd-debug",
    bad_usage=_BAD_USAGE,
    at_start=True,
)
_BY_ENVIRONMENT = (
    ("SLURM_LABELIO", "label"), ("SLURM_KILL_BAD_EXIT", "kill-on-bad-exit"), ("SLURM_WAIT", "wait"),
    ("SLURM_STDINMODE", "input"), ("SLURM_STDOUTMODE", "output"), ("SLURM_STDERRMODE", "error"),
    ("SLURM_OPEN_MODE", "open-mode"), ("SLURM_OVERCOMMIT", "overcommit"), ("SLURM_EXPORT_ENV", "export"),
    ("SLURM_DISABLE_STATUS", "disable-status"), ("SLURM_OVERLAP", "overlap"), ("SLURM_EXACT", "exact"),
    ("SLURM_EXCLUSIVE", "exclusive"), ("SLURM_NTASKS", "ntasks"), ("SRUN_CPUS_PER_TASK", "cpus-per-task"),
    ("SRUN_EXPORT_ENV", "export"), ("SRUN_ERROR", "error"), ("SRUN_INPUT", "input"), ("SRUN_OUTPUT", "output"),
    ("SLURM_WORKING_DIR", "chdir"),
)  # fmt: skip
"""Input variables of srun(1)."""
_YES_OR_NO = frozenset({"label", "overcommit", "disable-status", "overlap", "exact", "exclusive"})
_MOST_PATIENCE_S = 1.0
_OVER = "Job/step already completing or completed"


def run(argv: Sequence[str]) -> int:
    """Run the step and give srun's exit code.

    Raises:
        RefusalError: it cannot be run.
    """
    options = parse(_TABLE, argv)
    if version.told("srun", options):
        return 0
    if not options.rest:
        raise RefusalError("srun: fatal: No command given to execute.")
    _check(options)
    job = _job(options)
    _take_variables(options, job.base)
    wanted = _wanted(options, job)
    number, cpus, gpus = _begin(options, job, wanted)
    request = _request(options, job, wanted, number, cpus, gpus)
    step = Step(request, _kill_wait_s(job.base))
    code, by_signal = 1, 0
    try:
        code, by_signal = step.run()
    finally:
        end = {"exit_code": code, "signal": by_signal, "usage": step.usage}
        tell(job.token, {"do": "step_end", "step": number, **end})
    return 128 + by_signal if by_signal else code


def _check(options: Parsed) -> None:
    if options.has("quiet") and options.has("verbose"):
        refuse("srun", "don't specify both --verbose (-v) and --quiet (-Q)")
    if options.has("x11") or options.rest.count(":"):
        refuse("srun", "--x11 and several components are not supported by tfjobtui's local scheduler")
    for name in ("ntasks", "cpus-per-task", "ntasks-per-node"):
        _number(options, name)
    _seconds(options)


def _number(options: Parsed, name: str) -> int | None:
    if not options.has(name):
        return None
    text = options.get(name)
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        refuse("srun", f'Invalid numeric value "{text}" for --{name}.')
    return int(text)


def _seconds(options: Parsed) -> float | None:
    """The step's time limit, `None` without one."""
    if not options.has("time"):
        return None
    from tfjobtui.schedulers.local import moments

    try:
        limit = moments.time_limit_s(options.get("time"))
    except FormatError as error:
        raise RefusalError("srun: error: Invalid --time specification", _BAD_USAGE) from error
    return None if limit == float("inf") else limit


# ---- The job


@dataclass(frozen=True, slots=True)
class _Job:
    """The job that the step is for: the environment that its script has, or would have."""

    base: Mapping[str, str]
    cpus: tuple[int, ...] = ()
    """Its CPUs, where srun was called from outside of it; empty within it."""

    @property
    def token(self) -> str:
        return self.base[TOKEN_VARIABLE]

    @property
    def id(self) -> str:
        return self.base.get("SLURM_JOB_ID", "")

    @property
    def gpus(self) -> tuple[int, ...]:
        return tuple(int(word) for word in self.base.get("SLURM_JOB_GPUS", "").split(",") if word.isdigit())


def _job(options: Parsed) -> _Job:
    is_inside = TOKEN_VARIABLE in os.environ and "SLURM_JOB_ID" in os.environ
    named = options.get("jobid")
    if is_inside and named in ("", os.environ["SLURM_JOB_ID"]):
        return _Job(os.environ)
    if not named:
        refuse(
            "srun",
            "tfjobtui's local scheduler runs only steps of a job: call srun from a job's script, name a running"
            " job by --jobid, or submit a script by sbatch",
        )
    return _job_by_id(named)


def _job_by_id(text: str) -> _Job:
    from tfjobtui.model.ids import JobId
    from tfjobtui.model.state import JobState
    from tfjobtui.schedulers.local import environment
    from tfjobtui.schedulers.local.machine import find_machine
    from tfjobtui.schedulers.local.place import default_place
    from tfjobtui.schedulers.local.store import Store

    place = default_place()
    store = Store(place)
    try:
        rows = [row for row in store.find(JobId.parse(text)) if row.state is JobState.RUNNING]
    except FormatError:
        rows = []
    if not rows or rows[0].allocation is None:
        raise RefusalError(
            f"srun: error: Unable to confirm allocation for job {text}: Invalid job id specified\n"
            f"srun: Check SLURM_JOB_ID environment variable. Expired or invalid job {text}"
        )
    own = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
    base = environment.exported("ALL", own, {})
    memory = find_machine(store.settings()).memory_bytes
    made = environment.batch_environment(rows[0], place, base, node_memory_bytes=memory)
    # The number of tasks is that of the call, not that of the job.
    made.pop("SLURM_NTASKS", None)
    return _Job(made, rows[0].allocation.cpus)


def _take_variables(options: Parsed, base: Mapping[str, str]) -> None:
    """What srun takes from its environment, unless an option says it."""
    for variable, name in _BY_ENVIRONMENT:
        value = base.get(variable)
        if value is None or options.has(name):
            continue
        if name not in _YES_OR_NO:
            options.options[name] = value
        elif value.casefold() not in ("0", "no", "false"):
            options.options[name] = None


# ---- What the step gets


@dataclass(frozen=True, slots=True)
class _Wanted:
    """`gpus` is `None` where the step has the job's."""

    tasks: int
    cpus_per_task: int | None
    gpus: int | None
    gpus_per_task: int | None
    is_exact: bool
    shares: bool

    @property
    def cpus(self) -> int:
        return self.tasks * (self.cpus_per_task or 1)


def _wanted(options: Parsed, job: _Job) -> _Wanted:
    _check_nodes(options, job)
    per_node = _number(options, "ntasks-per-node")
    tasks = _number(options, "ntasks") or per_node or 1
    if per_node is not None and per_node < tasks:
        _warn(
            f"can't honor --ntasks-per-node set to {per_node} which doesn't match the requested tasks {tasks}"
            " with the number of requested nodes 1. Ignoring --ntasks-per-node."
        )
    cpus_per_task = _number(options, "cpus-per-task")
    gpus, per_task = _gpus(options, job, tasks)
    exact = any(options.has(name) for name in ("exact", "exclusive")) or cpus_per_task is not None
    wanted = _Wanted(tasks, cpus_per_task, gpus, per_task, exact, options.has("overlap"))
    allowed = job.base.get("SLURM_CPUS_ON_NODE", "1")
    if allowed.isdigit() and wanted.cpus > int(allowed) and not options.has("overcommit"):
        _unable(job, "More processors requested than permitted")
    return wanted


def _check_nodes(options: Parsed, job: _Job) -> None:
    least = options.get("nodes", "1").partition("-")[0]
    if not least.isdigit() or least == "0":
        refuse("srun", f'"{options.get("nodes")}" is not a valid node count')
    if int(least) > 1:
        refuse("srun", f"Only allocated 1 nodes asked for {least}")
    if options.has("exclude") and host_name() in _hosts(options.get("exclude")):
        refuse("srun", "Hostlist is empty!  Can't run job.")
    if options.has("nodelist") and set(_hosts(options.get("nodelist"))) != {host_name()}:
        _unable(job, "Requested node configuration is not available")


def _hosts(text: str) -> Sequence[str]:
    from tfjobtui.model import hostlist

    try:
        return hostlist.expand(text)
    except FormatError as error:
        raise RefusalError(f"srun: error: Invalid node list `{text}' specified") from error


def _gpus(options: Parsed, job: _Job, tasks: int) -> tuple[int | None, int | None]:
    """How many GPUs, and how many for each task; `None` where it is not said."""
    given = {name: options.get(name) for name in _GPU_OPTIONS if options.has(name)}
    if not given:
        return None, None
    from tfjobtui.schedulers.local.gpus import parse_gpus, parse_gres

    try:
        counts = {
            name: sum((parse_gres if name == "gres" else parse_gpus)(value).values())
            for name, value in given.items()
        }
    except FormatError:
        _unable(job, "Invalid generic resource (gres) specification")
    per_task = counts.pop("gpus-per-task", None)
    total = max(counts.values()) if counts else (per_task or 0) * tasks
    if total and not job.gpus:
        sys.stderr.write("srun: error: Step requested GRES but job doesn't have GRES\n")
    if total > len(job.gpus) or (per_task or 0) * tasks > total:
        _unable(job, "Invalid generic resource (gres) specification")
    return total, per_task


_GPU_OPTIONS = ("gpus", "gres", "gpus-per-node", "gpus-per-socket", "gpus-per-task")


def _warn(words: str) -> None:
    sys.stderr.write(f"srun: Warning: {words}\n")


def _unable(job: _Job, why: str) -> NoReturn:
    refuse("srun", f"Unable to create step for job {job.id}: {why}")


def _begin(
    options: Parsed, job: _Job, wanted: _Wanted
) -> tuple[int, tuple[int, ...], tuple[int, ...] | None]:
    """Ask the shepherd for a step, for as long as other steps have what it needs: its number, CPUs and GPUs."""
    message = {
        "do": "step_begin",
        "pid": os.getpid(),
        "title": options.get("job-name") or Path(options.rest[0]).name,
        "tasks": wanted.tasks,
        "cpus": wanted.cpus if wanted.is_exact else None,
        "gpus": wanted.gpus,
        "shared": wanted.shares or options.has("overcommit"),
    }
    answer, waited = _ask(job, message), False
    patience_s = 0.05
    while "busy" in answer:
        if options.has("immediate"):
            _unable(job, str(answer["busy"]))
        if not waited and not options.has("quiet"):
            reason = f"step creation temporarily disabled, retrying ({answer['busy']})"
            sys.stderr.write(f"srun: Job {job.id} {reason}\n")
        waited = True
        time.sleep(patience_s)
        patience_s = min(_MOST_PATIENCE_S, patience_s * 1.5)
        answer = _ask(job, message)
    if waited and not options.has("quiet"):
        sys.stderr.write(f"srun: Step created for job {job.id}\n")
    gpus = None if wanted.gpus is None and not answer.get("gpus") else tuple(answer.get("gpus", ()))
    return int(answer["step"]), tuple(answer.get("cpus", ())) or job.cpus, gpus


def _ask(job: _Job, message: Mapping[str, object]) -> dict[str, Any]:
    try:
        answer = channel.ask(job.token, message)
    except channel.NotReachableError:
        _unable(job, _OVER)
    if "error" in answer:
        _unable(job, str(answer["error"]))
    return answer


def _request(
    options: Parsed,
    job: _Job,
    wanted: _Wanted,
    number: int,
    cpus: tuple[int, ...],
    gpus: tuple[int, ...] | None,
) -> StepRequest:
    environment = _exported(options, job.base)
    folder = os.path.abspath(options.get("chdir") or os.getcwd())  # noqa: PTH100, PTH109 - links stay
    program = find_program(options.rest[0], environment, folder)
    return StepRequest(
        argv=[program, *options.rest[1:]],
        base=job.base,
        environment=environment,
        token=job.token,
        number=number,
        task_count=wanted.tasks,
        folder=folder,
        stdin=target(options.get("input"), wanted.tasks),
        stdout=target(options.get("output"), wanted.tasks),
        stderr=target(options.get("error"), wanted.tasks) if options.has("error") else None,
        cpus_per_task=wanted.cpus_per_task,
        cpus=cpus,
        gpus=gpus,
        gpus_per_task=wanted.gpus_per_task,
        append=options.get("open-mode", "t")[:1] in ("a", "A"),
        is_labelled=options.has("label"),
        is_quiet=options.has("quiet"),
        wants_terminal=options.has("pty"),
        kill_on_bad_exit=options.has("kill-on-bad-exit") and options.get("kill-on-bad-exit", "1") != "0",
        interrupts_at_once=options.has("disable-status"),
        wait_s=float(options.get("wait")) if options.get("wait").isdigit() else None,
        time_limit_s=_seconds(options),
    )


_ALWAYS = (
    "SLURM",
    "SPANK_",
    "TFJOBTUI_LOCAL_",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "GPU_DEVICE_ORDINAL",
)
"""What `--export` does not keep from the tasks: Slurm's own, and what it sets for each task."""


def _exported(options: Parsed, base: Mapping[str, str]) -> dict[str, str]:
    """The tasks' environment by `--export`: `ALL`, `NONE`, or variables."""
    words = [word for word in options.get("export", "ALL").split(",") if word]
    everything = "ALL" in (word.upper() for word in words)
    kept = {name: value for name, value in base.items() if everything or name.startswith(_ALWAYS)}
    for word in words:
        name, equals, value = word.partition("=")
        if equals:
            kept[name] = value
        elif name in base:
            kept[name] = base[name]
    if options.has("job-name"):
        kept["SLURM_JOB_NAME"] = options.get("job-name")
    return kept


def _kill_wait_s(base: Mapping[str, str]) -> Any:
    """Asks the store, where it is kept, only when it is needed."""

    def ask() -> float:
        from tfjobtui.schedulers.local.place import Place
        from tfjobtui.schedulers.local.store import Store

        store = Store(Place(Path(base[FOLDER_VARIABLE])))
        try:
            return store.settings().kill_wait_s
        finally:
            store.close()

    return ask
