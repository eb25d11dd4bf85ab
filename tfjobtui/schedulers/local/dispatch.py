"""The pass over the queue: the one place where jobs are started, and dead shepherds are noticed.

It may be made at any time, by anybody, also by several at once. What starts is decided and written within one
transaction, each start with a token of its own; the processes are started after it. Whoever is killed in
between leaves a planned start that nobody takes over: a later pass puts the job back, and the token is void.
"""

from __future__ import annotations

import json
import secrets
import time
from dataclasses import dataclass, replace

from tfjobtui.errors import CommandError
from tfjobtui.model.job import ExitCode
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local import journal, leftovers, rows, spawning, waiter
from tfjobtui.schedulers.local.identity import boot_id
from tfjobtui.schedulers.local.machine import find_machine
from tfjobtui.schedulers.local.place import Place
from tfjobtui.schedulers.local.planning import Plan, Start, plan
from tfjobtui.schedulers.local.records import Ending, JobRecord
from tfjobtui.schedulers.local.store import Store
from tfjobtui.schedulers.local.tasksets import without

CLAIM_TIMEOUT_S = 20.0
"""A start that no shepherd took over within this is planned anew."""
_FORGET_EVERY_S = 3600.0
_LEAST_KEPT_S = 86400.0


@dataclass(frozen=True, slots=True)
class PassReport:
    """What a pass did: raw ids."""

    started: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()


def make_pass(place: Place, store: Store | None = None) -> PassReport:
    """Look after what runs, start what can, and see that somebody makes the next pass.

    Raises:
        StoreError: the queue cannot be read or changed.
    """
    own = store is None
    store = Store(place) if store is None else store
    try:
        lost = _reap(store)
        started = _start(store) if _has_waiting(store) else ()
        if waiter.is_needed(store.live()):
            waiter.ensure(place)
        _forget(store)
        return PassReport(started, lost)
    finally:
        if own:
            store.close()


# ---- Shepherds that are gone


def _reap(store: Store) -> tuple[int, ...]:
    """End the jobs whose shepherd is gone, and put back the starts that nobody took over."""
    lost = []
    for record in store.live():
        if record.state is JobState.CONFIGURING and record.shepherd is None:
            _reap_claim(store, record)
        elif record.state is not JobState.PENDING and not _is_looked_after(record):
            ending = _ending_of(store, record)
            if ending is None:
                _put_back(store, record)
            elif store.finish(record.id, record.token, ending):
                lost.append(record.id)
    return tuple(lost)


def _is_looked_after(record: JobRecord) -> bool:
    return record.shepherd is not None and record.shepherd.is_alive()


def _reap_claim(store: Store, record: JobRecord) -> None:
    claimed = store.claimed(record.id, record.token)
    if claimed is None:
        return
    boot, _, since = claimed.partition(" ")
    if boot != boot_id() or time.clock_gettime(time.CLOCK_BOOTTIME) - float(since) > CLAIM_TIMEOUT_S:
        _put_back(store, record)


def _put_back(store: Store, record: JobRecord) -> None:
    """It waits again, as if it had not been planned: its script was not started."""
    with store.transaction() as db:
        db.execute(
            "UPDATE jobs SET state = 'PENDING', reason = '', token = '', shepherd = NULL, claimed = NULL,"
            " allocation = NULL, start_s = NULL WHERE id = ? AND token = ?",
            (record.id, record.token),
        )


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


def _has_waiting(store: Store) -> bool:
    return any(record.state is JobState.PENDING for record in store.live())


def _start(store: Store) -> tuple[int, ...]:
    machine = find_machine(store.settings())
    with store.transaction():
        made = plan(store.live(), store.rows_of, machine, time.time())
        claimed = [_claim(store, start) for start in made.starts]
        _note(store, made)
    for raw_id, token in claimed:
        _spawn(store, raw_id, token)
    return tuple(raw_id for raw_id, _ in claimed)


def _claim(store: Store, start: Start) -> tuple[int, str]:
    """Write a planned start; a task of a waiting rest gets a row of its own, the last one takes the rest's."""
    record, token = start.record, secrets.token_hex(16)
    raw_id = record.id
    if start.task is not None and record.array_tasks is not None:
        current = store.get(record.id)
        assert current is not None
        assert current.array_tasks is not None
        left = without(current.array_tasks, [start.task])
        if left is not None:
            raw_id = store.take_id()
            store.put(record.id, array_tasks=str(left))
            store.insert(replace(record, id=raw_id, array_tasks=None, array_task_id=start.task))
        else:
            store.put(raw_id, array_tasks=None, array_task_id=start.task)
    store.put(
        raw_id,
        state="CONFIGURING",
        reason="None",
        token=token,
        shepherd=None,
        claimed=f"{boot_id()} {time.clock_gettime(time.CLOCK_BOOTTIME)}",
        allocation=rows.allocation_value(start.allocation),
    )
    if record.eligible_s is None:
        store.put(raw_id, eligible_s=time.time())
    return raw_id, token


def _note(store: Store, made: Plan) -> None:
    """Write why the others wait, where that has changed."""
    now_s = time.time()
    known = {record.id: record for record in store.live()}
    for raw_id, reason in made.reasons.items():
        record = known.get(raw_id)
        if record is not None and record.state is JobState.PENDING and record.reason != reason:
            store.put(raw_id, reason=reason)
    for raw_id, left in made.dependencies.items():
        store.put(raw_id, dependency=left)
    for raw_id in made.eligible:
        if raw_id in known and known[raw_id].eligible_s is None:
            store.put(raw_id, eligible_s=now_s)
    for raw_id in made.cancelled:
        store.put(raw_id, state="CANCELLED", reason="DependencyNeverSatisfied", end_s=now_s, exit_code="0:0")


def _spawn(store: Store, raw_id: int, token: str) -> None:
    folder = store.place.job_folder(raw_id)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        spawning.start("shepherd", store.place, str(raw_id), token, token=token, log=folder / "shepherd.log")
    except (OSError, CommandError):
        record = store.get(raw_id)
        if record is not None and record.token == token:
            _put_back(store, record)


# ---- Housekeeping


def _forget(store: Store) -> None:
    """Let go of what ended long ago, once an hour."""
    now_s = time.time()
    last = store.meta("forgotten_at")
    if last is not None and now_s - json.loads(last) < _FORGET_EVERY_S:
        return
    store.set_meta("forgotten_at", json.dumps(now_s))
    store.forget_before(now_s - max(_LEAST_KEPT_S, store.settings().keep_days * 86400))
