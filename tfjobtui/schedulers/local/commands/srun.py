"""srun: a step in a job, from its script or, by `--jobid`, from anywhere on this machine.

The tasks take over standard output and error as they are, so that a log costs no copying, unless `--label` or a
file for each task asks for more. Standard input goes to the first task. Steps of one job do not wait for each
other, as if each had been given `--overlap`.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO

from tfjobtui.errors import UsageError
from tfjobtui.schedulers.local import channel
from tfjobtui.schedulers.local.channel import NotReachableError
from tfjobtui.schedulers.local.commands.getopt import Parsed, Table, parse
from tfjobtui.schedulers.local.environment import step_environment
from tfjobtui.schedulers.local.place import TOKEN_VARIABLE, host_name

_TABLE = Table(
    with_value="""
    ntasks:n nodes:N cpus-per-task:c output:o error:e input:i chdir:D job-name:J time:t nodelist:w exclude:x
    partition:p account:A wait:W gpus:G distribution:m constraint:C dependency:d jobid gres gpus-per-node
    gpus-per-task gpus-per-socket mem mem-per-cpu mem-per-gpu cpu-bind gpu-bind mem-bind mpi export
    ntasks-per-node ntasks-per-core ntasks-per-socket hint open-mode network threads-per-core cpus-per-gpu
    comment qos gres-flags cpu-freq accel-bind tres-per-task signal slurmd-debug task-prolog task-epilog
    """,
    flags="""
    label:l unbuffered:u quiet:Q verbose:v overcommit:O oversubscribe:s disable-status:X preserve-env:E
    no-kill:k no-allocate:Z pty overlap exact contiguous use-min-nodes version:V help:h
    """,
    optional="kill-on-bad-exit:K exclusive immediate:I propagate x11",
)
_FORWARDED = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGQUIT, signal.SIGALRM)
_KILL_AFTER_S = 2.0
_AGAIN_S = 1.0
_PATTERN = re.compile(r"%(\d*)([a-zA-Z%])")


def run(argv: Sequence[str]) -> int:
    """Run the step and give srun's exit code."""
    options = parse("srun", _TABLE, argv)
    if options.has("version"):
        from tfjobtui import __version__

        print(f"tfjobtui {__version__} (local scheduler)")
        return 0
    if not options.rest:
        raise UsageError("No command given to execute.")
    base = _surroundings(options)
    count, cpus = _size(options, base)
    return _Step(options, base, count, cpus).run()


def _surroundings(options: Parsed) -> Mapping[str, str]:
    """The environment that the tasks begin with: that of the job's script, or made for an outside caller."""
    if options.has("jobid"):
        return _of_job(options.get("jobid"))
    if TOKEN_VARIABLE not in os.environ or "SLURM_JOB_ID" not in os.environ:
        raise UsageError(
            "there is no job here",
            "Within a job srun starts a step; from outside name the job by --jobid, or submit a script by sbatch.",
        )
    return os.environ


def _of_job(text: str) -> Mapping[str, str]:
    from tfjobtui.model.ids import JobId
    from tfjobtui.model.state import JobState
    from tfjobtui.schedulers.local import environment
    from tfjobtui.schedulers.local.machine import find_machine
    from tfjobtui.schedulers.local.place import default_place
    from tfjobtui.schedulers.local.store import Store

    place = default_place()
    store = Store(place)
    rows = [row for row in store.find(JobId.parse(text)) if row.state is JobState.RUNNING]
    if not rows:
        raise UsageError(f"Unable to confirm allocation for job {text}: Invalid job id specified")
    base = environment.exported("ALL", os.environ, {})
    memory = find_machine(store.settings()).memory_bytes
    return environment.batch_environment(rows[0], place, base, node_memory_bytes=memory)


def _size(options: Parsed, base: Mapping[str, str]) -> tuple[int, int | None]:
    """How many tasks, and how many CPUs each was asked for.

    Raises:
        UsageError: the job has too little for it.
    """
    cpus = _number(options, "cpus-per-task") or _plain(base.get("SRUN_CPUS_PER_TASK"))
    count = _number(options, "ntasks") or _number(options, "ntasks-per-node")
    if count is None and not options.has("jobid"):
        count = _plain(base.get("SLURM_NTASKS"))
    count = count or 1
    nodes = options.get("nodes", "1").partition("-")[0]
    if nodes.isdigit() and int(nodes) > 1:
        raise UsageError(_unable(base, "Requested node configuration is not available"))
    allowed = _plain(base.get("SLURM_CPUS_ON_NODE")) or 1
    if count * (cpus or 1) > allowed and not options.has("overcommit"):
        raise UsageError(_unable(base, "More processors requested than permitted"))
    return count, cpus


def _unable(base: Mapping[str, str], why: str) -> str:
    return f"Unable to create step for job {base.get('SLURM_JOB_ID')}: {why}"


def _number(options: Parsed, name: str) -> int | None:
    if not options.has(name):
        return None
    text = options.get(name)
    if not text.isdigit() or int(text) < 1:
        raise UsageError(f"invalid number for --{name}: {text!r}")
    return int(text)


def _plain(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None


@dataclass(slots=True)
class _Task:
    number: int
    process: subprocess.Popen[bytes]
    code: int | None = None


@dataclass(slots=True)
class _Step:
    """A step from its beginning to its end."""

    options: Parsed
    base: Mapping[str, str]
    count: int
    cpus: int | None
    number: int = 0
    tasks: list[_Task] = field(default_factory=list)
    kill_at: float | None = None
    interrupted_at: float = 0.0
    opened: dict[str, int] = field(default_factory=dict)

    def run(self) -> int:
        token = self.base[TOKEN_VARIABLE]
        title = self.options.get("job-name") or Path(self.options.rest[0]).name
        begin = {"do": "step_begin", "pid": os.getpid(), "title": title, "tasks": self.count}
        try:
            self.number = int(channel.ask(token, begin)["step"])
        except (NotReachableError, KeyError) as error:
            raise UsageError(_unable(self.base, f"the job's shepherd does not answer ({error})")) from error
        failure = self._start()
        if not failure:
            pids = [task.process.pid for task in self.tasks]
            _tell(token, {"do": "step_tasks", "step": self.number, "pids": pids})
            self._wait()
        code, number = self._result(failure)
        _tell(token, {"do": "step_end", "step": self.number, "exit_code": code, "signal": number})
        return 128 + number if number else code

    # -- starting ---------------------------------------------------------------------------

    def _start(self) -> int:
        """Start the tasks; the code of a command that cannot be run, else 0."""
        self._forward_signals()
        for number in range(self.count):
            try:
                self.tasks.append(_Task(number, self._popen(number)))
            except OSError as error:
                code = error.errno or 1
                sys.stderr.write(
                    f"slurmstepd: error: execve(): {self.options.rest[0]}: {error.strerror}\n"
                    f"srun: error: {host_name()}: task {number}: Exited with exit code {code}\n"
                )
                for task in self.tasks:
                    _send(task, signal.SIGKILL)
                return code
        return 0

    def _popen(self, number: int) -> subprocess.Popen[bytes]:
        env = step_environment(
            self._exported(), step=self.number, ntasks=self.count, task=number, cpus_per_task=self.cpus
        )
        argv = list(self.options.rest)
        if shutil.which(argv[0], path=env.get("PATH")) is not None:
            # Only the task itself knows its pid before it runs.
            argv = ["/bin/sh", "-c", 'SLURM_TASK_PID=$$ exec "$@"', "sh", *argv]
        stdout, stderr = self._output(number)
        return subprocess.Popen(
            argv,
            stdin=self._input(number),
            stdout=stdout,
            stderr=stderr,
            env=env,
            cwd=self.options.get("chdir") or None,
            start_new_session=not self.options.has("pty"),
        )

    def _exported(self) -> dict[str, str]:
        """The tasks' environment by `--export` (`ALL`, `NONE`, or variables); Slurm's own always pass."""
        words = self.options.get("export", "ALL").split(",")
        everything = words[0].upper() == "ALL"
        always = ("SLURM", "TFJOBTUI_LOCAL_", "CUDA_", "PATH", "HOME")
        kept = {name: value for name, value in self.base.items() if everything or name.startswith(always)}
        for word in words:
            name, equals, value = word.partition("=")
            if equals:
                kept[name] = value
            elif name in self.base:
                kept[name] = self.base[name]
        return kept

    def _input(self, number: int) -> int | None:
        text = self.options.get("input")
        if text and not text.isdigit() and text not in ("all", "none"):
            return os.open(self._path(text, number), os.O_RDONLY | os.O_CLOEXEC)
        gets_it = number == (int(text) if text.isdigit() else 0)
        return None if gets_it and text != "none" else subprocess.DEVNULL

    def _output(self, number: int) -> tuple[int | None, int | None]:
        """Descriptors for both outputs; `None` for our own."""
        output = self._file(self.options.get("output"), number)
        error = self._file(self.options.get("error"), number)
        error = output if error is None else error
        if self.options.has("label"):
            return (subprocess.PIPE if output is None else output), (
                subprocess.PIPE if error is None else error
            )
        return output, error

    def _file(self, pattern: str, number: int) -> int | None:
        if pattern in ("", "all") or (pattern.isdigit() and int(pattern) == number):
            return None
        if pattern == "none" or pattern.isdigit():
            return subprocess.DEVNULL
        path = self._path(pattern, number)
        if path not in self.opened:  # several tasks may write into one file
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            appends = self.options.get("open-mode", "t").startswith("a")
            self.opened[path] = os.open(path, flags if appends else flags | os.O_TRUNC, 0o666)
        return self.opened[path]

    def _path(self, pattern: str, number: int) -> str:
        """A file name of srun's: its patterns, and those of the step's tasks."""
        job = self.base.get("SLURM_JOB_ID", "")
        values = {
            "j": job,
            "J": f"{job}.{self.number}",
            "s": str(self.number),
            "t": str(number),
            "n": "0",
            "N": host_name(),
            "x": self.base.get("SLURM_JOB_NAME", ""),
            "A": self.base.get("SLURM_ARRAY_JOB_ID") or job,
            "a": self.base.get("SLURM_ARRAY_TASK_ID", "4294967294"),
            "u": self.base.get("SLURM_JOB_USER", ""),
            "%": "%",
        }

        def value(match: re.Match[str]) -> str:
            text = values.get(match[2], match[0])
            return text.zfill(min(int(match[1]), 10)) if match[1] and text.isdigit() else text

        return pattern.replace("\\", "") if "\\" in pattern else _PATTERN.sub(value, pattern)

    # -- waiting ----------------------------------------------------------------------------

    def _forward_signals(self) -> None:
        if self.options.has("pty"):
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, self._forward)
            return
        for number in _FORWARDED:
            signal.signal(number, self._forward)
        signal.signal(signal.SIGINT, self._interrupt)

    def _forward(self, number: int, _: FrameType | None) -> None:
        for task in self.tasks:
            if task.code is None:
                _send(task, number)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """At a terminal the first one tells what runs; a second one soon after goes to the tasks."""
        now = time.monotonic()
        if now - self.interrupted_at <= _AGAIN_S or not sys.stdin.isatty():
            self._forward(number, frame)
        else:
            running = sum(task.code is None for task in self.tasks)
            sys.stderr.write(f"srun: interrupt (one more within 1 sec to abort)\nsrun: {running} tasks run\n")
        self.interrupted_at = now

    def _wait(self) -> None:
        """Until all tasks have ended; labels what they say meanwhile."""
        with selectors.DefaultSelector() as selector:
            for task in self.tasks:
                for stream, target in ((task.process.stdout, sys.stdout), (task.process.stderr, sys.stderr)):
                    if stream is not None:
                        os.set_blocking(stream.fileno(), False)
                        selector.register(stream, selectors.EVENT_READ, (task.number, target, bytearray()))
            while any(task.code is None for task in self.tasks) or selector.get_map():
                if selector.get_map():
                    _pass_on(selector)
                else:
                    self._sleep()
                self._look()

    def _sleep(self) -> None:
        """Until a task ends, without a look in between where nothing else is due."""
        running = [task for task in self.tasks if task.code is None]
        if self.kill_at is None and len(running) == 1:
            running[0].process.wait()
        else:
            time.sleep(0.02)

    def _look(self) -> None:
        for task in self.tasks:
            if task.code is None and (code := task.process.poll()) is not None:
                task.code = code
                self._note_end(task, code)
        if self.kill_at is not None and time.monotonic() >= self.kill_at:
            self._forward(signal.SIGKILL, None)

    def _note_end(self, task: _Task, code: int) -> None:
        if code and not self.options.has("quiet"):
            sys.stderr.write(f"srun: error: {host_name()}: task {task.number}: {_words(code)}\n")
            sys.stderr.flush()
        wait = self.options.get("wait")
        if wait.isdigit() and int(wait) and self.kill_at is None:
            self.kill_at = time.monotonic() + int(wait)
        if code and self.options.has("kill-on-bad-exit") and self.options.get("kill-on-bad-exit", "1") != "0":
            self._forward(signal.SIGTERM, None)
            self.kill_at = time.monotonic() + _KILL_AFTER_S

    def _result(self, failure: int) -> tuple[int, int]:
        """The highest exit code, or the signal that ended a task."""
        if failure:
            return failure, 0
        codes = [task.code or 0 for task in self.tasks]
        plain, signals = max(codes), max((-code for code in codes if code < 0), default=0)
        return (0, signals) if signals and 128 + signals >= plain else (max(0, plain), 0)


def _pass_on(selector: selectors.BaseSelector) -> None:
    """Write what has come, each whole line with its task's number before it."""
    for key, _ in selector.select(0.1):
        number, target, pending = key.data
        stream: IO[bytes] = key.fileobj  # type: ignore[assignment]
        data = stream.read(65536)
        pending += data or b""
        *lines, rest = bytes(pending).split(b"\n")
        pending[:] = rest
        if not data:
            selector.unregister(stream)
            lines += [rest] if rest else []
        for line in lines:
            target.buffer.write(b"%d: %s\n" % (number, line))
        target.buffer.flush()


def _send(task: _Task, number: int) -> None:
    """To the task and what it has started, which share its session."""
    with contextlib.suppress(ProcessLookupError):
        if os.getpgid(task.process.pid) == task.process.pid:
            os.killpg(task.process.pid, number)
        else:
            os.kill(task.process.pid, number)


def _words(code: int) -> str:
    if code > 0:
        return f"Exited with exit code {code}"
    return signal.strsignal(-code) or f"Signal {-code}"


def _tell(token: str, message: Mapping[str, object]) -> None:
    # A job that is being ended may have no shepherd any more to hear it.
    with contextlib.suppress(NotReachableError):
        channel.ask(token, message, timeout_s=3.0)
