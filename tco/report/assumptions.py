"""Premises of a result in words and as records.

The premises are workload, terms, formats, measurements and requested settings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from tco.core.types import JsonMapping, JsonObject
from tco.cost.price_dates import Available
from tco.performance.deployment import APART, BENCHMARK, FLEET, OPERATED_BY, SERVER
from tco.performance.serving.plans import DRAFTS, ServingPlan
from tco.performance.software_maturity import DRAWN, LEVELS, PUBLIC, SOFTWARE, THE_BEST
from tco.report.record import Maybe, Member, Record
from tco.report.table import significant
from tco.scenario.choices import USUAL
from tco.scenario.metrics import METRICS, PERFORMANCE, RATIOS
from tco.scenario.resolved import ResolvedScenario
from tco.scenario.result import Result, in_words, why_absent

# What tables print, in readable units: heading -> metric -> (label, unit shown, size of that unit
# in the metric's own)
GROUPS: dict[str, dict[str, tuple[str, str, float]]] = {
    "performance per TCO, more is better": {
        "perf_per_tco_vs_baseline": ("performance per TCO", "x", 1),
        "perf_per_tco_gross_vs_baseline": ("performance per TCO before rebates", "x", 1),
    },
    "cost, less is better": {
        "usd_per_million_output_tokens": ("cost per million output tokens", "USD", 1),
        "usd_per_million_tokens": ("cost per million tokens, in and out", "USD", 1),
        "train_usd_per_trillion_tokens": ("cost per trillion training tokens", "million USD", 1e6),
        "tco_usd_per_used_chip_hour": ("cost per used chip-hour", "USD", 1),
        "tco_usd_per_chip_hour": ("cost per chip-hour", "USD", 1),
        "tco_gross_usd_per_chip_hour": ("cost per chip-hour before rebates", "USD", 1),
        "usd_per_peak_fp8_pflop_hour": ("cost per dense FP8 PFLOP/s-hour", "USD", 1),
        "capex_usd_per_chip": ("capex per chip", "USD", 1),
        "network_usd_per_chip": ("of which network", "USD", 1),
        "rebate_usd_per_chip": ("rebates per chip", "USD", 1),
    },
    "speed": {
        "output_tokens_per_s_per_chip": ("output tokens/s per chip", "", 1),
        "tokens_per_s_per_user": ("tokens/s per user", "", 1),
        "tokens_per_s_per_facility_mw": ("tokens/s per MW of site", "", 1),
        "step_s": ("training step", "s", 1),
        "mfu": ("model FLOPs utilisation", "%", 0.01),
        "exposed_communication": ("exposed communication, of a step", "%", 0.01),
        "pipeline_bubble": ("pipeline bubble, of a step", "%", 0.01),
    },
    "hardware and assumptions": {
        "chips": ("chips in the scale-up domain", "", 1),
        "it_power_w_per_chip": ("IT power per chip", "W", 1),
        "grid_co2e_g_per_chip_hour": ("grid CO2e per chip-hour", "g", 1),
        "embodied_co2e_g_per_chip_hour": ("embodied CO2e per chip-hour", "g", 1),
        "peak_fp8_flop_per_s": ("dense FP8 peak", "PFLOP/s", 1e15),
        "hbm_bytes": ("HBM", "GB", 1e9),
        "hbm_byte_per_s": ("HBM bandwidth", "TB/s", 1e12),
        "scale_up_byte_per_s": ("scale-up bandwidth, per direction", "GB/s", 1e9),
    },
}
SHOWN = [(metric, *how) for group in GROUPS.values() for metric, how in group.items()]
COSTS = {
    name for name in METRICS if any(word in name for word in ("usd", "power", "co2e"))
} | RATIOS
SEVERAL = "several workloads"
PHASES = ("decode", "prefill", "step")


def is_estimated(result: Result, metric: str) -> bool:
    """Say whether a metric rests on an estimate, an assumption or a prior."""
    firm = bool(result.shares) and all(
        kinds.get("sourced", 1.0) >= 0.9995 for kinds in result.shares.values()
    )
    return (metric in COSTS and not firm) or metric in PERFORMANCE


def marked(result: Result, metric: str, text: str) -> str:
    """Mark a number with a tilde where it rests on an estimate, an assumption or a prior."""
    if not text:
        return "-"
    return f"~{text}" if is_estimated(result, metric) else text


def premise_lines(results: Sequence[Result]) -> list[str]:
    """Return the lines that state perspective, date, life, rate, utilisation, site and halls."""
    if not results:
        return []
    halls = {result.hall_cooling for result in results}
    if len(halls) == 1:
        return _by_words(results, premise)
    return [*premises_without_halls(results), _hall_words(results)]


def premises_without_halls(results: Sequence[Result]) -> list[str]:
    """Return the lines that state perspective, date, life, rate, utilisation and site."""
    return _by_words(results, partial(premise, names_hall=False))


def _hall_words(results: Sequence[Result]) -> str:
    """Name the racks that stand in each hall of their site, in one line."""
    racks: dict[str, list[str]] = {}
    for result in results:
        if result.hall_cooling is not None:
            racks.setdefault(result.hall_cooling, []).append(result.scenario)
    halls = (f"{cooling} for {', '.join(names)}" for cooling, names in racks.items())
    return f"Halls: {'; '.join(halls)}"


def workloads(results: Sequence[Result]) -> list[str]:
    """Return the lines that say who does what, where the title could not."""
    return _by_words(results, workload_words) if workload_line(results) == SEVERAL else []


def _by_words(results: Sequence[Result], words: Callable[[Result], str]) -> list[str]:
    """Return lines about `results`, the most frequent line written once.

    A line common to all results stands alone. Otherwise every result that differs from the most
    frequent line gets a line with its scenario, and the most frequent line comes last. Where no
    line occurs twice, every result has its own line.
    """
    lines = [words(result) for result in results]
    most = max(lines, key=lines.count)
    if lines.count(most) == len(lines):
        return [most]
    rest = [
        f"{result.scenario}: {line}"
        for result, line in zip(results, lines, strict=True)
        if line != most or lines.count(most) == 1
    ]
    return rest if lines.count(most) == 1 else [*rest, f"the others: {most}"]


def premise(result: Result, names_hall: bool = True) -> str:
    """Return the terms and the site a result rests on, in one line.

    A renter has no rate, no site, and a contract in place of a life.
    """
    inputs, texts = result.inputs, result.texts
    terms = {
        name: inputs[f"terms.{name}"].value
        for name in ("life", "rate", "utilisation")
        if f"terms.{name}" in inputs
    }
    owner = texts.get("terms.owner")
    parts = [
        f"Buyer {owner} ({result.perspective})" if owner else f"Buyer: {result.perspective}",
        f"prices of {texts['terms.date']}",
    ]
    if "life" in terms:
        span = "life" if "rate" in terms else "contract of"
        parts.append(f"{span} {terms['life']:g} years")
    parts += [
        f"{words} {terms[name] * 100:g} %"
        for name, words in (("rate", "cost of capital"), ("utilisation", "utilisation"))
        if name in terms
    ]
    return " | ".join([*parts, *_site_words(result, names_hall)])


def _site_words(result: Result, names_hall: bool) -> list[str]:
    """Name the site, its hall and the price of its electricity; none where no site counts."""
    price = result.inputs.get("site.electricity_price")
    if price is None:
        return []
    value, unit = price.shown or (price.value, price.unit)
    name = result.origin.documents.get("site") if result.origin else None
    hall = f", {result.hall_cooling} hall," if names_hall and name and result.hall_cooling else ""
    return [f"{name or 'electricity'}{hall} at {significant(value)} {unit}"]


def kinds_in_words(result: Result, name: str) -> str:
    """Return sourced, estimated and assumed percentages of price or terms `name`.

    The text is "-" where the result has no such shares.
    """
    kinds = result.shares.get(name)
    return "/".join(f"{share * 100:.0f}" for share in kinds.values()) + " %" if kinds else "-"


def kinds_in_sentence(result: Result, name: str) -> str:
    """Return the shares of price or terms `name` by kind, such as `88 % sourced`."""
    words = {"sourced": "sourced", "estimate": "estimated", "assumed": "assumed"}
    kinds = result.shares.get(name) or {}
    return ", ".join(f"{share * 100:.0f} % {words[kind]}" for kind, share in kinds.items()) or "-"


def workload_title(results: Sequence[Result], target: bool = True) -> str:
    """Return the workload, before it the perspectives where they are not one.

    Args:
        results: Results of the scenarios.
        target: Whether to name the speed that the workload asks for.

    """
    views = {result.scenario: result.perspective for result in results}
    line = workload_line(results, target)
    if len(set(views.values())) == 1:
        return line
    words = ", ".join(f"{name} {view}" for name, view in views.items())
    return f"different perspectives: {words} | {line}"


def workload_line(results: Sequence[Result], target: bool = True) -> str:
    """Return the workload in words, where all results share it.

    Formats that differ have rows of their own.
    """
    for formats in (None, _common_formats(results)):
        lines = {workload_words(result, formats, target) for result in results}
        if len(lines) == 1:
            return lines.pop()
    return SEVERAL


PARTS = {
    "precision": "weights",
    "attention_format": "attention",
    "expert_format": "experts",
    "attention_core_format": "attention core",
}


def _displayed_formats(result: Result) -> dict[str, str]:
    """Return the format of the weights, and of parts that have another and not the usual one."""
    texts = result.texts
    weights = texts.get("workload.precision")  # no model, no format
    if weights is None:
        return {}
    formats = {PARTS["precision"]: weights}
    for name, part in PARTS.items():
        path = f"workload.{name}"
        if texts.get(path, weights) not in (weights, USUAL.get(path)):
            formats[part] = texts[path]
    return formats


def _formats_words(formats: Mapping[str, str]) -> str:
    """Print formats: that of the weights, then those of parts that have another."""
    parts = ", ".join(
        f"{part} {form.upper()}" for part, form in formats.items() if part != PARTS["precision"]
    )
    weights = formats.get(PARTS["precision"], "").upper()
    return f"{weights} ({parts})" if weights and parts else weights or parts


def _common_formats(results: Sequence[Result]) -> dict[str, str]:
    first, *rest = map(_displayed_formats, results)
    return {
        part: form
        for part, form in first.items()
        if all(formats.get(part) == form for formats in rest)
    }


def formats_rows(results: Sequence[Result]) -> list[Sequence[str]]:
    """Return a row for each part whose format differs between results."""
    shared, formats = _common_formats(results), list(map(_displayed_formats, results))
    return [
        (
            f"format of {part}",
            *(column.get(part, column.get(PARTS["precision"], "-")).upper() for column in formats),
        )
        for part in PARTS.values()
        if part not in shared and any(part in column for column in formats)
    ]


SOFTWARE_WORDS = {
    DRAWN: "between what is public and the best written by hand, as far as is believed of each "
    "family",
    PUBLIC: "as it is public by the date",
    THE_BEST: "the best written by hand for such chips",
}

OPERATOR_WORDS = {
    SERVER: "whole engines of one server",
    APART: "pools of published sizes",
    BENCHMARK: "as published benchmarks are run",
}


def software_maturity_text(results: Sequence[Result]) -> str:
    """Return the software maturity of `results` in words.

    The text is "software differs" where the results differ.
    """
    software_maturities = {result.texts.get(SOFTWARE, DRAWN) for result in results}
    if len(software_maturities) > 1:
        return "software differs"
    (software,) = software_maturities
    fallback_words = (
        f"of {software}" if software[:1].isdigit() else f"all in the practice of {software}"
    )
    return f"software {SOFTWARE_WORDS.get(software, fallback_words)}"


def workload_words(
    result: Result, formats: Mapping[str, str] | None = None, target: bool = True
) -> str:
    """Return the workload of a result in words.

    Args:
        result: Result of a scenario.
        formats: Formats to name; None names all.
        target: Whether to name the speed that the workload asks for.

    """
    texts = result.texts
    if texts["workload.kind"] == "stated":
        return "no model is run: rates, if any, are stated"
    values = {
        path.partition(".")[2]: input_record.value
        for path, input_record in result.inputs.items()
        if path.startswith(("workload.", "cluster."))
    }
    if texts["workload.kind"] == "training":
        step = (
            f"{values['global_batch']:,.0f} sequences of {values['sequence_length']:,.0f} "
            "tokens per step"
        )
        return (
            f"{texts['workload.model']} training, {step}, "
            f"{texts['workload.precision'].upper()}, {values['chips']:,.0f} chips"
        )
    parts = [
        texts["workload.model"],
        f"{values['input_tokens']:,.0f} tokens in, {values['output_tokens']:,.0f} out",
        _formats_words(_displayed_formats(result) if formats is None else formats),
    ]
    # of a held plan there is none
    if target and "interactivity" in values:
        parts.append(f"at least {values['interactivity']:g} tokens/s per user")
    return ", ".join(filter(None, parts))


def binding(result: Result, phase: str) -> str:
    """Return the bound that takes the most time of a phase, with its share."""
    bounds = result.bounds.get(phase)
    if not bounds:
        return "-"
    name = max(bounds, key=lambda key: bounds[key])
    return f"{name} {bounds[name] * 100:.0f} %"


# how a result stands against measurements
VALIDATED = Record(
    Record(
        Member("rows", int, "validated_rows"),
        Member("anchored_rows", int),
        Member("median_ape", float | None, "median"),
        Member("left_out_ape", float | None, "left_out"),
        "path",
        "text",
    ).read_via("standing"),
    "order",
)
# of the price, and of terms and site: sourced, estimated, assumed; then by how direct sources are
SHARES = Record(
    Member(
        "shares",
        {str: {str: float}},
        lambda result: {
            name: shares for name, shares in result.shares.items() if name != "directness"
        },
    ),
    Member("directness", {str: float}, lambda result: result.shares.get("directness", {})),
)
WAITING = Record(
    Member("available", Maybe(Record(*Available._fields[:-1]))),
    Member("waiting_usd_per_chip", float | None, "metrics.waiting_usd_per_chip"),
)
# of the prices of a bill, and of when its racks come
DELIVERY = Record(
    Member(
        "bill_dates",
        {str: float},
        lambda result: {
            name: getattr(result.ages, name) for name in ("later", "older", "hour_older")
        },
    ),
    Member("hall_cooling", str | None),
    WAITING,
)


def available_words(result: Result) -> list[str]:
    """Print when a system is there, and the cost of waiting; empty where nobody states it."""
    available, cost = result.available, result.metrics["waiting_usd_per_chip"]
    if available is None:
        return []
    months = f"the {available.months:.0f} months until then"
    wait = f"; {months} cost ~{significant(cost, 3)} USD per chip" if cost else ""
    return [
        f"Available from {available.general or '-'}, in volume from ~{available.words}{wait}. "
        f"If it is ordered now, it serves from ~{available.first_token or '-'}."
    ]


NAMED = ("terms.date", "workload.model", "workload.software", "workload.engine")


def requested_settings(result: Result) -> JsonObject:
    """Return the requested settings of `result` by name."""
    documents = result.origin.documents if result.origin else {}
    settings: JsonObject = {
        name: documents.get(name) for name in ("site", "terms", "workload", "cluster")
    }
    settings |= {path.partition(".")[2]: result.texts.get(path) for path in NAMED}
    software = settings["software"] or DRAWN
    own_practice = software in LEVELS or software[:1].isdigit()
    settings["practice"] = "own" if own_practice else software
    settings["formats"] = {
        path.partition(".")[2]: text
        for path, text in sorted(result.texts.items())
        if path == "workload.precision" or path.endswith("_format")
    }
    return settings


CONTEXT = ("scenario", "system", "date", "site", "set")  # what a row of a CSV is of


def context_of_system(inputs: ResolvedScenario) -> JsonObject:
    """Return the context columns of a CSV row without a workload."""
    scenario = inputs.scenario
    settings = {path: text for path, text in inputs.settings.items() if isinstance(text, str)}
    return {
        "scenario": scenario.name,
        "system": inputs.system.id,
        "date": inputs.date,
        "site": scenario.documents["site"],
        "set": in_words(settings),
    }


def _result_draft_tokens(result: Result) -> float | None:
    """Return the draft tokens per step of a serving plan.

    The value is None where the result has no serving plan.
    """
    if not isinstance(result.plan, ServingPlan):
        return None
    stated = result.inputs.get(DRAFTS)  # on a plan that is held, whatever it drafts
    return float(result.plan.decode.drafts if stated is None else stated.value)


def deployed(result: Result) -> JsonObject:
    """Return the production settings of `result` by name.

    The settings are draft tokens, formats, practice, software and engine.
    """
    more = {
        name: result.texts.get(f"workload.{name}") for name in ("practice", "software", "engine")
    }
    return {
        "draft_tokens": _result_draft_tokens(result),
        "formats": requested_settings(result)["formats"],
        **more,
    }


PROMISED = {"tokens_per_s_per_user": "workload.interactivity", "ttft_s": "workload.ttft"}


def promise(result: Result) -> dict[str, float | None]:
    """Return the promised speed and first-token latency of every user.

    A value is None where nothing is promised.
    """
    return {
        name: result.inputs[path].value or None
        for name, path in PROMISED.items()
        if path in result.inputs
    }


def deployed_words(results: Sequence[Result]) -> str:
    """Return draft tokens, software maturity and operator of `results` in words.

    Software is left out where every result draws it. A fleet as operator is left out.
    """
    words = []
    drafts = set(map(_result_draft_tokens, results))
    count = drafts.pop()
    if drafts:
        words.append("speculative decoding differs")
    elif count is not None:
        tokens = f"of {count:g} token{'' if count == 1 else 's'}"
        words.append(f"speculative decoding {tokens if count else 'off'}")
    if any(result.texts.get(SOFTWARE, DRAWN) != DRAWN for result in results):
        words.append(software_maturity_text(results))
    operators = {result.texts.get(OPERATED_BY, FLEET) for result in results} - {FLEET}
    if operators:
        operator = operators.pop()
        words.append("operators differ" if operators else OPERATOR_WORDS[operator])
    return ", ".join(words)


def values_by_scenario(
    results: Sequence[Result],
    values_of: Callable[[Result], JsonMapping] = requested_settings,
) -> JsonObject:
    """Return values by name, merged where all results agree.

    A value that differs is a mapping from scenario to value.

    Args:
        results: Results of the scenarios.
        values_of: Function that returns the values of a result by name.

    """
    by_name: dict[str, JsonObject] = {}
    for result in results:
        for name, value in values_of(result).items():
            by_name.setdefault(name, {})[result.scenario] = value
    return {
        name: next(iter(values.values())) if len(set(map(str, values.values()))) == 1 else values
        for name, values in by_name.items()
    }


def plan_option_text(plan: JsonMapping | None) -> str:
    """Return the axes of a plan as `--plan` takes them."""
    return ",".join(
        f"{name}={value:g}"
        for name, value in (plan or {}).items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    )


def missing_notes(result: Result) -> list[str]:
    """Return a note for every reason that leaves metrics null."""
    absent: dict[str, list[str]] = {}
    for name, value in result.metrics.items():
        if value is None:
            absent.setdefault(why_absent(result, name), []).append(name)
    return [f"not computed: {', '.join(names)}: {why}" for why, names in absent.items()]
