"""The tasks of a step: processes, each in a session of its own, as slurmstepd starts them."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    import resource

_ABOVE_STANDARD = 3
_KIBIBYTE = 1024
_BLOCK_BYTES = 512


@dataclass(frozen=True, slots=True)
class Plan:
    """How a task is started: `cpus` empty for srun's own, `terminal` where standard input is its controlling one."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    folder: str
    stdin: int
    stdout: int
    stderr: int
    cpus: tuple[int, ...] = ()
    terminal: bool = False


@dataclass(slots=True)
class Task:
    """A task: `status` is that of waitpid, `None` while it runs."""

    number: int
    pid: int
    status: int | None = None

    @property
    def is_running(self) -> bool:
        return self.status is None

    @property
    def is_bad(self) -> bool:
        return self.status is not None and self.status != 0

    def send(self, number: int) -> None:
        """To the task and what it has started, as far as that is in its process group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


@dataclass(slots=True)
class Tasks:
    """All tasks of a step. `usage` sums up, by the names of `records.Usage`, what those that have ended used."""

    tasks: list[Task] = field(default_factory=list)
    usage: dict[str, float] = field(default_factory=dict)

    @property
    def running(self) -> list[Task]:
        return [task for task in self.tasks if task.is_running]

    def send(self, number: int) -> None:
        for task in self.running:
            task.send(number)

    def reap(self) -> list[Task]:
        """Take the ends that have come; the tasks that have ended since the last call."""
        ended: list[Task] = []
        for task in self.running:
            pid, status, used = os.wait4(task.pid, os.WNOHANG)
            if pid:
                task.status = status
                self._add(used)
                ended.append(task)
        return ended

    def _add(self, used: resource.struct_rusage) -> None:
        """What the kernel has counted of a task and of the children that it waited for."""
        usage = self.usage
        usage["cpu_s"] = usage.get("cpu_s", 0.0) + used.ru_utime + used.ru_stime
        usage["peak_rss_bytes"] = max(usage.get("peak_rss_bytes", 0), used.ru_maxrss * _KIBIBYTE)
        usage["read_bytes"] = usage.get("read_bytes", 0) + used.ru_inblock * _BLOCK_BYTES
        usage["written_bytes"] = usage.get("written_bytes", 0) + used.ru_oublock * _BLOCK_BYTES

    def kill_leftovers(self) -> None:
        """Kill what the tasks have left running, in their sessions."""
        sessions = {task.pid for task in self.tasks}
        for pid in _processes_in(sessions):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    def result(self) -> tuple[int, int]:
        """The step's exit code and signal: the highest signal, or else the highest code."""
        statuses = [task.status or 0 for task in self.tasks]
        signals = [os.WTERMSIG(status) for status in statuses if os.WIFSIGNALED(status)]
        if signals:
            return 0, max(signals)
        return max((os.WEXITSTATUS(status) for status in statuses), default=0), 0


def _processes_in(sessions: Iterable[int]) -> list[int]:
    found: list[int] = []
    for name in os.listdir("/proc"):  # noqa: PTH208 - quicker than Path, and srun's end is waited for
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if os.getsid(int(name)) in sessions:
                found.append(int(name))
    return found


def start(number: int, plan: Plan) -> Task:
    """Start a task. What goes wrong from here on is the task's own end, with the error's number as its code."""
    sys.stdout.flush()
    sys.stderr.flush()
    waiting, running = os.pipe2(os.O_CLOEXEC)
    # A signal shall neither be lost in the copy of srun, nor reach it as srun.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        pid = os.fork()
        if pid == 0:
            _become(plan)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    os.close(running)
    # It ends when the program runs, or has failed to: from then on signals to its group arrive.
    os.read(waiting, 1)
    os.close(waiting)
    return Task(number, pid)


def _become(plan: Plan) -> NoReturn:
    """In the new process: never comes back."""
    try:
        os.setsid()
        _set_streams(plan)
        _reset_signals()
        if plan.terminal:
            _take_terminal()
        if plan.cpus:
            with contextlib.suppress(OSError):  # one of them was taken off meanwhile
                os.sched_setaffinity(0, plan.cpus)
        try:
            os.chdir(plan.folder)
        except OSError as error:
            _say(f"couldn't chdir to `{plan.folder}': {error.strerror}: going to /tmp instead")
            os.chdir("/tmp")
        # Only the task itself knows its pid before it runs.
        environment = {**plan.environment, "SLURM_TASK_PID": str(os.getpid())}
        os.execve(plan.argv[0], list(plan.argv), environment)
    except OSError as error:
        name = plan.argv[0] if error.filename is None else error.filename
        _say(f"execve(): {name}: {error.strerror}")
        os._exit(error.errno or errno.EIO)
    except BaseException as error:  # noqa: BLE001 - a border: this copy of srun must not go on as srun
        _say(f"a task could not be started: {error!r}")
        os._exit(1)
    os._exit(1)


def _set_streams(plan: Plan) -> None:
    # First out of the way of 0 to 2, which they may be themselves.
    wanted = [
        fcntl.fcntl(source, fcntl.F_DUPFD_CLOEXEC, _ABOVE_STANDARD)
        for source in (plan.stdin, plan.stdout, plan.stderr)
    ]
    for number, source in enumerate(wanted):
        os.dup2(source, number)


def _reset_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in (*SIGNALS, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGWINCH):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _take_terminal() -> None:
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _say(words: str) -> None:
    os.write(2, f"slurmstepd: error: {words}\n".encode("utf-8", "surrogateescape"))


SIGNALS = (
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGCONT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGALRM,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
"""What srun itself acts on (`sig_array` in `src/srun/srun.c`)."""


def find_program(name: str, environment: Mapping[str, str], folder: str) -> str:
    """The file that a task runs: by the tasks' own PATH, then in their folder; a name with a dot in front is there.

    A name that is found nowhere is given back, for the task to fail with.
    """
    if name.startswith("."):
        return os.path.join(folder, name)  # noqa: PTH118 - Slurm keeps the `./` in its messages
    if "/" in name:
        return name
    places = [place for place in environment.get("PATH", "").split(os.pathsep) if place]
    for place in (*places, folder):
        path = os.path.join(place, name)  # noqa: PTH118
        if os.access(path, os.X_OK) and not os.path.isdir(path):  # noqa: PTH112
            return path
    return name


def number_list(numbers: Iterable[int]) -> str:
    """`0-2,5`, as Slurm writes tasks."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)


def task_words(numbers: Iterable[int]) -> str:
    """`task 0`, `tasks 0-1`."""
    every = list(numbers)
    return f"task{'s' if len(every) > 1 else ''} {number_list(every)}"
