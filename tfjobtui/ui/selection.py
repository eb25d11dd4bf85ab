"""What the user has chosen for an action, fixed at that moment: a refresh cannot change what is meant."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size

from tfjobtui.model.job import Job
from tfjobtui.model.text import printable
from tfjobtui.monitor.columns import COLUMNS
from tfjobtui.monitor.view import Row
from tfjobtui.schedulers.scheduler import Target

_NAME_CELLS = 36
"""What a job's name gets at most in a dialog's line."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """One chosen row: how a dialog names it, and the targets that it stands for.

    Of an array `waiting` and `active` are its records, and `whole` is the array; of anything else all
    are the job itself, as far as it is in that state. The targets in `waiting` spare what has started
    since (`pending_only`) where they stand for several tasks.
    """

    label: str
    is_array: bool
    whole: Target
    waiting: tuple[Target, ...]
    active: tuple[Target, ...]
    ended: tuple[Target, ...]
    waiting_tasks: int
    active_tasks: int
    is_cut: bool = False
    """Slurm cut the list of tasks: their number is a lower bound."""

    @property
    def is_over(self) -> bool:
        return not self.waiting and not self.active


@dataclass(frozen=True, slots=True)
class Selection:
    """The chosen rows that an action applies to, and how many others were left out."""

    items: tuple[Chosen, ...]
    left_out: int = 0

    def __bool__(self) -> bool:
        return bool(self.items)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(item.label for item in self.items)

    @property
    def arrays(self) -> tuple[Chosen, ...]:
        return tuple(item for item in self.items if item.is_array)

    @property
    def waiting_tasks(self) -> int:
        """Of the arrays."""
        return sum(item.waiting_tasks for item in self.arrays)

    @property
    def active_tasks(self) -> int:
        """Of the arrays."""
        return sum(item.active_tasks for item in self.arrays)

    def only(self, test: Callable[[Chosen], bool]) -> Selection:
        """Without the rows that the action cannot apply to."""
        kept = tuple(item for item in self.items if test(item))
        return Selection(kept, self.left_out + len(self.items) - len(kept))

    def what(self) -> str:
        """`job 123`, `array 7`, `3 jobs`."""
        if len(self.items) != 1:
            return f"{len(self.items)} jobs"
        item = self.items[0]
        return f"{'array' if item.is_array else 'job'} {item.whole.id}"

    def everything(self) -> tuple[Target, ...]:
        """Each row as it was chosen, arrays whole."""
        return tuple(item.whole for item in self.items)

    def waiting(self) -> tuple[Target, ...]:
        """Of arrays what waits; other jobs as they are."""
        return _flat(item.waiting if item.is_array else (item.whole,) for item in self.items)

    def active(self) -> tuple[Target, ...]:
        """What runs, of arrays and others."""
        return _flat(item.active for item in self.items)


def _flat(groups: Iterable[tuple[Target, ...]]) -> tuple[Target, ...]:
    return tuple(dict.fromkeys(target for group in groups for target in group))


def select(rows: Sequence[Row], known: Iterable[Job] = ()) -> Selection:
    """Fix what these rows stand for.

    Of an array all records in `known` are counted, also those that the filter hides; what waits of it is
    taken from the row, which is what the user sees.
    """
    arrays: dict[tuple[str | None, int], list[Job]] = {
        (row.job.cluster, row.job.id.job): [] for row in rows if _is_array(row)
    }
    if arrays:
        for job in known:
            if job.id.is_array and (job.cluster, job.id.job) in arrays:
                arrays[job.cluster, job.id.job].append(job)
    width = min(_NAME_CELLS, max((cell_len(printable(row.job.name)) for row in rows), default=0))
    return Selection(
        tuple(_chosen(row, arrays.get((row.job.cluster, row.job.id.job), []), width) for row in rows)
    )


def _is_array(row: Row) -> bool:
    return bool(row.members) or row.job.id.tasks is not None


def _chosen(row: Row, array: Sequence[Job], width: int) -> Chosen:
    is_array = _is_array(row)
    others = array if is_array else ()
    waiting = [job for job in row.jobs if job.state.is_waiting]
    active = [job for job in others or row.jobs if job.state.is_active]
    return Chosen(
        label=_label(row, waiting, active, width),
        is_array=is_array,
        whole=Target.of(row.job, whole=is_array),
        waiting=tuple(Target.of(job, pending_only=is_array) for job in waiting),
        active=tuple(Target.of(job) for job in active),
        ended=tuple(Target.of(job) for job in row.jobs if job.state.is_terminal),
        waiting_tasks=sum(job.task_count for job in waiting),
        active_tasks=sum(job.task_count for job in active),
        is_cut=any(job.id.tasks is not None and job.id.tasks.is_cut for job in waiting),
    )


def _label(row: Row, waiting: Sequence[Job], active: Sequence[Job], width: int) -> str:
    """`5782_[5-100%4]  train  4 running, 96 waiting`, the name in `width` cells."""
    now = time.time()
    job = row.job
    state = COLUMNS["state"].text(job, now)
    if _is_array(row):
        numbers = (
            (sum(each.task_count for each in jobs), word)
            for jobs, word in ((active, "running"), (waiting, "waiting"))
        )
        state = ", ".join(f"{number} {word}" for number, word in numbers if number) or state
    return f"{COLUMNS['id'].text(job, now):<14}  {set_cell_size(printable(job.name), width)}  {state}"
