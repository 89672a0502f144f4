"""Catalogue commands: list, show and check parts, systems, models and scenarios.

The commands also cover sources, agreements and the documents that make up scenarios.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tco.cli import app
from tco.cli.help import Listing
from tco.cli.options import CommandRequest, command
from tco.core.errors import TcoError, UsageError, unknown

if TYPE_CHECKING:
    from tco.catalog import Catalogue

Id = Annotated[str, typer.Argument(help="An id that `list` shows.")]
Checked = tuple[list[str], list[Any]]  # findings, and figures of publications
ONE = {  # shelf -> what one of it is called
    **{
        "parts": "part",
        "systems": "system",
        "models": "model",
        "scenarios": "scenario",
        "sources": "source",
        "rebates": "agreement",
    },
    **{
        "sites": "site",
        "terms": "set of terms",
        "workloads": "workload",
        "clusters": "cluster",
        "perspectives": "perspective",
        "traffic": "traffic",
    },
}


# ---------------------------------------------------------------- check
def parts_check(catalogue: Catalogue) -> list[str]:
    """Check parts, share prices and every document of values."""
    from tco.catalog import checks

    findings = checks.check_parts(catalogue)
    for folder in (
        "sites",
        "terms",
        "workloads",
        "clusters",
        "rebates",
        "performance",
        "perspectives",
    ):
        findings += checks.check_documents(catalogue, folder, GROUPS.get(folder, folder))
    return findings


def systems_check(catalogue: Catalogue) -> list[str]:
    """Check every system and variant, its prices included."""
    from tco.catalog import checks
    from tco.scenario.evaluate import bill_of_system
    from tco.system.wiring import unstated

    findings = checks.check_systems(catalogue)
    for name in [] if findings else catalogue.ids("systems"):
        branches = catalogue.document("systems", name, "system")[1].get("variants", {})
        for key, option in [
            ("", ""),
            *(
                (key, option)
                for key, options in branches.items()
                for option in options
                if option != "default"
            ),
        ]:
            try:
                made = bill_of_system(catalogue, name, {}, {key: option} if key else {})
                findings += [
                    finding
                    for finding in unstated(made.system, catalogue)
                    if finding not in findings
                ]
            except TcoError as error:
                findings.append(f"{name} {key}={option}: {error}")
    return findings


def models_check(catalogue: Catalogue) -> list[str]:
    """Read every model, and look up where it says its figures come from."""
    from tco.models.architecture import load_model

    def read(name: str) -> None:
        source = load_model(catalogue, name).source
        if source and source not in catalogue.sources:
            raise unknown("source", source, catalogue.sources, str(catalogue.models[name]))

    return [str(error) for name in catalogue.models if (error := read_error_or_none(read, name))]


def rebates_check(catalogue: Catalogue) -> list[str]:
    """Check every agreement, and that the parts it covers exist."""
    from tco.catalog import checks
    from tco.cost.ownership import load_agreement

    findings = checks.check_documents(catalogue, "rebates", "rebates")
    for name in catalogue.ids("rebates"):
        lost = [
            part for part in load_agreement(catalogue, name).parts if part not in catalogue.parts
        ]
        findings += [f"rebates/{name}.toml: covers the unknown part {part!r}" for part in lost]
    return findings


def sources_check(catalogue: Catalogue) -> list[str]:
    """Read the list of sources, which refuses one without a title."""
    _ = catalogue.sources
    return []


def scenarios_check(catalogue: Catalogue, kind: str | None) -> Checked:
    """Compare the figures of publications with what comes out: those of one kind, or all that test
    something and every scenario too.
    """
    from tco.catalog import checks
    from tco.evidence.published import RELATED, publication
    from tco.scenario.evaluate import evaluate

    findings, figures = [], []
    for name, path in catalogue.scenarios.items() if kind is None else ():
        try:
            findings += checks.check_scenario(path, catalogue.toml(path), catalogue.sources)
            evaluate(name, catalogue=catalogue)
        except TcoError as error:
            findings.append(f"{name}: {error}")
    for name, path in catalogue.published.items():
        try:
            wrong = checks.check_scenario(path, catalogue.toml(path), catalogue.sources)
            if not wrong:
                found = publication(catalogue, name, kind)
                figures += [one for one in found.figures if kind is not None or one.kind != RELATED]
                wrong = list(found.findings())
            findings += wrong
        except TcoError as error:
            findings.append(f"published/{name}: {error}")
    return findings, figures


def documents_check(folder: str, catalogue: Catalogue) -> list[str]:
    """Check every document of a kind, and that what its texts name is there."""
    from tco.catalog import checks

    findings = checks.check_documents(catalogue, folder, GROUPS[folder])
    judged = partial(judge, catalogue, folder)
    return findings or [
        f"{folder}/{name}.toml: {error}"
        for name in catalogue.ids(folder)
        if (error := read_error_or_none(judged, name))
    ]


def read_error_or_none(read: Callable[[str], Any], name: str) -> TcoError | None:
    """Return the `TcoError` raised by `read(name)`, or None without an error."""
    try:
        read(name)
    except TcoError as error:
        return error
    return None


# Documents of values are inputs of a group; each is judged by reading what its texts name, in the
# headline's inputs with it in place of its own.
GROUPS = {
    "sites": "site",
    "terms": "terms",
    "workloads": "workload",
    "clusters": "cluster",
    "perspectives": "terms",
    "traffic": "traffic",
}
TEXTS = {"sites": ("site.tenure", "site.cooling"), "terms": ("terms.yield", "terms.commitment")}


def judge(catalogue: Catalogue, folder: str, name: str) -> None:
    """Read what the texts of a document name: how a site is held, who pays, a model, a switch and
    its ports, whose cost it is.
    """
    from tco.cost.ownership import load_perspective
    from tco.models.architecture import load_model
    from tco.performance.service.traffic import load_traffic
    from tco.scenario.choices import CHEAPEST
    from tco.scenario.network_choice import port_rate
    from tco.scenario.resolve import plain_inputs
    from tco.system.scale_out_network import optic_part, switch_part

    if folder == "perspectives":
        load_perspective(catalogue, name)
        return
    if folder == "traffic":
        load_traffic(catalogue, name)
        return
    inputs = plain_inputs(catalogue, {GROUPS[folder]: name})
    for path in TEXTS.get(folder, ()):
        inputs.text(path)
    if folder == "workloads" and inputs.kind != "stated":
        load_model(catalogue, inputs.text("workload.model"))
    if folder == "clusters":
        for switch in inputs.text("cluster.switch").removeprefix(CHEAPEST).split(","):
            switch_part(switch.strip(), list(catalogue.parts))
        for optic in inputs.text("cluster.optic").removeprefix(CHEAPEST).split(","):
            optic_part(optic.strip(), list(catalogue.parts))
        port_rate(inputs.text("cluster.port"), "cluster.port")


# ---------------------------------------------------------------- show
ABOUT = {  # shelf -> what its `show` shows
    **{
        "parts": "every row of a part, the alternatives among them",
        "models": "the shape of a model",
    },
    **{"sources": "a source and every value based on it"},
    **{
        folder: f"what a {ONE[folder]} states, as written, with the ranges and sources"
        for folder in GROUPS
    },
}


def show_of(shelf: str) -> Callable[[CommandRequest, str], None]:
    """Return the `show` function of `shelf`, which takes only an id."""

    def show(given: CommandRequest, name: Id) -> None:
        from tco.report.catalogue import entry_answer

        given.emit(entry_answer(shelf, given.catalogue, name))

    show.__doc__ = f"Show {ABOUT[shelf]}."
    return show


def show_system(given: CommandRequest, system: Id) -> None:
    """Show the tree of a system, and what its chip and its scale-up domain offer."""
    from tco.report.catalogue import system_answer
    from tco.scenario.resolve import system_inputs
    from tco.scenario.result import chip_figures

    inputs = system_inputs(given.catalogue, system, {}, given.variant)
    given.emit(
        system_answer(
            inputs.catalogue, inputs.system, chip_figures(inputs, inputs.values()), inputs.notes
        )
    )


def show_scenario(given: CommandRequest, scenario: Id) -> None:
    """Show every input a scenario depends on, with its range and source."""
    from tco.report.inputs import scenario_answer
    from tco.scenario.evaluate import evaluate

    catalogue = given.catalogue_of(scenario)
    given.emit(scenario_answer(catalogue, evaluate(scenario, catalogue=catalogue)))


def show_rebate(given: CommandRequest, agreement: Id) -> None:
    """Show an agreement: its terms, what has vested, and what its right is worth at the date (--set
    terms.date=2026-02).
    """
    from tco.cost.ownership import agreement_inputs, given_back, load_agreement, worth_of
    from tco.report.catalogue import rebate_answer
    from tco.scenario.resolve import plain_inputs

    catalogue = given.catalogue
    found, inputs = load_agreement(catalogue, agreement), plain_inputs(catalogue, given.settings)
    values = inputs.values()
    worth, terms, back = (
        worth_of(found, values),
        agreement_inputs(found, values),
        given_back(found, values),
    )
    given.emit(rebate_answer(catalogue, found, worth, inputs.date, terms, back))


# ---------------------------------------------------------------- the commands
Kind = Annotated[
    str | None,
    typer.Option(
        "--kind",
        metavar="KIND",
        help="Only published figures of this kind: independent, own-source, arithmetic, power or "
        "ratio; or same-publisher, which test nothing.",
    ),
]
CHECKS: dict[str, Callable[[Catalogue], list[str]]] = {  # shelf -> what checks it
    **{
        "parts": parts_check,
        "systems": systems_check,
        "models": models_check,
        "rebates": rebates_check,
        "sources": sources_check,
    },
    **{folder: partial(documents_check, folder) for folder in GROUPS},
}
SHOWN: dict[str, Callable[..., None]] = {  # shelf -> what shows one of it
    **{"systems": show_system, "scenarios": show_scenario, "rebates": show_rebate},
    **{shelf: show_of(shelf) for shelf in ABOUT},
}
TAKES = {"systems": ("variant",), "rebates": ("set",)}  # shelf -> the shared options of its `show`


def add_list(name: str, about: str) -> typer.Typer:
    """Register a group of commands, and in it `list`."""
    group = typer.Typer(cls=Listing, no_args_is_help=True, help=about)
    app.add_typer(group, name=name)

    def list_items(given: CommandRequest) -> None:
        from tco.report.catalogue import shelf_list_answer

        given.emit(shelf_list_answer(name, given.catalogue))

    list_items.__doc__ = f"List all {name}."
    command(group, name="list")(list_items)
    return group


def add_shelf(name: str) -> typer.Typer:
    """Register the commands of a shelf."""
    group = add_list(name, f"List, show and check {name}.")

    def check(given: CommandRequest) -> None:
        emit_check_findings(given, name, lambda catalogue: (CHECKS[name](catalogue), []))

    def check_scenarios(given: CommandRequest, kind: Kind = None) -> None:
        from tco.evidence.published import KINDS

        if kind is not None and kind not in KINDS:
            raise UsageError(f"--kind {kind}: expected one of {', '.join(KINDS)}")
        emit_check_findings(given, name, lambda catalogue: scenarios_check(catalogue, kind))

    checks = check_scenarios if name == "scenarios" else check
    figures = ", and every published figure against what comes out" if name == "scenarios" else ""
    checks.__doc__ = (
        f"Check every {ONE[name]} against its schema, its units, its bounds and its "
        f"sources{figures}."
    )
    command(group, name="check")(checks)
    command(group, *TAKES.get(name, ()), name="show")(SHOWN[name])
    return group


def emit_check_findings(
    given: CommandRequest, name: str, check: Callable[[Catalogue], Checked]
) -> None:
    """Print what a check found, and exit with 1 where that is anything."""
    from tco.report.catalogue import check_answer

    catalogue = given.catalogue_of(None, checked=False)
    findings, figures = check(catalogue)
    given.emit(check_answer(name, catalogue, findings, figures))
    if findings:
        raise typer.Exit(1)


SHELVES = {name: add_shelf(name) for name in ONE}
add_list("metrics", "The figures a result carries, which `explain`, `diff` and others name.")
