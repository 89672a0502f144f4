"""The what-if of the page: the data of its script, its controls and its ranking."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from itertools import chain, zip_longest

from tco.catalog import Catalogue
from tco.catalog.labels import short_name
from tco.catalog.rows import attribute_of_path, split_path
from tco.comparison.report_data import COSTS, Material
from tco.core.types import JsonObject
from tco.evaluation.chip_prices import chip_of
from tco.performance.software_maturity import REACH
from tco.report.assumptions import SEVERAL, SHOWN, workload_line
from tco.report.cells import GROSS, RATIOS, cost_behind, input_sort_key, own_unit
from tco.report.counterfactual import TITLES
from tco.report.figures.style import vendor_colours
from tco.report.page.page import WhatIf
from tco.report.page.program import WHO, PageProgram, program_of, shortest
from tco.report.table import headed, sentence
from tco.scenario.metrics import (
    MORE_IS_BETTER,
    NEITHER,
    PRICED,
    perf_per_tco,
    training_perf_per_tco,
)
from tco.scenario.resolved import bounds
from tco.scenario.result import Result

OPEN = 13  # sliders that stand open
# Those of the first line, and what readers ask first
PREMISES = (
    *("workload.interactivity", "workload.input_tokens", "workload.output_tokens"),
    *("terms.life", "terms.rate", "terms.utilisation", "site.electricity_price"),
)
# of a chip: what is paid for it, or else most of what it is made of
PRICES = (
    "price",
    "wafer_price",
)
FACTOR = 2.0  # a slider goes at least to this many times the value, and to one over it
GEOMETRIC = 8.0  # a slider whose ends are so many times apart moves in steps of a factor


def _controls_of(
    program: PageProgram,
    scenario_results: Sequence[Result],
    catalogue: Catalogue,
    swings: Sequence[Sequence[str]],
) -> list[JsonObject]:
    """Return a control per input of a program, the open ones first, then by path.

    `swings` are the paths of each scenario, the strongest first.
    """
    chips: dict[str, str] = {}  # each with the systems it stands in
    for scenario_result in scenario_results:
        chip = chip_of(catalogue, scenario_result)
        chips[chip] = f"{chips.get(chip, 'chip')} {scenario_result.title}"
    priced = (
        next(
            (
                path
                for price_attribute in PRICES
                if (path := f"parts.{chip}.{price_attribute}") in program.inputs
            ),
            "",
        )
        for chip in chips
    )
    strongest = chain.from_iterable(zip_longest(*swings))
    first = list(
        dict.fromkeys(
            path for path in chain(PREMISES, priced, (REACH,), strongest) if path in program.inputs
        )
    )[:OPEN]
    rest = sorted((path for path in program.inputs if path not in first), key=input_sort_key)
    return [
        _control(program, path, catalogue, chips) | {"open": path in first}
        for path in (*first, *rest)
    ]


def _control(
    program: PageProgram, path: str, catalogue: Catalogue, chips: Mapping[str, str]
) -> JsonObject:
    """Return an input's control, with numbers in its file's unit.

    Several cells are the values of several scenarios, which a setting makes equal.
    """
    input_record, cells = program.leaf_inputs[path], program.inputs[path]
    shown_value, unit, factor = own_unit(input_record)
    least, most = (end / factor for end in bounds(path))
    low, high = (
        None if end is None else float(f"{end / factor:.12g}")
        for end in (input_record.low, input_record.high)
    )
    begin, end = slider_bounds(shown_value, low, high, least, most)
    _, part, attribute_name = split_path(path)
    input_attribute = attribute_of_path(path)
    input_description = input_attribute.description.partition(":")[0] if input_attribute else ""
    if part in chips and attribute_name == "price":
        input_description = "price of the chip"
    return {
        "path": path,
        "cells": cells,
        "values": [float(f"{program.document['leaves'][cell] / factor:.12g}") for cell in cells],
        "unit": unit,
        "factor": factor,
        "low": low,
        "high": high,
        "least": least,
        "most": most,
        "begin": begin,
        "end": end,
        "geometric": begin > 0 and end / begin > GEOMETRIC,
        "what": short_name(path),
        "description": input_description,
        "also": f"{input_attribute.also if input_attribute else ''} {chips.get(part, '')}".strip(),
        "from": ", ".join(
            filter(
                None,
                (
                    input_record.kind,
                    input_record.as_of,
                    catalogue.source_title(input_record.source),
                ),
            )
        ),
        "own": input_record.overlay,
    }


def slider_bounds(
    input_value: float, low: float | None, high: float | None, least: float, most: float
) -> tuple[float, float]:
    """Return the lowest and the highest value of a slider.

    The slider covers the believed range and a factor of `FACTOR` on both sides of `input_value`.
    It stays within the limits `least` and `most` of the input.
    """
    factor_low, factor_high = sorted((input_value / FACTOR, input_value * FACTOR))
    begin = max(min(factor_low, input_value if low is None else low), least)
    end = min(max(factor_high, input_value if high is None else high), most)
    if begin == end:  # a value of nothing, of which nothing is believed
        end = min(begin + 1.0, most)
    return float(f"{begin:.6g}"), float(f"{end:.6g}")


WATCHED = (
    *(
        "capex_usd_per_chip",
        "tco_usd_per_chip_hour",
        "output_tokens_per_s_per_chip",
        "tokens_per_s_per_user",
        COSTS[0],
    ),
    *("perf_per_tco_gross_vs_baseline", "perf_per_tco_vs_baseline", "step_s", "mfu", COSTS[1]),
)
# what a ratio of a cost to the baseline's is, where it is not `perf_per_tco`
COSTLY = {PRICED[1]: training_perf_per_tco}


def what_if_of(material: Material, command: Sequence[str]) -> WhatIf | None:
    """Return the what-if of a report's scenarios, or None where there is nothing to compute.

    Args:
        material: Scenarios of the report, with their tornados.
        command: Words of the command that gives the figures without a change.

    """
    scenario_results = material.results
    available_metrics = {
        metric_name
        for scenario_result in scenario_results
        for metric_name, metric_value in scenario_result.metrics.items()
        if metric_value is not None
    }
    cost_of_ratio = {
        ratio: behind
        for ratio in RATIOS
        if ratio in available_metrics
        and (behind := cost_behind(ratio, available_metrics | {GROSS}))
    }
    formulas = {
        ratio: COSTLY.get(behind, perf_per_tco).__name__ for ratio, behind in cost_of_ratio.items()
    }
    watched = {*WATCHED, *cost_of_ratio.values()}
    program = program_of(material.evaluations, watched, formulas.values())
    if not program.inputs:
        return None
    swings = [
        [swing.input_record.path for swing in tornado.swings if swing.swing != 0]
        for tornado in material.tornados
    ]
    controls = _controls_of(program, scenario_results, material.catalogue, swings)
    document = {
        "program": program.document,
        "scenarios": [scenario_result.scenario for scenario_result in scenario_results],
        "asked": [scenario_result.texts[WHO] for scenario_result in scenario_results],
        "who": {"path": WHO, "options": _perspective_options(material.catalogue, program)},
        "priced": [
            f"parts.{chip_of(material.catalogue, scenario_result)}.price"
            for scenario_result in scenario_results
        ],
        "baseline": [scenario_result.scenario for scenario_result in scenario_results].index(
            material.baseline
        ),
        "colours": vendor_colours(scenario_results),
        # a column for each attribute of a control, so that its name stands once
        "controls": {
            control_key: [shortest(control[control_key]) for control in controls]
            for control_key in controls[0]
        },
        "rows": _whatif_metric_rows(available_metrics),
        "ratios": [
            {"metric": ratio, "formula": program.functions.index(formulas[ratio]), "of": cost}
            for ratio, cost in cost_of_ratio.items()
        ],
        "rank": _rank_document(scenario_results),
        "command": list(command),
    }
    return WhatIf(document, program.functions)


def _perspective_options(catalogue: Catalogue, program: PageProgram) -> list[tuple[str, str]]:
    """Return id and name of each perspective that the program has a payer for."""
    ids = dict.fromkeys(who for payers in program.document["ways"] for who in payers)
    return [
        (perspective, str(catalogue.document("perspectives", perspective, "who pays")[1]["name"]))
        for perspective in ids
    ]


def _rank_document(scenario_results: Sequence[Result]) -> JsonObject:
    """Return the cost that ranks the scenarios, with its words, unit and size."""
    cost = next(
        (
            cost_metric
            for cost_metric in COSTS
            if any(
                scenario_result.metrics[cost_metric] is not None
                for scenario_result in scenario_results
            )
        ),
        COSTS[-1],
    )
    words, unit, size = TITLES[cost]
    return {
        "metric": cost,
        "words": sentence(words),
        "fair": workload_line(scenario_results) != SEVERAL,
        "unit": unit,
        "size": size,
    }


def _whatif_metric_rows(available_metrics: Container[str]) -> list[dict[str, object]]:
    """Return the metrics that the what-if shows, as the comparison labels them."""
    metric_rows = []
    for metric, label, unit, size in SHOWN:
        if metric in WATCHED and metric in available_metrics:
            better = 1 if metric in MORE_IS_BETTER else -1
            if metric in NEITHER:
                better = 0
            metric_rows.append(
                {"metric": metric, "label": headed(label, unit), "size": size, "better": better}
            )
    return metric_rows
