"""`tco init`, `tco parts | systems | scenarios new`, `tco models add`: files of one's own to edit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tco.cli import app
from tco.cli.help import Taught
from tco.cli.options import Request, command
from tco.cli.shelves import models, parts, scenarios, systems

SCENARIO = """\
# A scenario of your own. Run it: tco price mine.toml
title = "My rack"
system = "trn3-nl72x2"            # tco systems list
site = "us-hyperscale"            # where it stands: data/sites
terms = "hyperscaler-2025-12"     # life, rate, utilisation and the date of prices: data/terms
workload = "deepseek-v3-8k-1k"    # what it serves: data/workloads
cluster = "tor-100g-16k"          # the scale-out network it shares: data/clusters

[variant]
switch = "gen1"

[set]                             # any input, with its unit: tco scenarios show mine.toml
"site.electricity_price" = "0.07 USD/kWh"
"terms.utilisation" = "0.7"
"""
PARTS = """\
part,attribute,value,unit,low,high,as_of,kind,source,note,use
nitro-v6-400g,price,500,USD,400,650,2025-12,assumed,my-quote,replace this by a price of your own,
"""
SOURCES = """\
id,title,url,date
my-quote,A quote of mine,,2025-12
"""
README = """\
# Racks and prices of our own

`mine.toml` is a scenario, `data/` lies over the data that `tco` ships: a row here replaces the shipped row of the same part and attribute.

    tco price mine.toml                                   what a chip-hour costs, line by line
    tco compare mine.toml gb200-nvl72                     beside another rack
    tco explain mine.toml tco_usd_per_chip_hour           where the number comes from, down to its rows
    tco inputs mine.toml price                            what may be set, with today's value and source
    tco parts check && tco systems check                  whether the rows of `data/` can be read

More of one's own, copied from what is there, to edit:

    tco parts new acme-x1 --like b200-sxm                 rows of a chip, a card, a cable
    tco systems new acme-rack --like b200-hgx8            the tree of a rack
    tco models add hf/config.json                         a model, as Hugging Face publishes it
    tco scenarios new theirs --like gb200-nvl72

A row needs a unit, a date, a kind (`vendor`, `filing`, `analyst`, `press`, `measured`, `derived`, `estimate`, `assumed`) and a source of
`data/sources.csv`; an estimate or an assumption also its low and high, the 5th and 95th percentile of what you believe. Money is in USD.

Every answer says how many own values are in force and names those that nothing uses. Before an answer leaves the house:
`--redact`, or `TCO_REDACT=1`, withholds whatever rests on values of your own.
`data/` and `reports/` stay out of a shared history (`.gitignore`).
"""
IGNORED = """\
# Prices of your own stay out of a shared history, and what rests on them. What is saved with --redact may be shared.
data/
reports/
"""


@app.command(cls=Taught)
def init(folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to make.")]) -> None:
    """Make a folder of your own, with an editable scenario and prices laid over the shipped ones."""
    from tco.foundation.errors import UsageError
    from tco.foundation.files import is_there, write_all
    from tco.foundation.streams import put

    if is_there(folder) and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: exists and is not an empty folder")
    files = {"mine.toml": SCENARIO, "data/parts/mine.csv": PARTS, "data/sources.csv": SOURCES, ".gitignore": IGNORED, "README.md": README}
    write_all(folder, files)
    put(f"{folder}: a scenario (mine.toml) and a data folder of your own. Try: cd {folder} && tco price mine.toml\n")


New = Annotated[str, typer.Argument(metavar="ID", help="Its name: letters, digits, dots and dashes.")]
Like = Annotated[str, typer.Option("--like", metavar="ID", help="What it is copied from, value by value.")]
USUAL = ("data",)


def own_folder(given: Request) -> Path:
    """Return the folder that what is new is written to."""
    return given.data or Path("data")


def without_new(given: Request) -> Path | None:
    """Return the folder the user named, if it is there already."""
    return given.data if given.data is not None and given.data.is_dir() else None


@command(parts, name="new", usual=USUAL)
def new_part(given: Request, part: New, like: Like) -> None:
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
def new_system(given: Request, system: New, like: Like) -> None:
    """Write the tree of a new system to edit, in ./data or --data: that of another."""
    from tco.catalog.drafts import own_source, system_draft, write_draft
    from tco.cli.load import catalogue_for

    catalogue = catalogue_for(None, without_new(given))
    write_draft(own_folder(given), system_draft(catalogue, system, like) | own_source(own_folder(given)))
    said(f"{own_folder(given)}/systems/{system}.toml: as {like}, to edit. Try: tco systems check{option(given)} && tco price {system}{option(given)}")


@command(scenarios, name="new", usual=USUAL)
def new_scenario(given: Request, scenario: New, like: Like) -> None:
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
    given: Request,
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


def option(given: Request) -> str:
    """Return the option that names the folder again, where it is not the one that is taken anyway."""
    return "" if given.data is None else f" --data {given.data}"
