"""Options as Slurm's commands take them, by getopt_long's rules and with its words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from tfjobtui.schedulers.local.commands.refusal import RefusalError, not_here


@dataclass(frozen=True, slots=True)
class Table:
    """The options of a command: `name:x` has the short form -x, `name=other` is another word for `other`.

    `optional` may stand without a value, which has to be in the same word; `loose` too, and its value may be the
    next word unless that looks like an option. `with_value_not_here` and `flags_not_here` are Slurm's, and end
    with a message. `bad_usage` is the exit code after a wrong option, and `hint` says that the help is pointed to
    then. With `at_start` options end at the first word that is none, as srun's do.
    """

    command: str
    with_value: str = ""
    flags: str = ""
    optional: str = ""
    loose: str = ""
    with_value_not_here: str = ""
    flags_not_here: str = ""
    bad_usage: int = 1
    hint: bool = True
    at_start: bool = False

    def kinds(self) -> Iterator[tuple[str, str, str]]:
        """Name with short form, kind, and whether it is known here only by name."""
        for words, kind, is_here in (
            (self.with_value, "value", "here"),
            (self.flags, "flag", "here"),
            (self.optional, "optional", "here"),
            (self.loose, "loose", "here"),
            (self.with_value_not_here, "value", ""),
            (self.flags_not_here, "flag", ""),
        ):
            for item in words.split():
                yield item, kind, is_here


@dataclass(slots=True)
class Parsed:
    """The options by their long names (of one name the last counts), and the words that are none."""

    options: dict[str, str | None] = field(default_factory=dict)
    rest: list[str] = field(default_factory=list)

    def get(self, name: str, default: str = "") -> str:
        return self.options.get(name) or default

    def has(self, name: str) -> bool:
        return name in self.options

    def words(self, name: str) -> list[str] | None:
        """The parts of a list with commas; `None` where the option was not given."""
        return [word for word in self.get(name).split(",") if word] if self.has(name) else None


def parse(table: Table, argv: Sequence[str]) -> Parsed:
    """Read the words of a command line.

    Raises:
        RefusalError: an option is not known, or is not for here, or lacks its value.
    """
    return _Reader(table).read(argv)


class _Reader:
    def __init__(self, table: Table) -> None:
        self._table = table
        self._kinds: dict[str, str] = {}
        self._same: dict[str, str] = {}
        self._short: dict[str, str] = {}
        self._elsewhere: set[str] = set()
        for item, kind, is_here in table.kinds():
            word, _, short = item.partition(":")
            word, _, other = word.partition("=")
            self._kinds[word] = kind
            self._same[word] = other or word
            if short:
                self._short[short] = word
            if not is_here:
                self._elsewhere.add(word)

    def read(self, argv: Sequence[str]) -> Parsed:
        found, words = Parsed(), list(argv)
        while words:
            word = words.pop(0)
            if word == "--":
                break
            if word == "-" or not word.startswith("-"):
                found.rest.append(word)
                if self._table.at_start:
                    break
            elif word.startswith("--"):
                self._long(word[2:], words, found)
            else:
                self._shorts(word[1:], words, found)
        found.rest.extend(words)
        return found

    def _long(self, text: str, words: list[str], found: Parsed) -> None:
        typed, equals, value = text.partition("=")
        name = self._full(typed)
        kind = self._kinds[name]
        if equals and kind == "flag":
            self._wrong(f"option '--{name}' doesn't allow an argument")
        if kind == "value" and not equals:
            if not words:
                self._wrong(f"option '--{name}' requires an argument")
            value, equals = words.pop(0), "="
        if kind == "loose" and not equals and words and not words[0].startswith("-"):
            value, equals = words.pop(0), "="
        self._keep(name, f"--{name}", value if equals else None, found)

    def _shorts(self, text: str, words: list[str], found: Parsed) -> None:
        while text:
            letter, text = text[0], text[1:]
            name = self._short.get(letter)
            if name is None:
                self._wrong(f"invalid option -- '{letter}'")
            kind = self._kinds[name]
            if kind == "flag":
                self._keep(name, f"-{letter}", None, found)
                continue
            if kind == "value" and not text:
                if not words:
                    self._wrong(f"option requires an argument -- '{letter}'")
                text = words.pop(0)
            if kind == "loose" and not text and words and not words[0].startswith("-"):
                text = words.pop(0)
            self._keep(name, f"-{letter}", text or None, found)
            return

    def _keep(self, name: str, typed: str, value: str | None, found: Parsed) -> None:
        if name in self._elsewhere:
            not_here(self._table.command, typed if typed.startswith("--") else f"{typed} (--{name})")
        found.options[self._same[name]] = value

    def _full(self, typed: str) -> str:
        """The name that is meant; getopt takes any beginning that only one has."""
        if typed in self._kinds:
            return typed
        close = [name for name in self._kinds if typed and name.startswith(typed)]
        if not close:
            self._wrong(f"unrecognized option '--{typed}'")
        if len({self._same[name] for name in close}) > 1:
            possible = " ".join(f"'--{name}'" for name in close)
            self._wrong(f"option '--{typed}' is ambiguous; possibilities: {possible}")
        return close[0]

    def _wrong(self, words: str) -> NoReturn:
        command = self._table.command
        hint = f'\nTry "{command} --help" for more information' if self._table.hint else ""
        raise RefusalError(f"{command}: {words}{hint}", self._table.bad_usage)
