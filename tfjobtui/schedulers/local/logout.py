"""Whether logging out would kill the user's jobs, and what helps.

systemd-logind with `KillUserProcesses=yes` ends what a session has left when it is over (logind.conf(5)).
A scope of the user's own manager (`systemd-run --user --scope`) is not part of the session; the manager itself
lives on after the last logout where lingering is on (`loginctl enable-linger`).
"""

from __future__ import annotations

import contextlib
import functools
import os
import pwd
import re
import shutil
import subprocess
from pathlib import Path

_FOLDERS = ("/usr/lib/systemd", "/usr/local/lib/systemd", "/run/systemd", "/etc/systemd")
"""By rising precedence (systemd.syntax, CONFIGURATION DIRECTORIES)."""
_SETTING = re.compile(r"^\s*(KillUserProcesses|KillOnlyUsers|KillExcludeUsers)\s*=\s*(.*?)\s*$", re.MULTILINE)
_TIMEOUT_S = 3.0


def warning(root: Path = Path("/")) -> str | None:
    """A sentence for the user where jobs would not outlive the logout; `None` where they do."""
    if not kills_processes(root) or lingers(root):
        return None
    return (
        "Logging out kills jobs on this machine (KillUserProcesses=yes in logind.conf): "
        "run `loginctl enable-linger` once, then they go on."
    )


def launcher(root: Path = Path("/")) -> tuple[str, ...]:
    """What to put before the command of a process that shall outlive the session; empty where nothing is needed."""
    if not kills_processes(root) or not _manager_answers():
        return ()
    return ("systemd-run", "--user", "--scope", "--quiet", "--collect")


def kills_processes(root: Path = Path("/")) -> bool:
    """Whether logind ends this user's processes when they log out."""
    found = _settings(root)
    yes = found.get("KillUserProcesses", "no").casefold() in ("yes", "true", "1", "on", "y", "t")
    user = _user_name()
    only, never = found.get("KillOnlyUsers", "").split(), found.get("KillExcludeUsers", "root").split()
    return yes and user not in never and (not only or user in only)


def lingers(root: Path = Path("/")) -> bool:
    """Whether the user's manager lives on after the last logout."""
    return (root / "var/lib/systemd/linger" / _user_name()).exists()


def _user_name() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _settings(root: Path) -> dict[str, str]:
    """The main file of the highest folder that has one, then all drop-ins by name; what comes last counts."""
    texts: list[str] = []
    for folder in reversed(_FOLDERS):
        with contextlib.suppress(OSError):
            texts.append((root / folder.lstrip("/") / "logind.conf").read_text(errors="replace"))
            break
    drop_ins: dict[str, Path] = {}
    for folder in _FOLDERS:
        with contextlib.suppress(OSError):
            for path in (root / folder.lstrip("/") / "logind.conf.d").iterdir():
                if path.suffix == ".conf":
                    drop_ins[path.name] = path
    for name in sorted(drop_ins):
        with contextlib.suppress(OSError):
            texts.append(drop_ins[name].read_text(errors="replace"))
    return {match[1]: match[2] for text in texts for match in _SETTING.finditer(text)}


@functools.cache
def _manager_answers() -> bool:
    if shutil.which("systemd-run") is None or "XDG_RUNTIME_DIR" not in os.environ:
        return False
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        words = ("systemd-run", "--user", "--scope", "--quiet", "--collect", "true")
        return subprocess.run(words, capture_output=True, timeout=_TIMEOUT_S, check=False).returncode == 0
    return False
