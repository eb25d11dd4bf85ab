"""Filling in a template: the text that comes out is all that runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfjobtui import directives as sbatch
from tfjobtui.directives import nearest
from tfjobtui.errors import FormatError, UsageError
from tfjobtui.templates import block
from tfjobtui.templates.catalogue import Template
from tfjobtui.templates.parameters import SET_TRAINER, Parameter


def render(
    template: Template,
    values: Mapping[str, str],
    directives: Mapping[str, str | None],
    trainer_path: str = "",
) -> str:
    """The script with every parameter and every directive in it; comments and layout stay.

    Parameters that are not among `values` get their defaults. `directives` are changes by the long names
    of sbatch's options, `None` to take one out. `trainer_path` is the folder of the trainer's package.

    Raises:
        UsageError: a value is not allowed, or there is no such parameter or option.
        FormatError: the template is broken.
    """
    if template.error:
        raise FormatError(f"the template {template.name} is broken: {template.error}")
    filled = block.fill(template.text, checked(template.parameters, values, trainer_path))
    return sbatch.change(filled, directives)


def checked(
    parameters: Sequence[Parameter], values: Mapping[str, str], trainer_path: str = ""
) -> dict[str, str]:
    """The value of each parameter: given, filled in by the program, or the default.

    Raises:
        UsageError: a value is not allowed, or there is no such parameter.
    """
    names = [parameter.name for parameter in parameters]
    for name in values:
        if name not in names:
            raise UsageError(f"the template has no parameter {name}", nearest(name, names))
    filled_in = {parameter.name: trainer_path for parameter in parameters if parameter.set_by == SET_TRAINER}
    return {
        parameter.name: parameter.checked({**filled_in, **values}.get(parameter.name) or parameter.default)
        for parameter in parameters
    }
