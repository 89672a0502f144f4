"""`tco parts | systems | models | scenarios | sources | rebates`: list, show, check."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tco.cli import app
from tco.cli.help import Listing
from tco.cli.options import Request, command

if TYPE_CHECKING:
    from tco.catalog import Catalogue

Id = Annotated[str, typer.Argument(help="An id that `list` shows.")]
Lister = Callable[["Catalogue"], list[dict[str, Any]]]
Checker = Callable[["Catalogue"], tuple[Any, ...]]  # findings, the figures of publications, and tables below the findings


def add_shelf(name: str, one: str, items: Lister, check: Checker | None = None) -> typer.Typer:
    """Register a group with `list` and `check`; `show` differs by kind and is added by the caller, as is a `check` that takes options."""
    group = typer.Typer(cls=Listing, no_args_is_help=True, help=f"List, show and check {name}.")
    app.add_typer(group, name=name)

    def list_items(given: Request) -> None:
        from tco.outputs.shelves import list_answer

        catalogue = load(given)
        given.emit(list_answer(name, catalogue, items(catalogue)))

    list_items.__doc__ = f"List all {name}."
    command(group, name="list")(list_items)

    if check is not None:
        checked = check

        def check_items(given: Request) -> None:
            report_findings(given, name, checked)

        check_items.__doc__ = f"Check every {one} against its schema, its units, its bounds and its sources."
        command(group, name="check")(check_items)
    return group


def report_findings(given: Request, name: str, check: Checker) -> None:
    """Print what a check found, and exit with 1 where that is anything."""
    from tco.outputs.shelves import check_answer

    catalogue = load(given, checked=False)
    findings, *more = check(catalogue)
    given.emit(check_answer(name, catalogue, findings, *more))
    if findings:
        raise typer.Exit(1)


def load(given: Request, checked: bool = True) -> Catalogue:
    """Return the catalogue with the user's folder over it."""
    from tco.cli.load import catalogue_for

    return catalogue_for(None, given.data, checked)


# ---------------------------------------------------------------- parts
def listed_parts(catalogue: Catalogue) -> list[dict[str, Any]]:
    """Return every part with what is known of it: what it is called and its latest price."""
    from tco.outputs.shelves import part_items

    return part_items(catalogue)


def parts_check(catalogue: Catalogue) -> tuple[list[str]]:
    """Check parts, share prices and every document of values."""
    from tco.catalog import checks

    findings = checks.check_parts(catalogue)
    kinds = (
        ("site", "sites"),
        ("terms", "terms"),
        ("workload", "workloads"),
        ("cluster", "clusters"),
        ("rebates", "rebates"),
        ("performance", "performance"),
        ("terms", "perspectives"),
    )
    for group, folder_name in kinds:
        findings += checks.check_documents(catalogue, folder_name, group)
    return (findings,)


parts = add_shelf("parts", "part", listed_parts, parts_check)


@command(parts, name="show")
def show_part(given: Request, part: Id) -> None:
    """Show every row of a part, the alternatives among them."""
    from tco.foundation.errors import unknown
    from tco.outputs.shelves import part_answer

    catalogue = load(given)
    if part not in catalogue.parts:
        raise unknown("part", part, catalogue.parts)
    given.emit(part_answer(catalogue, part))


# ---------------------------------------------------------------- systems
def system_items(catalogue: Catalogue) -> list[dict[str, Any]]:
    """Return every system with its chip, cooling and variants."""
    documents = {name: catalogue.document("systems", name, "system")[1] for name in catalogue.ids("systems")}
    return [
        {"id": name, **{key: said.get(key, "") for key in ("name", "chip", "cooling")}, "variants": options_of(said)}
        for name, said in documents.items()
    ]


def options_of(document: dict[str, Any]) -> dict[str, list[str]]:
    """Return the options of each variant; `check` names what is no table."""
    variants = document.get("variants", {})
    return {key: [one for one in branches if one != "default"] for key, branches in (variants.items() if isinstance(variants, dict) else ())}


def systems_check(catalogue: Catalogue) -> tuple[list[str]]:
    """Check every system and variant, its prices included."""
    from tco.catalog import checks
    from tco.chain.scenario import bill_of_system
    from tco.foundation.errors import TcoError
    from tco.hardware.wires import unstated

    findings = checks.check_systems(catalogue)
    for name in [] if findings else catalogue.ids("systems"):
        for key, options in system_variants(catalogue, name):
            try:
                made = bill_of_system(catalogue, name, {}, {key: options} if key else {})
                findings += [finding for finding in unstated(made.system, catalogue) if finding not in findings]
            except TcoError as error:
                findings.append(f"{name} {key}={options}: {error}")
    return (findings,)


def system_variants(catalogue: Catalogue, name: str) -> list[tuple[str, str]]:
    """Return the default of a system (an empty key) and each variant by itself."""
    branches = catalogue.document("systems", name, "system")[1].get("variants", {})
    return [("", ""), *((key, option) for key, options in branches.items() for option in options if option != "default")]


systems = add_shelf("systems", "system", system_items, systems_check)


@command(systems, "variant", name="show")
def show_system(given: Request, system: Id) -> None:
    """Show the tree of a system, and what its chip and its scale-up domain offer."""
    from tco.chain.inputs import system_inputs
    from tco.chain.result import figures_of
    from tco.outputs.shelves import system_answer

    catalogue = load(given)
    inputs = system_inputs(catalogue, system, {}, given.variant)
    given.emit(system_answer(catalogue, inputs.system, figures_of(inputs, inputs.values()), inputs.notes))


# ---------------------------------------------------------------- models
def model_items(catalogue: Catalogue) -> list[dict[str, Any]]:
    """Return every model with its size; one that is not read keeps its line, with the reason."""
    from tco.foundation.errors import TcoError
    from tco.models.architecture import load_model

    keys, found = ("id", "parameters", "active_parameters", "layers", "context", "source"), []
    for name in catalogue.models:
        try:
            model = load_model(catalogue, name)
        except TcoError as error:
            found.append({"id": name, "not_read": str(error)})
            continue
        found.append({key: getattr(model, key) for key in keys})
    return found


def models_check(catalogue: Catalogue) -> tuple[list[str]]:
    """Read every model, and look up where it says its figures come from."""
    from tco.foundation.errors import TcoError, unknown
    from tco.models.architecture import load_model

    findings = []
    for name in catalogue.models:
        try:
            source = load_model(catalogue, name).source
        except TcoError as error:
            findings.append(str(error))
            continue
        if source and source not in catalogue.sources:
            findings.append(str(unknown("source", source, catalogue.sources, str(catalogue.models[name]))))
    return (findings,)


models = add_shelf("models", "model", model_items, models_check)


@command(models, name="show")
def show_model(given: Request, model: Id) -> None:
    """Show the shape of a model."""
    from tco.models.architecture import load_model
    from tco.outputs.shelves import model_answer

    catalogue = load(given)
    given.emit(model_answer(catalogue, load_model(catalogue, model)))


# ---------------------------------------------------------------- scenarios
def scenario_items(catalogue: Catalogue) -> list[dict[str, Any]]:
    """Return every shipped scenario."""
    from tco.chain.inputs import load_scenario

    found = [load_scenario(catalogue, name) for name in catalogue.scenarios]
    return [{"id": s.name, "title": s.title, "system": s.system, **s.documents} for s in found]


def scenarios_check(catalogue: Catalogue, kind: str | None) -> tuple[Any, ...]:
    """Compare the figures of publications, all or those of one kind, with what comes out; with all of them evaluate every scenario too."""
    from tco.catalog import checks
    from tco.chain.scenario import evaluate
    from tco.foundation.errors import TcoError
    from tco.outputs.claims import published_tables
    from tco.studies.published import publication

    findings, publications = [], []
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
                publications.append(publication(catalogue, name, kind))
                wrong += publications[-1].findings()
            findings += wrong
        except TcoError as error:
            findings.append(f"published/{name}: {error}")
    figures = [one for found in publications for one in found.figures]
    return findings, figures, published_tables(figures)


scenarios = add_shelf("scenarios", "scenario", scenario_items)


@command(scenarios, name="check")
def check_scenarios(
    given: Request,
    kind: Annotated[
        str | None,
        typer.Option("--kind", metavar="KIND", help="Only published figures of this kind: independent, own-source, arithmetic, power or ratio."),
    ] = None,
) -> None:
    """Check every scenario against its schema, its units, its bounds and its sources, and every published figure against what comes out."""
    from tco.foundation.errors import UsageError
    from tco.studies.published import KINDS

    if kind is not None and kind not in KINDS:
        raise UsageError(f"--kind {kind}: expected one of {', '.join(KINDS)}")
    report_findings(given, "scenarios", lambda catalogue: scenarios_check(catalogue, kind))


@command(scenarios, name="show")
def show_scenario(given: Request, scenario: Id) -> None:
    """Show every input a scenario depends on, with its range and source."""
    from tco.chain.scenario import evaluate
    from tco.cli.load import catalogue_for
    from tco.outputs.shelves import scenario_answer

    catalogue = catalogue_for(scenario, given.data)
    given.emit(scenario_answer(catalogue, evaluate(scenario, catalogue=catalogue)))


# ---------------------------------------------------------------- sources
def source_items(catalogue: Catalogue) -> list[dict[str, Any]]:
    """Return every source."""
    return [source._asdict() for source in catalogue.sources.values()]


def sources_check(catalogue: Catalogue) -> tuple[list[str]]:
    """Read the list of sources, which refuses one without a title."""
    _ = catalogue.sources
    return ([],)


sources = add_shelf("sources", "source", source_items, sources_check)


@command(sources, name="show")
def show_source(given: Request, source: Id) -> None:
    """Show a source and every value based on it."""
    from tco.foundation.errors import unknown
    from tco.outputs.shelves import source_answer

    catalogue = load(given)
    if source not in catalogue.sources:
        raise unknown("source", source, catalogue.sources)
    given.emit(source_answer(catalogue, source))


# ---------------------------------------------------------------- rebates
def rebate_items(catalogue: Catalogue) -> list[dict[str, Any]]:
    """Return every agreement with a supplier."""
    from tco.economics.perspective import load_agreement

    found = [load_agreement(catalogue, name) for name in catalogue.ids("rebates")]
    return [{"id": a.id, "supplier": a.supplier, "holder": a.holder, "kind": a.kind, "from": a.begins, "until": a.ends} for a in found]


def rebates_check(catalogue: Catalogue) -> tuple[list[str]]:
    """Check every agreement, and that the parts it covers exist."""
    from tco.catalog import checks
    from tco.economics.perspective import load_agreement

    findings = checks.check_documents(catalogue, "rebates", "rebates")
    for name in catalogue.ids("rebates"):
        lost = [part for part in load_agreement(catalogue, name).parts if part not in catalogue.parts]
        findings += [f"rebates/{name}.toml: covers the unknown part {part!r}" for part in lost]
    return (findings,)


rebates = add_shelf("rebates", "agreement", rebate_items, rebates_check)


@command(rebates, "set", name="show")
def show_rebate(given: Request, agreement: Id) -> None:
    """Show an agreement: its terms, what has vested, and what its right is worth at the date (--set terms.date=2026-02)."""
    from tco.chain.inputs import plain_inputs
    from tco.economics.perspective import load_agreement, worth_of
    from tco.outputs.shelves import rebate_answer

    catalogue = load(given)
    found = load_agreement(catalogue, agreement)
    inputs = plain_inputs(catalogue, given.settings)
    given.emit(rebate_answer(catalogue, found, worth_of(found, inputs.values()), inputs.date))
