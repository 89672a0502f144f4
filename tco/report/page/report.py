"""From what a report is made of to its page, or to a folder of pages that a site may publish.

The folder has the ranking, the report, a page for each scenario, and what the figures rest on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from shlex import join

from tco import __version__
from tco.comparison.ranking import Ranking
from tco.comparison.report_data import Material
from tco.core.equation import equation
from tco.core.errors import UsageError
from tco.core.mappings import lists_by_key
from tco.core.trace import walk
from tco.evaluation.side_by_side import speed_of
from tco.report.assumptions import formats_rows, premise_lines, workload_title
from tco.report.first_screen import advice_lines
from tco.report.page import sections as made
from tco.report.page.page import ReportPage, Section
from tco.report.page.whatif import what_if_of
from tco.report.ranking import ranking_table
from tco.report.table import ESTIMATE_NOTE, Table
from tco.scenario.result import Result
from tco.sweeps.study import read_study, shipped_studies


def _headline_first(material: Material, scenario_results: Sequence[Result]) -> list[str]:
    """Return the advice by speed, that of the baseline's target speed first."""
    lines = advice_lines(material.confidence, scenario_results)
    regimes = material.confidence.regimes
    if len(lines) < len(regimes):  # of one scenario there is but one thing to say
        return lines
    baseline_speed = speed_of(
        next(
            scenario_result
            for scenario_result in scenario_results
            if scenario_result.scenario == material.baseline
        )
    )
    first = next(
        (
            regime_index
            for regime_index, regime in enumerate(regimes)
            if baseline_speed in regime.speeds
        ),
        0,
    )
    return [lines[first], *(line for line_index, line in enumerate(lines) if line_index != first)]


def report_page(
    material: Material, made_by: Sequence[str], compared_by: Sequence[str]
) -> ReportPage:
    """Return the page of a report.

    Args:
        material: All that the report tells of.
        made_by: Words of the command that makes the page again.
        compared_by: Words of the command that gives the page's figures.

    """
    scenario_results = material.results
    premises = [
        workload_title(scenario_results),
        *premise_lines(
            [scenario_result for scenario_result in scenario_results if scenario_result.bill]
        ),
    ]
    if formats_rows(scenario_results):
        premises.append("Number formats differ between the scenarios.")
    premises.append(ESTIMATE_NOTE)
    notes = [
        f"{scenario_result.scenario}: {note}"
        for scenario_result in scenario_results
        for note in (*scenario_result.notes, *scenario_result.ages.notes)
    ]
    unsure = [
        f"{scenario_result.scenario}: no range, {result_sureness.reason}"
        for scenario_result, result_sureness in zip(scenario_results, material.sure, strict=True)
        if result_sureness.reason
    ]
    return ReportPage(
        f"{' · '.join(scenario_result.scenario for scenario_result in scenario_results)} | total "
        "cost of ownership",
        _headline_first(material, scenario_results),
        premises,
        made.sections_of(material),
        what_if_of(material, compared_by),
        [
            ("made by", f"tco {__version__}"),
            ("data", material.catalogue.hash()),
            ("command", join(made_by)),
        ],
        list(dict.fromkeys([*notes, *unsure, *material.notes])),
    )


# ---------------------------------------------------------------- a folder of pages
RANKING, REPORT = "index.html", "report.html"
SHARED = {
    "Ranking": RANKING,
    "Report": REPORT,
    "Regimes": "regimes.html",
    "Accuracy": "accuracy.html",
    "Studies": "studies.html",
    "Method": "method.html",
}


def gallery_of(report: ReportPage, material: Material, ranking: Ranking) -> dict[str, ReportPage]:
    """Return the pages of a report's folder by file name.

    Each page links to all pages of the folder.

    Args:
        report: Page of the whole report.
        material: All that the report tells of.
        ranking: Ranking of every system.

    Raises:
        UsageError: The page of a scenario would have the file name of a shared page.

    """
    scenario_results = material.results
    scenario_files = {
        scenario_result.scenario: f"{scenario_result.scenario}.html"
        for scenario_result in scenario_results
    }
    shared_name = next((file for file in scenario_files.values() if file in SHARED.values()), None)
    if shared_name is not None:
        raise UsageError(f"{shared_name} is a page of the folder: call the scenario something else")
    bare = report._replace(what_if=None, notes=[], links=SHARED | scenario_files)

    def page(
        headline: str, sections: Sequence[Section], premises: Sequence[str] = report.premises
    ) -> ReportPage:
        return bare._replace(
            title=headline, verdict=[headline], premises=premises, sections=sections
        )

    regimes = [
        *made.regimes(material),
        *made.order_change_section(material),
        *made.winners(material),
    ]
    accuracy = [*made.validation(material), *made.sources(material)]
    pages = {
        RANKING: bare._replace(sections=_ranking_sections(material, ranking)),
        REPORT: report._replace(links=bare.links),
        SHARED["Regimes"]: page("Which rack is cheapest where", regimes),
        SHARED["Accuracy"]: page("How accurate it is", accuracy),
        SHARED["Studies"]: page("Questions and their answers", list(studies()), premises=[]),
        SHARED["Method"]: page("How a figure is made", list(method(scenario_results)), premises=[]),
    }
    for scenario_result in scenario_results:
        sections = made.sections_of(_scenario_material(material, scenario_result.scenario))
        pages[scenario_files[scenario_result.scenario]] = page(scenario_result.title, sections)
    return pages


def _ranking_sections(material: Material, ranking: Ranking) -> list[Section]:
    """Return the frontier, the ranking of all systems, and the list of the scenarios' pages."""
    table = ranking_table(ranking)
    ranking_rows = [
        (scenario_result.scenario, scenario_result.title, scenario_result.standing.text)
        for scenario_result in material.results
    ]
    scenarios = Table(("page", "system", "published runs"), ranking_rows, align="lll")
    ranked = table._replace(title="", above=())
    return [
        *made.frontier_sections(material),
        Section("ranking", "Every system", [table.title, *table.above], tables=[ranked]),
        Section("scenarios", "In detail", tables=[scenarios]),
    ]


def _scenario_material(material: Material, scenario_name: str) -> Material:
    """Return the report material of the scenario `scenario_name` alone."""
    evaluation_indices = [
        evaluation_index
        for evaluation_index, evaluation in enumerate(material.evaluations)
        if evaluation.result.scenario == scenario_name
    ]
    sure = (
        [material.sure[evaluation_index] for evaluation_index in evaluation_indices]
        if material.sure
        else []
    )
    curve = [
        curve_point
        for curve_point in material.confidence.curve
        if curve_point.scenario == scenario_name
    ]
    evaluations = [
        material.evaluations[evaluation_index] for evaluation_index in evaluation_indices
    ]
    return material._replace(
        evaluations=evaluations,
        baseline=scenario_name,
        confidence=material.confidence._replace(sure=sure, curve=curve, regimes=[]),
        tornados=[
            tornado
            for tornado in material.tornados
            if tornado.sides[0].result.scenario == scenario_name
        ],
        frontiers=[
            frontier
            for frontier in material.frontiers
            if frontier.decode.result.scenario == scenario_name
        ],
        fabrics=[
            fabric
            for fabric in material.fabrics
            if any(fabric.system.id == evaluation.result.system for evaluation in evaluations)
        ],
        field=None,
    )


def studies() -> Iterator[Section]:
    """Yield the shipped studies, each with its question and today's answer, which tests check."""
    for study_name in shipped_studies():
        study_document: Mapping[str, object] = read_study(study_name).document
        words = [
            str(study_document[word]) for word in ("question", "answer") if word in study_document
        ]
        yield Section(
            study_name,
            str(study_document.get("title", study_name)),
            [*words, f"tco sweep {study_name} -o {study_name}"],
        )


def method(scenario_results: Sequence[Result]) -> Iterator[Section]:
    """Yield the formulas behind the scenarios' costs, by package."""
    used = {
        node.formula.name: node.formula
        for scenario_result in scenario_results
        for node in walk(*scenario_result.nodes.values())
        if node.formula
    }
    rooms = lists_by_key(
        (formula.function.__module__.split(".")[1], formula)
        for formula in sorted(used.values(), key=lambda used_formula: used_formula.name)
    )
    for room, formulas in sorted(rooms.items()):
        method_rows = [
            (used_formula.name, equation(used_formula), used_formula.unit, used_formula.source)
            for used_formula in formulas
        ]
        yield Section(
            f"formulas-{room}",
            room.capitalize(),
            tables=[Table(("formula", "equation", "unit", "source"), method_rows, align="llll")],
        )
