"""Queues to try the embedded scheduler on, and jobs for them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from tfjobtui.model.ids import JobId, TaskSet
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local.identity import ProcessIdentity
from tfjobtui.schedulers.local.machine import GpuDevice, Machine
from tfjobtui.schedulers.local.place import FOLDER_VARIABLE, Place
from tfjobtui.schedulers.local.records import Allocation, JobRecord
from tfjobtui.schedulers.local.request import JobRequest
from tfjobtui.schedulers.local.store import Store

ROOT = Path(__file__).parents[3]
MACHINE = Machine((0, 1, 2, 3), 8 << 30, tuple(GpuDevice(n, f"GPU-{n}", "nvidia_a100") for n in range(2)))
NOW_S = 1_000_000.0
Value = TypeVar("Value")


def request(folder: Path | str = "/tmp", **values: Any) -> JobRequest:
    """What a job asks for: one CPU and nothing else."""
    return JobRequest(**{"name": "job", "command": "/x/job.sh", "work_dir": str(folder), **values})


def submit(store: Store, body: str = "true", now_s: float | None = None, **values: Any) -> JobRecord:
    """Submit a script that writes its log beside the queue."""
    folder = store.place.folder.parent
    values = {"stdout": str(folder / "%A_%a.log" if "array" in values else folder / "%j.log"), **values}
    script = f"#!/bin/sh\n{body}\n".encode()
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    return store.submit(
        request(folder, **values), script, environment, time.time() if now_s is None else now_s
    )


def array(*ranges: tuple[int, int], throttle: int | None = None) -> TaskSet:
    return TaskSet(tuple((first, last, 1) for first, last in ranges), throttle)


def waiting(number: int, **values: Any) -> JobRecord:
    """A row that waits. What is no field of a record is one of its request."""
    own = {name: values.pop(name) for name in list(values) if name in JobRecord.__slots__}
    asked: JobRequest = own.pop("request", None) or request(**values)
    return JobRecord(
        **{
            "id": number,
            "request": asked,
            "state": JobState.PENDING,
            "reason": "None",
            "submit_s": NOW_S - 1000 + number,
            "eligible_s": 0.0,
            "time_limit_s": asked.time_limit_s,
            "dependency": asked.dependency,
            **own,
        }
    )


def running(number: int, allocation: Allocation, **values: Any) -> JobRecord:
    """A row that runs."""
    return waiting(
        number,
        **{"state": JobState.RUNNING, "start_s": NOW_S, "allocation": allocation, "token": "t", **values},
    )


def until(look: Callable[[], Value], patience_s: float = 30.0) -> Value:
    """What it gives once that is something."""
    end = time.monotonic() + patience_s
    while not (found := look()):
        assert time.monotonic() < end, f"not within {patience_s:.0f} s"
        time.sleep(0.02)
    return found


def ended(store: Store, job: int, patience_s: float = 30.0) -> tuple[JobRecord, ...]:
    """The rows of a job once all have ended."""

    def look() -> tuple[JobRecord, ...]:
        found = store.find(JobId(job))
        return found if found and all(row.state.is_terminal for row in found) else ()

    return until(look, patience_s)


def python(*words: str, **settings: Any) -> subprocess.Popen[str]:
    """Another Python with the program, as a process of its own; it ends with the test."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), **settings.pop("env", {})}
    return subprocess.Popen(
        (sys.executable, *words), env=env, text=True, stdout=subprocess.PIPE, cwd=ROOT, **settings
    )


def dead_process() -> ProcessIdentity:
    """A process that is gone."""
    with subprocess.Popen(("sleep", "60")) as child:
        identity = ProcessIdentity.of(child.pid)
        child.kill()
    assert identity is not None
    return identity


def own_process() -> ProcessIdentity:
    identity = ProcessIdentity.of(os.getpid())
    assert identity is not None
    return identity


def clean_up(place: Place) -> None:
    """End what a queue has running."""
    if not place.database.exists():
        return
    mark = f"{FOLDER_VARIABLE}={place.folder}".encode()
    for _ in range(50):
        found = [pid for pid in _pids() if mark in _environ(pid).split(b"\0")]
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            return
        time.sleep(0.02)


def _pids() -> Sequence[int]:
    found = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
    return [pid for pid in found if pid != os.getpid()]


def _environ(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""
