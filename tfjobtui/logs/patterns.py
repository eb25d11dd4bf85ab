"""The names of output files, as Slurm's batch step expands them: `%x-%j.out` → `train-128.out`.

Two writers exist. Up to 25.05 slurmstepd has its own (`src/slurmd/common/fname.c`), from 25.11 on one
function serves all (`src/common/print_fields.c`). They differ in what they make of widths before an
unknown letter, of `\\`, of a `%` at the end, and in the letters that they know.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator
from dataclasses import dataclass

NO_TASK = 4294967294
"""What Slurm writes for `%a` where there is no array."""

_MAX_WIDTH = 10
_WIDTH = re.compile(r"\d+", re.ASCII)
_ONE_WRITER = (25, 11)
_TASK_MODULO_10 = (24, 11)


@dataclass(frozen=True, slots=True)
class PatternIds:
    """What is known of a job. `None` or an empty text: not known.

    `job_id` is the job's own raw id (`%j`), which for an array's task is not the array's; it is `None` for
    the waiting rest of an array. `node` is the name of the node that runs the batch script, `job_name` the
    name at the time of the submission, `restarts` how often the job was requeued.
    """

    job_id: int | None
    array_job_id: int | None = None
    array_task_id: int | None = None
    node: str = ""
    user: str = ""
    job_name: str = ""
    restarts: int | None = None


@dataclass(frozen=True, slots=True)
class Expansion:
    """A file name, as well as it is known.

    `path` is the most probable name, `None` where a part of it can't even be guessed. `glob` matches the
    possible names (in the form of the module `glob`), and is `None` where `path` is certain. `uncertain`
    are the parts it is because of, such as `%N`.
    """

    path: str | None
    glob: str | None
    uncertain: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of the name: `text` is its (most probable) value, `sign` the pattern where it may be another."""

    text: str | None
    sign: str = ""


def expand(pattern: str, ids: PatternIds, slurm_version: tuple[int, int] | None = None) -> Expansion:
    """Expand as the batch step does; a relative name stays relative.

    `slurm_version` is (year, month) of the cluster's release, such as (25, 5); where it is `None`, what
    differs between releases becomes a wildcard.
    """
    is_new = slurm_version is not None and slurm_version >= _ONE_WRITER
    if "\\" in pattern:
        return Expansion(_unescape(pattern, is_new), None)
    pieces = list((_new_pieces if is_new else _old_pieces)(pattern, ids, slurm_version))
    uncertain = tuple(dict.fromkeys(piece.sign for piece in pieces if piece.sign))
    path = None
    if all(piece.text is not None for piece in pieces):
        path = "".join(piece.text or "" for piece in pieces)
    if not uncertain:
        return Expansion(path, None)
    parts = ("*" if piece.sign else glob.escape(piece.text or "") for piece in pieces)
    return Expansion(path, re.sub(r"\*\*+", "*", "".join(parts)), uncertain)


def _unescape(pattern: str, is_new: bool) -> str:
    """A `\\` anywhere switches expansion off. Up to 25.05 `\\\\` stands for one, then all of them go."""
    if is_new:
        return pattern.replace("\\", "")
    return re.sub(r"\\(\\?)", r"\1", pattern)


def _old_pieces(pattern: str, ids: PatternIds, version: tuple[int, int] | None) -> Iterator[_Piece]:
    """The writer up to 25.05: of a width before an unknown letter, or at the end, the last digit stays."""
    position = 0
    while position < len(pattern):
        char = pattern[position]
        position += 1
        if char != "%":
            yield _Piece(char)
            continue
        if pattern.startswith("%", position):
            yield _Piece("%")
            position += 1
            continue
        digits = _WIDTH.match(pattern, position)
        if digits is not None:
            position = digits.end()
        letter = pattern[position : position + 1]
        value = _value(letter, ids, version, _width(digits))
        if value is not None:
            yield value
            position += 1
        elif digits is None:
            yield _Piece("%")
        else:
            # Without a version the name may also be by the other writer, which keeps all of it.
            yield _Piece(digits[0][-1], "" if version else f"%{digits[0]}")


def _new_pieces(pattern: str, ids: PatternIds, version: tuple[int, int] | None) -> Iterator[_Piece]:
    """The writer from 25.11 on: what is unknown stays as it is; a `%` at the very end goes."""
    position = 0
    while position < len(pattern):
        char = pattern[position]
        position += 1
        if char != "%":
            yield _Piece(char)
            continue
        digits = _WIDTH.match(pattern, position)
        if digits is not None:
            position = digits.end()
        letter = pattern[position : position + 1]
        position += 1
        if digits is None and letter in ("%", ""):
            yield _Piece(letter)
            continue
        value = _value(letter, ids, version, _width(digits))
        yield value or _Piece(f"%{digits[0] if digits else ''}{letter}")


def _width(digits: re.Match[str] | None) -> int:
    """The zero padding; anything that is more than ten counts as ten, however long the number."""
    if digits is None:
        return 0
    return min(int(digits[0][:9]), _MAX_WIDTH) if len(digits[0].lstrip("0")) < 9 else _MAX_WIDTH


def _value(letter: str, ids: PatternIds, version: tuple[int, int] | None, width: int) -> _Piece | None:
    """What a letter stands for, or `None` for a letter that this release does not know."""
    if letter in _NUMBERS:
        return _number(letter, ids, version, width)
    sign = f"%{letter}"
    match letter:
        case "s":
            return _Piece("batch")
        case "u":
            return _text(ids.user, sign)
        case "x":
            return _text(ids.job_name, sign)
        case "N":
            return _host(ids.node, version)
        case "S" if version is None or version >= _ONE_WRITER:
            # The id that Slurm gives to each submission is not among what squeue tells.
            return _Piece(None, sign)
    return None


_NUMBERS = frozenset("jJAabntr")


def _number(letter: str, ids: PatternIds, version: tuple[int, int] | None, width: int) -> _Piece | None:
    value: int | None
    match letter:
        case "j" | "J":
            value = ids.job_id
        case "A":
            value = ids.job_id if ids.array_job_id is None else ids.array_job_id
        case "a" | "b":
            value = NO_TASK if ids.array_job_id is None else ids.array_task_id
            if letter == "b":
                return _modulo(value, version, width)
        case "r":
            return _restarts(ids.restarts, version, width)
        case _:  # %n and %t: the batch script is task 0 on node 0
            value = 0
    return _Piece(None, f"%{letter}") if value is None else _Piece(f"{value:0{width}d}")


def _modulo(task: int | None, version: tuple[int, int] | None, width: int) -> _Piece | None:
    if version is not None and version < _TASK_MODULO_10:
        return None
    text = None if task is None else f"{task % 10:0{width}d}"
    return _Piece(text, "" if version is not None and text is not None else "%b")


def _restarts(count: int | None, version: tuple[int, int] | None, width: int) -> _Piece | None:
    if version is not None and version < _ONE_WRITER:
        return None
    text = None if count is None else f"{count:0{width}d}"
    return _Piece(text, "" if version is not None and text is not None else "%r")


def _text(value: str, sign: str) -> _Piece:
    return _Piece(value) if value else _Piece(None, sign)


def _host(node: str, version: tuple[int, int] | None) -> _Piece:
    """From 25.11 on the node's name; before, the short host name that the node has for itself."""
    if not node:
        return _Piece(None, "%N")
    if version is not None and version >= _ONE_WRITER:
        return _Piece(node)
    return _Piece(node.partition(".")[0], "%N")
