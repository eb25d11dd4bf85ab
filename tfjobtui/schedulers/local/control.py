"""Cancel, signal, hold, release, requeue and change: what scancel and scontrol do, with Slurm's refusals."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tfjobtui.errors import FormatError
from tfjobtui.model.ids import JobId, TaskSet
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local import channel, dependencies, moments
from tfjobtui.schedulers.local.channel import NotReachableError
from tfjobtui.schedulers.local.records import JobRecord
from tfjobtui.schedulers.local.store import Store

NO_SUCH_JOB = "Invalid job id specified"
ENDED = "Job/step already completing or completed"
NOT_PENDING = "Job is no longer pending execution"
IS_PENDING = "Job is pending execution"
DISABLED = "Requested operation is presently disabled"


@dataclass(frozen=True, slots=True)
class Done:
    """What became of one id. `ended_already` is a refusal that is no news to who wanted it gone."""

    ok: bool
    words: str = ""
    ended_already: bool = False


def cancel(store: Store, job_id: JobId, *, pending_only: bool = False, uid: int | None = None) -> Done:
    """End a job, an array or some of its tasks; with `pending_only` what has started is spared."""
    rows = store.find(job_id)
    if not rows:
        return Done(False, NO_SUCH_JOB)
    uid = os.getuid() if uid is None else uid
    tasks = _tasks_of(job_id)
    done = False
    problems: list[str] = []
    for row in rows:
        if row.state is JobState.PENDING:
            done |= store.cancel_pending(row.id, tasks, uid, time.time())
        elif row.state is JobState.CONFIGURING and row.shepherd is None:
            done |= _cancel_planned(store, row, uid)
        elif not row.state.is_terminal and not pending_only:
            problem = _ask(row, {"do": "end", "as": "CANCELLED", "uid": uid})
            problems += [problem] if problem else []
            done = True
    if problems:
        return Done(False, problems[0])
    return Done(True) if done else Done(pending_only, ENDED, True)


def _tasks_of(job_id: JobId) -> TaskSet | None:
    """The tasks of an array that an id means; `None` for all."""
    if job_id.task is not None:
        return TaskSet(((job_id.task, job_id.task, 1),))
    return job_id.tasks


def _cancel_planned(store: Store, row: JobRecord, uid: int) -> bool:
    """A job whose shepherd is on its way: without its token it finds nothing to do."""
    with store.transaction() as db:
        changed = db.execute(
            "UPDATE jobs SET state = 'CANCELLED', token = '', end_s = ?, exit_code = '0:0', cancelled_by_uid = ?,"
            " allocation = NULL WHERE id = ? AND token = ? AND shepherd IS NULL AND state = 'CONFIGURING'",
            (time.time(), uid, row.id, row.token),
        ).rowcount
    if changed:
        return True
    fresh = store.get(row.id)
    return fresh is not None and not _ask(fresh, {"do": "end", "as": "CANCELLED", "uid": uid})


def send_signal(store: Store, job_id: JobId, number: int, to: str = "steps") -> Done:
    """Send a signal to the steps of a running job, to its script (`batch`), or to `all`."""
    rows = store.find(job_id)
    if not rows:
        return Done(False, NO_SUCH_JOB)
    running = [row for row in rows if row.state in (JobState.RUNNING, JobState.COMPLETING)]
    if not running:
        return Done(False, ENDED, all(row.state.is_terminal for row in rows))
    problems = [_ask(row, {"do": "signal", "signal": number, "to": to}) for row in running]
    said = next((problem for problem in problems if problem), "")
    return Done(not said, said)


def signal_step(store: Store, job_id: JobId, step: int, number: int | None) -> Done:
    """Send a signal to one step of a running job; without one cancel the step."""
    running = [row for row in store.find(job_id) if row.state in (JobState.RUNNING, JobState.COMPLETING)]
    if not running:
        return Done(False, ENDED if store.find(job_id) else NO_SUCH_JOB)
    problem = _ask(running[0], {"do": "signal", "step": step, "signal": number})
    return Done(not problem, problem)


def _ask(row: JobRecord, message: Mapping[str, object]) -> str:
    """Ask the job's shepherd; what is wrong, or an empty text."""
    try:
        answer = channel.ask(row.token, message)
    except NotReachableError as error:
        return f"job {row.job_id}: {error}"
    return str(answer.get("error", ""))


def hold(store: Store, job_id: JobId) -> Done:
    return _held(store, job_id, held=True)


def release(store: Store, job_id: JobId) -> Done:
    return _held(store, job_id, held=False)


def _held(store: Store, job_id: JobId, *, held: bool) -> Done:
    rows = [row for row in store.find(job_id) if not row.state.is_terminal]
    if not rows:
        return Done(False, ENDED if store.find(job_id) else NO_SUCH_JOB, bool(store.find(job_id)))
    for row in rows:
        store.set_held(row.id, held=held)
    return Done(True)


def requeue(store: Store, job_id: JobId, *, hold: bool = False) -> Done:
    """End a running job and let it wait again, or let one that has ended run again."""
    rows = store.find(job_id)
    if not rows:
        return Done(False, NO_SUCH_JOB)
    results = [_requeue(store, row, hold=hold) for row in rows]
    bad = [result for result in results if not result.ok]
    # Of an array the tasks that wait already are no reason to refuse the others.
    return Done(True) if len(bad) < len(results) else bad[0]


def _requeue(store: Store, row: JobRecord, *, hold: bool) -> Done:
    if row.request.requeue is False:
        return Done(False, DISABLED)
    if row.state is JobState.PENDING:
        return Done(False, IS_PENDING)
    if row.state.is_terminal:
        store.run_again(row.id, hold=hold, now_s=time.time())
        return Done(True)
    problem = _ask(row, {"do": "end", "as": "REQUEUE", "hold": hold})
    return Done(not problem, problem)


# ---- Changing


def update(store: Store, job_id: JobId, changes: Mapping[str, str]) -> Done:
    """Change fields by scontrol's names, in any case."""
    rows = [row for row in store.find(job_id) if not row.state.is_terminal]
    if not rows:
        return Done(False, ENDED if store.find(job_id) else NO_SUCH_JOB)
    for name, value in changes.items():
        change = _CHANGES.get(name.casefold())
        if change is None:
            return Done(False, f"{name} cannot be changed here")
        if name.casefold() not in _WHILE_ACTIVE and any(row.state is not JobState.PENDING for row in rows):
            return Done(False, NOT_PENDING)
        try:
            for row in rows:
                change(store, row, value)
        except FormatError as error:
            return Done(False, f"{name}: {error.message}. {error.hint}".strip())
        except NotReachableError as error:
            return Done(False, str(error))
    return Done(True)


def _time_limit(store: Store, row: JobRecord, value: str) -> None:
    seconds = moments.time_limit_s(value.lstrip("+-"))
    if value[:1] in ("+", "-"):
        seconds = row.time_limit_s + (seconds if value[0] == "+" else -seconds)
    if seconds <= 0:
        raise FormatError("the limit would be in the past")
    if row.state is not JobState.PENDING:
        channel.ask(row.token, {"do": "time_limit", "seconds": None if seconds == float("inf") else seconds})
    store.change(row.id, time_limit_s=None if seconds == float("inf") else seconds)


def _request_field(name: str, read: Callable[[str], Any]) -> Callable[[Store, JobRecord, str], None]:
    def change(store: Store, row: JobRecord, value: str) -> None:
        store.change_request(row.id, **{name: read(value)})

    return change


def _nice(store: Store, row: JobRecord, value: str) -> None:
    nice = int(value or 0) if value.lstrip("-").isdigit() else 0
    store.change_request(row.id, nice=max(0, nice))
    store.change(row.id, priority=-max(0, nice))


def _dependency(store: Store, row: JobRecord, value: str) -> None:
    text = str(dependencies.parse(value)) if value else ""
    store.change_request(row.id, dependency=text)
    store.change(row.id, dependency=text)


def _start_time(store: Store, row: JobRecord, value: str) -> None:
    store.change_request(row.id, begin_s=moments.moment_s(value, time.time()))


def _throttle(store: Store, row: JobRecord, value: str) -> None:
    if not value.isdigit():
        raise FormatError(f"{value!r} is no number of tasks")
    for other in store.rows_of(row.array_job_id or row.id):
        store.change(other.id, array_throttle=int(value) or None)


def _yes_no(value: str) -> bool:
    return value.casefold() in ("1", "yes", "y")


_CHANGES: Mapping[str, Callable[[Store, JobRecord, str], None]] = {
    "timelimit": _time_limit,
    "jobname": _request_field("name", str),
    "name": _request_field("name", str),
    "comment": _request_field("comment", str),
    "partition": _request_field("partition", str),
    "qos": _request_field("qos", str),
    "account": _request_field("account", str),
    "nice": _nice,
    "dependency": _dependency,
    "starttime": _start_time,
    "eligibletime": _start_time,
    "arraytaskthrottle": _throttle,
    "requeue": _request_field("requeue", _yes_no),
    "minmemorynode": _request_field("memory_per_node", moments.size_bytes),
    "numcpus": _request_field("ntasks", int),
}
CHANGEABLE = frozenset(_CHANGES)
"""What `update` takes, in small letters."""
_WHILE_ACTIVE = frozenset({"timelimit", "jobname", "name", "comment", "requeue", "arraytaskthrottle"})
