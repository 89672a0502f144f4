"""Catalogue commands: list, show and check entries of every kind, and list metrics."""

from __future__ import annotations

from typing import Annotated

import typer

from tco.cli import app
from tco.cli.help import Listing
from tco.cli.options import CommandRequest, command
from tco.core.entry_kinds import ENTRY_KINDS
from tco.core.errors import UsageError
from tco.core.types import JsonObject

FigureKind = Annotated[
    str | None,
    typer.Option(
        "--kind",
        metavar="KIND",
        help="Only published figures of this kind: independent, own-source, arithmetic, power or "
        "ratio; or same-publisher, which test nothing.",
    ),
]


def _add_list(group_name: str, summary: str) -> typer.Typer:
    """Register a group of commands with `list`."""
    group = typer.Typer(cls=Listing, no_args_is_help=True, help=summary)
    app.add_typer(group, name=group_name)

    def list_entries(request: CommandRequest) -> None:
        from tco.report.catalogue_lists import list_answer

        request.emit(list_answer(group_name, request.catalogue))

    list_entries.__doc__ = f"List all {group_name}."
    command(group, name="list")(list_entries)
    return group


def _add_entry_kind(kind_name: str) -> typer.Typer:
    """Register `list`, `check` and `show` of a kind of entry."""
    group = _add_list(kind_name, f"List, show and check {kind_name}.")
    kind = ENTRY_KINDS[kind_name]
    argument = typer.Argument(metavar=kind.argument, help="An id that `list` shows.")

    def check(request: CommandRequest) -> None:
        _check_entries(request, kind_name)

    def check_scenarios(request: CommandRequest, figure_kind: FigureKind = None) -> None:
        from tco.evidence.published import KINDS

        if figure_kind is not None and figure_kind not in KINDS:
            raise UsageError(f"--kind {figure_kind}: expected one of {', '.join(KINDS)}")
        _check_entries(request, kind_name, figure_kind)

    def show(request: CommandRequest, entry: str = argument) -> None:
        from tco.report.catalogue_pages import entry_answer

        price_date = request.settings.get("terms.date")
        if kind.options == ("date",) and price_date:
            request.require_form("--date", "table", "md")
        choices: JsonObject = {
            "variant": request.variant,
            "set": request.settings,
            "date": price_date,
        }
        catalogue = request.catalogue_of(entry if kind_name == "scenarios" else None)
        chosen = [choices[option] for option in kind.options]
        request.emit(entry_answer(kind_name, catalogue, entry, *chosen))

    has_figures = kind_name == "scenarios"
    checker = check_scenarios if has_figures else check
    figures = ", and every published figure against what comes out" if has_figures else ""
    checker.__doc__ = (
        f"Check every {kind.noun} against its schema, its units, its bounds and its "
        f"sources{figures}."
    )
    show.__doc__ = f"Show {kind.page}."
    command(group, name="check")(checker)
    command(group, *kind.options, name="show")(show)
    return group


def _check_entries(request: CommandRequest, kind_name: str, figure_kind: str | None = None) -> None:
    """Print the findings of a check, and exit with 1 where there are any."""
    from tco.report.catalogue_checks import check_answer, check_result

    catalogue = request.catalogue_of(None, checked=False)
    entry_check = check_result(kind_name, catalogue, figure_kind)
    request.emit(check_answer(kind_name, catalogue, entry_check), entry_check.findings)


COMMAND_GROUPS = {kind_name: _add_entry_kind(kind_name) for kind_name in ENTRY_KINDS}
_add_list("metrics", "List the metrics of a result, which other commands name.")
