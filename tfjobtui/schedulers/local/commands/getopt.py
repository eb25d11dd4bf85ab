"""Options as Slurm's commands take them: up to the first word that is none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tfjobtui.errors import UsageError


@dataclass(frozen=True, slots=True)
class Table:
    """The options of a command: `name:x` has the short form -x. `optional` may stand without a value."""

    with_value: str = ""
    flags: str = ""
    optional: str = ""

    def kinds(self) -> dict[str, str]:
        return {
            item.partition(":")[0]: kind
            for kind, words in (("value", self.with_value), ("flag", self.flags), ("optional", self.optional))
            for item in words.split()
        }

    def short(self) -> dict[str, str]:
        words = f"{self.with_value} {self.flags} {self.optional}".split()
        return {item.partition(":")[2]: item.partition(":")[0] for item in words if ":" in item}


@dataclass(slots=True)
class Parsed:
    """The options by their long names (of one name the last counts), and the words after them."""

    options: dict[str, str | None] = field(default_factory=dict)
    rest: list[str] = field(default_factory=list)

    def get(self, name: str, default: str = "") -> str:
        return self.options.get(name) or default

    def has(self, name: str) -> bool:
        return name in self.options


def parse(command: str, table: Table, argv: Sequence[str], *, anywhere: bool = False) -> Parsed:
    """Read them; with `anywhere` options may also stand between the other words.

    Raises:
        UsageError: an option is not known here, or lacks its value.
    """
    kinds, short, found = table.kinds(), table.short(), Parsed()
    words = list(argv)
    while words:
        word = words.pop(0)
        if word == "--":
            found.rest.extend(words)
            break
        if word == "-" or not word.startswith("-"):
            found.rest.append(word)
            if not anywhere:
                found.rest.extend(words)
                break
        elif word.startswith("--"):
            _long(command, word[2:], words, kinds, found)
        else:
            _short(command, word[1:], words, kinds, short, found)
    return found


def _long(command: str, text: str, words: list[str], kinds: Mapping[str, str], found: Parsed) -> None:
    typed, equals, value = text.partition("=")
    name = _full(command, typed, kinds)
    kind = kinds[name]
    if equals:
        found.options[name] = value
    elif kind == "value":
        found.options[name] = _next(command, f"--{name}", words)
    else:
        found.options[name] = None


def _short(
    command: str,
    text: str,
    words: list[str],
    kinds: Mapping[str, str],
    short: Mapping[str, str],
    found: Parsed,
) -> None:
    while text:
        letter, text = text[0], text[1:]
        if letter not in short:
            raise UsageError(f"invalid option -- '{letter}' (not known to {command} of the local scheduler)")
        name = short[letter]
        if kinds[name] == "flag":
            found.options[name] = None
            continue
        value: str | None = text
        if not text:
            value = _next(command, f"-{letter}", words) if kinds[name] == "value" else None
        found.options[name] = value
        return


def _next(command: str, option: str, words: list[str]) -> str:
    if not words:
        raise UsageError(f"option '{option}' requires an argument")
    return words.pop(0)


def _full(command: str, typed: str, kinds: Iterable[str]) -> str:
    names = list(kinds)
    if typed in names:
        return typed
    close = [name for name in names if typed and name.startswith(typed)]
    if len(close) == 1:
        return close[0]
    raise UsageError(f"unrecognized option '--{typed}' (not known to {command} of the local scheduler)")
