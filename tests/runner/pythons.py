"""Interpreters that the tests' user may run, and virtual environments made with them."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.runner.machine import user_can
from tests.runner.report import Report, RunError
from tests.runner.workplace import CHECKOUT, Workplace

OLDEST, NEWEST = (3, 11), (3, 13)
STAMP = ".dependencies"
PIP = ("-m", "pip", "--disable-pip-version-check", "--quiet")


@dataclass(frozen=True, slots=True)
class Python:
    """One interpreter."""

    path: Path
    version: tuple[int, int]
    base_prefix: Path

    @property
    def name(self) -> str:
        """Its version as people write it."""
        return ".".join(map(str, self.version))


def look(path: str | Path) -> Python | None:
    """What an interpreter says of itself, None when it isn't one. A pyenv shim names the real one."""
    say = "import json, sys; print(json.dumps([sys.executable, sys.version_info[:2], sys.base_prefix]))"
    try:
        output = subprocess.run([path, "-c", say], capture_output=True, text=True, check=True, cwd="/").stdout
        executable, version, base_prefix = json.loads(output)
    except (OSError, subprocess.CalledProcessError, ValueError):
        return None
    return Python(Path(executable), (version[0], version[1]), Path(base_prefix))


def _candidates(version: str) -> Iterator[str | Path]:
    """Where a Python of this version may be: the system's first, which every user can run."""
    yield f"/usr/bin/python{version}"
    yield from filter(None, [shutil.which(f"python{version}")])
    for home in {os.environ.get("PYENV_ROOT", ""), str(Path("~/.pyenv").expanduser())} - {""}:
        yield from sorted(Path(home, "versions").glob(f"{version}*/bin/python"), reverse=True)
    yield from sorted(Path("~/.local/share/uv/python").expanduser().glob(f"cpython-{version}*/bin/python3"))


def find(version: tuple[int, int]) -> Python | None:
    """A Python of this version."""
    wanted = ".".join(map(str, version))
    found = (look(path) for path in _candidates(wanted))
    return next((python for python in found if python and python.version == version), None)


def main_python(workplace: Workplace, report: Report) -> Python:
    """The Python of the main run: the system's, if it is recent enough."""
    system = look("/usr/bin/python3")
    if system and OLDEST <= system.version <= NEWEST:
        return system
    for minor in (11, 12, 13):
        if (python := find((3, minor))) and (usable := usable_by_users(python, workplace, report)):
            return usable
    raise RunError("no Python 3.11, 3.12 or 3.13 that an ordinary user can run")


def usable_by_users(python: Python, workplace: Workplace, report: Report) -> Python | None:
    """The interpreter, or a copy of it where the users can run it, None if the copy doesn't work."""
    if user_can([python.path, "-c", ""]):
        return python
    if python.base_prefix in (Path("/usr"), Path("/usr/local")):
        return None
    copy = workplace.root / f"python-{python.name}"
    marker = copy / ".copied-from"
    if not marker.exists() or marker.read_text() != str(python.base_prefix):
        report.say(f"copying {python.base_prefix} for the tests' user")
        shutil.rmtree(copy, ignore_errors=True)
        subprocess.run(["cp", "-a", python.base_prefix, copy], check=True)
        subprocess.run(["chmod", "-R", "go+rX", copy], check=True)
        _find_own_library(copy / "bin" / f"python{python.name}", python.base_prefix)
        marker.write_text(str(python.base_prefix))
    copied = look(copy / "bin" / f"python{python.name}")
    return copied if copied and user_can([copied.path, "-c", "import ssl, sqlite3, venv"]) else None


def _find_own_library(executable: Path, old_prefix: Path) -> None:
    """Let a copied interpreter find the libpython that was copied with it.

    pyenv builds with the library's absolute folder in the executable's run path. The folder relative to
    the executable does the same and is shorter, so that it fits into the place of the old one.
    """
    old, new = f"{old_prefix}/lib".encode() + b"\0", b"$ORIGIN/../lib\0"
    data = executable.read_bytes()
    if len(new) <= len(old) and data.count(old) == 1:
        executable.write_bytes(data.replace(old, new.ljust(len(old), b"\0")))


def install(python: Python, venv: Path, tree: Path, extras: str, report: Report) -> None:
    """Make `venv` hold the program as built from `tree`. Dependencies only when they have changed."""
    key = _dependencies_key(tree, python, extras)
    stamp = venv / STAMP
    if not stamp.exists() or stamp.read_text() != key:
        with report.stage(f"dependencies for Python {python.name} [{extras}]"):
            _make_venv(python, venv)
            _pip(venv, "install", f"{tree}[{extras}]")
        stamp.write_text(key)
    with report.stage(f"install the program for Python {python.name}"):
        # hatchling is there by [dev]; a build in isolation would fetch it each time.
        _pip(venv, "install", "--no-deps", "--force-reinstall", "--no-build-isolation", str(tree))
        _pip(venv, "check")


def _dependencies_key(tree: Path, python: Python, extras: str) -> str:
    """Changes with all that decides which packages are in the environment, and with nothing else."""
    data = tomllib.loads((tree / "pyproject.toml").read_text())
    project = data["project"]
    parts = [
        data.get("build-system"),
        project.get("requires-python"),
        project.get("dependencies"),
        project.get("optional-dependencies"),
        extras,
        str(python.path),
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _make_venv(python: Python, venv: Path) -> None:
    """An empty environment: what an earlier one held must not hide a missing dependency."""
    if subprocess.run(
        [python.path, "-c", "import ensurepip, venv"], capture_output=True, check=False
    ).returncode:
        raise RunError(f"{python.path} can't make virtual environments: apt-get install python3-venv")
    if venv == CHECKOUT / ".venv":  # the workplace stands inside it
        for part in ("bin", "lib", "lib64", "include", "pyvenv.cfg", STAMP, ".installed"):
            place = venv / part
            shutil.rmtree(place) if place.is_dir() and not place.is_symlink() else place.unlink(
                missing_ok=True
            )
    else:
        shutil.rmtree(venv, ignore_errors=True)
    subprocess.run([python.path, "-m", "venv", venv], check=True)


def _pip(venv: Path, *arguments: str) -> None:
    as_root = ["--root-user-action=ignore"] if arguments[0] == "install" and os.geteuid() == 0 else []
    argv: list[str | Path] = [venv / "bin" / "python", *PIP, arguments[0], *as_root, *arguments[1:]]
    if subprocess.run(argv, check=False, cwd="/").returncode != 0:
        raise RunError(f"pip {' '.join(arguments)} failed (see above)")


def this_python() -> Python:
    """The interpreter that runs this."""
    python = look(sys.executable)
    if python is None:
        raise RunError(f"{sys.executable} can't be started")
    return python
