"""`tco parts | systems | scenarios new`, `tco models add`: files of one's own to edit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tco.cli.options import Given, command
from tco.cli.shelves import models, parts, scenarios, systems

New = Annotated[str, typer.Argument(metavar="ID", help="Its name: letters, digits, dots and dashes.")]
Like = Annotated[str, typer.Option("--like", metavar="ID", help="What it is copied from, value by value.")]
USUAL = ("data",)


def own_folder(given: Given) -> Path:
    """Return the folder that what is new is written to."""
    return given.data or Path("data")


def without_new(given: Given) -> Path | None:
    """Return the folder the user named, if it is there already."""
    return given.data if given.data is not None and given.data.is_dir() else None


@command(parts, name="new", usual=USUAL)
def new_part(given: Given, part: New, like: Like) -> None:
    """Write the rows of a new part to edit, in ./data or --data: those of another, marked as your own and as assumed."""
    from tco.catalog.drafts import part_draft, write_draft
    from tco.chain.inputs import plain_inputs
    from tco.cli.load import catalogue_for
    from tco.foundation.streams import tell

    catalogue = catalogue_for(None, without_new(given))
    date = plain_inputs(catalogue, {}).date
    files, left = part_draft(catalogue, own_folder(given), part, like, date)
    write_draft(own_folder(given), files)
    rows = files[f"parts/{part}.csv"].count("\n") - 1
    said(f"{own_folder(given)}/parts/{part}.csv: {rows} rows as {like} has them, to edit. Try: tco parts show {part}{option(given)}")
    if left:
        tell(f"note: as of {date}; left out, so that what you write holds on: {', '.join(left)}")


@command(systems, name="new", usual=USUAL)
def new_system(given: Given, system: New, like: Like) -> None:
    """Write the tree of a new system to edit, in ./data or --data: that of another."""
    from tco.catalog.drafts import own_source, system_draft, write_draft
    from tco.cli.load import catalogue_for

    catalogue = catalogue_for(None, without_new(given))
    write_draft(own_folder(given), system_draft(catalogue, system, like) | own_source(own_folder(given)))
    said(f"{own_folder(given)}/systems/{system}.toml: as {like}, to edit. Try: tco systems check{option(given)} && tco price {system}{option(given)}")


@command(scenarios, name="new", usual=USUAL)
def new_scenario(given: Given, scenario: New, like: Like) -> None:
    """Write a new scenario to edit, in ./scenarios: what another states, or the headline's terms for a system."""
    from tco.catalog.drafts import refuse_taken, scenario_draft, write_draft
    from tco.chain.inputs import load_scenario
    from tco.cli.load import catalogue_for

    catalogue = catalogue_for(None, given.data)
    refuse_taken(scenario, catalogue.scenarios, "scenario")
    found = load_scenario(catalogue, like)
    text = scenario_draft(scenario, found.title, found.system, found.documents, found.variant, found.settings)
    write_draft(Path("scenarios"), {f"{scenario}.toml": text})
    said(f"scenarios/{scenario}.toml: as {like}, to edit. Try: tco price scenarios/{scenario}.toml{option(given)}")


@command(models, name="add", usual=USUAL)
def add_model(
    given: Given,
    config: Annotated[Path, typer.Argument(metavar="CONFIG.json", help="A model's config.json, as Hugging Face publishes it.")],
    name: Annotated[str | None, typer.Option("--id", metavar="ID", help="Its name; that of the file's folder unless named.")] = None,
) -> None:
    """Put a model's config.json into ./data or --data, after reading it: --set workload.model=ID then runs it."""
    from tco.catalog.drafts import refuse_taken, write_draft
    from tco.cli.load import catalogue_for
    from tco.foundation.files import read_text
    from tco.models.architecture import load_model

    catalogue = catalogue_for(None, without_new(given))
    own = name or config.resolve().parent.name
    refuse_taken(own, catalogue.models, "model")
    found = load_model(catalogue, str(config))
    write_draft(own_folder(given), {f"models/{own}/config.json": read_text(config)})
    size = f"{found.parameters / 1e9:.4g} B parameters, {found.active_parameters / 1e9:.4g} B active"
    said(f"{own_folder(given)}/models/{own}/config.json: {size}. Try: tco compare --set workload.model={own}{option(given)}")


def said(text: str) -> None:
    """Say what was written."""
    from tco.foundation.streams import put

    put(f"{text}\n")


def option(given: Given) -> str:
    """Return the option that names the folder again, where it is not the one that is taken anyway."""
    return "" if given.data is None else f" --data {given.data}"
