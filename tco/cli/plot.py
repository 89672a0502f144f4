"""`tco plot`: a figure of what another command says, as a file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tco.cli import app
from tco.cli.help import Listing
from tco.cli.options import (
    CommandRequest,
    command,
    name_argument,
)
from tco.core.errors import UsageError

if TYPE_CHECKING:
    from tco.report.figures.drawing import Drawing

SVG, PNG = ".svg", ".png"
METRIC = "usd_per_million_output_tokens"
WIDE = 760  # pixels, as figures are drawn for a screen: help reads none of them

plot = typer.Typer(
    cls=Listing,
    no_args_is_help=True,
    help="Draw a figure into an SVG or PNG file.",
)
app.add_typer(plot, name="plot")
# a figure has no form but that of its file
kind = partial(command, plot, usual=("data", "quiet", "redact"))


def _known_ending(output: Path | None) -> Path | None:
    if output is not None and output.suffix.lower() not in (SVG, PNG):
        raise UsageError(
            f"--output {output}: unknown ending {output.suffix!r}, expected one of {SVG}, {PNG}"
        )
    return output


FILE = typer.Option(
    "--output",
    "-o",
    metavar="FILE",
    callback=_known_ending,
    help="Where to: FILE.svg or FILE.png.",
)
PIXELS = typer.Option(
    metavar="PIXELS",
    min=320,
    max=2000,
    help="How wide it is laid out: 360 for a phone or a column of print.",
)
Output = Annotated[Path, FILE]
Width = Annotated[int, PIXELS]


def _write_figure(
    request: CommandRequest, output: Path, figure: Drawing, notes: Sequence[str] = ()
) -> None:
    """Write a figure in the form of the file's ending, and the notes of what it shows to stderr."""
    from tco.core.files import write_atomically

    if request.redact:
        from tco.cli.redaction import figure_notes_without_own_values

        notes = figure_notes_without_own_values(figure.svg(), list(notes))
    is_png = output.suffix.lower() == PNG
    write_atomically(output, figure.png() if is_png else figure.svg())
    request.tell(notes)


def _of_two(texts: list[str] | None, option: str) -> list[str | None]:
    bound_texts = texts or []
    if len(bound_texts) > 2:
        raise UsageError(
            f"{option}: given {len(bound_texts)} times, expected one for each of two inputs"
        )
    return [*bound_texts, *(None for _ in range(2 - len(bound_texts)))]


@kind("set", "variant")
def cost(
    request: CommandRequest,
    output: Output,
    scenarios: list[str] | None = None,
    width: Width = WIDE,
) -> None:
    """Draw what a chip-hour costs, system beside system, by what is paid for."""
    from tco.report.figures.cost import cost_figure

    _, scenario_results = request.evaluated(scenarios, workload=False)
    _write_figure(
        request,
        output,
        cost_figure(scenario_results, width),
        [
            f"{scenario_result.scenario}: {note}"
            for scenario_result in scenario_results
            for note in scenario_result.notes
        ],
    )


@kind("plan", "set", "variant")
def roofline(request: CommandRequest, output: Output, scenario: str, width: Width = WIDE) -> None:
    """Draw the operators of a plan under the roofs of the chip."""
    from tco.report.figures.performance import roofline_figure

    _, scenario_result = request.performed(scenario)
    _write_figure(request, output, roofline_figure(scenario_result, width), scenario_result.notes)


@kind("plan", "set", "variant")
def operators(request: CommandRequest, output: Output, scenario: str, width: Width = WIDE) -> None:
    """Draw where the time of a plan goes, by operator and by what binds it."""
    from tco.report.figures.performance import operators_figure

    _, scenario_result = request.performed(scenario)
    _write_figure(request, output, operators_figure(scenario_result, width), scenario_result.notes)


@kind("set")
def frontier(
    request: CommandRequest,
    output: Output,
    scenarios: list[str] | None = None,
    prefill: list[str] | None = None,
    against: Literal["cost", "chip", "power"] = "cost",
    width: Width = WIDE,
) -> None:
    """Draw what each speed per user costs on each system.

    Without a name the four headline racks are drawn.

    What is asked:
        prefill (SCENARIO): Read prompts on a pool of another system. Repeatable.
        against: Dollars per token, tokens per chip, or tokens per megawatt.

    """
    from tco.comparison import frontier as study
    from tco.comparison.confidence import confidence_of
    from tco.evaluation.evaluation import HEADLINE, evaluate_each
    from tco.report.figures.frontier import AGAINST, frontier_figure

    named_scenarios = scenarios or HEADLINE
    system_frontiers = study.frontier(
        named_scenarios, prefill or (), request.settings, request.data
    )
    metric = dict(zip(("cost", "chip", "power"), AGAINST, strict=True))[against]
    ranges = []
    if not prefill:  # what is drawn are named_scenarios, and no pairs of them
        evaluations = evaluate_each(named_scenarios, request.data, request.settings, refuse=False)
        ranges = [
            sureness.range(metric)
            for sureness in confidence_of(evaluations, evaluations[0].result.scenario).sure
        ]
    notes = [
        f"{system_frontier.decode.result.scenario}: {note}"
        for system_frontier in system_frontiers
        for note in system_frontier.decode.result.notes
    ]
    _write_figure(request, output, frontier_figure(system_frontiers, metric, width, ranges), notes)


@kind("set", "hold", "variant")
def tornado(
    request: CommandRequest,
    output: Output,
    scenario: str,
    metric: str = METRIC,
    ratio_to: str | None = None,
    width: Width = WIDE,
) -> None:
    """Draw what drives a metric: every input at its P5 and P95."""
    from tco.report.figures.uncertainty import tornado_figure
    from tco.sampling.sensitivity import sensitivity

    metric_sensitivity = sensitivity(
        scenario,
        metric,
        request.data,
        request.settings,
        request.variant,
        baseline=ratio_to,
        hold=request.hold,
    )
    _write_figure(
        request,
        output,
        tornado_figure(metric_sensitivity, width),
        metric_sensitivity.sides[0].result.notes,
    )


@kind("set", "hold", name="range")
def drawn_range(
    request: CommandRequest,
    output: Output,
    scenario: str,
    ratio_to: str | None = None,
    samples: int = 10_000,
    seed: int = 0,
    width: Width = WIDE,
) -> None:
    """Draw how sure the answer is: the draws of the ratio to a baseline, or of the cost."""
    from tco.report.figures.uncertainty import range_figure
    from tco.report.uncertainty import notes
    from tco.sampling.uncertainty import uncertainty

    drawn_uncertainty = uncertainty(
        scenario, ratio_to, samples, seed, request.hold, request.settings, request.data
    )
    _write_figure(
        request,
        output,
        range_figure(drawn_uncertainty, width),
        [*notes(drawn_uncertainty), *drawn_uncertainty.evaluation.result.notes],
    )


@kind("set", "variant", name="map")
def drawn_map(
    request: CommandRequest,
    output: Output,
    vary: list[str],
    scenarios: list[str] | None = None,
    metric: str = METRIC,
    start: list[str] | None = None,
    end: list[str] | None = None,
    steps: Annotated[int, typer.Option(min=2, max=65)] = 13,
    width: Width = WIDE,
) -> None:
    """Draw who wins where: two inputs moved together, the plan re-optimised in every cell.

    What is asked:
        vary (PATH): An input to move; named twice, for the two axes.
        start (--from X): Where an input begins, in the order of --vary.
        end (--to Y): Where it ends; three times today's unless given.
        steps (N): How many values each input has.

    """
    from tco.comparison.maps import field_of
    from tco.evaluation.evaluation import HEADLINE
    from tco.report.figures.maps import map_figure

    ranges = list(zip(_of_two(start, "--from"), _of_two(end, "--to"), strict=True))
    metric_map = field_of(
        scenarios or HEADLINE,
        vary,
        metric,
        ranges,
        request.data,
        request.settings,
        request.variant,
        steps,
    )
    _write_figure(request, output, map_figure(metric_map, width))


@kind("set", "hold", "variant", usual=("data", "form", "quiet", "redact"))
def line(
    request: CommandRequest,
    vary: str,
    scenarios: list[str] | None = None,
    start: str | None = None,
    end: str | None = None,
    metric: str = METRIC,
    steps: Annotated[int, typer.Option(min=2, max=201)] = 25,
    ratio_to: str | None = None,
    output: Annotated[Path | None, FILE] = None,
    width: Annotated[int | None, PIXELS] = None,
) -> None:
    """Draw a metric against one input, a line for each scenario.

    The plan is chosen again at every value. Without --output the numbers are printed. Without a
    name the four headline racks are drawn.

    What is asked:
        vary (PATH): The input to move, or terms.date.
        start (--from X): Where it begins, such as '4,000 USD'; default: a third of the value of
            today.
        end (--to Y): Where it ends; three times today's unless given.
        steps (N): How many values; today's is added.

    """
    from tco.comparison.input_lines import lines_of
    from tco.evaluation.evaluation import HEADLINE

    named_scenarios = scenarios or HEADLINE
    if output is None and width is not None:
        raise UsageError("--width is of a figure; name its file, such as -o line.svg")
    if output is not None and request.form != "table":
        raise UsageError(
            f"--format {request.form} prints the numbers, and --output draws them; leave one out"
        )
    input_lines = lines_of(
        named_scenarios,
        vary,
        metric,
        (start, end),
        request.data,
        request.settings,
        request.variant,
        baseline=ratio_to,
        hold=request.hold,
        steps=steps,
    )
    if output is None:
        from tco.report.input_lines import lines_answer

        request.emit(lines_answer(request.catalogue_of(named_scenarios[0]), input_lines))
        return
    from tco.report.figures.input_lines import lines_figure

    _write_figure(request, output, lines_figure(input_lines, width or WIDE), input_lines.notes)


@kind("set", "variant")
def fabric(
    request: CommandRequest,
    output: Output,
    systems: Annotated[list[str] | None, name_argument("systems")] = None,
    width: Width = WIDE,
) -> None:
    """Draw what scale-up fabrics give: injection, all-to-all and hops, scope by scope.

    Without a name the four headline racks are drawn.

    Arguments:
        systems (SYSTEM...): Ids of systems, such as `tco systems list` shows.

    """
    from tco.core.inputs import as_number
    from tco.evaluation.evaluation import HEADLINE
    from tco.fabric.topology import fabric_scopes
    from tco.report.figures.hardware import fabric_figure
    from tco.scenario.resolve import system_inputs

    catalogue = request.catalogue
    system_scopes, unused = [], []
    for system_name in systems or HEADLINE:
        inputs = system_inputs(catalogue, system_name, request.settings, request.variant)
        input_values = inputs.values(as_number)
        system_scopes.append((inputs.system.name, fabric_scopes(inputs.system, input_values)))
        unused += inputs.unused_notes(input_values, f"the fabric of {system_name}")
    _write_figure(request, output, fabric_figure(system_scopes, width), unused)


@kind("set", "variant")
def bom(request: CommandRequest, output: Output, system: str, width: Width = WIDE) -> None:
    """Draw what a system's price is made of: a map of its bill of materials."""
    from tco.report.figures.hardware import bom_figure
    from tco.scenario.system_bill import bill_of_system

    system_bill = bill_of_system(request.catalogue, system, request.settings, request.variant)
    _write_figure(
        request,
        output,
        bom_figure(system_bill.system, system_bill.bill, system_bill.date, width),
        system_bill.notes,
    )


@kind("set", "variant")
def money(request: CommandRequest, output: Output, scenario: str, width: Width = WIDE) -> None:
    """Draw what is paid and what comes in over the life of a world."""
    from tco.comparison.cash_flow import money_of
    from tco.report.figures.money import money_figure

    catalogue, (scenario_result,) = request.evaluated([scenario])
    cash_flow = money_of(scenario_result, catalogue)
    _write_figure(
        request,
        output,
        money_figure(scenario_result, cash_flow, width),
        [*scenario_result.notes, *cash_flow.notes],
    )


@kind()
def errors(request: CommandRequest, output: Output, width: Width = WIDE) -> None:
    """Draw how far predictions lie from published measurements, by kind and chip."""
    from tco.catalog.accuracy import accuracy_rows
    from tco.report.figures.errors import errors_figure

    _write_figure(request, output, errors_figure(accuracy_rows(request.catalogue, "chips"), width))
