"""Cost lines: the table, the rows and the document of `tco price`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tco.chain.result import Result
from tco.economics.cost import CostLine, directness_of
from tco.foundation.provenance import SOURCED
from tco.outputs.comparison import bill_dates, kinds_in_words, missing_notes, premise
from tco.outputs.document import number
from tco.outputs.table import Table, significant

HEADER = ("path", "asset", "usd", "usd_per_chip_hour", "kind", "directness", "sources")


def cost_table(result: Result) -> Table:
    """Return the cost lines of one scenario by class of asset with its sum and its share, the largest line first within each."""
    rows: list[Sequence[str]] = []
    whole = float(result.metrics["tco_usd_per_chip_hour"])
    order = list(dict.fromkeys(line.asset for line in result.lines))
    for asset in order:
        lines = sorted((line for line in result.lines if line.asset == asset), key=lambda line: -abs(float(line.usd_per_chip_hour)))
        rows.append((asset.upper(), *sums(lines, whole), "", ""))
        for line in lines:
            own = " (own)" if line.overlay else ""
            rows.append((f"  {line.path.partition('/')[2] or line.path}", *sums([line], whole), line.kind + own, ", ".join(line.sources)))
    _, hourly, share = sums(result.lines, whole, 5)
    rows.append(("COST A CHIP-HOUR", "", hourly, share, "", ""))
    mark = "~" if hourly.startswith("~") else ""
    gross, used = result.metrics["tco_gross_usd_per_chip_hour"], result.metrics["tco_usd_per_used_chip_hour"]
    below = [
        f"Before rebates {mark}{significant(gross)}; a utilised chip-hour costs {mark}{significant(used)}. "
        f"USD of one scale-up domain of {result.metrics['chips']:g} chips.",
        f"Sourced/estimated/assumed: hardware price {kinds_in_words(result, 'hardware')}, terms and site {kinds_in_words(result, 'terms')}. "
        "~ based on an estimate or an assumption.",
        f"How direct the sources of the hardware price are: {directness_in_words(result)}.",
    ]
    return Table(("", "USD", "USD/chip-hour", "%", "kind", "source"), rows, result.title, [premise(result)], below, "lrrrll")


def sums(lines: Sequence[CostLine], whole: float, digits: int = 4) -> tuple[str, str, str]:
    """Return what some lines come to: the purchase, a chip-hour, marked where any of them rests on an estimate, and its share in per cent."""
    hourly = sum(float(line.usd_per_chip_hour) for line in lines)
    bought = [float(line.usd) for line in lines if line.usd is not None]
    mark = "" if all(line.kind in SOURCED for line in lines) else "~"
    return (significant(sum(bought)) if bought else ""), mark + significant(hourly, digits), f"{hourly / whole * 100:.1f}" if whole else ""


def directness_in_words(result: Result) -> str:
    """Return how direct the sources of the hardware's price are, in per cent of it; first-hand is always named."""
    shares = result.shares.get("directness", {})
    return ", ".join(f"{name} {share * 100:.0f} %" for name, share in shares.items() if share >= 0.005 or name == "first-hand") or "nothing is bought"


def cost_rows(result: Result) -> list[list[Any]]:
    """Return the CSV rows."""
    return [
        [
            line.path,
            line.asset,
            line.usd,
            line.usd_per_chip_hour,
            line.kind,
            directness_of(line, result.inputs),
            ";".join(line.sources),
        ]
        for line in result.lines
    ]


def cost_document(result: Result) -> dict[str, Any]:
    """Return the content of the JSON document."""
    lines = [
        {
            "path": line.path,
            "asset": line.asset,
            "usd": number(line.usd),
            "usd_per_chip_hour": number(line.usd_per_chip_hour),
            "kind": line.kind,
            "directness": directness_of(line, result.inputs),
            "sources": list(line.sources),
            "own": line.overlay,
        }
        for line in result.lines
    ]
    return {
        "scenario": result.scenario,
        "system": result.system,
        "lines": lines,
        "metrics": {name: number(value) for name, value in result.metrics.items()},
        "shares": {name: result.shares[name] for name in ("hardware", "terms") if name in result.shares},
        "directness": result.shares.get("directness", {}),
        "bill_dates": bill_dates(result),
        "notes": [*missing_notes(result), *result.notes, *result.ages.notes],
    }
