"""The parent of a job's script, for as long as the job runs.

    python -m tfjobtui.schedulers.local.shepherd FOLDER RAW_ID TOKEN

It takes the job over, starts the script, waits for its end while it keeps the limits and answers requests,
ends what the job has left, writes the end, and makes a pass. TERM means that the machine goes down.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tfjobtui.errors import StoreError
from tfjobtui.model.job import ExitCode
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local import job_process, leftovers, rows
from tfjobtui.schedulers.local.channel import Listener
from tfjobtui.schedulers.local.identity import ProcessIdentity
from tfjobtui.schedulers.local.job_process import NotStartedError, Streams
from tfjobtui.schedulers.local.journal import Journal
from tfjobtui.schedulers.local.machine import find_machine
from tfjobtui.schedulers.local.place import Place, host_name
from tfjobtui.schedulers.local.records import Ending, JobRecord, StepRecord
from tfjobtui.schedulers.local.steps import Steps
from tfjobtui.schedulers.local.store import Store
from tfjobtui.schedulers.local.usage import Sampler, kernel_oom_kills, proportional_memory, tree

_PR_SET_CHILD_SUBREAPER = 36
_OUT_OF_MEMORY = ExitCode(0, 125)
_GPU_SAMPLE_S = 5.0
_RETRIES_S = (0.2, 1.0, 2.0, 5.0)
_WORDS = {
    JobState.TIMEOUT: "DUE TO TIME LIMIT",
    JobState.REQUEUED: "DUE TO JOB REQUEUE",
    JobState.NODE_FAIL: "DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS",
    JobState.CANCELLED: "",
}


def main(argv: list[str]) -> int:
    """Look after one start of a job from its beginning to its end."""
    folder, raw_id, token = Path(argv[0]), int(argv[1]), argv[2]
    # The script's orphans become this process' children, so that none of them is lost.
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    place = Place(folder)
    store = Store(place)
    path = place.journal(raw_id, token)
    listener = Listener(token)
    journal = Journal(path)
    identity = ProcessIdentity.of(os.getpid())
    assert identity is not None
    record = store.take_over(raw_id, token, identity, time.time())
    if record is None:  # the start was planned anew, or the job was cancelled
        journal.close()
        path.unlink(missing_ok=True)
        return 0
    ending = Shepherd(place, store, listener, journal, record).look_after()
    _keep(store, raw_id, token, ending)
    path.unlink(missing_ok=True)
    listener.close()
    from tfjobtui.schedulers.local.dispatch import make_pass

    with contextlib.suppress(StoreError):
        make_pass(place, store)
    return 0


def _keep(store: Store, raw_id: int, token: str, ending: Ending) -> None:
    """Write the end, however long the disk is full. The journal has it already, should this process be killed."""
    tries = 0
    while store.place.folder.is_dir():
        try:
            store.finish(raw_id, token, ending)
            return
        except StoreError:
            time.sleep(_RETRIES_S[min(tries, len(_RETRIES_S) - 1)])
            tries += 1


class Shepherd:
    """One start of a job."""

    def __init__(
        self, place: Place, store: Store, listener: Listener, journal: Journal, record: JobRecord
    ) -> None:
        assert record.shepherd is not None
        self._identity = record.shepherd
        self._place = place
        self._store = store
        self._listener = listener
        self._journal = journal
        self._record = record
        self._settings = store.settings()
        self._limit_s = record.time_limit_s
        held = record.allocation
        self._steps = Steps(held.cpus, held.gpus) if held is not None else Steps()
        self._sampler = Sampler(held.gpus if held is not None else ())
        self._script: subprocess.Popen[bytes] | None = None
        self._streams: Streams | None = None
        self._exit_code: ExitCode | None = None
        self._why: JobState | None = None
        """Why it is being ended; REQUEUED where a requeue was asked for."""
        self._by_uid: int | None = None
        self._hold = False
        self._warned = False
        self._out_of_memory = False
        self._started_at = time.monotonic()
        self._kill_at: float | None = None
        self._next_sample = 0.0
        self._next_gpu_sample = 0.0
        self._oom_kills = kernel_oom_kills()
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    # -- from the beginning to the end ------------------------------------------------------

    def look_after(self) -> Ending:
        """Run the script to its end, and end everything that it has left."""
        self._listen_to_signals()
        try:
            self._streams = job_process.open_streams(self._record)
            memory = find_machine(self._settings).memory_bytes
            # Before the start: a script that ran and ended unnoticed would else be started again.
            self._journal.set_started(self._identity)
            self._script = job_process.start(self._record, self._place, self._streams, memory)
        except NotStartedError as error:
            if self._streams is not None:
                self._streams.say(str(error))
            return self._close(self._ending(error.exit_code, started=False))
        identity = ProcessIdentity.of(self._script.pid)
        if identity is not None:
            self._journal.set_started(identity)
        while not self._is_over():
            self._wait()
            self._reap()
            self._keep_limits()
        leftovers.end_all(self._record.token, (os.getpid(),), reap=True)
        self._sampler.sample()
        assert self._exit_code is not None
        return self._close(self._ending(self._exit_code))

    def _close(self, ending: Ending) -> Ending:
        self._journal.set_ending(ending)
        if self._streams is not None:
            self._streams.close()
        self._journal.close()
        return ending

    def _is_over(self) -> bool:
        """The script has ended; of a job that is being ended also everything else, or its time to do so is over."""
        if self._exit_code is None:
            return False
        if self._kill_at is None or time.monotonic() >= self._kill_at:
            return True
        return not leftovers.processes_of(self._record.token, (os.getpid(),))

    def _ending(self, exit_code: ExitCode, *, started: bool = True) -> Ending:
        state, code, reason = self._verdict(exit_code)
        again = self._why is JobState.REQUEUED or (
            self._why is JobState.NODE_FAIL and self._record.request.requeue is True
        )
        return Ending(
            state=state,
            exit_code=code,
            end_s=time.time(),
            reason=reason if started else "JobLaunchFailure",
            cancelled_by_uid=self._by_uid if state is JobState.CANCELLED else None,
            back_to_queue=again,
            hold=again and self._hold,
            usage=self._sampler.usage,
            steps=self._step_records(exit_code, state),
        )

    def _verdict(self, exit_code: ExitCode) -> tuple[JobState, ExitCode, str]:
        """State, exit code and reason, as Slurm gives them: what was ended by the scheduler has 0:0."""
        if self._out_of_memory or self._was_killed_by_kernel(exit_code):
            return JobState.OUT_OF_MEMORY, _OUT_OF_MEMORY, "OutOfMemory"
        if self._why is JobState.TIMEOUT:
            return JobState.TIMEOUT, ExitCode(0), "TimeLimit"
        if self._why is not None:
            return self._why, ExitCode(0), "NodeDown" if self._why is JobState.NODE_FAIL else ""
        if exit_code == ExitCode(0):
            return JobState.COMPLETED, exit_code, ""
        reason = f"RaisedSignal:{exit_code.signal}" if exit_code.signal else "NonZeroExitCode"
        return JobState.FAILED, exit_code, reason

    def _was_killed_by_kernel(self, exit_code: ExitCode) -> bool:
        """Something of it was killed, and the kernel has killed for want of memory meanwhile."""
        was_killed = exit_code.signal == signal.SIGKILL or exit_code.code == 128 + signal.SIGKILL
        now = kernel_oom_kills()
        grew = now is not None and self._oom_kills is not None and now > self._oom_kills
        return was_killed and self._why is None and grew

    def _step_records(self, exit_code: ExitCode, state: JobState) -> tuple[StepRecord, ...]:
        self._steps.notice_dead()
        batch = StepRecord(
            name="batch",
            title="batch",
            tasks=1,
            start_s=self._record.start_s or time.time(),
            end_s=time.time(),
            state=JobState.CANCELLED if exit_code.signal and state is not JobState.OUT_OF_MEMORY else state,
            exit_code=exit_code,
            usage=self._sampler.usage,
        )
        return (batch, *self._steps.records())

    # -- waiting ----------------------------------------------------------------------------

    def _listen_to_signals(self) -> None:
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: self._end(JobState.NODE_FAIL))
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)

    def _wait(self) -> None:
        """Until something happens, or is due."""
        sources: list[Any] = [*self._listener.sockets(), self._wake_read]
        with contextlib.suppress(InterruptedError):
            ready, _, _ = select.select(sources, [], [], self._patience())
            if self._wake_read in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake_read, 4096)
        self._listener.serve(self._answer)

    def _patience(self) -> float:
        """Seconds until the next thing is due."""
        now = time.monotonic()
        due = [self._next_sample]
        if self._kill_at is not None:
            # Its last processes tell nobody of their ends, once they are not our children.
            due.append(now + 0.1)
        if self._why is None:
            left = self._started_at + self._limit_s
            warning = self._record.request.signal
            due.append(left)
            if warning is not None and not self._warned:
                due.append(left - warning.before_s)
        return max(0.0, min(due) - now)

    def _reap(self) -> None:
        """Take the ends of our children: the script's, and those of orphans."""
        assert self._script is not None
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self._script.pid:
                    code = os.waitstatus_to_exitcode(status)
                    self._script.returncode = code
                    self._exit_code = ExitCode(code) if code >= 0 else ExitCode(0, -code)

    # -- limits -----------------------------------------------------------------------------

    def _keep_limits(self) -> None:
        now = time.monotonic()
        if now >= self._next_sample:
            self._sample(now)
        if self._why is None:
            used = now - self._started_at
            warning = self._record.request.signal
            if warning is not None and not self._warned and used >= self._limit_s - warning.before_s:
                self._warned = True
                self._signal(warning.number, "batch" if warning.to_batch else "steps")
            if used >= self._limit_s:
                self._end(JobState.TIMEOUT)
        if self._kill_at is not None and now >= self._kill_at:
            leftovers.end_all(self._record.token, (os.getpid(),), reap=False)

    def _sample(self, now: float) -> None:
        age = now - self._started_at
        self._next_sample = now + (1.0 if age < 60 else 2.0 if age < 600 else 5.0)
        self._steps.notice_dead()
        memory = self._sampler.sample(self._steps.sruns())
        if now >= self._next_gpu_sample:
            self._next_gpu_sample = now + _GPU_SAMPLE_S
            self._sampler.sample_gpus()
        limit = self._record.request.memory_bytes
        if limit and memory > limit and self._why is None and not self._out_of_memory:
            pids = [*tree((os.getpid(),)), *self._steps.running_pids()]
            # Only now, since it costs more: shared pages counted once.
            if proportional_memory(dict.fromkeys(pids)) > limit:
                self._kill_for_memory()

    def _kill_for_memory(self) -> None:
        self._out_of_memory = True
        if self._streams is not None:
            self._streams.say(
                f"Detected 1 oom_kill event in StepId={self._record.id}.batch."
                " Some of the step tasks have been OOM Killed."
            )
        leftovers.end_all(self._record.token, (os.getpid(),))

    def _end(self, why: JobState) -> None:
        """Begin to end the job: CONT and TERM to everything, KILL after a wait."""
        if self._why is not None:
            return
        self._why = why
        self._kill_at = time.monotonic() + self._settings.kill_wait_s
        if self._streams is not None:
            moment = time.strftime("%Y-%m-%dT%H:%M:%S")
            words = f"*** JOB {self._record.id} ON {host_name()} CANCELLED AT {moment} {_WORDS[why]}".rstrip()
            self._streams.say(f"{words} ***")
        with contextlib.suppress(StoreError):
            self._store.set_completing(self._record.id, self._record.token)
        self._signal(signal.SIGCONT, "all")
        self._signal(signal.SIGTERM, "all")

    def _signal(self, number: int, to: str) -> None:
        if to == "batch":
            identity = None if self._script is None else ProcessIdentity.of(self._script.pid)
            if identity is not None:
                identity.send(number)
            return
        roots = [os.getpid()]
        if to == "steps":
            roots = self._steps.running_pids()
        found = (
            leftovers.processes_of(self._record.token, roots)
            if to == "all"
            else tuple(filter(None, map(ProcessIdentity.of, [*roots, *tree(roots)])))
        )
        for identity in found:
            identity.send(number)

    # -- requests ---------------------------------------------------------------------------

    def _answer(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        answers = {
            "ping": self._answer_ping,
            "signal": self._answer_signal,
            "end": self._answer_end,
            "time_limit": self._answer_time_limit,
            "usage": self._answer_usage,
            "step_begin": self._answer_step_begin,
            "step_tasks": self._steps.tasks,
            "step_end": self._steps.end,
        }
        answer = answers.get(str(request.get("do")))
        if answer is None:
            return {"error": f"there is no request {request.get('do')!r}"}
        try:
            return answer(request)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            return {"error": f"the request cannot be read: {error!r}"}

    def _answer_ping(self, _: Mapping[str, Any]) -> Mapping[str, Any]:
        ending = None if self._why is None else self._why.long
        return {"ok": True, "pid": os.getpid(), "ending": ending}

    def _answer_step_begin(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._why is not None or self._exit_code is not None:
            return {"error": "Job/step already completing or completed"}
        return self._steps.begin(request)

    def _answer_signal(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        if "step" in request:
            return self._signal_step(int(request["step"]), request.get("signal"))
        self._signal(int(request["signal"]), str(request.get("to", "steps")))
        return {"ok": True}

    def _signal_step(self, step: int, number: int | None) -> Mapping[str, Any]:
        """A signal to the tasks of one step; without one it is cancelled, by KILL as Slurm does."""
        pids = self._steps.pids_of(step)
        if number is None and self._streams is not None:
            moment = time.strftime("%Y-%m-%dT%H:%M:%S")
            words = f"*** STEP {self._record.id}.{step} ON {host_name()} CANCELLED AT {moment} ***"
            self._streams.say(words)
        for identity in filter(None, map(ProcessIdentity.of, [*pids, *tree(pids)])):
            identity.send(signal.SIGKILL if number is None else number)
        return {"ok": True}

    def _answer_end(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._why is not None and self._why is not JobState.TIMEOUT:
            return {"ok": True, "already": self._why.long}
        if request["as"] == "REQUEUE":
            self._hold = bool(request.get("hold"))
            self._end(JobState.REQUEUED)
        else:
            self._by_uid = int(request.get("uid", os.getuid()))
            self._end(JobState.CANCELLED)
        return {"ok": True}

    def _answer_time_limit(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        seconds = request["seconds"]
        self._limit_s = float("inf") if seconds is None else float(seconds)
        return {"ok": True}

    def _answer_usage(self, _: Mapping[str, Any]) -> Mapping[str, Any]:
        self._sampler.sample(self._steps.sruns())
        steps = [rows.step_value(step) for step in self._steps.records()]
        return {"ok": True, "usage": asdict(self._sampler.usage), "steps": steps}


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
