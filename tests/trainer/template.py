"""Reading and rendering a template, by nothing but the rules in its own header."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

BLOCK = re.compile(r"(?<=^# >>> parameters\n).*?(?=^# <<< parameters$)", re.MULTILINE | re.DOTALL)
TYPES = {"int", "float", "str", "path", "choice", "words"}


@dataclass(frozen=True)
class Parameter:
    """One `#TFJOB param` line."""

    name: str
    kind: str
    values: dict[str, str]


def parameters(path: Path) -> list[Parameter]:
    """The parameters of a template, in their order."""
    found = []
    for line in path.read_text().splitlines():
        if line.startswith("#TFJOB param "):
            name, kind, *pairs = shlex.split(line.removeprefix("#TFJOB param "))
            found.append(Parameter(name, kind, dict(pair.split("=", 1) for pair in pairs)))
    return found


def render(path: Path, values: dict[str, str]) -> str:
    """The script with every value written into it."""
    lines = "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items())
    return BLOCK.sub(lambda _: lines, path.read_text())
