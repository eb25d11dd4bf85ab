"""The user's own defaults for sbatch, out of `SBATCH_*` variables.

sbatch takes `SBATCH_ACCOUNT` and its kin for options without a word, and sets them above what the script
says. Submissions get none of these variables, so that what is shown is what runs. Where neither the script
nor the command line says anything of the matter, a variable becomes an option that is seen, and kept in the
record; what is passed over is told.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tfjobtui import directives
from tfjobtui.directives import Option
from tfjobtui.errors import FormatError, UsageError

_PREFIX = "SBATCH_"
_ADOPTED: Mapping[str, str] = {
    "SBATCH_JOB_NAME": "job-name",
    "SBATCH_ACCOUNT": "account",
    "SBATCH_PARTITION": "partition",
    "SBATCH_QOS": "qos",
    "SBATCH_RESERVATION": "reservation",
    "SBATCH_WCKEY": "wckey",
    "SBATCH_CONSTRAINT": "constraint",
    "SBATCH_TIMELIMIT": "time",
    "SBATCH_GPUS": "gpus",
    "SBATCH_GPUS_PER_NODE": "gpus-per-node",
    "SBATCH_GPUS_PER_TASK": "gpus-per-task",
    "SBATCH_GRES": "gres",
    "SBATCH_CPUS_PER_GPU": "cpus-per-gpu",
    "SBATCH_MEM_PER_NODE": "mem",
    "SBATCH_MEM_PER_CPU": "mem-per-cpu",
    "SBATCH_MEM_PER_GPU": "mem-per-gpu",
    "SBATCH_EXCLUSIVE": "exclusive",
    "SBATCH_OUTPUT": "output",
    "SBATCH_ERROR": "error",
    "SBATCH_OPEN_MODE": "open-mode",
    "SBATCH_SIGNAL": "signal",
    "SBATCH_REQUEUE": "requeue",
    "SBATCH_NO_REQUEUE": "no-requeue",
    "SBATCH_EXPORT": "export",
    "SBATCH_PROFILE": "profile",
    "SBATCH_ACCTG_FREQ": "acctg-freq",
}
"""What people set as their defaults. Not among them: what makes it another job (`SBATCH_ARRAY_INX`)."""

_ALONE = frozenset({"exclusive", "requeue", "no-requeue"})
"""Options that count without a value too."""

_FAMILIES = (
    frozenset({"gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket", "gres"}),
    frozenset({"mem", "mem-per-cpu", "mem-per-gpu"}),
    frozenset({"cpus-per-gpu", "cpus-per-task"}),
    frozenset({"requeue", "no-requeue"}),
)
"""Options that say something of the same matter: who sets one of them has settled it."""

_FROM_SLURM = ("SBATCH_CPU_BIND", "SBATCH_MEM_BIND")
"""Slurm sets these itself inside a job."""


@dataclass(frozen=True, slots=True)
class PersonalDefaults:
    """Options to be added, each with the variable that it is from, and sentences on what is passed over."""

    options: tuple[Option, ...] = ()
    variables: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def personal_defaults(
    script: str, given: Iterable[str] = (), environment: Mapping[str, str] | None = None
) -> PersonalDefaults:
    """What the variables add to this script. `given` are the names of options that are set beside it.

    In a het job nothing is added: an option of the command line counts for one of its parts only.
    """
    found = dict(_set_variables(os.environ if environment is None else environment))
    if not found:
        return PersonalDefaults()
    try:
        written = directives.read(script)
    except FormatError:
        return PersonalDefaults()  # sbatch will refuse the script, in its own words
    is_het = any(item.component for item in written)
    said = {item.name: item.value for item in written}
    settled = frozenset(given)
    options: dict[str, Option] = {}
    notes: list[str] = []
    for variable, value in found.items():
        name = _ADOPTED.get(variable)
        if name is None:
            notes.append(f"{variable} is not used: what it asks for can be given as an option.")
        elif _settles(settled, name):
            continue
        elif (by := _settling(said, name)) is not None:
            if by != Option(name, value or None):
                notes.append(f"{_shown(variable, value)} is not used: the script says {by.argument}.")
        elif is_het:
            notes.append(f"{_shown(variable, value)} is not used: a het job says it for each of its parts.")
        elif not _fits(value):
            notes.append(f"{variable} is not used: its value has a line break in it.")
        else:
            options[variable] = Option(name, value or None)
            settled |= {name}
    return PersonalDefaults(tuple(options.values()), tuple(options), tuple(notes))


def _set_variables(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The variables that count, the known ones first and in a fixed order."""
    order = [*_ADOPTED, *sorted(name for name in environment if name.startswith(_PREFIX))]
    for variable in dict.fromkeys(order):
        value = environment.get(variable)
        if value is None or variable.startswith(_FROM_SLURM):
            continue
        if value or _ADOPTED.get(variable) in _ALONE:
            yield variable, value


def _shown(variable: str, value: str) -> str:
    return f"{variable}={value}" if value else variable


def _family(name: str) -> frozenset[str]:
    return next((family for family in _FAMILIES if name in family), frozenset({name}))


def _settles(names: frozenset[str], name: str) -> bool:
    return not names.isdisjoint(_family(name))


def _settling(said: Mapping[str, str | None], name: str) -> Option | None:
    """What the script says of the same matter."""
    return next((Option(other, said[other]) for other in said if other in _family(name)), None)


def _fits(value: str) -> bool:
    try:
        directives.quoted(value)
    except UsageError:
        return False
    return True
