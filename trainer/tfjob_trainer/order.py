"""Which records a worker reads, in numbers: a pure function of seed, epoch, and the workers' count.

In each epoch the files of a data set are put into another order and thought of as one long row of records,
which is cut into one part for each worker: all have the same number to read, however the files are cut. A part
is made of segments (a file, or a piece of one at the ends), and the segments of groups: inside a group files
are read in turn and records are shuffled, and the groups follow each other. So what comes before a group need
not be read in order to begin there.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

GROUP = 16  # files that are read in turn

Ints = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class Part:
    """What one worker reads in an epoch."""

    files: Ints  # of each segment: the file's number
    starts: Ints  # the first record, counted in the file
    counts: Ints  # how many records

    def group_sizes(self) -> Ints:
        """Records in each group."""
        edges = np.arange(0, len(self.files), GROUP)
        return np.add.reduceat(self.counts, edges) if len(edges) else np.zeros(0, np.int64)

    def without(self, groups: int) -> "Part":
        """What is left after the first `groups` groups."""
        first = groups * GROUP
        return Part(self.files[first:], self.starts[first:], self.counts[first:])


def file_order(seed: int, epoch: int, files: int) -> Ints:
    """The permutation of the files in `epoch`."""
    return np.random.default_rng([seed, epoch]).permutation(files).astype(np.int64)


def cut(order: Ints, lengths: Ints, low: int, high: int) -> Part:
    """Records `low` to `high` (not included) of the row that the files make in this order.

    `lengths` has the number of records of each file, by its number.
    """
    ends = np.cumsum(lengths[order])
    begins = ends - lengths[order]
    starts = np.clip(low - begins, 0, None)
    stops = np.minimum(ends, high) - begins
    kept = stops > starts
    return Part(order[kept], starts[kept], (stops - starts)[kept])


def skip(part: Part, records: int) -> tuple[Part, int, int]:
    """The part without the whole groups that lie in its first `records`; how many groups, what is left to skip."""
    ends = np.cumsum(part.group_sizes())
    groups = int(np.searchsorted(ends, records, side="right"))
    left = records - (int(ends[groups - 1]) if groups else 0)
    return part.without(groups), groups, left


def seeds(seed: int, epoch: int, groups: int) -> Ints:
    """A seed for the augmentation of the epoch, and after it one for the shuffling of each group."""
    state = np.random.SeedSequence([seed, epoch]).generate_state(groups + 1, np.uint64)
    return (state >> np.uint64(1)).astype(np.int64)
