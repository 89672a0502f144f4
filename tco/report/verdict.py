"""The verdict of a comparison in words: picks, ties, delivery dates, turning prices, costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tco.catalog.labels import short_name
from tco.comparison.records import Confidence, Later, PriceTurn, Regime
from tco.comparison.regimes import otherwise
from tco.cost.ledger import RENTS
from tco.evaluation.break_even_rents import BreakEvenRent
from tco.evaluation.side_by_side import nearest_speed, rated_by, speed_of, why_unrated
from tco.report.ranges import TRAINING_COST, rounded_percent
from tco.report.table import fixed_digits, significant
from tco.scenario.result import OWN_COST, RENTED, Result

DIGITS = 3
WORK = {
    "usd_per_million_output_tokens": "million output tokens",
    TRAINING_COST: "trillion training tokens",
}
ENDS = ("public", "best")
SOFTWARE_WORDS = {
    "public": "public software alone",
    "best": "the best software written by hand",
}


# ---------------------------------------------------------------- picks
def format_speed_range(regime: Regime) -> str:
    """Return the speeds of a regime."""
    first, *rest = (f"{speed:g}" for speed in regime.speeds)
    return f"{first} to {rest[-1]}" if rest else first


def format_regime(regime: Regime) -> str:
    """Return a regime as a sentence."""
    where = f"{format_speed_range(regime)} tokens/s" if regime.speeds else "at this workload"
    return f"{where}: {regime_sentence(regime)}"


def listed_names(names: Iterable[str]) -> str:
    """Return names in a row, the last after `and`."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def tie_words(pick_names: Sequence[str], late: Mapping[str, str] | None = None) -> str:
    """Return a pick, or several as a tie, with when those come that come late."""
    dated = [
        f"{pick_name} (from {late[pick_name]})" if late and pick_name in late else pick_name
        for pick_name in pick_names
    ]
    return f"tie of {listed_names(dated)}" if len(dated) > 1 else dated[0]


def regime_sentence(regime: Regime) -> str:
    """Return the sentence on a regime: picks, regret and exceptions.

    The exceptions are other picks until the systems are available, and under other software.
    """
    if regime.kind == "nobody":
        return (
            "no system serves it in half of the draws"
            if regime.probability is not None
            else "no system serves it"
        )
    if regime.probability is None:
        verb = "is the cheapest" if len(regime.picks) == 1 else "cost the same"
        return f"{listed_names(regime.picks)} {verb}, no range was drawn"
    parts = [f"{tie_words(regime.picks, regime.late)}, regret {_regret_words(regime)}"]
    if regime.late and regime.available:
        parts.append(f"until then {tie_words(regime.available)}")
    for end in ENDS:
        if end_picks := otherwise(regime).get(end):
            lost = rounded_percent(1 - regime.by_software_keeps[end])
            parts.append(f"with {SOFTWARE_WORDS[end]} {tie_words(end_picks)} (regret {lost})")
    return "; ".join(parts)


def _regret_words(regime: Regime) -> str:
    """Return the mean regret of a regime's picks, and that in the worst tenth of the draws."""
    least, most = (
        rounded_percent(1 - retained_share).removesuffix(" %")
        for retained_share in (regime.most or 0.0, regime.keeps or 0.0)
    )
    mean = least if least == most else f"{least}-{most}"
    worst = (
        ""
        if regime.worst is None
        else f", {rounded_percent(1 - regime.worst)} in the worst 1 of 10 draws"
    )
    return f"{mean} % on average{worst}"


def _by_speed(regimes: Sequence[Regime], picks_by_regime: Mapping[int, Sequence[str]]) -> str:
    """Return picks with the speeds of their regimes, by the place of a regime."""
    spans: dict[str, list[str]] = {}
    for regime_index, regime in enumerate(regimes):
        if picks := picks_by_regime.get(regime_index):
            spans.setdefault(tie_words(picks), []).append(
                format_speed_range(regime) if regime.speeds else ""
            )
    words = ", ".join(
        f"{picks} at {listed_names(speeds)}" if all(speeds) else picks
        for picks, speeds in spans.items()
    )
    return f"{words} tokens/s" if any(regime.speeds for regime in regimes) else words


def software_bound_picks(regimes: Sequence[Regime]) -> list[str]:
    """Return the picks with software at an end of its reach, where they are others."""
    lines = []
    for end in ENDS:
        picks_by_regime = {
            regime_index: picks
            for regime_index, regime in enumerate(regimes)
            if (picks := otherwise(regime).get(end))
        }
        if picks_by_regime:
            words = _by_speed(regimes, picks_by_regime)
            lines.append(f"If all racks ran {SOFTWARE_WORDS[end]}, buy {words}.")
    return lines


# ---------------------------------------------------------------- dates
def later_words(later: Later | None) -> list[str]:
    """Return the picks at the date when all compared can be had, where they differ."""
    if later is None or not later.differs:
        return []
    picks_by_regime = {
        regime_index: regime.picks for regime_index, regime in enumerate(later.regimes)
    }
    distinct_picks = {*picks_by_regime.values()}
    words = (
        _by_speed(later.regimes, picks_by_regime)
        if len(distinct_picks) > 1
        else tie_words(distinct_picks.pop())
        + (" at every speed" if later.regimes[0].speeds else "")
    )
    return [f"If bought in {later.date} instead, with all in volume: {words}."]


# ---------------------------------------------------------------- prices
def price_words(
    confidence: Confidence, speed: float | None, scenario_results: Sequence[Result]
) -> list[str]:
    """Return the prices most likely to change the pick, in a sentence.

    A price is that of the date of the scenarios, and the sentence says so.
    """
    turns = confidence.turns
    if not turns:
        return []
    dates = {scenario_result.texts["terms.date"] for scenario_result in scenario_results}
    date = dates.pop() if len(dates) == 1 else "now"
    regime = next(
        (regime for regime in confidence.regimes if speed in (regime.speeds or (None,))), None
    )
    where = f" at {speed:g} tokens/s" if speed is not None else ""
    tie = regime is not None and len(regime.picks) > 1
    next_picks = " or ".join(sorted({turn.to for turn in turns}))
    subject = (
        f"The tie{where} tips from {turns[0].pick}"
        if tie
        else f"The pick{where} turns to {next_picks}"
    )
    *first, last = (_turn_condition(turn, date) for turn in turns)
    conditions = f"{', '.join(first)} or {last}" if first else last
    return [f"{subject} if {conditions}."]


def _turn_condition(turn: PriceTurn, date: str) -> str:
    """Return on which side of which price the pick is another."""
    shown_price, unit = (
        turn.stated_quantity
        if turn.stated_quantity and turn.stated_quantity[0]
        else (turn.value, turn.unit)
    )
    scale = shown_price / turn.value
    side = "below" if turn.turns_at < turn.value else "above"
    return (
        f"{short_name(turn.path)} is {side} {significant(turn.turns_at * scale, DIGITS)} {unit} "
        f"({date}: {significant(shown_price, DIGITS)})"
    )


# ---------------------------------------------------------------- whose cost
def basis_words(scenario_results: Sequence[Result]) -> list[str]:
    """Return on what basis each rack is priced, and who can buy it at that price."""
    groups: dict[str, list[str]] = {}
    for scenario_result in scenario_results:
        if (basis_text := _basis_of(scenario_result)) is not None:
            groups.setdefault(basis_text, []).append(scenario_result.scenario)
    parts = [
        f"{', '.join(scenario_names)} {basis_text}" for basis_text, scenario_names in groups.items()
    ]
    return [f"Basis: {'; '.join(parts)}."] if parts else []


def _basis_of(scenario_result: Result) -> str | None:
    """Return on what basis a rack is priced, in words."""
    if scenario_result.basis is None:
        return None
    if scenario_result.basis == OWN_COST:
        owner = scenario_result.texts.get("terms.owner") or "its owner"
        return f"built at {owner}'s own cost, for {owner} alone"
    if scenario_result.rent is None:
        return "at vendor's price, for any buyer"
    kind, publisher = scenario_result.rent
    return f"rented by {RENTS[kind]} ({publisher})"


def rent_words(rents: Sequence[BreakEvenRent]) -> list[str]:
    """Return the rent below which each rack without one costs less than the cheapest."""
    lines = []
    for rent in rents:
        speed = rent.tokens_per_s_per_user
        where = "" if speed is None else f"{speed:g} tokens/s and "
        is_rented = rent.against_basis == RENTED
        rival = f"{'renting' if is_rented else 'owning'} {rent.against}"
        lines.append(
            f"At {where}{rounded_percent(rent.utilisation)} utilisation, renting {rent.scenario} "
            f"beats {rival} ({'' if is_rented else 'base case: '}"
            f"{rent.against_usd_per_chip_hour:.2f} USD per chip-hour) below a rent of "
            f"{rent.usd_per_chip_hour:.2f} USD per chip-hour{_rent_estimate_words(rent, rival)}."
        )
    return lines


def _rent_estimate_words(rent: BreakEvenRent, rival: str) -> str:
    """Return the estimate of a rent and the cheaper way by it; nothing without an estimate."""
    low, high = rent.lower_bound_usd_per_chip_hour, rent.upper_bound_usd_per_chip_hour
    if high is None:
        return ""
    verdict = "which leaves it open"
    if high < rent.usd_per_chip_hour:
        verdict = f"so renting {rent.scenario} is cheaper"
    elif low is not None and rent.usd_per_chip_hour < low:
        verdict = f"so {rival} is cheaper"
    estimate = f"at most {high:.2f}" if low is None else f"{low:.2f} to {high:.2f}"
    return f"; no rent is published; our estimate is {estimate}, {verdict}"


# ---------------------------------------------------------------- what is not rated
def verdict_words(confidence: Confidence, scenario_results: Sequence[Result]) -> list[str]:
    """Return the verdict, a sentence for each regime; or why there is none."""
    if len(scenario_results) == 1 and (words := _cost_sentence(scenario_results[0], confidence)):
        return [words]
    if confidence.regimes:
        return [
            *map(format_regime, confidence.regimes),
            *unrated_words(confidence, scenario_results),
        ]
    rated_names = [
        scenario_result.scenario
        for scenario_result in scenario_results
        if rated_by([scenario_result]) and scenario_result.scenario not in confidence.unrated
    ]
    if len(rated_names) == 1:
        return [
            *_only_words(rated_names[0], scenario_results),
            *unrated_words(confidence, scenario_results),
        ]
    return [
        "No verdict: "
        + "; ".join(
            f"{scenario_result.scenario} {why_unrated(scenario_result)}"
            for scenario_result in scenario_results
        )
        + "."
    ]


def _cost_sentence(scenario_result: Result, confidence: Confidence) -> str:
    """Return the cost of work of a rack, the median where it is drawn; empty without a cost."""
    metric = rated_by([scenario_result])
    if metric is None:
        return ""
    cost, statistic = scenario_result.metrics[metric], "base case"
    if confidence.sure and (percentiles := confidence.sure[0].range(metric)) is not None:
        cost, statistic = percentiles["p50"], "median of the draws"
    speed = speed_of(scenario_result)
    where = "" if speed is None else f" at {speed:g} tokens/s per user"
    cost_text = "none" if cost is None else fixed_digits(cost)
    return (
        f"{scenario_result.scenario} does this work{where} for {cost_text} USD per {WORK[metric]} "
        f"({statistic})."
    )


def _only_words(scenario_name: str, scenario_results: Sequence[Result]) -> list[str]:
    unpriced = all(
        scenario_result.costless
        for scenario_result in scenario_results
        if scenario_result.scenario != scenario_name
    )
    verb = "can be priced" if unpriced else "is rated"
    buyers = {scenario_result.perspective for scenario_result in scenario_results}
    whose = f" for this perspective ({buyers.pop()})" if len(buyers) == 1 and unpriced else ""
    return [f"Only {scenario_name} {verb}{whose}; nothing to compare."]


def unrated_words(confidence: Confidence, scenario_results: Sequence[Result]) -> list[str]:
    """Return which racks are not rated and why, those of one reason but for its name together."""
    groups: dict[str, dict[str, str]] = {}
    for scenario_result in scenario_results:
        if (why := confidence.unrated.get(scenario_result.scenario)) is not None:
            reason = _costless_reason(scenario_result) or why
            nameless = reason.replace(f"{scenario_result.system} ", "each ")
            groups.setdefault(nameless, {})[scenario_result.scenario] = reason
    lines = []
    for nameless, scenario_names in groups.items():
        why = nameless if len(scenario_names) > 1 else next(iter(scenario_names.values()))
        verb = (
            ""
            if why.startswith(COSTLESS)
            else f"{'is' if len(scenario_names) == 1 else 'are'} not rated: "
        )
        lines.append(f"{', '.join(scenario_names)} {verb}{why}")
    return lines


COSTLESS = ("cannot be priced", "does not fit")  # how notes begin that say why a rack has no cost


def _costless_reason(scenario_result: Result) -> str:
    return next(
        (note for note in scenario_result.notes if note.startswith(COSTLESS)),
        scenario_result.costless,
    )


def target_speed(scenario_results: Sequence[Result]) -> float | None:
    """Return the speed that the workload asks for, where all ask for the same."""
    speeds = {speed_of(scenario_result) for scenario_result in scenario_results}
    return speeds.pop() if len(speeds) == 1 else None


def compared_speed(scenario_results: Sequence[Result], confidence: Confidence) -> float | None:
    """Return the compared speed that is nearest to the target, or nothing without a target."""
    target = target_speed(scenario_results)
    speeds = {point.tokens_per_s_per_user for point in confidence.curve}
    if target is None or not speeds:
        return None
    return nearest_speed(speeds, target)
