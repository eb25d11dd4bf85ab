"""The cluster's daemons: how each is started and how one sees that it answers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.processes import TOKEN, Children, clean_environment, wait
from tests.cluster.settings import DATABASE, NODES, ClusterError, Layout

ANSWER_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0
SOUND_NODE_STATES = ("idle", "mixed", "allocated", "completing")


@dataclass(frozen=True, slots=True)
class Daemon:
    """One daemon: its name, its command and a command that tells whether it answers."""

    name: str
    argv: Sequence[str]
    probe: Sequence[str]
    good_answer: Sequence[str] = ()  # the probe's output has to hold one of these, if any are given


def all_daemons(layout: Layout) -> dict[str, Daemon]:
    """The daemons in the order in which they start."""
    nodes = [_slurmd(layout, node.name) for node in NODES]
    daemons = [_munged(layout), _mariadbd(layout), _slurmdbd(), _slurmctld(), *nodes]
    return {daemon.name: daemon for daemon in daemons}


def _munged(layout: Layout) -> Daemon:
    folder = layout.munge_socket.parent
    argv = [
        *("munged", "--foreground", "--force", f"--socket={layout.munge_socket}"),
        *(f"--key-file={folder}/key", f"--pid-file={folder}/pid", f"--seed-file={folder}/seed"),
        f"--log-file={layout.log('munged')}",
    ]
    return Daemon("munged", argv, ["munge", "-n", "-S", str(layout.munge_socket)])


def _mariadbd(layout: Layout) -> Daemon:
    # The data are thrown away at the end: durability would only cost time.
    argv = [
        *("mariadbd", "--no-defaults", "--user=root", "--skip-networking", "--skip-log-bin"),
        *(f"--datadir={layout.root}/db", f"--socket={layout.database_socket}"),
        *("--innodb-flush-log-at-trx-commit=0", "--innodb-lock-wait-timeout=900"),
        *("--innodb-buffer-pool-size=128M", "--innodb-log-file-size=64M", "--skip-innodb-doublewrite"),
        f"--pid-file={layout.root}/run/mariadbd.pid",
    ]
    return Daemon(
        "mariadbd", argv, ["mariadb-admin", "--no-defaults", f"--socket={layout.database_socket}", "ping"]
    )


def database_setup(layout: Layout) -> list[str]:
    """The command that makes an empty database."""
    return [
        *("mariadb-install-db", "--no-defaults", f"--datadir={layout.root}/db", "--user=root"),
        *("--skip-test-db", "--auth-root-authentication-method=normal", "--innodb-log-file-size=64M"),
    ]


def slurm_database(layout: Layout) -> list[str]:
    """The command that makes Slurm's database.

    slurmdbd would make it by itself. But after its first attempt, to which the server says "unknown
    database", the client library of MariaDB 11.8.9 (Debian 13) refuses every answer with error 5027.
    """
    return ["mariadb-admin", "--no-defaults", f"--socket={layout.database_socket}", "create", DATABASE]


def _slurmdbd() -> Daemon:
    return Daemon(
        "slurmdbd", ["slurmdbd", "-D"], ["sacctmgr", "-n", "-P", "show", "qos", "format=name"], ["normal"]
    )


def _slurmctld() -> Daemon:
    # -i: 26.05 refuses to start again without a file that it writes only every few minutes.
    return Daemon("slurmctld", ["slurmctld", "-D", "-i"], ["scontrol", "ping"], ["is UP"])


def _slurmd(layout: Layout, name: str) -> Daemon:
    probe = ["sinfo", "-h", "-n", name, "-o", "|%T|"]  # a node that doesn't respond is idle*, or unknown
    return Daemon(name, ["slurmd", "-D", "-N", name], probe, [f"|{state}|" for state in SOUND_NODE_STATES])


class DaemonSet:
    """Starts, ends and stills the daemons of one cluster."""

    def __init__(self, layout: Layout, children: Children) -> None:
        self.layout = layout
        self.daemons = all_daemons(layout)
        self._children = children
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def env(self) -> dict[str, str]:
        """The environment of the daemons and of root's commands."""
        return clean_environment(
            pwd.getpwuid(0),
            SLURM_CONF=str(self.layout.slurm_conf),
            MYSQL_UNIX_PORT=str(self.layout.database_socket),
            **{TOKEN: str(self.layout.root)},
        )

    def get(self, name: str) -> Daemon:
        """The daemon with this name."""
        if name not in self.daemons:
            raise ClusterError(f"no daemon {name!r}; there are {', '.join(self.daemons)}")
        return self.daemons[name]

    def is_running(self, name: str) -> bool:
        """Whether the process lives (it may be paused)."""
        process = self._processes.get(name)
        return process is not None and process.poll() is None

    def launch(self, name: str) -> None:
        """Start the process without waiting for its first answer."""
        daemon = self.get(name)
        if self.is_running(name):
            raise ClusterError(f"{name} is running already")
        with self.layout.log(f"{name}.out").open("ab") as output:
            process = self._children.start(daemon.argv, env=self.env, stdout=output, stderr=output)
        self._processes[name] = process

    async def start(self, name: str) -> None:
        """Start the daemon and wait until it answers."""
        self.launch(name)
        await self.answers(name)

    async def answers(self, name: str) -> None:
        """Wait until the daemon answers; its early end is an error that shows its last words."""
        daemon = self.get(name)
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while not await self._answers_now(daemon):
            if not self.is_running(name):
                raise ClusterError(f"{name} ended at once; its last words:\n{self._last_words(name)}")
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"{name} has not answered in time; its last words:\n{self._last_words(name)}"
                )
            await asyncio.sleep(0.1)

    async def _answers_now(self, daemon: Daemon) -> bool:
        answer = await self._children.run(daemon.probe, env=self.env, timeout_s=15)
        if answer.rc != 0:
            return False
        return not daemon.good_answer or any(good in answer.stdout for good in daemon.good_answer)

    def _last_words(self, name: str) -> str:
        words = [_tail(path) for path in (self.layout.log(name), self.layout.log(f"{name}.out"))]
        return "\n".join(filter(None, words))

    async def stop(self, name: str) -> None:
        """End the daemon softly, as its service would."""
        process = self._running(name)
        process.send_signal(signal.SIGTERM)
        if await wait(process, STOP_TIMEOUT_S) is None:
            raise ClusterError(
                f"{name} has not ended within {STOP_TIMEOUT_S:.0f} s of SIGTERM (is it paused?)"
            )

    async def kill(self, name: str) -> None:
        """End the daemon without a chance to save anything."""
        process = self._running(name)
        process.kill()
        await wait(process, STOP_TIMEOUT_S)

    def pause(self, name: str) -> None:
        """Stop the daemon in its tracks: it accepts connections and never answers."""
        self._running(name).send_signal(signal.SIGSTOP)

    def resume(self, name: str) -> None:
        """Let a paused daemon go on."""
        self._running(name).send_signal(signal.SIGCONT)

    def _running(self, name: str) -> subprocess.Popen[bytes]:
        self.get(name)
        if not self.is_running(name):
            raise ClusterError(f"{name} is not running")
        return self._processes[name]


def _tail(path: Path, size: int = 2000) -> str:
    """The end of a file, empty when it is not there."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - size))
        return file.read().decode(errors="replace").strip()
    return ""
