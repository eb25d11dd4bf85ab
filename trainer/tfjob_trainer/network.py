"""What decides the speed between nodes, as it is found on this one: said at the start, before it is needed.

NCCL goes over InfiniBand or RoCE where it finds devices and may pin enough memory (`ulimit -l`), and else over
the Ethernet, many times slower, without a word.
"""

import fcntl
import os
import resource
import socket
import struct
from collections.abc import Mapping
from pathlib import Path

SHOWN = ("NCCL_SOCKET_IFNAME", "NCCL_IB_DISABLE", "NCCL_IB_HCA", "NCCL_NET", "NCCL_P2P_DISABLE", "NCCL_DEBUG")
_SIOCGIFADDR = 0x8915
_ENOUGH_MEMLOCK = 1 << 30


def describe(environment: Mapping[str, str] = os.environ, root: Path = Path("/")) -> list[str]:
    """Lines for the log. `root` is where /sys is looked for."""
    devices = fast_devices(root)
    lines = [
        f"network: {', '.join(interfaces(root)) or 'no interface is up'}; "
        f"InfiniBand or RoCE: {', '.join(devices) or 'none'}; memlock (ulimit -l) {_limit_text()}",
        "NCCL: " + _nccl(environment),
    ]
    if devices and _memlock() < _ENOUGH_MEMLOCK:
        lines.append(
            "warning: with this memlock NCCL cannot use InfiniBand (ibv_reg_mr or ibv_create_qp fails); it has to be "
            "unlimited on the nodes (slurmd: LimitMEMLOCK=infinity; slurm.conf: PropagateResourceLimitsExcept=MEMLOCK)"
        )
    return lines


def _nccl(environment: Mapping[str, str]) -> str:
    told = [f"{name}={environment[name]}" for name in SHOWN if environment.get(name)]
    if not environment.get("NCCL_SOCKET_IFNAME"):
        told.insert(0, "chooses its interface itself (NCCL_SOCKET_IFNAME is not set)")
    return ", ".join(told)


def interfaces(root: Path = Path("/")) -> list[str]:
    """Interfaces that are up, with speed and address: "ib0 100 Gb/s 10.1.0.4". The loopback is left out."""
    found = []
    for path in sorted((root / "sys/class/net").glob("*")):
        if path.name == "lo" or _read(path / "operstate") not in ("up", "unknown"):
            continue
        speed = _read(path / "speed")
        parts = [path.name]
        if speed.isdecimal() and int(speed):
            parts.append(f"{int(speed) / 1000:g} Gb/s")
        parts += _address(path.name)
        found.append(" ".join(parts))
    return found


def fast_devices(root: Path = Path("/")) -> list[str]:
    """InfiniBand and RoCE ports: "mlx5_0 InfiniBand 200 Gb/sec active"."""
    found = []
    for port in sorted((root / "sys/class/infiniband").glob("*/ports/*")):
        layer = {"Ethernet": "RoCE"}.get(_read(port / "link_layer"), _read(port / "link_layer") or "?")
        rate = " ".join(_read(port / "rate").split()[:2])
        state = _read(port / "state").partition(":")[2].strip().lower()
        found.append(" ".join(filter(None, (port.parent.parent.name, layer, rate, state))))
    return found


def _address(interface: str) -> list[str]:
    """The IPv4 address of an interface, if it has one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            answer = fcntl.ioctl(sock, _SIOCGIFADDR, struct.pack("256s", interface.encode()[:15]))
        except OSError:
            return []
    return [socket.inet_ntoa(answer[20:24])]


def _memlock() -> float:
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return float("inf") if soft == resource.RLIM_INFINITY else soft


def _limit_text() -> str:
    limit = _memlock()
    return "unlimited" if limit == float("inf") else f"{limit / 1024:.0f} KiB"


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
