"""What the test cluster looks like: its folder, its ports, its nodes and Slurm's own configuration files."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FIRST_PORT = 20000
LAST_PORT = 32000  # below the range from which the kernel takes ports for outgoing connections
PORTS_PER_CLUSTER = 8
DATABASE = "slurm"
LONGEST_SOCKET_PATH = 107  # sun_path of a Unix socket, without its closing NUL


class ClusterError(Exception):
    """Something about the cluster that the person who started it has to know."""


@dataclass(frozen=True, slots=True)
class Node:
    """One slurmd. The figures are claims: Slurm is told to believe them (config_overrides)."""

    name: str
    cpus: int
    memory_mb: int
    gpu_type: str | None = None
    gpus: int = 0

    @property
    def gres(self) -> str:
        """The node's Gres value, empty without GPUs."""
        return f"gpu:{self.gpu_type}:{self.gpus}" if self.gpus else ""


NODES = (
    Node("gpu01", cpus=16, memory_mb=256_000, gpu_type="a100", gpus=4),
    Node("gpu02", cpus=16, memory_mb=256_000, gpu_type="a100", gpus=4),
    Node("v100", cpus=8, memory_mb=128_000, gpu_type="v100", gpus=2),
    Node("cpu01", cpus=16, memory_mb=64_000),
    Node("cpu02", cpus=16, memory_mb=64_000),
)

# Each partition names its PreemptMode: with partition_prio the cluster's REQUEUE is the default, and a
# job of `high` would otherwise throw out the jobs of every partition that shares a node with it.
PARTITIONS: Mapping[str, str] = {
    "gpu": "Nodes=gpu01,gpu02,v100 Default=YES MaxTime=7-00:00:00 DefaultTime=1:00:00 PreemptMode=OFF",
    "cpu": "Nodes=cpu01,cpu02 MaxTime=7-00:00:00 DefaultTime=1:00:00 PreemptMode=OFF",
    "short": "Nodes=cpu01,cpu02,v100 MaxTime=10 DefaultTime=5 PreemptMode=OFF",
    "low": "Nodes=cpu02 MaxTime=1-00:00:00 DefaultTime=1:00:00 PriorityTier=1 PreemptMode=REQUEUE",
    "high": "Nodes=cpu02 MaxTime=1-00:00:00 DefaultTime=1:00:00 PriorityTier=10 PreemptMode=OFF",
    "closed": "Nodes=cpu01,cpu02 MaxTime=1-00:00:00 State=DOWN PreemptMode=OFF",
}


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything stands inside the cluster's folder."""

    root: Path

    @property
    def slurm_conf(self) -> Path:
        """Slurm's main configuration file."""
        return self.root / "etc" / "slurm.conf"

    @property
    def munge_socket(self) -> Path:
        """Where the private munged listens."""
        return self.root / "munge" / "socket"

    @property
    def database_socket(self) -> Path:
        """Where the private MariaDB listens: in root's own folder, as its root has no password."""
        return self.root / "db" / "socket"

    @property
    def control_socket(self) -> Path:
        """Where tests ask the supervisor for what only root may do."""
        return self.root / "control.sock"

    @property
    def description(self) -> Path:
        """The JSON file that tells a client about this cluster."""
        return self.root / "cluster.json"

    @property
    def env_file(self) -> Path:
        """The file to source in a shell."""
        return self.root / "env.sh"

    @property
    def lock_file(self) -> Path:
        """Locked by the supervisor as long as it lives; holds its process id."""
        return self.root / "supervisor.lock"

    def forget(self) -> None:
        """Remove what tells clients that a cluster runs here."""
        self.control_socket.unlink(missing_ok=True)
        self.description.unlink(missing_ok=True)

    def log(self, daemon: str) -> Path:
        """The log of one daemon."""
        return self.root / "log" / f"{daemon}.log"


@dataclass(frozen=True, slots=True)
class Ports:
    """A block of ports. The reservation keeps other test clusters off it while this process lives."""

    first: int
    reservation: socket.socket

    @property
    def slurmctld(self) -> int:
        """The controller's port."""
        return self.first

    @property
    def slurmdbd(self) -> int:
        """The accounting daemon's port."""
        return self.first + 1

    def slurmd(self, index: int) -> int:
        """The port of the node with this index in NODES."""
        return self.first + 2 + index


def _is_free(port: int) -> bool:
    """Whether nobody listens on the port at this moment."""
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def reserve_ports() -> Ports:
    """Take a block of free ports.

    Between the look and the moment that a daemon binds its port, another cluster could take the same
    block. An abstract socket with the block's number in its name prevents that, and goes away with its
    process however that ends.
    """
    for first in range(FIRST_PORT, LAST_PORT, PORTS_PER_CLUSTER):
        reservation = socket.socket(socket.AF_UNIX)
        try:
            reservation.bind(f"\0tfjobtui-test-cluster-{first}")
        except OSError:
            reservation.close()
            continue
        if all(_is_free(port) for port in range(first, first + PORTS_PER_CLUSTER)):
            return Ports(first, reservation)
        reservation.close()
    raise ClusterError(f"no {PORTS_PER_CLUSTER} free ports in a row between {FIRST_PORT} and {LAST_PORT}")


def slurm_version() -> tuple[int, int]:
    """The installed release, e.g. (22, 5)."""
    # Of all the commands only the daemons tell it without reading a configuration first.
    output = subprocess.run(["slurmctld", "-V"], capture_output=True, text=True, check=True).stdout
    year, month = output.split()[-1].split(".")[:2]
    return int(year), int(month)


def write_configuration(layout: Layout, ports: Ports, overrides: Mapping[str, str]) -> None:
    """Write every configuration file. `overrides` replaces or adds keys of slurm.conf."""
    version = slurm_version()
    etc = layout.slurm_conf.parent
    layout.slurm_conf.write_text(slurm_conf(layout, ports, version, overrides))
    (etc / "gres.conf").write_text(gres_conf(layout))
    (etc / "cgroup.conf").write_text(cgroup_conf(version))
    secret = etc / "slurmdbd.conf"
    secret.touch(mode=0o600)  # slurmdbd refuses the file when others may read it
    secret.write_text(slurmdbd_conf(layout, ports))
    prolog = etc / "task_prolog"
    prolog.write_text(task_prolog(layout))
    prolog.chmod(0o755)


def slurm_conf(layout: Layout, ports: Ports, version: tuple[int, int], overrides: Mapping[str, str]) -> str:
    """The text of slurm.conf."""
    keys = {**_general(layout, version), **_accounting(layout, ports), **_daemons(layout, ports), **overrides}
    lines = [f"{key}={value}" for key, value in keys.items()]
    lines += [_node_line(node, ports.slurmd(index)) for index, node in enumerate(NODES)]
    # Without DefMemPerCPU one job that asks for no memory would take all of a node's.
    lines += [
        f"PartitionName={name} DefMemPerCPU=1000 State=UP {rest}"
        if "State=" not in rest
        else f"PartitionName={name} DefMemPerCPU=1000 {rest}"
        for name, rest in PARTITIONS.items()
    ]
    return "\n".join(lines) + "\n"


def _node_line(node: Node, port: int) -> str:
    gres = f" Gres={node.gres} Feature={node.gpu_type}" if node.gres else ""
    return (
        f"NodeName={node.name} NodeHostname={_hostname()} NodeAddr=127.0.0.1 Port={port}"
        f" CPUs={node.cpus} RealMemory={node.memory_mb}{gres} State=UNKNOWN"
    )


def _hostname() -> str:
    return socket.gethostname().split(".")[0]


def _general(layout: Layout, version: tuple[int, int]) -> dict[str, str]:
    """Authentication, limits, scheduling and how jobs are started."""
    credential = "CredType=cred/munge" if version >= (23, 11) else "CryptoType=crypto/munge"
    credential_key, credential_value = credential.split("=")
    return {
        "ClusterName": "tfjob",
        "SlurmctldHost": f"{_hostname()}(127.0.0.1)",
        "SlurmUser": "root",
        "SlurmdUser": "root",
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={layout.munge_socket}",
        credential_key: credential_value,
        "MpiDefault": "none",
        "MailProg": "/bin/true",
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "TaskProlog": str(layout.slurm_conf.parent / "task_prolog"),
        "PropagateResourceLimits": "NONE",
        "ReturnToService": "2",
        "KillWait": "5",
        "MinJobAge": "300",
        "MaxJobCount": "60000",
        "MaxArraySize": "50001",
        "GresTypes": "gpu",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_Core_Memory",
        "SlurmdParameters": "config_overrides",
        "SchedulerType": "sched/backfill",
        "SchedulerParameters": "sched_interval=2,bf_interval=3,batch_sched_delay=0,sched_min_interval=0",
        "PriorityType": "priority/multifactor",
        "PriorityWeightAge": "1000",
        "PriorityWeightJobSize": "1000",
        "PriorityWeightPartition": "1000",
        "PriorityWeightQOS": "1000",
        "PreemptType": "preempt/partition_prio",
        "PreemptMode": "REQUEUE",
    }


def _accounting(layout: Layout, ports: Ports) -> dict[str, str]:
    """What is recorded about jobs, and where."""
    return {
        "AccountingStorageType": "accounting_storage/slurmdbd",
        "AccountingStorageHost": "127.0.0.1",
        "AccountingStoragePort": str(ports.slurmdbd),
        "AccountingStoragePass": str(layout.munge_socket),
        "AccountingStorageTRES": "gres/gpu,gres/gpu:a100,gres/gpu:v100",
        "AccountingStoreFlags": "job_script,job_comment,job_env",
        "JobAcctGatherType": "jobacct_gather/linux",
        "JobAcctGatherFrequency": "task=1",  # sstat has figures after a second
    }


def _daemons(layout: Layout, ports: Ports) -> dict[str, str]:
    """Files and ports of slurmctld and slurmd."""
    run, log = layout.root / "run", layout.root / "log"
    return {
        "SlurmctldPort": str(ports.slurmctld),
        "SlurmctldPidFile": f"{run}/slurmctld.pid",
        "SlurmctldLogFile": f"{log}/slurmctld.log",
        "SlurmctldDebug": "info",
        "StateSaveLocation": str(layout.root / "state"),
        "SlurmdSpoolDir": f"{layout.root}/spool/%n",
        "SlurmdPidFile": f"{run}/slurmd.%n.pid",
        "SlurmdLogFile": f"{log}/%n.log",
        "SlurmdDebug": "info",
    }


def slurmdbd_conf(layout: Layout, ports: Ports) -> str:
    """The text of slurmdbd.conf. The database's socket comes by MYSQL_UNIX_PORT in the environment."""
    return (
        f"AuthType=auth/munge\nAuthInfo=socket={layout.munge_socket}\n"
        f"DbdHost=localhost\nDbdAddr=127.0.0.1\nDbdPort={ports.slurmdbd}\nSlurmUser=root\n"
        f"StorageType=accounting_storage/mysql\nStorageUser=root\nStorageLoc={DATABASE}\n"
        f"PidFile={layout.root}/run/slurmdbd.pid\nLogFile={layout.log('slurmdbd')}\nDebugLevel=info\n"
    )


def device_folder(layout: Layout) -> Path:
    """Where the fake GPU devices stand."""
    return layout.root / "dev"


def gres_conf(layout: Layout) -> str:
    """The text of gres.conf: Slurm sets CUDA_VISIBLE_DEVICES only for GPUs that have a device file."""
    return "".join(
        f"NodeName={node.name} Name=gpu Type={node.gpu_type} "
        f"File={device_folder(layout)}/nvidia[0-{node.gpus - 1}]\n"
        for node in NODES
        if node.gpus
    )


def make_devices(layout: Layout) -> None:
    """Make the fake GPUs: NVIDIA's device numbers. No driver stands behind them and nobody may open them."""
    for number in range(max(node.gpus for node in NODES)):
        path = device_folder(layout) / f"nvidia{number}"
        try:
            os.mknod(path, 0o020000, os.makedev(195, number))
        except PermissionError as error:
            raise ClusterError(f"{path}: this root may not make devices (CAP_MKNOD): {error}") from error


def cgroup_conf(version: tuple[int, int]) -> str:
    """The text of cgroup.conf: no cgroups where Slurm lets us choose that."""
    if version >= (23, 11):
        return "CgroupPlugin=disabled\n"
    if Path("/sys/fs/cgroup/cgroup.controllers").exists():
        return "CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\n"
    return "CgroupPlugin=cgroup/v1\n"


def task_prolog(layout: Layout) -> str:
    """The text of the script that Slurm runs before each task.

    A task's environment is its job's, not its slurmd's. What this prints is added to it, so that a task
    is known as the cluster's even when slurmd and slurmstepd are gone.
    """
    return f"#!/bin/sh\necho 'export TFJOBTUI_CLUSTER_TOKEN={layout.root}'\n"
