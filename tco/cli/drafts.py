"""`tco init`, `tco parts | systems | scenarios new`, `tco models add`: your own files to edit."""

from __future__ import annotations

from os.path import isdir  # unlike a path's method it says no to a name that no file can have
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tco.cli import app
from tco.cli.catalogue import COMMAND_GROUPS
from tco.cli.help import Taught
from tco.cli.options import CommandRequest, command
from tco.core.errors import UsageError
from tco.core.streams import print_text, tell

if TYPE_CHECKING:
    from tco.catalog import Catalogue

BEGINNING = Path(__file__).parent / "init"
# what is made -> of which file
FILES = {
    "mine.toml": "mine.toml",
    "data/parts/mine.csv": "parts.csv",
    "data/sources.csv": "sources.csv",
}
FILES |= {".gitignore": "gitignore", "README.md": "README.md"}


@app.command(cls=Taught)
def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to make.")],
) -> None:
    """Make a folder of your own, with a scenario and prices to edit.

    Your prices are laid over the shipped ones.
    """
    from tco.core.files import is_there, write_all

    if is_there(folder) and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            f"{folder}: exists and is not an empty folder; name a new one: tco init mine"
        )
    write_all(
        folder,
        {
            file_name: (BEGINNING / file).read_text(encoding="utf-8")
            for file_name, file in FILES.items()
        },
    )
    print_text(
        f"{folder}: a scenario (mine.toml) and a data folder of your own. Try: cd {folder} && tco "
        "price mine.toml\n"
        "data/parts/mine.csv has an example of a price: remove its # to use it.\n"
        "Git ignores data/ and reports/, but for baselines, which hold your own prices unless "
        "they are saved with --redact. "
        f"To commit data/, remove its line from {folder / '.gitignore'}.\n"
    )


New = Annotated[
    str, typer.Argument(metavar="ID", help="Its name: letters, digits, dots and dashes.")
]
Like = Annotated[
    str, typer.Option("--like", metavar="ID", help="What it is copied from, value by value.")
]
USUAL = ("data",)


def own_folder(request: CommandRequest) -> Path:
    """Return the folder that what is new is written to."""
    return request.data or Path("data")


def catalogue_with_overlay(request: CommandRequest) -> Catalogue:
    """Return the catalogue, with the folder the user named over it if that is there already."""
    from tco.evaluation.evaluation import catalogue_for

    return catalogue_for(
        None, request.data if request.data is not None and isdir(request.data) else None
    )


@command(COMMAND_GROUPS["parts"], name="new", usual=USUAL)
def new_part(request: CommandRequest, part: New, like: Like) -> None:
    """Write the rows of a new part to edit, as those of another part, in ./data or --data.

    The rows are marked as your own and as assumed.
    """
    from tco.catalog.templates import part_draft, write_draft
    from tco.scenario.resolve import plain_inputs

    catalogue = catalogue_with_overlay(request)
    date = plain_inputs(catalogue, {}).date
    files, left = part_draft(catalogue, own_folder(request), part, like, date)
    write_draft(own_folder(request), files)
    row_count = files[f"parts/{part}.csv"].count("\n") - 1
    print_text(
        f"{own_folder(request)}/parts/{part}.csv: {row_count} rows as {like} has them, to edit. "
        f"Try: tco parts show {part}{option(request)}\n"
    )
    if left:
        tell(f"note: as of {date}; left out, so that what you write holds on: {', '.join(left)}")


@command(COMMAND_GROUPS["systems"], name="new", usual=USUAL)
def new_system(request: CommandRequest, system: New, like: Like) -> None:
    """Write the tree of a new system to edit, in ./data or --data: that of another."""
    from tco.catalog.templates import own_source, system_draft, write_draft

    catalogue = catalogue_with_overlay(request)
    write_draft(
        own_folder(request), system_draft(catalogue, system, like) | own_source(own_folder(request))
    )
    print_text(
        f"{own_folder(request)}/systems/{system}.toml: as {like}, to edit. Try: tco systems "
        f"check{option(request)} && tco price {system}{option(request)}\n"
    )


@command(COMMAND_GROUPS["scenarios"], name="new", usual=USUAL)
def new_scenario(request: CommandRequest, scenario: New, like: Like) -> None:
    """Write a new scenario to edit, in ./scenarios, from another one or for a system.

    A system takes the terms of the headline.
    """
    from tco.catalog.templates import refuse_taken, scenario_draft, write_draft
    from tco.scenario.document import load_scenario

    catalogue = request.catalogue
    refuse_taken(scenario, catalogue.scenarios, "scenario")
    template_scenario = load_scenario(catalogue, like)
    scenario_text = scenario_draft(
        scenario,
        template_scenario.title,
        template_scenario.system,
        template_scenario.documents,
        template_scenario.variant,
        template_scenario.settings,
    )
    write_draft(Path("scenarios"), {f"{scenario}.toml": scenario_text})
    print_text(
        f"scenarios/{scenario}.toml: as {like}, to edit. Try: tco price "
        f"scenarios/{scenario}.toml{option(request)}\n"
    )


@command(COMMAND_GROUPS["models"], name="add", usual=USUAL)
def add_model(
    request: CommandRequest,
    config: Path,
    name: str | None = None,
) -> None:
    """Check a model's config.json and put it into ./data or --data.

    --set workload.model=ID then runs it.

    Arguments:
        config (CONFIG.json): A model's config.json, as Hugging Face publishes it.

    Options:
        name (--id ID): Its name; that of the file's folder unless named.

    """
    from tco.catalog.templates import refuse_taken, write_draft
    from tco.core.files import read_text
    from tco.models.architecture import load_model, refuse_unread_keys
    from tco.models.config import FORMATS_FILE

    catalogue = catalogue_with_overlay(request)
    model_id = name or config.resolve().parent.name
    refuse_taken(model_id, catalogue.models, "model")
    loaded_model = load_model(catalogue, str(config))
    refuse_unread_keys(loaded_model, str(config))
    files = {f"models/{model_id}/config.json": read_text(config)}
    formats_file = config.with_name(FORMATS_FILE)
    if formats_file.is_file():
        files[f"models/{model_id}/{FORMATS_FILE}"] = read_text(formats_file)
    write_draft(own_folder(request), files)
    counts = (loaded_model.parameters / 1e9, loaded_model.active_parameters / 1e9)
    size = "{:.4g} B parameters, {:.4g} B active".format(*counts)
    if loaded_model.is_read_by_keys:
        size = loaded_model.reading
    print_text(
        f"{own_folder(request)}/models/{model_id}/config.json: {size}. Try: tco compare --set "
        f"workload.model={model_id}{option(request)}\n"
    )


def option(request: CommandRequest) -> str:
    """Return the option that names the data folder again, empty for the default folder."""
    return "" if request.data is None else f" --data {request.data}"
