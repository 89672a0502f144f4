"""`tco sites | terms | workloads | clusters | perspectives`: what a scenario is put together from, list, show and check."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from tco.cli.options import Request, command
from tco.cli.shelves import Id, add_shelf, load

if TYPE_CHECKING:
    from tco.catalog import Catalogue
    from tco.chain.inputs import Inputs


class DocumentKind(NamedTuple):
    """A kind of document: its folder is the name of its commands."""

    folder: str
    one: str
    group: str  # what its values are inputs of
    listed: tuple[str, ...]  # texts the list shows
    judge: Callable[[Catalogue, str], Any]  # reads what the texts name, and raises `DataError` where they name nothing


def inputs_with(catalogue: Catalogue, group: str, name: str) -> Inputs:
    """Return the headline's inputs with one document in place of its own."""
    from tco.chain.inputs import plain_inputs

    return plain_inputs(catalogue, {group: name})


def judge_site(catalogue: Catalogue, name: str) -> None:
    """Read how a site is held and cooled."""
    inputs = inputs_with(catalogue, "site", name)
    _ = inputs.text("site.tenure"), inputs.text("site.cooling")


def judge_terms(catalogue: Catalogue, name: str) -> None:
    """Read the date, the perspective and how often is paid."""
    found = inputs_with(catalogue, "terms", name)
    _ = found.text("terms.yield"), found.text("terms.commitment")


def judge_workload(catalogue: Catalogue, name: str) -> None:
    """Read what is to be done, and the model that does it, if any."""
    from tco.models.architecture import load_model

    inputs = inputs_with(catalogue, "workload", name)
    if inputs.kind != "stated":
        load_model(catalogue, inputs.text("workload.model"))


def judge_cluster(catalogue: Catalogue, name: str) -> None:
    """Read the switch and the rate of its ports."""
    from tco.chain.connections import CHEAPEST, port_rate
    from tco.hardware.network import switch_part

    inputs = inputs_with(catalogue, "cluster", name)
    for switch in inputs.text("cluster.switch").removeprefix(CHEAPEST).split(","):
        switch_part(switch.strip(), list(catalogue.parts))
    port_rate(inputs.text("cluster.port"), "cluster.port")


def judge_perspective(catalogue: Catalogue, name: str) -> None:
    """Read whose cost it is."""
    from tco.economics.perspective import load_perspective

    load_perspective(catalogue, name)


KINDS = (
    DocumentKind("sites", "site", "site", ("name", "base", "tenure", "cooling", "grid"), judge_site),
    DocumentKind("terms", "set of terms", "terms", ("name", "perspective", "date"), judge_terms),
    DocumentKind("workloads", "workload", "workload", ("name", "kind", "model", "precision"), judge_workload),
    DocumentKind("clusters", "cluster", "cluster", ("name", "switch", "port"), judge_cluster),
    DocumentKind("perspectives", "perspective", "terms", ("name", "base", "owner", "pays"), judge_perspective),
)


def is_value(entry: Any) -> bool:
    """Say whether an entry of a document is a value with its unit and source."""
    return isinstance(entry, dict) and "value" in entry


def word(entry: Any) -> str:
    """Return an entry that is no value as a text."""
    return ", ".join(map(str, entry)) if isinstance(entry, list) else str(entry)


def add_kind(kind: DocumentKind) -> None:
    """Register the commands of a kind of document."""

    def items(catalogue: Catalogue) -> list[dict[str, Any]]:
        found = []
        for name in catalogue.ids(kind.folder):
            path, _ = catalogue.document(kind.folder, name, kind.one)
            texts, _ = page(catalogue, kind, name)
            said = {key: texts[key][0] if key in texts else None for key in kind.listed}
            found.append({"id": name, **said, "own": catalogue.is_overlay(path)})
        return found

    def check(catalogue: Catalogue) -> tuple[list[str]]:
        from tco.catalog import checks
        from tco.foundation.errors import TcoError

        findings = checks.check_documents(catalogue, kind.folder, kind.group)
        for name in [] if findings else catalogue.ids(kind.folder):
            try:
                kind.judge(catalogue, name)
            except TcoError as error:
                findings.append(f"{kind.folder}/{name}.toml: {error}")
        return (findings,)

    def show(given: Request, name: Id) -> None:
        from tco.outputs.shelves import page_answer

        catalogue = load(given)
        texts, values = page(catalogue, kind, name)
        given.emit(page_answer(kind.folder, kind.group, catalogue, name, texts, values))

    show.__doc__ = f"Show what a {kind.one} states, as written, with the ranges and sources."
    command(add_shelf(kind.folder, kind.one, items, check), name="show")(show)


def page(catalogue: Catalogue, kind: DocumentKind, name: str) -> tuple[dict[str, tuple[str, str]], list[dict[str, Any]]]:
    """Return the texts of a document and the rows of its values, those of the document it is `base`d on below its own."""
    from tco.catalog.rows import Row

    path, document = catalogue.document(kind.folder, name, kind.one)
    base = str(document.get("base", ""))
    texts, values = page(catalogue, kind, base) if base and base != name else ({}, [])
    own, in_place = catalogue.is_overlay(path), catalogue.in_place(kind.folder, path)
    said = {key: entry for key, entry in document.items() if not is_value(entry) and not (own and key == "note")}  # one's own notes stay there
    where = name + own * " (own)"
    texts |= {key: (word(entry), where) for key, entry in said.items()}
    rows = {row["path"]: row for row in values}
    for key in filter(lambda key: is_value(document[key]), document):
        cells = in_place(Row(document[key], f"{path}:{key}", own), kind.group, "", key).cells
        row = {"path": f"{kind.group}.{key}", "from": where} | {column: number_of(cells.get(column)) for column in ("value", "low", "high")}
        rows[row["path"]] = row | {column: str(cells.get(column, "")) for column in ("unit", "as_of", "kind", "source", "note")}
    return texts, list(rows.values())


def number_of(cell: Any) -> float | None:
    """Return a cell as a number, if it has one."""
    return None if cell in (None, "") else float(cell)


for kind in KINDS:
    add_kind(kind)
