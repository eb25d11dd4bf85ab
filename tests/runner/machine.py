"""Packages, users, and running commands as one of them."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.processes import TOKEN, clean_environment, die_with_parent
from tests.runner.report import Report, RunError

USERS = ("tfjobtui-a", "tfjobtui-b")
SBIN = "/usr/local/sbin:/usr/sbin:/sbin"
# What has to be there, and the package that brings it.
PROGRAMS: Mapping[str, str] = {
    "slurmctld": "slurm-wlm",
    "slurmd": "slurm-wlm",
    "squeue": "slurm-wlm",
    "slurmdbd": "slurmdbd",
    "munged": "munge",
    "mariadbd": "mariadb-server",
    "mariadb-install-db": "mariadb-server",
    "tmux": "tmux",
    "shellcheck": "shellcheck",
    "git": "git",
}
VENV_PACKAGE = "python3-venv"


def missing_packages() -> list[str]:
    """The packages that the full run needs and this machine lacks."""
    path = f"{SBIN}:{os.environ.get('PATH', '/usr/bin:/bin')}"
    missing = {package for program, package in PROGRAMS.items() if shutil.which(program, path=path) is None}
    if not _system_python_makes_venvs():
        missing.add(VENV_PACKAGE)
    return sorted(missing)


def _system_python_makes_venvs() -> bool:
    argv = ["/usr/bin/python3", "-c", "import ensurepip, venv"]
    try:
        return subprocess.run(argv, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def install_packages(report: Report) -> None:
    """Install what is missing, where that is done with apt."""
    missing = missing_packages()
    if not missing:
        return
    if shutil.which("apt-get") is None:
        raise RunError(
            f"missing: {', '.join(missing)}, and this is not Debian or Ubuntu: install them by hand"
        )
    with report.stage(f"apt-get install {' '.join(missing)}"):
        env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for argv in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *missing]):
            if subprocess.run(["apt-get", *argv], env=env, check=False).returncode != 0:
                raise RunError(f"apt-get {argv[0]} failed (see above)")


def make_users() -> None:
    """Make the two ordinary users, if they aren't there."""
    for name in USERS:
        try:
            pwd.getpwnam(name)
        except KeyError:
            subprocess.run(["useradd", "-m", "-s", "/bin/bash", name], check=True)


def user_environment(venv: Path, **more: str) -> dict[str, str]:
    """A fresh login's environment of the user who runs the tests, with the venv's programs first."""
    account = pwd.getpwnam(USERS[0])
    term = os.environ.get("TERM", "dumb")
    env = clean_environment(account, TERM="xterm-256color" if term == "dumb" else term, **more)
    env["PATH"] = f"{venv}/bin:/usr/local/bin:/usr/bin:/bin"
    return env


def run_as_user(
    argv: Sequence[str | Path], *, env: Mapping[str, str], cwd: Path, interactive: bool = False
) -> int:
    """Run a command as the user of the tests; its exit status."""
    account = pwd.getpwnam(USERS[0])
    return subprocess.run(
        argv,
        env=dict(env),
        cwd=cwd,
        stdin=None if interactive else subprocess.DEVNULL,
        user=account.pw_uid,
        group=account.pw_gid,
        extra_groups=os.getgrouplist(account.pw_name, account.pw_gid),
        preexec_fn=die_with_parent(signal.SIGTERM),
        check=False,
    ).returncode


@contextmanager
def beside_as_user(
    argv: Sequence[str | Path], *, env: Mapping[str, str], cwd: Path, log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """A command of the tests' user that runs beside others, its output in a file. It ends with the block."""
    account = pwd.getpwnam(USERS[0])
    with log.open("wb") as output:
        process = subprocess.Popen(
            argv,
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            user=account.pw_uid,
            group=account.pw_gid,
            extra_groups=os.getgrouplist(account.pw_name, account.pw_gid),
            preexec_fn=die_with_parent(signal.SIGTERM),
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def user_can(argv: Sequence[str | Path]) -> bool:
    """Whether the user of the tests can run a command with success."""
    account = pwd.getpwnam(USERS[0])
    try:
        done = subprocess.run(
            argv,
            user=account.pw_uid,
            group=account.pw_gid,
            extra_groups=[],
            cwd="/",
            capture_output=True,
            check=False,
        )
    except OSError:
        return False
    return done.returncode == 0


@contextmanager
def served_cluster(code: Path, folder: Path, report: Report) -> Iterator[dict[str, str]]:
    """A running test cluster. Gives the variables by which the tests find it."""
    script = code / "tests" / "cluster" / "cluster.py"
    argv: list[str | Path] = [
        sys.executable,
        script,
        "serve",
        "--dir",
        folder,
        "--user",
        USERS[0],
        "--second-user",
        USERS[1],
    ]
    with report.stage("cluster start"):
        server = subprocess.Popen(
            argv,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=die_with_parent(signal.SIGTERM),
        )
        assert server.stdout is not None
        if server.stdout.readline() != "ready\n":
            server.wait()
            raise RunError(f"the test cluster did not start (logs: {folder}/log)")
    try:
        # The token lets the cluster's end take along what a test left running.
        yield {
            "SLURM_CONF": f"{folder}/etc/slurm.conf",
            "TFJOBTUI_TEST_CLUSTER": str(folder),
            TOKEN: str(folder.resolve()),
        }
    finally:
        server.terminate()
        server.wait(timeout=60)
        report.say("cluster ended")
