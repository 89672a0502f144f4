"""Bar chart of cost per chip-hour by system and class of cost.

Systems stand side by side. Each bar is cut by what is paid for.
"""

from __future__ import annotations

from collections.abc import Sequence

from tco.report.assumptions import marked, premise_lines
from tco.report.figures import WIDE
from tco.report.figures.scales import Linear, tick_words
from tco.report.figures.style import BODY, SMALL, series
from tco.report.figures.svg import Drawing, distinct, text_width, truncate_to_width
from tco.report.table import significant
from tco.scenario.result import Result

BAR, ROW = 26.0, 58.0  # pixels: of a bar, and from one to the next with its name above
REBATE = "rebate"
ESTIMATED = "~ based on an estimate or an assumption."


def cost_figure(results: Sequence[Result], width: float = WIDE) -> str:
    """Return the bars of cost as SVG, USD per chip-hour.

    Rebates stand to the left of 0.

    Args:
        results: Results of the scenarios, a bar each.
        width: Width of the figure, pixels.

    """
    sums = [by_asset(result) for result in results]
    assets = list(dict.fromkeys(asset for one in sums for asset in one))
    names = distinct([result.title for result in results], [result.scenario for result in results])
    nets = [result.metrics["tco_usd_per_chip_hour"] for result in results]
    words = "; ".join(
        f"{name} {significant(net) or 'none'}" for name, net in zip(names, nets, strict=True)
    )
    drawing = Drawing(
        "What a chip-hour costs",
        f"USD for a chip and calendar hour, net of rebates: {words}.",
        width,
    )
    drawing.paragraph(
        "USD for a chip and calendar hour, net of rebates; shares are of the cost before rebates"
    )
    looks = {
        asset: f"fill-{series(at)}"
        for at, asset in enumerate(name for name in assets if name != REBATE)
    } | {REBATE: "hollow"}
    drawing.legend([(looks[asset], asset) for asset in assets])
    room = text_width("~00.00 net", BODY, bold=True) + 8
    ends = [
        sum(value for value in one.values() if (value < 0) == below)
        for one in sums
        for below in (True, False)
    ]
    scale = Linear.over([0.0, *ends], drawing.left, drawing.right - room)
    top = drawing.bottom + 6
    foot = top + ROW * len(results)
    for value in scale.ticks(max(int((scale.end - scale.start) / 60), 2)):
        drawing.line((scale.position_of(value), top), (scale.position_of(value), foot), "grid")
        drawing.text(
            (scale.position_of(value), foot + 14),
            tick_words(value),
            "muted",
            SMALL,
            "middle" if value else "start",
        )
    for at, (result, name, net, one) in enumerate(zip(results, names, nets, sums, strict=True)):
        y = top + ROW * at + ROW - BAR - 6
        drawing.line((scale.position_of(0), y - 3), (scale.position_of(0), y + BAR + 3), "axis")
        drawing.text(
            (drawing.left, y - 6),
            truncate_to_width(name, drawing.right - drawing.left, BODY, bold=True),
            bold=True,
            halo=True,
        )
        stack(drawing, scale, y, one, looks)
        said = (
            "no cost here"
            if net is None
            else f"{marked(result, 'tco_usd_per_chip_hour', significant(net, 3))} net"
        )
        end = scale.position_of(sum(value for value in one.values() if value > 0))
        drawing.text((end + 6, y + BAR / 2 + 4), said, bold=True, halo=True)
    drawing.bottom = foot + 22
    drawing.paragraphs([*premise_lines(results), ESTIMATED])
    return drawing.svg()


def by_asset(result: Result) -> dict[str, float]:
    """Return the cost of each class of cost lines, USD per chip-hour.

    Classes are in the order of the lines. Classes without cost are left out.
    """
    found: dict[str, float] = {}
    for line in result.lines:
        found[line.asset] = found.get(line.asset, 0.0) + float(line.usd_per_chip_hour)
    return {asset: value for asset, value in found.items() if value}


def stack(
    drawing: Drawing, scale: Linear, y: float, sums: dict[str, float], looks: dict[str, str]
) -> None:
    """Draw one bar: what is paid from nought to the right, what is given back to the left, each
    with its share where there is room.
    """
    gross = sum(value for value in sums.values() if value > 0)
    right = left = 0.0
    for asset, value in sums.items():
        start, end = (right, right + value) if value > 0 else (left + value, left)
        right, left = (end, left) if value > 0 else (right, start)
        x, wide = scale.position_of(start), scale.position_of(end) - scale.position_of(start)
        share = f"{abs(value) / gross * 100:.0f} %"
        drawing.rectangle(
            x, y, wide, BAR, looks[asset], f"{asset}: {significant(value)} USD, {share}"
        )
        if wide > 1.5:
            drawing.line((x + wide, y), (x + wide, y + BAR), "gap")
        if value > 0 and text_width(share, SMALL) + 6 <= wide:
            drawing.text(
                (x + wide / 2, y + BAR / 2 + 4),
                share,
                looks[asset].replace("fill", "on"),
                SMALL,
                "middle",
            )
