"""Several nodes: TensorFlow's MultiWorkerMirroredStrategy over the processes that have met (see `peers`)."""

import json
import os
from dataclasses import asdict
from typing import Any

import tensorflow as tf

from tfjob_trainer.devices import Choice, Devices
from tfjob_trainer.errors import UsageError
from tfjob_trainer.options import Options
from tfjob_trainer.peers import Peers


def connect(peers: Peers, options: Options, choice: Choice) -> Devices:
    """The devices of all processes together. To be called before any operation of TensorFlow.

    Raises UsageError where a worker differs in what has to be the same everywhere.
    """
    if choice.kind == "cpu" and choice.count > 1:
        raise UsageError(
            "--replicas above 1 on CPUs is for a single node; on several each node is one replica"
        )
    told = peers.exchange(
        "devices", {**asdict(choice), "tensorflow": tf.__version__, "options": _text(options)}
    )
    check_alike(peers, told)
    workers = len(told)
    strategy = _make_strategy(peers)
    return Devices(
        strategy=strategy,
        kind=choice.kind,
        replicas=choice.count * workers,
        workers=workers,
        description=f"{workers} nodes, each {choice.description}",
        capabilities=tuple((major, minor) for worker in told for major, minor in worker["capabilities"]),
    )


def check_alike(peers: Peers, told: list[dict[str, Any]]) -> None:
    """Raise UsageError that names the first worker which is not as the chief."""
    for rank, ours in enumerate(told):
        for key in ("tensorflow", "kind", "count", "options"):
            if ours[key] != told[0][key]:
                name = {"count": "devices", "kind": "kind of devices", "tensorflow": "TensorFlow"}.get(
                    key, key
                )
                raise UsageError(
                    f"{peers.cluster.name(rank)} differs from the chief in its {name}: {ours[key]}, where the chief "
                    f"has {told[0][key]}; all nodes have to be alike"
                )


def _text(options: Options) -> str:
    return " ".join(f"{name}={value}" for name, value in asdict(options).items() if value is not None)


def _make_strategy(peers: Peers) -> Any:
    cluster = peers.cluster
    os.environ["TF_CONFIG"] = json.dumps(
        {
            "cluster": {"worker": list(peers.addresses)},
            "task": {"type": "worker", "index": cluster.rank},
        }
    )
    tf.get_logger().setLevel("ERROR")
    with peers.within(
        f"TensorFlow's connection between the nodes ({', '.join(peers.addresses)}; a firewall?)"
    ):
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
        _try_out(strategy)
    return strategy


def _try_out(strategy: Any) -> None:
    """Add up ones over all replicas: what cannot reach the others hangs here, and not in the first step."""

    def add_up() -> Any:
        # A value that the graph does not know, else nothing is sent.
        ones = strategy.run(lambda: tf.cast(tf.random.uniform([]) >= 0, tf.float32))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, ones, axis=None)

    tf.function(add_up)().numpy()
