"""Which processes train together: from Slurm's environment, or from a TF_CONFIG that somebody has set.

One process per node drives all GPUs of its node. TensorFlow's own SlurmClusterResolver is not used: it takes
wrong hosts for lists such as n[1-2,10], other people's GPUs on shared nodes, and fails on nodes without GPUs.
CUDA_VISIBLE_DEVICES is never touched.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tfjob_trainer.errors import UsageError

HOSTS_VARIABLE = "TFJOB_HOSTS"  # host names, set outside a container that has no scontrol
FIRST_PORT, PORTS = 12_000, 20_000  # below the ports that systems give to outgoing connections (from 32768)
PORT_TRIES = 16


@dataclass(frozen=True, slots=True)
class Cluster:
    """The processes of one training, and which of them we are."""

    hosts: tuple[str, ...]  # by rank; the first is the chief
    rank: int
    port: int  # the first that the chief may listen on
    token: str  # the same in all processes of this start, and in no other
    addresses: tuple[str, ...] = ()  # "host:port" by rank for TensorFlow; empty: to be agreed

    @property
    def is_chief(self) -> bool:
        return self.rank == 0

    def name(self, rank: int) -> str:
        """A worker in words."""
        return f"worker {rank} on {self.hosts[rank]}"


def from_environment(
    environment: Mapping[str, str], expand: Callable[[str], tuple[str, ...]] | None = None
) -> Cluster | None:
    """The cluster that the variables tell of; None where we train alone. Raises UsageError.

    `expand` makes host names of Slurm's node list.
    """
    if environment.get("TF_CONFIG"):
        return _from_tf_config(environment["TF_CONFIG"])
    tasks = _number(environment, "SLURM_STEP_NUM_TASKS") if environment.get("SLURM_STEP_NODELIST") else None
    if tasks is None or "SLURM_PROCID" not in environment:
        _check_alone(environment)
        return None
    if tasks == 1:
        return None
    return _from_step(environment, tasks, expand or expand_with_scontrol)


def _check_alone(environment: Mapping[str, str]) -> None:
    nodes = environment.get("SLURM_JOB_NUM_NODES", "1")
    if nodes not in ("", "1") and environment.get("SLURM_JOB_ID"):
        raise UsageError(
            f"this job has {nodes} nodes, but this is a single process: start the trainer with srun, one task "
            "per node (srun --ntasks-per-node=1), or on one node with srun --nodes=1 --ntasks=1"
        )


def _from_step(
    environment: Mapping[str, str], tasks: int, expand: Callable[[str], tuple[str, ...]]
) -> Cluster:
    node_list = environment["SLURM_STEP_NODELIST"]
    hosts = tuple(environment.get(HOSTS_VARIABLE, "").split()) or expand(node_list)
    per_node = expand_counts(environment.get("SLURM_STEP_TASKS_PER_NODE", ""))
    if any(count != 1 for count in per_node) or len(per_node) != tasks:
        raise UsageError(
            f"{tasks} tasks on {len(hosts)} node(s) (SLURM_STEP_TASKS_PER_NODE="
            f"{environment.get('SLURM_STEP_TASKS_PER_NODE')}): the trainer wants one task per node, which drives "
            "all GPUs of its node (#SBATCH --ntasks-per-node=1, and for srun too)"
        )
    if len(hosts) != tasks:
        raise UsageError(f"{tasks} tasks, but {node_list} names {len(hosts)} hosts: {' '.join(hosts)}")
    rank = _number(environment, "SLURM_PROCID")
    _check_rank(environment, hosts, rank)
    job, step = _number(environment, "SLURM_JOB_ID"), _number(environment, "SLURM_STEP_ID")
    port = FIRST_PORT + (job * PORT_TRIES + step % PORT_TRIES) % PORTS
    token = f"{job}.{step}.{environment.get('SLURM_RESTART_COUNT', '0')}"
    return Cluster(hosts, rank, port, token)


def _check_rank(environment: Mapping[str, str], hosts: tuple[str, ...], rank: int) -> None:
    node = environment.get("SLURM_NODEID", str(rank))
    ours = environment.get("SLURMD_NODENAME", hosts[rank] if rank < len(hosts) else "")
    if rank >= len(hosts) or node != str(rank) or ours != hosts[rank]:
        told = hosts[rank] if rank < len(hosts) else "no host"
        raise UsageError(
            f"task {rank} (SLURM_PROCID) runs on node {node} (SLURM_NODEID), {ours}, where the list of hosts "
            f"says {told}: tasks have to be distributed in blocks, one per node (srun --distribution=block)"
        )


def _number(environment: Mapping[str, str], name: str) -> int:
    text = environment.get(name, "")
    if not text.isdecimal():
        raise UsageError(f"{name} is {text!r}, not a number: start the trainer with srun")
    return int(text)


def expand_counts(text: str) -> tuple[int, ...]:
    """Slurm's short form "2(x3),1" as (2, 2, 2, 1). Raises UsageError."""
    counts: list[int] = []
    for part in filter(None, text.split(",")):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part)
        if match is None:
            raise UsageError(f"SLURM_STEP_TASKS_PER_NODE={text} cannot be read")
        counts += [int(match[1])] * int(match[2] or 1)
    return tuple(counts)


def expand_with_scontrol(node_list: str) -> tuple[str, ...]:
    """The hosts of a node list, by Slurm's own rules. Raises UsageError."""
    if shutil.which("scontrol") is None:
        raise UsageError(
            f"the hosts of {node_list} are not known, since there is no scontrol here (in a container?). Set "
            f'{HOSTS_VARIABLE}="$(scontrol show hostnames "$SLURM_JOB_NODELIST")" outside of it'
        )
    done = _call("scontrol", "show", "hostnames", node_list)
    hosts = tuple(done.stdout.split())
    if done.returncode or not hosts:  # 22.05 ends with 0 on a list that it cannot read
        raise UsageError(f"scontrol show hostnames {node_list} failed: {done.stderr.strip()}")
    return hosts


def address_by_scontrol(host: str) -> str | None:
    """Slurm's address of a node whose name the system cannot resolve; None where there is none."""
    if shutil.which("scontrol") is None:
        return None
    match = re.search(r"\bNodeAddr=(\S+)", _call("scontrol", "--oneliner", "show", "node", host).stdout)
    return match[1] if match else None


def _call(*command: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(command, 1, "", str(error))


def _from_tf_config(text: str) -> Cluster | None:
    """The cluster of a TF_CONFIG, {"cluster": {"worker": ["host:port", …]}, "task": {"type", "index"}}."""
    try:
        values: dict[str, Any] = json.loads(text)
        addresses = tuple(str(address) for address in values.get("cluster", {}).get("worker", ()))
        others = sorted(set(values.get("cluster", {})) - {"worker"})
        task = values.get("task", {})
        kind, rank = str(task.get("type", "worker")), int(task.get("index", 0))
        ports = [int(address.rpartition(":")[2]) for address in addresses]
    except (ValueError, TypeError, AttributeError) as error:
        raise UsageError(f"TF_CONFIG cannot be read ({error}); unset it, or correct it: {text}") from None
    if others or kind != "worker" or (addresses and not 0 <= rank < len(addresses)):
        raise UsageError(f"TF_CONFIG has to have workers only, and us among them: {text}")
    if len(addresses) < 2:
        return None
    hosts = tuple(address.rpartition(":")[0].strip("[]") for address in addresses)
    # Beside the chief's port for TensorFlow, in the range of those for us.
    port = FIRST_PORT + (ports[0] * PORT_TRIES) % PORTS
    return Cluster(hosts, rank, port, " ".join(addresses), addresses)
