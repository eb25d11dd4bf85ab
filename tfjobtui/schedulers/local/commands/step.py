"""Running a step: its tasks, the signals for them, and what is said about their ends.

Words and order are those of srun 22.05 (`src/srun`, `src/plugins/launch/slurm`).
"""

from __future__ import annotations

import os
import selectors
import signal
import sys
import time
from collections.abc import Callable, Iterable

from tfjobtui.schedulers.local import channel
from tfjobtui.schedulers.local.commands.refusal import RefusalError
from tfjobtui.schedulers.local.commands.step_request import StepRequest
from tfjobtui.schedulers.local.commands.step_tasks import SIGNALS, Plan, Task, Tasks, start, task_words
from tfjobtui.schedulers.local.commands.step_terminal import Terminal, is_terminal
from tfjobtui.schedulers.local.commands.step_wiring import Wiring
from tfjobtui.schedulers.local.place import host_name

_AGAIN_S = 1.0
_AFTER_INTERRUPT_S = 0.3
_TOGETHER_S = 0.01
"""Tasks that end within this time are told of in one line."""
_DRAIN_S = 2.0
_ABORT_EXTRA_S = 2
"""Slurm's STEP_ABORT_TIME, which is part of a message."""


class Step:
    """A step from its start to its end."""

    def __init__(self, request: StepRequest, kill_wait_s: Callable[[], float]) -> None:
        """`kill_wait_s` (seconds from TERM to KILL) is asked for only when it is needed: the store has it."""
        self._request = request
        self._kill_wait_s = kill_wait_s
        self._tasks = Tasks()
        self._selector = selectors.SelectSelector()
        self._wiring = Wiring(request, self._selector)
        self._terminal: Terminal | None = None
        self._signals: list[int] = []
        self._due: dict[str, tuple[float, Callable[[], None]]] = {}
        self._interrupted_at = -_AGAIN_S
        self._is_silenced = False
        self._is_forced = False

    @property
    def usage(self) -> dict[str, float]:
        """What the tasks have used, by the names of `records.Usage`."""
        return self._tasks.usage

    # -- from the start to the end ----------------------------------------------------------

    def run(self) -> tuple[int, int]:
        """Start the tasks and wait for them; the exit code and the signal of the step.

        Raises:
            RefusalError: a file cannot be opened.
        """
        self._listen()
        try:
            self._start()
            while self._tasks.running:
                self._turn()
            self._tasks.kill_leftovers()
            self._drain()
        finally:
            if self._terminal is not None:
                self._terminal.end()
        self._tell_of_force()
        return self._tasks.result()

    def _listen(self) -> None:
        reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        self._selector.register(reading, selectors.EVENT_READ, lambda: os.read(reading, 4096))
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in SIGNALS:
            signal.signal(number, lambda number, _: self._signals.append(number))

    def _turn(self) -> None:
        """One round: wait for something, and act on it."""
        due = [moment for moment, _ in self._due.values()]
        patience_s = max(0.0, min(due) - time.monotonic()) if due else None
        for key, _ in self._selector.select(patience_s):
            key.data()
        while self._signals:
            self._act_on(self._signals.pop(0))
        self._note_ends()
        for name, (moment, action) in list(self._due.items()):
            if time.monotonic() >= moment:
                del self._due[name]
                action()

    def _drain(self) -> None:
        """Pass on what the tasks have written last."""
        self._wiring.end()
        end = time.monotonic() + _DRAIN_S
        if self._terminal is not None:
            self._terminal.stop_keys()
        while len(self._selector.get_map()) > 1 and (left_s := end - time.monotonic()) > 0:
            for key, _ in self._selector.select(left_s):
                key.data()

    def _start(self) -> None:
        if self._request.wants_terminal and self._may_have_terminal():
            self._terminal = Terminal(self._selector)
        for number in range(self._request.task_count):
            self._tasks.tasks.append(self._start_one(number))
        pids = [task.pid for task in self._tasks.tasks]
        tell(self._request.token, {"do": "step_tasks", "step": self._request.number, "pids": pids})
        self._wiring.begin()
        if self._terminal is not None:
            self._terminal.begin()
        if self._request.time_limit_s is not None:
            self._at(self._request.time_limit_s, "limit", self._over_time)

    def _start_one(self, number: int) -> Task:
        has_terminal = number == 0 and self._terminal is not None
        try:
            if self._terminal is not None and has_terminal:
                streams = (self._terminal.slave,) * 3
            else:
                streams = self._wiring.streams_of(number)
        except RefusalError:
            self._tasks.send(signal.SIGKILL)
            raise
        request = self._request
        environment = request.environment_of(number)
        plan = Plan(request.argv, environment, request.folder, *streams, request.cpus, has_terminal)
        task = start(number, plan)
        self._wiring.started()
        return task

    def _may_have_terminal(self) -> bool:
        if is_terminal():
            return True
        self._error("ioctl(TIOCGWINSZ): Inappropriate ioctl for device")
        self._error("Not using a pseudo-terminal, disregarding --pty option")
        return False

    def _at(self, after_s: float, name: str, action: Callable[[], None]) -> None:
        self._due.setdefault(name, (time.monotonic() + after_s, action))

    # -- signals ----------------------------------------------------------------------------

    def _act_on(self, number: int) -> None:
        if number == signal.SIGINT:
            self._interrupt()
        elif number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            if number == signal.SIGQUIT:
                self._info("Quit")
            self._force()
        elif number == signal.SIGCONT:
            self._info("got SIGCONT")
        else:
            self._tasks.send(number)

    def _interrupt(self) -> None:
        """The first one tells what runs; a second one soon after is for the tasks, and ends them."""
        now = time.monotonic()
        if now - self._interrupted_at < _AGAIN_S:
            self._info(f"sending Ctrl-C to StepId={self._request.name}")
            self._tasks.send(signal.SIGINT)
            self._info("forcing job termination")
            self._is_silenced = self._is_forced = True
            self._abort()
            self._at(_AFTER_INTERRUPT_S, "kill", lambda: self._tasks.send(signal.SIGKILL))
            return
        self._interrupted_at = now
        if self._request.interrupts_at_once:
            self._info(f"sending Ctrl-C to StepId={self._request.name}")
            self._tasks.send(signal.SIGINT)
        elif not self._is_silenced:
            self._info("interrupt (one more within 1 sec to abort)")
            self._tell_states()

    def _force(self) -> None:
        """End the tasks at once; but those of a job that is being ended have got TERM themselves."""
        self._info("forcing job termination")
        self._is_forced = True
        if not _is_job_ending(self._request.token):
            self._abort()
            self._tasks.send(signal.SIGKILL)

    def _abort(self) -> None:
        wait_s = int(self._kill_wait_s()) + _ABORT_EXTRA_S
        self._info(f"Job step aborted: Waiting up to {wait_s} seconds for job step to finish.")
        self._say_cancelled()

    def _terminate(self) -> None:
        """TERM, and KILL after a wait."""
        self._tasks.send(signal.SIGCONT)
        self._tasks.send(signal.SIGTERM)
        self._at(self._kill_wait_s(), "kill", lambda: self._tasks.send(signal.SIGKILL))

    def _over_time(self) -> None:
        self._say_cancelled(" DUE TO TIME LIMIT")
        self._terminate()

    # -- ends -------------------------------------------------------------------------------

    def _note_ends(self) -> None:
        ended = self._tasks.reap()
        if not ended:
            return
        if self._tasks.running:  # most tasks of a step end together
            time.sleep(_TOGETHER_S)
            ended += self._tasks.reap()
        for words, tasks in _by_words(ended).items():
            if words and not self._is_silenced:
                self._error(f"{host_name()}: {task_words(task.number for task in tasks)}: {words}")
        if self._request.kill_on_bad_exit and any(task.is_bad for task in ended) and self._tasks.running:
            self._kill_after_bad_exit()
        if self._request.wait_s and self._tasks.running:
            self._at(self._request.wait_s, "wait", self._waited_enough)

    def _kill_after_bad_exit(self) -> None:
        if "kill" not in self._due:
            self._info(f"launch/slurm: _step_signal: Terminating StepId={self._request.name}")
            self._say_cancelled()
            self._terminate()

    def _waited_enough(self) -> None:
        self._info(f"First task exited {self._request.wait_s:.0f}s ago")
        self._tell_states()
        self._info(f"launch/slurm: _step_signal: Terminating StepId={self._request.name}")
        self._is_forced = True
        self._abort()
        self._tasks.send(signal.SIGKILL)

    def _tell_of_force(self) -> None:
        ends = [task.status or 0 for task in self._tasks.tasks]
        killed = any(
            os.WIFSIGNALED(end) and os.WTERMSIG(end) in (signal.SIGTERM, signal.SIGKILL) for end in ends
        )
        if killed and not self._is_forced:
            self._info(f"Force Terminated StepId={self._request.name}")

    def _tell_states(self) -> None:
        for words, tasks in (
            ("running", self._tasks.running),
            ("exited", [task for task in self._tasks.tasks if task.status == 0]),
            ("exited abnormally", [task for task in self._tasks.tasks if task.is_bad]),
        ):
            if tasks:
                self._info(
                    f"StepId={self._request.name} {task_words(task.number for task in tasks)}: {words}"
                )

    # -- words ------------------------------------------------------------------------------

    def _info(self, words: str) -> None:
        if not self._request.is_quiet:
            _write(f"srun: {words}")

    def _error(self, words: str) -> None:
        _write(f"srun: error: {words}")

    def _say_cancelled(self, why: str = "") -> None:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S")
        _write(
            f"slurmstepd: error: *** STEP {self._request.name} ON {host_name()} CANCELLED AT {moment}{why} ***"
        )


def _write(words: str) -> None:
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()


def _by_words(ended: Iterable[Task]) -> dict[str, list[Task]]:
    """The tasks by what is to be said of their ends."""
    found: dict[str, list[Task]] = {}
    for task in ended:
        found.setdefault(_words(task.status or 0), []).append(task)
    return found


def _words(status: int) -> str:
    if os.WIFSIGNALED(status):
        core = " (core dumped)" if os.WCOREDUMP(status) else ""
        return f"{signal.strsignal(os.WTERMSIG(status)) or 'Unknown signal'}{core}"
    code = os.WEXITSTATUS(status)
    return f"Exited with exit code {code}" if code else ""


def _is_job_ending(token: str) -> bool:
    """Whether the job's shepherd ends it; one that does not answer is at its own end."""
    try:
        return bool(channel.ask(token, {"do": "ping"}, timeout_s=3.0).get("ending"))
    except channel.NotReachableError:
        return True


def tell(token: str, message: dict[str, object]) -> None:
    """Tell the shepherd, if it is still there to hear it."""
    try:
        channel.ask(token, message, timeout_s=3.0)
    except channel.NotReachableError:
        return
