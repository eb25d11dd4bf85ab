"""scancel: end jobs, or send them a signal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence

from tfjobtui.errors import FormatError, UsageError
from tfjobtui.model.ids import JobId
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local import control, details
from tfjobtui.schedulers.local.commands.getopt import Parsed, Table, parse
from tfjobtui.schedulers.local.commands.sbatch import start_soon
from tfjobtui.schedulers.local.moments import signal_number
from tfjobtui.schedulers.local.place import default_place
from tfjobtui.schedulers.local.records import JobRecord
from tfjobtui.schedulers.local.store import Store

_TABLE = Table(
    with_value="signal:s state:t name:n jobname user:u partition:p account:A qos:q nodelist:w clusters:M",
    flags="batch:b full:f me quiet:Q verbose:v interactive:i hurry:H ctld cron",
)


def run(argv: Sequence[str]) -> int:
    """Cancel what was named, or what fits the filters."""
    options = parse("scancel", _TABLE, argv, anywhere=True)
    if not options.rest and not any(
        options.has(name) for name in ("state", "name", "jobname", "user", "me", "partition")
    ):
        raise UsageError("No job identification provided")
    place = default_place()
    store = Store(place)
    code = 0
    for job_id in _ids(store, options):
        done = _cancel(store, job_id, options)
        # Of what has ended already Slurm says nothing unless it is asked to.
        if not done.ok and (options.has("verbose") or not done.ended_already):
            sys.stderr.write(f"scancel: error: Kill job error on job id {job_id}: {done.words}\n")
            code = code if done.ended_already else 1
    start_soon(place, store)
    return code


def _ids(store: Store, options: Parsed) -> Iterator[JobId]:
    fits = [row.job_id for row in store.live() if _fits(row, options)]
    if not options.rest:
        yield from fits
        return
    for word in options.rest:
        try:
            job_id = JobId.parse(word.partition(".")[0])
        except FormatError as error:
            raise UsageError(f"Invalid job id {word}") from error
        if all(not options.has(name) for name in ("name", "jobname", "partition")) or job_id in fits:
            yield job_id


def _fits(row: JobRecord, options: Parsed) -> bool:
    name = options.get("name") or options.get("jobname")
    user = options.get("user")
    return (
        (not name or row.request.name in name.split(","))
        and (not user or user in (details.user_name(), str(os.getuid())))
        and (not options.get("partition") or (row.request.partition or "local") == options.get("partition"))
        and (not options.get("state") or row.state in _states(options))
    )


def _states(options: Parsed) -> set[JobState]:
    return {JobState.of(word.upper()) for word in options.get("state").split(",")}


def _cancel(store: Store, job_id: JobId, options: Parsed) -> control.Done:
    if options.has("signal"):
        to = "batch" if options.has("batch") else "all" if options.has("full") else "steps"
        number = signal_number(options.get("signal"))
        if number != 9 or to == "batch":
            return control.send_signal(store, job_id, number, to)
    pending_only = options.has("state") and _states(options) == {JobState.PENDING}
    return control.cancel(store, job_id, pending_only=pending_only)
