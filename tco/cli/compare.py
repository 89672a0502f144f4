"""`tco compare`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from tco.cli import app
from tco.cli.options import Given, command, pairs

if TYPE_CHECKING:
    from tco.chain.result import Result
    from tco.studies.comparison import Sureness
    from tco.studies.evaluation import Evaluation


def halls_of(results: Sequence[Result]) -> list[dict[str, float | None] | None]:
    """Return what each system makes of the site's power; nothing where nobody states it."""
    from tco.chain.placement import SITE_POWER

    if not any(SITE_POWER in result.inputs for result in results):
        return []
    from tco.studies.fleet import hall_of  # only a site that is filled asks for it

    return [hall_of(result) for result in results]


def ranges_of(asked: Sequence[Evaluation], baseline: str, wanted: bool, hold: bool) -> list[Sureness]:
    """Return how sure each scenario is; nothing where nobody wants to know."""
    if not wanted:
        return []
    from tco.studies.confidence import sureness_of

    return sureness_of(asked, baseline, hold)


@command(app, "set", "hold")
def compare(
    given: Given,
    scenarios: Annotated[list[str] | None, typer.Argument(metavar="[SCENARIO]...", help="Names or files; left out: the four headline racks.")] = None,
    baseline: Annotated[str | None, typer.Option(metavar="NAME", help="The scenario the others are compared with.")] = None,
    hall: Annotated[str | None, typer.Option(metavar="POWER", help="Fill a site with each system, such as '20 MW' from the grid.")] = None,
    practice: Annotated[
        str | None, typer.Option(metavar="FAMILY", help="Put all chips under the practice of one family, such as nvidia; left out: each its own.")
    ] = None,
    what_if: Annotated[
        list[str] | None,
        typer.Option("--what-if", metavar="PATH=VALUE", help="Replace an input as --set does, with plans and all choices held. Repeatable."),
    ] = None,
    ranges: Annotated[bool, typer.Option("--range/--no-range", help="Draw the inputs within their ranges: how sure the answer is.")] = True,
) -> None:
    """Price and rate scenarios side by side."""
    from tco.chain.metrics import METRICS
    from tco.chain.placement import SITE_POWER
    from tco.cli.emit import Answer
    from tco.outputs.columns import comparison_table
    from tco.outputs.comparison import CONTEXT, comparison_document, comparison_rows
    from tco.outputs.document import document
    from tco.outputs.ranges import range_keys, range_lines, range_rows
    from tco.outputs.table import Table
    from tco.outputs.verdicts import verdict_document, verdict_words
    from tco.studies.comparison import compared, verdict_of
    from tco.studies.evaluation import HEADLINE, catalogue_of, evaluate_each

    wanted = (
        given.settings | pairs([f"{SITE_POWER}={hall}"] if hall else [], "--hall") | ({} if practice is None else {"workload.practice": practice})
    )
    held = pairs(what_if, "--what-if")
    asked = evaluate_each(scenarios or HEADLINE, given.data, wanted, refuse=False, what_if=held)
    base, results = compared([one.result for one in asked], baseline)
    halls, sure = halls_of(results), ranges_of(asked, base, ranges, given.texts["hold"] or bool(held))
    names, verdict = [one.name for one in asked], verdict_of(results, base, sure)
    given.emit(
        Answer(
            lambda: document(
                "compare",
                catalogue_of(asked, given.data),
                comparison_document(results, base, halls, [range_keys(one) for one in sure], verdict_document(verdict))
                | ({"what_if": list(held)} if held else {}),
            ),
            lambda: [
                Table((), [], above=[verdict_words(verdict)]),
                comparison_table(results, base, halls, range_rows(sure), range_lines(names, sure)),
            ],
            ("scenario", "system", *METRICS, *CONTEXT),
            comparison_rows(results),
            [
                *([f"plans and choices are those without {', '.join(held)}"] if held else []),
                *(f"{result.scenario}: {note}" for result in results for note in (*result.notes, *result.ages.notes)),
                *(f"{name}: no range, {one.reason}" for name, one in zip(names, sure, strict=bool(sure)) if one.reason),
            ],
        ),
    )
