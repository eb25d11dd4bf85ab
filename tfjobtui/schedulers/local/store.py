"""The jobs of the embedded scheduler, in an SQLite file that several programs may open at once.

A write is one transaction that begins with the write lock (`BEGIN IMMEDIATE`), so that what it read still
holds when it writes. On a local file system the file is in WAL mode (a reader does not wait for a writer);
on a network one, where WAL's shared memory does not work, it keeps a rollback journal.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tfjobtui.errors import StoreError
from tfjobtui.model.ids import JobId, TaskSet
from tfjobtui.model.job import ExitCode
from tfjobtui.model.state import JobState
from tfjobtui.paths import make_private
from tfjobtui.schedulers.local import rows
from tfjobtui.schedulers.local.identity import ProcessIdentity
from tfjobtui.schedulers.local.place import Place
from tfjobtui.schedulers.local.records import Ending, JobRecord
from tfjobtui.schedulers.local.request import JobRequest
from tfjobtui.schedulers.local.settings import LocalSettings
from tfjobtui.schedulers.local.tasksets import common, without

VERSION = 1
"""Of the tables. A newer program changes it, and an older one then does not touch the file."""
_BUSY_S = 10.0
_LIVE = ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING")


class Store:
    """The file of one place. Every method may raise `StoreError`; it may be used by several threads."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._lock = threading.RLock()
        with _told(place.database):
            place.make()
            self._db = sqlite3.connect(
                place.database, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
            )
            self._db.row_factory = sqlite3.Row
            try:
                self._prepare()
            except BaseException:
                self._db.close()
                raise

    def _prepare(self) -> None:
        os.chmod(self.place.database, 0o600)  # noqa: PTH101 - before anything is in it
        self._db.execute(f"PRAGMA journal_mode={'TRUNCATE' if self.place.is_on_network else 'WAL'}")
        # What was committed shall be there after a loss of power too: a start must not be forgotten.
        self._db.execute("PRAGMA synchronous=FULL")
        (found,) = self._db.execute("PRAGMA user_version").fetchone()
        if found == 0:
            with self.transaction():
                (found,) = self._db.execute("PRAGMA user_version").fetchone()
                if found == 0:
                    for statement in rows.SCHEMA.split(";"):
                        self._db.execute(statement)
                    self._db.execute(f"PRAGMA user_version={VERSION}")
                    found = VERSION
        if found != VERSION:
            raise StoreError(
                f"{self.place.database} is of version {found}; this program knows version {VERSION}",
                "Use the newer tfjobtui that wrote it.",
            )

    def close(self) -> None:
        with self._lock:
            self._db.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """One change as a whole, with the write lock from its beginning."""
        with self._lock, _told(self.place.database):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def _select(self, where: str = "", values: Sequence[object] = ()) -> tuple[JobRecord, ...]:
        with self._lock, _told(self.place.database):
            found = self._db.execute(f"{rows.SELECT} {where} ORDER BY id", tuple(values)).fetchall()
            return tuple(rows.record_of(row) for row in found)

    # -- reading --------------------------------------------------------------------------

    def jobs(self, *, since_s: float | None = None) -> tuple[JobRecord, ...]:
        """What has not ended, and what ended after that moment; without one everything."""
        if since_s is None:
            return self._select()
        return self._select(f"WHERE state IN {_LIVE} OR end_s >= ?", (since_s,))

    def live(self) -> tuple[JobRecord, ...]:
        """What has not ended."""
        return self._select(f"WHERE state IN {_LIVE}")

    def get(self, raw_id: int) -> JobRecord | None:
        found = self._select("WHERE id = ?", (raw_id,))
        return found[0] if found else None

    def find(self, job_id: JobId) -> tuple[JobRecord, ...]:
        """The rows that an id means: a job, an array with all its tasks, one task or some, or a raw id."""
        if job_id.het_offset is not None:
            return ()
        array = self._select("WHERE array_job_id = ?", (job_id.job,))
        if job_id.task is not None:
            own = tuple(row for row in array if row.array_task_id == job_id.task)
            return own or tuple(row for row in array if _has_task(row, job_id.task))
        if job_id.tasks is not None:
            tasks = job_id.tasks
            return tuple(
                row
                for row in array
                if row.array_task_id in tasks
                or (row.array_tasks is not None and common(row.array_tasks, tasks) is not None)
            )
        return array or self._select("WHERE id = ?", (job_id.job,))

    def rows_of(self, job: int) -> tuple[JobRecord, ...]:
        """All rows of a job or of an array."""
        return self._select("WHERE id = ? OR array_job_id = ?", (job, job))

    def claimed(self, raw_id: int, token: str) -> str | None:
        """When a start was planned that nobody has taken over: the boot id, and seconds since the boot."""
        with self._lock, _told(self.place.database):
            row = self._db.execute(
                "SELECT claimed FROM jobs WHERE id = ? AND token = ? AND state = 'CONFIGURING'",
                (raw_id, token),
            ).fetchone()
            return None if row is None else row["claimed"]

    def change_counter(self) -> int:
        """A number that is another one after somebody else has changed something."""
        with self._lock, _told(self.place.database):
            (number,) = self._db.execute("PRAGMA data_version").fetchone()
            return int(number)

    def runs(self, raw_id: int) -> tuple[tuple[float | None, Ending], ...]:
        """The runs of a requeued job before its last one: when each started, and how it ended."""
        with self._lock, _told(self.place.database):
            found = self._db.execute(
                "SELECT start_s, ending FROM runs WHERE job = ? ORDER BY rowid", (raw_id,)
            )
            return tuple((row["start_s"], rows.ending_of(json.loads(row["ending"]))) for row in found)

    # -- submission -----------------------------------------------------------------------

    def submit(
        self, request: JobRequest, script: bytes, environment: Mapping[str, str], now_s: float
    ) -> JobRecord:
        """Keep a job: its files first, then its row. Nothing stays of one that could not be kept."""
        raw_id = self._next_id()
        folder = self.place.job_folder(raw_id)
        try:
            with _told(folder):
                make_private(folder)
                _write(self.place.script(raw_id), script, 0o700)
                text = "".join(f"{name}={value}\0" for name, value in environment.items())
                _write(self.place.environment(raw_id), os.fsencode(text), 0o600)
            record = _new_record(raw_id, request, now_s)
            with self.transaction():
                self.insert(record)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return record

    def _next_id(self) -> int:
        """A number that no job has had."""
        with self.transaction():
            return self.take_id()

    def take_id(self) -> int:
        """The next raw id; in a transaction."""
        row = self._db.execute("SELECT value FROM meta WHERE name = 'next_id'").fetchone()
        number = int(row["value"]) if row else 1
        self._db.execute("INSERT OR REPLACE INTO meta VALUES ('next_id', ?)", (str(number + 1),))
        return number

    def insert(self, record: JobRecord) -> None:
        """Add a row; in a transaction."""
        values = rows.values_of(record)
        marks = ", ".join("?" * len(values))
        self._db.execute(f"INSERT INTO jobs ({', '.join(values)}) VALUES ({marks})", tuple(values.values()))

    def put(self, raw_id: int, **values: Any) -> None:
        """Set columns of a row; in a transaction."""
        pairs = ", ".join(f"{name} = ?" for name in values)
        self._db.execute(f"UPDATE jobs SET {pairs} WHERE id = ?", (*values.values(), raw_id))

    # -- the life of a job ----------------------------------------------------------------

    def take_over(self, raw_id: int, token: str, shepherd: ProcessIdentity, now_s: float) -> JobRecord | None:
        """Make a planned start this shepherd's; `None` where it is not to be had (any more)."""
        with self.transaction() as db:
            changed = db.execute(
                "UPDATE jobs SET state = 'RUNNING', reason = '', shepherd = ?, start_s = ?, end_s = NULL"
                " WHERE id = ? AND token = ? AND state = 'CONFIGURING' AND shepherd IS NULL",
                (rows.identity_value(shepherd), now_s, raw_id, token),
            ).rowcount
        return self.get(raw_id) if changed else None

    def set_completing(self, raw_id: int, token: str) -> None:
        """The job is being ended."""
        with self.transaction() as db:
            db.execute(
                "UPDATE jobs SET state = 'COMPLETING' WHERE id = ? AND token = ? AND state = 'RUNNING'",
                (raw_id, token),
            )

    def finish(self, raw_id: int, token: str, ending: Ending) -> bool:
        """Keep how this start ended; `False` where that is known already."""
        with self.transaction() as db:
            found = db.execute(
                "SELECT start_s, restarts, held FROM jobs WHERE id = ? AND token = ?"
                " AND state IN ('CONFIGURING', 'RUNNING', 'COMPLETING')",
                (raw_id, token),
            ).fetchone()
            if found is None:
                return False
            if ending.back_to_queue:
                value = json.dumps(rows.ending_value(ending))
                db.execute("INSERT INTO runs VALUES (?, ?, ?)", (raw_id, found["start_s"], value))
                self._put_back(
                    raw_id, found["restarts"] + 1, replace(ending, hold=ending.hold or found["held"])
                )
            else:
                self._end(raw_id, ending)
        return True

    def _put_back(self, raw_id: int, restarts: int, ending: Ending) -> None:
        self.put(
            raw_id,
            state="PENDING",
            reason="JobHeldUser" if ending.hold else "",
            held=int(bool(ending.hold)),
            restarts=restarts,
            submit_s=ending.end_s,
            eligible_s=ending.end_s,
            start_s=None,
            end_s=None,
            allocation=None,
            token="",
            shepherd=None,
            claimed=None,
            exit_code=None,
        )

    def _end(self, raw_id: int, ending: Ending) -> None:
        steps = json.dumps([rows.step_value(step) for step in ending.steps]) if ending.steps else None
        self.put(
            raw_id,
            state=ending.state.long,
            reason=ending.reason,
            end_s=ending.end_s,
            exit_code=str(ending.exit_code),
            cancelled_by_uid=ending.cancelled_by_uid,
            usage=rows.usage_value(ending.usage),
            steps=steps,
            shepherd=None,
        )

    def run_again(self, raw_id: int, *, hold: bool, now_s: float) -> bool:
        """Let a job that has ended wait again; `False` where it has not ended."""
        with self.transaction() as db:
            record = self.get(raw_id)
            if record is None or not record.state.is_terminal:
                return False
            ending = Ending(
                state=record.state,
                exit_code=record.exit_code or ExitCode(0),
                end_s=record.end_s or now_s,
                reason=record.reason,
                back_to_queue=True,
                hold=hold,
                usage=record.usage,
                steps=record.steps,
            )
            value = json.dumps(rows.ending_value(ending))
            db.execute("INSERT INTO runs VALUES (?, ?, ?)", (raw_id, record.start_s, value))
            self._put_back(raw_id, record.restarts + 1, replace(ending, end_s=now_s))
            self.put(raw_id, usage=None, steps=None, cancelled_by_uid=None)
        return True

    # -- what users ask for ---------------------------------------------------------------

    def cancel_pending(self, raw_id: int, tasks: TaskSet | None, uid: int, now_s: float) -> bool:
        """Cancel what waits of a row: all of it, or these tasks of an array's rest; `False` where nothing waits."""
        with self.transaction():
            record = self.get(raw_id)
            if record is None or record.state is not JobState.PENDING:
                return False
            if tasks is not None and record.array_tasks is not None:
                some = common(record.array_tasks, tasks)
                if some is None:
                    return False
                left = without(record.array_tasks, some)
                if left is not None:
                    self.put(raw_id, array_tasks=str(left))
                    gone = replace(record, id=self.take_id(), array_tasks=some)
                    self.insert(gone)
                    raw_id = gone.id
            self.put(
                raw_id,
                state="CANCELLED",
                reason="",
                start_s=None,
                end_s=now_s,
                exit_code="0:0",
                cancelled_by_uid=uid,
            )
        return True

    def set_held(self, raw_id: int, *, held: bool) -> bool:
        """Hold or release what waits; what runs is held for its next requeue. `False` where it has ended."""
        with self.transaction():
            record = self.get(raw_id)
            if record is None or record.state.is_terminal:
                return False
            reason = ("JobHeldUser" if held else "") if record.state is JobState.PENDING else record.reason
            self.put(raw_id, held=int(held), reason=reason)
        return True

    def change(self, raw_id: int, **values: Any) -> None:
        """Set columns of a row."""
        with self.transaction():
            self.put(raw_id, **values)

    def change_request(self, raw_id: int, **fields: Any) -> None:
        """Set fields of what was asked for."""
        with self.transaction():
            record = self.get(raw_id)
            if record is not None:
                self.put(raw_id, request=replace(record.request, **fields).to_json())

    # -- housekeeping ---------------------------------------------------------------------

    def meta(self, name: str) -> str | None:
        with self._lock, _told(self.place.database):
            row = self._db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
            return None if row is None else str(row["value"])

    def set_meta(self, name: str, value: str) -> None:
        if self.meta(name) != value:
            with self.transaction() as db:
                db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    def settings(self) -> LocalSettings:
        """What the program that was opened last has set, for all processes."""
        text = self.meta("settings")
        return LocalSettings.from_json(text) if text else LocalSettings()

    def forget_before(self, moment_s: float) -> int:
        """Drop jobs that ended before that moment, with their folders; how many.

        An array's folder stays for as long as one of its tasks does.
        """
        with self.transaction() as db:
            old = [
                (row["id"], row["array_job_id"])
                for row in db.execute(
                    f"SELECT id, array_job_id FROM jobs WHERE state NOT IN {_LIVE} AND end_s < ?", (moment_s,)
                )
            ]
            for raw_id, _ in old:
                db.execute("DELETE FROM jobs WHERE id = ?", (raw_id,))
                db.execute("DELETE FROM runs WHERE job = ?", (raw_id,))
            kept = {row[0] for row in db.execute("SELECT DISTINCT array_job_id FROM jobs")}
        for raw_id, array in old:
            for number in {raw_id, array} - kept - {None}:
                shutil.rmtree(self.place.job_folder(number), ignore_errors=True)
        return len(old)


def _has_task(row: JobRecord, task: int) -> bool:
    return row.array_tasks is not None and task in row.array_tasks


def _new_record(raw_id: int, request: JobRequest, now_s: float) -> JobRecord:
    tasks = request.array
    return JobRecord(
        id=raw_id,
        request=request,
        state=JobState.PENDING,
        reason="JobHeldUser" if request.hold else "None",
        submit_s=now_s,
        array_job_id=None if tasks is None else raw_id,
        array_tasks=None if tasks is None else TaskSet(tasks.ranges),
        array_throttle=None if tasks is None else tasks.throttle,
        held=request.hold,
        priority=-request.nice,
        eligible_s=None if request.begin_s is not None or request.dependency else now_s,
        time_limit_s=request.time_limit_s,
        dependency=request.dependency,
    )


def _write(path: Path, data: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turn faults of the file and the disk into sentences."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(*_sentence(path, str(error))) from error
    except OSError as error:
        where = error.filename or path
        raise StoreError(
            f"{where}: {error.strerror or error}", "The queue of this machine could not be changed or read."
        ) from error


def _sentence(path: Path, words: str) -> tuple[str, str]:
    if "full" in words:
        return f"{path}: the disk or your quota is full", "Make room and try again; no job was lost."
    if "locked" in words or "busy" in words:
        return f"{path} is locked by another program for more than {_BUSY_S:.0f} s", "Try again."
    if "malformed" in words or "not a database" in words:
        return (
            f"{path} is damaged: {words}",
            f"Move it away (mv {path} {path}.damaged): the program then begins with an empty queue.",
        )
    if "readonly" in words or "unable to open" in words:
        return f"{path} cannot be written: {words}", "Who owns the folder, and is the file system writable?"
    return f"{path}: {words}", ""
