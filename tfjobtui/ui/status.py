"""The words of the line above the list: whose jobs, how many, how old, and what is wrong."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable

from tfjobtui.model.job import Job
from tfjobtui.model.state import StateGroup
from tfjobtui.model.text import printable
from tfjobtui.model.units import duration
from tfjobtui.monitor.poller import Refreshed, RefreshFailed
from tfjobtui.monitor.view import JobView
from tfjobtui.ui.services import Services
from tfjobtui.ui.widgets.bars import Part


class Freshness:
    """How good what is shown is: when it was read, and why not since."""

    def __init__(self) -> None:
        self.has_read = False
        self.at_s: float | None = None
        self.reason = ""
        self.next_try_at_s = 0.0
        self.silent_clusters: tuple[str, ...] = ()
        self.counted_for: tuple[int, int] = (0, -1)
        self.count = 0
        self.counts = ""
        self._everyone = False
        self._since_s = time.time()

    def change_scope(self) -> None:
        """Other jobs are to be shown: nothing has been read of those."""
        self.has_read = False
        self._since_s = time.time()

    def waited_s(self) -> float:
        """Seconds since the first reading was begun to be waited for."""
        return time.time() - self._since_s

    def scope_changed(self, everyone: bool) -> bool:
        changed, self._everyone = self._everyone != everyone, everyone
        return changed

    def read(self, update: Refreshed, at_s: float | None) -> bool:
        """Note a reading; true if it is the first of what is in view."""
        is_first = not self.has_read
        self.has_read, self.at_s, self.reason = True, at_s, ""
        self.silent_clusters = update.silent_clusters
        return is_first

    def failed(self, update: RefreshFailed) -> None:
        self.reason = printable(update.reason)
        self.next_try_at_s = time.time() + update.retry_s


def status_parts(services: Services, view: JobView, fresh: Freshness) -> tuple[list[Part], list[Part]]:
    """The parts on the left and on the right."""
    return _left(services, view, fresh), _right(fresh, time.time())


def trouble(fresh: Freshness) -> str:
    """Why what is shown is not up to date, in a line of its own; empty while all is well."""
    if fresh.reason:
        return fresh.reason
    if fresh.silent_clusters:
        return f"no answer from {printable(', '.join(fresh.silent_clusters))}: the rows of its jobs are old"
    return ""


def _left(services: Services, view: JobView, fresh: Freshness) -> list[Part]:
    about = services.scheduler.capabilities
    parts: list[Part] = [(" tfjobtui ", "bar--strong"), (f"{about.name} {about.version}".rstrip(), "")]
    whose = "everybody's jobs" if services.poller.everyone else "my jobs"
    counts = _counts(services, fresh)
    parts.append((f" · {whose}: {fresh.count:,}", ""))
    # What the user has set comes first: a narrow terminal cuts the end.
    if view.filter:
        parts.append((f" · /{printable(view.filter.text)}: {len(view.rows):,}", "bar--key"))
    if view.sort:
        parts.append((f" · by {view.sort}{' ▼' if view.reverse else ''}", ""))
    if view.marks:
        parts.append((f" · {len(view.marks):,} marked", "bar--key"))
    parts.append((counts, ""))
    return parts


def _counts(services: Services, fresh: Freshness) -> str:
    """How many run, wait and have ended; counted anew only when something has changed."""
    store = services.poller.store
    if fresh.counted_for != (id(store), store.version):
        fresh.counted_for = (id(store), store.version)
        fresh.count, fresh.counts = _count(store.jobs.values())
    return fresh.counts


def _count(jobs: Iterable[Job]) -> tuple[int, str]:
    """All of them, a folded array's tasks one by one, and the words for their states."""
    groups: Counter[StateGroup] = Counter()
    for job in jobs:
        groups[job.state.group] += job.task_count
    if not groups:
        return 0, ""
    ended = groups[StateGroup.GOOD] + groups[StateGroup.BAD] + groups[StateGroup.NEUTRAL]
    words = [f"{groups[StateGroup.ACTIVE]:,} running", f"{groups[StateGroup.WAITING]:,} waiting"]
    if ended:
        words.append(f"{ended:,} ended")
    return groups.total(), f" ({', '.join(words)})"


def _right(fresh: Freshness, now: float) -> list[Part]:
    age = None if fresh.at_s is None else max(0.0, now - fresh.at_s)
    if fresh.reason:
        old = f"{duration(age)} old" if age is not None and fresh.has_read else "not read"
        wait = max(0.0, fresh.next_try_at_s - now)
        return [(f" ⚠ {old}, again in {duration(wait)} ", "bar--warning")]
    if fresh.silent_clusters:
        return [(" ⚠ some clusters gave no answer ", "bar--warning")]
    if age is None or not fresh.has_read:
        return [(" reading … ", "")]
    return [(f" ● {duration(age)} ago ", "bar--good")]
