"""The process that makes passes while nobody else does."""

from __future__ import annotations

import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.schedulers.local.queue import dead_process, ended, python, submit, until
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local import rows, waiter
from tfjobtui.schedulers.local.place import Place
from tfjobtui.schedulers.local.records import Allocation
from tfjobtui.schedulers.local.store import Store

MODULE = ("-P", "-m", "tfjobtui.schedulers.local.waiter")
FAR_S = 3600.0


def later(store: Store, wait_s: float = FAR_S) -> int:
    return submit(store, begin_s=time.time() + wait_s).id


def test_there_is_one(store: Store, place: Place) -> None:
    job = later(store)
    children = [python(*MODULE, str(place.folder)) for _ in range(3)]
    until(lambda: [child.poll() for child in children].count(0) == 2)
    assert waiter.is_there(place)
    store.cancel_pending(job, None, 0, time.time())
    until(lambda: [child.poll() for child in children].count(0) == 3)
    assert not waiter.is_there(place)
    assert [child.communicate()[0] for child in children] == ["", "", ""]


def test_there_is_one_on_a_network_file_system(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Place, "is_on_network", True)
    monkeypatch.setattr(waiter, "_PATIENCE_S", 0.2)
    served = threading.Semaphore(0)
    over = threading.Event()

    def serve(place: Place) -> None:
        served.release()
        over.wait(30)

    monkeypatch.setattr(waiter, "_serve", serve)
    place.make()
    with ThreadPoolExecutor(4) as pool:
        mains = [pool.submit(waiter.main, [str(place.folder)]) for _ in range(4)]
        until(lambda: sum(main.done() for main in mains) == 3)
        over.set()
    assert served.acquire(blocking=False)
    assert not served.acquire(blocking=False)


def test_a_begin_time_comes_while_no_program_is_open(store: Store, place: Place) -> None:
    job = later(store, 1.0)
    waiter.ensure(place)
    (record,) = ended(store, job)
    assert record.state is JobState.COMPLETED
    assert (record.start_s or 0) >= (record.request.begin_s or 0)
    until(lambda: not waiter.is_there(place))


def test_a_dead_shepherd_is_noticed(store: Store, place: Place) -> None:
    job = submit(store)
    allocation = rows.allocation_value(Allocation((0,), 1))
    store.change(job.id, state="CONFIGURING", token="gone", allocation=allocation)
    store.take_over(job.id, "gone", dead_process(), time.time())
    waiter.ensure(place)
    (record,) = ended(store, job.id)
    assert record.state is JobState.NODE_FAIL


def test_who_only_looks_does_not_keep_it_away(
    store: Store, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = threading.Event()
    monkeypatch.setattr(waiter, "_serve", lambda place: served.set())
    with ThreadPoolExecutor(1) as pool:
        with waiter._locked(place) as got_it:
            assert got_it
            main = pool.submit(waiter.main, [str(place.folder)])
            assert not served.wait(0.1)
        assert main.result(10) == 0
    assert served.is_set()


def test_what_comes_while_it_ends_is_not_left(
    store: Store, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who submits sees the lock held until the very end, and starts no other waiter."""
    served = []

    def serve(place: Place) -> None:
        served.append(len(store.live()))
        if len(served) == 1:
            later(store)
        else:
            store.cancel_pending(1, None, 0, time.time())

    monkeypatch.setattr(waiter, "_serve", serve)
    assert waiter.main([str(place.folder)]) == 0
    assert served == [0, 1]


def test_it_makes_room_for_the_one_of_a_newer_program(store: Store, place: Place) -> None:
    later(store)
    with sqlite3.connect(place.database) as newer:
        newer.execute("PRAGMA user_version=99")
    newer.close()
    with python(*MODULE, str(place.folder)) as child:
        assert child.wait(30) == 0


def test_it_ends_with_its_folder(store: Store, place: Place) -> None:
    later(store)
    with python(*MODULE, str(place.folder)) as child:
        until(lambda: waiter.is_there(place))
        place.folder.rename(place.folder.with_name("gone"))
        assert child.wait(40) == 0


@pytest.mark.parametrize(
    ("state", "held", "reason", "is_needed"),
    [
        ("PENDING", False, "Resources", True),
        ("PENDING", False, "BeginTime", True),
        ("PENDING", True, "JobHeldUser", False),
        ("PENDING", False, "DependencyNeverSatisfied", False),
        ("CONFIGURING", False, "None", True),
        ("RUNNING", True, "None", True),
        ("COMPLETING", False, "None", True),
    ],
)
def test_what_it_is_there_for(store: Store, state: str, held: bool, reason: str, is_needed: bool) -> None:
    job = submit(store)
    store.change(job.id, state=state, held=int(held), reason=reason)
    assert waiter.is_needed(store.live()) == is_needed
