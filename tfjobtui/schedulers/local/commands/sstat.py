"""sstat: what the steps of a running job have used until now."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from tfjobtui.errors import FormatError, UsageError
from tfjobtui.model.ids import JobId
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local import channel, rows
from tfjobtui.schedulers.local.commands.columns import Row
from tfjobtui.schedulers.local.commands.getopt import Parsed, Table, parse
from tfjobtui.schedulers.local.commands.sacct import fields_of, print_rows
from tfjobtui.schedulers.local.machine import find_machine
from tfjobtui.schedulers.local.place import default_place
from tfjobtui.schedulers.local.records import StepRecord
from tfjobtui.schedulers.local.store import Store

_TABLE = Table(
    with_value="format:o fields jobs:j delimiter",
    flags="parsable:p parsable2:P noheader:n allsteps:a noconvert verbose:v version:V",
)
_DEFAULT = "jobid,maxrss,averss,avecpu,ntasks,maxdiskread,maxdiskwrite"


def run(argv: Sequence[str]) -> int:
    """Print the table; what cannot be told is said on standard error, with 0 as Slurm's own does."""
    options = parse("sstat", _TABLE, argv, anywhere=True)
    words = options.get("jobs").split(",") if options.has("jobs") else options.rest
    if not words:
        raise UsageError("You didn't give me any jobs to stat.")
    names, places = fields_of(options.get("format") or options.get("fields") or _DEFAULT)
    store = Store(default_place())
    found = [row for word in words for row in _steps(store, word, options)]
    print_rows(options, names, places, found)
    return 0


def _steps(store: Store, word: str, options: Parsed) -> Iterator[Row]:
    job, _, step = word.partition(".")
    try:
        records = store.find(JobId.parse(job))
    except FormatError as error:
        raise UsageError(f"Invalid job id: {word}") from error
    running = [record for record in records if record.state in (JobState.RUNNING, JobState.COMPLETING)]
    if not running:
        sys.stderr.write(f"sstat: error: couldn't get steps for job {job}\n")
    machine = find_machine(store.settings())
    for record in running:
        try:
            answer = channel.ask(record.token, {"do": "usage"})
        except channel.NotReachableError as error:
            sys.stderr.write(f"sstat: error: {error}\n")
            continue
        usage = rows.usage_of(answer["usage"])
        batch = StepRecord("batch", "batch", 1, record.start_s or 0, None, JobState.RUNNING, None, usage)
        every = [batch, *map(rows.step_of, answer["steps"])]
        for one in every:
            if one.state is JobState.RUNNING and (one.name == step or (not step and _is_asked(one, options))):
                yield Row(record, machine, one)


def _is_asked(step: StepRecord, options: Parsed) -> bool:
    """Without `-a` only the steps of srun are meant."""
    return options.has("allsteps") or step.name != "batch"
