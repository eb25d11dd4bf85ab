"""The embedded scheduler as a `Scheduler`.

Everything that touches a file is done in a thread, in short calls. A reading of the queue also makes a pass
(`dispatch`) now and then, so that a program that is open notices what has ended and starts what can.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from signal import SIGKILL
from typing import TypeVar

from tfjobtui.errors import QueryError, StoreError, SubmissionError
from tfjobtui.model.job import Gpus
from tfjobtui.model.node import Node, NodeState
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local import channel, commands, control, details, dispatch, rows, submission
from tfjobtui.schedulers.local.environment import CLUSTER
from tfjobtui.schedulers.local.machine import Machine, find_machine
from tfjobtui.schedulers.local.moments import signal_number
from tfjobtui.schedulers.local.place import Place, default_place, host_name
from tfjobtui.schedulers.local.records import JobRecord, StepRecord
from tfjobtui.schedulers.local.settings import LocalSettings
from tfjobtui.schedulers.local.store import Store
from tfjobtui.schedulers.scheduler import (
    ActionResult,
    Capabilities,
    Capability,
    CommandRecord,
    EndedJob,
    Forecast,
    JobDetails,
    Partition,
    PriorityFactor,
    QueueAnswer,
    StepUsage,
    StoredScript,
    SubmitRequest,
    Submitted,
    Target,
)

_Value = TypeVar("_Value")
SHOWN_AFTER_END_S = 86400.0
"""Ended jobs are in the queue's answer for so long: nothing else shows them here."""
_PASS_EVERY_S = 5.0
_COMMAND = ("tfjobtui", "local")
"""Runs this scheduler's commands for a user."""


class LocalScheduler:
    """The queue of this machine. Nothing is opened before it is asked for."""

    def __init__(self, settings: LocalSettings | None = None, place: Place | None = None) -> None:
        self.place = place or default_place()
        self._settings = settings or LocalSettings()
        self._store: Store | None = None
        self._machine: Machine | None = None
        self._opening = threading.Lock()
        self._passed_at = -_PASS_EVERY_S
        self._answered_early = False

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            name=f"local ({host_name()})",
            everyone=Capability(False, "The local scheduler has your own jobs only."),
            priority=Capability(False, "Jobs here start in the order in which they were submitted."),
            forecast=Capability(False, "The local scheduler does not forecast starts."),
            runs_here=True,
            clusters=Capability(False, "The local scheduler is this machine alone."),
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What is particular here, in sentences for the user."""
        from tfjobtui.schedulers.local import logout

        found = [logout.warning()]
        if self.place.is_on_network:
            found.append(f"{self.place.folder} lies on a network file system: the queue is slower there.")
        return tuple(note for note in found if note)

    async def learn(self) -> None:
        """Nothing has to be asked."""

    async def _do(self, function: Callable[[Store], _Value]) -> _Value:
        return await asyncio.to_thread(lambda: function(self._open()))

    def _open(self) -> Store:
        with self._opening:
            if self._store is None:
                store = Store(self.place)
                store.set_meta("settings", self._settings.to_json())
                commands.install(self.place)
                self._store = store
            return self._store

    def _find_machine(self) -> Machine:
        if self._machine is None:
            self._machine = find_machine(self._settings)
        return self._machine

    # The queue

    def early_answer(self) -> QueueAnswer | None:
        """The queue as it is, without a pass; once, before there is an event loop. `None` where it cannot be read."""
        if self._answered_early:
            return None
        self._answered_early = True
        try:
            return self._answer(self._open(), ())
        except StoreError:
            return None  # the first reading tells it

    async def jobs(self, *, everyone: bool = False) -> QueueAnswer:
        if everyone:
            raise QueryError(self.capabilities.everyone.reason)
        return await self._do(self._read)

    def _read(self, store: Store) -> QueueAnswer:
        started = time.monotonic()
        problems: tuple[str, ...] = ()
        if started - self._passed_at >= _PASS_EVERY_S:
            self._passed_at = started
            try:
                dispatch.make_pass(self.place, store)
            except StoreError as error:  # a full disk: what is there can still be shown
                problems = (str(error),)
        return self._answer(store, problems)

    def _answer(self, store: Store, problems: tuple[str, ...]) -> QueueAnswer:
        now_s, started = time.time(), time.monotonic()
        machine = self._find_machine()
        records = store.jobs(since_s=now_s - SHOWN_AFTER_END_S)
        jobs = tuple(details.job_of(record, machine) for record in records)
        return QueueAnswer(jobs, now_s, time.monotonic() - started, problems)

    async def details(self, target: Target) -> JobDetails | None:
        def read(store: Store) -> JobDetails | None:
            record = _one(store, target)
            if record is None:
                return None
            fields = details.fields_of(record, self._find_machine())
            return JobDetails(target.id, fields, _gpu_lines(record))

        return await self._do(read)

    async def priority(self, target: Target) -> tuple[PriorityFactor, ...]:
        return ()

    # Actions

    def action_commands(
        self, action: str, targets: Sequence[Target], signal: str | None = None
    ) -> tuple[tuple[str, ...], ...]:
        groups: dict[bool, list[str]] = {}
        for target in targets:
            groups.setdefault(target.pending_only, []).append(str(target.id))
        return tuple(_argv(action, ids, signal, pending_only) for pending_only, ids in groups.items())

    async def _act(
        self,
        action: str,
        targets: Sequence[Target],
        act: Callable[[Store, Target], control.Done],
        signal: str | None = None,
    ) -> tuple[ActionResult, ...]:
        return await self._do(
            lambda store: tuple(_result(store, action, target, act, signal) for target in targets)
        )

    async def cancel(self, targets: Sequence[Target], signal: str | None = None) -> tuple[ActionResult, ...]:
        def act(store: Store, target: Target) -> control.Done:
            number = None if signal is None else signal_number(signal)
            if number is not None and number != SIGKILL:
                return control.send_signal(store, target.id, number)
            return control.cancel(store, target.id, pending_only=target.pending_only)

        results = await self._act("cancel", targets, act, signal)
        await self._pass()
        return results

    async def hold(self, targets: Sequence[Target]) -> tuple[ActionResult, ...]:
        return await self._act("hold", targets, lambda store, target: control.hold(store, target.id))

    async def release(self, targets: Sequence[Target]) -> tuple[ActionResult, ...]:
        results = await self._act("release", targets, lambda store, target: control.release(store, target.id))
        await self._pass()
        return results

    async def requeue(self, targets: Sequence[Target]) -> tuple[ActionResult, ...]:
        results = await self._act("requeue", targets, lambda store, target: control.requeue(store, target.id))
        await self._pass()
        return results

    async def update(self, target: Target, changes: Mapping[str, str]) -> ActionResult:
        pairs = [f"{name}={value}" for name, value in changes.items()]
        argv = (*_COMMAND, "scontrol", "update", f"JobId={target.id}", *pairs)
        started_at_s = time.time()
        done = await self._do(lambda store: control.update(store, target.id, changes))
        record = CommandRecord(argv, started_at_s, time.time() - started_at_s, int(not done.ok), done.words)
        await self._pass()
        return ActionResult(target, done.ok, done.words, record)

    async def _pass(self) -> None:
        """What was changed may let something start."""
        try:
            await self._do(lambda store: dispatch.make_pass(self.place, store))
        except StoreError:
            self._passed_at = -_PASS_EVERY_S  # the next reading tells it

    async def submit(self, request: SubmitRequest) -> Submitted:
        def act(store: Store) -> Submitted:
            return submission.submit(store, request, self._find_machine())

        submitted = await self._do(act)
        await self._pass()
        return submitted

    async def forecast(self, request: SubmitRequest) -> Forecast:
        raise SubmissionError(self.capabilities.forecast.reason)

    # What was, and what there is

    async def stored_script(self, target: Target) -> StoredScript | None:
        def read(store: Store) -> StoredScript | None:
            record = _one(store, target)
            if record is None:
                return None
            try:
                text = self.place.script(record.array_job_id or record.id).read_bytes()
            except OSError:
                return None
            return StoredScript(
                text.decode("utf-8", "surrogateescape"),
                "the local scheduler",
                ("the environment that it was submitted with",),
                record.request.submit_line,
            )

        return await self._do(read)

    async def ended(self, targets: Sequence[Target]) -> tuple[EndedJob, ...]:
        def read(store: Store) -> tuple[EndedJob, ...]:
            found = (_one(store, target) for target in targets)
            return tuple(
                _ended(record) for record in found if record is not None and record.state.is_terminal
            )

        return await self._do(read)

    async def partitions(self) -> tuple[Partition, ...]:
        machine = await asyncio.to_thread(self._find_machine)
        return (Partition(CLUSTER, True, True, float("inf"), 1, _kinds(machine)),)

    async def nodes(self) -> tuple[Node, ...]:
        return await self._do(self._nodes)

    def _nodes(self, store: Store) -> tuple[Node, ...]:
        machine = self._find_machine()
        held = [record.allocation for record in store.live() if record.allocation is not None]
        used: dict[str | None, int] = {}
        for allocation in held:
            if allocation.gpus:
                used[allocation.gpu_type] = used.get(allocation.gpu_type, 0) + len(allocation.gpus)
        node = Node(
            name=host_name(),
            partitions=(CLUSTER,),
            state=NodeState.of("mixed" if held else "idle"),
            gpus=Gpus(_kinds(machine)),
            gpus_used=Gpus(tuple(used.items())),
            cpus=len(machine.cpus),
            cpus_used=sum(len(allocation.cpus) for allocation in held),
            memory_bytes=machine.memory_bytes,
            memory_used_bytes=sum(allocation.memory_bytes for allocation in held),
        )
        return (node,)

    # Steps

    def shell_argv(self, target: Target, node: str | None = None) -> tuple[str, ...]:
        shell = os.environ.get("SHELL") or "/bin/bash"
        job = target.raw_id or target.id.job
        return (str(self.place.bin / "srun"), f"--jobid={job}", "--overlap", "--pty", shell, "-l")

    def foreground_environment(self) -> Mapping[str, str]:
        return {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}

    async def step_usage(self, target: Target) -> tuple[StepUsage, ...]:
        def read(store: Store) -> tuple[StepUsage, ...]:
            record = _one(store, target)
            if record is None or record.state not in (JobState.RUNNING, JobState.COMPLETING):
                return ()
            try:
                answer = channel.ask(record.token, {"do": "usage"}, timeout_s=3.0)
            except channel.NotReachableError as error:
                raise QueryError(str(error)) from error
            whole = rows.usage_of(answer["usage"])
            batch = StepUsage("batch", 1, whole.cpu_s, whole.peak_rss_bytes, whole.rss_bytes)
            return (batch, *(_step_usage(rows.step_of(step)) for step in answer["steps"]))

        return await self._do(read)

    async def close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None


def _one(store: Store, target: Target) -> JobRecord | None:
    """The record that is meant: of an array's rows the one with the raw id, else the one that says most."""
    found = store.find(target.id)
    by_raw = [record for record in found if record.id == target.raw_id]
    chosen = by_raw or sorted(found, key=lambda record: not record.state.is_active)
    return chosen[0] if chosen else None


def _argv(action: str, ids: Sequence[str], signal: str | None, pending_only: bool) -> tuple[str, ...]:
    if action == "cancel":
        signals = ("-s", signal) if signal else ()
        states = ("--state=PENDING",) if pending_only else ()
        return (*_COMMAND, "scancel", *signals, *states, *ids)
    return (*_COMMAND, "scontrol", action, ",".join(ids))


def _result(
    store: Store,
    action: str,
    target: Target,
    act: Callable[[Store, Target], control.Done],
    signal: str | None,
) -> ActionResult:
    started_at_s = time.time()
    try:
        done = act(store, target)
    except StoreError as error:
        done = control.Done(False, str(error))
    argv = _argv(action, [str(target.id)], signal, target.pending_only)
    record = CommandRecord(argv, started_at_s, time.time() - started_at_s, int(not done.ok), done.words)
    if action == "cancel" and done.ended_already:
        words = "None of it was waiting any more." if target.pending_only else "It had already ended."
        return ActionResult(target, True, words, record)
    return ActionResult(target, done.ok, done.words, record)


def _gpu_lines(record: JobRecord) -> tuple[str, ...]:
    held = record.allocation
    if held is None or not held.gpus:
        return ()
    return (f"{host_name()}: {held.gpu_type or 'gpu'} {','.join(map(str, held.gpus))}",)


def _ended(record: JobRecord) -> EndedJob:
    request = record.request
    return EndedJob(
        id=record.job_id,
        raw_id=record.id,
        name=request.name,
        state=record.state,
        state_text=record.state.long,
        user=details.user_name(),
        cancelled_by_uid=record.cancelled_by_uid,
        account=request.account,
        partition=request.partition or CLUSTER,
        submit_time_s=int(record.submit_s),
        start_time_s=None if record.start_s is None else int(record.start_s),
        end_time_s=None if record.end_s is None else int(record.end_s),
        time_limit_s=record.time_limit_s,
        exit_code=record.exit_code,
        nodes=host_name() if record.start_s is not None else "",
        work_dir=request.work_dir,
        submit_line=request.submit_line,
        stdout_pattern=request.stdout,
        stderr_pattern=request.stderr,
    )


def _kinds(machine: Machine) -> tuple[tuple[str | None, int], ...]:
    counts: dict[str | None, int] = {}
    for gpu in machine.gpus:
        counts[gpu.kind] = counts.get(gpu.kind, 0) + 1
    return tuple(counts.items())


def _step_usage(step: StepRecord) -> StepUsage:
    used = step.usage
    return StepUsage(step.name, step.tasks, used.cpu_s, used.peak_rss_bytes, used.rss_bytes)
