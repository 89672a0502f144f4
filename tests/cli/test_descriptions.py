"""A docstring's sections describe the parameters of a command."""

from __future__ import annotations

from typing import Annotated

import typer

from tco.cli.descriptions import described_parameters


def buy(
    systems: list[str],
    racks: Annotated[int, typer.Option(min=1)] = 1,
    start: str | None = None,
    dry_run: bool = False,
    note: str = "",
) -> None:
    """Buy racks.

    They arrive later.

    Arguments:
        systems (SYSTEM...): What is bought,
            one or several.

    What is asked:
        racks (N): How many: of each.
        start (--from -f MONTH): When they arrive.
        dry_run: Buy nothing.

    """


def declaration(name):
    _, parameters = described_parameters(buy)
    (parameter,) = (parameter for parameter in parameters if parameter.name == name)
    return parameter.annotation.__metadata__[0]


def test_docstring_without_sections_keeps_its_paragraphs():
    assert described_parameters(buy)[0] == "Buy racks.\n\nThey arrive later."


def test_argument_has_its_metavar_and_unwrapped_words():
    argument = declaration("systems")
    assert isinstance(argument, typer.models.ArgumentInfo)
    assert (argument.metavar, argument.help) == ("SYSTEM...", "What is bought, one or several.")


def test_option_keeps_its_limits_and_takes_heading_and_words():
    option = declaration("racks")
    assert (option.min, option.metavar, option.help) == (1, "N", "How many: of each.")
    assert (option.rich_help_panel, option.param_decls) == ("What is asked", [])


def test_option_takes_the_names_in_brackets():
    assert declaration("start").param_decls == ["--from", "-f"]
    assert declaration("start").metavar == "MONTH"


def test_switch_has_no_opposite():
    assert declaration("dry_run").param_decls == ["--dry-run"]


def test_parameter_without_description_stays_as_it_is():
    _, parameters = described_parameters(buy)
    assert parameters[-1].annotation is str
