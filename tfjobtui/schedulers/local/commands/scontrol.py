"""scontrol: show and change jobs, host lists, and putting a job back into the queue.

What is imported is what the subcommand needs: `show hostnames` stands at the beginning of many scripts.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from tfjobtui.schedulers.local.commands.getopt import Table, parse
from tfjobtui.schedulers.local.commands.refusal import RefusalError, not_here

if TYPE_CHECKING:
    from tfjobtui.model.ids import JobId
    from tfjobtui.schedulers.local import control
    from tfjobtui.schedulers.local.store import Store

_TABLE = Table(
    "scontrol",
    with_value="cluster:M clusters=cluster",
    flags="all:a details:d oneliner:o quiet:Q verbose:v hide local federation version:V help:h usage",
    with_value_not_here="uid:u",
    flags_not_here="future:F sibling json yaml",
)
_NOT_HERE = frozenset(
    """
    abort cancel_reboot cluster completing create delete errnumstr fsdampeningfactor listpids notify pidinfo
    reboot reconfigure resume schedloglevel setdebug setdebugflags shutdown suspend takeover token top wait_job
    """.split()
)
"""Keywords of Slurm's scontrol that have no meaning on one machine."""


def run(argv: Sequence[str]) -> int:
    """Do what the words after the options say.

    Raises:
        RefusalError: it is wrong, or Slurm would refuse it, or it is not for here.
    """
    options = parse(_TABLE, argv)
    words = [word for word in options.rest if word.casefold() not in ("oneliner", "details", "all", "quiet")]
    if options.has("version") or words[:1] == ["version"]:
        from tfjobtui.schedulers.local.commands.version import say_version

        say_version()
        return 0
    if options.has("help") or options.has("usage") or words[:1] == ["help"]:
        from tfjobtui.schedulers.local.commands.version import say_help

        say_help("scontrol")
        return 0
    flags = _Flags(
        one_line=options.has("oneliner") or "oneliner" in options.rest,
        details=options.has("details") or "details" in options.rest,
    )
    return _do(words, flags)


class _Flags:
    """How things are shown."""

    def __init__(self, *, one_line: bool, details: bool) -> None:
        self.one_line = one_line
        self.details = details


def _do(words: Sequence[str], flags: _Flags) -> int:
    keyword = words[0].casefold() if words else ""
    if keyword == "show":
        return _show(words[1:], flags)
    if keyword == "ping":
        from tfjobtui.schedulers.local.place import host_name

        print(
            f"Slurmctld(primary) at {host_name()} is UP (tfjobtui's local scheduler, which needs no daemon)"
        )
        return 0
    if keyword == "write":
        return _write(words[1:])
    if keyword in _ACTIONS:
        return _act(keyword, words[1:])
    if keyword == "update":
        return _update(words[1:])
    if keyword in ("suspend", "resume"):
        raise RefusalError(
            "\n".join(f"Access/permission denied for job {job}" for job in words[1:] or ("?",))
        )
    if keyword in _NOT_HERE:
        not_here("scontrol", keyword)
    if not keyword:
        not_here("scontrol", "the interactive mode", "give a command, such as `scontrol show job 12`")
    raise RefusalError(f"invalid keyword: {words[0]}")


# ---- show


def _show(words: Sequence[str], flags: _Flags) -> int:
    if not words:
        raise RefusalError("too few arguments for keyword:show")
    entity, equals, value = words[0].partition("=")
    name = value if equals else (words[1] if len(words) > 1 else "")
    match entity.casefold():
        case "hostname" | "hostnames":
            return _hostnames(name)
        case "hostlist" | "hostlistsorted":
            return _hostlist(name, is_sorted=entity.casefold().endswith("sorted"))
        case "job" | "jobs" | "jobid":
            return _show_jobs(name, flags)
        case "step" | "steps":
            return _show_steps(name, flags)
        case "config" | "partition" | "partitions" | "node" | "nodes" as what:
            return _show_machine(what.removesuffix("s"), name, flags)
        case (
            "assoc_mgr"
            | "bbstat"
            | "burstbuffer"
            | "daemons"
            | "federation"
            | "licenses"
            | "reservation"
            | "topology"
        ):
            not_here("scontrol", f"show {entity}")
    raise RefusalError(f"invalid entity:{entity} for keyword:show ")


def _hostnames(text: str) -> int:
    text = text or os.environ.get("SLURM_JOB_NODELIST") or os.environ.get("SLURM_NODELIST", "")
    if not text:
        sys.stderr.write("scontrol: error: host list is empty\n")
        return 0  # as Slurm's own
    print("\n".join(_expanded(text)))
    return 0


def _expanded(text: str) -> Sequence[str]:
    from tfjobtui.errors import FormatError
    from tfjobtui.model import hostlist

    if text.startswith("/"):
        text = _from_file(text)
    try:
        return hostlist.expand(text)
    except FormatError as error:
        raise RefusalError(f"Invalid hostlist: {text}") from error


def _from_file(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123 - no import for this
            return ",".join(file.read().split())
    except OSError as error:
        raise RefusalError(f"open {path}: {error.strerror}") from error


def _hostlist(text: str, *, is_sorted: bool) -> int:
    if not text:
        raise RefusalError("invalid encode argument")
    from tfjobtui.schedulers.local.commands.hosts import compressed

    hosts = _expanded(text)
    print(compressed(sorted(set(hosts)) if is_sorted else hosts))
    return 0


def _show_jobs(text: str, flags: _Flags) -> int:
    from tfjobtui.schedulers.local.commands.job_rows import Row, Surroundings, is_in_queue, only_task
    from tfjobtui.schedulers.local.commands.show_job import job_text

    store = _store()
    around = Surroundings(store)
    job_id = _known_id(text, "scontrol_print_job error: Invalid job id specified") if text else None
    found = store.jobs() if job_id is None else store.find(job_id)
    records = [record for record in found if is_in_queue(record, around.now_s)]
    if job_id is not None and job_id.task is not None:
        records = [only_task(record, job_id.task) for record in records]
    if job_id is not None and not records:
        raise RefusalError("slurm_load_jobs error: Invalid job id specified")
    for record in records:
        print(job_text(Row(record, around), one_line=flags.one_line, details=flags.details), end="")
    if not records:
        print("No jobs in the system")
    return 0


def _show_steps(text: str, flags: _Flags) -> int:
    from tfjobtui.model.state import JobState
    from tfjobtui.schedulers.local.commands.job_rows import Row, Surroundings
    from tfjobtui.schedulers.local.commands.live_steps import steps_of
    from tfjobtui.schedulers.local.commands.show_job import step_text

    store = _store()
    around = Surroundings(store)
    job, _, name = text.partition(".")
    words = f"Job step {text} not found"
    records = store.find(_known_id(job, words)) if text else store.live()
    if text and not records:
        raise RefusalError("slurm_get_job_steps error: Invalid job id specified")
    shown = 0
    for record in records:
        if record.state is not JobState.RUNNING:
            continue
        for step in steps_of(record, "scontrol"):
            if step.end_s is None and name in ("", step.name):
                print(step_text(Row(record, around), step, one_line=flags.one_line), end="")
                shown += 1
    if text and not shown:
        raise RefusalError(words)
    return 0


def _show_machine(what: str, name: str, flags: _Flags) -> int:
    from tfjobtui.schedulers.local.commands.show_machine import text_of

    text = text_of(_store(), what, name, one_line=flags.one_line)
    if not text:
        print(f"{what.capitalize()} {name} not found")
        return 1
    print(text, end="")
    return 0


# ---- write


def _write(words: Sequence[str]) -> int:
    if words[:1] != ["batch_script"]:
        raise RefusalError(f"invalid write argument:{words[0] if words else ''}")
    if len(words) < 2:
        raise RefusalError("too few arguments for keyword:write batch_script")
    store = _store()
    # As Slurm's own, with 0: whoever calls it has to look at what is there.
    missing = "job script retrieval failed: Invalid job id specified"
    rows = store.find(_known_id(words[1], missing))
    if not rows:
        sys.stderr.write(f"{missing}\n")
        return 0
    number = rows[0].array_job_id or rows[0].id
    try:
        script = store.place.script(number).read_bytes()
    except OSError as error:
        raise RefusalError(f"job script retrieval failed: {error.strerror}") from error
    return _put_script(script, words[1], words[2] if len(words) > 2 else f"slurm-{words[1]}.sh")


def _put_script(script: bytes, job: str, path: str) -> int:
    if path == "-":
        sys.stdout.buffer.write(script)
        return 0
    try:
        with open(path, "wb") as file:  # noqa: PTH123 - no import for this
            file.write(script)
    except OSError as error:
        sys.stderr.write(f"failed to open file `{path}': {error.strerror}\n")
        return 0
    print(f"batch script for job {job} written to {path}")
    return 0


# ---- Changing

_ACTIONS = ("hold", "uhold", "holdu", "release", "requeue", "requeuehold")


def _act(keyword: str, words: Sequence[str]) -> int:
    """Do it to every job that is named; what was refused is said for each."""
    from tfjobtui.schedulers.local.commands.passes import make_pass_soon

    if not words:
        raise RefusalError(f"too few arguments for keyword:{keyword}")
    store = _store()
    act = _action(keyword, store)
    names = list(_named(store, words))
    refused: list[str] = []
    for text in names:
        done = act(_known_id(text, f"Invalid job id specified for job {text}"))
        if not done.ok:
            refused.append(f"{text}: {done.words}" if "_" in text else f"{done.words} for job {text}")
    make_pass_soon(store)
    if refused:
        raise RefusalError("\n".join(refused))
    if keyword.startswith("requeue"):
        _await_own_end(names)
    return 0


def _action(keyword: str, store: Store) -> Callable[[JobId], control.Done]:
    from tfjobtui.schedulers.local import control

    if keyword == "release":
        return lambda job: control.release(store, job)
    if keyword.startswith("requeue"):
        return lambda job: control.requeue(store, job, hold=keyword == "requeuehold")
    return lambda job: control.hold(store, job)


def _named(store: Store, words: Sequence[str]) -> Iterator[str]:
    """The ids among the words; `jobname=NAME` stands for those of that name."""
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            yield from split_ids(word)
        elif name.casefold() in ("jobname", "name"):
            yield from (str(record.job_id) for record in store.live() if record.request.name == value)
        else:
            not_here("scontrol", word)


def split_ids(word: str) -> list[str]:
    """`12,13_[1,3]`: the commas within brackets are a list of tasks."""
    parts: list[str] = []
    for piece in word.split(","):
        if parts and "[" in parts[-1] and "]" not in parts[-1]:
            parts[-1] += f",{piece}"
        elif piece:
            parts.append(piece)
    return parts


_TAKEN_S = 5.0


def _await_own_end(ids: Sequence[str]) -> None:
    """A script that puts its own job back is ended now: what stands after this line shall not run before that."""
    job, array, task = (
        os.environ.get(f"SLURM_{name}", "") for name in ("JOB_ID", "ARRAY_JOB_ID", "ARRAY_TASK_ID")
    )
    if {job, array, f"{array}_{task}"} & set(ids):
        time.sleep(_TAKEN_S)


def _update(words: Sequence[str]) -> int:
    from tfjobtui.schedulers.local import control
    from tfjobtui.schedulers.local.commands.passes import make_pass_soon

    if not words:
        raise RefusalError("too few arguments for update keyword")
    pairs = [word.partition("=")[::2] for word in words]
    jobs = [value for name, value in pairs if name.casefold() in ("job", "jobid")]
    changes = {name: value for name, value in pairs if name.casefold() not in ("job", "jobid")}
    if not jobs:
        raise RefusalError(
            "No valid entity in update command\n"
            'Input line must include "JobId": tfjobtui\'s local scheduler has nothing else that can be changed'
        )
    if not changes:
        raise RefusalError("No changes specified")
    _check_changes(changes, jobs[0])
    store = _store()
    refused: list[str] = []
    for text in split_ids(jobs[0]):
        done = control.update(store, _known_id(text, f"Invalid job id specified for job {text}"), changes)
        if not done.ok:
            refused.append(f"{text}: {done.words}" if "_" in text else f"{done.words} for job {text}")
    make_pass_soon(store)
    if refused:
        raise RefusalError("\n".join(refused))
    return 0


def _check_changes(changes: Mapping[str, str], job: str) -> None:
    """Refuse in Slurm's words what cannot be meant."""
    from tfjobtui.errors import FormatError
    from tfjobtui.schedulers.local import control, dependencies, moments

    for name, value in changes.items():
        lower = name.casefold()
        if lower not in control.CHANGEABLE:
            raise RefusalError(f"Update of this parameter is not supported: {name}={value}\nRequest aborted")
        try:
            if lower == "timelimit":
                moments.time_limit_s(value.lstrip("+-"))
            elif lower in ("starttime", "eligibletime"):
                moments.moment_s(value, time.time())
        except FormatError as error:
            raise RefusalError(f"scontrol: error: Invalid {name} value") from error
        if lower == "nice" and not value.isdigit():
            is_number = value.startswith("-") and value[1:].isdigit()
            raise RefusalError(
                f"Access/permission denied for job {job}"
                if is_number
                else f"Invalid nice value, must be a number: {value}"
            )
        if lower == "dependency" and value:
            try:
                dependencies.parse(value)
            except FormatError as error:
                raise RefusalError(f"Job dependency problem for job {job}") from error


def _store() -> Store:
    from tfjobtui.schedulers.local.place import default_place
    from tfjobtui.schedulers.local.store import Store

    return Store(default_place())


def _known_id(text: str, words: str) -> JobId:
    from tfjobtui.errors import FormatError
    from tfjobtui.model.ids import JobId

    try:
        return JobId.parse(text)
    except FormatError as error:
        raise RefusalError(words) from error
