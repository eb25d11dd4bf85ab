"""One of the two schedulers, as the tests use it."""

from __future__ import annotations

import asyncio
import getpass
import os
import subprocess
import time
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

from tfjobtui.model.ids import JobId
from tfjobtui.model.job import Job
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local import channel
from tfjobtui.schedulers.local.client import LocalScheduler
from tfjobtui.schedulers.local.place import FOLDER_VARIABLE
from tfjobtui.schedulers.local.store import Store
from tfjobtui.schedulers.scheduler import (
    ActionResult,
    EndedJob,
    JobDetails,
    Scheduler,
    StepUsage,
    SubmitRequest,
    Target,
)
from tfjobtui.schedulers.slurm.client import SlurmScheduler

Value = TypeVar("Value")
PATIENCE_S = 60.0
KILL_WAIT_S = 5.0
"""Of the test cluster, and of the local scheduler in these tests."""
_LOOK_S = 0.1


class Side:
    """A scheduler and a folder. `options` are what a job on the cluster has to ask for besides.

    `early` are jobs that were submitted before all tests, since they take long on the cluster.
    """

    def __init__(
        self, scheduler: LocalScheduler | SlurmScheduler, folder: Path, options: tuple[str, ...] = ()
    ) -> None:
        self.scheduler: Scheduler = scheduler
        self.local = scheduler if isinstance(scheduler, LocalScheduler) else None
        self.folder = folder
        self.options = options
        self.early: dict[str, JobId] = {}
        self._runner = asyncio.Runner()
        self._taken: list[JobId] = []
        self._count = 0

    @property
    def is_local(self) -> bool:
        return self.local is not None

    def run(self, call: Coroutine[Any, Any, Value]) -> Value:
        """The answer to one question."""
        return self._runner.run(call)

    # ---- Submitting

    def submit(
        self,
        body: str,
        *options: str,
        arguments: tuple[str, ...] = (),
        head: str = "",
        interpreter: str = "/bin/bash",
        environment: Mapping[str, str] | None = None,
    ) -> JobId:
        """Submit a script of these lines."""
        self._count += 1
        script = self.folder / f"script-{self._count}.sh"
        script.write_text(f"#!{interpreter}\n{head}{body}\n")
        return self.submit_file(script, *options, arguments=arguments, environment=environment)

    def submit_file(
        self,
        script: Path,
        *options: str,
        arguments: tuple[str, ...] = (),
        environment: Mapping[str, str] | None = None,
    ) -> JobId:
        request = SubmitRequest(
            str(script), (*self.options, *options), arguments, str(self.folder), environment or {}
        )
        job = self.run(self.scheduler.submit(request)).id
        self._taken.append(job)
        return job

    def command(
        self, *argv: str, text: str = "", folder: Path | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run one of the scheduler's commands, as a user at a prompt does who has them on the PATH."""
        environment = dict(os.environ)
        if self.local is not None:
            environment["PATH"] = f"{self.local.place.bin}:{environment['PATH']}"
            environment[FOLDER_VARIABLE] = str(self.local.place.folder)
        done = subprocess.run(
            argv,
            input=text,
            cwd=folder or self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert not check or done.returncode == 0, done
        return done

    def sbatch(self, *words: str, text: str = "", folder: Path | None = None) -> JobId:
        """Submit by the command."""
        done = self.command("sbatch", "--parsable", *self.options, *words, text=text, folder=folder)
        job = JobId.parse(done.stdout.strip())
        self._taken.append(job)
        return job

    # ---- Looking

    def rows(self, job: JobId) -> list[Job]:
        """The rows of a job or an array."""
        answer = self.run(self.scheduler.jobs())
        assert answer.problems == ()
        return [row for row in answer.jobs if row.id.job == job.job]

    def until(
        self, job: JobId, holds: Callable[[list[Job]], bool], patience_s: float = PATIENCE_S
    ) -> list[Job]:
        """The rows once a condition holds for them."""
        end = time.monotonic() + patience_s
        while not holds(rows := self.rows(job)):
            assert time.monotonic() < end, rows
            time.sleep(_LOOK_S)
        return rows

    def running(self, job: JobId) -> Job:
        rows = self.until(job, lambda rows: any(row.state is JobState.RUNNING for row in rows))
        return next(row for row in rows if row.state is JobState.RUNNING)

    def waiting(self, job: JobId, reason: str) -> Job:
        """The row once it waits for that reason."""
        rows = self.until(
            job,
            lambda rows: any(row.state is JobState.PENDING and row.reason.startswith(reason) for row in rows),
        )
        return next(row for row in rows if row.reason.startswith(reason))

    def ended(self, job: JobId, patience_s: float = PATIENCE_S) -> list[Job]:
        """The rows once all of them have ended."""
        return self.until(
            job, lambda rows: bool(rows) and all(row.state.is_terminal for row in rows), patience_s
        )

    def end(self, job: JobId, patience_s: float = PATIENCE_S) -> Job:
        """The row of a job that has ended."""
        (row,) = self.ended(job, patience_s)
        return row

    def accounted(self, job: JobId | str) -> EndedJob:
        """How it ended as accounting has it, which may come later.

        Where the end is written before the start, slurmdbd first has a row of root's called "allocation".
        """
        end = time.monotonic() + PATIENCE_S
        while True:
            found = self.run(self.scheduler.ended([target(job)]))
            if found and found[0].user == getpass.getuser():
                return found[0]
            assert time.monotonic() < end, found
            time.sleep(_LOOK_S)

    def details(self, job: JobId) -> JobDetails:
        found = self.run(self.scheduler.details(target(job)))
        assert found is not None
        return found

    def wait_for(self, name: str, text: str = "", patience_s: float = PATIENCE_S) -> str:
        """The content of a file in the folder once the text is in it."""
        path = self.folder / name
        end = time.monotonic() + patience_s
        while True:
            found = path.read_text(errors="replace") if path.exists() else ""
            if path.exists() and text in found:
                return found
            assert time.monotonic() < end, f"{path}: {found!r}"
            time.sleep(_LOOK_S)

    def wait_until_still(self, name: str) -> None:
        """Until a file that a job writes every 0.1 s has not changed for some looks."""
        end, same, before = time.monotonic() + PATIENCE_S, 0, -1
        while same < 6:
            assert time.monotonic() < end, f"{name} goes on"
            size = (self.folder / name).stat().st_size
            same, before = (same + 1 if size == before else 0), size
            time.sleep(_LOOK_S)

    def wait_until_changed(self, name: str) -> None:
        """Until a file has become larger."""
        end, before = time.monotonic() + PATIENCE_S, (self.folder / name).stat().st_size
        while (self.folder / name).stat().st_size == before:
            assert time.monotonic() < end, f"{name} does not go on"
            time.sleep(_LOOK_S)

    def step_usage(self, job: JobId, step: str) -> dict[str, StepUsage]:
        """What the steps of a running job use, once that step is among them."""
        end = time.monotonic() + PATIENCE_S
        while True:
            found = {item.step: item for item in self.run(self.scheduler.step_usage(target(job)))}
            if step in found:
                return found
            assert time.monotonic() < end, found
            time.sleep(_LOOK_S)

    # ---- Acting

    def act(self, action: str, job: JobId | str, **more: Any) -> ActionResult:
        """Do something to one job."""
        whom = target(job, pending_only=more.pop("pending_only", False))
        (result,) = self.run(getattr(self.scheduler, action)([whom], **more))
        assert isinstance(result, ActionResult)
        return result

    def update(self, job: JobId | str, **changes: str) -> ActionResult:
        return self.run(self.scheduler.update(target(job), changes))

    def start_now(self, job: JobId) -> None:
        """After a requeue Slurm lets a job wait for two minutes; this machine does not."""
        if self.is_local:
            return
        waiting = self.waiting(job, "BeginTime")
        end = time.monotonic() + 10
        # slurmd refuses a start in the second of the end: its credential is revoked.
        while time.monotonic() < end and time.time() - (waiting.submit_time_s or 0) < 3:
            time.sleep(_LOOK_S)
        assert self.update(waiting.id, StartTime="now").ok

    def let_time_pass(self, job: JobId, limit_s: float) -> None:
        """Let the limit of a running job be so many seconds from its start, where that can be had.

        Limits are whole minutes. On the cluster the minute passes while other tests run.
        """
        if self.local is None:
            return
        store = Store(self.local.place)
        record = store.get(self.running(job).raw_id or job.job)
        store.close()
        assert record is not None
        channel.ask(record.token, {"do": "time_limit", "seconds": limit_s})

    def tidy(self, since: int = 0) -> None:
        """Cancel what is left of the jobs that were submitted after so many others."""
        left = [target(job) for job in self._taken[since:]]
        del self._taken[since:]
        if left:
            self.run(self.scheduler.cancel(left))

    @property
    def job_count(self) -> int:
        """How many were submitted and not tidied away."""
        return len(self._taken)

    def close(self) -> None:
        """Cancel what is left."""
        self.tidy()
        self.run(self.scheduler.close())
        self._runner.close()


def target(job: JobId | str, *, pending_only: bool = False) -> Target:
    """A job, or `12_3`, or `12_[3-5]`."""
    job_id = JobId.parse(job) if isinstance(job, str) else job
    return Target(job_id, None, "", "", None, pending_only)
