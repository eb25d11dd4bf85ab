"""sstat: what the steps of a running job have used until now."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from tfjobtui.errors import FormatError
from tfjobtui.model.ids import JobId
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local.commands import version
from tfjobtui.schedulers.local.commands.accounting_fields import SSTAT
from tfjobtui.schedulers.local.commands.getopt import Parsed, Table, parse
from tfjobtui.schedulers.local.commands.job_rows import Row, Surroundings
from tfjobtui.schedulers.local.commands.live_steps import steps_of
from tfjobtui.schedulers.local.commands.refusal import RefusalError
from tfjobtui.schedulers.local.commands.sacct import columns_of, print_rows, units_of
from tfjobtui.schedulers.local.place import default_place
from tfjobtui.schedulers.local.store import Store

_TABLE = Table(
    "sstat",
    with_value="format:o fields=format jobs:j delimiter units",
    flags="""
    parsable:p parsable2:P noheader:n allsteps:a noconvert helpformat:e verbose:v version:V help:h usage
    """,
    flags_not_here="pidformat:i json yaml",
)
_DEFAULT = """
jobid maxvmsize maxvmsizenode maxvmsizetask avevmsize maxrss maxrssnode maxrsstask averss maxpages maxpagesnode
maxpagestask avepages mincpu mincpunode mincputask avecpu ntasks avecpufreq reqcpufreqmin reqcpufreqmax reqcpufreqgov
consumedenergy maxdiskread maxdiskreadnode maxdiskreadtask avediskread maxdiskwrite maxdiskwritenode maxdiskwritetask
avediskwrite tresusageinave tresusageinmax tresusageinmaxn tresusageinmaxt tresusageinmin tresusageinminn
tresusageinmint tresusageintot tresusageoutave tresusageoutmax tresusageoutmaxn tresusageoutmaxt tresusageoutmin
tresusageoutminn tresusageoutmint tresusageouttot
"""


def run(argv: Sequence[str]) -> int:
    """Print the table; what cannot be told is said on standard error, with 0 as Slurm's own does.

    Raises:
        RefusalError: an option or a field is wrong, or not for here, or no job is named.
    """
    options = parse(_TABLE, argv)
    if version.told("sstat", options):
        return 0
    if options.has("helpformat"):
        print("\n".join(SSTAT))
        return 0
    words = options.words("jobs") or [part for word in options.rest for part in word.split(",")]
    if not words:
        raise RefusalError("sstat: error: You didn't give me any jobs to stat.")
    columns = columns_of("sstat", options.get("format") or ",".join(_DEFAULT.split()), SSTAT)
    store = Store(default_place())
    around = Surroundings(store)
    rows = [row for word in words for row in _rows(store, around, word, options)]
    print_rows(options, columns, rows, units_of(options))
    return 0


def _rows(store: Store, around: Surroundings, word: str, options: Parsed) -> Iterator[Row]:
    job, _, step = word.partition(".")
    try:
        records = store.find(JobId.parse(job))
    except FormatError as error:
        raise RefusalError(f"sstat: fatal: Bad job/step specified: {word}") from error
    running = [record for record in records if record.state in (JobState.RUNNING, JobState.COMPLETING)]
    if not running:
        sys.stderr.write(f"sstat: error: couldn't get steps for job {job}\n")
    for record in running:
        for one in steps_of(record, "sstat"):
            # Without -a only the steps of srun are meant.
            is_asked = one.name == step if step else options.has("allsteps") or one.name != "batch"
            if one.end_s is None and is_asked:
                yield Row(record, around, one)
