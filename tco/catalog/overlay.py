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

NAMED = 3  # rows that a note names
FARTHEST = 2.0  # times outside the shipped range: beyond, a unit or a decimal mark may have slipped
# folders of documents that state values of a group, beside its tables and its defaults
SHELVES = {"site": ("sites",), "terms": ("terms", "perspectives"), "cluster": ("clusters",)}
# groups whose values are fitted, or are what is asked for
WITHOUT_RANGE = ("performance", "workload")
LOOKED = 100  # rows that are held against all names, for the nearest
# attributes that parts of every kind have
COMMON = frozenset(("price", "own_price", "power", "assembly_time", "failure_rate"))
LEAST_ATTRIBUTES = 3  # of a part that a setting may name


@once_per_owner
def own_rows(catalogue: Catalogue) -> list[tuple[str, CatalogueRow]]:
    """Return the path and the row of every value in the tables of a person's own folders."""
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
        DataError: A row cannot be read; the message tells the first fault and counts the rest.

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
    own_places = {
        own_input.where for own_input in inputs.values()
    }  # a row of a grid stands for any site on it
    in_force = {
        path
        for path, user_row in own_rows(catalogue)
        if path in inputs or user_row.where in own_places
    }
    known_owners = _shipped_owners(catalogue, "parts") | _in_own_trees(catalogue)
    unread = [(path, user_row) for path, user_row in rows_by_path.items() if path not in in_force]
    idle = [
        (path, user_row, hint(path, known_owners) if row_index < LOOKED else "")
        for row_index, (path, user_row) in enumerate(unread)
    ]
    idle.sort(key=lambda unread_row: not unread_row[2])  # what looks like a slip comes first
    named = [
        f"{user_row.where} {path.partition('.')[2]}{slip}" for path, user_row, slip in idle[:NAMED]
    ]
    more = [f"{len(idle) - NAMED} more"] if len(idle) > NAMED else []
    return [
        f"own values: {len(rows_by_path) - len(idle)} in force, {len(idle)} not "
        f"used{': ' if idle else ''}{', '.join([*named, *more])}"
    ]


def _in_own_trees(catalogue: Catalogue) -> set[str]:
    """Return the parts that trees of a person's own systems name: new ones, and no slips."""
    tree_parts: set[str] = set()
    for folder in catalogue.folders[1:]:
        for path in (folder / "systems").glob("*.toml"):
            assemblies = catalogue.toml(path).get("assemblies")
            for children in assemblies.values() if isinstance(assemblies, dict) else ():
                tree_parts.update(children if isinstance(children, dict) else ())
    return tree_parts


def untaken_rows(catalogue: Catalogue, stated_names: Iterable[str] = ()) -> list[str]:
    """Return a sentence on each own row that nothing can take, such as one of a misspelt part.

    Args:
        catalogue: Holds the rows.
        stated_names: Names that settings state; what they name is taken.

    Returns:
        Sentences with the file and the line, the first `LOOKED` also with the nearest shipped name.

    """
    if len(catalogue.folders) == 1:
        return []
    user_rows = own_rows(catalogue)
    named = {*stated_names, *_names_in_own_documents(catalogue)}
    shipped = {group: _shipped_owners(catalogue, group) for group in TABLES}
    sentences: list[str] = []
    for path, user_row in user_rows:
        group, owner, _ = split_path(path)
        owners = shipped[group]
        if owner not in owners | named and not _stands_alone(catalogue, group, owner, owners):
            near = nearest(owner, owners) if len(sentences) < LOOKED else ""
            sentences.append(f"{user_row.where}: {path}: nothing takes this row{near}")
    return sentences


def _shipped_owners(catalogue: Catalogue, group: str) -> set[str]:
    """Return the owners of rows in a group, such as parts, of which a row is shipped."""
    return {
        owner
        for (owner, _), attribute_rows in catalogue.rows(group).items()
        if not all(catalogue_row.overlay for catalogue_row in attribute_rows)
    }


def _stands_alone(
    catalogue: Catalogue, group: str, owner: str, shipped_owners: Collection[str]
) -> bool:
    """Say whether a question can name an own owner that no document names."""
    if group == "parts":
        attributes = catalogue.parts[owner]
        return len(attributes) >= LEAST_ATTRIBUTES and any(
            len(alike) >= LEAST_ATTRIBUTES and not alike <= COMMON and alike <= set(attributes)
            for alike in (set(catalogue.parts[part]) for part in shipped_owners)
        )
    if group == "site":  # `--set site.grid` names one
        return not nearest(owner, shipped_owners)
    if group == "performance":
        return bool(catalogue.kind_of(owner))
    return group == "rebates" and owner in catalogue.ids("rebates")


def _names_in_own_documents(catalogue: Catalogue) -> set[str]:
    """Return every key and text of the TOML files in a person's own folders."""
    own_names: set[str] = set()
    for folder in catalogue.folders[1:]:
        for shelf in catalogue.shelves:
            for path in (folder / shelf).rglob("*.toml"):
                with suppress(DataError):  # whoever reads the file says what is wrong
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
    """Return the nearest known part where the row's part is none of them, most likely a slip."""
    group, part, *_ = path.split(".")
    nearest_part = nearest(part, parts) if group == "parts" and part not in parts else ""
    return nearest_part and f" ({nearest_part.removeprefix('; ')})"


def range_notes(catalogue: Catalogue, inputs: Mapping[str, Input]) -> list[str]:
    """Return a note on each own value that is more than twice outside its shipped range.

    Own values are those of own files and those that are set. Fitted values and those of a
    workload have no such note.

    Args:
        catalogue: Holds the rows.
        inputs: Inputs by path.

    """
    notes = []
    for path, own_input in inputs.items():
        if not own_input.overlay or path.partition(".")[0] in WITHOUT_RANGE:
            continue
        ends = catalogue.once(("shipped range", path), partial(_shipped_range, path))
        if ends is not None:
            notes += _range_note(own_input, *ends)
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
        with suppress(DataError):  # the check names a row that cannot be read
            inputs[path] = to_input(user_row, path, attribute)
    return range_notes(catalogue, inputs)


def _range_note(own_input: Input, low: float, high: float) -> list[str]:
    own_value = float(own_input.value)
    if low / FARTHEST <= own_value <= high * FARTHEST:
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
    """Return the least and the largest shipped number of an input; None where no range is shipped.

    Those of a new part, of a site and of terms are of the attribute, whoever has it.
    """
    (group, owner, attribute_name), ours = split_path(path), shipped()
    known_attribute = attribute_of_path(path)
    if known_attribute is None:
        return None
    tables = ours.rows(group) if group in TABLES else {}
    shipped_rows = tables.get((owner, attribute_name)) or [
        shipped_row
        for (_, table_attribute), named_rows in tables.items()
        if table_attribute == attribute_name
        for shipped_row in named_rows
    ]
    inputs = [to_input(shipped_row, path, known_attribute) for shipped_row in shipped_rows]
    if not owner:
        inputs += _document_values(ours, group, path)
    if not any(shipped_input.low is not None for shipped_input in inputs):
        return None
    numbers = [
        end
        for shipped_input in inputs
        for end in (shipped_input.low, shipped_input.value, shipped_input.high)
        if end is not None
    ]
    return (min(numbers), max(numbers)) if max(numbers) > 0 else None


def _document_values(ours: Catalogue, group: str, path: str) -> list[Input]:
    """Return the values that shipped documents state of an input, in all halls of a site."""
    documents = [
        ("defaults", group),
        *(
            (shelf, document_name)
            for shelf in SHELVES.get(group, ())
            for document_name in ours.ids(shelf)
        ),
    ]
    return [
        inputs[path]
        for shelf, document_name in documents
        if (ours.folders[0] / shelf / f"{document_name}.toml").is_file()
        for cooling in (None, *COOLING_KINDS)
        if path in (inputs := ours.document_inputs(shelf, document_name, group, group, cooling))
    ]
