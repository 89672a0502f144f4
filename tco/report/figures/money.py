"""The money of one world month by month: what has gone out so far, less what has come in, and the
payments of each year.
"""

from __future__ import annotations

from itertools import accumulate

from tco.comparison.cash_flow import INCOME, Money
from tco.report.assumptions import marked, premise
from tco.report.figures import WIDE
from tco.report.figures.scales import Linear, Plot
from tco.report.figures.svg import Drawing, Point
from tco.report.table import significant
from tco.scenario.result import Result

MILLION = 1e6
HOUR, TOKENS = "tco_usd_per_chip_hour", "usd_per_million_output_tokens"
OUT, IN = "fill-2", "fill-1"
BAR, PURCHASE = 0.7, 0.2  # of a year


def money_figure(result: Result, money: Money, width: float = WIDE) -> str:
    """Return an SVG figure of yearly payments and their running sum.

    Bars show what each year pays and takes in, and a line shows the net sum paid so far by month.

    Args:
        result: Result whose premises the figure states.
        money: Payments by month, USD.
        width: Width of the figure in SVG units.

    """
    months: dict[int, float] = {}
    years: dict[tuple[int, bool], float] = {}
    for one in money.payments:
        months[one.month] = months.get(one.month, 0.0) + float(one.usd) / MILLION
        key = (-(-one.month // 12), float(one.usd) < 0)
        years[key] = years.get(key, 0.0) + float(one.usd) / MILLION
    when = sorted(months)
    so_far = list(accumulate(months[month] for month in when))
    last = so_far[-1] if so_far else 0.0
    said = f"{significant(last, 3)} million USD paid in the end, less what comes in"
    drawing = Drawing(
        f"The money of {result.title}, month by month",
        f"{said}; in month 0 {significant(months.get(0, 0.0), 3)}.",
        width,
    )
    drawing.paragraph(
        f"Million USD of one scale-up domain of {result.metrics['chips']:g} chips, not discounted; "
        f"{premise(result)}"
    )
    entries = {OUT: "paid in a year", IN: "comes in", "rule": "paid so far, less what has come in"}
    shown = [look for look in entries if look != IN or any(below for _, below in years)]
    drawing.legend(
        [(look, entries[look]) for look in shown], ["square"] * (len(shown) - 1) + ["line"]
    )
    top = drawing.bottom + 26
    ends = [*so_far, *years.values(), 0.0]
    plot = Plot(
        drawing,
        Linear.over(
            [min(when, default=0) / 12 - 0.6, max(when, default=0) / 12 + 0.2],
            drawing.left + 46,
            drawing.right - 6,
        ),
        Linear.rounded(ends, top + min(width * 0.7, 320), top),
    )
    plot.axes("years from the purchase", "million USD")
    for (year, below), usd in sorted(years.items()):
        middle = year - 0.5 if year > 0 else float(year)
        half = (BAR if year > 0 else PURCHASE) / 2
        (left, base), (right, end) = (
            plot.point_of(middle - half, 0),
            plot.point_of(middle + half, usd),
        )
        tip = (
            f"{'year ' + str(year) if year > 0 else 'purchase'}: {significant(usd, 3)} million USD"
        )
        drawing.rectangle(
            left, min(base, end), right - left, abs(end - base), IN if below else OUT, tip
        )
    drawing.line(plot.point_of(plot.x.low, 0), plot.point_of(plot.x.high, 0), "axis")
    drawing.path(staircase_points(plot, when, so_far), "rule")
    drawing.paragraphs(payment_summary_lines(result, money))
    return drawing.svg()


def staircase_points(plot: Plot, months: list[int], so_far: list[float]) -> list[Point]:
    """Return the corners of what has been paid by each month: it stays until more is paid."""
    found: list[Point] = []
    before = 0.0
    for month, sum_of in zip(months, so_far, strict=True):
        found += [plot.point_of(month / 12, before), plot.point_of(month / 12, sum_of)]
        before = sum_of
    return found


def payment_summary_lines(result: Result, money: Money) -> list[str]:
    """Return sentences on break-even prices and payback time."""
    said = [
        "An hour that is let breaks even at "
        f"{marked(result, HOUR, significant(money.break_even_usd_per_used_chip_hour, 3))} USD"
    ]
    token_cost = money.break_even_usd_per_million_output_tokens
    if token_cost is not None:
        said.append(
            f"a million output tokens at {marked(result, TOKENS, significant(token_cost, 3))} USD"
        )
    if money.payback_month is not None:
        said.append(f"everything is paid back in month {money.payback_month}")
    if not any(one.line == INCOME for one in money.payments):
        said.append("nothing is let or sold here")
    return ["; ".join(said) + ".", "~ based on an estimate, an assumption or a prior."]
