"""Figure of the cost per chip-hour: a bar per system, split by class of cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain

from matplotlib.axes import Axes

from tco.report.assumptions import marked, premise_lines
from tco.report.figures.drawing import (
    Drawing,
    distinct_titles,
    styled,
    text_width,
    tip,
    write_beside,
)
from tco.report.figures.style import (
    GRID,
    MUTED,
    PAPER,
    WIDE,
    colours_of,
    ink_on,
)
from tco.report.table import ESTIMATE_NOTE, significant
from tco.scenario.metrics import CHIP_HOUR
from tco.scenario.result import Result

ROW_HEIGHT = 58.0  # pixels of a bar with its name above
BAR_HEIGHT = 0.45  # of a row
TEXT_GAP = 6  # pixels beside a text
REBATE = "rebate"  # class of the lines whose cost is negative


@styled
def cost_figure(scenario_results: Sequence[Result], width: float = WIDE) -> Drawing:
    """Return the bars of cost, USD per chip-hour.

    Rebates stand to the left of 0.

    Args:
        scenario_results: Results of the scenarios, a bar each.
        width: Width of the figure, pixels.

    """
    costs = [cost_by_asset(scenario_result) for scenario_result in scenario_results]
    scenario_titles = distinct_titles(
        [(scenario_result.title, scenario_result.scenario) for scenario_result in scenario_results]
    )
    net_costs = [scenario_result.metrics[CHIP_HOUR] for scenario_result in scenario_results]
    net_texts = "; ".join(
        f"{scenario_title} {significant(net_cost) or 'none'}"
        for scenario_title, net_cost in zip(scenario_titles, net_costs, strict=True)
    )
    drawing = Drawing(
        "What a chip-hour costs (base case)",
        f"USD per installed chip and calendar hour, net of rebates: {net_texts}.",
        width,
        "USD per installed chip and calendar hour, net of rebates; shares are of the cost before "
        "rebates",
    )
    assets = dict.fromkeys(chain.from_iterable(costs))
    colours = colours_of(asset for asset in assets if asset != REBATE)
    colours |= dict.fromkeys(assets.keys() - colours.keys(), GRID)
    drawing.legend(colours)
    net_width = text_width("~00.00 net", weight="bold")
    axes = drawing.rows(scenario_titles, ROW_HEIGHT, right=net_width + 3 * TEXT_GAP)
    axes.axvline(0, color=MUTED, linewidth=1)
    gross_costs = [_gross_cost(asset_costs) for asset_costs in costs]
    rebates = [sum(min(cost, 0.0) for cost in asset_costs.values()) for asset_costs in costs]
    span = max(gross_costs, default=0.0) - min(rebates, default=0.0)
    pixels_per_usd = axes.bbox.width / max(span, 1e-9)
    for row_index, (scenario_result, net_cost, asset_costs) in enumerate(
        zip(scenario_results, net_costs, costs, strict=True)
    ):
        end = _draw_cost_bar(axes, row_index, asset_costs, colours, pixels_per_usd)
        words = "no cost here"
        if net_cost is not None:
            words = f"{marked(scenario_result, CHIP_HOUR, significant(net_cost, 3))} net"
        write_beside(axes, end, row_index, words, TEXT_GAP, weight="bold")
    drawing.paragraphs(*premise_lines(scenario_results), ESTIMATE_NOTE)
    return drawing


def _draw_cost_bar(
    axes: Axes,
    row_index: int,
    asset_costs: Mapping[str, float],
    colours: Mapping[str, str],
    pixels_per_usd: float,
) -> float:
    """Draw the classes of a cost side by side, and return the right end, USD per chip-hour.

    Costs stand on the right of 0, and rebates on the left.
    """
    gross_cost = _gross_cost(asset_costs)
    left_end = right_end = 0.0
    for asset, cost in asset_costs.items():
        start = right_end if cost > 0 else left_end
        share = f"{abs(cost) / (gross_cost or 1.0) * 100:.0f} %"
        colour = colours[asset]
        tip(
            axes.barh(row_index, cost, BAR_HEIGHT, start, color=colour, edgecolor=PAPER),
            f"{asset}: {significant(cost)} USD, {share}",
        )
        if text_width(share) + TEXT_GAP <= cost * pixels_per_usd:
            centre = start + cost / 2
            axes.text(
                centre, row_index, share, color=ink_on(colour), ha="center", va="center_baseline"
            )
        if cost > 0:
            right_end += cost
        else:
            left_end += cost
    return right_end


def _gross_cost(asset_costs: Mapping[str, float]) -> float:
    """Return the cost before rebates, USD per chip-hour."""
    return sum(max(cost, 0.0) for cost in asset_costs.values())


def cost_by_asset(scenario_result: Result) -> dict[str, float]:
    """Return the cost of each class of cost lines, USD per chip-hour.

    Classes are in the order of the lines. Classes without cost are left out.
    """
    costs: defaultdict[str, float] = defaultdict(float)
    for line in scenario_result.lines:
        costs[line.asset] += float(line.usd_per_chip_hour)
    return {asset: asset_cost for asset, asset_cost in costs.items() if asset_cost}
