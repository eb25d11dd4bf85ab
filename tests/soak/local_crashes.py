"""Processes of the embedded scheduler killed at random moments; afterwards every job is accounted for.

Each start of a script writes a line of its own into a ledger. The ledger and the records have to agree: a job
that ended well has run once more than it was requeued and never at the same time as itself, and nothing with a
job's token is alive.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import psutil

from tfjobtui.errors import StoreError
from tfjobtui.model.ids import TaskSet
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local import dispatch
from tfjobtui.schedulers.local.place import FOLDER_VARIABLE, TOKEN_VARIABLE, Place
from tfjobtui.schedulers.local.records import JobRecord
from tfjobtui.schedulers.local.request import JobRequest
from tfjobtui.schedulers.local.settings import LocalSettings
from tfjobtui.schedulers.local.store import Store

ROOT = Path(__file__).parents[2]
PATIENCE_S = 90.0
_SCRIPT = b"""#!/bin/bash
id=${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}_${SLURM_ARRAY_TASK_ID:-x}
echo "begin $id ${SLURM_RESTART_COUNT:-0} $$" >>ledger
(trap '' TERM; exec sleep 300) &
setsid sleep 300 &
sleep 0.$((RANDOM % 4))
echo "end $id ${SLURM_RESTART_COUNT:-0} $$" >>ledger
"""
_PASSER = """
import sys, time
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from tfjobtui.schedulers.local.dispatch import make_pass
from tfjobtui.schedulers.local.place import Place
while True:
    make_pass(Place(Path(sys.argv[2])))
    time.sleep(0.02)
"""


def run_crashes(folder: Path, seed: int, kills: int) -> None:
    """Submit jobs of all kinds, kill at random, and account for everything.

    Raises:
        AssertionError: something was lost, ran twice, or is left.
    """
    chance = random.Random(seed)
    place = Place(folder / "state")
    store = Store(place)
    store.set_meta("settings", LocalSettings(kill_wait_s=0.5).to_json())
    programs = [_program(place) for _ in range(2)]
    try:
        submitted: list[JobRecord] = []
        for _ in range(kills):
            submitted += _submit_some(store, folder, chance)
            time.sleep(chance.uniform(0, 0.3))
            _kill_one(place, store, programs, chance)
        _wait_for_all(place, store)
        _account(place, store, folder, submitted)
    finally:
        for program in programs:
            program.kill()
            program.wait()
        store.close()


def _program(place: Place) -> subprocess.Popen[bytes]:
    """Stands for a program that is open and makes passes."""
    return subprocess.Popen(
        [sys.executable, "-P", "-c", _PASSER, str(ROOT), str(place.folder)],
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def _submit_some(store: Store, folder: Path, chance: random.Random) -> list[JobRecord]:
    made: list[JobRecord] = []
    for _ in range(chance.randint(1, 2)):
        kind = chance.choice(("plain", "requeue", "array", "after"))
        request = JobRequest(
            name=kind,
            command="/x.sh",
            work_dir=str(folder),
            stdout="/dev/null",
            requeue=True if kind != "plain" else None,
            array=TaskSet(((0, 2, 1),), 2) if kind == "array" else None,
            dependency=f"afterany:{made[-1].id}" if kind == "after" and made else "",
        )
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
        made.append(store.submit(request, _SCRIPT, environment, time.time()))
    return made


def _kill_one(
    place: Place, store: Store, programs: list[subprocess.Popen[bytes]], chance: random.Random
) -> None:
    """A shepherd, the waiter, an open program, or all of them; a killed program is opened again."""
    what = chance.choice(("shepherd", "shepherd", "waiter", "program", "all"))
    number = chance.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGTERM))
    if what in ("shepherd", "all"):
        shepherds = [record.shepherd for record in store.live() if record.shepherd is not None]
        for identity in shepherds if what == "all" else shepherds[:1]:
            identity.send(number)
    if what in ("waiter", "all"):
        for process in _ours(place, "waiter"):
            process.kill()
    if what in ("program", "all"):
        index = chance.randrange(len(programs))
        programs[index].kill()
        programs[index].wait()
        programs[index] = _program(place)


def _ours(place: Place, what: str) -> Iterable[psutil.Process]:
    """The scheduler's own processes of this place."""
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if str(place.folder) in words and any(word.endswith(f"schedulers.local.{what}") for word in words):
            yield process


def _wait_for_all(place: Place, store: Store) -> None:
    end = time.monotonic() + PATIENCE_S
    while live := store.live():
        with contextlib.suppress(StoreError):
            dispatch.make_pass(place, store)
        assert time.monotonic() < end, [(record.job_id, record.state, record.reason) for record in live]
        time.sleep(0.1)


def _account(place: Place, store: Store, folder: Path, submitted: list[JobRecord]) -> None:
    begun: Counter[str] = Counter()
    ended: Counter[str] = Counter()
    seen: set[str] = set()
    for line in (folder / "ledger").read_text().splitlines():
        verb, name, restart, pid = line.split()
        (begun if verb == "begin" else ended)[name] += 1
        # One number of restarts means one start: a second one with it would have run unseen.
        assert verb != "begin" or f"{name} {restart}" not in seen, line
        seen |= {f"{name} {restart}"} if verb == "begin" else set()
        assert pid.isdigit()
    records = store.jobs()
    names = Counter(_name(record) for record in records)
    assert all(count == 1 for count in names.values()), names
    expected = {name for record in submitted for name in _names(record)}
    assert expected == set(names), "a job was lost"
    assert set(begun) <= expected
    for record in records:
        name = _name(record)
        assert record.state in (JobState.COMPLETED, JobState.NODE_FAIL), (name, record.state, record.reason)
        assert begun[name] <= record.restarts + 1, (name, begun[name], record.restarts)
        if record.state is JobState.COMPLETED:
            assert ended[name] >= 1, name
            assert begun[name] >= 1, name
        assert record.request.requeue is True or record.restarts == 0
    assert _with_token(place) == [], "something of a job is left"


def _name(record: JobRecord) -> str:
    return (
        f"{record.array_job_id or record.id}_{'x' if record.array_task_id is None else record.array_task_id}"
    )


def _names(record: JobRecord) -> list[str]:
    tasks = record.request.array
    return [f"{record.id}_x"] if tasks is None else [f"{record.id}_{task}" for task in tasks]


def _with_token(place: Place) -> list[str]:
    """Processes of this place's jobs that live; the waiter and the last shepherds may still be leaving."""
    end = time.monotonic() + 10
    while True:
        found = []
        for process in psutil.process_iter():
            try:
                environment = process.environ()
                words = process.cmdline()
            except psutil.Error:
                continue
            is_own = any("schedulers.local" in word for word in words)
            if (
                environment.get(FOLDER_VARIABLE) == str(place.folder)
                and TOKEN_VARIABLE in environment
                and not is_own
            ):
                found.append(f"{process.pid} {words}")
        if not found or time.monotonic() > end:
            return found
        time.sleep(0.1)
