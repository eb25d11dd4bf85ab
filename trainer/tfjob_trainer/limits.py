"""How many CPUs and how much memory this process may use: what the job was given, not what the node has."""

import os
from collections.abc import Mapping
from pathlib import Path

MIB = 1 << 20


def cpus(environment: Mapping[str, str] = os.environ) -> int:
    """CPUs of this task: what Slurm says, else those that the process may run on."""
    text = environment.get("SLURM_CPUS_PER_TASK", "")
    return int(text) if text.isdecimal() and int(text) else len(os.sched_getaffinity(0))


def memory_bytes(environment: Mapping[str, str] = os.environ, root: Path = Path("/")) -> int:
    """The lowest limit on memory: of the node, of the control groups that we are in, of the Slurm job.

    `root` is where /proc and /sys are looked for.
    """
    found = [_of_node(root), *_of_cgroups(root)]
    if environment.get("SLURM_MEM_PER_NODE", "").isdecimal():
        found.append(int(environment["SLURM_MEM_PER_NODE"]) * MIB)
    elif environment.get("SLURM_MEM_PER_CPU", "").isdecimal():
        found.append(int(environment["SLURM_MEM_PER_CPU"]) * MIB * cpus(environment))
    return min((limit for limit in found if limit > 0), default=4096 * MIB)  # 0: "all memory of the node"


def _of_node(root: Path) -> int:
    try:
        words = (root / "proc/meminfo").read_text().split(maxsplit=2)
        return int(words[1]) * 1024
    except (OSError, ValueError, IndexError):
        return 0


def _of_cgroups(root: Path) -> list[int]:
    """The limits of version 2 (0::/path) and of the memory controller of version 1, of each group and its parents."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers and "memory" not in controllers.split(","):
            continue
        base = root / "sys/fs/cgroup" / ("memory" if controllers else "")
        name = "memory.limit_in_bytes" if controllers else "memory.max"
        group = Path(path.lstrip("/"))
        found += [_number(base / part / name) for part in (group, *group.parents)]
    return [limit for limit in found if limit]


def _number(path: Path) -> int:
    """The number in a file; 0 where there is none ("max", or no such file)."""
    try:
        text = path.read_text().strip()
    except OSError:
        return 0
    return int(text) if text.isdecimal() else 0
