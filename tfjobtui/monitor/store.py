"""The jobs that are known: those of the last good reading, and those that ended while we watched."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tfjobtui.model.ids import JobId
from tfjobtui.model.job import Job
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.scheduler import EndedJob, QueueAnswer


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """What a reading changed, by key. `vanished` left the queue without a word how they ended."""

    added: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    vanished: tuple[Job, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


class JobStore:
    """Jobs by key, in the scheduler's order, the ended ones kept for the session.

    With `keeps_ended` false (everybody's jobs) what leaves the queue leaves the store.
    """

    def __init__(self, *, keeps_ended: bool = True) -> None:
        self._keeps_ended = keeps_ended
        self._jobs: dict[str, Job] = {}
        self._forgotten: dict[str, int] = {}
        self._last: tuple[Job, ...] = ()
        self.version = 0
        """Another number whenever something has changed."""

    @property
    def jobs(self) -> dict[str, Job]:
        """All that are known, by key. Not to be changed by the caller."""
        return self._jobs

    def get(self, key: str) -> Job | None:
        return self._jobs.get(key)

    def apply(self, answer: QueueAnswer) -> ChangeSet:
        """Take over a good reading of the queue."""
        if len(answer.jobs) == len(self._last) and all(map(operator.is_, answer.jobs, self._last)):
            return ChangeSet()  # the reader gives the same job for the same row
        self._last = answer.jobs
        old = self._jobs
        new: dict[str, Job] = {job.key: job for job in answer.jobs}
        self._drop_forgotten(new)
        added = frozenset(new.keys() - old.keys())
        changed = frozenset(
            key for key, job in new.items() if key in old and old[key] is not job and old[key] != job
        )
        missing = [old[key] for key in old.keys() - new.keys()]
        kept, vanished = self._missing(missing, new, frozenset(answer.silent_clusters))
        for job in kept:
            new[job.key] = job
        self._jobs = new
        self.version += 1
        removed = frozenset(job.key for job in missing if job.key not in new)
        newly = tuple(job for job in vanished if not old[job.key].state.is_terminal)
        return ChangeSet(added, changed | {job.key for job in newly}, removed, newly)

    def _drop_forgotten(self, new: dict[str, Job]) -> None:
        """Leave out what the user took off the list, unless it lives again (a requeue) or the id is another job's."""
        for key, raw_id in list(self._forgotten.items()):
            job = new.get(key)
            if job is None:
                continue
            if job.state.is_terminal and job.raw_id == raw_id:
                del new[key]
            else:
                del self._forgotten[key]

    def _missing(
        self, missing: Iterable[Job], new: dict[str, Job], silent: frozenset[str]
    ) -> tuple[list[Job], list[Job]]:
        """Which of the rows that are no longer in the queue stay, and which of them ended unseen."""
        kept: list[Job] = []
        vanished: list[Job] = []
        missing = list(missing)
        rest_gone = any(job.id.tasks is not None for job in missing)
        present = {(job.cluster, job.id.job) for job in new.values()} if rest_gone else set()
        for job in missing:
            if job.cluster is not None and job.cluster in silent:
                kept.append(job)
            elif not self._keeps_ended:
                continue
            elif job.state.is_terminal:
                kept.append(job)
            elif job.id.tasks is not None and (job.cluster, job.id.job) in present:
                continue  # the last waiting tasks have started, or were cancelled: other rows tell of them
            else:
                gone = dataclasses.replace(job, state=JobState.GONE, state_text="GONE", reason="")
                kept.append(gone)
                vanished.append(gone)
        return kept, vanished

    def ended(self, endings: Sequence[EndedJob]) -> ChangeSet:
        """Take over how vanished jobs ended. Jobs that have come back to the queue are left alone."""
        changed: set[str] = set()
        gone = {(job.id, job.raw_id): job for job in self._jobs.values() if job.state is JobState.GONE}
        by_id = {job_id: job for (job_id, _), job in gone.items()}
        for end in endings:
            job = gone.get((end.id, end.raw_id)) or by_id.get(end.id) or by_id.get(JobId(end.raw_id))
            if job is None or not end.state.is_terminal:
                continue
            self._jobs[job.key] = _with_ending(job, end)
            self.version += 1
            changed.add(job.key)
        return ChangeSet(changed=frozenset(changed))

    def forget(self, keys: Iterable[str]) -> ChangeSet:
        """Drop ended jobs from the list, at the user's wish, for as long as they do not live again."""
        removed = {key for key in keys if key in self._jobs and self._jobs[key].state.is_terminal}
        for key in removed:
            self._forgotten[key] = self._jobs.pop(key).raw_id
            self.version += 1
        return ChangeSet(removed=frozenset(removed))


def _with_ending(job: Job, end: EndedJob) -> Job:
    return dataclasses.replace(
        job,
        state=end.state,
        state_text=end.state_text,
        start_time_s=end.start_time_s or job.start_time_s,
        end_time_s=end.end_time_s,
        exit_code=end.exit_code,
        nodes=end.nodes or job.nodes,
    )
