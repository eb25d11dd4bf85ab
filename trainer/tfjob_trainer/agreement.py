"""When all processes stop, or save, at the same step.

A signal reaches each process at another moment, and clocks differ; a save or an end needs all of them at the
same step. So they add up what each has seen, every second or at every step where steps take longer: asking
costs about 2 ms between nodes.
"""

import signal
import time
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tfjob_trainer.cluster import Cluster
from tfjob_trainer.stop import StopRequest

ASK_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class Decision:
    """What all processes do now."""

    stop: str | None = None  # the signal's name, and whose it was where there are several processes
    save: bool = False


_NOTHING = Decision()


class Agreement:
    """Asked before the first step, and after every step and batch of validation, by all processes alike."""

    def __init__(self, strategy: Any, cluster: Cluster | None, stop: StopRequest) -> None:
        self._cluster = cluster
        self._stop = stop
        self._left = 1  # steps until the processes ask each other
        self._asked_at: float | None = None
        self._steps = 1  # that went by since
        self._add_up = _make_add_up(strategy, cluster) if cluster else None

    def after_step(self, save_due: bool) -> Decision:
        """What to do; `save_due`: this process' clock says that it is time to save (the chief's counts)."""
        if self._add_up is None or self._cluster is None:
            return Decision(self._stop.received, save_due) if self._stop.received or save_due else _NOTHING
        self._left -= 1
        if self._left > 0:
            return _NOTHING
        return self._ask(save_due, self._cluster)

    def _ask(self, save_due: bool, cluster: Cluster) -> Decision:
        assert self._add_up
        votes = [0.0] * len(cluster.hosts)
        votes[cluster.rank] = float(self._stop.number)
        wish = [float(save_due), float(self._next_interval())] if cluster.is_chief else [0.0, 0.0]
        *signals, save, interval = self._add_up(tf.constant([*votes, *wish])).numpy()
        self._left = self._steps = max(1, round(float(interval)))
        return Decision(_words(signals), save > 0)

    def _next_interval(self) -> int:
        """Steps that take about ASK_EVERY_S at the pace since the last time."""
        then, self._asked_at = self._asked_at, time.monotonic()
        if then is None:
            return 1
        pace_s = max(1e-6, (self._asked_at - then) / self._steps)
        return max(1, min(10 * self._steps, int(ASK_EVERY_S / pace_s)))


def _words(signals: list[float]) -> str | None:
    """The first worker's signal that is set."""
    for rank, number in enumerate(signals):
        if number:
            return f"{signal.Signals(round(float(number))).name} (worker {rank})"
    return None


def _make_add_up(strategy: Any, cluster: Cluster) -> Any:
    """A vector of each process → the sum over processes."""
    local = strategy.num_replicas_in_sync // len(cluster.hosts)

    def on_replica(vector: Any) -> Any:
        number = tf.distribute.get_replica_context().replica_id_in_sync_group
        return vector * tf.cast(tf.equal(number % local, 0), vector.dtype)

    def add_up(vector: Any) -> Any:
        parts = strategy.run(on_replica, args=(vector,))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, parts, axis=None)

    return tf.function(add_up, reduce_retracing=True)
