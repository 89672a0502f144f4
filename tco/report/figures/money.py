"""Figure of a scenario's money: what each year pays and takes in, and the sum paid so far."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import accumulate

from matplotlib.axes import Axes

from tco.comparison.cash_flow import INCOME, YEAR, Money
from tco.core.mappings import sums_by_key
from tco.report.assumptions import marked, premise
from tco.report.figures.drawing import Drawing, styled, tip
from tco.report.figures.style import INK, LIGHT, MUTED, WIDE
from tco.report.table import ESTIMATE_NOTE, significant
from tco.scenario.metrics import CHIP_HOUR
from tco.scenario.result import Result

MILLION = 1e6
TOKEN_COST = "usd_per_million_output_tokens"
PAID_COLOUR, INCOME_COLOUR = LIGHT[1], LIGHT[0]
YEAR_BAR_WIDTH, PURCHASE_BAR_WIDTH = 0.7, 0.2  # years
LEFT_MARGIN, RIGHT_MARGIN = 0.6, 0.2  # years beside the first and the last payment
HIGHEST_AXES = 320  # pixels


@styled
def money_figure(scenario_result: Result, money: Money, width: float = WIDE) -> Drawing:
    """Return a figure of yearly payments and their running sum.

    Bars show what each year pays and takes in, and a line shows the net sum paid so far by month.

    Args:
        scenario_result: Result whose premises the figure states.
        money: Payments by month, USD.
        width: Width of the figure in pixels.

    """
    monthly_sums = _monthly_sums(money)
    paid_so_far = list(accumulate(monthly_sums.values()))
    drawing = Drawing(
        f"What {scenario_result.title} pays and earns over its life",
        f"{significant(paid_so_far[-1] if paid_so_far else 0.0, 3)} million USD paid in the end, "
        f"less what comes in; in month 0 {significant(monthly_sums.get(0, 0.0), 3)}.",
        width,
        f"Million USD of one scale-up domain of {scenario_result.metrics['chips']:g} chips, not "
        f"discounted. {premise(scenario_result)}",
    )
    yearly_sums = _yearly_sums(money)
    colours = {"paid in a year": PAID_COLOUR}
    if any(is_income for _, is_income in yearly_sums):
        colours["comes in"] = INCOME_COLOUR
    drawing.legend(
        {**colours, "paid so far, less what has come in": INK}, ["s"] * len(colours) + ["_"]
    )
    axes = drawing.axes(
        min(width * 0.7, HIGHEST_AXES), x_words="years from the purchase", y_words="million USD"
    )
    _draw_years(axes, yearly_sums)
    axes.axhline(0, color=MUTED, linewidth=1)
    times = [month / YEAR for month in monthly_sums]  # years
    if times:
        # the line starts at 0 in the first month
        axes.step([times[0], *times], [0.0, *paid_so_far], where="post", color=INK, linewidth=1.5)
    axes.set_xlim(min(times, default=0) - LEFT_MARGIN, max(times, default=0) + RIGHT_MARGIN)
    drawing.paragraphs(*_payment_summary(scenario_result, money))
    return drawing


def _monthly_sums(money: Money) -> dict[int, float]:
    """Return the net payments of each month with payments, in million USD, in order."""
    sums = sums_by_key((payment.month, float(payment.usd) / MILLION) for payment in money.payments)
    return dict(sorted(sums.items()))


def _yearly_sums(money: Money) -> dict[tuple[int, bool], float]:
    """Return payments and income of each year in million USD, in order.

    Keys are the year and whether money comes in. Year 0 is the purchase, and year 1 holds months 1
    to 12.
    """
    sums: defaultdict[tuple[int, bool], float] = defaultdict(float)
    for payment in money.payments:
        usd = float(payment.usd) / MILLION
        sums[math.ceil(payment.month / YEAR), usd < 0] += usd
    return dict(sorted(sums.items()))


def _draw_years(axes: Axes, yearly_sums: dict[tuple[int, bool], float]) -> None:
    for (year, is_income), usd in yearly_sums.items():
        if year > 0:
            centre, bar_width, period = year - 0.5, YEAR_BAR_WIDTH, f"year {year}"
        else:
            centre, bar_width, period = 0.0, PURCHASE_BAR_WIDTH, "purchase"
        colour = INCOME_COLOUR if is_income else PAID_COLOUR
        tip(
            axes.bar(centre, usd, bar_width, color=colour),
            f"{period}: {significant(usd, 3)} million USD",
        )


def _payment_summary(scenario_result: Result, money: Money) -> list[str]:
    """Return sentences on break-even prices and payback time."""
    hour_price = significant(money.break_even_usd_per_used_chip_hour, 3)
    clauses = [
        f"A used chip-hour breaks even at {marked(scenario_result, CHIP_HOUR, hour_price)} USD"
    ]
    if money.break_even_usd_per_million_output_tokens is not None:
        token_price = significant(money.break_even_usd_per_million_output_tokens, 3)
        clauses.append(
            f"a million output tokens at {marked(scenario_result, TOKEN_COST, token_price)} USD"
        )
    if money.payback_month is not None:
        clauses.append(f"everything is paid back in month {money.payback_month}")
    if not any(payment.line == INCOME for payment in money.payments):
        clauses.append("no rent or token price is set: the only income is the value left")
    return ["; ".join(clauses) + ".", ESTIMATE_NOTE]
