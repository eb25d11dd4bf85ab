"""The test cluster as seen by the tests, which run as an ordinary user."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VARIABLE = "TFJOBTUI_TEST_CLUSTER"
GRACE_S = 90.0  # beyond a command's own time limit: a daemon may take a minute until it answers


class ClusterRequestError(Exception):
    """The cluster could not do what a test asked for."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command left."""

    rc: int
    stdout: str
    stderr: str


class Cluster:
    """A running test cluster, by default the one that TFJOBTUI_TEST_CLUSTER names."""

    def __init__(self, folder: str | Path | None = None) -> None:
        chosen = folder or os.environ.get(VARIABLE)
        if not chosen:
            raise ClusterRequestError(f"{VARIABLE} is not set: no test cluster is running (see `make test`)")
        self.dir = Path(chosen)
        try:
            self.about: dict[str, Any] = json.loads((self.dir / "cluster.json").read_text())
        except FileNotFoundError as error:
            raise ClusterRequestError(f"no test cluster is running in {self.dir}") from error

    @property
    def slurm_conf(self) -> str:
        """The path of its slurm.conf."""
        return str(self.about["slurm_conf"])

    @property
    def env(self) -> dict[str, str]:
        """What a Slurm command needs in its environment to reach this cluster."""
        return {"SLURM_CONF": self.slurm_conf}

    @property
    def user(self) -> str:
        """The ordinary user whom the tests run as."""
        return str(self.about["user"])

    @property
    def second_user(self) -> str:
        """The other ordinary user."""
        return str(self.about["second_user"])

    def root(self, *argv: str, check: bool = True, timeout_s: float = 30.0, **more: Any) -> Answer:
        """Run a command as root. `more`: cwd, input (text), env. A failure raises unless check is off."""
        return self._ask({"op": "root", "argv": argv, "timeout": timeout_s, **more}, check, timeout_s)

    def as_second(self, *argv: str, check: bool = True, timeout_s: float = 30.0, **more: Any) -> Answer:
        """Run a command as the second user, in its home unless `cwd` is given."""
        return self._ask({"op": "as_second", "argv": argv, "timeout": timeout_s, **more}, check, timeout_s)

    def stop_daemon(self, name: str) -> None:
        """End a daemon softly: munged, mariadbd, slurmdbd, slurmctld or a node's name."""
        self._ask({"op": "stop", "daemon": name})

    def start_daemon(self, name: str) -> None:
        """Start a daemon that has ended, and wait until it answers."""
        self._ask({"op": "start", "daemon": name})

    def kill_daemon(self, name: str) -> None:
        """End a daemon with SIGKILL."""
        self._ask({"op": "kill", "daemon": name})

    def pause_daemon(self, name: str) -> None:
        """Still a daemon: it accepts connections and never answers."""
        self._ask({"op": "pause", "daemon": name})

    def resume_daemon(self, name: str) -> None:
        """Let a paused daemon go on."""
        self._ask({"op": "resume", "daemon": name})

    def _ask(self, request: dict[str, Any], check: bool = True, timeout_s: float = 30.0) -> Answer:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(timeout_s + GRACE_S)
            connection.connect(self.about["control"])
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile("rb") as stream:
                answer = Answer(**json.loads(stream.readline()))
        if check and answer.rc != 0:
            what = request.get("argv") or (request["op"], request["daemon"])
            raise ClusterRequestError(f"{' '.join(what)}: rc {answer.rc}\n{answer.stdout}{answer.stderr}")
        return answer
