"""Which processes train together, and how they meet."""

import contextlib
import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.running import free_ports
from tfjob_trainer import cluster, network, peers
from tfjob_trainer.cluster import Cluster
from tfjob_trainer.errors import UsageError
from tfjob_trainer.peers import PeerError, Peers, StoppedWhileWaiting
from tfjob_trainer.stop import StopRequest

STEP = {
    "SLURM_JOB_ID": "12",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NODELIST": "n[1-2,10]",
    "SLURM_STEP_NUM_TASKS": "3",
    "SLURM_STEP_TASKS_PER_NODE": "1(x3)",
    "SLURM_JOB_NUM_NODES": "3",
    "SLURM_PROCID": "1",
    "SLURM_NODEID": "1",
    "SLURMD_NODENAME": "n2",
}


def expand(_: str) -> tuple[str, ...]:
    return ("n1", "n2", "n10")


def test_a_step_of_slurm() -> None:
    ours = cluster.from_environment(STEP, expand)
    assert ours is not None
    assert (ours.hosts, ours.rank, ours.is_chief) == (("n1", "n2", "n10"), 1, False)
    assert (ours.port, ours.token) == (12000 + 12 * 16, "12.0.0")
    again = cluster.from_environment(STEP | {"SLURM_RESTART_COUNT": "1"}, expand)
    assert again is not None
    assert again.token != ours.token


def test_hosts_from_outside_a_container() -> None:
    def fail(_: str) -> tuple[str, ...]:
        raise AssertionError

    ours = cluster.from_environment(STEP | {"TFJOB_HOSTS": "n1 n2 n10"}, fail)
    assert ours is not None
    assert ours.hosts == ("n1", "n2", "n10")


@pytest.mark.parametrize(
    "variables",
    [
        {},
        STEP | {"SLURM_STEP_NUM_TASKS": "1", "SLURM_STEP_NODELIST": "n1"},
        {"SLURM_JOB_ID": "12", "SLURM_JOB_NUM_NODES": "1"},
        {"TF_CONFIG": json.dumps({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}})},
    ],
)
def test_alone(variables: dict[str, str]) -> None:
    assert cluster.from_environment(variables, expand) is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"SLURM_STEP_TASKS_PER_NODE": "2,1"}, "one task per node"),
        ({"SLURM_STEP_TASKS_PER_NODE": "1(x2)"}, "one task per node"),
        ({"SLURM_STEP_TASKS_PER_NODE": "?"}, "cannot be read"),
        ({"SLURMD_NODENAME": "n10"}, r"task 1 \(SLURM_PROCID\) runs on node 1 \(SLURM_NODEID\), n10, where"),
        ({"SLURM_NODEID": "2"}, "distributed in blocks"),
        ({"SLURM_PROCID": "7", "SLURM_NODEID": "7"}, "no host"),
        ({"SLURM_STEP_NODELIST": ""}, "this job has 3 nodes, but this is a single process"),
        ({"TF_CONFIG": "{"}, "TF_CONFIG cannot be read"),
        ({"TF_CONFIG": '{"cluster": {"worker": ["a:1", "b:1"], "ps": ["c:1"]}}'}, "workers only"),
        ({"TF_CONFIG": '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"index": 2}}'}, "us among them"),
        ({"TFJOB_HOSTS": "n1 n2"}, "3 tasks, but"),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        cluster.from_environment(STEP | changes, expand)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'Invalid hostlist: n[1' >&2", "failed: Invalid hostlist"),  # and ends with 0
        ("exit 1", "failed"),
        (None, "there is no scontrol here"),
    ],
)
def test_scontrol_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, message: str
) -> None:
    if script:
        (tmp_path / "scontrol").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "scontrol").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin" if script else str(tmp_path))
    with pytest.raises(UsageError, match=message):
        cluster.expand_with_scontrol("n[1")


# ---- Meeting. Each process is a thread here.


def a_cluster(count: int, **changes: Any) -> Cluster:
    return replace(Cluster(("127.0.0.1",) * count, 0, free_ports(1)[0], "token"), **changes)


def everybody(ours: Cluster, act: Callable[[Peers], Any], timeout_s: float = 20) -> list[Any]:
    """What `act` gives, or raises, in each process of a cluster."""
    answers: list[Any] = [None] * len(ours.hosts)

    def run(rank: int) -> None:
        with contextlib.closing(Peers(replace(ours, rank=rank), timeout_s, StopRequest())) as one:
            try:
                answers[rank] = act(one)
            except PeerError as error:
                answers[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(len(ours.hosts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return answers


def test_all_learn_what_each_one_says() -> None:
    def act(ours: Peers) -> Any:
        ours.meet()
        said = ours.from_chief("folder", f"of {ours.cluster.rank}")
        values = ours.exchange("rank", ours.cluster.rank)
        ours.leave()
        return ours.addresses, said, values, ours.lost

    answers = everybody(a_cluster(3), act)
    assert answers[0] == answers[1] == answers[2]
    addresses, said, values, lost = answers[0]
    assert (said, values, lost) == ("of 0", [0, 1, 2], None)
    assert len({address.rpartition(":")[2] for address in addresses}) == 3
    assert all(address.startswith("127.0.0.1:") for address in addresses)


def test_a_chief_whose_first_port_is_taken_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """By another training on the same node, which answers too."""
    first = a_cluster(2)
    other = Peers(replace(first, token="another"), 20, StopRequest())

    def refuse() -> None:
        with contextlib.suppress(StoppedWhileWaiting), contextlib.closing(other):
            other.meet()

    thread = threading.Thread(target=refuse)
    thread.start()

    def act(ours: Peers) -> Any:
        ours.meet()
        ours.leave()
        return ours.addresses

    answers = everybody(first, act)
    other._stop.received = "SIGTERM"
    thread.join(10)
    assert answers[0] == answers[1]
    assert len(answers[0]) == 2


def test_a_missing_worker_has_a_name() -> None:
    ours = a_cluster(2, hosts=("127.0.0.1", "gpu07"))
    with contextlib.closing(Peers(ours, 1, StopRequest())) as chief:
        with pytest.raises(PeerError, match="no word for 1 s from worker 1 on gpu07"):
            chief.meet()
        chief._stop.received = "SIGUSR1"
        with pytest.raises(StoppedWhileWaiting, match="SIGUSR1 while waiting for worker 1 on gpu07"):
            chief.meet()
    with (
        contextlib.closing(Peers(replace(ours, rank=1), 1, StopRequest())) as worker,
        pytest.raises(PeerError, match=r"no chief was found for 1 s on 127\.0\.0\.1"),
    ):
        worker.meet()


def test_a_failure_reaches_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "GRACE_S", 0.1)
    lost = []

    def act(ours: Peers) -> Any:
        ours.on_lost = lost.append
        ours.meet()
        if ours.cluster.rank == 1:
            ours.fail("no such data")
            return None
        return ours.exchange("data", 1)

    answers = everybody(a_cluster(3), act)
    assert str(answers[0]) == "worker 1 on 127.0.0.1: no such data"


def test_a_killed_worker_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "GRACE_S", 0.1)
    lost: list[PeerError] = []

    def act(ours: Peers) -> None:
        ours.on_lost = lost.append
        ours.meet()
        if ours.cluster.rank == 1:
            ours._connections[0].socket.shutdown(2)
            return
        deadline = time.monotonic() + 10
        while not lost and time.monotonic() < deadline:
            time.sleep(0.02)

    everybody(a_cluster(2), act)
    assert any("worker 1 on 127.0.0.1 is gone without a word" in str(error) for error in lost)


def test_a_chief_that_fails_early_tells_the_workers() -> None:
    def act(ours: Peers) -> None:
        if ours.cluster.is_chief:
            ours.fail("the run folder is in use")
        else:
            ours.meet()

    _, one, two = everybody(a_cluster(3), act)
    assert str(one) == str(two) == "the run folder is in use"
    assert one.told


# ---- The network.


def test_the_network_of_a_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "sys/class/net/lo/operstate": "unknown",
        "sys/class/net/ib7/operstate": "up",
        "sys/class/net/ib7/speed": "200000",
        "sys/class/net/eth9/operstate": "down",
        "sys/class/infiniband/mlx5_0/ports/1/link_layer": "InfiniBand",
        "sys/class/infiniband/mlx5_0/ports/1/rate": "200 Gb/sec (4X HDR)",
        "sys/class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE",
        "sys/class/infiniband/mlx5_1/ports/1/link_layer": "Ethernet",
        "sys/class/infiniband/mlx5_1/ports/1/state": "1: DOWN",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    monkeypatch.setattr(network, "_memlock", lambda: 65536.0)
    lines = network.describe({"NCCL_IB_DISABLE": "1"}, tmp_path)
    assert lines[0] == (
        "network: ib7 200 Gb/s; InfiniBand or RoCE: mlx5_0 InfiniBand 200 Gb/sec active, mlx5_1 RoCE down; "
        "memlock (ulimit -l) 64 KiB"
    )
    assert lines[1].endswith("(NCCL_SOCKET_IFNAME is not set), NCCL_IB_DISABLE=1")
    assert lines[2].startswith("warning: with this memlock NCCL cannot use InfiniBand")
    monkeypatch.setattr(network, "_memlock", lambda: float("inf"))
    assert len(network.describe({"NCCL_SOCKET_IFNAME": "ib7"}, tmp_path)) == 2
