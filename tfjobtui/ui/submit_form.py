"""The fields of a submission's form: the options that a template has and the usual ones, and its parameters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tfjobtui.actions.fields import time_limit
from tfjobtui.actions.personal_defaults import personal_defaults
from tfjobtui.actions.submit import SubmitPlan, plan_template
from tfjobtui.errors import UsageError
from tfjobtui.paths import is_folder
from tfjobtui.templates.catalogue import Template
from tfjobtui.templates.parameters import Parameter, limit_text

FOLDER = "folder"
"""The id of the field for the working folder."""


@dataclass(frozen=True, slots=True)
class FormField:
    """One line of the form.

    `check` gives the value as it goes into the script and a note on it, and raises `UsageError`. An
    option's empty value means that the option is not set.
    """

    id: str
    label: str
    default: str
    help: str
    check: Callable[[str], tuple[str, str]]
    choices: tuple[str, ...] = ()


# --- options ----------------------------------------------------------------------------------------------


def _word(text: str) -> tuple[str, str]:
    if any(char.isspace() or not char.isprintable() for char in text):
        raise UsageError("it has a blank or a control character in it")
    return text, ""


def _line(text: str) -> tuple[str, str]:
    if any(ord(char) < 32 or ord(char) == 127 for char in text):
        raise UsageError("it has a control character in it")
    return text, ""


def _number(text: str) -> tuple[str, str]:
    if text and (re.fullmatch(r"[0-9]+", text) is None or int(text) < 1):
        raise UsageError(f"not a whole number from 1 on: {text}")
    return text, ""


def _nodes(text: str) -> tuple[str, str]:
    if text and re.fullmatch(r"[0-9]+(-[0-9]+)?", text) is None:
        raise UsageError(f"not a number of nodes: {text}", "Try 2, or 2-4.")
    return text, ""


def _gpus(text: str) -> tuple[str, str]:
    if text and re.fullmatch(r"([\w.+-]+:)*[0-9]+(,([\w.+-]+:)*[0-9]+)*", text) is None:
        raise UsageError(f"not a number of GPUs: {text}", "Try 2, or a100:2.")
    return text, ""


def _size(text: str) -> tuple[str, str]:
    if text and re.fullmatch(r"[0-9]+[KMGTkmgt]?[Bb]?", text) is None:
        raise UsageError(f"not a size: {text}", "Try 16G.")
    return text, "Without a unit Slurm takes it as MiB." if text.isdigit() and text != "0" else ""


def _time(text: str) -> tuple[str, str]:
    if not text:
        return "", "The partition's usual limit."
    if text[0] in "+-":
        raise UsageError(f"not a time: {text}", "Try 30 (minutes), 1:30:00, 2-12 or 90m.")
    checked = time_limit(text)
    return checked.value, checked.note


@dataclass(frozen=True, slots=True)
class _Kind:
    label: str
    help: str
    check: Callable[[str], tuple[str, str]]


_KINDS: dict[str, _Kind] = {
    "job-name": _Kind("job name", "any text", _line),
    "partition": _Kind("partition", "a partition, or several with commas; empty: the usual one", _word),
    "account": _Kind("account", "an account that you may use; empty: your usual one", _word),
    "qos": _Kind("QOS", "a quality of service; empty: the usual one", _word),
    "nodes": _Kind("nodes", "how many nodes: 2, or 2-4", _nodes),
    "gpus": _Kind("GPUs", "in all: 2, or a100:2", _gpus),
    "gpus-per-node": _Kind("GPUs per node", "2, or a100:2; empty: none", _gpus),
    "gpus-per-task": _Kind("GPUs per task", "2, or a100:2", _gpus),
    "cpus-per-task": _Kind("CPUs per task", "how many CPUs", _number),
    "mem": _Kind("memory per node", "16G; 0: all that a node has", _size),
    "mem-per-cpu": _Kind("memory per CPU", "4G", _size),
    "mem-per-gpu": _Kind("memory per GPU", "32G", _size),
    "time": _Kind("time limit", "30 (minutes), 1:30:00, 2-12 (2 days, 12 hours), 90m", _time),
    "array": _Kind("array", "0-9, 0-9%2 (two at a time); empty: one job", _word),
    "dependency": _Kind("dependency", "afterok:123, afterany:123, singleton; empty: none", _word),
    "constraint": _Kind("constraint", "a feature that the nodes must have", _line),
    "ntasks": _Kind("tasks", "how many tasks", _number),
    "gres": _Kind("GRES per node", "gpu:2, gpu:a100:2", _word),
    "signal": _Kind("signal", "USR1@120: that signal, so many seconds before the time limit", _word),
    "open-mode": _Kind("log file", "append, or truncate: what a requeue does with the log", _word),
    "mail-type": _Kind("mail", "END, FAIL, ALL; empty: none", _word),
    "output": _Kind("output file", "slurm-%j.out; its folder is made if it is not there", _line),
}
_USUAL = ("job-name", "partition", "account", "qos", "gpus-per-node", "cpus-per-task", "mem", "time")
_INSTEAD = {
    "gpus-per-node": frozenset({"gpus", "gpus-per-task", "gres"}),
    "mem": frozenset({"mem-per-cpu", "mem-per-gpu"}),
}
"""A usual field is left out where the template says the same with one of these."""


def fields_of(
    template: Template, partitions: tuple[str, ...] = (), known: Mapping[str, str] | None = None
) -> tuple[FormField, ...]:
    """The form of a template: the folder, the options, the parameters that are shown.

    `known` are values of parameters that this machine offers, in place of the template's own.
    """
    own = known or {}
    parameters = (
        replace(item, default=own.get(item.name, item.default))
        for item in template.parameters
        if item.is_shown
    )
    return (*_options(template, partitions), *map(_parameter, parameters), _folder_field())


def written(template: Template) -> dict[str, str]:
    """The options with a value in the template itself, the last of each name, of the first component."""
    return {
        item.name: item.value
        for item in template.directives
        if item.value is not None and item.component == 0
    }


def _options(template: Template, partitions: tuple[str, ...]) -> Iterator[FormField]:
    there = written(template)
    own = personal_defaults(template.text)
    from_own = dict(zip((option.name for option in own.options), own.variables, strict=True))
    set_by = there | {option.name: option.value for option in own.options if option.value is not None}
    names = [name for name in _USUAL if name in set_by or not _INSTEAD.get(name, frozenset()) & set_by.keys()]
    names += [name for name in set_by if name not in names]
    for name in names:
        kind = _KINDS.get(name) or _Kind(name, f"--{name} of sbatch", _line)
        choices = partitions if name == "partition" else ()
        told = f"{kind.help} (set by {from_own[name]})" if name in from_own else kind.help
        yield FormField(f"option-{name}", kind.label, set_by.get(name, ""), told, kind.check, choices)


def _parameter(parameter: Parameter) -> FormField:
    def check(text: str) -> tuple[str, str]:
        return parameter.checked(text), ""

    choices = ("1", "") if parameter.kind == "bool" else parameter.choices
    return FormField(
        f"parameter-{parameter.name}",
        parameter.name,
        parameter.default,
        _parameter_help(parameter),
        check,
        choices,
    )


def _parameter_help(parameter: Parameter) -> str:
    """`Passes over the training data. (a whole number from 1 to 100; usually 12)`."""
    kinds = {
        "int": "a whole number",
        "float": "a number",
        "path": "a path",
        "bool": "1 or empty",
        "words": "words",
    }
    kind = kinds.get(parameter.kind, "")
    for limit, word in ((parameter.minimum, "from"), (parameter.above, "above"), (parameter.maximum, "to")):
        kind += f" {word} {limit_text(limit)}" if limit is not None else ""
    parts = [kind.strip(), f"one of {', '.join(parameter.choices)}" if parameter.choices else ""]
    parts += [f"usually {parameter.default}"] if parameter.default else []
    words = "; ".join(part for part in parts if part)
    return f"{parameter.help} ({words})".strip() if words else parameter.help


def _folder_field() -> FormField:
    return FormField(
        FOLDER, "working folder", str(Path.cwd()), "where the job starts, and its log stands", _folder
    )


def _folder(text: str) -> tuple[str, str]:
    path = Path(text).expanduser()
    if not is_folder(path):
        raise UsageError(f"there is no folder {text}")
    return str(path.absolute()), ""


# --- from the fields to the script ------------------------------------------------------------------------


@dataclass
class FormState:
    """What the user has filled in, kept from one opening of the form to the next."""

    template: str = ""
    values: dict[str, dict[str, str]] = field(default_factory=dict)
    """By the template's path, then by the field's id; only what differs from the default."""

    def of(self, template: Template) -> dict[str, str]:
        return self.values.setdefault(str(template.path), {})


def problems(fields: tuple[FormField, ...], typed: Mapping[str, str]) -> dict[str, str]:
    """What is wrong, by the field's id."""
    found: dict[str, str] = {}
    for item in fields:
        try:
            item.check(typed.get(item.id, item.default))
        except UsageError as error:
            found[item.id] = str(error).replace("\n", " ")
    return found


def make_plan(template: Template, fields: tuple[FormField, ...], typed: Mapping[str, str]) -> SubmitPlan:
    """The submission as the form has it.

    Raises:
        UsageError: a value does not fit.
        FormatError: the template is broken.
    """
    own = personal_defaults(template.text)
    # Those with a value are fields of the form.
    options: dict[str, str | None] = {option.name: "" for option in own.options if option.value is None}
    values: dict[str, str] = {}
    work_dir = str(Path.cwd())
    there = written(template)
    for item in fields:
        kind, _, name = item.id.partition("-")
        value = item.check(typed.get(item.id, item.default))[0]
        if item.id == FOLDER:
            work_dir = value
        elif kind == "parameter":
            values[name] = value
        elif value != there.get(name, ""):
            options[name] = value or None
    return plan_template(template, values, options, work_dir, notes=own.notes)
