"""What `squeue` prints, asked with separators of our own.

With `-O` (Slurm 20.11 to 26.05) every field has the width 0 (whole and unpadded) and the suffix 0x1F, the
last one 0x1E, and squeue puts a newline after each row. At a site whose squeue takes no `-O`, `-o` gives
the same form with fewer fields. Neither escapes anything: names and paths may hold any byte.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tfjobtui.errors import FormatError
from tfjobtui.model.ids import JobId, parse_tasks
from tfjobtui.model.job import NO_GPUS, Gpus, Job
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.slurm.fields import (
    Memo,
    parse_count,
    parse_duration,
    parse_exit_code,
    parse_time,
    text_or_empty,
)
from tfjobtui.schedulers.slurm.tres import parse_gres, parse_tres, times, tres_gpus, tres_memory

FIELD_END = "\x1f"
ROW_END = "\x1e"
STEP_S = 0.004
"""How long a reading may hold the interpreter at a stretch."""

# Name of the field in `-O`, and its letter in `-o` where there is one. The free texts stand last, so that
# a separator inside one of them can't move the fields before it; the id of the user ends the row.
FIELDS: Mapping[str, str] = {
    "JobArrayID": "i",
    "JobID": "A",
    "State": "T",
    "UserName": "u",
    "Reason": "r",
    "Account": "a",
    "Partition": "P",
    "QOS": "q",
    "Reservation": "v",
    "Feature": "f",
    "Dependency": "E",
    "PriorityLong": "Q",
    "RestartCnt": "",
    "SubmitTime": "V",
    "EligibleTime": "",
    "StartTime": "S",
    "EndTime": "e",
    "TimeLimit": "l",
    "NumNodes": "D",
    "NumCPUs": "C",
    "tres-alloc": "",
    "tres-per-node": "b",
    "NodeList": "N",
    "BatchHost": "B",
    "SchedNodes": "Y",
    "exit_code": "",
    "Cluster": "",
    "Name": "j",
    "Command": "o",
    "WorkDir": "Z",
    "StdOut": "",
    "StdErr": "",
    "UserID": "U",
}


@dataclass(frozen=True, slots=True)
class Layout:
    """Which fields are asked for, in which form."""

    names: tuple[str, ...]
    is_short: bool = False

    @property
    def option(self) -> tuple[str, str]:
        """The option of squeue that asks for them."""
        last = len(self.names) - 1
        ends = [ROW_END if index == last else FIELD_END for index in range(last + 1)]
        if self.is_short:
            text = "".join(f"%{FIELDS[name]}{end}" for name, end in zip(self.names, ends, strict=True))
            return "-o", text
        return "-O", ",".join(f"{name}:0{end}" for name, end in zip(self.names, ends, strict=True))


def layout(*, clusters: bool = False, short: bool = False, without: frozenset[str] = frozenset()) -> Layout:
    """The fields to ask for: with the cluster where several are watched; `without` what squeue refused."""
    left_out = set(without)
    if not clusters:
        left_out.add("Cluster")
    left_out |= {name for name, letter in FIELDS.items() if not letter} if short else {"tres-per-node"}
    return Layout(tuple(name for name in FIELDS if name not in left_out), short)


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
        self._at = tuple(shape.names.index(name) if name in shape.names else self._width for name in FIELDS)
        self._first_text = shape.names.index("Name") if "Name" in shape.names else self._width
        self._states = Memo(JobState.of)
        self._texts = Memo(text_or_empty)
        self._shared = Memo(str)
        self._counts = Memo(parse_count)
        self._times = Memo(parse_time)
        self._limits = Memo(parse_duration)
        self._exits = Memo(parse_exit_code)
        self._resources = Memo(_resources)
        self._per_node = Memo(parse_gres)
        self._tasks = Memo(parse_tasks)

    def parse(self, data: bytes, previous: Mapping[bytes, Job] | None = None) -> Reading:
        """Read a whole answer at once."""
        reading = Reading()
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
                # The row before had too few fields: a text in it holds the end of a row.
                whole = begun + b"\x1e\n" + record
                if whole.count(b"\x1f") < self._width and not self._is_complete(record):
                    record = whole
                else:
                    reading.problems.append(f"squeue: a row with too few fields: {_excerpt(begun)}")
                begun = b""
            job = known.get(record)
            if job is None:
                values = record.decode("utf-8", "surrogateescape").split("\x1f")
                if len(values) != self._width:
                    if len(values) < self._width:
                        begun = record
                        continue
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

    def _job(self, f: list[str]) -> Job:
        f.append("")
        (
            at_id, at_raw, at_state, at_user, at_reason, at_account, at_partition, at_qos, at_reservation,
            at_features, at_dependency, at_priority, at_restarts, at_submit, at_eligible, at_start, at_end,
            at_limit, at_nodes, at_cpus, at_tres, at_per_node, at_list, at_batch, at_sched, at_exit,
            at_cluster, at_name, at_command, at_dir, at_out, at_err, at_uid,
        ) = self._at  # fmt: skip
        times_of, counts, texts, shared = self._times, self._counts, self._texts, self._shared
        shown = f[at_id]
        cluster = texts[f[at_cluster]] or None
        if not shown[:1].isdigit():  # `CLUSTER: name` and empty lines between the clusters of -M
            cluster = cluster or _headed_cluster(shown)
            shown = shown[shown.rfind("\n") + 1 :]
        job_id = JobId(int(shown)) if shown.isdigit() else self._job_id(shown)
        raw = f[at_raw]
        state_text = f[at_state]
        state = self._states[state_text]
        key = shown if job_id.tasks is None else f"{job_id.job}_[]"
        stdout, stderr = texts[f[at_out]], texts[f[at_err]]
        if job_id.task is not None or job_id.tasks is not None:
            stdout, stderr = _array_default(stdout, raw), _array_default(stderr, raw)
        node_count = counts[f[at_nodes]]
        gpus, memory = self._resources[f[at_tres]]
        if f[at_per_node]:
            gpus = times(self._per_node[f[at_per_node]], node_count or 1)
        return Job(
            job_id,
            f"{cluster}/{key}" if cluster else key,
            int(raw),
            f[at_name],
            state,
            shared[state_text],
            shared[f[at_user]],
            counts[f[at_uid]],
            cluster,
            texts[f[at_reason]],
            texts[f[at_account]],
            texts[f[at_partition]],
            texts[f[at_qos]],
            texts[f[at_reservation]],
            texts[f[at_features]],
            texts[f[at_dependency]],
            counts[f[at_priority]],
            counts[f[at_restarts]] or 0,
            times_of[f[at_submit]],
            times_of[f[at_eligible]],
            times_of[f[at_start]],
            times_of[f[at_end]],
            self._limits[f[at_limit]],
            node_count,
            counts[f[at_cpus]],
            memory,
            gpus,
            texts[f[at_list]],
            texts[f[at_batch]],
            texts[f[at_sched]],
            texts[f[at_command]],
            shared[f[at_dir]],
            stdout,
            stderr,
            self._exits[f[at_exit]] if state.is_terminal else None,
        )

    def _job_id(self, shown: str) -> JobId:
        job, bracket, tasks = shown.partition("_[")
        if bracket and job.isdigit():
            body, _, throttle = tasks.partition("]")
            return JobId(int(job), tasks=self._tasks[body + throttle])
        return JobId.parse(shown)

    def _trim(self) -> None:
        for memo in (
            self._states, self._texts, self._shared, self._counts, self._times, self._limits, self._exits,
            self._resources, self._per_node, self._tasks,
        ):  # fmt: skip
            memo.trim()


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
