"""The templates there are: the shipped ones, and those of the site and the user, which take their place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tfjobtui import directives as sbatch
from tfjobtui.directives import Directive, nearest
from tfjobtui.errors import TfjobtuiError, UsageError
from tfjobtui.paths import is_file
from tfjobtui.templates import block
from tfjobtui.templates.parameters import Parameter, read_header

SUFFIXES = (".sbatch", ".slurm")
_MAX_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Template:
    """A script to be filled in. `error` says why it can't be used, and is empty where it can."""

    name: str
    path: Path
    text: str = ""
    title: str = ""
    about: str = ""
    parameters: tuple[Parameter, ...] = ()
    directives: tuple[Directive, ...] = ()
    error: str = ""


def shipped_folder() -> Path:
    """The templates that come with the program: in its package, or in a checkout beside it."""
    installed = Path(__file__).parent / "shipped"
    return installed if installed.is_dir() else Path(__file__).parents[2] / "sbatch"


def load(folders: Iterable[Path]) -> tuple[Template, ...]:
    """The templates in these folders, by name; of one name the one from the last folder.

    A broken one is listed with its error, and does not take the place of one that works. A folder that is
    not there is skipped.
    """
    good: dict[str, Template] = {}
    broken: dict[tuple[str, Path], Template] = {}
    for folder in folders:
        for template in _in_folder(folder):
            if template.error:
                broken[template.name, template.path] = template
            else:
                good[template.name] = template
    return tuple(sorted((*good.values(), *broken.values()), key=lambda item: (item.name, bool(item.error))))


def find(templates: Sequence[Template], name: str) -> Template:
    """The template of that name.

    Raises:
        UsageError: there is none, or it is broken.
    """
    found = next((template for template in templates if template.name == name), None)
    if found is None:
        raise UsageError(f"there is no template {name!r}", nearest(name, [item.name for item in templates]))
    if found.error:
        raise UsageError(f"the template {name} is broken: {found.error}", str(found.path))
    return found


def read(path: Path) -> Template:
    """One template; what is wrong with it is in its `error`."""
    try:
        text = _text(path)
        header = read_header(text)
        name = header.name or path.stem
        block.check(text, [parameter.name for parameter in header.parameters])
        found = sbatch.read(text)
    except (OSError, TfjobtuiError) as error:
        message = error.strerror if isinstance(error, OSError) else str(error)
        return Template(path.stem, path, error=message or type(error).__name__)
    return Template(name, path, text, header.title or name, header.about, header.parameters, found)


def _text(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise UsageError(f"it is larger than {_MAX_BYTES} bytes")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"byte {error.start} is not UTF-8") from None
    if not text.startswith("#!"):
        raise UsageError("its first line does not begin with #!, as sbatch asks for")
    for char, what in (("\0", "a NUL character"), ("\r\n", "DOS line breaks")):
        if char in text:
            raise UsageError(f"it has {what} in it, which sbatch refuses")
    return text


def _in_folder(folder: Path) -> list[Template]:
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES and is_file(path))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        return [Template(folder.name, folder, error=f"the folder can't be read: {error.strerror}")]
    return [read(path) for path in paths]
