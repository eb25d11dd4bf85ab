"""How a batch is shared by the replicas."""

from tfjob_trainer.errors import UsageError
from tfjob_trainer.options import Options


def share(options: Options, replicas: int, earlier: int | None) -> tuple[int, int]:
    """(Examples per step over all replicas, parts in which a replica takes its share). Raises UsageError.

    `earlier`: the batch of the run so far. A run keeps its batch: on another number of replicas, what a replica
    holds at a time stays what was asked for (--batch-per-replica) by taking its share in more, or fewer, parts.
    """
    held, parts = options.batch_per_replica, options.accumulate
    if held is None:
        batch = options.batch_size or 0
    elif earlier:
        batch = earlier
        parts = _parts(batch, replicas, held)
    else:
        batch = held * replicas * parts
    if batch % (replicas * parts):
        unit = replicas * parts
        near = max(unit, round(batch / unit) * unit)
        how = f"{replicas} replicas" + (f" in {parts} parts each" if parts > 1 else "")
        raise UsageError(f"--batch-size {batch} cannot be shared by {how}; the nearest that can: {near}")
    return batch, parts


def _parts(batch: int, replicas: int, held: int) -> int:
    """The fewest parts of the same size that hold at most `held` examples."""
    parts = max(1, -(-batch // (held * replicas)))
    while batch % (replicas * parts) and parts < batch:
        parts += 1
    return parts if batch % (replicas * parts) == 0 else 1
