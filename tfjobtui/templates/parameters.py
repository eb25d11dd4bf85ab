"""The header of a template, and the values of its parameters.

Version 1 of the format. Lines begin with `#TFJOB` in the first column and are split like shell words:

    #TFJOB KEY = VALUE                       format, name, title, about
    #TFJOB param NAME TYPE [KEY=VALUE …]     a parameter, in the order of the form

TYPE is int, float, str (any text of one line), path, choice, words (values separated by blanks) or bool
(`1` or empty). KEY is default (as text), help, min, max (a value equal to them is allowed), above (one equal
to it is not), choices (separated by commas) or set (`set=trainer`: not shown, filled in by the program with
the folder of the trainer). An empty default means "not set". Unknown keys are ignored, so that a later
format can have more of them.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from tfjobtui.directives import nearest
from tfjobtui.errors import FormatError, UsageError

FORMAT = 1
TYPES = ("int", "float", "str", "path", "choice", "words", "bool")
SET_TRAINER = "trainer"

_MARK = "#TFJOB"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"", "0", "false", "no", "off"})


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value that may be filled in. `minimum`, `maximum` are allowed themselves, `above` is not.

    `set_by` names what fills it in where that is not the user: such a parameter is not shown.
    """

    name: str
    kind: str
    default: str = ""
    help: str = ""
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    choices: tuple[str, ...] = ()
    set_by: str = ""

    @property
    def is_shown(self) -> bool:
        return not self.set_by

    def problem(self, value: str) -> str:
        """What is wrong with a value, in a sentence; an empty text where nothing is."""
        try:
            self.checked(value)
        except UsageError as error:
            return str(error)
        return ""

    def checked(self, value: str) -> str:
        """The value as it goes into the script.

        Raises:
            UsageError: it is not a value of this parameter; the message says which would be.
        """
        if re.search(r"[\n\r\0]", value):
            raise UsageError(f"{self.name} can't have a line break or a NUL character in it")
        if self.kind not in ("str", "path"):
            value = value.strip()
        if value == "" and self.kind != "bool":
            if self.default == "":
                return ""
            raise UsageError(f"{self.name} needs a value, such as {self.default}")
        if self.kind in ("int", "float"):
            return self._number(value)
        if self.kind == "choice":
            return self._choice(value)
        if self.kind == "bool":
            return self._bool(value)
        return value

    def _number(self, value: str) -> str:
        what = "a whole number" if self.kind == "int" else "a number"
        if self.kind == "int" and not re.fullmatch(r"[+-]?[0-9]+", value):
            raise UsageError(f"{self.name} is {what}, not {value!r}")
        try:
            number = float(value)
        except ValueError:
            raise UsageError(f"{self.name} is {what}, not {value!r}") from None
        if "_" in value or not value.isascii() or not math.isfinite(number):
            raise UsageError(f"{self.name} is {what}, not {value!r}")
        for is_outside, limit, words in (
            (self.minimum is not None and number < self.minimum, self.minimum, "at least"),
            (self.maximum is not None and number > self.maximum, self.maximum, "at most"),
            (self.above is not None and number <= self.above, self.above, "more than"),
        ):
            if is_outside and limit is not None:
                raise UsageError(f"{self.name} is {words} {limit_text(limit)}, not {value}")
        return value

    def _choice(self, value: str) -> str:
        if value in self.choices:
            return value
        for choice in self.choices:
            if choice.casefold() == value.casefold():
                return choice
        raise UsageError(
            f"{self.name} is one of {', '.join(self.choices)}, not {value!r}", nearest(value, self.choices)
        )

    def _bool(self, value: str) -> str:
        if value.casefold() in _TRUE:
            return "1"
        if value.casefold() in _FALSE:
            return ""
        raise UsageError(f"{self.name} is yes or no, not {value!r}")


@dataclass(frozen=True, slots=True)
class Header:
    """What the `#TFJOB` lines of a script say."""

    name: str = ""
    title: str = ""
    about: str = ""
    parameters: tuple[Parameter, ...] = ()


def read_header(script: str) -> Header:
    """Read the `#TFJOB` lines.

    Raises:
        FormatError: one of them can't be read; the message names the line.
    """
    about: dict[str, str] = {}
    parameters: dict[str, Parameter] = {}
    for number, line in enumerate(script.split("\n"), 1):
        if not line.startswith(f"{_MARK} "):
            continue
        try:
            words = shlex.split(line[len(_MARK) :])
            if words[:1] == ["param"]:
                parameter = _parameter(words[1:])
                if parameter.name in parameters:
                    raise FormatError(f"the parameter {parameter.name} is there twice")
                parameters[parameter.name] = parameter
            elif len(words) == 3 and words[1] == "=":
                about[words[0]] = words[2]
            else:
                raise FormatError("neither `KEY = VALUE` nor `param NAME TYPE …`")
        except (ValueError, FormatError) as error:
            raise FormatError(f"line {number}: {error}") from None
    version = about.get("format", str(FORMAT))
    if not version.isdigit() or int(version) > FORMAT:
        raise FormatError(f"its format is {version}, and this program reads up to {FORMAT}")
    return Header(
        about.get("name", ""), about.get("title", ""), about.get("about", ""), tuple(parameters.values())
    )


def _parameter(words: list[str]) -> Parameter:
    if len(words) < 2:
        raise FormatError("a parameter needs a name and a type")
    name, kind, *rest = words
    if not _NAME.fullmatch(name):
        raise FormatError(f"{name!r} is no name of a shell variable")
    if kind not in TYPES:
        raise FormatError(f"{kind!r} is no type; the types are {', '.join(TYPES)}", nearest(kind, TYPES))
    keys = {}
    for word in rest:
        key, equals, value = word.partition("=")
        if not equals:
            raise FormatError(f"{word!r} is not KEY=VALUE; a value with blanks needs quotes")
        keys[key] = value
    parameter = Parameter(
        name,
        kind,
        default=keys.get("default", ""),
        help=keys.get("help", ""),
        minimum=_limit(keys, "min"),
        maximum=_limit(keys, "max"),
        above=_limit(keys, "above"),
        choices=tuple(part for part in keys.get("choices", "").split(",") if part),
        set_by=keys.get("set", ""),
    )
    if kind == "choice" and not parameter.choices:
        raise FormatError(f"the choice {name} has no choices")
    problem = parameter.problem(parameter.default)
    if problem:
        raise FormatError(f"the default is not allowed: {problem}")
    return parameter


def limit_text(limit: float) -> str:
    """`2147483647`, `0.5`: a limit as it was written, more or less."""
    return str(int(limit)) if abs(limit) < 1e15 and limit == int(limit) else f"{limit:g}"


def _limit(keys: Mapping[str, str], key: str) -> float | None:
    if key not in keys:
        return None
    try:
        return float(keys[key])
    except ValueError:
        raise FormatError(f"{key} is a number, not {keys[key]!r}") from None
