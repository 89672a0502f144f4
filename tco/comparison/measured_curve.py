"""Measured curves of throughput against speed per user, priced on a system; nothing is predicted.

Cost of a point = cost of a used chip-hour / measured rate of a chip. The cost is drawn; the rate is
what the file states. Between points a curve holds the value of the next faster one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import pandas as pd

from tco.catalog import Catalogue
from tco.catalog.system_tree import load_system
from tco.core.columns import Column
from tco.core.errors import DataError, UsageError
from tco.core.types import FloatArray, JsonMapping, TextMapping
from tco.evaluation.evaluation import evaluate_each
from tco.sampling.uncertainty import draw_statistics
from tco.scenario.beliefs import Dice
from tco.scenario.metrics import usd_per_million
from tco.validation.measured import curve_table
from tco.validation.naming import accelerators

HOUR = "tco_usd_per_used_chip_hour"
OUTPUT_COST = "usd_per_million_output_tokens"
# Settings by which no model is run; the rate cancels.
STATED_RATE = {"workload": "stated", "workload.output_rate": "1 token/s/chip"}


class CurvePoint(NamedTuple):
    """A measured point with its cost on a system; what the file does not state is None."""

    curve: Annotated[str, Column("curve")]  # file
    system: Annotated[str, Column("system")]
    model: str
    input_tokens: float | None  # of a request
    output_tokens: float | None  # of a request
    concurrency: Annotated[float | None, Column("requests", show="{:g}")]
    tokens_per_s_per_user: Annotated[float, Column("tokens/s per user", show=4)]
    output_tokens_per_s_per_chip: Annotated[float, Column("tokens/s per chip", show=4)]
    input_tokens_per_s_per_chip: float | None
    ttft_s: Annotated[float | None, Column("first token s", show=3)]
    usd_per_million_output_tokens: float  # whole cost, base case
    p10_usd_per_million_output_tokens: Annotated[float, Column("P10", show=3)]
    median_usd_per_million_output_tokens: Annotated[float, Column("USD/M output", show=3)]
    p90_usd_per_million_output_tokens: Annotated[float, Column("P90", show=3)]
    usd_per_million_tokens: Annotated[float | None, Column("USD/M all", show=3)]
    # rate card: tokens of a request times these are its cost, medians
    rate_card_input_usd_per_million: Annotated[float | None, Column("card: input", show=3)]
    rate_card_cached_input_usd_per_million: Annotated[float | None, Column("cached", show=3)]
    rate_card_output_usd_per_million: Annotated[float | None, Column("output", show=3)]
    facility_power_w_per_chip: Annotated[float, Column("W per chip", show=4)]
    measured_power_w_per_chip: float | None
    joule_per_output_token: Annotated[float, Column("J/token", show=3)]
    share_of_best: Annotated[float, Column("share", show="{:.0%}")]
    tpot_p90_ms: float | None
    ttft_p90_ms: float | None
    output_tokens_per_s: float | None  # of all chips

    @property
    def question(self) -> tuple[str, str, str]:
        """Model and lengths, by which points of curves may be compared."""
        lengths = (
            "" if tokens is None else f"{tokens:.2g}"
            for tokens in (self.input_tokens, self.output_tokens)
        )
        input_length, output_length = lengths
        return self.model, input_length, output_length


class CardTerms(NamedTuple):
    """Split of a measured cost between input, cached input and output."""

    prefill_share: float | None = None  # of the chips' time; None takes pools that are apart
    cached_price: float | None = None  # price of a cached input token over another's
    cache_hit: float = 0.0  # share of input tokens that a cache held


class HourCost(NamedTuple):
    """Drawn cost of a used chip-hour of a system, with its power."""

    system: str
    chip: str
    base: float  # USD/chip/h, every input at its value
    draws: FloatArray  # USD/chip/h, shape (draws)
    facility_power: float  # W/chip
    notes: tuple[str, ...]
    catalogue: Catalogue


def priced_curves(
    files: Sequence[Path],
    systems: Sequence[str],
    settings: TextMapping,
    data_folder: Path | None,
    terms: CardTerms,
    samples: int,
    seed: int,
) -> tuple[list[CurvePoint], list[str], Catalogue]:
    """Return measured points with their costs, notes, and the catalogue of the first system.

    Args:
        files: Benchmark files, one a curve.
        systems: Id of the system of each file, or one for all.
        settings: Inputs by path, as `--set` takes them.
        data_folder: Folder of further user data; None without.
        terms: Split of the cost between input and output.
        samples: Number of draws.
        seed: Seed of the draws.

    Raises:
        DataError: A file holds no curve, or none of the chips of its system.
        UsageError: There are neither as many systems as files nor one.

    """
    if len(systems) not in (1, len(files)):
        raise UsageError(
            f"--system is given {len(systems)} times for {len(files)} files; name one for all, or "
            "one for each file in their order"
        )
    costs = {
        system: hour_cost(system, settings, data_folder, samples, seed)
        for system in dict.fromkeys(systems)
    }
    points: list[CurvePoint] = []
    drawn_costs: list[FloatArray] = []
    notes: list[str] = []
    system_names = systems if len(systems) == len(files) else list(systems) * len(files)
    for file, system in zip(files, system_names, strict=True):
        cost = costs[system]
        table, left_out = _rows_of_chip(file, curve_table(file), cost)
        notes += left_out
        for _, curve_row in table.iterrows():
            point = _priced_point(file, curve_row, cost, terms)
            points.append(point)
            drawn_costs.append(_usd_per_million(cost.draws, point.output_tokens_per_s_per_chip))
    notes += [note for cost in costs.values() for note in cost.notes]
    return _with_shares(points, drawn_costs), notes, costs[systems[0]].catalogue


def hour_cost(
    system: str, settings: TextMapping, data_folder: Path | None, samples: int, seed: int
) -> HourCost:
    """Return the drawn cost of a used chip-hour of a system, in USD/chip/h."""
    if samples < 2:
        raise UsageError(f"--samples {samples}: expected 2 or more")
    (evaluation,) = evaluate_each([system], data_folder, settings, implied=STATED_RATE)
    scenario_result = evaluation.result
    base = scenario_result.metrics[HOUR]
    power = scenario_result.metrics["facility_power_w_per_chip"]
    if base is None or power is None:
        raise DataError(
            f"{system}: has no cost of a chip-hour here: {'; '.join(scenario_result.notes)}"
        )
    dice = Dice(evaluation.catalogue, seed, 0, samples)
    draws = evaluation.drawn_function().sample(dice).metrics[HOUR]
    return HourCost(
        system,
        load_system(evaluation.catalogue, scenario_result.system).chip,
        base,
        np.broadcast_to(np.asarray(draws, dtype=float), samples),
        power,
        tuple(scenario_result.notes),
        evaluation.catalogue,
    )


def _rows_of_chip(
    file: Path, table: pd.DataFrame, cost: HourCost
) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows of the system's chip, and a note on those of others."""
    if "accelerator" not in table:
        return table, []
    chips = accelerators(cost.catalogue)
    parts = table["accelerator"].map(
        lambda accelerator_name: (
            chips.part(str(accelerator_name)) if accelerator_name else cost.chip
        )
    )
    if unknown_names := sorted(set(table["accelerator"][parts == ""])):
        raise DataError(f"{file}: {chips.fault(unknown_names[0])}; say it with --chip {cost.chip}")
    same_chip = parts == cost.chip
    if not same_chip.any():
        raise DataError(
            f"{file}: measured on {', '.join(sorted(set(parts)))}, and {cost.system} has "
            f"{cost.chip}; name a system of that chip with --system"
        )
    count = int((~same_chip).sum())
    note = f"{file}: {count} rows of other chips than {cost.chip} are left out"
    return table[same_chip], [note] if count else []


def _number(curve_row: JsonMapping, *column_names: str) -> float | None:
    """Return the first column that a row states above zero."""
    for column_name in column_names:
        cell_value = curve_row.get(column_name)
        if cell_value is not None and np.isfinite(cell_value) and cell_value > 0:
            return float(cell_value)
    return None


def _output_rate(curve_row: JsonMapping, chips: float | None) -> float | None:
    """Return output tokens per second and chip, of all pools."""
    prompt, answer = _number(curve_row, "isl_tokens"), _number(curve_row, "osl_tokens")
    total = _number(curve_row, "total_tput_tok_s_per_gpu")
    if total is not None and prompt is not None and answer is not None:
        return total * answer / (prompt + answer)
    system_rate = _number(curve_row, "system_tput_tok_s")
    if system_rate is not None and chips is not None:
        return system_rate / chips
    # of separate pools it is printed per chip of either all or one
    return (
        None
        if _number(curve_row, "prefill_gpus")
        else _number(curve_row, "output_tput_tok_s_per_gpu")
    )


def _priced_point(
    file: Path, curve_row: JsonMapping, cost: HourCost, terms: CardTerms
) -> CurvePoint:
    """Return a measured point with its cost."""
    where = f"{file}: row {curve_row['number']}"
    pools = _number(curve_row, "prefill_gpus"), _number(curve_row, "decode_gpus")
    pool_chips = [chips for chips in pools if chips is not None]
    chips = sum(pool_chips) if len(pool_chips) == 2 else _number(curve_row, "n_gpus")
    rate = _output_rate(curve_row, chips)
    if rate is None:
        raise DataError(
            f"{where}: states no output tokens per second of a chip; say the number of chips with "
            "--tp, or give a file with a throughput"
        )
    time = _number(curve_row, "tpot_ms_median", "tpot_ms_mean", "tpot_ms_p90")
    speed = _number(curve_row, "interactivity_tok_s_per_user") or (1e3 / time if time else None)
    if speed is None:
        raise DataError(f"{where}: states no speed per user, expected tokens/s or ms per token")
    prompt, answer = _number(curve_row, "isl_tokens"), _number(curve_row, "osl_tokens")
    input_rate = rate * prompt / answer if prompt and answer else None
    statistics = draw_statistics(OUTPUT_COST, _usd_per_million(cost.draws, rate))
    first_token = _number(curve_row, "ttft_ms_median", "ttft_ms_mean")
    if statistics is None or None in statistics.values():
        raise DataError(f"{where}: {cost.system} has no finite cost of a chip-hour in its draws")
    median = float(statistics["p50"] or 0.0)
    return CurvePoint(
        file.name,
        cost.system,
        str(curve_row.get("model") or ""),
        prompt,
        answer,
        _number(curve_row, "concurrency"),
        speed,
        rate,
        input_rate,
        first_token / 1e3 if first_token else None,
        float(_usd_per_million(np.asarray(cost.base), rate)),
        float(statistics["p10"] or 0.0),
        median,
        float(statistics["p90"] or 0.0),
        median * rate / (rate + input_rate) if input_rate else None,
        *_measured_rate_card(median, rate, input_rate, _prefill_share(pools, terms), terms),
        cost.facility_power,
        _number(curve_row, "avg_power_w_per_gpu"),
        cost.facility_power / rate,
        1.0,
        _number(curve_row, "tpot_ms_p90"),
        _number(curve_row, "ttft_ms_p90"),
        rate * chips if chips else None,
    )


def _usd_per_million(hour: FloatArray, rate: float) -> FloatArray:
    return np.asarray(usd_per_million(hour, rate, 1.0), dtype=float)


def _prefill_share(pools: Sequence[float | None], terms: CardTerms) -> float | None:
    """Return the share of the chips that read prompts: stated, or of pools that are apart."""
    if terms.prefill_share is not None:
        return terms.prefill_share
    prefill, decode = pools
    return None if prefill is None or decode is None else prefill / (prefill + decode)


def _measured_rate_card(
    cost: float,
    rate: float,
    input_rate: float | None,
    prefill_share: float | None,
    terms: CardTerms,
) -> tuple[float | None, float | None, float | None]:
    """Return prices of input, cached input and output, in USD/Mtoken, that add up to the cost."""
    if prefill_share is None or input_rate is None:
        return None, None, None
    reading = cost * rate * prefill_share / input_rate
    output = cost * (1 - prefill_share)
    if terms.cached_price is None:
        return reading, None, output
    full = reading / (1 - terms.cache_hit * (1 - terms.cached_price))
    return full, full * terms.cached_price, output


def _with_shares(
    points: Sequence[CurvePoint], drawn_costs: Sequence[FloatArray]
) -> list[CurvePoint]:
    """Return points with the least cost of all curves at their speed over their own, of draws."""
    shares = []
    for point, costs in zip(points, drawn_costs, strict=True):
        rivals = [
            rival_costs
            for rival, rival_costs in zip(points, drawn_costs, strict=True)
            if rival.question == point.question
            and rival.tokens_per_s_per_user >= point.tokens_per_s_per_user
        ]
        shares.append(float(np.mean(np.min(rivals, axis=0) / costs)))
    return [
        point._replace(share_of_best=share) for point, share in zip(points, shares, strict=True)
    ]
