"""Figures of money: cost per chip-hour by system and class, and payments month by month."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import accumulate, chain

from matplotlib.axes import Axes

from tco.comparison.cash_flow import INCOME, Money
from tco.report.assumptions import marked, premise, premise_lines
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
    INK,
    LIGHT,
    MUTED,
    PAPER,
    WIDE,
    colours_of,
    ink_on,
)
from tco.report.table import ESTIMATE_NOTE, significant
from tco.scenario.result import Result

ROW = 58.0  # pixels of a bar with its name above
MIDDLE = "center_baseline"
REBATE = "rebate"


@styled
def cost_figure(scenario_results: Sequence[Result], width: float = WIDE) -> Drawing:
    """Return the bars of cost, USD per chip-hour.

    Rebates stand to the left of 0.

    Args:
        scenario_results: Results of the scenarios, a bar each.
        width: Width of the figure, pixels.

    """
    costs = [by_asset(scenario_result) for scenario_result in scenario_results]
    scenario_titles = distinct_titles(
        [(scenario_result.title, scenario_result.scenario) for scenario_result in scenario_results]
    )
    nets = [
        scenario_result.metrics["tco_usd_per_chip_hour"] for scenario_result in scenario_results
    ]
    figures = "; ".join(
        f"{scenario_title} {significant(net) or 'none'}"
        for scenario_title, net in zip(scenario_titles, nets, strict=True)
    )
    drawing = Drawing(
        "What a chip-hour costs (base case)",
        f"USD per installed chip and calendar hour, net of rebates: {figures}.",
        width,
        "USD per installed chip and calendar hour, net of rebates; shares are of the cost before "
        "rebates",
    )
    assets = dict.fromkeys(chain.from_iterable(costs))
    colours = colours_of(asset for asset in assets if asset != REBATE)
    colours |= dict.fromkeys(assets.keys() - colours.keys(), GRID)
    drawing.legend(colours)
    axes = drawing.rows(scenario_titles, ROW, right=text_width("~00.00 net", weight="bold") + 18)
    axes.axvline(0, color=MUTED, linewidth=1)
    gross = [
        sum(asset_cost for asset_cost in classes.values() if asset_cost > 0) for classes in costs
    ]
    rebates = [
        sum(asset_cost for asset_cost in classes.values() if asset_cost < 0) for classes in costs
    ]
    span = max(gross, default=0.0) - min(rebates, default=0.0)
    scale = axes.bbox.width / max(span, 1e-9)
    for row_index, (scenario_result, net, classes) in enumerate(
        zip(scenario_results, nets, costs, strict=True)
    ):
        end = _draw_cost_bar(axes, row_index, classes, gross[row_index], scale, colours)
        words = "no cost here"
        if net is not None:
            words = f"{marked(scenario_result, 'tco_usd_per_chip_hour', significant(net, 3))} net"
        write_beside(axes, end, row_index, words, 6, weight="bold")
    drawing.paragraphs(*premise_lines(scenario_results), ESTIMATE_NOTE)
    return drawing


def _draw_cost_bar(
    axes: Axes,
    row_index: int,
    classes: Mapping[str, float],
    gross: float,
    scale: float,
    colours: Mapping[str, str],
) -> float:
    """Draw the classes of a cost beside each other and return the right end, USD per chip-hour.

    `scale` is pixels per USD.
    """
    ends = {True: 0.0, False: 0.0}
    for asset, asset_cost in classes.items():
        start = ends[asset_cost > 0]
        share = f"{abs(asset_cost) / (gross or 1.0) * 100:.0f} %"
        tip(
            axes.barh(row_index, asset_cost, 0.45, start, color=colours[asset], edgecolor=PAPER),
            f"{asset}: {significant(asset_cost)} USD, {share}",
        )
        if text_width(share) + 6 <= asset_cost * scale:
            ink, centre = ink_on(colours[asset]), start + asset_cost / 2
            axes.text(centre, row_index, share, color=ink, ha="center", va=MIDDLE)
        ends[asset_cost > 0] += asset_cost
    return ends[True]


def by_asset(scenario_result: Result) -> dict[str, float]:
    """Return the cost of each class of cost lines, USD per chip-hour.

    Classes are in the order of the lines. Classes without cost are left out.
    """
    costs: defaultdict[str, float] = defaultdict(float)
    for line in scenario_result.lines:
        costs[line.asset] += float(line.usd_per_chip_hour)
    return {asset: asset_cost for asset, asset_cost in costs.items() if asset_cost}


MILLION = 1e6
HOUR, TOKENS = "tco_usd_per_chip_hour", "usd_per_million_output_tokens"
PAID, INCOMING = LIGHT[1], LIGHT[0]
YEAR_BAR, PURCHASE_BAR = 0.7, 0.2  # of a year


@styled
def money_figure(scenario_result: Result, money: Money, width: float = WIDE) -> Drawing:
    """Return a figure of yearly payments and their running sum.

    Bars show what each year pays and takes in, and a line shows the net sum paid so far by month.

    Args:
        scenario_result: Result whose premises the figure states.
        money: Payments by month, USD.
        width: Width of the figure in pixels.

    """
    months: defaultdict[int, float] = defaultdict(float)
    years: defaultdict[tuple[int, bool], float] = defaultdict(float)
    for payment in money.payments:
        usd = float(payment.usd) / MILLION
        months[payment.month] += usd
        years[-(-payment.month // 12), usd < 0] += usd
    times = sorted(months)
    sums = list(accumulate(months[month] for month in times))
    drawing = Drawing(
        f"What {scenario_result.title} pays and earns over its life",
        f"{significant(sums[-1] if sums else 0.0, 3)} million USD paid in the end, less what comes "
        f"in; in month 0 {significant(months[0], 3)}.",
        width,
        f"Million USD of one scale-up domain of {scenario_result.metrics['chips']:g} chips, not "
        f"discounted. {premise(scenario_result)}",
    )
    colours = {"paid in a year": PAID, "comes in": INCOMING}
    if not any(incoming for _, incoming in years):
        del colours["comes in"]
    line = "paid so far, less what has come in"
    drawing.legend({**colours, line: INK}, ["s"] * len(colours) + ["_"])
    axes = drawing.axes(
        min(width * 0.7, 320), x_words="years from the purchase", y_words="million USD"
    )
    for (year, incoming), usd in sorted(years.items()):
        middle, wide, time = (0.0, PURCHASE_BAR, "purchase")
        if year > 0:
            middle, wide, time = (year - 0.5, YEAR_BAR, f"year {year}")
        bar = axes.bar(middle, usd, wide, color=INCOMING if incoming else PAID)
        tip(bar, f"{time}: {significant(usd, 3)} million USD")
    axes.axhline(0, color=MUTED, linewidth=1)
    steps = [month / 12 for month in (*times[:1], *times)]
    axes.step(steps, [0.0, *sums][-len(steps) :], where="post", color=INK, linewidth=1.5)
    axes.set_xlim(min(times, default=0) / 12 - 0.6, max(times, default=0) / 12 + 0.2)
    drawing.paragraphs(*_payment_summary(scenario_result, money))
    return drawing


def _payment_summary(scenario_result: Result, money: Money) -> list[str]:
    """Return sentences on break-even prices and payback time."""
    sentences = [
        "A used chip-hour breaks even at "
        f"{marked(scenario_result, HOUR, significant(money.break_even_usd_per_used_chip_hour, 3))} "
        "USD"
    ]
    token_cost = money.break_even_usd_per_million_output_tokens
    if token_cost is not None:
        sentences.append(
            "a million output tokens at "
            f"{marked(scenario_result, TOKENS, significant(token_cost, 3))} USD"
        )
    if money.payback_month is not None:
        sentences.append(f"everything is paid back in month {money.payback_month}")
    if not any(payment.line == INCOME for payment in money.payments):
        sentences.append("no rent or token price is set: the only income is the value left")
    return ["; ".join(sentences) + ".", ESTIMATE_NOTE]
