"""Where a run's things stand, and the copy of the checkout that is tested."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.runner.report import RunError

CHECKOUT = Path(__file__).resolve().parents[2]
KEPT = {".pytest_cache", ".hypothesis"}  # what an earlier run learnt: failed tests, failing examples
NEVER_COPIED = {".git", ".venv", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis"}


@dataclass(frozen=True, slots=True)
class Workplace:
    """The folders of one checkout's runs."""

    root: Path
    venv: Path

    @property
    def tree(self) -> Path:
        """The whole working tree: what is linted and built."""
        return self.root / "tree"

    @property
    def run(self) -> Path:
        """Where pytest starts: the tree without the program, so that only the installed one is importable."""
        return self.root / "run"

    @property
    def cluster(self) -> Path:
        """The test cluster's folder."""
        return self.root / "cluster"

    def cache(self, name: str) -> Path:
        """The cache folder of a tool."""
        return self.root / "cache" / name


def for_users() -> Workplace:
    """Root's workplace: the users of the tests can read it, and only root can change it."""
    name = hashlib.sha256(str(CHECKOUT).encode()).hexdigest()[:8]
    root = Path(f"/var/tmp/tfjobtui-test-{name}")
    root.mkdir(mode=0o755, exist_ok=True)
    if root.is_symlink() or root.stat().st_uid != os.geteuid():
        raise RunError(f"{root} belongs to somebody else; remove it")
    return Workplace(root, root / "venv")


def in_checkout() -> Workplace:
    """The workplace of somebody who is not root."""
    venv = CHECKOUT / ".venv"
    root = venv / "test"
    root.mkdir(parents=True, exist_ok=True)
    return Workplace(root, venv)


@contextmanager
def only_one_run(workplace: Workplace) -> Iterator[None]:
    """Keep a second run of the same checkout out: it would replace the files under the first."""
    with (workplace.root / "lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunError(f"another run works in {workplace.root}; wait for it or end it") from None
        yield


def copy_checkout(workplace: Workplace) -> None:
    """Replace `tree` and `run` by the checkout as it is now: what git knows and what it doesn't ignore."""
    files = _files()
    _replace(workplace.tree, files)
    _replace(workplace.run, [name for name in files if not name.startswith("tfjobtui/")])


def _files() -> list[str]:
    """The checkout's files, relative to it."""
    # safe.directory: under sudo the checkout belongs to somebody else than the one who asks.
    argv = ["git", "-c", f"safe.directory={CHECKOUT}", "ls-files", "-coz", "--exclude-standard"]
    try:
        listed = subprocess.run(argv, cwd=CHECKOUT, capture_output=True, check=True).stdout
    except (subprocess.CalledProcessError, FileNotFoundError):
        return _walk()  # an unpacked release is no repository
    names = {os.fsdecode(name) for name in listed.split(b"\0") if name}
    return sorted(name for name in names if os.path.lexists(CHECKOUT / name))


def _walk() -> list[str]:
    found = []
    for folder, folders, files in os.walk(CHECKOUT):
        folders[:] = [name for name in folders if name not in NEVER_COPIED]
        found += [os.path.relpath(Path(folder, name), CHECKOUT) for name in files]
    return sorted(found)


def _replace(target: Path, files: list[str]) -> None:
    """Make `target` hold exactly these files. Times are kept, so that tools' caches stay good."""
    target.mkdir(exist_ok=True)
    for old in target.iterdir():
        if old.name not in KEPT:
            shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink()
    for name in files:
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(CHECKOUT / name, place, follow_symlinks=False)
        if not place.is_symlink():
            place.chmod(0o755 if os.access(place, os.X_OK) and place.stat().st_mode & 0o100 else 0o644)


def give_to(folder: Path, uid: int, gid: int) -> None:
    """Let a user write in a folder: tests leave caches beside themselves."""
    for place, folders, files in os.walk(folder):
        for name in (".", *folders, *files):
            os.chown(Path(place, name), uid, gid, follow_symlinks=False)
