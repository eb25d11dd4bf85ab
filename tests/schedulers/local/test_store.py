"""The file with the jobs: several programs at once, a full disk, damage, and what a row goes through."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.schedulers.local import queue
from tests.schedulers.local.queue import ROOT, array, own_process, python, submit
from tfjobtui.errors import StoreError, StoreVersionError
from tfjobtui.model.ids import JobId
from tfjobtui.model.job import ExitCode
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local import rows
from tfjobtui.schedulers.local.place import Place
from tfjobtui.schedulers.local.records import Allocation, Ending, StepRecord, Usage
from tfjobtui.schedulers.local.request import JobRequest, LimitSignal
from tfjobtui.schedulers.local.store import Store

SUBMITTER = """
import sys
from pathlib import Path
from tests.schedulers.local.queue import submit
from tfjobtui.schedulers.local.place import Place
from tfjobtui.schedulers.local.store import Store
store = Store(Place(Path(sys.argv[1])))
print("ready", flush=True)
print(*(submit(store, f"echo {sys.argv[2]}-{n}", name=f"{sys.argv[2]}-{n}").id for n in range(int(sys.argv[3]))))
"""
FULL = """
import resource, shutil, sys
from pathlib import Path
from tests.schedulers.local.queue import submit
from tfjobtui.errors import StoreError
from tfjobtui.schedulers.local.place import Place
from tfjobtui.schedulers.local.store import Store
folder = Path(sys.argv[1])
store = Store(Place(folder / "queue"))
first = submit(store)
if sys.argv[2] == "limit":
    resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, resource.RLIM_INFINITY))
kept, words = [first.id], ""
for number in range(2000):
    try:
        kept.append(submit(store, "# " + "x" * 3000 * number).id)
    except StoreError as error:
        words = str(error).replace("\\n", " ")
        break
if sys.argv[2] == "limit":
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
else:
    shutil.rmtree(store.place.job_folder(kept[-1]))
    kept_folder = store.place.job_folder(kept[-1]).mkdir()
print(words)
print(kept == [job.id for job in store.jobs()])
print(kept == sorted(int(entry.name) for entry in (folder / "queue/jobs").iterdir()))
print(submit(store).id > kept[-1])
"""


def test_a_job_has_its_files_and_its_row(store: Store, place: Place) -> None:
    record = submit(store, "echo hello", name="first", cpus_per_task=2)
    assert record.id == 1
    assert place.script(1).read_text() == "#!/bin/sh\necho hello\n"
    assert b"PATH=" in place.environment(1).read_bytes()
    assert store.get(1) == record
    assert record.state is JobState.PENDING
    assert submit(store).id == 2


def test_nobody_else_can_look_into_it(store: Store, place: Place) -> None:
    submit(store)
    for path in (place.folder, *place.folder.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path


def test_everything_comes_back_as_it_was(store: Store) -> None:
    request = JobRequest(
        name="näme\udcff",
        command="/x",
        work_dir="/y",
        arguments=("a b", ""),
        signal=LimitSignal(10, 60, True),
        array=array((1, 3), throttle=2),
        notes=("one",),
    )
    record = store.submit(request, b"", {}, 5.0)
    assert store.get(record.id) == record
    assert record.request.array is not None
    assert record.request.array.throttle == record.array_throttle == 2


# ---- Several at once


def test_two_programs_submit_at_once(place: Place) -> None:
    children = [python("-c", SUBMITTER, str(place.folder), name, "200") for name in ("a", "b")]
    ids = [int(word) for child in children for word in child.communicate()[0].split()[1:]]
    assert len(ids) == 400
    assert sorted(ids) == list(range(1, 401))
    store = Store(place)
    names = {record.request.name: record.id for record in store.jobs()}
    assert names.keys() == {f"{program}-{number}" for program in "ab" for number in range(200)}
    for name, number in names.items():
        assert place.script(number).read_text() == f"#!/bin/sh\necho {name}\n"
    store.close()


def test_many_open_a_new_queue_at_once(place: Place) -> None:
    children = [python("-c", SUBMITTER, str(place.folder), str(number), "1") for number in range(6)]
    assert sorted(child.communicate()[0].split()[1] for child in children) == list("123456")
    assert [child.returncode for child in children] == [0] * 6


def test_changes_of_others_are_seen(store: Store, place: Place) -> None:
    other = Store(place)
    before = store.change_counter()
    assert store.live() == ()
    job = submit(other)
    assert store.change_counter() != before
    assert store.live() == (job,)
    other.close()


def test_rows_that_have_not_changed_are_not_read_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        submit(store, name=f"job-{number}")
    before = store.jobs(since_s=0.0)
    assert store.jobs(since_s=0.0) == before
    store.set_held(3, held=True)
    after = store.jobs(since_s=0.0)
    assert [one is other for one, other in zip(before, after, strict=True)].count(False) == 1
    assert after[2].held
    monkeypatch.setattr(store, "_select", lambda *_: pytest.fail("nothing has changed"))
    assert store.jobs(since_s=0.0) == after


def test_what_was_read_in_a_change_that_failed_does_not_stay(store: Store) -> None:
    job = submit(store)

    def fail() -> None:
        with store.transaction():
            store.put(job.id, reason="Resources")
            assert store.live()[0].reason == "Resources"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert store.live()[0].reason == "None"
    assert store.jobs(since_s=0.0)[0].reason == "None"


def test_a_change_that_cannot_be_finished_leaves_nothing_open(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a rollback journal a reader keeps a writer from its end."""
    monkeypatch.setattr("tfjobtui.schedulers.local.store._BUSY_S", 0.1)
    monkeypatch.setattr(Place, "is_on_network", True)
    store = Store(place)
    job = submit(store)
    with sqlite3.connect(place.database, isolation_level=None) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM jobs").fetchall()
        with pytest.raises(StoreError, match="locked"):
            store.change(job.id, reason="Resources")
    reader.close()
    assert store.live()[0].reason == "None"
    store.change(job.id, reason="Priority")
    assert store.live()[0].reason == "Priority"
    store.close()


def test_on_a_network_file_system_there_is_no_shared_memory(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Place, "is_on_network", True)
    store = Store(place)
    submit(store)
    assert {path.name for path in place.folder.iterdir()} == {"queue.db", "queue.db-journal", "jobs"}
    other = Store(place)
    assert other.live() == store.live()
    before = store.change_counter()
    other.set_held(1, held=True)
    assert store.change_counter() != before
    assert store.live()[0].held
    store.close()
    other.close()


# ---- A full disk


def test_a_full_file_refuses_in_a_sentence(store: Store, place: Place) -> None:
    kept = submit(store)
    (pages,) = store._db.execute("PRAGMA page_count").fetchone()
    store._db.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(StoreError, match="full") as caught:
        submit(store, comment="x" * 100_000)
    assert "Make room" in caught.value.hint
    assert store.jobs() == (kept,)
    assert [entry.name for entry in (place.folder / "jobs").iterdir()] == ["1"]
    store._db.execute("PRAGMA max_page_count=1000000")
    assert submit(store).id > kept.id


def test_a_full_disk_leaves_nothing_half(tmp_path: Path) -> None:
    """On a file system of 600 kB of its own, where this user may make one, else by a limit on file sizes."""
    inside = 'mount -t tmpfs -o size=600k none "$1" && exec "$2" -c "$3" "$1" disk'
    words = ("unshare", "-Urm", "sh", "-c", inside, "sh", str(tmp_path), sys.executable, FULL)
    alone = ("unshare", "-Urm", "sh", "-c", 'mount -t tmpfs none "$1"', "sh", str(tmp_path))
    if shutil.which("unshare") is None or subprocess.run(alone, capture_output=True, check=False).returncode:
        words = (sys.executable, "-c", FULL, str(tmp_path), "limit")
    said = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    sentence, *rest = said.stdout.splitlines()
    assert "the disk or your quota is full" in sentence
    assert rest == ["True", "True", "True"]


def test_a_limit_on_the_size_of_files_is_a_full_disk(tmp_path: Path) -> None:
    said = subprocess.run(
        (sys.executable, "-c", FULL, str(tmp_path), "limit"),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    assert "full" in said.stdout.splitlines()[0]
    assert said.stdout.splitlines()[1:] == ["True", "True", "True"]


# ---- A file that is not ours, or not whole


def test_a_newer_file_is_not_touched(store: Store, place: Place) -> None:
    submit(store)
    store.close()
    with sqlite3.connect(place.database) as newer:
        newer.execute("PRAGMA journal_mode=DELETE")
        newer.execute("PRAGMA user_version=99")
    newer.close()
    before = place.database.read_bytes()
    with pytest.raises(StoreVersionError, match="version 99") as caught:
        Store(place)
    assert "newer tfjobtui" in caught.value.hint
    assert place.database.read_bytes() == before


@pytest.mark.parametrize("damage", ["garbage", "cut", "page"])
def test_a_damaged_file_is_refused_and_kept(store: Store, place: Place, damage: str) -> None:
    for _ in range(20):
        submit(store, comment="x" * 1000)
    store.close()
    data = bytearray(place.database.read_bytes())
    if damage == "garbage":
        data = bytearray(b"no database" * 1000)
    elif damage == "cut":
        del data[len(data) // 2 :]
    else:
        data[4096:] = b"\xa5" * (len(data) - 4096)
    place.database.write_bytes(data)
    for path in place.folder.glob("queue.db-*"):
        path.unlink()
    with pytest.raises(StoreError, match="damaged") as caught, contextlib.closing(Store(place)) as store:
        store.jobs()
    assert "Move it away" in caught.value.hint
    assert place.database.read_bytes() == data


def test_a_row_that_cannot_be_read_is_damage_too(store: Store) -> None:
    job = submit(store)
    store.change(job.id, request="{")
    with pytest.raises(StoreError, match="damaged"):
        store.jobs()


def test_after_a_damaged_file_was_moved_away_ids_go_on(store: Store, place: Place) -> None:
    submit(store)
    submit(store)
    store.close()
    for path in place.folder.glob("queue.db*"):
        path.rename(path.with_name(f"{path.name}.damaged"))
    new = Store(place)
    assert new.jobs() == ()
    assert submit(new).id == 3
    new.close()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file"):
        Store(Place(tmp_path / "file" / "queue"))


# ---- What a row goes through


def planned(store: Store, job: int, token: str = "token") -> None:
    allocation = rows.allocation_value(Allocation((0,), 1))
    store.change(job, state="CONFIGURING", token=token, claimed="boot 1", allocation=allocation)


def ending(state: JobState = JobState.COMPLETED, **values: object) -> Ending:
    return Ending(state, **{"exit_code": ExitCode(0), "end_s": 200.0, **values})  # type: ignore[arg-type]


def test_a_start_is_taken_over_once(store: Store) -> None:
    job = submit(store)
    planned(store, job.id)
    assert store.take_over(job.id, "another", own_process(), 100.0) is None
    taken = store.take_over(job.id, "token", own_process(), 100.0)
    assert taken is not None
    assert (taken.state, taken.start_s, taken.shepherd) == (JobState.RUNNING, 100.0, own_process())
    assert store.take_over(job.id, "token", own_process(), 101.0) is None


def test_an_end_is_kept_once(store: Store) -> None:
    job = submit(store)
    planned(store, job.id)
    store.take_over(job.id, "token", own_process(), 100.0)
    assert not store.finish(job.id, "another", ending())
    step = StepRecord("batch", "batch", 1, 100.0, 200.0, JobState.FAILED, ExitCode(3), Usage(cpu_s=1.5))
    bad = ending(JobState.FAILED, exit_code=ExitCode(3), usage=Usage(peak_rss_bytes=9), steps=(step,))
    assert store.finish(job.id, "token", bad)
    assert not store.finish(job.id, "token", ending())
    (record,) = store.jobs()
    assert (record.state, record.exit_code, record.end_s) == (JobState.FAILED, ExitCode(3), 200.0)
    assert (record.usage, record.steps) == (bad.usage, (step,))
    assert store.live() == ()


def test_a_requeued_job_waits_again(store: Store) -> None:
    job = submit(store)
    planned(store, job.id)
    store.take_over(job.id, "token", own_process(), 100.0)
    again = ending(JobState.REQUEUED, back_to_queue=True)
    assert store.finish(job.id, "token", again)
    assert not store.finish(job.id, "token", again)
    (record,) = store.live()
    assert (record.state, record.restarts, record.token) == (JobState.PENDING, 1, "")
    assert (record.start_s, record.allocation, record.shepherd, record.held) == (None, None, None, False)
    assert store.runs(job.id) == ((100.0, again),)


@pytest.mark.parametrize("held_before", [True, False])
def test_a_requeued_job_may_be_held(store: Store, held_before: bool) -> None:
    job = submit(store)
    planned(store, job.id)
    store.take_over(job.id, "token", own_process(), 100.0)
    if held_before:
        store.set_held(job.id, held=True)
    store.finish(job.id, "token", ending(JobState.REQUEUED, back_to_queue=True, hold=not held_before))
    (record,) = store.live()
    assert (record.held, record.reason) == (True, "JobHeldUser")


def test_a_start_that_was_taken_over_meanwhile_is_not_put_back(store: Store) -> None:
    job = submit(store)
    planned(store, job.id)
    seen = store.get(job.id)
    assert seen is not None
    assert store.take_over(job.id, "token", own_process(), 100.0) is not None
    assert not store.put_back(seen)
    assert store.live()[0].state is JobState.RUNNING


def test_a_start_that_nobody_took_over_is_put_back(store: Store) -> None:
    job = submit(store)
    planned(store, job.id)
    seen = store.get(job.id)
    assert seen is not None
    assert store.put_back(seen)
    assert store.take_over(job.id, "token", own_process(), 100.0) is None
    (record,) = store.live()
    assert (record.state, record.restarts, record.allocation) == (JobState.PENDING, 0, None)


def test_what_an_id_means(store: Store) -> None:
    submit(store)
    whole = submit(store, array=array((1, 5)))
    store.change(whole.id, array_tasks="2-5")
    task = store.take_id()
    store.insert(queue.waiting(task, array_job_id=whole.id, array_task_id=1))

    def ids(text: str) -> list[int]:
        return [record.id for record in store.find(JobId.parse(text))]

    assert ids("1") == [1]
    assert ids("2") == [2, 3]
    assert ids("2_1") == ids("3") == [3]
    assert ids("2_4") == ids("2_[4-9]") == [2]
    assert ids("2_[1,5]") == [2, 3]
    assert ids("2_7") == ids("9") == ids("1_1") == ids("2+1") == []


def test_some_tasks_of_a_waiting_rest_are_cancelled(store: Store) -> None:
    whole = submit(store, array=array((1, 5)))
    assert store.cancel_pending(whole.id, array((2, 3)), 1000, 50.0)
    assert not store.cancel_pending(whole.id, array((2, 3)), 1000, 51.0)
    rest, gone = store.find(JobId(whole.id))
    assert (str(rest.array_tasks), rest.state) == ("1,4-5", JobState.PENDING)
    assert (str(gone.array_tasks), gone.state, gone.cancelled_by_uid) == ("2-3", JobState.CANCELLED, 1000)
    assert store.cancel_pending(whole.id, None, 1000, 52.0)
    assert store.live() == ()


def test_a_job_that_has_ended_can_run_again(store: Store) -> None:
    job = submit(store)
    assert not store.run_again(job.id, hold=False, now_s=300.0)
    planned(store, job.id)
    store.take_over(job.id, "token", own_process(), 100.0)
    store.finish(job.id, "token", ending(JobState.FAILED, exit_code=ExitCode(1)))
    assert store.run_again(job.id, hold=False, now_s=300.0)
    (record,) = store.live()
    assert (record.state, record.restarts, record.exit_code) == (JobState.PENDING, 1, None)
    assert [run.state for _, run in store.runs(job.id)] == [JobState.FAILED]


def test_old_jobs_are_forgotten_with_their_folders(store: Store, place: Place) -> None:
    old, fresh, live = submit(store), submit(store), submit(store)
    whole = submit(store, array=array((1, 2)))
    store.change(old.id, state="COMPLETED", end_s=100.0)
    store.change(fresh.id, state="COMPLETED", end_s=900.0)
    store.change(whole.id, state="COMPLETED", array_tasks=None, array_task_id=2, end_s=100.0)
    task = store.take_id()
    store.insert(queue.waiting(task, array_job_id=whole.id, array_task_id=1))
    assert store.forget_before(500.0) == 2
    assert [record.id for record in store.jobs()] == [fresh.id, live.id, task]
    # The task that waits needs the script of its array.
    assert [place.job_folder(number).exists() for number in (1, 2, 3, 4)] == [False, True, True, True]


def test_what_another_job_waits_for_is_not_forgotten(store: Store) -> None:
    """Else it would be one that is not known, and what waits for it would start."""
    bad = submit(store)
    store.change(bad.id, state="FAILED", end_s=100.0)
    other = submit(store, dependency=f"afterok:{bad.id}")
    assert store.forget_before(500.0) == 0
    store.cancel_pending(other.id, None, 1000, 600.0)
    assert store.forget_before(500.0) == 1


def test_what_a_killed_submission_has_left_is_dropped_after_a_day(store: Store, place: Place) -> None:
    submit(store)
    for number, age_s in ((7, 100_000), (8, 10)):
        place.job_folder(number).mkdir()
        moment = place.job_folder(1).stat().st_mtime - age_s
        os.utime(place.job_folder(number), (moment, moment))
    os.utime(place.job_folder(1), (0, 0))
    store.forget_left_behind()
    assert sorted(entry.name for entry in (place.folder / "jobs").iterdir()) == ["1", "8"]
