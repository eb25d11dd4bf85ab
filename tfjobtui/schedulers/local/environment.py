"""The environment of a batch script and of a step's tasks, as Slurm sets it.

Source: sbatch(1) and srun(1), OUTPUT ENVIRONMENT VARIABLES, and jobs of Slurm 22.05.
"""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tfjobtui.schedulers.local.place import FOLDER_VARIABLE, TOKEN_VARIABLE, Place, host_name

if TYPE_CHECKING:  # srun imports this module, and each of its starts would pay for the records' classes
    from tfjobtui.schedulers.local.records import Allocation, JobRecord

CLUSTER = "local"
_MEBIBYTE = 1 << 20
_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games"
_NEVER_PASSED = ("SLURM_", "SLURMD_", "TFJOBTUI_LOCAL_")
"""Of the surroundings of a submission: settings of an outer job are not this one's."""


def exported(export: str, submitted: Mapping[str, str], login: Mapping[str, str]) -> dict[str, str]:
    """What `--export` lets through of the submission's environment; `login` is what a new login would have.

    `ALL` (or `ALL,A=1`), `NONE` or nothing, `NIL` (not even a login's), or only the variables that are named,
    with a value or not; quotes keep a comma from ending a value. With `ALL,…` Slurm adds what only a login
    has; here everything is a login on this machine already.
    """
    words = _words(export)
    own = {name: value for name, value in submitted.items() if not name.startswith(_NEVER_PASSED)}
    kinds = {word.upper() for word in words}
    if "ALL" in kinds:
        environment = own
    else:
        environment = bare_login() if kinds == {"NIL"} else dict(login)
    for word in words:
        name, equals, value = word.partition("=")
        if equals:
            environment[name] = value
        elif name in own and name.upper() not in ("ALL", "NONE", "NIL"):
            environment[name] = own[name]
    return environment


def needs_login(export: str) -> bool:
    """Whether what a new login would have is asked for."""
    kinds = {word.upper() for word in _words(export)}
    return "ALL" not in kinds and kinds != {"NIL"}


def _words(export: str) -> list[str]:
    """Split at the commas outside of quotes; a word that is quoted as a whole loses its quotes."""
    words = re.findall(r"""(?:'[^']*'|"[^"]*"|[^,'"]|['"])+""", export)
    return [
        word[1:-1] if len(word) > 1 and word[0] == word[-1] and word[0] in "'\"" else word for word in words
    ]


def bare_login() -> dict[str, str]:
    """The least of a login's environment."""
    try:
        entry = pwd.getpwuid(os.getuid())
        name, home, shell = entry.pw_name, entry.pw_dir, entry.pw_shell
    except KeyError:
        name, home, shell = str(os.getuid()), "/", "/bin/sh"
    return {"USER": name, "LOGNAME": name, "HOME": home, "SHELL": shell or "/bin/sh", "PATH": _DEFAULT_PATH}


def batch_environment(
    record: JobRecord, place: Place, base: Mapping[str, str], *, node_memory_bytes: int
) -> dict[str, str]:
    """The environment of the script; `base` is what `exported` gave."""
    environment = dict(base)
    # An empty list hides the GPUs of others from a job that has none.
    environment |= {"CUDA_VISIBLE_DEVICES": "", "ENVIRONMENT": "BATCH", "HOSTNAME": host_name()}
    environment.setdefault("TMPDIR", "/tmp")
    environment |= _job_variables(record) | _resource_variables(record, node_memory_bytes)
    environment |= _array_variables(record)
    environment |= {FOLDER_VARIABLE: str(place.folder), TOKEN_VARIABLE: record.token}
    environment["PATH"] = os.pathsep.join([str(place.bin), environment.get("PATH", _DEFAULT_PATH)])
    return environment


def _job_variables(record: JobRecord) -> dict[str, str]:
    request, host = record.request, host_name()
    variables = {
        "SLURM_JOB_ID": str(record.id),
        "SLURM_JOBID": str(record.id),
        "SLURM_JOB_NAME": request.name,
        "SLURM_JOB_USER": bare_login()["USER"],
        "SLURM_JOB_UID": str(os.getuid()),
        "SLURM_JOB_GID": str(os.getgid()),
        "SLURM_JOB_PARTITION": request.partition or CLUSTER,
        "SLURM_JOB_QOS": request.qos or "normal",
        "SLURM_JOB_NODELIST": host,
        "SLURM_JOB_NUM_NODES": "1",
        "SLURM_NODELIST": host,
        "SLURM_NNODES": "1",
        "SLURM_NODEID": "0",
        "SLURM_NODE_ALIASES": "(null)",
        "SLURM_PROCID": "0",
        "SLURM_LOCALID": "0",
        "SLURM_GTIDS": "0",
        "SLURM_PRIO_PROCESS": "0",
        "SLURM_SUBMIT_DIR": request.submit_dir or request.work_dir,
        "SLURM_SUBMIT_HOST": host,
        "SLURM_CLUSTER_NAME": CLUSTER,
        "SLURM_CONF": os.devnull,
        "SLURMD_NODENAME": host,
        "SLURM_TOPOLOGY_ADDR": host,
        "SLURM_TOPOLOGY_ADDR_PATTERN": "node",
    }
    if request.account:
        variables["SLURM_JOB_ACCOUNT"] = request.account
    if request.export.upper() != "ALL":
        variables["SLURM_EXPORT_ENV"] = request.export
    if request.dependency:
        variables["SLURM_JOB_DEPENDENCY"] = request.dependency
    if record.restarts:
        variables["SLURM_RESTART_COUNT"] = str(record.restarts)
    if record.start_s is not None:
        variables["SLURM_JOB_START_TIME"] = str(int(record.start_s))
        if record.time_limit_s != float("inf"):
            variables["SLURM_JOB_END_TIME"] = str(int(record.start_s + record.time_limit_s))
    return variables


def _resource_variables(record: JobRecord, node_memory_bytes: int) -> dict[str, str]:
    request, held = record.request, record.allocation
    cpus = len(held.cpus) if held is not None else request.cpus
    ntasks = request.ntasks or request.ntasks_per_node
    variables = {
        "SLURM_CPUS_ON_NODE": str(cpus),
        "SLURM_JOB_CPUS_PER_NODE": str(cpus),
        # Without a number of tasks Slurm says how many the CPUs are enough for.
        "SLURM_TASKS_PER_NODE": str(ntasks or max(1, cpus // (request.cpus_per_task or 1))),
    }
    if ntasks is not None:
        variables |= {"SLURM_NTASKS": str(ntasks), "SLURM_NPROCS": str(ntasks)}
    if request.ntasks_per_node is not None:
        variables["SLURM_NTASKS_PER_NODE"] = str(request.ntasks_per_node)
    if request.cpus_per_task is not None:
        variables["SLURM_CPUS_PER_TASK"] = str(request.cpus_per_task)
    if request.overcommit:
        variables["SLURM_OVERCOMMIT"] = "1"
    variables |= _memory_variables(record, node_memory_bytes)
    if held is not None and held.gpus:
        variables |= _gpu_variables(held)
    return variables | {f"SLURM_{name}": value for name, value in request.variables}


def _gpu_variables(held: Allocation) -> dict[str, str]:
    indexes = ",".join(map(str, held.gpus))
    return {
        "SLURM_GPUS_ON_NODE": str(len(held.gpus)),
        "SLURM_JOB_GPUS": indexes,
        "CUDA_VISIBLE_DEVICES": indexes,
        # NVML's indexes, which the allocation has, are in this order; CUDA's own is by speed.
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "GPU_DEVICE_ORDINAL": indexes,
    }


def _memory_variables(record: JobRecord, node_memory_bytes: int) -> dict[str, str]:
    request = record.request
    if request.memory_per_cpu is not None:
        return {"SLURM_MEM_PER_CPU": str(request.memory_per_cpu // _MEBIBYTE)}
    if request.memory_per_node is not None:
        return {"SLURM_MEM_PER_NODE": str((request.memory_per_node or node_memory_bytes) // _MEBIBYTE)}
    return {}


def _array_variables(record: JobRecord) -> dict[str, str]:
    tasks = record.request.array
    if tasks is None or record.array_job_id is None or record.array_task_id is None:
        return {}
    return {
        "SLURM_ARRAY_JOB_ID": str(record.array_job_id),
        "SLURM_ARRAY_TASK_ID": str(record.array_task_id),
        "SLURM_ARRAY_TASK_COUNT": str(len(tasks)),
        "SLURM_ARRAY_TASK_MIN": str(min(first for first, _, _ in tasks.ranges)),
        "SLURM_ARRAY_TASK_MAX": str(max(last for _, last, _ in tasks.ranges)),
        "SLURM_ARRAY_TASK_STEP": dict(record.request.variables).get("ARRAY_TASK_STEP", "1"),
    }


def step_environment(
    base: Mapping[str, str], *, step: int, ntasks: int, task: int, cpus_per_task: int | None
) -> dict[str, str]:
    """The environment of one task of a step, from that of srun."""
    host = base.get("SLURMD_NODENAME", host_name())
    environment = dict(base)
    environment |= {
        "SLURM_STEP_ID": str(step),
        "SLURM_STEPID": str(step),
        "SLURM_STEP_NODELIST": host,
        "SLURM_STEP_NUM_NODES": "1",
        "SLURM_STEP_NUM_TASKS": str(ntasks),
        "SLURM_STEP_TASKS_PER_NODE": str(ntasks),
        "SLURM_NTASKS": str(ntasks),
        "SLURM_NPROCS": str(ntasks),
        "SLURM_TASKS_PER_NODE": str(ntasks),
        "SLURM_PROCID": str(task),
        "SLURM_LOCALID": str(task),
        "SLURM_GTIDS": ",".join(map(str, range(ntasks))),
        "SLURM_DISTRIBUTION": base.get("SLURM_DISTRIBUTION", "block" if ntasks > 1 else "cyclic"),
        "SLURM_JOB_CPUS_PER_NODE_PACK_GROUP_0": base.get("SLURM_JOB_CPUS_PER_NODE", "1"),
        "SLURM_SRUN_COMM_HOST": "127.0.0.1",
        "SLURM_LAUNCH_NODE_IPADDR": "127.0.0.1",
        "SLURM_UMASK": f"{umask():04o}",
        "SRUN_DEBUG": base.get("SRUN_DEBUG", "3"),
    }
    if cpus_per_task is not None:
        environment["SLURM_CPUS_PER_TASK"] = str(cpus_per_task)
    if "SLURM_JOB_GPUS" in base:
        environment["SLURM_STEP_GPUS"] = base["SLURM_JOB_GPUS"]
    return environment


def umask() -> int:
    """This process' mask for new files; it can only be read by setting it, or from /proc."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("Umask:"):
            return int(line.split()[1], 8)
    return 0o022
