"""Why a metric of an answer has no value: each has a reason of its own."""

from __future__ import annotations

from tco.chain.metrics import PERFORMANCE, RATIOS, kinds_of
from tco.chain.result import Result

DOES = {"serving": "serves", "training": "trains", "stated": "states its rates"}
UNSTATED = {  # metrics that rest on what not every chip and site has
    "usd_per_peak_fp8_pflop_hour": "its chip does not compute FP8 (peak_fp8 is 0)",
    "grid_co2e_g_per_chip_hour": "its site states no gas of its grid (site.grid_carbon)",
    "embodied_co2e_g_per_chip_hour": "nothing states the gas of making its chip (embodied_carbon)",
    "co2e_g_per_million_output_tokens": "the gas of its grid, or of making its chip, is not stated (site.grid_carbon, embodied_carbon)",
}


def why_absent(result: Result, metric: str) -> str:
    """Return why a metric has no value here: another kind of work, no plan, no cost, no baseline, or an input that nobody states."""
    kind, kinds = result.texts["workload.kind"], kinds_of(metric)
    if kind not in kinds:
        return f"it is of a workload that {' or '.join(DOES[one] for one in sorted(kinds))}, this one {DOES[kind]}"
    if metric in PERFORMANCE and result.serving is not None and result.serving.reason:
        return result.serving.reason
    if result.costless:
        return next((note for note in result.notes if note.startswith((result.costless, "does not fit"))), "a chip alone has no cost")
    about = "performance per cost" if metric in RATIOS else metric
    said = next((note.partition(": ")[2] for note in result.notes if about in note.partition(": ")[0]), "")  # such as no finite number
    usual = "it is held against the cost of a baseline, and there is none here: `tco compare` names one"
    return said or (usual if metric in RATIOS else UNSTATED.get(metric, "the scenario does not state what it rests on"))
