"""`scontrol show config`, `partition` and `node`: this machine as a cluster of one node."""

from __future__ import annotations

import os
import platform

from tfjobtui import __version__
from tfjobtui.schedulers.local.commands.forms import exact_size
from tfjobtui.schedulers.local.commands.job_rows import MIN_JOB_AGE_S
from tfjobtui.schedulers.local.commands.version import LIKE
from tfjobtui.schedulers.local.environment import CLUSTER
from tfjobtui.schedulers.local.machine import Machine, find_machine
from tfjobtui.schedulers.local.place import host_name
from tfjobtui.schedulers.local.store import Store


def text_of(store: Store, what: str, name: str, *, one_line: bool) -> str:
    """What scontrol prints; nothing for a node or partition that is not there."""
    if what == "config":
        return _config(store)
    own = host_name() if what == "node" else CLUSTER
    if name not in ("", own):
        return ""
    machine = find_machine(store.settings())
    lines = _node(store, machine) if what == "node" else _partition(machine)
    return " ".join(lines) + "\n" if one_line else "\n   ".join(lines) + "\n\n"


def _config(store: Store) -> str:
    pairs = {
        "ClusterName": CLUSTER,
        "KillOnBadExit": "0",
        "KillWait": f"{store.settings().kill_wait_s:.0f} sec",
        "MaxArraySize": "1001",
        "MinJobAge": f"{MIN_JOB_AGE_S:.0f} sec",
        "SelectType": f"tfjobtui {__version__}, local scheduler",
        "SLURM_CONF": os.devnull,
        "SLURM_VERSION": LIKE,
        "StateSaveLocation": str(store.place.folder),
        "SlurmctldHost[0]": host_name(),
    }
    return "".join(f"{name:<23} = {value}\n" for name, value in pairs.items()) + "\n"


def _tres(cpus: int, memory_bytes: int, machine: Machine, gpus: int) -> str:
    words = [f"cpu={cpus}", f"mem={exact_size(memory_bytes >> 20, 'M')}", f"billing={cpus}"]
    if machine.gpus and gpus:
        words.append(f"gres/gpu={gpus}")
    return ",".join(words)


def _node(store: Store, machine: Machine) -> list[str]:
    held = [record.allocation for record in store.live() if record.allocation is not None]
    cpus, memory = sum(len(one.cpus) for one in held), sum(one.memory_bytes for one in held)
    gpus = sum(len(one.gpus) for one in held)
    total = len(machine.cpus)
    state = "ALLOCATED" if cpus >= total else "MIXED" if cpus or gpus else "IDLE"
    uname = platform.uname()
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    return [
        f"NodeName={host_name()} Arch={uname.machine} CoresPerSocket=1 ",
        f"CPUAlloc={cpus} CPUEfctv={total} CPUTot={total} CPULoad={os.getloadavg()[0]:.2f}",
        "AvailableFeatures=(null)",
        "ActiveFeatures=(null)",
        f"Gres={gres_text(machine) or '(null)'}",
        f"NodeAddr=127.0.0.1 NodeHostName={host_name()} Version={LIKE}",
        f"OS={uname.system} {uname.release} {uname.version} ",
        f"RealMemory={machine.memory_bytes >> 20} AllocMem={memory >> 20} FreeMem={free} Sockets={total} Boards=1",
        f"State={state} ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A",
        f"Partitions={CLUSTER} ",
        f"CfgTRES={_tres(total, machine.memory_bytes, machine, len(machine.gpus))}",
        f"AllocTRES={_tres(cpus, memory, machine, gpus) if held else ''}",
    ]


def gres_text(machine: Machine) -> str:
    """`gpu:a100:4`, with commas between several types; empty without GPUs."""
    kinds = [gpu.kind for gpu in machine.gpus]
    return ",".join(f"gpu:{kind}:{kinds.count(kind)}" for kind in dict.fromkeys(kinds))


def _partition(machine: Machine) -> list[str]:
    total = len(machine.cpus)
    return [
        f"PartitionName={CLUSTER}",
        "AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL",
        "AllocNodes=ALL Default=YES QoS=N/A",
        "DefaultTime=NONE DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO",
        "MaxNodes=1 MaxTime=UNLIMITED MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED",
        f"Nodes={host_name()}",
        "PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO",
        "OverTimeLimit=NONE PreemptMode=OFF",
        f"State=UP TotalCPUs={total} TotalNodes=1 SelectTypeParameters=NONE",
        "JobDefaults=(null)",
        "DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED",
        f"TRES={_tres(total, machine.memory_bytes, machine, len(machine.gpus))},node=1",
    ]
