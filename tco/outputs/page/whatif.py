"""What the script of the page is given: the program of the trace, its inputs, the rows it shows, and the command that gives the same."""

from __future__ import annotations

from collections.abc import Sequence

from tco.chain.metrics import METRICS, MORE_IS_BETTER, NEITHER
from tco.outputs.page.controls import controls_of
from tco.outputs.page.page import WhatIf
from tco.outputs.page.program import Program, program_of
from tco.outputs.page.rank import cost_of
from tco.outputs.page.sections import results_of
from tco.outputs.premises import SHOWN, is_one_workload
from tco.studies.reporting import Material

TARGET = "tokens_per_s_per_user"  # the metric a workload has a target of, and the input that is the target
TARGET_INPUT = "workload.interactivity"
WATCHED = (
    *("capex_usd_per_chip", "tco_usd_per_chip_hour", "output_tokens_per_s_per_chip", TARGET, "usd_per_million_output_tokens"),
    *("perf_per_tco_gross_vs_baseline", "perf_per_tco_vs_baseline", "step_s", "mfu", "train_usd_per_trillion_tokens"),
)


def what_if_of(material: Material, command: Sequence[str]) -> WhatIf | None:
    """Return the what-if of some scenarios; none where there is nothing to compute. `command` is what gives their figures unmoved."""
    results = results_of(material)
    program = program_of(results, material.baseline)
    if not program.inputs:
        return None
    cost = cost_of(results)
    swings = [[one.given.path for one in tornado.swings if one.swing != 0] for tornado in material.tornados]
    document = {
        "program": program.document(),
        "scenarios": [result.scenario for result in results],
        "controls": controls_of(program, results, material.catalogue, swings),
        "rows": rows_of(program),
        "rank": {"metric": cost.metric, "words": cost.words, "fair": is_one_workload(results), "unit": cost.unit, "size": cost.size},
        "target": {
            "metric": TARGET,
            "values": [float(result.inputs[TARGET_INPUT].value) if TARGET_INPUT in result.inputs else None for result in results],
        },
        "command": list(command),
    }
    return WhatIf(document, program.functions)


def rows_of(program: Program) -> list[dict[str, object]]:
    """Return the metrics that the what-if shows, as the comparison labels them."""
    known = {name for metrics in program.metrics for name in metrics}
    found = []
    for metric, label, unit, size in SHOWN:
        if metric in WATCHED and metric in known and metric in METRICS:
            words = f"{label}, {unit}" if unit and unit != "x" else label
            better = 0 if metric in NEITHER else 1 if metric in MORE_IS_BETTER else -1
            found.append({"metric": metric, "label": words, "size": size, "better": better})
    return found
