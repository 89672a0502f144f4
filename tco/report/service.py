"""A service under promises: the answer of `tco service`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tco.catalog import Catalogue
from tco.comparison.service import METRICS, OF_WAITS, PERCENTILES, UTILISATION, Service
from tco.comparison.trace_files import RequestTrace
from tco.performance.service.traffic import PROMISED, Promise
from tco.report.assumptions import premise_lines
from tco.report.ranges import rounded_percent
from tco.report.record import Answer, Document, Maybe, Member, Record
from tco.report.table import Table, significant
from tco.report.verdict import listed_names
from tco.scenario.result import set_of


def _measured(metric_name: str, metrics: dict[str, float]) -> float | None:
    return metrics.get(metric_name)


COST = "Cost of all that is bought"
BEYOND_HBM = (
    "only HBM keeps caches in this model; a prompt that finds no room there is computed again"
)
# what the table prints: heading -> metric -> (label with its unit, format, size of the unit)
GROUPS: dict[str, dict[str, tuple[str, str, float]]] = {
    "To buy": {
        "racks": ("racks", "{:,.4g}", 1),
        "chips_bought": ("chips in them (whole scale-up domains)", "{:,.0f}", 1),
        "chips": ("chips in use, spares for failures included", "{:,.0f}", 1),
    },
    COST: {
        "usd_per_month": ("USD per month, with purchase, hall, energy", "{:,.0f}", 1),
        "capex_with_hall_usd": ("  capex with hall, paid once, USD", "{:,.0f}", 1),
        "capex_usd": ("    capex of IT: racks, network, storage", "{:,.0f}", 1),
        "usd_per_million_output_tokens": ("USD per million output tokens", "{:,.2f}", 1),
        "usd_per_million_output_tokens_in_use": ("  of the chips in use alone", "{:,.2f}", 1),
        "usd_per_agent_hour": ("USD per hour of a session", "{:,.4f}", 1),
    },
    "Load": {
        "attainment": ("requests within all promises at once, %", "{:.1f}", 0.01),
        "rejected_share": ("requests rejected (longer than the context), %", "{:.1f}", 0.01),
        "utilisation": ("load of the chips in use, %", "{:.1f}", 0.01),
        "hit_rate": ("prompt tokens found in a cache, %", "{:.1f}", 0.01),
    },
    "Per chip in use": {
        "requests_per_s_per_chip": ("requests/s", "{:,.2f}", 1),
        "output_tokens_per_s_per_chip": ("output tokens/s", "{:,.0f}", 1),
        "agents_per_chip": ("sessions under way", "{:,.0f}", 1),
        "agents_per_mw": ("sessions under way per MW", "{:,.0f}", 1),
        "joule_per_token": ("joules per output token", "{:,.2f}", 1),
    },
}
# axes of a plan -> heading
PLAN_COLUMNS = {
    "engines": "instances",
    "chips": "chips each",
    "drafts": "draft tokens",
    **{axis: axis.upper() for axis in ("tp", "pp", "dp", "ep", "cp")},
    "batch": "batch",
}
FIGURES = Record(
    *(
        Member(metric_name, float | None, partial(_measured, metric_name))
        if metric_name in OF_WAITS
        else Member(metric_name, float)
        for metric_name in METRICS
    )
)
SERVED = Record(
    Member("scenario", read="result.scenario"),
    Member("system", read="result.system"),
    Member("traffic", read="traffic.id"),
    Member("promises", [str], lambda service: list(map(str, service.promises))),
    "router",
    Member("users", float, optional=True),
    Member("requests_per_s", float, lambda service: service.traffic.values["requests_per_s"]),
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
    SERVED.only("share_of_best", "power_basis", "users", "requests_per_s"),
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
        lambda: [_service_table(services), _waits_table(services), _plans_table(services)],
        (ROW, services),
        notes,
        of=lambda service: service.result.context,
    )


def _service_table(services: Sequence[Service]) -> Table:
    """Tabulate what is bought, its cost and its load, with a column for each service."""
    first = services[0]
    service_rows: list[Sequence[str]] = []
    for heading, group in GROUPS.items():
        service_rows.append((heading, *("" for _ in services)))
        for metric_name, (label, form, size) in group.items():
            cells = (
                _service_figure_text(service.metrics.get(metric_name), form, size)
                for service in services
            )
            service_rows.append((f"  {label}", *cells))
        if heading == COST and len(services) > 1:
            regrets = (f"{(1 / service.share_of_best - 1) * 100:.0f}" for service in services)
            service_rows.append(("  above the cheapest per token, %", *regrets))
    above = [*_premises(services), *_cheapest_texts(services), *map(_purchase_text, services)]
    if first.users is not None:
        above.append(_sessions_text(services, first.users))
    below = [_service_range_text(service) for service in services if service.range]
    if below:
        below.append("All other figures are of the base case.")
    else:
        below = ["Costs are of the base case; --samples 512 adds their median and P10 to P90."]
    below += [
        "The cost per month pays off the capex over its life. Capex of IT: before rebates. "
        "Capex with hall: less rebates.",
        "Every figure is an estimate. A session lasts from a request to the next of its user.",
        f"Sessions per MW and joules per output token count {first.power_basis}.",
    ]
    if "site.electricity_price" in first.result.inputs:
        below.append(_energy_words(first))
    scenario_names = [service.result.scenario for service in services]
    return Table(("", *scenario_names), service_rows, _service_title(services), above, below)


def _service_title(services: Sequence[Service]) -> str:
    """Name models, traffic, load and the mean lengths of the requests."""
    first = services[0]
    mean_tokens, precision = first.mean_tokens, first.result.texts["workload.precision"]
    models = dict.fromkeys(service.result.texts["workload.model"] for service in services)
    load = f"{first.traffic.values['requests_per_s']:g} requests/s"
    if first.users is not None:
        load = _sessions_words(first.users)
    return (
        f"Fewest racks that serve {', '.join(models)} in {precision.upper()} to "
        f"{first.traffic.id} traffic, {load}; on average {mean_tokens['prompt']:,.0f} tokens in, "
        f"{mean_tokens['answer']:,.0f} out"
    )


def _premises(services: Sequence[Service]) -> list[str]:
    """Return the buyer's terms and the promises."""
    promises = "; ".join(
        f"{PROMISED[promise.metric]} at most {_limit_text(promise)} for "
        f"{promise.quantile * 100:g} % of the requests"
        for promise in services[0].promises
    )
    scenario_results = [service.result for service in services]
    # the load decides how long chips work, unless their utilisation is set
    names_utilisation = any(UTILISATION in set_of(result) for result in scenario_results)
    return [*premise_lines(scenario_results, names_utilisation), f"Promise: {promises}."]


def _limit_text(promise: Promise) -> str:
    """Return the limit of a promise, in ms below a second."""
    return f"{promise.limit:g} s" if promise.limit >= 1 else f"{promise.limit * 1e3:g} ms"


def _energy_words(service: Service) -> str:
    """Return the sentence on the use of the chips whose energy is paid for."""
    if UTILISATION not in set_of(service.result):
        return (
            "The cost counts the energy of the load above; other chips that are bought draw what "
            "idle chips do. --set terms.utilisation=80% counts a share of the time for all of them."
        )
    return (
        "The cost counts the energy of chips at work "
        f"{rounded_percent(service.result.inputs[UTILISATION].value)} of the time, as "
        "terms.utilisation is set, whatever the load."
    )


def _waits_table(services: Sequence[Service]) -> Table:
    """Tabulate the waits of each service by percentile, ms, beside their promises."""
    wait_rows = []
    for service in services:
        limits = {promise.metric: promise for promise in service.promises}
        for wait_name, words in PROMISED.items():
            wait_metrics = [f"{wait_name}_p{percent}_s" for percent in PERCENTILES]
            promise = limits.get(wait_name)
            wait_rows.append(
                (
                    words,
                    service.result.scenario,
                    "-"
                    if promise is None
                    else f"P{promise.quantile * 100:g} <= {promise.limit * 1e3:,g} ms",
                    *(
                        _service_figure_text(service.metrics.get(wait_metric), "{:,.0f}", 1e-3)
                        for wait_metric in wait_metrics
                    ),
                    _service_figure_text(service.errors.get(wait_metrics[-1]), "{:,.1f}", 1e-3),
                )
            )
    percentiles = (f"P{percent}, ms" for percent in PERCENTILES)
    columns = ("wait", "system", "promise", *percentiles, f"P{PERCENTILES[-1]} +-, ms")
    below = ["P90: 9 of 10 requests wait no longer. +-: one standard error of the simulation."]
    return Table(columns, wait_rows, "Waits that users see", below=below, align="lll")


def _plans_table(services: Sequence[Service]) -> Table:
    """Tabulate the instances that read and write, and how each splits the model."""
    columns = [
        column
        for column in PLAN_COLUMNS
        if any(column in axes for service in services for axes in service.plan.values())
    ]
    plan_rows = [
        (
            "prefill and decode" if phase == "both" else phase,
            service.result.scenario,
            *(f"{axes[column]:,.0f}" if column in axes else "-" for column in columns),
        )
        for service in services
        for phase, axes in service.plan.items()
    ]
    below = [
        "TP, PP, DP, EP, CP: over how many chips tensors, layers, requests, experts and context "
        "are split. Batch: most sequences at once per instance. Draft tokens: what speculative "
        "decoding proposes at a time."
    ]
    headings = ("work", "system", *(PLAN_COLUMNS[column] for column in columns))
    return Table(headings, plan_rows, "Instances of the model", below=below, align="ll")


def _service_figure_text(metric_value: float | None, form: str, size: float) -> str:
    return "-" if metric_value is None else form.format(metric_value / size)


def _purchase_text(service: Service) -> str:
    """Print the racks to buy, and how many of their chips are in use."""
    chips, chips_bought, racks = (
        significant(service.metrics[metric_name])
        for metric_name in ("chips", "chips_bought", "racks")
    )
    racks_word = "rack" if racks == "1" else "racks"
    return (
        f"{service.result.scenario}: buy {racks} {racks_word}; {chips} of {chips_bought} chips "
        f"are in use. All costs together are {service.metrics['usd_per_month']:,.0f} USD per month."
    )


def _cheapest_texts(services: Sequence[Service]) -> list[str]:
    """Return the sentences on the cheapest of several services, and on a large fleet's choice."""
    if len(services) < 2:
        return []
    cheapest = _cheapest_by("usd_per_month", services)
    large_fleet = _cheapest_by("usd_per_million_output_tokens_in_use", services)
    names = listed_names(service.result.scenario for service in cheapest)
    cost = f"{cheapest[0].metrics['usd_per_month']:,.0f} USD per month"
    lines = [f"Cheapest: {names}, {cost}."]
    if len(cheapest) > 1:
        lines = [f"Tie: {names} cost the same, {cost}."]
    if large_fleet != cheapest:
        names = listed_names(service.result.scenario for service in large_fleet)
        lines.append(
            "Whole racks are bought here. By the chips in use alone, as in the large fleet of "
            f"`tco compare`, {names} would cost least per token."
        )
    return lines


def _cheapest_by(metric_name: str, services: Sequence[Service]) -> list[Service]:
    least = min(service.metrics[metric_name] for service in services)
    return [service for service in services if service.metrics[metric_name] == least]


def _sessions_words(users: int) -> str:
    return f"{users:,} session{'' if users == 1 else 's'} at once"


def _sessions_text(services: Sequence[Service], users: int) -> str:
    """Return the rates that follow from the sessions on each system, and on which assumption."""
    rates = [service.traffic.values["requests_per_s"] for service in services]
    thinking = services[0].traffic.thinking
    periods = [users / rate for rate in rates]
    return (
        f"{_sessions_words(users)} send {_span(rates, 4)} requests/s by Little's law. Each sends "
        f"one every {_span(periods, 3)} s: {_span([period - thinking for period in periods], 3)} s "
        f"until its answer is complete, and {significant(thinking, 3)} s of thinking."
    )


def _span(amounts: Sequence[float], digits: int) -> str:
    """Return the least and the largest of some amounts, one where they print the same."""
    low, high = (significant(end(amounts), digits) for end in (min, max))
    return low if low == high else f"{low} to {high}"


def _service_range_text(service: Service) -> str:
    """Print the range of the cost of tokens over draws of prices and software."""
    percentiles = {
        percentile_name: significant(cost, 3)
        for percentile_name, cost in (service.range or {}).items()
    }
    cost = f"{service.result.scenario}, USD per million output tokens over the draws"
    if "p90" in percentiles:
        ends = f"P10 to P90 {percentiles['p10']} to {percentiles['p90']}"
    else:
        ends = (
            f"P10 {percentiles.get('p10', 'none')}; no P90, as over 1 in 10 draws misses the speed"
        )
    median = f"median {percentiles['p50']}, " if "p50" in percentiles else ""
    return f"{cost}: {median}{ends}."


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
        lines.append(
            f"{requests.left_out:,} {requests_word} without a prompt or an answer not counted."
        )
    if requests.unread:
        lines.append(f"Columns that are not read: {', '.join(requests.unread)}.")
    lines += [
        f"Mean {label}: {significant(first, 4)} {unit} in the trace, "
        f"{significant(second, 4)} {unit} simulated."
        for label, first, second, unit in means
    ]
    lines.append(f"Try: tco service gb200-nvl72 --traffic {output}")
    return "".join(f"{line}\n" for line in lines)
