"""The jobs of the embedded scheduler, in an SQLite file that several programs may open at once.

A write is one transaction that begins with the write lock (`BEGIN IMMEDIATE`), so that what it read still
holds when it writes. On a local file system the file is in WAL mode (a reader does not wait for a writer);
on a network one, where WAL's shared memory does not work, it keeps a rollback journal.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tfjobtui.errors import FormatError, StoreError, StoreVersionError
from tfjobtui.model.ids import JobId, TaskSet
from tfjobtui.model.job import ExitCode
from tfjobtui.model.state import JobState
from tfjobtui.paths import make_private
from tfjobtui.schedulers.local import dependencies, rows
from tfjobtui.schedulers.local.identity import ProcessIdentity
from tfjobtui.schedulers.local.place import Place
from tfjobtui.schedulers.local.records import Ending, JobRecord
from tfjobtui.schedulers.local.request import JobRequest
from tfjobtui.schedulers.local.settings import LocalSettings
from tfjobtui.schedulers.local.tasksets import common, without

VERSION = 1
"""Of the tables. A newer program changes it, and an older one then does not touch the file."""
_BUSY_S = 10.0
_ACTIVE = ("CONFIGURING", "RUNNING", "COMPLETING")
_LIVE = ("PENDING", *_ACTIVE)
_MOST_KNOWN = 5000
"""Records that are kept besides those that were read last."""
_LEFT_BEHIND_S = 86400.0


@dataclass(frozen=True, slots=True)
class _Answer:
    """What was read, when the file was of that version."""

    version: tuple[int, int]
    since_s: float
    records: tuple[JobRecord, ...]


class Store:
    """The file of one place. Every method may raise `StoreError`; it may be used by several threads."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.planned: tuple[tuple[int, int], float] | None = None
        """Kept for `dispatch`: the version that was planned last, and until when that plan holds."""
        self._lock = threading.RLock()
        self._known: dict[int, tuple[rows.Row, JobRecord]] = {}
        self._live: _Answer | None = None
        self._recent: _Answer | None = None
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
        self._check_version()  # before anything changes the file
        self._set_journal_mode("TRUNCATE" if self.place.is_on_network else "WAL")
        # What was committed shall be there after a loss of power too: a start must not be forgotten.
        self._db.execute("PRAGMA synchronous=FULL")
        if self._check_version() == 0:
            with self.transaction():
                if self._check_version() == 0:
                    self._make_tables()

    def _check_version(self) -> int:
        (found,) = self._db.execute("PRAGMA user_version").fetchone()
        if found not in (0, VERSION):
            raise StoreVersionError(
                f"{self.place.database} is of version {found}; this program knows version {VERSION}",
                "Use the newer tfjobtui that wrote it.",
            )
        return int(found)

    def _set_journal_mode(self, mode: str) -> None:
        """SQLite does not wait for another program that is just doing the same."""
        end = time.monotonic() + _BUSY_S
        while True:
            try:
                self._db.execute(f"PRAGMA journal_mode={mode}").fetchone()
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > end:
                    raise
                time.sleep(0.02)

    def _make_tables(self) -> None:
        for statement in rows.SCHEMA.split(";"):
            self._db.execute(statement)
        # Where a damaged file was moved away, its jobs' folders are still there, and some may be running.
        used = [int(entry.name) for entry in self._folders()]
        self._db.execute("INSERT INTO meta VALUES ('next_id', ?)", (str(max(used, default=0) + 1),))
        self._db.execute(f"PRAGMA user_version={VERSION}")

    def _folders(self) -> list[os.DirEntry[str]]:
        """The folders of jobs."""
        with os.scandir(self.place.folder / "jobs") as entries:
            return [entry for entry in entries if entry.name.isdigit()]

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
                self._db.execute("COMMIT")
            except BaseException:
                self._live = self._recent = None  # they may have been read within it
                # A full disk may have rolled it back already.
                with contextlib.suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
                raise

    def version(self) -> tuple[int, int]:
        """Another pair of numbers after any change, also one of this object's own."""
        return self.change_counter(), self._db.total_changes

    def _select(self, where: str = "", values: Sequence[object] = ()) -> tuple[JobRecord, ...]:
        with self._lock, _told(self.place.database):
            cursor = self._db.cursor()
            cursor.row_factory = None
            found = cursor.execute(f"{rows.SELECT} {where} ORDER BY id", tuple(values)).fetchall()
            return tuple(map(self._record, found))

    def _record(self, row: rows.Row) -> JobRecord:
        """The record of a row; the same object for as long as the row is the same."""
        known = self._known.get(row[0])
        if known is not None and known[0] == row:
            return known[1]
        try:
            record = rows.record_of(row)
        except (ValueError, KeyError, TypeError, FormatError) as error:
            raise StoreError(*_sentence(self.place.database, f"malformed row {row[0]}: {error}")) from error
        self._known[row[0]] = (row, record)
        return record

    def _answer(self, known: _Answer | None, since_s: float, where: str, *values: object) -> _Answer:
        """The answer that is known if nothing has changed, else one that is read."""
        with self._lock:
            version = self.version()
            if known is not None and known.version == version and known.since_s <= since_s:
                return known
            found = self._select(where, values)
            if len(self._known) > 2 * len(found) + _MOST_KNOWN:
                ids = {record.id for record in found}
                self._known = {key: value for key, value in self._known.items() if key in ids}
            return _Answer(version, since_s, found)

    # -- reading --------------------------------------------------------------------------

    def jobs(self, *, since_s: float | None = None) -> tuple[JobRecord, ...]:
        """What has not ended, and what ended after that moment; without one everything."""
        if since_s is None:
            return self._select()
        self._recent = self._answer(self._recent, since_s, f"WHERE state IN {_LIVE} OR end_s >= ?", since_s)
        return tuple(
            record
            for record in self._recent.records
            if not record.state.is_terminal or _ended(record) >= since_s
        )

    def live(self) -> tuple[JobRecord, ...]:
        """What has not ended."""
        self._live = self._answer(self._live, 0.0, f"WHERE state IN {_LIVE}")
        return self._live.records

    def active(self) -> tuple[JobRecord, ...]:
        """What is starting, runs or is being ended."""
        return self._select(f"WHERE state IN {_ACTIVE}")

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
                _sync_folder(folder)
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

    def put_back(self, record: JobRecord) -> bool:
        """Let a start whose script never ran wait again, as if it had not been planned.

        `False` where it is not that start any more, or somebody has taken it over meanwhile.
        """
        shepherd = None if record.shepherd is None else rows.identity_value(record.shepherd)
        with self.transaction() as db:
            changed = db.execute(
                "UPDATE jobs SET state = 'PENDING', reason = 'None', token = '', shepherd = NULL, claimed = NULL,"
                " allocation = NULL, start_s = NULL WHERE id = ? AND token = ? AND state = ? AND shepherd IS ?",
                (record.id, record.token, record.state.long, shepherd),
            ).rowcount
        return bool(changed)

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

        An array's folder stays for as long as one of its tasks does, and a job for as long as one waits for it:
        how it ended would be forgotten, and the other one started.
        """
        with self.transaction() as db:
            wanted = self._waited_for()
            old = [
                (row["id"], row["array_job_id"])
                for row in db.execute(
                    f"SELECT id, array_job_id FROM jobs WHERE state NOT IN {_LIVE} AND end_s < ?", (moment_s,)
                )
                if not wanted & {row["id"], row["array_job_id"]}
            ]
            for raw_id, _ in old:
                db.execute("DELETE FROM jobs WHERE id = ?", (raw_id,))
                db.execute("DELETE FROM runs WHERE job = ?", (raw_id,))
            kept = {row[0] for row in db.execute("SELECT DISTINCT array_job_id FROM jobs")}
        for raw_id, array in old:
            for number in {raw_id, array} - kept - {None}:
                shutil.rmtree(self.place.job_folder(number), ignore_errors=True)
        return len(old)

    def _waited_for(self) -> set[int]:
        """The jobs that others wait for."""
        found = self._db.execute(f"SELECT dependency FROM jobs WHERE state IN {_LIVE} AND dependency != ''")
        return {term.job for (text,) in found for term in dependencies.parse(text).terms}

    def forget_left_behind(self) -> None:
        """Drop the folders of submissions that were killed between their files and their row."""
        with self._lock, _told(self.place.database):
            known = {
                number for row in self._db.execute("SELECT id, array_job_id FROM jobs") for number in row
            }
            for entry in self._folders():
                old = time.time() - entry.stat().st_mtime > _LEFT_BEHIND_S
                if old and int(entry.name) not in known:
                    shutil.rmtree(entry.path, ignore_errors=True)


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


def _sync_folder(folder: Path) -> None:
    """Keep the names in it, too, over a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # some file systems do not do it
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _ended(record: JobRecord) -> float:
    return 0.0 if record.end_s is None else record.end_s


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turn faults of the file and the disk into sentences."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(*_sentence(path, str(error))) from error
    except OSError as error:
        where = Path(error.filename or path)
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise StoreError(*_sentence(where, "full")) from error
        raise StoreError(
            f"{where}: {error.strerror or error}", "The queue of this machine could not be changed or read."
        ) from error


def _sentence(path: Path, words: str) -> tuple[str, str]:
    if "full" in words:
        return f"{path}: the disk or your quota is full", "Make room and try again; no job was lost."
    if "I/O" in words:
        return f"{path}: {words}", "Is the disk or your quota full? Then make room and try again."
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
