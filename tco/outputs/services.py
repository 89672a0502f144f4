"""A service under promises: the answer of `tco service`."""

from __future__ import annotations

from typing import Any

from tco.catalog import Catalogue
from tco.outputs.record import Answer, Document, Maybe, Member, Record
from tco.outputs.table import Table, significant
from tco.studies.service import METRICS, Service


def notes_of(found: Service) -> list[str]:
    """Return the notes of an answer."""
    return [*found.result.notes, "the memory beyond HBM that could keep caches is left out: what finds no room there is read again"]


SERVICE = Document(
    "service",
    Member("scenario", read="result.scenario"),
    Member("system", read="result.system"),
    Member("traffic", read="traffic.id"),
    Member("promises", [str], lambda one: list(map(str, one.promises))),
    Member("router"),
    Member("metrics", Record(*(Member(name, float) for name in METRICS))),
    Member("errors", {str: float}),
    Member("plan", {str: {str: float}}),
    Member("power_basis"),
    Member("range", Maybe({str: {str: float}}), lambda one: one.range and {"usd_per_million_output_tokens": one.range}),
    Member("notes", [str], notes_of),
)
ROW = Record(
    *(Member("scenario", read="result.scenario"), Member("traffic", read="traffic.id")),
    Member("promises", read=lambda one: "; ".join(map(str, one.promises))),
    *(Member(name, float, f"metrics.{name}") for name in METRICS),
    Member("power_basis"),
)


def service_answer(catalogue: Catalogue, found: Service) -> Answer:
    """Return the least fleet, what it costs and what its requests see."""
    return SERVICE.answer(catalogue, found, lambda: [service_table(found)], (ROW, [found]), notes_of(found), of=found.result.context)


def service_table(found: Service) -> Table:
    """Return the figures, each with the error of its simulation."""
    rows = []
    for name, metric in METRICS.items():
        sure = f"+- {significant(found.errors[name], 2)}" if name in found.errors else ""
        rows.append((metric.label, f"~{significant(found.metrics[name])}", metric.unit, sure))
    asked = ", ".join(map(str, found.promises))
    above = [f"Traffic: {found.traffic.id}, {found.traffic.values['requests_per_s']:g} requests/s, router {found.router}. Promised: {asked}."]
    below = [f"{phase}: {axes_text(axes)}" for phase, axes in found.plan.items()]
    below.append(f"Power: {found.power_basis}. +-: one standard error of the simulation.")
    if found.range:
        ends = " to ".join(significant(found.range[name], 3) for name in ("p10", "p90") if name in found.range)
        below.append(f"P10 to P90 of the cost per million output tokens, prices and practice drawn on this plan: {ends} USD.")
    return Table(("figure", "value", "unit", "error"), rows, found.result.title, above, below, "lrll")


def axes_text(axes: dict[str, Any]) -> str:
    """Return the engines of a pool in words."""
    rest = ", ".join(f"{name} {value:g}" for name, value in axes.items() if name not in ("engines", "chips"))
    return f"{axes['engines']:g} engine{'s' if axes['engines'] > 1 else ''} of {axes['chips']:g} chip{'s' if axes['chips'] > 1 else ''} ({rest})"
