"""What `doctor` looks at. Each check gives findings; none of them raises, and none starts a job."""

from __future__ import annotations

import importlib.util
import json
import locale
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from tfjobtui import __version__
from tfjobtui.config import Config, check_columns
from tfjobtui.errors import QueryError, TfjobtuiError
from tfjobtui.model.ids import JobId
from tfjobtui.monitor.columns import COLUMNS
from tfjobtui.paths import is_file, is_folder, make_private, site_config, state_dir, user_config
from tfjobtui.probe import nvml
from tfjobtui.schedulers.scheduler import Scheduler, Target
from tfjobtui.schedulers.slurm.client import SlurmScheduler
from tfjobtui.schedulers.slurm.settings import COMMANDS, USUAL_FOLDERS, SlurmSettings, discover

_ESSENTIAL = ("squeue", "scontrol", "scancel", "sbatch")
_USED_FOR = {
    "srun": "a shell inside a job, and its GPUs' figures",
    "sacct": "how jobs ended, and scripts of ended jobs",
    "sstat": "what a running job uses",
    "sinfo": "partitions and nodes",
    "sprio": "the factors of a waiting job's priority",
}
_TMUX_TIMEOUT_S = 2.0
_SLOW_S = 2.0


class Mark(Enum):
    """How good a finding is. Only `BAD` makes doctor fail."""

    GOOD = "ok"
    NOTE = "note"
    POOR = "warning"
    BAD = "missing"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `id` is stable, for programs; `advice` says what to do, if anything."""

    id: str
    mark: Mark
    title: str
    text: str
    advice: str = ""


def program() -> Iterator[Finding]:
    """The program itself, and the folder that it writes to."""
    yield Finding("program", Mark.GOOD, "tfjobtui", f"{__version__}, Python {sys.version.split()[0]}")
    user = os.environ.get("USER") or os.environ.get("LOGNAME") or ""
    yield Finding("user", Mark.GOOD, "user", f"{user} (uid {os.getuid()})".strip())
    if os.getuid() == 0:
        yield Finding(
            "root",
            Mark.NOTE,
            "root",
            "you are root: Slurm lists everybody's jobs as yours",
            "Run it as the user who owns the jobs.",
        )
    folder = state_dir()
    try:
        make_private(folder)
        writable = os.access(folder, os.W_OK)
    except OSError:
        writable = False
    if writable:
        yield Finding("state", Mark.GOOD, "state folder", str(folder))
    else:
        yield Finding(
            "state",
            Mark.POOR,
            "state folder",
            f"{folder} cannot be written",
            "Records of runs and the command log are lost; set XDG_STATE_HOME to a folder of yours.",
        )


def configuration(
    config: Config | None, error: TfjobtuiError | None, explicit: str | None
) -> Iterator[Finding]:
    """The configuration files: which were read, what is wrong in them."""
    if error is not None:
        yield Finding("config", Mark.BAD, "configuration", error.message, error.hint)
        return
    assert config is not None
    for name, path in (("site", site_config()), ("user", Path(explicit) if explicit else user_config())):
        there = path in config.files
        yield Finding(f"config.{name}", Mark.GOOD, f"{name}'s file", f"{path}{'' if there else ' (none)'}")
    for at, warning in enumerate(config.warnings):
        yield Finding(f"config.warning.{at}", Mark.NOTE, "configuration", warning)
    try:
        check_columns(config, COLUMNS)
    except TfjobtuiError as wrong:
        yield Finding("config.columns", Mark.BAD, "columns", wrong.message, wrong.hint)
    if config.keys:
        yield from _keys(config.keys, config.origins)


def _keys(keys: Mapping[str, str], origins: Mapping[str, Path]) -> Iterator[Finding]:
    """Whether the keys that are set mean something: in a process of its own, since this needs the screens' library."""
    origin = {name: str(file) for name, file in origins.items()}
    asked = json.dumps({"keys": dict(keys), "origins": origin})
    argv = [sys.executable, "-P", "-c", _CHECK_KEYS, str(Path(__file__).parents[2]), asked]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_KEYS_TIMEOUT_S, check=False)
        said = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        yield Finding("config.keys", Mark.POOR, "keys", "they could not be checked")
        return
    if said:
        yield Finding("config.keys", Mark.BAD, "keys", said[0], said[1])
    else:
        yield Finding("config.keys", Mark.GOOD, "keys", f"{len(keys)} set otherwise")


_KEYS_TIMEOUT_S = 20.0
_CHECK_KEYS = """
import json, pathlib, sys
sys.path.insert(0, sys.argv[1])
from tfjobtui.config import Config, check_columns
from tfjobtui.errors import ConfigError
from tfjobtui.ui.keymap import keymap
asked = json.loads(sys.argv[2])
origins = {name: pathlib.Path(file) for name, file in asked["origins"].items()}
try:
    keymap(Config(keys=asked["keys"], origins=origins))
except ConfigError as error:
    print(json.dumps([error.message, error.hint]))
else:
    print("[]")
"""


def commands(settings: SlurmSettings) -> Iterator[Finding]:
    """Where Slurm's commands are."""
    found = discover(settings)
    if not found.paths:
        yield Finding(
            "slurm",
            Mark.BAD,
            "Slurm",
            "none of its commands was found on this machine",
            f"Looked for on the PATH and in {', '.join(USUAL_FOLDERS)}. Log in to a node of the cluster, "
            "load Slurm's module, or name the commands in the configuration under [slurm.commands].",
        )
        return
    for name in COMMANDS:
        path = found.get(name)
        if path is not None and not os.access(path, os.X_OK):
            yield Finding(
                f"command.{name}", Mark.BAD, name, f"{path} cannot be executed", "Correct [slurm.commands]."
            )
        elif path is not None:
            yield Finding(f"command.{name}", Mark.GOOD, name, path)
        elif name in _ESSENTIAL:
            yield Finding(
                f"command.{name}",
                Mark.BAD,
                name,
                "not found",
                f'Name it: [slurm.commands] {name} = "/path/to/it"',
            )
        else:
            yield Finding(
                f"command.{name}", Mark.POOR, name, "not found", f"Without it: no {_USED_FOR[name]}."
            )


async def controller(scheduler: SlurmScheduler) -> list[Finding]:
    """Whether the controller answers, how fast, what is particular at this site, and whether there is accounting."""
    started = time.monotonic()
    try:
        answer = await scheduler.jobs()
    except TfjobtuiError as error:
        took = time.monotonic() - started
        text = f"no answer after {took:.1f} s: {error.message}"
        return [Finding("slurmctld", Mark.BAD, "controller", text, error.hint)]
    took = time.monotonic() - started
    await scheduler.learn()
    findings = [_answered(scheduler, took, len(answer.jobs)), await _accounting(scheduler)]
    findings += [
        Finding(f"queue.problem.{at}", Mark.POOR, "queue", problem)
        for at, problem in enumerate(answer.problems)
    ]
    # Commands that are missing and accounting have findings of their own.
    known = {finding.text for finding in findings}
    notes = [note for note in scheduler.notes if note not in known and "was not found" not in note]
    findings += [Finding(f"site.{at}", Mark.NOTE, "this site", note) for at, note in enumerate(notes)]
    return findings


def _answered(scheduler: SlurmScheduler, took: float, count: int) -> Finding:
    known = scheduler.capabilities
    name = f"{known.name} {known.version}".strip()
    text = f"{name} answered in {took:.2f} s; jobs of yours in the queue: {count}"
    if took > _SLOW_S:
        advice = "It is slow: the list is refreshed less often by itself."
        return Finding("slurmctld", Mark.POOR, "controller", text, advice)
    return Finding("slurmctld", Mark.GOOD, "controller", text)


async def _accounting(scheduler: Scheduler) -> Finding:
    """One question about no job in particular shows whether slurmdbd answers."""
    capability = scheduler.capabilities.accounting
    if not capability:
        return Finding("accounting", Mark.NOTE, "accounting", capability.reason, _WITHOUT_ACCOUNTING)
    started = time.monotonic()
    try:
        await scheduler.ended([Target(JobId(1), None, "", "", None)])
    except QueryError as error:
        return Finding("accounting", Mark.POOR, "accounting", error.message, _WITHOUT_ACCOUNTING)
    capability = scheduler.capabilities.accounting
    if not capability:
        return Finding("accounting", Mark.NOTE, "accounting", capability.reason, _WITHOUT_ACCOUNTING)
    return Finding("accounting", Mark.GOOD, "accounting", f"answered in {time.monotonic() - started:.2f} s")


_WITHOUT_ACCOUNTING = "Without it: how a job ended is known only while the controller keeps it."


def templates(config: Config) -> Iterator[Finding]:
    """The templates that can be submitted, and those that are broken."""
    from tfjobtui.actions.submit import load_templates

    for folder in config.templates.folders:
        if not is_folder(folder):
            yield Finding(f"templates.{folder}", Mark.POOR, "templates", f"the folder {folder} is not there")
    found = load_templates(config)
    good = [template.name for template in found if not template.error]
    if good:
        yield Finding("templates", Mark.GOOD, "templates", ", ".join(good))
    else:
        yield Finding("templates", Mark.POOR, "templates", "none was found", "Is the installation whole?")
    for template in found:
        if template.error:
            text = f"{template.path}: {template.error}"
            yield Finding(
                f"template.{template.name}", Mark.POOR, "template", text, "It cannot be used as it is."
            )


def tensorflow() -> Iterator[Finding]:
    """Whether an environment with TensorFlow is active. It is looked for, never imported."""
    places = _site_packages()
    for place in places:
        if is_folder(place / "tensorflow"):
            yield Finding("tensorflow", Mark.GOOD, "TensorFlow", f"found in {place}")
            return
    if importlib.util.find_spec("tensorflow") is not None:
        yield Finding("tensorflow", Mark.GOOD, "TensorFlow", f"found beside this program ({sys.prefix})")
        return
    yield Finding(
        "tensorflow",
        Mark.NOTE,
        "TensorFlow",
        "not found in the active environment",
        "A job needs it where it runs: load a module or activate an environment in the template's set-up, "
        "or install it: pip install 'tfjobtui[train]'.",
    )


def _site_packages() -> list[Path]:
    """The package folders of the active virtual or conda environment."""
    roots = [os.environ[name] for name in ("VIRTUAL_ENV", "CONDA_PREFIX") if os.environ.get(name)]
    return [place for root in roots for place in Path(root).glob("lib/python3*/site-packages")]


def gpus() -> Iterator[Finding]:
    """The GPUs of this machine: a login node usually has none."""
    found = nvml.list_gpus()
    if found:
        yield Finding("gpus", Mark.GOOD, "GPUs here", ", ".join(gpu.name for gpu in found))
    else:
        yield Finding("gpus", Mark.NOTE, "GPUs here", "none that NVML knows; usual on a login node")


def terminal() -> Iterator[Finding]:
    """What the terminal can show, and what tmux or screen between keeps from it."""
    term = os.environ.get("TERM", "")
    colours = os.environ.get("COLORTERM", "")
    size = shutil.get_terminal_size()
    text = f"TERM={term or '(not set)'} COLORTERM={colours or '(not set)'} {size.columns}×{size.lines}"
    if term in ("", "dumb"):
        yield Finding(
            "terminal", Mark.POOR, "terminal", text, "The screens need a terminal: set TERM to its kind."
        )
    else:
        yield Finding("terminal", Mark.GOOD, "terminal", text)
    encoding = locale.getpreferredencoding(False)
    if encoding.upper().replace("-", "") != "UTF8":
        yield Finding(
            "locale",
            Mark.POOR,
            "locale",
            f"its encoding is {encoding}",
            "Names with accents and the charts need UTF-8: export LC_ALL=C.UTF-8",
        )
    if os.environ.get("TMUX"):
        yield from _tmux()
    elif term.startswith("screen") or os.environ.get("STY"):
        yield Finding("screen", Mark.NOTE, "screen", "GNU screen passes no copying on to your terminal")


def _tmux() -> Iterator[Finding]:
    focus = _tmux_option("focus-events")
    if focus == "on":
        yield Finding("tmux.focus", Mark.GOOD, "tmux", "reports the focus")
    else:
        yield Finding(
            "tmux.focus",
            Mark.NOTE,
            "tmux",
            "does not report the focus: the list slows down only after minutes without a key",
            "tmux set -g focus-events on",
        )
    clipboard = _tmux_option("set-clipboard")
    if clipboard == "off":
        yield Finding(
            "tmux.clipboard",
            Mark.NOTE,
            "tmux",
            "does not hand copied text on to the terminal (set-clipboard off)",
            "tmux set -g set-clipboard on",
        )


def _tmux_option(name: str) -> str:
    """A global or server option of tmux's; empty where it does not answer."""
    try:
        done = subprocess.run(
            ["tmux", "show-options", "-Aqv", "-g", name],
            capture_output=True,
            timeout=_TMUX_TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace").strip()


def slurm_conf() -> Iterator[Finding]:
    """A SLURM_CONF that leads nowhere: Slurm's commands look for it for a minute before they say so."""
    named = os.environ.get("SLURM_CONF", "")
    if named and not is_file(named):
        text = f"it names {named}, which is not there or may not be read"
        yield Finding("slurm.conf", Mark.POOR, "SLURM_CONF", text, "Unset it, or name the right file.")


def path() -> Iterator[Finding]:
    """The search path of this shell, which jobs inherit too."""
    folders = os.environ.get("PATH", "").split(os.pathsep)
    missing = [folder for folder in folders if folder and not is_folder(folder)]
    text = os.environ.get("PATH", "") or "(not set)"
    yield Finding("path", Mark.GOOD, "PATH", text)
    if "" in folders or "." in folders:
        yield Finding(
            "path.here", Mark.NOTE, "PATH", "it has the current folder in it", "Take it out: it is a risk."
        )
    if missing:
        yield Finding("path.missing", Mark.NOTE, "PATH", f"not there: {', '.join(missing[:5])}")
