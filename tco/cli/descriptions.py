"""Parameters of a command as its docstring describes them, under the headings of its help.

A section of the docstring is a heading with entries, such as `racks (--racks N): How many racks.`
The brackets have the names of an option, where they do not follow from the parameter's, and what
stands for its value. Parameters under `Arguments` have no name on the command line.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from copy import copy
from typing import Annotated, Any, NamedTuple, get_origin

import typer

ARGUMENTS = "Arguments"
SECTION = re.compile(r"^(?P<heading>\S.*):\n(?P<entries>(?: {4}.*\n?)+)", re.MULTILINE)
ENTRY = re.compile(r"^ {4}(\w+)(?: \((.*?)\))?: (.*(?:\n {8}.*)*)", re.MULTILINE)


class Description(NamedTuple):
    """Words of the help for a parameter, with the names of its option."""

    heading: str
    option_names: list[str]
    metavar: str | None
    help: str


def described_parameters(
    function: Callable[..., None],
) -> tuple[str, list[inspect.Parameter]]:
    """Return a function's docstring without its sections, and its described parameters."""
    words = inspect.cleandoc(function.__doc__ or "")
    descriptions = {}
    for section in SECTION.finditer(words):
        for parameter_name, spelling, help_text in ENTRY.findall(section["entries"]):
            spellings = spelling.split()
            option_names = [spelled for spelled in spellings if spelled.startswith("-")]
            metavar = None if option_names == spellings else spellings[-1]
            help_line = " ".join(help_text.split())
            descriptions[parameter_name] = Description(
                section["heading"], option_names, metavar, help_line
            )
    parameters = [
        _described_parameter(parameter, descriptions[parameter.name])
        if parameter.name in descriptions
        else parameter
        for parameter in inspect.signature(function, eval_str=True).parameters.values()
    ]
    return SECTION.sub("", words).rstrip(), parameters


def _described_parameter(
    parameter: inspect.Parameter, description: Description
) -> inspect.Parameter:
    is_argument = description.heading == ARGUMENTS
    kind, declaration = parameter.annotation, typer.Argument() if is_argument else typer.Option()
    if get_origin(kind) is Annotated:
        kind, declaration = kind.__origin__, copy(kind.__metadata__[0])
    declaration.help, declaration.metavar = description.help, description.metavar
    if not is_argument:
        flag = [f"--{parameter.name.replace('_', '-')}"] if kind is bool else []
        declaration.param_decls = description.option_names or flag
        declaration.rich_help_panel = description.heading
    annotation: Any = Annotated[kind, declaration]
    return parameter.replace(annotation=annotation)
