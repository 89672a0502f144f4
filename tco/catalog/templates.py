"""Drafts of a user's own files, each a marked copy of an entry of the catalogue."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tco.catalog.catalogue import Catalogue, is_name
from tco.catalog.rows import ALTERNATIVE, COLUMNS, CatalogueRow, at_date
from tco.core.errors import DataError, UsageError, refuse_unknown
from tco.core.files import is_there, read_text, write_all
from tco.core.types import TextMapping

OWN_SOURCE = "my-own"  # id of the source of copied rows
OWN_TITLE = "My own figures"
# Attributes with the history of the copied part, which a sketch of a part does not have.
HISTORY = ("general_availability", "first_volume", "bring_up")
FAMILIES = "performance/families.toml"
Files = dict[str, str]  # texts of files, by path below the data folder


def part_draft(
    catalogue: Catalogue, folder: Path, part: str, like: str, date: str
) -> tuple[Files, list[str]]:
    """Return the rows of a new part, copied from another part.

    All values are marked as assumed until the user replaces them. Only one row of a dated series is
    copied, so that its replacement also holds at every later date.

    Args:
        catalogue: Holds the part to copy.
        folder: Folder of the user's data.
        part: Id of the new part.
        like: Id of the part to copy.
        date: ISO date that picks the row of a dated series.

    Returns:
        Texts of the files to write, by path below `folder`, and a description of each row left out.

    Raises:
        DataError: `like` is unknown, or `part` is not a valid name or is taken.

    """
    refuse_unknown("part", [like], catalogue.parts, "--like")
    refuse_taken(part, catalogue.parts, "part")
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(("part", "attribute", *COLUMNS, "use"))
    omitted_rows = []
    for (owner, attribute_name), attribute_rows in catalogue.part_rows.items():
        if owner != like or attribute_name in HISTORY:
            continue
        live_rows = [
            attribute_row
            for attribute_row in attribute_rows
            if attribute_row.cells.get("use", "") != ALTERNATIVE
        ]
        if not live_rows:
            continue
        chosen_row = at_date(live_rows, date)
        writer.writerow(_copied_part_row(chosen_row, part, attribute_name, like))
        omitted_rows += [
            f"{attribute_name} of {live_row.as_of} ({live_row.cells['value']} "
            f"{live_row.cells.get('unit', '')})"
            for live_row in live_rows
            if live_row is not chosen_row
        ]
    files = {f"parts/{part}.csv": stream.getvalue()}
    files |= own_source(folder)
    files |= _family_line(catalogue, folder, part, like)
    return files, omitted_rows


def _copied_part_row(
    catalogue_row: CatalogueRow, part: str, attribute_name: str, like: str
) -> Sequence[object]:
    """Return the cells of a row for a copied part, marked as assumed."""
    cells = catalogue_row.cells
    cell_value = cells["value"]
    note = (
        f"copied from {like} ({cells.get('kind', '')}, {cells.get('source', '')}); replace it "
        "by what you know"
    )
    return [
        part,
        attribute_name,
        cell_value,
        cells.get("unit", ""),
        cells.get("low") or cell_value,
        cells.get("high") or cell_value,
        catalogue_row.as_of,
        "assumed",
        OWN_SOURCE,
        note,
        "",
    ]


def own_source(folder: Path) -> Files:
    """Return the user's `sources.csv` with the source of copied rows.

    Args:
        folder: Folder of the user's data.

    Returns:
        Text of the file by its name; empty where the file already has the source.

    """
    path = folder / "sources.csv"
    sources_text = read_text(path) if is_there(path) else "id,title,url,date\n"
    if any(line.startswith(f"{OWN_SOURCE},") for line in sources_text.splitlines()):
        return {}
    return {"sources.csv": f"{sources_text.rstrip()}\n{OWN_SOURCE},{OWN_TITLE},,\n"}


def _family_line(catalogue: Catalogue, folder: Path, part: str, like: str) -> Files:
    """Return the list of families with the new chip added to the family of `like`.

    The result is empty if `like` is not a chip.
    """
    for data_folder in catalogue.folders:
        path = data_folder / FAMILIES
        if is_there(path) and (family := catalogue.toml(path).get(like)) is not None:
            own_families = folder / FAMILIES
            families_text = (
                read_text(own_families)
                if is_there(own_families)
                else "# The family whose software each chip runs.\n"
            )
            return {FAMILIES: f'{families_text.rstrip()}\n{part} = "{family}"\n'}
    return {}


def system_draft(catalogue: Catalogue, system: str, like: str) -> Files:
    """Return the tree of a new system, copied from another system.

    Args:
        catalogue: Holds the system to copy.
        system: Id of the new system.
        like: Id of the system to copy.

    Returns:
        Text of the file to write, by its path below the data folder.

    Raises:
        DataError: `like` is unknown, or `system` is not a valid name or is taken.

    """
    refuse_taken(system, catalogue.ids("systems"), "system")
    system_text = read_text(catalogue.document("systems", like, "system")[0])
    system_text = re.sub(
        r"^name = .*$", f'name = "{system}, as {like}"', system_text, count=1, flags=re.MULTILINE
    )
    system_text = re.sub(
        r"^source = .*$", f'source = "{OWN_SOURCE}"', system_text, count=1, flags=re.MULTILINE
    )
    return {
        f"systems/{system}.toml": f"# Copied from {like}: replace what differs. tco systems check "
        f"says what is wrong.\n{system_text}"
    }


def scenario_draft(
    scenario_name: str,
    title: str,
    system: str,
    documents: TextMapping,
    variant: TextMapping,
    settings: TextMapping,
) -> str:
    """Return the text of a new scenario file, copied from another scenario.

    Args:
        scenario_name: Id of the new scenario.
        title: Title of the scenario that is copied.
        system: Id of the system.
        documents: Names of documents by group, such as `site` or `workload`.
        variant: Variants of the system by key.
        settings: Inputs by path, as texts with units.

    """
    lines = [
        f'title = "{scenario_name}, as {title}"',
        f'system = "{system}"',
        *(f'{group} = "{document_name}"' for group, document_name in documents.items()),
    ]
    lines += [
        "",
        "[variant]",
        *(f'{variant_key} = "{choice}"' for variant_key, choice in variant.items()),
    ]
    lines += [
        "",
        f"[set]  # any input, with its unit: tco inputs {system}",
        *(f'"{path}" = "{setting_text}"' for path, setting_text in settings.items()),
    ]
    return "\n".join(lines) + "\n"


def refuse_taken(
    new_name: str, taken_names: Sequence[str] | Mapping[str, object], what: str
) -> None:
    """Refuse a new name that is not valid or already taken.

    Args:
        new_name: The new name.
        taken_names: Names that are taken.
        what: Kind of thing that is named, for the message.

    Raises:
        DataError: The name is not valid as a file name, or is taken.

    """
    if not is_name(new_name) or not re.fullmatch(r"[A-Za-z0-9._-]+", new_name):
        raise DataError(
            f"{new_name!r} is no name for a {what}; expected letters, digits, dots and dashes"
        )
    if new_name in taken_names:
        raise DataError(
            f"{new_name} is a {what} already; a row of your own in data/ replaces one of its values"
        )


def write_draft(folder: Path, files: Files) -> None:
    """Write files below a folder without replacing an earlier draft.

    Existing files of sources and families are replaced.

    Args:
        folder: Folder of the user's data.
        files: Texts by path below the folder.

    Raises:
        UsageError: A file of the draft exists; nothing is written.

    """
    for draft_path in files:
        if draft_path not in ("sources.csv", FAMILIES) and is_there(folder / draft_path):
            raise UsageError(f"{folder / draft_path}: exists; edit it, or choose another name")
    write_all(folder, files)
