"""scancel: end jobs, or send them a signal."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence

from tfjobtui.errors import FormatError
from tfjobtui.model.ids import JobId
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local import control
from tfjobtui.schedulers.local.commands import version
from tfjobtui.schedulers.local.commands.getopt import Parsed, Table, parse
from tfjobtui.schedulers.local.commands.passes import make_pass_soon
from tfjobtui.schedulers.local.commands.refusal import RefusalError, not_here, refuse
from tfjobtui.schedulers.local.environment import CLUSTER
from tfjobtui.schedulers.local.place import default_place, host_name
from tfjobtui.schedulers.local.records import JobRecord
from tfjobtui.schedulers.local.store import Store

_TABLE = Table(
    "scancel",
    with_value="""
    signal:s state:t name:n jobname=name user:u partition:p account:A qos:q nodelist:w clusters:M cluster=clusters
    """,
    flags="batch:b full:f me quiet:Q verbose:v interactive:i hurry:H ctld cron version:V help usage",
    with_value_not_here="reservation:R wckey sibling",
)
_FILTERS = ("state", "name", "user", "me", "partition", "account", "qos", "nodelist")
_STATES = (JobState.PENDING, JobState.RUNNING, JobState.SUSPENDED)


def run(argv: Sequence[str]) -> int:
    """Cancel what is named, or what fits the filters.

    Raises:
        RefusalError: an option or an id is wrong, or not for here.
    """
    options = parse(_TABLE, argv)
    if version.told("scancel", options):
        return 0
    if not options.rest and not any(options.has(name) for name in _FILTERS):
        refuse("scancel", "No job identification provided")
    for name in options.words("clusters") or ():
        if name != CLUSTER:
            refuse("scancel", f"No cluster '{name}' known by database.")
    number = _signal(options)
    states = _states(options)
    _check_user(options)
    store = Store(default_place())
    steps = [word for word in options.rest if "." in word]
    options.rest = [word for word in options.rest if "." not in word]
    codes = [_act_on_step(store, word, number) for word in steps]
    if options.rest or not steps:
        codes += [_act(store, *target, number, options) for target in _targets(store, options, states)]
    make_pass_soon(store)
    return max(codes, default=0)


def _signal(options: Parsed) -> int | None:
    if not options.has("signal"):
        return None
    from tfjobtui.schedulers.local.moments import signal_number

    try:
        return signal_number(options.get("signal"))
    except FormatError as error:
        raise RefusalError(f"Unknown job signal: {options.get('signal')}") from error


def _states(options: Parsed) -> frozenset[JobState]:
    """The states that are meant; empty for all."""
    found = frozenset(JobState.of(word) for word in options.words("state") or ())
    if not found <= set(_STATES):
        raise RefusalError(
            f"Invalid job state specified: {options.get('state')}\n"
            "Valid job states are PENDING, RUNNING, and SUSPENDED"
        )
    return found


def _check_user(options: Parsed) -> None:
    import pwd

    name = options.get("user")
    if name and not name.isdigit():
        try:
            pwd.getpwnam(name)
        except KeyError:
            refuse("scancel", f"Invalid user name: {name}")


def _targets(store: Store, options: Parsed, states: frozenset[JobState]) -> Iterator[tuple[JobId, bool]]:
    """What is named, as far as it fits (without names everything that fits), and whether only what waits is meant."""
    from tfjobtui.schedulers.local.commands.scontrol import split_ids

    words = [part for word in options.rest for part in split_ids(word)]
    if not words:
        for row in store.live():
            if _fits(row, options, states):
                yield row.job_id, states == {JobState.PENDING}
        return
    has_filters = any(options.has(name) for name in _FILTERS)
    for word in words:
        job_id = _job_id(word)
        if not has_filters:
            yield job_id, False
            continue
        for row in store.find(job_id):
            if _fits(row, options, states):
                # Of an array's waiting rest only the tasks that were named.
                yield (job_id if row.array_tasks is not None else row.job_id), row.state is JobState.PENDING


def _job_id(word: str) -> JobId:
    try:
        return JobId.parse(word)
    except FormatError as error:
        raise RefusalError(f"scancel: error: Invalid job id {word}") from error


def _act_on_step(store: Store, word: str, number: int | None) -> int:
    job, _, step = word.partition(".")
    if not step.isdigit():
        not_here("scancel", f"the step {word}", "cancel the job, or send a signal to it")
    done = control.signal_step(store, _job_id(job), int(step), number)
    if not done.ok:
        sys.stderr.write(f"scancel: error: Kill job error on job step id {word}: {done.words}\n")
    return 0 if done.ok else 1


def _fits(row: JobRecord, options: Parsed, states: frozenset[JobState]) -> bool:
    request = row.request
    state = JobState.RUNNING if row.state in (JobState.CONFIGURING, JobState.COMPLETING) else row.state
    given = {
        "name": request.name,
        "partition": request.partition or CLUSTER,
        "account": request.account,
        "qos": request.qos or "normal",
        "nodelist": host_name(),
    }
    return (
        not row.state.is_terminal
        and (not states or state in states)
        and all(not options.has(name) or text in (options.words(name) or ()) for name, text in given.items())
        and _is_mine(options)
    )


def _is_mine(options: Parsed) -> bool:
    if not options.has("user"):
        return True
    import pwd

    name = options.get("user")
    return name == str(os.getuid()) or (not name.isdigit() and pwd.getpwnam(name).pw_uid == os.getuid())


def _act(store: Store, job_id: JobId, pending_only: bool, number: int | None, options: Parsed) -> int:
    """Do it to one id; the exit code that it makes for."""
    if options.has("verbose"):
        what = "Terminating" if number is None else f"Signal {number} to"
        sys.stderr.write(f"scancel: {what} job {job_id}\n")
    if options.has("interactive") and not _agreed(job_id):
        return 0
    if number is not None and (number != signal.SIGKILL or options.has("batch")):
        to = "batch" if options.has("batch") else "all" if options.has("full") else "steps"
        done = control.send_signal(store, job_id, number, to)
    else:
        done = control.cancel(store, job_id, pending_only=pending_only)
    # Of what has ended already, or is not known, Slurm says nothing unless a signal was sent.
    is_no_news = number is None and (done.ended_already or done.words == control.NO_SUCH_JOB)
    if done.ok or (is_no_news and not options.has("verbose")):
        return 0
    if not options.has("quiet"):
        sys.stderr.write(f"scancel: error: Kill job error on job id {job_id}: {done.words}\n")
    return 0 if is_no_news else 1


def _agreed(job_id: JobId) -> bool:
    sys.stderr.write(f"Cancel job_id={job_id} [y/n]? ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().casefold() in ("y", "yes")
