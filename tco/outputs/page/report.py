"""From what a report is made of to its page."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import join

from tco import __version__
from tco.chain.result import Result
from tco.outputs.curve import verdict_words
from tco.outputs.page.page import Page
from tco.outputs.page.sections import sections_of
from tco.outputs.page.whatif import what_if_of
from tco.outputs.premises import formats_rows, premises, title_of
from tco.studies.comparison import speed_of
from tco.studies.reporting import Material


def headline_first(material: Material, results: Sequence[Result]) -> list[str]:
    """Return the verdict, what is said of the speed the baseline is asked for first."""
    lines, regimes = verdict_words(material.confidence, results), material.confidence.regimes
    if len(lines) < len(regimes):  # of one scenario there is but one thing to say
        return lines
    asked = speed_of(next(result for result in results if result.scenario == material.baseline))
    first = next((at for at, one in enumerate(regimes) if asked in one.speeds), 0)
    return [lines[first], *(line for at, line in enumerate(lines) if at != first)]


def page_of(material: Material, made_by: Sequence[str], compared_by: Sequence[str]) -> Page:
    """Return the page; `made_by` are the words of the command that makes it again, `compared_by` the words of the one that gives its figures."""
    results = material.results
    said = [title_of(results), *premises([result for result in results if result.bill])]
    if formats_rows(results):
        said.append("Number formats differ between the scenarios.")
    said.append("~ based on an estimate, an assumption or a prior.")
    notes = [f"{result.scenario}: {note}" for result in results for note in (*result.notes, *result.ages.notes)]
    unsure = [f"{result.scenario}: no range, {one.reason}" for result, one in zip(results, material.sure, strict=True) if one.reason]
    return Page(
        f"{' · '.join(result.scenario for result in results)} | total cost of ownership",
        headline_first(material, results),
        said,
        sections_of(material),
        what_if_of(material, compared_by),
        [("made by", f"tco {__version__}"), ("data", material.catalogue.hash()), ("command", join(made_by))],
        list(dict.fromkeys([*notes, *unsure, *material.notes])),
    )
