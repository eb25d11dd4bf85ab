"""Bring up or end a real Slurm cluster in one private folder, without touching the system's own Slurm.

    python3 tests/cluster/cluster.py serve --dir DIR --user USER [--second-user USER2] [--set KEY=VALUE]
    python3 tests/cluster/cluster.py stop --dir DIR

`serve` (as root) prints `ready` when every node is idle and then stays until SIGTERM or SIGINT.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import pwd
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import IO

if not __package__:  # started as a script
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.cluster.processes import end_all_with_token
from tests.cluster.settings import ClusterError, Layout
from tests.cluster.supervisor import Supervisor, holder, make_root, report

NEEDED = ("munged", "mariadbd", "mariadb-install-db", "slurmdbd", "slurmctld", "slurmd", "sinfo")
STOP_TIMEOUT_S = 30.0


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.command(options))
    except ClusterError as error:
        return report(error)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    serve_parser = commands.add_parser("serve", help="start a cluster and stay")
    serve_parser.add_argument("--dir", type=Path, required=True, help="the cluster's own folder")
    serve_parser.add_argument("--user", required=True, help="who owns the control socket")
    serve_parser.add_argument("--second-user", help="whom as_second requests run as")
    serve_parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a line of slurm.conf"
    )
    serve_parser.set_defaults(command=serve)
    stop_parser = commands.add_parser("stop", help="end the cluster in a folder, and what a crash left")
    stop_parser.add_argument("--dir", type=Path, required=True)
    stop_parser.set_defaults(command=stop)
    return parser


def serve(options: argparse.Namespace) -> int:
    """Start a cluster and stay until a signal ends it."""
    root = make_root(options.dir)
    _check_programs()
    for name in filter(None, (options.user, options.second_user)):
        _check_user(name)
    overrides = dict(_key_and_value(item) for item in options.set)
    return Supervisor(root, options.user, options.second_user, overrides).run()


def stop(options: argparse.Namespace) -> int:
    """End the supervisor, if one lives, and everything that carries the folder's token."""
    layout = Layout(options.dir.resolve())
    _end_supervisor(layout)
    end_all_with_token(str(layout.root))
    layout.forget()
    return 0


def _check_programs() -> None:
    os.environ["PATH"] = "/usr/sbin:/sbin:" + os.environ.get("PATH", "/usr/bin:/bin")
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        raise ClusterError(
            f"missing: {', '.join(missing)} (apt-get install slurm-wlm slurmdbd munge mariadb-server)"
        )


def _check_user(name: str) -> None:
    try:
        pwd.getpwnam(name)
    except KeyError:
        raise ClusterError(f"no user {name!r} on this machine (useradd -m {name})") from None


def _key_and_value(item: str) -> tuple[str, str]:
    key, equals, value = item.partition("=")
    if not equals:
        raise ClusterError(f"--set {item}: expected KEY=VALUE")
    return key, value


def _end_supervisor(layout: Layout) -> None:
    """Send SIGTERM to the process that holds the folder's lock, and SIGKILL if it doesn't heed it."""
    with contextlib.suppress(FileNotFoundError), layout.lock_file.open("r+") as file:
        for sig in (signal.SIGTERM, signal.SIGKILL):
            deadline = time.monotonic() + STOP_TIMEOUT_S
            pid = holder(file)
            if _is_unlocked(file) or pid is None:
                return
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, sig)
            while time.monotonic() < deadline and not _is_unlocked(file):
                time.sleep(0.05)


def _is_unlocked(file: IO[str]) -> bool:
    """Whether no supervisor holds the lock; it isn't kept."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    fcntl.flock(file, fcntl.LOCK_UN)
    return True


if __name__ == "__main__":
    sys.exit(main())
