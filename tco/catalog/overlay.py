"""A user's own rows: each is checked on loading, and unused ones are named."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial

from tco.catalog.catalogue import TABLES, Catalogue, shipped
from tco.catalog.halls import COOLING_KINDS
from tco.catalog.rows import CatalogueRow, attribute_of_path, read_row, split_path, to_input
from tco.core.errors import DataError, nearest
from tco.core.memory import once_per_owner
from tco.core.provenance import Input
from tco.core.units import convert

NAMED_ROWS = 3  # rows that a note names
# Largest factor outside the shipped range. Beyond it a unit or a decimal mark may be wrong.
LARGEST_FACTOR = 2.0
# Folders of documents with values of a group, in addition to its tables and its defaults.
DOCUMENT_FOLDERS = {
    "site": ("sites",),
    "terms": ("terms", "perspectives"),
    "cluster": ("clusters",),
}
# Groups whose values have no expected range: they are fitted, or state the question.
WITHOUT_RANGE = ("performance", "workload")
ROWS_WITH_HINT = 100  # rows for which the nearest known name is searched
# Attributes that parts of every kind have.
COMMON_ATTRIBUTES = frozenset(("price", "own_price", "power", "assembly_time", "failure_rate"))
LEAST_ATTRIBUTES = 3  # attributes of a part that a setting may name


@once_per_owner
def own_rows(catalogue: Catalogue) -> list[tuple[str, CatalogueRow]]:
    """Return the path and the row of every value in the tables of the user's folders."""
    return [
        (f"{group}.{owner_name}.{attribute_name}", row)
        for group in TABLES
        for (owner_name, attribute_name), rows in catalogue.rows(group).items()
        for row in rows
        if row.overlay
    ]


def check_own_rows(catalogue: Catalogue) -> None:
    """Refuse rows of the user's own tables that cannot be read.

    Args:
        catalogue: Holds the rows.

    Raises:
        DataError: A row cannot be read; the message states the first fault and counts the others.

    """
    faults = []
    for path, user_row in own_rows(catalogue):
        try:
            read_row(user_row, path)
        except DataError as error:
            faults.append(str(error))
    if faults:
        raise DataError(
            faults[0] + (f" (and {len(faults) - 1} more rows)" if len(faults) > 1 else "")
        )


def own_note(catalogue: Catalogue, inputs: Mapping[str, Input]) -> list[str]:
    """Return a note on the user's own values in a result.

    The note counts the values in force, and names values that are not used, with the nearest
    shipped part.

    Args:
        catalogue: Holds the rows.
        inputs: Inputs of the result by path.

    Returns:
        A list with the note; empty where the user has no own values.

    """
    rows_by_path = dict(own_rows(catalogue))
    if not rows_by_path:
        return []
    # The input of a row may have another path: the row of a grid applies to any site on the grid.
    input_places = {own_input.where for own_input in inputs.values()}
    used_paths = {
        path
        for path, user_row in own_rows(catalogue)
        if path in inputs or user_row.where in input_places
    }
    known_parts = _shipped_owners(catalogue, "parts") | _parts_of_own_systems(catalogue)
    unused_rows = [
        (path, user_row) for path, user_row in rows_by_path.items() if path not in used_paths
    ]
    # A row with a hint has a part that is probably misspelt, and is named first.
    descriptions: list[str] = []
    descriptions_with_hint: list[str] = []
    for row_index, (path, user_row) in enumerate(unused_rows):
        part_hint = hint(path, known_parts) if row_index < ROWS_WITH_HINT else ""
        description = f"{user_row.where} {path.partition('.')[2]}{part_hint}"
        (descriptions_with_hint if part_hint else descriptions).append(description)
    named = [*descriptions_with_hint, *descriptions][:NAMED_ROWS]
    unused = len(unused_rows)
    more = [f"{unused - NAMED_ROWS} more"] if unused > NAMED_ROWS else []
    return [
        f"own values: {len(rows_by_path) - unused} in force, {unused} not "
        f"used{': ' if unused else ''}{', '.join([*named, *more])}"
    ]


def _parts_of_own_systems(catalogue: Catalogue) -> set[str]:
    """Return the parts in the trees of the user's systems, which are not misspelt."""
    tree_parts: set[str] = set()
    for folder in catalogue.folders[1:]:
        for path in (folder / "systems").glob("*.toml"):
            assemblies = catalogue.toml(path).get("assemblies")
            for children in assemblies.values() if isinstance(assemblies, dict) else ():
                tree_parts.update(children if isinstance(children, dict) else ())
    return tree_parts


def untaken_rows(catalogue: Catalogue, stated_names: Iterable[str] = ()) -> list[str]:
    """Return a sentence on each own row that no answer can use, such as one of a misspelt part.

    Args:
        catalogue: Holds the rows.
        stated_names: Names that settings state, whose rows an answer can use.

    Returns:
        Sentences with the file and the line. The first `ROWS_WITH_HINT` also have the nearest
        shipped name.

    """
    if len(catalogue.folders) == 1:
        return []
    user_rows = own_rows(catalogue)
    named = {*stated_names, *_names_in_own_documents(catalogue)}
    shipped_by_group = {group: _shipped_owners(catalogue, group) for group in TABLES}
    sentences: list[str] = []
    for path, user_row in user_rows:
        group, owner, _ = split_path(path)
        owners = shipped_by_group[group]
        if owner not in owners | named and not _can_be_asked_for(catalogue, group, owner, owners):
            name_hint = nearest(owner, owners) if len(sentences) < ROWS_WITH_HINT else ""
            sentences.append(f"{user_row.where}: {path}: nothing takes this row{name_hint}")
    return sentences


def _shipped_owners(catalogue: Catalogue, group: str) -> set[str]:
    """Return the owners in a group, such as parts, that have at least one shipped row."""
    return {
        owner
        for (owner, _), attribute_rows in catalogue.rows(group).items()
        if not all(catalogue_row.overlay for catalogue_row in attribute_rows)
    }


def _can_be_asked_for(
    catalogue: Catalogue, group: str, owner: str, shipped_owners: Collection[str]
) -> bool:
    """Return whether a question can name an own owner that no document names.

    A part can be named if it has all attributes of a shipped part of a specific kind.
    """
    if group == "parts":
        own_attributes = set(catalogue.parts[owner])
        return len(own_attributes) >= LEAST_ATTRIBUTES and any(
            len(attributes) >= LEAST_ATTRIBUTES
            and not attributes <= COMMON_ATTRIBUTES
            and attributes <= own_attributes
            for attributes in (set(catalogue.parts[part]) for part in shipped_owners)
        )
    if group == "site":  # `--set site.grid` names a grid
        return not nearest(owner, shipped_owners)
    if group == "performance":
        return bool(catalogue.kind_of(owner))
    return group == "rebates" and owner in catalogue.ids("rebates")


def _names_in_own_documents(catalogue: Catalogue) -> set[str]:
    """Return every key and text of the TOML files in the user's folders."""
    own_names: set[str] = set()
    for folder in catalogue.folders[1:]:
        for shelf in catalogue.shelves:
            for path in (folder / shelf).rglob("*.toml"):
                with suppress(DataError):  # the reader of the document raises the error
                    own_names.update(_names_in(catalogue.toml(path)))
    return own_names


def _names_in(content: object) -> Iterator[str]:
    if isinstance(content, dict):
        yield from content
        content = list(content.values())
    if isinstance(content, list):
        for item in content:
            yield from _names_in(item)
    elif isinstance(content, str):
        yield content


def hint(path: str, parts: Collection[str]) -> str:
    """Return the nearest known part in brackets, or an empty text where the part is known."""
    group, part, *_ = path.split(".")
    nearest_part = nearest(part, parts) if group == "parts" and part not in parts else ""
    return nearest_part and f" ({nearest_part.removeprefix('; ')})"


def range_notes(catalogue: Catalogue, inputs: Mapping[str, Input]) -> list[str]:
    """Return a note on each own value more than `LARGEST_FACTOR` times outside its shipped range.

    Own values come from the user's files or settings. Fitted values and the values of a workload
    have no such note.

    Args:
        catalogue: Holds the rows.
        inputs: Inputs by path.

    """
    notes = []
    for path, own_input in inputs.items():
        if not own_input.overlay or path.partition(".")[0] in WITHOUT_RANGE:
            continue
        shipped_range = catalogue.once(("shipped range", path), partial(_shipped_range, path))
        if shipped_range is not None:
            notes += _range_note(own_input, *shipped_range)
    return notes


def own_row_notes(catalogue: Catalogue) -> list[str]:
    """Return a note on each row of own tables that is far outside its shipped range.

    Args:
        catalogue: Holds the rows.

    """
    inputs = {}
    for path, user_row in own_rows(catalogue):
        attribute = attribute_of_path(path)
        if attribute is None:
            continue
        with suppress(DataError):  # another check names the rows that cannot be read
            inputs[path] = to_input(user_row, path, attribute)
    return range_notes(catalogue, inputs)


def _range_note(own_input: Input, low: float, high: float) -> list[str]:
    own_value = float(own_input.value)
    if low / LARGEST_FACTOR <= own_value <= high * LARGEST_FACTOR:
        return []
    number, unit = own_input.stated_quantity or (own_value, own_input.unit)
    least, most = (convert(end, own_input.unit, unit) for end in (low, high))
    side = f"{own_value / high:,.3g} times above"
    if own_value < low:
        side = f"{low / own_value:,.3g} times below" if own_value > 0 else "below"
    return [
        f"{own_input.path} is {number:,.6g} {unit}".rstrip()
        + f" ({own_input.where}), {side} the shipped range, {least:,.6g} to {most:,.6g}"
        + f" {unit}".rstrip()
        + "; check its unit and its decimal mark"
    ]


def _shipped_range(path: str) -> tuple[float, float] | None:
    """Return the smallest and the largest shipped number of an input.

    For a new part, a site and terms these are the numbers of all owners of the attribute.

    Returns:
        The range; None where no range is shipped.

    """
    group, owner, attribute_name = split_path(path)
    shipped_catalogue = shipped()
    known_attribute = attribute_of_path(path)
    if known_attribute is None:
        return None
    tables = shipped_catalogue.rows(group) if group in TABLES else {}
    shipped_rows = tables.get((owner, attribute_name)) or [
        shipped_row
        for (_, table_attribute), named_rows in tables.items()
        if table_attribute == attribute_name
        for shipped_row in named_rows
    ]
    inputs = [to_input(shipped_row, path, known_attribute) for shipped_row in shipped_rows]
    if not owner:
        inputs += _document_values(shipped_catalogue, group, path)
    if not any(shipped_input.low is not None for shipped_input in inputs):
        return None
    numbers = [
        end
        for shipped_input in inputs
        for end in (shipped_input.low, shipped_input.value, shipped_input.high)
        if end is not None
    ]
    return (min(numbers), max(numbers)) if max(numbers) > 0 else None


def _document_values(shipped_catalogue: Catalogue, group: str, path: str) -> list[Input]:
    """Return the values of an input in shipped documents, in all halls of a site."""
    documents = [
        ("defaults", group),
        *(
            (folder_name, document_name)
            for folder_name in DOCUMENT_FOLDERS.get(group, ())
            for document_name in shipped_catalogue.ids(folder_name)
        ),
    ]
    document_values = []
    for folder_name, document_name in documents:
        if not (shipped_catalogue.folders[0] / folder_name / f"{document_name}.toml").is_file():
            continue
        for cooling in (None, *COOLING_KINDS):
            inputs = shipped_catalogue.document_inputs(
                folder_name, document_name, group, group, cooling
            )
            if path in inputs:
                document_values.append(inputs[path])
    return document_values
