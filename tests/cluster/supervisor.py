"""The process that owns a cluster: brings it up, serves its control socket, ends everything."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import pwd
import re
import secrets
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from tests.cluster.control import ControlServer
from tests.cluster.daemons import DaemonSet, database_setup, slurm_database
from tests.cluster.processes import Children, become_subreaper, end_all_with_token
from tests.cluster.settings import (
    LONGEST_SOCKET_PATH,
    NODES,
    PARTITIONS,
    ClusterError,
    Layout,
    Ports,
    make_devices,
    reserve_ports,
    write_configuration,
)

PLAIN_PATH = re.compile(r"/[\w./-]+", re.ASCII)  # it goes into Slurm's files, which can't quote
FOLDERS = ("munge", "db", "etc", "log", "run", "state", "spool", "dev")


class Supervisor:
    """One cluster, from its start to its end."""

    def __init__(self, root: Path, user: str, second_user: str | None, overrides: Mapping[str, str]) -> None:
        self.layout = Layout(root)
        self.user = pwd.getpwnam(user)
        self.second_user = pwd.getpwnam(second_user) if second_user else None
        self.overrides = overrides
        self.children = Children()
        self.daemons = DaemonSet(self.layout, self.children)

    def run(self) -> int:
        """Serve until a signal ends it."""
        with claim(self.layout):
            end_all_with_token(str(self.layout.root))
            self.layout.forget()
            try:
                return asyncio.run(self._serve())
            finally:
                end_all_with_token(str(self.layout.root))
                self.layout.forget()

    async def _serve(self) -> int:
        become_subreaper()
        ended = self._listen_for_signals()
        start = asyncio.create_task(self._bring_up())
        stop = asyncio.create_task(ended.wait())
        await asyncio.wait({start, stop}, return_when=asyncio.FIRST_COMPLETED)
        if not start.done():
            start.cancel()
            return 1
        start.result()
        control = ControlServer(self.daemons, self.children, self.second_user)
        async with await control.listen(self.layout.control_socket, self.user):
            print("ready", flush=True)
            await stop
        return 0

    def _listen_for_signals(self) -> asyncio.Event:
        """An event that SIGTERM and SIGINT set; children that end are reaped as they do."""
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        loop.add_signal_handler(signal.SIGCHLD, self.children.reap)
        for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(sig) is not signal.SIG_IGN:  # nohup's wish is respected
                loop.add_signal_handler(sig, ended.set)
        return ended

    async def _bring_up(self) -> None:
        ports = reserve_ports()
        prepare_folder(self.layout)
        write_configuration(self.layout, ports, self.overrides)
        make_devices(self.layout)
        await asyncio.gather(self.daemons.start("munged"), self._start_database())
        await self.daemons.start("slurmdbd")
        nodes = [node.name for node in NODES]
        await self.daemons.start("slurmctld")
        for name in nodes:
            self.daemons.launch(name)
        for name in nodes:
            await self.daemons.answers(name)
        self._describe(ports)

    async def _start_database(self) -> None:
        await self._run(database_setup(self.layout))
        await self.daemons.start("mariadbd")
        await self._run(slurm_database(self.layout))

    async def _run(self, argv: list[str]) -> None:
        made = await self.children.run(argv, env=self.daemons.env, timeout_s=120)
        if made.rc != 0:
            raise ClusterError(f"{argv[0]} failed:\n{made.stdout}{made.stderr}")

    def _describe(self, ports: Ports) -> None:
        """Write what clients need to know."""
        layout = self.layout
        layout.env_file.write_text(
            f"export SLURM_CONF={layout.slurm_conf}\nexport TFJOBTUI_TEST_CLUSTER={layout.root}\n"
        )
        description = {
            "dir": str(layout.root),
            "slurm_conf": str(layout.slurm_conf),
            "control": str(layout.control_socket),
            "user": self.user.pw_name,
            "second_user": self.second_user.pw_name if self.second_user else None,
            "supervisor_pid": os.getpid(),
            "first_port": ports.first,
            "nodes": [node.name for node in NODES],
            "partitions": list(PARTITIONS),
        }
        layout.description.write_text(json.dumps(description, indent=1) + "\n")


def prepare_folder(layout: Layout) -> None:
    """Make the cluster's folders anew, with the munge key. Other files in the folder are left alone."""
    for name in FOLDERS:
        folder = layout.root / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        folder.chmod(0o755)
    layout.database_socket.parent.chmod(0o700)
    key = layout.munge_socket.parent / "key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(1024))
    key.chmod(0o400)


def make_root(root: Path) -> Path:
    """Make the cluster's folder, or check that the one which is there can be trusted."""
    if os.geteuid() != 0:
        raise ClusterError("the cluster's daemons run as root: start this as root")
    if not PLAIN_PATH.fullmatch(str(root)):
        raise ClusterError(f"{root}: use an absolute path of letters, digits and . _ - only")
    if len(f"{root}/control.sock") > LONGEST_SOCKET_PATH:
        raise ClusterError(f"{root}: too long for the sockets inside it")
    root.mkdir(mode=0o755, parents=True, exist_ok=True)
    if root.is_symlink() or root.stat().st_uid != 0:
        raise ClusterError(f"{root}: not a folder of root's; another user could change it under us")
    root.chmod(0o755)
    return root.resolve()


@contextlib.contextmanager
def claim(layout: Layout) -> Iterator[None]:
    """Hold the folder's lock, with this process's id in it. The lock goes with the process."""
    file = layout.lock_file.open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ClusterError(
            f"a cluster is running in {layout.root} already (process {holder(file)})"
        ) from None
    file.truncate(0)
    file.write(f"{os.getpid()}\n")
    file.flush()
    try:
        yield
    finally:
        file.close()


def holder(file: IO[str]) -> int | None:
    """The process id that stands in the lock file."""
    file.seek(0)
    text = file.read().strip()
    return int(text) if text.isdigit() else None


def report(error: ClusterError) -> int:
    """Say what went wrong and give the exit status."""
    print(f"cluster: {error}", file=sys.stderr, flush=True)
    return 1
