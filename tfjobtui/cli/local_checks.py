"""What `doctor` looks at where jobs run on this machine itself."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator

from tfjobtui.cli.checks import Finding, Mark
from tfjobtui.errors import StoreError
from tfjobtui.model.units import size
from tfjobtui.schedulers.local import logout, waiter
from tfjobtui.schedulers.local.machine import find_machine
from tfjobtui.schedulers.local.place import default_place
from tfjobtui.schedulers.local.settings import LocalSettings
from tfjobtui.schedulers.local.store import Store

_LITTLE_BYTES = 1 << 30


def local_scheduler(settings: LocalSettings, why: str, warning: str) -> Iterator[Finding]:
    """The queue of this machine, what jobs may have, and whether they outlive the logout."""
    yield Finding("scheduler", Mark.GOOD, "scheduler", f"local: {why}")
    if warning:
        yield Finding("scheduler.slurm", Mark.POOR, "scheduler", warning)
    place = default_place()
    try:
        with contextlib.closing(Store(place)) as store:
            live = store.live()
    except StoreError as error:
        yield Finding("queue", Mark.BAD, "queue", error.message, error.hint)
        return
    yield Finding("queue", Mark.GOOD, "queue", f"{place.database}; jobs that wait or run: {len(live)}")
    yield Finding("waiter", Mark.GOOD, "waiter", "running" if waiter.is_there(place) else "not needed now")
    if place.is_on_network:
        advice = "It works, without WAL; XDG_STATE_HOME on a local disk is faster."
        yield Finding("queue.network", Mark.NOTE, "queue", "it lies on a network file system", advice)
    free = shutil.disk_usage(place.folder).free
    if free < _LITTLE_BYTES:
        advice = "Make room: jobs whose logs cannot grow fail."
        yield Finding("disk", Mark.POOR, "disk", f"{size(free)} free in {place.folder}", advice)
    machine = find_machine(settings)
    gpus = ", ".join(gpu.kind for gpu in machine.gpus) or "none"
    text = f"{len(machine.cpus)} CPUs, {size(machine.memory_bytes)} of memory, GPUs: {gpus}"
    yield Finding("machine", Mark.GOOD, "for jobs", text)
    said = logout.warning()
    if said:
        yield Finding("logout", Mark.POOR, "logout", said)
