"""Starting a job's script: its files, its folder, its environment, its process."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tfjobtui.errors import CommandError
from tfjobtui.logs.patterns import PatternIds, expand
from tfjobtui.model.job import ExitCode
from tfjobtui.schedulers.local import environment
from tfjobtui.schedulers.local.place import Place, host_name
from tfjobtui.schedulers.local.records import JobRecord

_LIKE = (25, 5)
"""The release of Slurm whose rules for file names are followed: the last before they changed with 25.11."""
_LOGIN_S = 8.0
NO_LOG = ExitCode(0, 53)
"""How Slurm ends a job whose output file cannot be opened."""


class NotStartedError(Exception):
    """The script could not be started; `exit_code` is what Slurm gives such a job."""

    def __init__(self, exit_code: ExitCode, message: str) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@dataclass(frozen=True, slots=True)
class Streams:
    """File descriptors of the script; `stderr` is that of standard output where they go to one file."""

    stdin: int
    stdout: int
    stderr: int

    def close(self) -> None:
        for descriptor in {self.stdin, self.stdout, self.stderr}:
            os.close(descriptor)

    def say(self, words: str) -> None:
        """A line of the scheduler's own in the job's error output, as slurmstepd writes it."""
        with contextlib.suppress(OSError):  # a full disk: the job's end is told elsewhere
            os.write(self.stderr, f"slurmstepd: error: {words}\n".encode("utf-8", "surrogateescape"))


def log_path(record: JobRecord, pattern: str) -> str:
    """The file that a pattern of this job means."""
    if not pattern:
        name = "slurm-%A_%a.out" if record.array_job_id is not None else "slurm-%j.out"
        return os.path.join(record.request.work_dir, _expanded(record, name))  # noqa: PTH118 - a text
    return os.path.join(record.request.work_dir, _expanded(record, pattern))  # noqa: PTH118


def _expanded(record: JobRecord, pattern: str) -> str:
    ids = PatternIds(
        job_id=record.id,
        array_job_id=record.array_job_id,
        array_task_id=record.array_task_id,
        node=host_name(),
        user=environment.bare_login()["USER"],
        job_name=record.request.name,
        restarts=record.restarts,
    )
    return expand(pattern, ids, _LIKE).path or pattern


def open_streams(record: JobRecord) -> Streams:
    """Open the script's files.

    Raises:
        NotStartedError: one of them cannot be opened.
    """
    request = record.request
    opened: list[int] = []
    try:
        opened.append(os.open(request.stdin or os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        output = log_path(record, request.stdout)
        opened.append(_open_log(output, append=request.append))
        error = log_path(record, request.stderr) if request.stderr else output
        same = error == output
        opened.append(opened[1] if same else _open_log(error, append=request.append))
    except OSError as error:
        for descriptor in set(opened):
            os.close(descriptor)
        raise NotStartedError(NO_LOG, f"{error.filename}: {error.strerror}") from error
    return Streams(*opened)


def _open_log(path: str, *, append: bool) -> int:
    # Slurm 23.02 and later make the folder.
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    return os.open(path, flags if append else flags | os.O_TRUNC, 0o666)


def start(
    record: JobRecord, place: Place, streams: Streams, node_memory_bytes: int
) -> subprocess.Popen[bytes]:
    """Start the script in a session of its own, on its CPUs.

    Raises:
        NotStartedError: it cannot be run.
    """
    kept_at = record.array_job_id or record.id
    script = place.script(kept_at)
    try:
        env = _environment(record, place, place.environment(kept_at).read_bytes(), node_memory_bytes)
        argv = [str(script), *record.request.arguments]
        return _popen(argv, record, streams, env)
    except FileNotFoundError as error:
        if not script.exists():
            raise NotStartedError(ExitCode(0, 52), f"the script is gone: {script}") from error
        named = (_interpreter(script) or [""])[0]
        raise NotStartedError(
            ExitCode(2), f"execve(): bad interpreter({named}): No such file or directory"
        ) from error
    except PermissionError:
        # A state folder on a file system where nothing may be executed.
        return _by_interpreter(record, place, streams, node_memory_bytes, script)
    except (OSError, subprocess.SubprocessError) as error:
        raise NotStartedError(ExitCode(8), f"execve(): {error}") from error


def _by_interpreter(
    record: JobRecord, place: Place, streams: Streams, node_memory_bytes: int, script: Path
) -> subprocess.Popen[bytes]:
    try:
        stored = place.environment(record.array_job_id or record.id).read_bytes()
        env = _environment(record, place, stored, node_memory_bytes)
        argv = [*_interpreter(script), str(script), *record.request.arguments]
        return _popen(argv, record, streams, env)
    except OSError as error:
        raise NotStartedError(ExitCode(13), f"execve(): {error.strerror}") from error


def _interpreter(script: Path) -> list[str]:
    """The words of the first line behind `#!`: the kernel takes one argument."""
    first = script.read_bytes().partition(b"\n")[0].decode("utf-8", "surrogateescape")
    return first.removeprefix("#!").strip().split(None, 1)


def _popen(
    argv: list[str], record: JobRecord, streams: Streams, env: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    folder = record.request.work_dir
    if not os.path.isdir(folder):  # noqa: PTH112 - it may be one that must not be looked into
        streams.say(f"couldn't chdir to `{folder}': No such file or directory: going to /tmp instead")
        folder = "/tmp"
    cpus = record.allocation.cpus if record.allocation is not None else ()

    def settle() -> None:
        """In the new process: signals as they are by default, which the shepherd's are not, and its CPUs."""
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        if cpus:
            # A CPU may have been taken off meanwhile: then it runs on those that there are.
            with contextlib.suppress(OSError):
                os.sched_setaffinity(0, cpus)

    return subprocess.Popen(
        argv,
        stdin=streams.stdin,
        stdout=streams.stdout,
        stderr=streams.stderr,
        env=env,
        cwd=folder,
        start_new_session=True,
        umask=record.request.umask,
        preexec_fn=settle,
    )


def _environment(record: JobRecord, place: Place, stored: bytes, node_memory_bytes: int) -> dict[str, str]:
    submitted = parse_environment(stored)
    export = record.request.export
    login = login_environment() if environment.needs_login(export) else {}
    base = environment.exported(export, submitted, login)
    return environment.batch_environment(record, place, base, node_memory_bytes=node_memory_bytes)


def parse_environment(stored: bytes) -> dict[str, str]:
    """Read `NAME=VALUE`, each ended by NUL."""
    pairs = (os.fsdecode(item).partition("=") for item in stored.split(b"\0") if b"=" in item)
    return {name: value for name, _, value in pairs}


def login_environment() -> dict[str, str]:
    """What a new login has, as sbatch's --get-user-env asks the user's shell; the least of it where that fails."""
    from tfjobtui.process import run

    bare = environment.bare_login()
    try:
        import asyncio

        done = asyncio.run(run((bare["SHELL"], "-l", "-c", "exec env -0"), timeout_s=_LOGIN_S, env=bare))
    except CommandError:
        return bare
    found = parse_environment(done.stdout) if done.returncode == 0 else {}
    return bare | {
        name: value for name, value in found.items() if name not in ("_", "SHLVL", "PWD", "OLDPWD")
    }
