"""Checks of the catalogue: findings on entries of every kind, and published figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from tco.catalog import Catalogue
from tco.catalog.statements import ReproducedFigure
from tco.core.entry_kinds import DOCUMENT_KINDS, ENTRY_KINDS
from tco.core.errors import TcoError, refuse_unknown
from tco.report.record import Answer, Document, Member, Record
from tco.report.table import Table

CHECKS = {
    entry_kind: Document(
        f"{entry_kind}-check",
        Member("ok", bool, lambda check_outcome: not check_outcome.findings),
        Member("findings", [str]),
        *([Member("published", [ReproducedFigure])] if entry_kind == "scenarios" else []),
    )
    for entry_kind in ENTRY_KINDS
}
FINDING = Record(Member("finding", read=str, label="finding"))
# folders whose values are checked with those of parts
CHECKED_WITH_PARTS = (
    "sites",
    "terms",
    "workloads",
    "clusters",
    "rebates",
    "performance",
    "perspectives",
)
# texts of a document that name something of their kind, by path
NAMING_TEXTS = {
    "sites": ("site.tenure", "site.cooling"),
    "terms": ("terms.yield", "terms.commitment"),
}


class CheckResult(NamedTuple):
    """Result of a check; no finding says that everything is in order."""

    findings: Sequence[str]
    # figures of publications with their computed values; of scenarios only
    published: Sequence[ReproducedFigure] = ()


def check_result(entry_kind: str, catalogue: Catalogue, figure_kind: str | None) -> CheckResult:
    """Return the result of the check of a kind of entry.

    Args:
        entry_kind: Name of the kind, a key of `CHECKS`.
        catalogue: Holds the entries.
        figure_kind: Kind of published figures to check; None checks every scenario, and all
            published figures that test something.

    """
    if entry_kind == "scenarios":
        return _scenario_result(catalogue, figure_kind)
    finders: dict[str, Callable[[Catalogue], list[str]]] = {
        "parts": _part_findings,
        "systems": _system_findings,
        "models": _model_findings,
        "rebates": _agreement_findings,
        "sources": _source_findings,
    }
    return CheckResult(finders.get(entry_kind, partial(_document_findings, entry_kind))(catalogue))


def check_answer(entry_kind: str, catalogue: Catalogue, check_outcome: CheckResult) -> Answer:
    """Return the answer of a check.

    The published figures stand below the findings, beside the computed values. Notes name own
    values of parts that are far outside their shipped range.

    Args:
        entry_kind: Name of the kind, a key of `CHECKS`.
        catalogue: Holds the checked entries.
        check_outcome: Result of the check.

    """
    findings = check_outcome.findings
    title = f"{entry_kind}: {len(findings)} findings" if findings else f"{entry_kind}: all in order"
    finding_record = FINDING if findings else Record()

    def tables() -> list[Table]:
        table = finding_record.table(findings, title)
        return [
            table,
            *(_published_tables(check_outcome.published) if check_outcome.published else ()),
        ]

    answer = CHECKS[entry_kind].answer(catalogue, check_outcome, tables, (finding_record, findings))
    if entry_kind != "parts":
        return answer
    from tco.catalog.overlay import own_row_notes

    return answer._replace(notes=own_row_notes(catalogue))


def _published_tables(figures: Sequence[ReproducedFigure]) -> list[Table]:
    from tco.evidence.published import KINDS
    from tco.report.claims import published_table

    by_kind = {kind: [figure for figure in figures if figure.kind == kind] for kind in KINDS}
    return [published_table(kind, matches) for kind, matches in by_kind.items() if matches]


def _part_findings(catalogue: Catalogue) -> list[str]:
    from tco.catalog.checks import check_documents, check_parts
    from tco.catalog.overlay import untaken_rows

    findings = check_parts(catalogue)
    for folder in CHECKED_WITH_PARTS:
        findings += check_documents(catalogue, folder)
    return [*findings, *untaken_rows(catalogue)]


def _system_findings(catalogue: Catalogue) -> list[str]:
    from tco.catalog.checks import check_systems
    from tco.catalog.system_tree import single_variants
    from tco.scenario.system_bill import bill_of_system
    from tco.system.wiring import unstated

    if findings := check_systems(catalogue):
        return findings
    for system_id in catalogue.ids("systems"):
        for variant in single_variants(catalogue.document("systems", system_id, "system")[1]):
            try:
                bill = bill_of_system(catalogue, system_id, {}, variant)
                findings += unstated(bill.system, catalogue)
            except TcoError as error:
                variant_key, option = next(iter(variant.items()), ("", ""))
                findings.append(f"{system_id} {variant_key}={option}: {error}")
    return list(dict.fromkeys(findings))


def _model_findings(catalogue: Catalogue) -> list[str]:
    from tco.models.architecture import load_model

    def read_model(model_id: str) -> None:
        source = load_model(catalogue, model_id).source
        if source:
            where = str(catalogue.models[model_id])
            refuse_unknown("source", [source], catalogue.sources, where)

    return list(_read_errors(read_model, catalogue.models).values())


def _agreement_findings(catalogue: Catalogue) -> list[str]:
    from tco.catalog.checks import check_documents
    from tco.cost.ownership import load_agreement

    findings = check_documents(catalogue, "rebates")
    for agreement_id in catalogue.ids("rebates"):
        findings += [
            f"rebates/{agreement_id}.toml: covers the unknown part {part!r}"
            for part in load_agreement(catalogue, agreement_id).parts
            if part not in catalogue.parts
        ]
    return findings


def _source_findings(catalogue: Catalogue) -> list[str]:
    # reading them refuses a source without a title
    _ = catalogue.sources
    return []


def _document_findings(folder: str, catalogue: Catalogue) -> list[str]:
    from tco.catalog.checks import check_documents

    if findings := check_documents(catalogue, folder):
        return findings
    errors = _read_errors(partial(_read_names, catalogue, folder), catalogue.ids(folder))
    return [f"{folder}/{document_name}.toml: {error}" for document_name, error in errors.items()]


def _read_names(catalogue: Catalogue, folder: str, document_name: str) -> None:
    """Read whatever the texts of a document name: a tenure, a model, switches, an owner.

    The document replaces that of its kind in the inputs of the headline.
    """
    from tco.cost.ownership import load_perspective
    from tco.models.architecture import load_model
    from tco.performance.service.traffic import load_traffic
    from tco.scenario.choices import CHEAPEST
    from tco.scenario.network_tiers import port_rate
    from tco.scenario.resolve import plain_inputs
    from tco.system.scale_out_network import optic_part, switch_part

    if folder == "perspectives":
        load_perspective(catalogue, document_name)
        return
    if folder == "traffic":
        load_traffic(catalogue, document_name)
        return
    inputs = plain_inputs(catalogue, {DOCUMENT_KINDS[folder].group: document_name})
    for path in NAMING_TEXTS.get(folder, ()):
        inputs.text(path)
    if folder == "workloads" and inputs.kind != "stated":
        load_model(catalogue, inputs.text("workload.model"))
    if folder == "clusters":
        for path, find_part in (("cluster.switch", switch_part), ("cluster.optic", optic_part)):
            for part in inputs.text(path).removeprefix(CHEAPEST).split(","):
                find_part(part.strip(), list(catalogue.parts))
        port_rate(inputs.text("cluster.port"), "cluster.port")


def _read_errors(read: Callable[[str], None], entry_names: Iterable[str]) -> dict[str, str]:
    errors = {}
    for entry_name in entry_names:
        try:
            read(entry_name)
        except TcoError as error:
            errors[entry_name] = str(error)
    return errors


def _scenario_result(catalogue: Catalogue, figure_kind: str | None) -> CheckResult:
    from tco.catalog.checks import check_scenario
    from tco.evidence.published import RELATED, publication
    from tco.scenario.evaluate import evaluate

    findings: list[str] = []
    figures: list[ReproducedFigure] = []
    for scenario_name, path in catalogue.scenarios.items() if figure_kind is None else ():
        try:
            findings += check_scenario(path, catalogue.toml(path), catalogue.sources)
            evaluate(scenario_name, catalogue=catalogue)
        except TcoError as error:
            findings.append(f"{scenario_name}: {error}")
    for scenario_name, path in catalogue.published.items():
        try:
            file_findings = check_scenario(path, catalogue.toml(path), catalogue.sources)
            if file_findings:
                findings += file_findings
                continue
            file = publication(catalogue, scenario_name, figure_kind)
            figures += [
                figure
                for figure in file.figures
                if figure_kind is not None or figure.kind != RELATED
            ]
            findings += file.findings()
        except TcoError as error:
            findings.append(f"published/{scenario_name}: {error}")
    return CheckResult(findings, figures)
