"""Where a job's output is: the names that it may have, the first that exists, and why there is none.

What the scheduler tells of the name is wrong in known ways (`squeue` up to 23.11 shows the wrong default
for tasks of an array, `scontrol` up to 25.05 leaves `%N` and others in it), so several names are tried.
Files are looked at with `stat` only; nothing is opened, so that a pipe or a dead mount is not waited for.
"""

from __future__ import annotations

import enum
import os
import shlex
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tfjobtui.logs.matching import Match, newest_first
from tfjobtui.logs.patterns import NO_TASK, PatternIds, expand
from tfjobtui.model.job import ExitCode, Job
from tfjobtui.model.state import JobState
from tfjobtui.model.stream import Stream
from tfjobtui.model.text import printable

NODE_LOCAL = (
    "/tmp",
    "/var/tmp",
    "/dev/shm",
    "/run",
    "/scratch/local",
    "/local",
    "/localscratch",
    "/lscratch",
)
"""Folders that usually are a node's own: what a job writes there is seen on its node only."""

_NO_OUTPUT_FILE = ExitCode(0, 53)
"""How Slurm ends a job whose output file could not be opened."""

_NO_VALUE = frozenset({"", "(null)", "N/A", "n/a", "None", "Unknown"})


@dataclass(frozen=True, slots=True)
class LogQuery:
    """What is known of a job's output. Paths and patterns are as the scheduler has them.

    `scontrol_path` is `StdOut` or `StdErr` of `scontrol show job`, for the stream that is asked for.
    `is_folded` says that this is the waiting rest of an array, whose tasks have a log each.
    `slurm_version` is (year, month) of the release.
    """

    stream: Stream
    ids: PatternIds
    stdout_pattern: str = ""
    stderr_pattern: str = ""
    scontrol_path: str = ""
    work_dir: str = ""
    state: JobState = JobState.UNKNOWN
    exit_code: ExitCode | None = None
    start_time_s: int | None = None
    is_folded: bool = False
    slurm_version: tuple[int, int] | None = None
    node_local: tuple[str, ...] = NODE_LOCAL

    @staticmethod
    def of(
        job: Job,
        stream: Stream = Stream.STDOUT,
        scontrol_path: str = "",
        slurm_version: tuple[int, int] | None = None,
    ) -> LogQuery:
        """The query for a row of the queue."""
        return LogQuery(
            stream=stream,
            ids=ids_of(job),
            stdout_pattern=job.stdout_pattern,
            stderr_pattern=job.stderr_pattern,
            scontrol_path=scontrol_path,
            work_dir=job.work_dir,
            state=job.state,
            exit_code=job.exit_code,
            start_time_s=job.start_time_s,
            is_folded=job.id.tasks is not None,
            slurm_version=slurm_version,
        )


@dataclass(frozen=True, slots=True)
class LogLocation:
    """Where the log is, or will be.

    `path` is the file to open, or the expected one, and `None` where not even that can be said. `exists`
    says that it is a plain file that can be read. `may_appear` says that it is worth waiting for. `note` is
    a sentence for the user, empty where there is nothing to say. `candidates` are the names that were
    tried, in order. `same_as_stdout` says that standard error goes into the file of standard output.
    """

    path: Path | None
    exists: bool
    note: str
    candidates: tuple[str, ...]
    same_as_stdout: bool = False
    may_appear: bool = False


def ids_of(job: Job) -> PatternIds:
    """What a row of the queue tells for the patterns of file names."""
    is_one_node = job.nodes and not any(mark in job.nodes for mark in ",[")
    return PatternIds(
        job_id=None if job.id.tasks is not None else job.raw_id,
        array_job_id=job.array_id,
        array_task_id=job.id.task,
        node=job.batch_host or (job.nodes if is_one_node else ""),
        user=job.user,
        job_name=job.name,
        restarts=job.restarts,
    )


def locate(query: LogQuery) -> LogLocation:
    """Find the log. Faults of the file system are told in the note, not raised."""
    guesses = tuple(_guesses(query))
    names = _absolute(guess.path for guess in guesses)
    patterns = _absolute(guess.glob for guess in guesses)
    found = _first(names, query, guesses) or _by_pattern(patterns, query)
    if found is None:
        found = _missing(names, patterns, query)
    path, exists, note, may_appear = found
    return LogLocation(
        Path(path) if path else None, exists, note, names + patterns, same_as_stdout(query), may_appear
    )


def _absolute(names: Iterable[str | None]) -> tuple[str, ...]:
    """Each name once. A relative one would be looked for in the program's own folder, which says nothing."""
    return tuple(dict.fromkeys(name for name in names if name is not None and name.startswith("/")))


def same_as_stdout(query: LogQuery) -> bool:
    """Whether standard error goes into the file of standard output, as far as the queue tells."""
    stdout, stderr = _known(query.stdout_pattern), _known(query.stderr_pattern)
    if stderr:
        return stderr == stdout
    if query.stream is Stream.STDERR and not stdout and _known(query.scontrol_path):
        return query.scontrol_path == _first_name(_default(query))
    return True


def _known(text: str) -> str:
    return "" if text in _NO_VALUE else text


# ---- The names that the file may have


@dataclass(frozen=True, slots=True)
class _Guess:
    """A name, a pattern that it fits, or both; `uncertain` are the parts of it that are not sure."""

    path: str | None
    glob: str | None = None
    uncertain: tuple[str, ...] = ()


def _guesses(query: LogQuery) -> Iterator[_Guess]:
    pattern = _pattern(query)
    reported = "" if query.is_folded else _known(query.scontrol_path)
    if reported and query.ids.array_task_id is not None:
        # A task that is not yet split from its array is shown with Slurm's mark for "no task".
        reported = reported.replace(str(NO_TASK), str(query.ids.array_task_id))
    if reported and "%" not in reported:
        yield _Guess(_joined(query.work_dir, reported))
    if _is_wrong_default(pattern, query):
        yield from _default(query)
    elif pattern:
        yield from _expanded(pattern, query)
    if reported:
        yield from _expanded(reported, query)
    for literal in (reported, pattern):
        if literal and not query.is_folded:
            yield _Guess(_joined(query.work_dir, literal))
    yield from _default(query)


def _pattern(query: LogQuery) -> str:
    """What squeue tells; standard error without a file of its own goes into standard output's."""
    if query.stream is Stream.STDERR:
        return _known(query.stderr_pattern) or _known(query.stdout_pattern)
    return _known(query.stdout_pattern)


def _is_wrong_default(pattern: str, query: LogQuery) -> bool:
    """Whether this is how squeue up to 23.11 shows "no -o was given", with the raw id also for a task."""
    return bool(pattern) and pattern == _joined(query.work_dir, f"slurm-{query.ids.job_id}.out")


def _default(query: LogQuery) -> Iterator[_Guess]:
    """The name without `-o`. The folder is not part of the pattern."""
    is_array = query.ids.array_job_id is not None
    yield from _expanded("slurm-%A_%a.out" if is_array else "slurm-%j.out", query)


def _expanded(pattern: str, query: LogQuery) -> Iterator[_Guess]:
    """The expansion, relative to the working folder; where the host is unsure also with its full name."""
    expansion = expand(pattern, query.ids, query.slurm_version)
    if expansion.path is not None:
        yield _Guess(_joined(query.work_dir, expansion.path), None, expansion.uncertain)
        if "%N" in expansion.uncertain and "." in query.ids.node:
            full = expand(pattern, query.ids, (25, 11)).path
            yield _Guess(_joined(query.work_dir, full or ""), None, expansion.uncertain)
    if expansion.glob is not None:
        folder = _escaped(query.work_dir)
        yield _Guess(None, _joined(folder, expansion.glob), expansion.uncertain)


def _escaped(folder: str) -> str:
    return "".join(f"[{char}]" if char in "*?[" else char for char in folder)


def _joined(folder: str, name: str) -> str:
    return name if name.startswith("/") or not folder else f"{folder.rstrip('/')}/{name}"


def _first_name(guesses: Iterator[_Guess]) -> str | None:
    return next((guess.path for guess in guesses if guess.path), None)


# ---- What is there

_Found = tuple[str | None, bool, str, bool]
"""Path, whether it can be read, note, whether it may appear."""


class _Kind(enum.Enum):
    FILE = ""
    ABSENT = "absent"
    NULL = "The job's output is thrown away: it goes to /dev/null."
    FOLDER = "{path} is a folder, not a file."
    PIPE = "{path} is a pipe: reading it would take the output away from its reader."
    DEVICE = "{path} is a device or a socket, not a file."
    DENIED = "{path} may not be read by you{owner}."
    FAULT = "{path} can't be looked at{owner}."


def _look(path: str) -> tuple[_Kind, str]:
    """What is at a path, and what more there is to say about it."""
    if path == os.devnull:
        return _Kind.NULL, ""
    try:
        mode = os.stat(path)  # noqa: PTH116 (bytes that are no UTF-8 pass as they are)
    except (FileNotFoundError, NotADirectoryError):
        return _Kind.ABSENT, ""
    except PermissionError:
        return _Kind.DENIED, ": its folder is closed"
    except (OSError, ValueError) as error:
        return _Kind.FAULT, f": {getattr(error, 'strerror', None) or error}"
    if stat.S_ISREG(mode.st_mode):
        if os.access(path, os.R_OK):
            return _Kind.FILE, ""
        return _Kind.DENIED, f" (mode {stat.S_IMODE(mode.st_mode):04o}, owner {_owner(mode.st_uid)})"
    if stat.S_ISDIR(mode.st_mode):
        return _Kind.FOLDER, ""
    return (_Kind.PIPE if stat.S_ISFIFO(mode.st_mode) else _Kind.DEVICE), ""


def _owner(uid: int) -> str:
    import pwd  # reads the users' database, which only a refusal needs

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _first(names: tuple[str, ...], query: LogQuery, guesses: tuple[_Guess, ...]) -> _Found | None:
    """The first name at which there is a readable file; else the first at which there is anything."""
    other: _Found | None = None
    for name in names:
        kind, owner = _look(name)
        if kind is _Kind.FILE:
            if query.state.is_waiting and not query.ids.restarts:
                note = f"The job has not started: what {_base(name)} holds is from before."
                return name, True, note, True
            return name, True, _note_on_guess(name, guesses), True
        if kind is not _Kind.ABSENT and other is None:
            note = kind.value.format(path=printable(name), owner=owner)
            other = (name, False, note, kind is _Kind.FAULT)
    return other


def _note_on_guess(name: str, guesses: tuple[_Guess, ...]) -> str:
    guess = next(guess for guess in guesses if guess.path == name)
    if not guess.uncertain:
        return ""
    signs = " and ".join(guess.uncertain)
    return f"Opened {_base(name)}; the name has {signs} in it, so that it may not be the only one."


def _by_pattern(patterns: tuple[str, ...], query: LogQuery) -> _Found | None:
    """The newest file that fits a pattern, preferably one that was written to since the job's start."""
    if query.is_folded:
        return None  # any match would be the log of another task, which has a row of its own
    for pattern in patterns:
        matches = [match for match in newest_first(pattern) if os.access(match.path, os.R_OK)]
        if matches:
            return _chosen(pattern, matches, query.start_time_s)
    return None


_CLOCK_TOLERANCE_S = 120
"""How far the clocks of a file server and of Slurm's controller may be apart."""


def _chosen(pattern: str, matches: list[Match], start_time_s: int | None) -> _Found:
    path = matches[0].path
    count = len(matches)
    which = "the only file" if count == 1 else f"the newest of {count} files"
    note = f"Opened {_base(path)}, {which} that matches {_base(pattern)}."
    if start_time_s is not None and matches[0].modified_s < start_time_s - _CLOCK_TOLERANCE_S:
        note = f"{note[:-1]}; it was last written to before this job started."
    return path, True, note, True


def _base(path: str) -> str:
    return printable(path.rpartition("/")[2] or path)


# ---- Why there is nothing


def _missing(names: tuple[str, ...], patterns: tuple[str, ...], query: LogQuery) -> _Found:
    if query.is_folded:
        return None, False, _note_on_folded(names + patterns), True
    expected = names[0] if names else None
    shown = expected or (patterns[0] if patterns else "")
    if not shown.startswith("/"):
        return None, False, "Slurm does not tell in which folder this job runs.", query.state.is_active
    may_appear = query.state.is_waiting or query.state.is_active
    return expected, False, _reason(shown, query), may_appear


def _note_on_folded(names: tuple[str, ...]) -> str:
    example = f" such as {printable(names[0])}" if names else ""
    return f"These tasks have not started; each will write a log of its own{example}."


def _reason(path: str, query: LogQuery) -> str:
    shown = printable(path)
    folder = printable(os.path.dirname(path))  # noqa: PTH120
    has_folder = _look(os.path.dirname(path))[0] is not _Kind.ABSENT  # noqa: PTH120
    if query.exit_code == _NO_OUTPUT_FILE:
        why = "" if has_folder else f" {folder} does not."
        return f"The output file {shown} could not be created: does its folder exist?{why}"
    if query.state.is_waiting:
        return f"The job has not started. Its log will be {shown}." + _warning(folder, has_folder, query)
    if _is_node_local(path, query):
        where = query.ids.node or "the job's node"
        return f"{shown} is on a disk of the node's own: it can be seen on {where} only."
    if not has_folder:
        return f"The folder {folder} does not exist here, so there is no log {_base(path)} in it."
    if query.state.is_active:
        return f"{shown} is not there yet. A network file system may take a minute to show a new file."
    return f"{shown} is not there: it was moved or removed, or never written."


def _warning(folder: str, has_folder: bool, query: LogQuery) -> str:
    """Before 23.02 Slurm fails a job whose log's folder is absent: said while it can still be made."""
    makes_folders = query.slurm_version is not None and query.slurm_version >= (23, 2)
    if has_folder or makes_folders or _is_node_local(f"{folder}/", query):
        return ""
    return f" Its folder does not exist; Slurm before 23.02 would fail the job for that: mkdir -p {shlex.quote(folder)}"


def _is_node_local(path: str, query: LogQuery) -> bool:
    return any(path.startswith(f"{folder.rstrip('/')}/") for folder in query.node_local)
