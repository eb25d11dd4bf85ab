"""Processes that work through a list of tasks for `tfjob-preprocess`. What they are told: see `shards`."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tfjob_trainer.errors import TrainerError

Task = Mapping[str, Any]
TICK_S = 0.2
END_S = 5.0


class Workers:
    """`count` processes; a context manager that ends them."""

    def __init__(self, count: int, begin: Mapping[str, Any]) -> None:
        self._events: queue.Queue[tuple[Task, dict[str, Any]]] = queue.Queue()
        self._threads: list[threading.Thread] = []
        self._processes = [_Process(begin) for _ in range(count)]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes:
            process.end(at_once=error is not None)
        for thread in self._threads:
            thread.join()
        for process in self._processes:
            process.close()

    def results(
        self, tasks: Sequence[Task], tick: Callable[[int], None]
    ) -> Iterator[tuple[Task, dict[str, Any]]]:
        """Each task with its result, as they come; `tick` is called now and then with the images since.

        Raises TrainerError where a task fails or a process dies.
        """
        waiting: queue.SimpleQueue[Task] = queue.SimpleQueue()
        for task in tasks:
            waiting.put(task)
        self._threads = [
            threading.Thread(target=self._serve, args=(process, waiting), daemon=True)
            for process in self._processes
        ]
        for thread in self._threads:
            thread.start()
        left = len(tasks)
        while left:
            try:
                task, message = self._events.get(timeout=TICK_S)
            except queue.Empty:
                tick(0)
                continue
            tick(message.get("done", 0))
            if "failed" in message:
                raise TrainerError(message["failed"])
            if "end" in message:
                left -= 1
                yield task, message["end"]

    def _serve(self, process: "_Process", waiting: queue.SimpleQueue[Task]) -> None:
        """Feed one process, in a thread of its own."""
        task: Task = {}
        try:
            while True:
                task = waiting.get_nowait()
                for message in process.do(task):
                    self._events.put((task, message))
        except queue.Empty:
            pass
        except (OSError, ValueError):
            self._events.put((task, {"failed": process.why_ended()}))


class _Process:
    """One of them. Its stderr is kept for the case that it dies."""

    def __init__(self, begin: Mapping[str, Any]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `close`
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).parent), "preprocess-worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={"TF_CPP_MIN_LOG_LEVEL": "2", **os.environ},
        )
        self._next: Mapping[str, Any] | None = begin

    def do(self, task: Task) -> Iterator[dict[str, Any]]:
        """What it says about a task, up to the task's end. Raises OSError when it is dead."""
        assert self._process.stdin
        assert self._process.stdout
        if self._next is not None:
            self._process.stdin.write(f"{json.dumps(self._next)}\n")
            self._next = None
        self._process.stdin.write(f"{json.dumps(task)}\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            message = json.loads(line)
            yield message
            if "done" not in message:
                return
        raise BrokenPipeError

    def end(self, *, at_once: bool) -> None:
        """Let it come to its end, or make it."""
        if at_once:
            self._process.terminate()
        assert self._process.stdin
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def close(self) -> None:
        """Free what is left, after its end."""
        assert self._process.stdout
        self._process.stdout.close()
        self._errors.close()

    def why_ended(self) -> str:
        """In words, with what it wrote last."""
        code = self._process.wait()
        if code == -signal.SIGKILL:
            return (
                "a worker process was killed (SIGKILL), most likely because the memory was used up: take fewer "
                "--workers or ask for more memory (sbatch --mem), and run the same again; finished shards are kept"
            )
        self._errors.seek(0)
        last = self._errors.read().decode(errors="replace").strip().splitlines()[-8:]
        ended = f"by {signal.Signals(-code).name}" if code < 0 else f"with code {code}"
        return f"a worker process ended {ended}:\n" + "\n".join(last)
