"""A service under promises: the answer of `tco service`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tco.catalog import Catalogue
from tco.comparison.service import METRICS, OF_WAITS, Service
from tco.comparison.trace_files import RequestTrace
from tco.core.types import JsonObject
from tco.report.record import Answer, Document, Maybe, Member, Record
from tco.report.table import Table, significant


def _measured(name: str, metrics: dict[str, float]) -> float | None:
    return metrics.get(name)


BEYOND_HBM = (
    "the memory beyond HBM that could keep caches is left out: what finds no room there is "
    "read again"
)
FIGURES = Record(
    *(
        Member(name, float | None, partial(_measured, name))
        if name in OF_WAITS
        else Member(name, float)
        for name in METRICS
    )
)
SERVED = Record(
    Member("scenario", read="result.scenario"),
    Member("system", read="result.system"),
    Member("traffic", read="traffic.id"),
    Member("promises", [str], lambda service: list(map(str, service.promises))),
    "router",
    Member("metrics", FIGURES),
    Member("errors", {str: float}),
    Member("plan", {str: {str: float}}),
    "power_basis",
    Member(
        "range",
        Maybe({str: {str: float}}),
        lambda service: service.range and {"usd_per_million_output_tokens": service.range},
    ),
    Member("share_of_best", float),
)
SERVICE = Document(
    "service",
    SERVED.read_via("rows.0"),
    Member("rows", [SERVED]),
    Member("notes", [str]),
)
ROW = Record(
    SERVED.only("scenario", "traffic"),
    Member("promises", read=lambda service: "; ".join(map(str, service.promises))),
    FIGURES.read_via("metrics"),
    SERVED.only("share_of_best", "power_basis"),
)


def service_answer(
    catalogue: Catalogue, services: Sequence[Service], missed: Sequence[str] = ()
) -> Answer:
    """Answer with the least fleets, their cost and the metrics of their requests.

    Args:
        catalogue: Catalogue of the answer.
        services: Services that keep their promises, at least one.
        missed: Notes on other scenarios, with the reason against each promise.

    """
    notes = [
        *missed,
        *(note for service in services for note in (*service.notes, *service.result.notes)),
        BEYOND_HBM,
    ]
    return SERVICE.answer(
        catalogue,
        {"rows": services, "notes": notes},
        lambda: [_service_table(services)],
        (ROW, services),
        notes,
        of=lambda service: service.result.context,
    )


def _service_table(services: Sequence[Service]) -> Table:
    """Tabulate the figures of each service, of a single one with the errors of its simulation."""
    first, single = services[0], len(services) == 1
    rows = []
    for name, metric in METRICS.items():
        cells = [_measured_text(service.metrics.get(name)) for service in services]
        error = f"+- {significant(first.errors[name], 2)}" if name in first.errors else ""
        rows.append((metric.label, *cells, metric.unit, *([error] if single else [])))
    if not single:
        shares = [f"~{service.share_of_best * 100:.0f}" for service in services]
        rows.append(
            ("cost of the cheapest system over this one's, of what is bought", *shares, "%")
        )
    promises = ", ".join(map(str, first.promises))
    above = [
        f"Traffic: {first.traffic.id}, {first.traffic.values['requests_per_s']:g} requests/s, "
        f"router {first.router}. Promised: {promises}.",
        *map(_purchase_text, services),
    ]
    below = [
        f"{service.result.scenario}, {phase}: {_pool_text(axes)}"
        for service in services
        for phase, axes in service.plan.items()
    ]
    errors = " +-: one standard error of the simulation." if single else ""
    below.append(f"Power: {first.power_basis}.{errors}")
    below += [_service_range_text(service) for service in services if service.range]
    names = [service.result.scenario for service in services]
    columns = ("figure", *names, "unit", *(["error"] if single else []))
    return Table(columns, rows, "", above, below, "l" + "r" * len(services) + "ll")


def _measured_text(value: float | None) -> str:
    return "-" if value is None else f"~{significant(value)}"


def _purchase_text(service: Service) -> str:
    """Print chips in use, chips bought and racks bought."""
    chips, chips_bought, racks = (
        significant(service.metrics[name]) for name in ("chips", "chips_bought", "racks")
    )
    return (
        f"{service.result.scenario}: {chips} of {chips_bought} chips in use; "
        f"{racks} rack{'' if racks == '1' else 's'} bought."
    )


def _service_range_text(service: Service) -> str:
    """Print the range of the cost of tokens, prices and software drawn."""
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


def _pool_text(axes: JsonObject) -> str:
    """Print the engines of a pool."""
    engines, chips = axes["engines"], axes["chips"]
    sizes = ", ".join(
        f"{name} {value:g}" for name, value in axes.items() if name not in ("engines", "chips")
    )
    return (
        f"{engines:g} engine{'s' if engines > 1 else ''} of {chips:g} "
        f"chip{'s' if chips > 1 else ''} ({sizes})"
    )


def trace_text(
    output: str,
    trace: str,
    requests: RequestTrace,
    means: Sequence[tuple[str, float, float, str]],
) -> str:
    """Print what a traffic document keeps of a trace, and what was left out.

    Args:
        output: File of the traffic document.
        trace: File of the trace.
        requests: Requests of the trace.
        means: Label, mean of the trace, simulated mean and unit.

    """
    lines = [f"{output}: {len(requests.arrived):,} requests of {trace}."]
    if requests.left_out:
        requests_word = "request" if requests.left_out == 1 else "requests"
        lines.append(f"Left out: {requests.left_out:,} {requests_word} of no prompt or no answer.")
    if requests.unread:
        lines.append(f"Columns that are not read: {', '.join(requests.unread)}.")
    lines += [
        f"Mean {label}: {significant(first, 4)} {unit} in the trace, "
        f"{significant(second, 4)} {unit} simulated."
        for label, first, second, unit in means
    ]
    lines.append(f"Try: tco service gb200-nvl72 --traffic {output}")
    return "".join(f"{line}\n" for line in lines)
