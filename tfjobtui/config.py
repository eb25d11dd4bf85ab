"""The configuration: the site's file, then the user's, both TOML.

A file has the sections of `Config` and their keys; the site's may also have `lock`, a list of
`section.key` (or whole sections) that the user's file cannot change:

```toml
lock = ["poll.floor_s", "jobs"]
[poll]
floor_s = 15
[jobs]
shell = false
```

A key that is not known, or a value that does not fit, is an error that names the file, the key and the
nearest one that is right. A locked key in the user's file is passed over, with a warning.

Named tuples and not dataclasses: this module is on the way of every start, and they cost a sixth of the time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from tfjobtui.errors import ConfigError

LOWEST_INTERVAL_S = 2.0
"""Nothing sets the interval between two queries of the queue below this."""

_EMPTY: Mapping[str, Any] = MappingProxyType({})


class Poll(NamedTuple):
    """How often the queue is asked. `interval_s` is never below `floor_s`, which only the site sets."""

    interval_s: float = 10.0
    floor_s: float = LOWEST_INTERVAL_S
    unfocused_s: float = 60.0
    idle_after_s: float = 600.0
    idle_s: float = 60.0
    asleep_after_s: float = 7200.0
    asleep_s: float = 300.0
    details_s: float = 30.0


class Slurm(NamedTuple):
    """The commands of Slurm: where they are, and how long they may take. No cluster named: the local one."""

    clusters: tuple[str, ...] = ()
    query_timeout_s: float = 30.0
    action_timeout_s: float = 60.0
    commands: Mapping[str, str] = _EMPTY
    """`squeue` → the path to run in its place."""


class Scheduler(NamedTuple):
    """Which scheduler is used: `auto` takes Slurm where it is, else the embedded one."""

    use: str = "auto"


class Local(NamedTuple):
    """The embedded scheduler: how much of this machine it may use, and its manners.

    `cpus`, `memory` (`"16G"`) and `gpus` are limits; 0 or empty is all there is. `kill_wait_s` lies between TERM
    and KILL. Ended jobs are kept for `keep_days`.
    """

    cpus: int = 0
    memory: str = ""
    gpus: int = -1
    kill_wait_s: float = 30.0
    keep_days: float = 30.0


class Table(NamedTuple):
    """The columns in their order (none: the program's choice), and the one to sort by (`-` reverses)."""

    columns: tuple[str, ...] = ()
    sort: str = ""


class Ui(NamedTuple):
    """Looks. `theme` is `auto`, `dark`, `light` or the name of a theme."""

    theme: str = "auto"
    mouse: bool = True


class Templates(NamedTuple):
    """More folders with templates: the site's first, then the user's."""

    folders: tuple[Path, ...] = ()


class Jobs(NamedTuple):
    """What the program may start inside a job's allocation: a shell; a step that reads its GPUs."""

    shell: bool = True
    probe: bool = True


class Config(NamedTuple):
    """Everything that can be set. `keys` maps an action's id to its keys, `"d,delete"`.

    `warnings` are sentences for the user. `files` are those that were read. `origins` tells for each
    `section.key` that was set which file set it.
    """

    poll: Poll = Poll()
    slurm: Slurm = Slurm()
    scheduler: Scheduler = Scheduler()
    local: Local = Local()
    table: Table = Table()
    ui: Ui = Ui()
    templates: Templates = Templates()
    jobs: Jobs = Jobs()
    keys: Mapping[str, str] = _EMPTY
    warnings: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    origins: Mapping[str, Path] = _EMPTY


def load(site_file: Path, user_file: Path, *, user_must_exist: bool = False) -> Config:
    """Read both files; one that is not there sets nothing.

    Raises:
        ConfigError: a file cannot be read, has an unknown key, or a value that does not fit.
    """
    site = _File.read(site_file)
    user = _File.read(user_file, must_exist=user_must_exist)
    warnings: list[str] = []
    values: dict[str, Any] = dict(site.values)
    origins = dict.fromkeys(site.values, site_file)
    for name, value in user.values.items():
        lock = site.locks(name)
        if lock or name in _SITE_ONLY:
            why = f"{site_file} locks it" if lock else f"only {site_file} may set it"
            warnings.append(f"{user_file}: {name} is passed over: {why}.")
            continue
        values[name] = _merged(values.get(name), value)
        origins[name] = user_file
    config = _build(values)
    if config.poll.interval_s < config.poll.floor_s:
        if "poll.interval_s" in origins:
            least = f"the least that {origins.get('poll.floor_s', site_file)} allows"
            where = origins["poll.interval_s"]
            warnings.append(f"{where}: poll.interval_s is raised to {config.poll.floor_s:g}, {least}.")
        config = config._replace(poll=config.poll._replace(interval_s=config.poll.floor_s))
    read = tuple(file.path for file in (site, user) if file.exists)
    return config._replace(warnings=tuple(warnings), files=read, origins=MappingProxyType(origins))


def check_keys(config: Config, known_ids: Iterable[str]) -> None:
    """Check the ids in `[keys]` against the actions that there are.

    Raises:
        ConfigError: one is not known.
    """
    known = sorted(known_ids)
    for action in config.keys:
        if action not in known:
            file = config.origins.get(f"keys.{action}", Path("config.toml"))
            raise _unknown(file, f"keys.{action}", "action", action, known)


def check_columns(config: Config, known_columns: Iterable[str]) -> None:
    """Check `table.columns` and `table.sort` against the columns that there are.

    Raises:
        ConfigError: one is not known.
    """
    known = sorted(known_columns)
    sort = (config.table.sort.removeprefix("-"),) if config.table.sort else ()
    for key, names in (("columns", config.table.columns), ("sort", sort)):
        for name in names:
            if name not in known:
                file = config.origins.get(f"table.{key}", Path("config.toml"))
                raise _unknown(file, f"table.{key}", "column", name, known)


# --- values -----------------------------------------------------------------------------------------------


class _MisfitError(Exception):
    """A value does not fit; the message says what would."""


_Reader = Callable[[object, Path], Any]


def _seconds(least: float, most: float = 86400.0) -> _Reader:
    def read(value: object, _: Path) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise _MisfitError("a number of seconds")
        if not least <= value <= most:
            raise _MisfitError(f"a number of seconds from {least:g} to {most:g}")
        return float(value)

    return read


def _whole(least: int) -> _Reader:
    def read(value: object, _: Path) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise _MisfitError(f"a whole number from {least} on")
        return value

    return read


def _one_of(*names: str) -> _Reader:
    def read(value: object, _: Path) -> str:
        if value not in names:
            raise _MisfitError(f"one of {', '.join(names)}")
        return str(value)

    return read


def _size(value: object, _: Path) -> str:
    text = value if isinstance(value, str) else ""
    if not text or not text.rstrip("KMGTkmgt").isdigit() or len(text) - len(text.rstrip("KMGTkmgt")) > 1:
        raise _MisfitError('a size such as "16G"')
    return text


def _days(value: object, _: Path) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= 3650:
        raise _MisfitError("a number of days from 1 to 3650")
    return float(value)


def _flag(value: object, _: Path) -> bool:
    if not isinstance(value, bool):
        raise _MisfitError("true or false")
    return value


def _text(value: object, _: Path) -> str:
    if not isinstance(value, str) or not value:
        raise _MisfitError('a text such as "dark"')
    return value


def _texts(value: object, _: Path) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise _MisfitError('a list of texts such as ["a", "b"]')
    return tuple(value)


def _folders(value: object, file: Path) -> tuple[Path, ...]:
    """Folders; a relative one is meant from the file that names it."""
    return tuple(file.parent / Path(item).expanduser() for item in _texts(value, file))


def _command(value: object, file: Path) -> str:
    """A path of its own, or a name that is looked for on the PATH."""
    text = _text(value, file)
    if text.startswith("~"):
        return str(Path(text).expanduser())
    if "/" in text and not text.startswith("/"):
        raise _MisfitError("an absolute path, or a name without a slash")
    return text


def _keys(value: object, _: Path) -> str:
    if not isinstance(value, str) or not all(part.strip() for part in value.split(",")):
        raise _MisfitError('keys with commas between them, such as "d,delete"')
    return ",".join(part.strip() for part in value.split(","))


_SECTIONS: dict[str, tuple[type, dict[str, _Reader]]] = {
    "poll": (
        Poll,
        {
            "interval_s": _seconds(LOWEST_INTERVAL_S, 3600),
            "floor_s": _seconds(LOWEST_INTERVAL_S, 3600),
            "unfocused_s": _seconds(LOWEST_INTERVAL_S),
            "idle_after_s": _seconds(1),
            "idle_s": _seconds(LOWEST_INTERVAL_S),
            "asleep_after_s": _seconds(1),
            "asleep_s": _seconds(LOWEST_INTERVAL_S),
            "details_s": _seconds(5),
        },
    ),
    "slurm": (
        Slurm,
        {"clusters": _texts, "query_timeout_s": _seconds(1, 600), "action_timeout_s": _seconds(1, 600)},
    ),
    "scheduler": (Scheduler, {"use": _one_of("auto", "slurm", "local")}),
    "local": (
        Local,
        {
            "cpus": _whole(0),
            "memory": _size,
            "gpus": _whole(-1),
            "kill_wait_s": _seconds(0.1, 3600),
            "keep_days": _days,
        },
    ),
    "table": (Table, {"columns": _texts, "sort": _text}),
    "ui": (Ui, {"theme": _text, "mouse": _flag}),
    "templates": (Templates, {"folders": _folders}),
    "jobs": (Jobs, {"shell": _flag, "probe": _flag}),
}
_MAPS: dict[str, _Reader] = {"keys": _keys, "slurm.commands": _command}
"""Tables whose keys are not fixed. Which actions there are is checked later, by `check_keys`."""
_SITE_ONLY = frozenset({"poll.floor_s"})
COMMANDS = ("squeue", "scontrol", "scancel", "sbatch", "sacct", "sinfo", "sprio", "sstat", "srun", "sdiag")
"""What `[slurm.commands]` may name."""


def _merged(site: object, user: Any) -> Any:
    """The user's value; folders come in addition to the site's."""
    if isinstance(site, tuple) and site and isinstance(site[0], Path):
        return (*site, *user)
    return user


def _build(values: Mapping[str, Any]) -> Config:
    """Put `section.key` values into the dataclasses."""
    parts: dict[str, Any] = {}
    for section, (kind, readers) in _SECTIONS.items():
        given = {key: values[f"{section}.{key}"] for key in readers if f"{section}.{key}" in values}
        if section == "slurm":
            given["commands"] = _submap(values, "slurm.commands.")
        parts[section] = kind(**given)
    return Config(**parts, keys=_submap(values, "keys."))


def _submap(values: Mapping[str, Any], prefix: str) -> Mapping[str, str]:
    found = {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}
    return MappingProxyType(found)


# --- one file ---------------------------------------------------------------------------------------------


class _File(NamedTuple):
    """One file as it was read: `section.key` → value, and what it locks."""

    path: Path
    exists: bool
    values: Mapping[str, Any]
    lock: tuple[str, ...] = ()

    @staticmethod
    def read(path: Path, *, must_exist: bool = False) -> _File:
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            if must_exist:
                raise ConfigError(f"{path}: there is no such file") from None
            return _File(path, exists=False, values=_EMPTY)
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise ConfigError(f"{path}: cannot be read: {why}") from error
        document = _parse(path, text)
        lock = _read_lock(path, document.pop("lock", []))
        values: dict[str, Any] = {}
        for section, content in document.items():
            values.update(_read_section(path, section, content))
        return _File(path, exists=True, values=values, lock=lock)

    def locks(self, name: str) -> bool:
        return any(name == item or name.startswith(f"{item}.") for item in self.lock)


def _parse(path: Path, text: str) -> dict[str, Any]:
    import tomllib  # only where there is a file: it costs milliseconds

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not TOML: {error}") from error


def _read_lock(path: Path, value: object) -> tuple[str, ...]:
    try:
        names = _texts(value, path) if value != [] else ()
    except _MisfitError as misfit:
        raise ConfigError(f"{path}: lock must be {misfit}") from None
    known = _all_names()
    for name in names:
        if name not in known and not name.startswith(("keys.", "slurm.commands.")):
            raise _unknown(path, "lock", "key", name, known)
    return names


def _all_names() -> list[str]:
    names = [*_SECTIONS, *_MAPS]
    names.extend(f"{section}.{key}" for section, (_, readers) in _SECTIONS.items() for key in readers)
    return names


def _read_section(path: Path, section: str, content: object) -> dict[str, Any]:
    if section not in _SECTIONS and section not in _MAPS:
        raise _unknown_section(path, section, content)
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: {section} must be a section: [{section}]")
    if section in _MAPS:
        return _read_map(path, section, content)
    readers = _SECTIONS[section][1]
    values: dict[str, Any] = {}
    for key, value in content.items():
        name = f"{section}.{key}"
        if name in _MAPS:
            values.update(_read_map(path, name, value))
        elif key not in readers:
            raise _unknown(path, name, "key", key, [*readers, *_map_keys(section)])
        else:
            values[name] = _fit(path, name, readers[key], value)
    return values


def _map_keys(section: str) -> list[str]:
    return [name.removeprefix(f"{section}.") for name in _MAPS if name.startswith(f"{section}.")]


def _read_map(path: Path, name: str, content: object) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: {name} must be a table: [{name}]")
    if name == "keys":
        content = dict(_flat(content))
    for key in content:
        if name == "slurm.commands" and key not in COMMANDS:
            raise _unknown(path, f"{name}.{key}", "command", key, COMMANDS)
    return {f"{name}.{key}": _fit(path, f"{name}.{key}", _MAPS[name], content[key]) for key in content}


def _flat(content: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """`jobs.cancel = "c"` is a table in a table to TOML, and one id to us."""
    for key, value in content.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _fit(path: Path, name: str, reader: _Reader, value: object) -> Any:
    try:
        return reader(value, path)
    except _MisfitError as misfit:
        raise ConfigError(f"{path}: {name} must be {misfit}, not {value!r}") from None


def _unknown(path: Path, where: str, kind: str, name: str, known: Sequence[str]) -> ConfigError:
    import difflib  # only for an error

    close = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    hint = f"The nearest {kind} is {close[0]!r}." if close else f"There are: {', '.join(known)}."
    return ConfigError(f"{path}: {where}: there is no {kind} {name!r}", hint)


def _unknown_section(path: Path, section: str, content: object) -> ConfigError:
    if not isinstance(content, dict):
        homes = [name for name, (_, readers) in _SECTIONS.items() if section in readers]
        if homes:
            return ConfigError(f"{path}: {section} stands in no section", f"It belongs into [{homes[0]}].")
    return _unknown(path, section, "section", section, [*_SECTIONS, "keys"])
