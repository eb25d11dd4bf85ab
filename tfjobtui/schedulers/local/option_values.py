"""What a single option of sbatch says: its value read and checked.

Source: Slurm's `slurm_opt.c` and `proc_args.c`. All readers raise FormatError where sbatch or slurmctld would
refuse the value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tfjobtui.errors import FormatError
from tfjobtui.schedulers.local import dependencies, moments
from tfjobtui.schedulers.local.arrays import parse_array
from tfjobtui.schedulers.local.gpus import parse_gpus, parse_gres

CLUSTER = "local"
_MOST_TEXT_BYTES = 1024
_MOST_NICE = (1 << 31) - 3
_INT_MAX = (1 << 31) - 1
_NUMBER = re.compile(r"\s*[+-]?\d+", re.ASCII)
_NODES = re.compile(r"\s*(-?\d+)(k?)(m?)\s*", re.ASCII | re.IGNORECASE)

Reader = Callable[[str, float], Any]
"""Takes the value (empty for an option that stands alone) and the moment of the submission."""


def count(text: str, _: float = 0.0) -> int:
    """A whole number from 1 on.

    Raises:
        FormatError: it is none.
    """
    return _whole(text, 1)


def count_or_zero(text: str, _: float) -> int:
    """A whole number from 0 on."""
    return _whole(text, 0)


def _whole(text: str, least: int) -> int:
    if _NUMBER.fullmatch(text) is None or not least <= int(text) <= _INT_MAX:
        raise FormatError(f"Invalid numeric value {text!r}", f"It is a whole number from {least} on.")
    return int(text)


def short_text(text: str, _: float) -> str:
    """A text of no more than 1024 bytes, as slurmctld takes."""
    if len(text.encode("utf-8", "surrogateescape")) > _MOST_TEXT_BYTES:
        raise FormatError(
            "Pathname of a file, directory or other parameter too long",
            f"It may have {_MOST_TEXT_BYTES} bytes.",
        )
    return text


def lower_text(text: str, now_s: float) -> str:
    """A text that slurmctld makes lower case, as account names."""
    return short_text(text, now_s).lower()


def yes(_text: str, _: float) -> bool:
    """An option that stands alone."""
    return True


def no(_text: str, _: float) -> bool:
    """An option that takes back what another one says."""
    return False


def one_of(*choices: str) -> Reader:
    """A reader of one of these words."""

    def read(text: str, _: float) -> str:
        if text.casefold() not in choices:
            raise FormatError(f"{text!r} is none of {', '.join(filter(None, choices))}")
        return text.casefold()

    return read


def form(pattern: str, example: str) -> Reader:
    """A reader of a text that is kept as it is if it has this form."""
    wanted = re.compile(pattern, re.ASCII | re.IGNORECASE | re.DOTALL)

    def read(text: str, now_s: float) -> str:
        if wanted.fullmatch(text) is None:
            raise FormatError(f"{text!r} is none", f"Try {example}.")
        return short_text(text, now_s)

    return read


def requeue(text: str, _: float) -> bool:
    """`--requeue`, in later releases also `--requeue=expedite`."""
    if text.casefold() not in ("", "expedite"):
        raise FormatError("option '--requeue' doesn't allow an argument")
    return True


def nodes(text: str, _: float = 0.0) -> tuple[int, int]:
    """`2`, `1-4`, `-4`: the least and the most of them. Of a list (`1,2,4`, of later releases) its ends.

    Raises:
        FormatError: it is no number of nodes.
    """
    if "," in text or ":" in text:
        ends = [int(number) for number in re.findall(r"\d+", text)]
        if re.fullmatch(r"\d+(?:-\d+(?::\d+)?)?(?:,\d+(?:-\d+(?::\d+)?)?)*", text, re.ASCII):
            return min(ends), max(ends)
    least, dash, most = text.partition("-")
    low = _node_count(least) if least or not dash else 1
    high = _node_count(most) if dash else low
    if low is None or high is None or high < low:
        raise FormatError(f"{text!r} is not a valid node count", "Try 1.")
    return low, high


def _node_count(text: str) -> int | None:
    match = _NODES.fullmatch(text)
    if match is None:
        return None
    return int(match[1]) * (1024 if match[2] else 1) * (1 << 20 if match[3] else 1)


def array(text: str, _: float) -> tuple[str, Any]:
    """The expression, and its tasks (`None` for a plain job)."""
    return text, parse_array(text)


def dependency(text: str, _: float) -> str:
    """A list of bare ids is an old form of `afterany`."""
    if text in ("", "0"):
        return ""
    if re.fullmatch(r"\d+(?:_(?:\d+|\*))?(?:,\d+(?:_(?:\d+|\*))?)*", text, re.ASCII):
        text = ",".join(f"afterany:{job}" for job in text.split(","))
    if re.search(r":0+\b|\+0+\b", text):
        raise FormatError(f"Job dependency problem: there is no job 0, and no wait of 0 minutes, in {text!r}")
    # Only `after` has something to do with a time; elsewhere Slurm takes it and does nothing with it.
    terms = (
        term if term.casefold().startswith("after:") else re.sub(r"\+\d+", "", term)
        for term in re.split(r"([,?])", text)
    )
    return str(dependencies.parse("".join(terms)))


def exclusive(text: str, _: float) -> bool:
    """Whether nothing else may run beside it; all the jobs here are the user's own."""
    if text.casefold() not in ("", "exclusive", "allocation", "oversubscribe", "user", "mcs", "topo"):
        raise FormatError(f"{text!r} is none of user, mcs", "It stands alone: --exclusive.")
    return text.casefold() in ("", "exclusive", "allocation")


def nice(text: str, _: float) -> int:
    """How much later than others; a user may not ask for sooner."""
    match = _NUMBER.match(text or "100")
    number = int(match[0]) if match is not None else 0
    if abs(number) > _MOST_NICE:
        raise FormatError(f"Invalid --nice value, out of range (+/- {_MOST_NICE})")
    if number < 0:
        raise FormatError("Invalid --nice value", "Only an administrator may raise a priority.")
    return number


def open_mode(text: str, _: float) -> str:
    """`a` or `t`, by the first letter."""
    if text[:1] not in tuple("aAtT"):
        raise FormatError(f"{text!r} is none of append, truncate")
    return text[0].lower()


def file_name(text: str, _: float) -> str:
    """A pattern; `none` is no file at all."""
    return "/dev/null" if text.casefold() == "none" else text


def clusters(text: str, _: float) -> str:
    """This machine is the only cluster."""
    if text not in ("", CLUSTER):
        raise FormatError(f"there is no cluster {text!r} here", f"This is the machine's own, {CLUSTER!r}.")
    return text


_MAIL_TYPES = frozenset(
    "array_tasks begin end fail invalid_depend requeue all stage_out"
    " time_limit time_limit_90 time_limit_80 time_limit_50".split()
)


def mail_type(text: str, _: float) -> bool:
    """Whether any mail is asked for."""
    words = text.casefold().split(",")
    if "none" in words:
        return False
    if not _MAIL_TYPES & set(words):
        raise FormatError(f"{text!r} is none of {', '.join(sorted(_MAIL_TYPES)).upper()}, NONE")
    return True


_LIMIT_NAMES = frozenset("ALL NONE AS CORE CPU DATA FSIZE MEMLOCK NOFILE NPROC RSS STACK".split())


def propagate(text: str, _: float) -> str:
    """Names of limits (getrlimit(2))."""
    for word in filter(None, re.split(r"[,\s]", text or "ALL")):
        if word.removeprefix("RLIMIT_") not in _LIMIT_NAMES:
            raise FormatError(f"Bad rlimit name: {word}", f"It is one of {', '.join(sorted(_LIMIT_NAMES))}.")
    return text or "ALL"


def distribution(text: str, _: float) -> str:
    """The value of SLURM_DISTRIBUTION."""
    base, _comma, flags = text.casefold().partition(",")
    plane = re.fullmatch(r"plane=(\d+)", text, re.ASCII | re.IGNORECASE)
    if plane is not None and int(plane[1]) > 0:
        return "plane"
    one = r"(?:block|cyclic|\*)"
    form = rf"{one}(?::(?:fcyclic|{one})){{0,2}}|arbitrary|hostfile"
    if flags not in ("", "pack", "nopack") or not re.fullmatch(form, base):
        raise FormatError(f"{text!r} is no distribution", "Try block or cyclic.")
    return base.replace("*", "block", 1) if base.startswith("*") else base


def limit_signal(text: str, _: float) -> Any:
    """See `moments.limit_signal`."""
    return moments.limit_signal(text)


def size(text: str, _: float) -> int:
    """Bytes; see `moments.size_bytes`."""
    return moments.size_bytes(text)


def time_limit(text: str, _: float) -> float:
    """Seconds; see `moments.time_limit_s`."""
    return moments.time_limit_s(text)


def gpus(text: str, now_s: float) -> Any:
    """The text, and how many GPUs of which type."""
    return short_text(text, now_s), parse_gpus(text)


def gres(text: str, now_s: float) -> Any:
    """The text, and how many GPUs of which type."""
    return short_text(text, now_s), parse_gres(text)


def tres_per_task(text: str, now_s: float) -> Any:
    """`cpu=4,gres/gpu:1`: what each task gets (from 23.11 on)."""
    found: dict[str, Any] = {}
    for word in text.split(","):
        match = re.fullmatch(r"cpu[:=](\d+)|gres/gpu[:=](.+)", word, re.ASCII)
        if match is None:
            raise FormatError(
                f"{word!r} is not counted on this machine", "CPUs and GPUs are: cpu=4,gres/gpu=1."
            )
        if match[1] is not None:
            found["cpus-per-task"] = count(match[1])
        else:
            found["gpus-per-task"] = gpus(match[2].replace("=", ":"), now_s)
    return found


def threads(text: str, _: float) -> tuple[int, int, int]:
    """`-B sockets[:cores[:threads]]`; a `*` stands for any."""
    parts = text.split(":")
    if len(parts) > 3:
        raise FormatError(f"{text!r} is no number of sockets, cores and threads", "Try 1:4:2.")
    numbers = [1 if part == "*" else count(part.partition("-")[0]) for part in parts]
    return tuple([*numbers, 1, 1][:3])  # type: ignore[return-value]


def refused(reason: str, hint: str = "") -> Reader:
    """A reader of an option that would change what the script does, and cannot be served."""

    def read(_text: str, _: float) -> None:
        raise FormatError(reason, hint)

    return read
