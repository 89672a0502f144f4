"""How sure a comparison is, as `tco compare` says it: rows under the answer, lines below the table, keys of the document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tco.chain.metrics import METRICS
from tco.outputs.table import significant

if TYPE_CHECKING:
    from tco.studies.sureness import Driver, Sureness

RATIO, TRAINING_COST = "perf_per_tco_vs_baseline", "train_usd_per_trillion_tokens"
MILLION = 1e6
DIGITS = 2  # of a range


def range_rows(found: Sequence[Sureness]) -> list[tuple[str, ...]]:
    """Return the rows of the table under the answer: its range, and the chance to beat the baseline; of training the range of its cost."""
    rows: list[tuple[str, ...]] = []
    for metric, label, size in ((RATIO, "P10 to P90", 1.0), (TRAINING_COST, "P10 to P90 of a trillion training tokens, million USD", MILLION)):
        cells = [between(one, metric, size) for one in found]
        if any(cell != "-" for cell in cells):
            rows.append((label, *cells))
    if any(one.drivers for one in found):
        rows.append(("chance to be better", *(percent(one.probability if one.drivers else None) for one in found)))
    if any(one.meets is not None for one in found):
        rows.append(("draws on target", *(percent(one.meets) for one in found)))
    return rows


def between(one: Sureness, metric: str, size: float) -> str:
    """Return the range of a metric in words; the baseline's ratio to itself has none."""
    some = one.range(metric)
    if some is None or some["p10"] == some["p90"]:
        return "-"
    low, high = (significant(some[at] / size, DIGITS) for at in ("p10", "p90"))
    return f"{low} to {high}"


def percent(share: float | None) -> str:
    """Return a share in whole per cent; some hundred draws cannot tell it from none or all."""
    if share is None:
        return "-"
    return "<1 %" if share < 0.005 else ">99 %" if share > 0.995 else f"{share * 100:.0f} %"


def range_lines(names: Sequence[str], found: Sequence[Sureness]) -> list[str]:
    """Return what drives each answer and what would flip it, and how the ranges were found."""
    driven = [(name, of.drivers) for name, of in zip(names, found, strict=bool(found)) if of.drivers]
    lines = [f"{name} is moved most by {'; '.join(map(driver_words, drivers))}." for name, drivers in driven]
    return [*lines, *drawn_words(found)]


def drawn_words(found: Sequence[Sureness]) -> list[str]:
    """Return how the ranges were found, if there are any."""
    draws = max((of.draws for of in found), default=0)
    said = f"Ranges: {draws} draws of every input within its low and high, plan and structure held; ratio and chance count draws that both meet."
    return [said] if draws else []


def driver_words(one: Driver) -> str:
    """Return an input with its swing and where it flips the order, in the unit the catalogue writes it in."""
    flips = "does not flip" if one.flips_at is None else f"flips {turn_words(one.flips_at, one.value, one.unit, one.shown)}"
    return f"{one.path} ({one.swing:+.2f}, {flips})"


def turn_words(at: float, value: float, unit: str, shown: tuple[float, str] | None) -> str:
    """Say on which side of about which value of an input the order turns, in the unit the catalogue writes it in."""
    number, unit = shown if shown and shown[0] else (value, unit)
    scale = number / value if value else 1.0
    return f"{'below' if at < value else 'above'} about {significant(at * scale, DIGITS)} {unit}".rstrip()


def range_keys(one: Sureness) -> dict[str, Any]:
    """Return what the row of a scenario says of its ranges in the JSON document."""
    return {
        "range": {metric: one.range(metric) for metric in METRICS},
        "probability_better_than_baseline": one.probability,
        "share_of_draws_that_meet_the_target": one.meets,
        "drivers": [{"path": each.path, "swing": each.swing, "flips_at": each.flips_at, "unit": each.unit} for each in one.drivers],
    }
