"""The pass over the queue: the one place where jobs are started, and dead shepherds are noticed.

It may be made at any time, by anybody, also by several at once. What starts is decided and written within one
transaction, each start with a token of its own; the processes are started after it. Whoever is killed in
between leaves a planned start that nobody takes over: a later pass puts the job back, and the token is void.
"""

from __future__ import annotations

import json
import math
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tfjobtui.errors import CommandError
from tfjobtui.model.job import ExitCode
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local import journal, leftovers, rows, spawning, waiter
from tfjobtui.schedulers.local.identity import boot_id
from tfjobtui.schedulers.local.machine import Machine, find_machine
from tfjobtui.schedulers.local.place import Place
from tfjobtui.schedulers.local.planning import Plan, Start, plan
from tfjobtui.schedulers.local.records import Ending, JobRecord
from tfjobtui.schedulers.local.store import Store
from tfjobtui.schedulers.local.tasksets import without

CLAIM_TIMEOUT_S = 20.0
"""A start that no shepherd took over within this is planned anew."""
_FORGET_EVERY_S = 3600.0
_LEAST_KEPT_S = 86400.0


_PLAN_AGAIN_S = 60.0
"""A plan holds for so long while nothing in the queue changes: the machine may."""


@dataclass(frozen=True, slots=True)
class PassReport:
    """What a pass did: raw ids. `is_needed`: something waits or runs that another pass may have to look after.

    At `next_s` something may start by time alone.
    """

    started: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()
    is_needed: bool = False
    next_s: float = math.inf


def make_pass(place: Place, store: Store | None = None) -> PassReport:
    """Look after what runs, start what can, and see that somebody makes the next pass.

    With one store over several passes nothing is planned anew while nothing has changed.

    Raises:
        StoreError: the queue cannot be read or changed.
    """
    own = store is None
    store = Store(place) if store is None else store
    try:
        lost = _reap(store)
        started = _start(store)
        is_needed = waiter.is_needed(store.live())
        if is_needed:
            waiter.ensure(place)
        _forget(store)
        return PassReport(started, lost, is_needed, store.planned[1] if store.planned else math.inf)
    finally:
        if own:
            store.close()


# ---- Shepherds that are gone


def _reap(store: Store) -> tuple[int, ...]:
    """End the jobs whose shepherd is gone, and put back the starts that nobody took over."""
    lost = []
    for record in store.active():
        if record.state is JobState.CONFIGURING:
            if _is_overdue(store.claimed(record.id, record.token)):
                store.put_back(record)
        elif record.shepherd is None or not record.shepherd.is_alive():
            ending = _ending_of(store, record)
            if ending is None:
                store.put_back(record)
            elif store.finish(record.id, record.token, ending):
                lost.append(record.id)
    return tuple(lost)


def _is_overdue(claimed: str | None) -> bool:
    """Whether a start was planned so long ago, or before a boot, that nobody will take it over."""
    if claimed is None:
        return False
    boot, _, since = claimed.partition(" ")
    return boot != boot_id() or time.clock_gettime(time.CLOCK_BOOTTIME) - float(since) > CLAIM_TIMEOUT_S


def _ending_of(store: Store, record: JobRecord) -> Ending | None:
    """How the job of a dead shepherd ended; `None` where its script had not been started."""
    state = journal.read(store.place.journal(record.id, record.token))
    if state is not None and state.ending is not None:
        return state.ending
    ended = leftovers.end_all(record.token)
    if state is not None and state.started is None and not ended:
        return None
    asked = record.request.requeue is True
    return Ending(
        state=JobState.NODE_FAIL,
        exit_code=ExitCode(0, 0),
        end_s=time.time(),
        reason="NodeDown",
        back_to_queue=asked,
        hold=asked and record.held,
    )


# ---- Starting


def _start(store: Store) -> tuple[int, ...]:
    """Plan, and start what can be started; nothing is done while the last plan holds."""
    if store.planned is not None:
        version, until_s = store.planned
        # A clock that was set back makes a plan hold no longer.
        if version == store.version() and until_s - _PLAN_AGAIN_S <= time.time() < until_s:
            return ()
    if not any(record.state is JobState.PENDING for record in store.live()):
        return ()
    machine = find_machine(store.settings())
    with store.transaction():
        claimed, next_s = _plan(store, machine)
        version = store.version()
    for raw_id, token in claimed:
        _spawn(store, raw_id, token)
    store.planned = version, min(next_s, time.time() + _PLAN_AGAIN_S)
    return tuple(raw_id for raw_id, _ in claimed)


def _plan(store: Store, machine: Machine) -> tuple[list[tuple[int, str]], float]:
    """Plan and write it, in a transaction: who starts, with which token, and until when the plan holds."""
    while True:
        now_s = time.time()
        live = store.live()
        made = plan(live, store.rows_of, machine, now_s)
        if not (made.cancelled or made.missed or made.hopeless_tasks):
            break
        _end_waiting(store, made, now_s)  # which may decide over others
    claimed = [_claim(store, start, now_s) for start in made.starts]
    _note(store, live, made, now_s)
    return claimed, made.next_s


def _end_waiting(store: Store, made: Plan, now_s: float) -> None:
    """End what waits in vain and wants to be ended; a task of a waiting rest gets a row of its own."""
    for record, task in made.hopeless_tasks:
        raw_id = _split(store, record, task)
        store.put(raw_id, reason="DependencyNeverSatisfied")
    for raw_id in made.cancelled:
        store.put(raw_id, state="CANCELLED", reason="DependencyNeverSatisfied", end_s=now_s, exit_code="0:0")
    for raw_id in made.missed:
        store.put(raw_id, state="DEADLINE", reason="DeadLine", end_s=now_s, exit_code="0:1")


def _split(store: Store, record: JobRecord, task: int) -> int:
    """Take a task out of a waiting rest; the raw id of its row. The last one takes the rest's."""
    current = store.get(record.id)
    assert current is not None
    assert current.array_tasks is not None
    left = without(current.array_tasks, [task])
    if left is None:
        store.put(record.id, array_tasks=None, array_task_id=task)
        return record.id
    raw_id = store.take_id()
    store.put(record.id, array_tasks=str(left))
    store.insert(replace(record, id=raw_id, array_tasks=None, array_task_id=task))
    return raw_id


def _claim(store: Store, start: Start, now_s: float) -> tuple[int, str]:
    """Write a planned start; a task of a waiting rest gets a row of its own."""
    record, token = start.record, secrets.token_hex(16)
    raw_id = record.id
    if start.task is not None and record.array_tasks is not None:
        raw_id = _split(store, record, start.task)
    store.put(
        raw_id,
        state="CONFIGURING",
        reason="None",
        dependency="",
        token=token,
        shepherd=None,
        claimed=f"{boot_id()} {time.clock_gettime(time.CLOCK_BOOTTIME)}",
        allocation=rows.allocation_value(start.allocation),
        eligible_s=now_s if record.eligible_s is None else record.eligible_s,
    )
    return raw_id, token


def _note(store: Store, live: Sequence[JobRecord], made: Plan, now_s: float) -> None:
    """Write why the others wait, and since when they may start, where that has changed."""
    known = {record.id: record for record in live}
    for raw_id, reason in made.reasons.items():
        if known[raw_id].reason != reason:
            store.put(raw_id, reason=reason)
    started = {start.record.id for start in made.starts if start.record.array_tasks is None}
    for raw_id, left in made.dependencies.items():
        if raw_id not in started:
            store.put(raw_id, dependency=left)
    for raw_id in made.eligible:
        if raw_id not in started:
            store.put(raw_id, eligible_s=now_s)


def _spawn(store: Store, raw_id: int, token: str) -> None:
    folder = store.place.job_folder(raw_id)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        spawning.start("shepherd", store.place, str(raw_id), token, token=token, log=folder / "shepherd.log")
    except (OSError, CommandError):
        record = store.get(raw_id)
        if record is not None and record.token == token:
            store.put_back(record)


# ---- Housekeeping


def _forget(store: Store) -> None:
    """Let go of what ended long ago, once an hour."""
    now_s = time.time()
    last = store.meta("forgotten_at")
    if last is not None and now_s - json.loads(last) < _FORGET_EVERY_S:
        return
    store.set_meta("forgotten_at", json.dumps(now_s))
    store.forget_before(now_s - max(_LEAST_KEPT_S, store.settings().keep_days * 86400))
    store.forget_left_behind()
