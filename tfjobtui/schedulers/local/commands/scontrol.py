"""scontrol: show and change jobs, host lists, and putting a job back into the queue."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tfjobtui import __version__
from tfjobtui.errors import FormatError, UsageError
from tfjobtui.model import hostlist
from tfjobtui.model.ids import JobId
from tfjobtui.model.units import stamp
from tfjobtui.schedulers.local.commands.getopt import Table, parse
from tfjobtui.schedulers.local.place import host_name

_TABLE = Table(
    with_value="clusters:M",
    flags="oneliner:o detail:d details all:a quiet:Q verbose:v version:V local federation help:h",
)


def run(argv: Sequence[str]) -> int:
    """Do what the words after the options say."""
    options = parse("scontrol", _TABLE, argv)
    words = options.rest
    if options.has("version"):
        print(f"tfjobtui {__version__} (local scheduler)")
        return 0
    verb = words[0].casefold() if words else ""
    if verb == "show":
        return _show(words[1:], one_line=options.has("oneliner"))
    if verb == "ping":
        print(f"the local scheduler of {host_name()} needs no controller")
        return 0
    if verb == "write" and words[1:2] == ["batch_script"]:
        return _write_script(words[2:])
    if verb in _ACTIONS:
        return _act(verb, words[1:])
    if verb == "update":
        return _update(words[1:])
    if verb in ("suspend", "resume"):
        raise UsageError(f"{verb} is for administrators of a cluster: hold or requeue the job instead")
    raise UsageError(f"invalid keyword: {verb or '(none)'} (not known to scontrol of the local scheduler)")


# ---- show


def _show(words: Sequence[str], *, one_line: bool) -> int:
    what = words[0].casefold().rstrip("s") if words else ""
    if what == "hostname":
        text = words[1] if len(words) > 1 else os.environ.get("SLURM_JOB_NODELIST", "")
        return _hostnames(text)
    if what == "hostlist":
        print(words[1] if len(words) > 1 else "")
        return 0
    if what == "job":
        return _show_jobs(words[1] if len(words) > 1 else "", one_line=one_line)
    if what in ("config", "partition", "node"):
        return _show_machine(what)
    raise UsageError(f"invalid entity: {what or '(none)'} (not known to scontrol of the local scheduler)")


def _hostnames(text: str) -> int:
    if not text:
        raise UsageError("host list is empty")
    try:
        names = hostlist.expand(text)
    except FormatError:
        sys.stderr.write(f"Invalid hostlist: {text}\n")
        return 0  # as Slurm's does
    print("\n".join(names))
    return 0


def _show_jobs(text: str, *, one_line: bool) -> int:
    from tfjobtui.schedulers.local import details
    from tfjobtui.schedulers.local.machine import find_machine
    from tfjobtui.schedulers.local.place import default_place
    from tfjobtui.schedulers.local.store import Store

    store = Store(default_place())
    machine = find_machine(store.settings())
    rows = store.find(_job_id(text)) if text else store.live()
    if text and not rows:
        sys.stderr.write("slurm_load_jobs error: Invalid job id specified\n")
        return 1
    for row in rows:
        pairs = [f"{name}={_by_clock(name, value)}" for name, value in details.fields_of(row, machine)]
        print(" ".join(pairs) if one_line else "\n   ".join(pairs))
        if not one_line:
            print()
    if not rows:
        print("No jobs in the system")
    return 0


def _by_clock(name: str, value: str) -> str:
    """Moments as the user's own SLURM_TIME_FORMAT asks for, else as Slurm shows them."""
    if not name.endswith("Time") or not value.isdigit():
        return value
    form = os.environ.get("SLURM_TIME_FORMAT", "standard")
    return value if form == "%s" else stamp(int(value)).replace(" ", "T")


def _show_machine(what: str) -> int:
    from tfjobtui.schedulers.local.machine import find_machine
    from tfjobtui.schedulers.local.place import default_place
    from tfjobtui.schedulers.local.store import Store

    place = default_place()
    machine = find_machine(Store(place).settings())
    memory = machine.memory_bytes >> 20
    gres = f" Gres=gpu:{len(machine.gpus)}" if machine.gpus else ""
    if what == "config":
        print(
            f"ClusterName = local\nSLURM_VERSION = tfjobtui-{__version__}\nStateSaveLocation = {place.folder}"
        )
    elif what == "partition":
        print(f"PartitionName=local Default=YES MaxTime=UNLIMITED Nodes={host_name()} State=UP TotalNodes=1")
    else:
        print(f"NodeName={host_name()} CPUTot={len(machine.cpus)} RealMemory={memory}{gres} Partitions=local")
    return 0


def _write_script(words: Sequence[str]) -> int:
    from tfjobtui.schedulers.local.place import default_place
    from tfjobtui.schedulers.local.store import Store

    if not words:
        raise UsageError("a job id is missing")
    place = default_place()
    rows = Store(place).find(_job_id(words[0]))
    if not rows:
        raise UsageError("Invalid job id specified")
    number = rows[0].array_job_id or rows[0].id
    text = place.script(number).read_bytes()
    target = words[1] if len(words) > 1 else f"slurm-{number}.sh"
    if target == "-":
        sys.stdout.buffer.write(text)
    else:
        Path(target).write_bytes(text)
        print(f"batch script for job {number} written to {target}")
    return 0


# ---- Changing

_ACTIONS = ("hold", "uhold", "release", "requeue", "requeuehold")
_TAKEN_S = 3.0


def _act(verb: str, words: Sequence[str]) -> int:
    from tfjobtui.schedulers.local import control
    from tfjobtui.schedulers.local.commands.sbatch import start_soon
    from tfjobtui.schedulers.local.place import default_place
    from tfjobtui.schedulers.local.store import Store

    place = default_place()
    store = Store(place)
    acts: Mapping[str, Callable[[JobId], control.Done]] = {
        "hold": lambda job: control.hold(store, job),
        "uhold": lambda job: control.hold(store, job),
        "release": lambda job: control.release(store, job),
        "requeue": lambda job: control.requeue(store, job),
        "requeuehold": lambda job: control.requeue(store, job, hold=True),
    }
    code = 0
    ids = [part for word in words for part in _split_ids(word)]
    if not ids:
        raise UsageError("a job id is missing")
    for text in ids:
        done = acts[verb](_job_id(text))
        if not done.ok:
            sys.stderr.write(f"{done.words} for job {text}\n")
            code = 1
    start_soon(place, store)
    if code == 0 and verb.startswith("requeue"):
        _await_own_end(ids)
    return code


def _await_own_end(ids: Sequence[str]) -> None:
    """A script that puts its own job back is ended now: what stands after this line shall not run before that."""
    own = {
        os.environ.get("SLURM_JOB_ID", ""),
        f"{os.environ.get('SLURM_ARRAY_JOB_ID')}_{os.environ.get('SLURM_ARRAY_TASK_ID')}",
    }
    end = time.monotonic() + _TAKEN_S
    while own & set(ids) and time.monotonic() < end:
        time.sleep(0.05)


def _split_ids(word: str) -> list[str]:
    """`12,13_[1,3]`: the commas within brackets are a list of tasks."""
    parts: list[str] = []
    for piece in word.split(","):
        if parts and "[" in parts[-1] and "]" not in parts[-1]:
            parts[-1] += f",{piece}"
        elif piece:
            parts.append(piece)
    return parts


def _update(words: Sequence[str]) -> int:
    from tfjobtui.schedulers.local import control
    from tfjobtui.schedulers.local.commands.sbatch import start_soon
    from tfjobtui.schedulers.local.place import default_place
    from tfjobtui.schedulers.local.store import Store

    pairs = [word.partition("=")[::2] for word in words]
    jobs = [value for name, value in pairs if name.casefold() in ("job", "jobid")]
    changes = {name: value for name, value in pairs if name.casefold() not in ("job", "jobid")}
    if len(jobs) != 1 or not changes:
        raise UsageError("only jobs can be changed here: scontrol update JobId=12 TimeLimit=1:00:00")
    place = default_place()
    store = Store(place)
    done = control.update(store, _job_id(jobs[0]), changes)
    if not done.ok:
        sys.stderr.write(f"{done.words} for job {jobs[0]}\n")
        return 1
    start_soon(place, store)
    return 0


def _job_id(text: str) -> JobId:
    try:
        return JobId.parse(text)
    except FormatError as error:
        raise UsageError("Invalid job id specified") from error
