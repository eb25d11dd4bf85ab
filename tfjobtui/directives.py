"""The `#SBATCH` lines of a job script, read and changed by sbatch's own rules (`src/sbatch/opt.c`).

They are not the shell's: a directive begins in the first column; quotes group, and a backslash escapes,
also within either kind of quotes; an unquoted `#` begins a comment, also in the middle of a word; reading
stops at the first line that is neither blank nor a comment. The words of all directives together are then
one command line, so that a value may stand on the line after its option.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tfjobtui.errors import FormatError, UsageError

# Options of sbatch 20.11 to 26.05, from the table in `src/common/slurm_opt.c`; `name:x` has the short form -x.
_WITH_VALUE = """
account:A acctg-freq array:a autocomplete batch bb bbf begin:b chdir:D cluster cluster-constraint clusters:M
comment constraint:C container container-id container-type context core-spec:S cores-per-socket cpu-freq cpus-per-gpu
cpus-per-task:c deadline delay-boot dependency:d distribution:m error:e exclude:x export export-file extra
extra-node-info:B gid gpu-bind gpu-freq gpus:G gpus-per-node gpus-per-socket gpus-per-task gres gres-flags
hint input:i job-name:J kill-on-invalid-dep licenses:L mail-type mail-user mcs-label mem mem-bind
mem-per-cpu mem-per-gpu mem-update mincpus network nodefile:F nodelist:w nodes:N ntasks:n ntasks-per-core
ntasks-per-gpu ntasks-per-node ntasks-per-socket ntasks-per-tres open-mode output:o partition:p power prefer
priority profile qos:q reservation resources segment signal sockets-per-node switches tasks-per-node
thread-spec threads-per-core time:t time-min tmp tres-bind tres-per-task uid wait-all-nodes wckey wrap
"""
_WITHOUT_VALUE = """
consolidate-segments contiguous external help:h hold:H ignore-pbs no-requeue overcommit:O oversubscribe:s
parsable quiet:Q reboot spread-job spread-segments stepmgr test-only usage use-min-nodes verbose:v version:V
wait:W
"""
_MAYBE_VALUE = "exclusive get-user-env nice no-kill:k oom-kill-step propagate requeue resv-ports"
_ALIASES = {"cluster": "clusters", "tasks-per-node": "ntasks-per-node"}

_MAGIC = ("#SBATCH", "#SLURM")
_SEPARATOR = re.compile(r"[ \t\v\f\r]*(?:hetjob|packjob)(?![^ \t\v\f\r])", re.IGNORECASE)
_BLANKS = " \t\v\f\r"


def _table() -> Iterator[tuple[str, str, str]]:
    for kind, names in (("value", _WITH_VALUE), ("flag", _WITHOUT_VALUE), ("maybe", _MAYBE_VALUE)):
        for item in names.split():
            name, _, short = item.partition(":")
            yield name, short, kind


_KINDS = {name: kind for name, _, kind in _table()}
_SHORT = {short: name for name, short, _ in _table() if short}
OPTION_NAMES = tuple(sorted(name for name in _KINDS if name not in _ALIASES))
"""The long names of sbatch's options."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option by its long name; `value` is `None` for one that stands alone."""

    name: str
    value: str | None = None

    @property
    def argument(self) -> str:
        """As one word of a command line."""
        return f"--{self.name}" if self.value is None else f"--{self.name}={self.value}"


@dataclass(frozen=True, slots=True)
class Directive:
    """An option in a script; `line` counts from 1, `component` from 0 over the parts of a het job."""

    line: int
    name: str
    value: str | None = None
    component: int = 0


def read(script: str) -> tuple[Directive, ...]:
    """The directives of a script, in order.

    Raises:
        FormatError: sbatch would refuse them; the message names the line.
    """
    return tuple(
        Directive(item.line + 1, item.name, item.value, component)
        for component, words in enumerate(_components(script.split("\n")))
        for item in _parsed(words)
    )


def separators(script: str) -> tuple[int, ...]:
    """The lines, counted from 1, at which a further component of a het job begins."""
    found = _directive_lines(script.split("\n"))
    return tuple(number + 1 for number, line, after_magic in found if _SEPARATOR.match(line, after_magic))


def change(script: str, changes: Mapping[str, str | None]) -> str:
    """Set directives by their long names, and take out those whose value is `None`.

    Of an option that is there, the last one (the one that counts) is changed in its place, and those
    before it are taken out; a new one comes after the last directive. An empty value sets an option that
    takes none. In a het job the first component is changed. Everything else stays as it is.

    Raises:
        UsageError: an option that sbatch does not have, or a value that can't stand in a directive.
        FormatError: the directives can't be read.
    """
    for name, value in changes.items():
        _check(name, value)
    for name, value in changes.items():
        script = _changed(script, name, value)
    return script


def split_options(words: Sequence[str]) -> tuple[tuple[Option, ...], tuple[str, ...]]:
    """The options at the start of sbatch's arguments, and the words after them.

    Raises:
        FormatError: an option that sbatch does not have, or one that lacks its value.
    """
    parsed = list(_parse([_Word(text, _NO_LINE, 0, 0) for text in words]))
    used = parsed[-1].last_word + 1 if parsed else 0
    if used < len(words) and words[used] == "--":
        used += 1
    return tuple(Option(item.name, item.value) for item in parsed), tuple(words[used:])


def quoted(value: str) -> str:
    """A value as one word of a directive, whatever is in it.

    Raises:
        UsageError: it has a line break or a NUL, which nothing can quote there.
    """
    if re.search(r"[\n\r\0]", value):
        raise UsageError("a value of an #SBATCH line can't have a line break or a NUL character in it")
    if _NEEDS_NO_QUOTES.fullmatch(value) and not _SEPARATOR.match(value):
        return value
    # sbatch takes a backslash as an escape also within quotes.
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


_NEEDS_NO_QUOTES = re.compile(r"[\w%+,./=@^~&|*!?()\[\]{}<>$;-][\w%+,./:=@^~&|*!?()\[\]{}<>$;-]*", re.ASCII)
"""A word can't begin with a colon."""


# ---- Words


@dataclass(frozen=True, slots=True)
class _Word:
    """A word: `text` without its quotes, and where it stands: `lines[line][start:end]`."""

    text: str
    line: int
    start: int
    end: int

    @property
    def where(self) -> str:
        return "" if self.line == _NO_LINE else f"line {self.line + 1}: "


_NO_LINE = -1
"""Of a word that stands in no script."""


def _components(lines: Sequence[str]) -> list[list[_Word]]:
    """The words of the directives, for each component of a het job."""
    components: list[list[_Word]] = [[]]
    for number, line, after_magic in _directive_lines(lines):
        if _SEPARATOR.match(line, after_magic):
            components.append([])
        components[-1].extend(_words(line, number, after_magic))
    return components


def _directive_lines(lines: Sequence[str]) -> Iterator[tuple[int, str, int]]:
    """Those that begin as a directive: their number from 0 on, their text, and where their options begin."""
    for number, line in enumerate(lines):
        magic = next((magic for magic in _MAGIC if line.startswith(magic)), None)
        if magic is not None:
            yield number, line, len(magic)
            continue
        text = line.strip(_BLANKS)
        if text and not text.startswith("#"):
            return


def _words(line: str, number: int, position: int) -> Iterator[_Word]:
    while True:
        while line[position : position + 1] and line[position] in _BLANKS:
            position += 1
        if line.startswith(":", position):
            raise FormatError(f"line {number + 1}: a directive can't have a word that begins with a colon")
        if _SEPARATOR.match(line, position):
            return  # sbatch reads no further, wherever in the line it stands
        start = position
        text, position = _word(line, number, start)
        if not text:
            return  # nor after an empty word, such as ""
        yield _Word(text, number, start, position)


def _word(line: str, number: int, position: int) -> tuple[str, int]:
    """The word that begins here, without its quotes, and where it ends."""
    text: list[str] = []
    quote = ""
    while position < len(line):
        char = line[position]
        if not quote and char in _BLANKS:
            break
        if char == "\\":
            following = line[position + 1 : position + 2]
            # From 24.05 on an escape saves a space, but no other blank, from ending the word.
            if following and (following == " " or quote or following not in _BLANKS):
                text.append(following)
                position += 1
        elif quote:
            if char == quote:
                quote = ""
            else:
                text.append(char)
        elif char in "\"'":
            quote = char
        elif char == "#":
            break
        else:
            text.append(char)
        position += 1
    if quote:
        raise FormatError(f"line {number + 1}: the quote {quote} is not closed")
    return "".join(text), position


# ---- Options


@dataclass(frozen=True, slots=True)
class _Parsed:
    """An option among words.

    `first_word` and `last_word` are indexes into the words. `value_at` is the index in the last word's text
    at which the value begins; `offset` that of the option, more than 0 for the second of `-Hp`.
    """

    name: str
    value: str | None
    line: int
    first_word: int
    last_word: int
    value_at: int
    offset: int = 0
    is_long: bool = False

    @property
    def is_one_long_word(self) -> bool:
        return self.is_long and self.first_word == self.last_word


def _parsed(words: Sequence[_Word]) -> list[_Parsed]:
    """All words as options.

    Raises:
        FormatError: there is something that is not one.
    """
    parsed = list(_parse(words))
    used = parsed[-1].last_word + 1 if parsed else 0
    if used < len(words) and words[used].text == "--":
        used += 1
    if used < len(words):
        word = words[used]
        raise FormatError(
            f"{word.where}{word.text!r} is not an option",
            "A value with blanks in it needs quotes.",
        )
    return parsed


def _parse(words: Sequence[_Word]) -> Iterator[_Parsed]:
    """Options as getopt_long finds them, up to the first word that is none."""
    index = 0
    while index < len(words):
        text = words[index].text
        if text == "--" or text == "-" or not text.startswith("-"):
            return
        found = [_long(words, index)] if text.startswith("--") else list(_short(words, index))
        yield from found
        index = found[-1].last_word + 1


def _long(words: Sequence[_Word], index: int) -> _Parsed:
    word = words[index]
    typed, equals, value = word.text[2:].partition("=")
    name = _full_name(typed, word)
    kind = _KINDS[name]
    name = _ALIASES.get(name, name)
    if equals:
        if kind == "flag":
            raise FormatError(f"{word.where}--{name} takes no value")
        return _Parsed(name, value, word.line, index, index, len(typed) + 3, is_long=True)
    if kind == "value":
        value_word = _value_word(words, index, f"--{name}")
        return _Parsed(name, value_word.text, word.line, index, index + 1, 0, is_long=True)
    return _Parsed(name, None, word.line, index, index, len(word.text), is_long=True)


def _short(words: Sequence[_Word], index: int) -> Iterator[_Parsed]:
    word = words[index]
    for at in range(1, len(word.text)):
        letter = word.text[at]
        name = _SHORT.get(letter)
        if name is None:
            raise FormatError(f"{word.where}sbatch has no option -{letter}")
        rest = word.text[at + 1 :]
        if _KINDS[name] == "flag" or (_KINDS[name] == "maybe" and not rest):
            yield _Parsed(name, None, word.line, index, index, at + 1, at)
            continue
        if rest:
            yield _Parsed(name, rest, word.line, index, index, at + 1, at)
        else:
            value = _value_word(words, index, f"-{letter}")
            yield _Parsed(name, value.text, word.line, index, index + 1, 0, at)
        return


def _value_word(words: Sequence[_Word], index: int, option: str) -> _Word:
    if index + 1 >= len(words):
        raise FormatError(f"{words[index].where}{option} lacks its value")
    return words[index + 1]


def _full_name(typed: str, word: _Word) -> str:
    """The option's name; getopt takes any beginning that is the beginning of one only."""
    if typed in _KINDS:
        return typed
    matches = [name for name in _KINDS if typed and name.startswith(typed)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise FormatError(f"{word.where}--{typed} may be any of --{', --'.join(sorted(matches))}")
    raise FormatError(f"{word.where}sbatch has no option --{typed}", nearest(typed, OPTION_NAMES))


def nearest(typed: str, known: Sequence[str]) -> str:
    """A hint with the nearest of the known words, or an empty text where none is near."""
    close = difflib.get_close_matches(typed, known, 1)
    return f"Did you mean {close[0]}?" if close else ""


# ---- Changing


def _check(name: str, value: str | None) -> None:
    if name not in OPTION_NAMES:
        raise UsageError(f"sbatch has no option {name!r}", nearest(name, OPTION_NAMES))
    if value is None:
        return
    quoted(value)
    if value and _KINDS[name] == "flag":
        raise UsageError(f"--{name} takes no value, not {value!r}")


def _changed(script: str, name: str, value: str | None) -> str:
    while True:
        lines = script.split("\n")
        words = _components(lines)[0]
        found = [item for item in _parsed(words) if item.name == name]
        if not found:
            return script if value is None else _with_new(lines, words, name, value)
        # One edit at a time: it moves the places of the words after it.
        if value is None or len(found) > 1:
            script = _without(lines, words, found[0])
        elif value == (found[0].value or ""):
            return script
        elif not value and not found[0].is_one_long_word:
            # An empty word would end sbatch's reading of the line.
            script = _without(lines, words, found[0])
        else:
            return _with_other_value(lines, words, found[0], value)


def _with_new(lines: list[str], words: Sequence[_Word], name: str, value: str) -> str:
    if words:
        at = words[-1].line + 1
    else:
        at = 1 if lines[0].startswith("#!") else 0
    return "\n".join([*lines[:at], f"#SBATCH {_long_form(name, value)}", *lines[at:]])


def _long_form(name: str, value: str) -> str:
    if not value and _KINDS[name] != "value":
        return f"--{name}"
    return f"--{name}={quoted(value)}"


def _with_other_value(lines: list[str], words: Sequence[_Word], item: _Parsed, value: str) -> str:
    word = words[item.last_word]
    if item.is_one_long_word:
        new = _long_form(item.name, value)
    elif item.last_word > item.first_word:
        new = quoted(value)
    else:
        new = word.text[: item.value_at] + quoted(value)
    line = lines[word.line]
    lines[word.line] = line[: word.start] + new + line[word.end :]
    return "\n".join(lines)


def _without(lines: list[str], words: Sequence[_Word], item: _Parsed) -> str:
    """The script without an option; a line that has nothing else goes with it."""
    gone: set[int] = set()
    for index in range(item.last_word, item.first_word - 1, -1):
        word = words[index]
        kept = ""
        if index == item.first_word and not item.is_long:
            has_value = item.last_word > index or item.value is not None
            kept = word.text[: item.offset] + ("" if has_value else word.text[item.value_at :])
        _cut(lines, word, "" if kept == "-" else kept)
        if lines[word.line].strip(_BLANKS) in _MAGIC:
            gone.add(word.line)
    return "\n".join(line for number, line in enumerate(lines) if number not in gone)


def _cut(lines: list[str], word: _Word, kept: str) -> None:
    line = lines[word.line]
    before, after = line[: word.start], line[word.end :]
    if not kept:
        after = after.lstrip(_BLANKS)
        before = before if after else before.rstrip(_BLANKS)
    lines[word.line] = before + kept + after
