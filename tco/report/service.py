"""A service under promises: the answer of `tco service`."""

from __future__ import annotations

from collections.abc import Sequence

from tco.catalog import Catalogue
from tco.comparison.service import METRICS, Service
from tco.core.types import JsonObject
from tco.report.record import Answer, Document, Maybe, Member, Record
from tco.report.table import Table, significant

LEFT_OUT = (
    "the memory beyond HBM that could keep caches is left out: what finds no room there is "
    "read again"
)
ONE = Record(
    Member("scenario", read="result.scenario"),
    Member("system", read="result.system"),
    Member("traffic", read="traffic.id"),
    Member("promises", [str], lambda one: list(map(str, one.promises))),
    Member("router"),
    Member("metrics", Record(*(Member(name, float) for name in METRICS))),
    Member("errors", {str: float}),
    Member("plan", {str: {str: float}}),
    Member("power_basis"),
    Member(
        "range",
        Maybe({str: {str: float}}),
        lambda one: one.range and {"usd_per_million_output_tokens": one.range},
    ),
    Member("share_of_best", float),
)
SERVICE = Document(
    "service",
    ONE.read_via(lambda found: found["rows"][0]),
    Member("rows", [ONE]),
    Member("notes", [str]),
)
ROW = Record(
    *(Member("scenario", read="result.scenario"), Member("traffic", read="traffic.id")),
    Member("promises", read=lambda one: "; ".join(map(str, one.promises))),
    *(Member(name, float, f"metrics.{name}") for name in METRICS),
    *(Member("share_of_best", float), Member("power_basis")),
)


def service_answer(
    catalogue: Catalogue, found: Sequence[Service], missed: Sequence[str] = ()
) -> Answer:
    """Return the least fleets, with their cost and the metrics of their requests.

    Args:
        catalogue: Catalogue of the answer.
        found: Services that keep their promises, at least one.
        missed: Notes on other scenarios, with the reason against each promise.

    """
    notes = [*missed, *(note for one in found for note in one.result.notes), LEFT_OUT]
    content = {"rows": found, "notes": notes}
    return SERVICE.answer(
        catalogue,
        content,
        lambda: [service_table(found)],
        (ROW, found),
        notes,
        of=lambda one: one.result.context,
    )


def service_table(found: Sequence[Service]) -> Table:
    """Return the figures of each, those of one alone with the errors of their simulation."""
    first, alone = found[0], len(found) == 1
    rows = []
    for name, metric in METRICS.items():
        sure = (
            [f"+- {significant(first.errors[name], 2)}" if name in first.errors else ""]
            if alone
            else []
        )
        rows.append(
            (
                metric.label,
                *(f"~{significant(one.metrics[name])}" for one in found),
                metric.unit,
                *sure,
            )
        )
    if not alone:
        rows.append(
            (
                "cost of the cheapest system over this one's, of what is bought",
                *(f"~{one.share_of_best * 100:.0f}" for one in found),
                "%",
            )
        )
    asked = ", ".join(map(str, first.promises))
    above = [
        f"Traffic: {first.traffic.id}, {first.traffic.values['requests_per_s']:g} requests/s, "
        f"router {first.router}. Promised: {asked}."
    ]
    above += [purchase_text(service) for service in found]
    below = [
        f"{one.result.scenario}, {phase}: {pool_engines_text(axes)}"
        for one in found
        for phase, axes in one.plan.items()
    ]
    below.append(
        f"Power: {first.power_basis}."
        + (" +-: one standard error of the simulation." if alone else "")
    )
    below += [range_text(service) for service in found if service.range]
    names = [one.result.scenario for one in found]
    return Table(
        ("figure", *names, "unit", *(["error"] if alone else [])),
        rows,
        "",
        above,
        below,
        "l" + "r" * len(found) + "ll",
    )


def purchase_text(service: Service) -> str:
    """Return a sentence on chips in use, chips bought and racks bought."""
    metrics = service.metrics
    racks = significant(metrics["racks"])
    return (
        f"{service.result.scenario}: {significant(metrics['chips'])} of "
        f"{significant(metrics['chips_bought'])} chips in use; "
        f"{racks} rack{'' if racks == '1' else 's'} bought."
    )


def range_text(service: Service) -> str:
    """Return the range of the cost of tokens, prices and software drawn."""
    percentiles = {name: significant(cost, 3) for name, cost in (service.range or {}).items()}
    cost = "of the cost per million output tokens, of what is bought, prices and software drawn"
    if "p90" in percentiles:
        ends = f"P10 to P90 {cost}: {percentiles['p10']} to {percentiles['p90']} USD"
    else:
        ends = (
            f"P10 {cost}: {percentiles.get('p10', 'none')} USD; there is no P90, as over 1 of "
            "10 draws misses the speed"
        )
    return f"{service.result.scenario}: {ends}."


def pool_engines_text(axes: JsonObject) -> str:
    """Return the engines of a pool in words."""
    rest = ", ".join(
        f"{name} {value:g}" for name, value in axes.items() if name not in ("engines", "chips")
    )
    return (
        f"{axes['engines']:g} engine{'s' if axes['engines'] > 1 else ''} of {axes['chips']:g} "
        f"chip{'s' if axes['chips'] > 1 else ''} ({rest})"
    )
