"""Reads what `squeue` prints, in the form that `form` asks for."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, make_dataclass
from operator import itemgetter

from tfjobtui.errors import FormatError
from tfjobtui.model.ids import JobId, parse_tasks
from tfjobtui.model.job import NO_GPUS, Gpus, Job
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.slurm.fields import (
    NO_TEXT,
    Memo,
    parse_count,
    parse_duration,
    parse_exit_code,
    parse_time,
    text_or_empty,
)
from tfjobtui.schedulers.slurm.form import FIELD_END, FIELDS, Layout
from tfjobtui.schedulers.slurm.tres import parse_gres, parse_tres, times, tres_gpus, tres_memory

STEP_S = 0.004
"""How long a reading may hold the interpreter at a stretch."""


@dataclass(slots=True)
class Reading:
    """One answer while it is read, and when it is done.

    `rows` keeps each raw row with its job, so that the next answer builds only what has changed.
    """

    rows: dict[bytes, Job] = field(default_factory=dict)
    jobs: list[Job] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class Reader:
    """Reads answers of one layout, and remembers what repeated values mean."""

    def __init__(self, shape: Layout) -> None:
        self.shape = shape
        self._width = len(shape.names)
        # A field that was not asked for is read from the empty text that is put behind the others.
        names = shape.names
        places = (names.index(name) if name in names else self._width for name in FIELDS)
        self._pick: Callable[[list[str]], tuple[str, ...]] = itemgetter(*places)
        self._first_text = shape.names.index("Name") if "Name" in shape.names else self._width
        self._states = Memo(JobState.of)
        self._texts = Memo(text_or_empty)
        self._shared = Memo(str)
        self._counts = Memo(parse_count)
        self._no_times = Memo(parse_time)
        self._limits = Memo(parse_duration)
        self._exits = Memo(parse_exit_code)
        self._resources = Memo(_resources)
        self._per_node = Memo(parse_gres)
        self._tasks = Memo(parse_tasks)

    def parse(
        self, data: bytes, previous: Mapping[bytes, Job] | None = None, into: Reading | None = None
    ) -> Reading:
        """Read a whole answer at once (or with `into` a part of one, whole rows, in addition to what is there)."""
        reading = Reading() if into is None else into
        for _ in self.steps(data, reading, previous):
            pass
        return reading

    def steps(
        self, data: bytes, reading: Reading, previous: Mapping[bytes, Job] | None = None
    ) -> Iterator[None]:
        """Read an answer into `reading`, in steps of about `STEP_S` seconds.

        `previous` are the rows of the last answer of the same layout: an unchanged row keeps its job.
        """
        self._trim()
        known = {} if previous is None else previous
        until = time.perf_counter() + STEP_S
        rest = b""
        for piece in _pieces(data):
            records = piece.split(b"\x1e\n")
            last = records.pop()
            if rest:
                records[:0] = [rest]
            rest = self._read_all(records, known, reading)
            if last:  # only the end of an answer that was cut off has no end of row
                rest += last
            if time.perf_counter() > until:
                yield
                until = time.perf_counter() + STEP_S
        if rest.strip(b"\x1e\n"):
            reading.problems.append(f"squeue: the answer ends in the middle of a row: {_excerpt(rest)}")

    def _read_all(self, records: list[bytes], known: Mapping[bytes, Job], reading: Reading) -> bytes:
        """Read the rows; gives what may be the beginning of a row that goes on behind them."""
        rows, jobs = reading.rows, reading.jobs
        begun = b""
        for record in records:
            if begun:
                # The row before had too few fields. If all that come before the free texts are there, one
                # of the texts may hold the mark that ends a row.
                if begun.count(b"\x1f") >= self._first_text and not self._is_complete(record):
                    record = begun + b"\x1e\n" + record
                else:
                    reading.problems.append(f"squeue: a row with too few fields: {_excerpt(begun)}")
                begun = b""
            job = known.get(record)
            if job is None:
                values = record.decode("utf-8", "surrogateescape").split("\x1f")
                if len(values) < self._width or not values[-1].isdigit():
                    begun = record
                    continue
                if len(values) > self._width:
                    values = self._mended(values)
                try:
                    job = self._job(values)
                except (FormatError, ValueError, IndexError) as error:
                    reading.problems.append(
                        f"squeue: a row that cannot be read ({error}): {_excerpt(record)}"
                    )
                    continue
            rows[record] = job
            jobs.append(job)
        return begun

    def _is_complete(self, record: bytes) -> bool:
        return record.count(b"\x1f") == self._width - 1 and record[:1].isdigit()

    def _mended(self, values: list[str]) -> list[str]:
        """Put fields together that a separator inside a free text has split."""
        first = self._first_text
        last = values[-1]
        texts = self.shape.names[first:-1]
        parts = _split_texts(values[first:-1], texts)
        return [*values[:first], *parts, last]

    def _job(self, values: list[str]) -> Job:
        """Build the job of a row. It runs for every row that is new: each look-up counts."""
        values.append("")
        (
            shown, raw, state_text, user, reason, account, partition, qos, reservation, features, dependency,
            priority, restarts, submit, eligible, start, end, limit, nodes, cpus, tres, per_node, node_list,
            batch, sched, exit_code, cluster_text, name, command, folder, stdout, stderr, uid,
        ) = self._pick(values)  # fmt: skip
        counts, texts, shared = self._counts, self._texts, self._shared
        cluster = texts[cluster_text] or None if cluster_text else None
        if not shown[:1].isdigit():  # `CLUSTER: name` and empty lines between the clusters of -M
            cluster = cluster or _headed_cluster(shown)
            shown = shown[shown.rfind("\n") + 1 :]
        if shown.isdigit():
            job_id, key = JobId(int(shown)), shown
        else:
            job_id = self._job_id(shown)
            key = job_id.key
            if job_id.is_array:
                stdout, stderr = _array_default(stdout, raw), _array_default(stderr, raw)
        state = self._states[state_text]
        node_count = counts[nodes]
        gpus, memory = self._resources[tres]
        if per_node:
            gpus = times(self._per_node[per_node], node_count or 1)
        if stdout in NO_TEXT:
            stdout = ""
        return _make_job(
            job_id,
            f"{cluster}/{key}" if cluster else key,
            int(raw),
            name,
            state,
            shared[state_text],
            shared[user],
            counts[uid],
            cluster,
            texts[reason],
            texts[account],
            texts[partition],
            texts[qos],
            texts[reservation],
            texts[features],
            texts[dependency],
            counts[priority],
            counts[restarts] or 0,
            int(submit) or None if submit.isdigit() else parse_time(submit),
            int(eligible) or None if eligible.isdigit() else self._no_times[eligible],
            int(start) or None if start.isdigit() else self._no_times[start],
            int(end) or None if end.isdigit() else self._no_times[end],
            self._limits[limit],
            node_count,
            counts[cpus],
            memory,
            gpus,
            texts[node_list],
            texts[batch],
            texts[sched],
            texts[command],
            shared[folder],
            stdout,
            stdout if stderr == stdout else "" if stderr in NO_TEXT else stderr,
            self._exits[exit_code] if state.is_terminal else None,
        )

    def _job_id(self, shown: str) -> JobId:
        job, bracket, tasks = shown.partition("_[")
        if bracket and job.isdigit():
            body, _, throttle = tasks.partition("]")
            return JobId(int(job), tasks=self._tasks[body + throttle])
        return JobId.parse(shown)

    def _trim(self) -> None:
        for memo in (
            self._states, self._texts, self._shared, self._counts, self._no_times,
            self._limits, self._exits,
            self._resources, self._per_node, self._tasks,
        ):  # fmt: skip
            memo.trim()


_Draft = make_dataclass("_Draft", [(item.name, item.type) for item in fields(Job)], slots=True)


def _make_job(*values: object) -> Job:
    """`Job(*values)`, in a sixth of the time.

    A frozen dataclass sets each of its fields by a call. The draft has the same slots and sets them by
    plain assignment, and becomes a job, frozen like any other, once it is whole.
    """
    draft = _Draft(*values)
    draft.__class__ = Job
    job: Job = draft
    return job


PIECE = 1 << 17
"""Bytes that are split at once: some 300 rows, a millisecond or two."""


def _pieces(data: bytes) -> Iterator[bytes]:
    """Cut an answer at ends of rows, into pieces of about `PIECE` bytes."""
    start = 0
    while start < len(data):
        end = data.find(b"\x1e\n", start + PIECE)
        stop = len(data) if end < 0 else end + 2
        yield data[start:stop] if start or stop < len(data) else data
        start = stop


def _resources(text: str) -> tuple[Gpus, int | None]:
    if not text or text == "N/A":
        return NO_GPUS, None
    tres = parse_tres(text)
    return tres_gpus(tres), tres_memory(tres)


def _array_default(pattern: str, raw_id: str) -> str:
    """An array's default, which Slurm up to 23.11 prints as a plain job's: `slurm-<own id>.out`."""
    default = f"slurm-{raw_id}.out"
    if pattern == default or pattern.endswith(f"/{default}"):
        return pattern[: -len(default)] + "slurm-%A_%a.out"
    return pattern


def _headed_cluster(text: str) -> str | None:
    found = re.findall(r"^CLUSTER: (\S+)$", text, re.MULTILINE)
    return found[-1] if found else None


_STARTS = {"Command": ("/", "(null)", ""), "WorkDir": ("/",), "StdOut": ("/", "(null)", "", "slurm-", "N/A")}


def _split_texts(parts: list[str], names: tuple[str, ...]) -> list[str]:
    """Share out parts among free texts, of which some hold the separator: paths are known by their slash.

    The name comes first and gets what no path begins with.
    """
    result: list[str] = []
    left = len(names)
    rest = parts
    for name in names:
        left -= 1
        spare = len(rest) - left
        following = _STARTS.get(names[len(result) + 1], ("/", "(null)", "", "N/A")) if left else ()
        take = spare
        if left:
            # The fewest parts after which the next text begins as it must.
            take = next((n for n in range(1, spare + 1) if _begins(rest[n], following)), spare)
        if name == "Name" and left:
            # The name is the likeliest to hold anything: it takes all up to the last fitting place.
            fitting = [n for n in range(1, spare + 1) if _begins(rest[n], following)]
            take = fitting[-1] if fitting else spare
        result.append(FIELD_END.join(rest[:take]))
        rest = rest[take:]
    return result


def _begins(text: str, starts: tuple[str, ...]) -> bool:
    return any(text.startswith(start) if start else text == "" for start in starts)


def _excerpt(record: bytes) -> str:
    return repr(record[:80].decode("utf-8", "replace"))
