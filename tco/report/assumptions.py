"""Premises of a result in words and as records.

The premises are workload, terms, formats, measurements and requested settings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from tco.core.mappings import lists_by_key
from tco.core.provenance import Input
from tco.core.types import JsonMapping, JsonObject
from tco.cost.waiting import Available
from tco.performance.deployment import APART, BENCHMARK, FLEET, OPERATED_BY, SERVER
from tco.performance.serving.plans import DRAFTS, ServingPlan
from tco.performance.software_maturity import (
    BEST_LEVEL,
    DRAWN,
    PUBLIC,
    SOFTWARE,
    SOFTWARE_LEVELS,
)
from tco.report.record import Maybe, Member, Record
from tco.report.table import significant
from tco.scenario.choices import USUAL
from tco.scenario.metrics import METRICS, PERFORMANCE, RATIOS
from tco.scenario.resolved import ResolvedScenario
from tco.scenario.result import Result, in_words, why_absent
from tco.scenario.workload_sizing import CHIPS, SECONDS_PER_DAY, TRAIN_TOKENS

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
        "train_usd": ("cost of training on all tokens of the job", "million USD", 1e6),
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
        "train_time_s": ("training on all tokens of the job, with stops", "days", SECONDS_PER_DAY),
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
_SHOWN_BY_METRIC = {metric: how for group in GROUPS.values() for metric, how in group.items()}
COSTS = {
    metric_name
    for metric_name in METRICS
    if any(word in metric_name for word in ("usd", "power", "co2e"))
} | RATIOS
# kinds of a price's sources -> words
SOURCE_KINDS = {"sourced": "sourced", "estimate": "estimated", "assumed": "assumed"}
SEVERAL = "several workloads"
PHASES = ("decode", "prefill", "step")
HYPERSCALER = "hyperscaler"  # buyer of the headline, on whose terms those of others rest


def shown_metric(metric: str) -> tuple[str, str, float]:
    """Return the label, the unit and the size of that unit in which tables print a metric."""
    return _SHOWN_BY_METRIC.get(metric) or (METRICS[metric].label, METRICS[metric].unit, 1.0)


def training_job_words(
    scenario_results: Sequence[Result], medians: Sequence[JsonMapping] = ()
) -> list[str]:
    """Return sentences on days and cost of the whole training job of each scenario; or nothing.

    Args:
        scenario_results: Results, whose base case is printed without medians.
        medians: Medians by metric of each result, in its order.

    """
    words_by_job: dict[tuple[float, float], list[str]] = {}
    for index, scenario_result in enumerate(scenario_results):
        metrics = medians[index] if medians else scenario_result.metrics
        days, cost = (
            "-" if metrics.get(metric) is None else significant(metrics[metric] / size, 3)
            for metric, size in (("train_time_s", SECONDS_PER_DAY), ("train_usd", 1e6))
        )
        if days != "-":
            job = scenario_result.inputs[TRAIN_TOKENS].value, scenario_result.inputs[CHIPS].value
            named = f"{scenario_result.scenario} " if len(scenario_results) > 1 else ""
            words_by_job.setdefault(job, []).append(f"{named}{days} days, {cost} million USD")
    statistic = "median" if medians else "base case"
    return [
        f"Training on {significant(tokens / 1e12)} trillion tokens (--set {TRAIN_TOKENS}=...) on "
        f"{chips:,.0f} chips, {statistic}: {'; '.join(words)}. The days include failures; the cost "
        "also pays the idle hours."
        for (tokens, chips), words in words_by_job.items()
    ]


def is_estimated(scenario_result: Result, metric: str) -> bool:
    """Say whether a metric rests on an estimate, an assumption or a prior."""
    firm = bool(scenario_result.shares) and all(
        kinds.get("sourced", 1.0) >= 0.9995 for kinds in scenario_result.shares.values()
    )
    return (metric in COSTS and not firm) or metric in PERFORMANCE


def marked(scenario_result: Result, metric: str, number_text: str) -> str:
    """Mark a number with a tilde where it rests on an estimate, an assumption or a prior."""
    if not number_text:
        return "-"
    return f"~{number_text}" if is_estimated(scenario_result, metric) else number_text


def premise_lines(scenario_results: Sequence[Result], names_utilisation: bool = True) -> list[str]:
    """Return the lines that state perspective, date, life, rate, utilisation, site and halls.

    Args:
        scenario_results: Results of the scenarios.
        names_utilisation: Whether the cost counts the stated utilisation.

    """
    if not scenario_results:
        return []
    halls = {scenario_result.hall_cooling for scenario_result in scenario_results}
    if len(halls) == 1:
        words = partial(premise, names_utilisation=names_utilisation)
        return _by_words(scenario_results, words)
    lines = premises_without_halls(scenario_results, names_utilisation)
    return [*lines, _hall_words(scenario_results)]


def premises_without_halls(
    scenario_results: Sequence[Result], names_utilisation: bool = True
) -> list[str]:
    """Return the lines that state perspective, date, life, rate, utilisation and site."""
    words = partial(premise, names_hall=False, names_utilisation=names_utilisation)
    return _by_words(scenario_results, words)


def _hall_words(scenario_results: Sequence[Result]) -> str:
    """Name the racks that stand in each hall of their site, in one line."""
    racks = lists_by_key(
        (scenario_result.hall_cooling, scenario_result.scenario)
        for scenario_result in scenario_results
        if scenario_result.hall_cooling is not None
    )
    halls = (
        f"{cooling} for {', '.join(scenario_names)}" for cooling, scenario_names in racks.items()
    )
    return f"Halls: {'; '.join(halls)}"


def workloads(scenario_results: Sequence[Result]) -> list[str]:
    """Return the lines that say who does what, where the title could not."""
    return (
        _by_words(scenario_results, workload_words)
        if workload_line(scenario_results) == SEVERAL
        else []
    )


def _by_words(scenario_results: Sequence[Result], words: Callable[[Result], str]) -> list[str]:
    """Return lines about `scenario_results`, the most frequent line written once.

    A line common to all results stands alone. Otherwise every result that differs from the most
    frequent line gets a line with its scenario, and the most frequent line comes last. Where no
    line occurs twice, every result has its own line.
    """
    lines = [words(scenario_result) for scenario_result in scenario_results]
    most = max(lines, key=lines.count)
    if lines.count(most) == len(lines):
        return [most]
    rest = [
        f"{scenario_result.scenario}: {line}"
        for scenario_result, line in zip(scenario_results, lines, strict=True)
        if line != most or lines.count(most) == 1
    ]
    return rest if lines.count(most) == 1 else [*rest, f"the others: {most}"]


def premise(
    scenario_result: Result, names_hall: bool = True, names_utilisation: bool = True
) -> str:
    """Return the terms and the site a result rests on, in one line.

    A renter has no rate, no site and no life of racks.
    """
    inputs, texts = scenario_result.inputs, scenario_result.texts
    terms = {
        term_name: inputs[f"terms.{term_name}"].value
        for term_name in ("life", "rate", "utilisation")
        if f"terms.{term_name}" in inputs
    }
    owner = texts.get("terms.owner")
    parts = [
        f"Buyer {owner} ({scenario_result.perspective})"
        if owner
        else f"Buyer: {scenario_result.perspective}",
        f"prices of {texts['terms.date']}",
    ]
    if "life" in terms and "rate" in terms:  # a renter's rents say of which contracts they are
        parts.append(f"life {terms['life']:.3g} years")
    if "rate" in terms:
        parts.append(f"cost of capital {terms['rate'] * 100:g} %")
    if "utilisation" in terms and names_utilisation:
        own_default = _is_default_of(inputs["terms.utilisation"], scenario_result.perspective)
        words = ", assumed for this buyer" if own_default else ""
        parts.append(f"utilisation {terms['utilisation'] * 100:g} %{words}")
    return " | ".join([*parts, *_site_words(scenario_result, names_hall)])


def _is_default_of(terms_input: Input, perspective: str) -> bool:
    """Say whether a value is that of a buyer other than a hyperscaler, from the buyer's file."""
    return perspective != HYPERSCALER and f"perspectives/{perspective}." in terms_input.where


def _site_words(scenario_result: Result, names_hall: bool) -> list[str]:
    """Name the site, its hall and the price of its electricity; none where no site counts."""
    price = scenario_result.inputs.get("site.electricity_price")
    if price is None:
        return []
    price_value, unit = price.stated_quantity or (price.value, price.unit)
    site_name = scenario_result.origin.documents.get("site") if scenario_result.origin else None
    hall = (
        f", {scenario_result.hall_cooling} hall,"
        if names_hall and site_name and scenario_result.hall_cooling
        else ""
    )
    return [f"{site_name or 'electricity'}{hall} at {significant(price_value)} {unit}"]


def kinds_in_sentence(scenario_result: Result, share_name: str) -> str:
    """Return the shares of price or terms `share_name` by kind, such as `88 % sourced`."""
    kinds = scenario_result.shares.get(share_name) or {}
    return (
        ", ".join(f"{share * 100:.0f} % {SOURCE_KINDS[kind]}" for kind, share in kinds.items())
        or "-"
    )


def workload_title(scenario_results: Sequence[Result], target: bool = True) -> str:
    """Return the workload, before it the perspectives where they are not one.

    Args:
        scenario_results: Results of the scenarios.
        target: Whether to name the speed that the workload asks for.

    """
    views = {
        scenario_result.scenario: scenario_result.perspective
        for scenario_result in scenario_results
    }
    line = workload_line(scenario_results, target)
    if len(set(views.values())) == 1:
        return line
    words = ", ".join(f"{scenario_name} {view}" for scenario_name, view in views.items())
    return f"different perspectives: {words} | {line}"


def workload_line(scenario_results: Sequence[Result], target: bool = True) -> str:
    """Return the workload in words, where all results share it.

    Formats that differ have rows of their own.
    """
    for formats in (None, _common_formats(scenario_results)):
        lines = {
            workload_words(scenario_result, formats, target) for scenario_result in scenario_results
        }
        if len(lines) == 1:
            return lines.pop()
    return SEVERAL


PARTS = {
    "precision": "weights",
    "attention_format": "attention",
    "expert_format": "experts",
    "attention_core_format": "attention core",
}


def _displayed_formats(scenario_result: Result) -> dict[str, str]:
    """Return the format of the weights, and of parts that have another and not the usual one."""
    texts = scenario_result.texts
    weights = texts.get("workload.precision")  # no model, no format
    if weights is None:
        return {}
    formats = {PARTS["precision"]: weights}
    for part_key, part in PARTS.items():
        path = f"workload.{part_key}"
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


def _common_formats(scenario_results: Sequence[Result]) -> dict[str, str]:
    first, *rest = map(_displayed_formats, scenario_results)
    return {
        part: form
        for part, form in first.items()
        if all(formats.get(part) == form for formats in rest)
    }


def formats_rows(scenario_results: Sequence[Result]) -> list[Sequence[str]]:
    """Return a row for each part whose format differs between results."""
    shared = _common_formats(scenario_results)
    formats = list(map(_displayed_formats, scenario_results))
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
    BEST_LEVEL: "the best written by hand for such chips",
}

OPERATOR_WORDS = {
    SERVER: "whole engines of one server",
    APART: "pools of published sizes",
    BENCHMARK: "as published benchmarks are run",
}


def software_maturity_text(scenario_results: Sequence[Result]) -> str:
    """Return the software maturity of `scenario_results` in words.

    The text is "software differs" where the results differ.
    """
    software_maturities = {
        scenario_result.texts.get(SOFTWARE, DRAWN) for scenario_result in scenario_results
    }
    if len(software_maturities) > 1:
        return "software differs"
    (software,) = software_maturities
    fallback_words = (
        f"of {software}" if software[:1].isdigit() else f"of {software} for every system"
    )
    return f"software {SOFTWARE_WORDS.get(software, fallback_words)}"


def workload_words(
    scenario_result: Result, formats: Mapping[str, str] | None = None, target: bool = True
) -> str:
    """Return the workload of a result in words.

    Args:
        scenario_result: Result of a scenario.
        formats: Formats to name; None names all.
        target: Whether to name the speed that the workload asks for.

    """
    texts = scenario_result.texts
    if texts["workload.kind"] == "stated":
        return "no model is run: rates, if any, are stated"
    workload_values = {
        path.partition(".")[2]: input_record.value
        for path, input_record in scenario_result.inputs.items()
        if path.startswith(("workload.", "cluster."))
    }
    if texts["workload.kind"] == "training":
        step = (
            f"{workload_values['global_batch']:,.0f} sequences of "
            f"{workload_values['sequence_length']:,.0f} tokens per step"
        )
        return (
            f"{texts['workload.model']} training, {step}, "
            f"{texts['workload.precision'].upper()}, {workload_values['chips']:,.0f} chips"
        )
    parts = [
        _model_words(texts["workload.model"]),
        f"{workload_values['input_tokens']:,.0f} tokens in{_cached_words(workload_values)}, "
        f"{workload_values['output_tokens']:,.0f} out",
        _formats_words(_displayed_formats(scenario_result) if formats is None else formats),
    ]
    # of a held plan there is none
    if target and "interactivity" in workload_values:
        parts.append(f"at least {workload_values['interactivity']:g} tokens/s per user")
    return ", ".join(filter(None, parts))


def _model_words(model_name: str) -> str:
    """Return the name of a model; before a path, that the model is read from it."""
    is_file = "/" in model_name or model_name.endswith(".json")
    return f"model read from {model_name}" if is_file else model_name


def _cached_words(workload_values: Mapping[str, float]) -> str:
    """Return in brackets the share of input tokens that a cache holds; empty without any."""
    share = workload_values.get("cache_hit", 0.0)
    return f" ({share * 100:.3g} % cached)" if share else ""


def binding(scenario_result: Result, phase: str) -> str:
    """Return the bound that takes the most time of a phase, with its share."""
    bounds = scenario_result.bounds.get(phase)
    if not bounds:
        return "-"
    bound_name = max(bounds, key=lambda bound_key: bounds[bound_key])
    return f"{bound_name} {bounds[bound_name] * 100:.0f} %"


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
        lambda scenario_result: {
            share_name: shares
            for share_name, shares in scenario_result.shares.items()
            if share_name != "directness"
        },
    ),
    Member(
        "directness",
        {str: float},
        lambda scenario_result: scenario_result.shares.get("directness", {}),
    ),
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
        lambda scenario_result: {
            age_name: getattr(scenario_result.ages, age_name)
            for age_name in ("later", "older", "hour_older")
        },
    ),
    Member("hall_cooling", str | None),
    WAITING,
)


def available_words(scenario_result: Result) -> list[str]:
    """Print when a system is there, and the cost of waiting; empty where nobody states it."""
    available, cost = scenario_result.available, scenario_result.metrics["waiting_usd_per_chip"]
    if available is None:
        return []
    months = f"the {available.months:.0f} months until then"
    wait = f"; {months} cost ~{significant(cost, 3)} USD per chip" if cost else ""
    return [
        f"Available from {available.general or '-'}, in volume from ~{available.words}{wait}. "
        f"If it is ordered now, it serves from ~{available.first_token or '-'}."
    ]


NAMED = ("terms.date", "workload.model", "workload.software", "workload.engine")


def requested_settings(scenario_result: Result) -> JsonObject:
    """Return the requested settings of `scenario_result` by name."""
    documents = scenario_result.origin.documents if scenario_result.origin else {}
    settings: JsonObject = {
        document_name: documents.get(document_name)
        for document_name in ("site", "terms", "workload", "cluster")
    }
    settings |= {path.partition(".")[2]: scenario_result.texts.get(path) for path in NAMED}
    software = settings["software"] or DRAWN
    own_practice = software in SOFTWARE_LEVELS or software[:1].isdigit()
    settings["practice"] = "own" if own_practice else software
    settings["formats"] = {
        path.partition(".")[2]: format_text
        for path, format_text in sorted(scenario_result.texts.items())
        if path == "workload.precision" or path.endswith("_format")
    }
    return settings


CONTEXT = ("scenario", "system", "date", "site", "set")  # what a row of a CSV is of


def context_of_system(inputs: ResolvedScenario) -> JsonObject:
    """Return the context columns of a CSV row without a workload."""
    scenario = inputs.scenario
    settings = {
        path: setting_value
        for path, setting_value in inputs.settings.items()
        if isinstance(setting_value, str)
    }
    return {
        "scenario": scenario.name,
        "system": inputs.system.id,
        "date": inputs.date,
        "site": scenario.documents["site"],
        "set": in_words(settings),
    }


def _result_draft_tokens(scenario_result: Result) -> float | None:
    """Return the draft tokens per step of a serving plan.

    The value is None where the result has no serving plan.
    """
    if not isinstance(scenario_result.plan, ServingPlan):
        return None
    stated = scenario_result.inputs.get(DRAFTS)  # on a plan that is held, whatever it drafts
    return float(scenario_result.plan.decode.drafts if stated is None else stated.value)


def deployed(scenario_result: Result) -> JsonObject:
    """Return the production settings of `scenario_result` by name.

    The settings are draft tokens, formats, practice, software and engine.
    """
    more = {
        setting_name: scenario_result.texts.get(f"workload.{setting_name}")
        for setting_name in ("practice", "software", "engine")
    }
    return {
        "draft_tokens": _result_draft_tokens(scenario_result),
        "formats": requested_settings(scenario_result)["formats"],
        **more,
    }


PROMISED = {"tokens_per_s_per_user": "workload.interactivity", "ttft_s": "workload.ttft"}


def promise(scenario_result: Result) -> dict[str, float | None]:
    """Return the promised speed and first-token latency of every user.

    A value is None where nothing is promised.
    """
    return {
        promise_name: scenario_result.inputs[path].value or None
        for promise_name, path in PROMISED.items()
        if path in scenario_result.inputs
    }


def deployed_words(scenario_results: Sequence[Result]) -> str:
    """Return draft tokens, software maturity and operator of `scenario_results` in words.

    Software is left out where every result draws it. A fleet as operator is left out.
    """
    words = []
    drafts = {count for count in map(_result_draft_tokens, scenario_results) if count is not None}
    if len(drafts) > 1:
        words.append(f"{min(drafts):g} to {max(drafts):g} draft tokens by rack")
    elif drafts:
        (count,) = drafts
        tokens = f"of {count:g} token{'' if count == 1 else 's'}"
        words.append(f"speculative decoding {tokens if count else 'off'}")
    if any(
        scenario_result.texts.get(SOFTWARE, DRAWN) != DRAWN for scenario_result in scenario_results
    ):
        words.append(software_maturity_text(scenario_results))
    operators = {
        scenario_result.texts.get(OPERATED_BY, FLEET) for scenario_result in scenario_results
    } - {FLEET}
    if operators:
        operator = operators.pop()
        words.append("operators differ" if operators else OPERATOR_WORDS[operator])
    return ", ".join(words)


def values_by_scenario(
    scenario_results: Sequence[Result],
    values_of: Callable[[Result], JsonMapping] = requested_settings,
) -> JsonObject:
    """Return values by name, merged where all results agree.

    A value that differs is a mapping from scenario to value.

    Args:
        scenario_results: Results of the scenarios.
        values_of: Function that returns the values of a result by name.

    """
    by_name: dict[str, JsonObject] = {}
    for scenario_result in scenario_results:
        for setting_name, setting_value in values_of(scenario_result).items():
            by_name.setdefault(setting_name, {})[scenario_result.scenario] = setting_value
    return {
        setting_name: next(iter(scenario_values.values()))
        if len(set(map(str, scenario_values.values()))) == 1
        else scenario_values
        for setting_name, scenario_values in by_name.items()
    }


def plan_option_text(plan: JsonMapping | None) -> str:
    """Return the axes of a plan as `--plan` takes them."""
    return ",".join(
        f"{axis_name}={axis_value:g}"
        for axis_name, axis_value in (plan or {}).items()
        if isinstance(axis_value, (int, float)) and not isinstance(axis_value, bool)
    )


def missing_notes(scenario_result: Result) -> list[str]:
    """Return a note for every reason that leaves metrics null."""
    absent = lists_by_key(
        (why_absent(scenario_result, metric_name), metric_name)
        for metric_name, metric_value in scenario_result.metrics.items()
        if metric_value is None
    )
    return [
        f"not computed: {', '.join(metric_names)}: {why}" for why, metric_names in absent.items()
    ]
