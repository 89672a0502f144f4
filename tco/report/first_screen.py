"""First screen of a comparison: what to buy at which speeds, what it costs, how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tco.catalog.accuracy import Standing
from tco.catalog.labels import PLAIN_NUMBERS, short_name
from tco.comparison.confidence import Elsewhere
from tco.comparison.records import AtSpeed, Confidence, Regime, Sureness
from tco.core.provenance import Input
from tco.cost.ledger import RENTS
from tco.evaluation.break_even_rents import BreakEvenRent
from tco.evaluation.cost_changes import CostChange
from tco.evaluation.side_by_side import SPEED, rated_by
from tco.report.assumptions import (
    premises_without_halls,
    training_job_words,
    workload_title,
    workloads,
)
from tco.report.curve import (
    bound_mark,
    chance_text,
    cost_text,
    is_too_slow,
    point_cost_text,
    regret_text,
)
from tco.report.ranges import (
    RATIO,
    TRAINING_COST,
    percentile_range_text,
    rounded_percent,
)
from tco.report.table import NARROW_SCREEN, PICK, TIE, Table, significant
from tco.report.terminal import folded
from tco.report.verdict import (
    compared_speed,
    format_speed_range,
    later_words,
    listed_names,
    price_words,
    rent_words,
    software_bound_picks,
    target_speed,
    unrated_words,
    verdict_words,
)
from tco.scenario.metrics import CHIP_HOUR
from tco.scenario.result import OWN_COST, Result

LINES = 30
NAMED = 2  # cheaper systems that are not compared
TARGETS = {"workload", SPEED}  # settings that may move the target speed
TIED = " tied"  # after the speed of several picks
NO_RACK = "no rack is quick enough"
EVIDENCE = ("published chip runs", "median error")
AVAILABILITY = ("in volume", "serves if ordered")
SPEED_LEGEND = "Speed: tokens/s per user. Cost: USD per million output tokens, prompts included."
DRAW_LEGENDS = [
    "A draw is one random set of inputs. Wins: the chance to be cheapest in a draw.",
    "Regret: share of the spend that the cheapest rack of each draw would have saved.",
]
NEXT_COMMANDS = "Next: tco compare --why | --full | --workloads | tco explain SYSTEM METRIC"
MORE_IN_FULL = "Next: tco compare --full ({}) | --why | --workloads"
OTHER_SYSTEMS = "Not shown: other systems; `tco compare --all` ranks them, with the same --set."


def first_screen(
    scenario_results: Sequence[Result],
    confidence: Confidence,
    deployed: str,
    elsewhere: Sequence[Elsewhere],
    rents: Sequence[BreakEvenRent] = (),
    changes: Sequence[CostChange] = (),
) -> list[Table]:
    """Return the tables of the first screen, within 30 lines for four racks without settings.

    Args:
        scenario_results: Evaluated scenarios, in order.
        confidence: Picks, costs and chances by speed.
        deployed: Words on speculative decoding, software and engines.
        elsewhere: Cheaper systems that are not compared.
        rents: Rents below which racks without a rent beat the cheapest.
        changes: Costs without the settings of the user and with them.

    """
    has_settings = bool(changes)
    if _is_other_work(changes):
        changes = ()
    above = _lines_above(scenario_results, confidence, deployed)
    tables = _screen_tables(scenario_results, confidence, changes)
    first = [
        *(
            [OTHER_SYSTEMS]
            if has_settings and confidence.curve
            else _cheaper_words(elsewhere, scenario_results, confidence)
        ),
        *_common_rent_words(scenario_results),
        *rent_words(rents),
        *price_words(confidence, compared_speed(scenario_results, confidence), scenario_results),
    ]
    priced = [
        scenario_result for scenario_result in scenario_results if not scenario_result.costless
    ]
    last = premises_without_halls(priced or scenario_results)
    spare = {
        "missed speeds": too_slow_words(confidence),
        "later dates": later_words(confidence.later),
        "picks by software": software_bound_picks(confidence.regimes),
    }
    above, first, last = map(_folded_lines, (above, first, last))
    used = len(above) + len(first) + len(last) + sum(map(_height, tables))
    room = LINES - used + (_height(tables[0]) if changes else 0)
    remarks, left_out = _lines_within(spare, room)
    following = MORE_IN_FULL.format(", ".join(left_out)) if left_out else NEXT_COMMANDS
    below = [*remarks, *first, *last, following]
    tables[0] = tables[0]._replace(above=[*above, *tables[0].above])
    tables[-1] = tables[-1]._replace(below=below)
    return [table._replace(width=NARROW_SCREEN) for table in tables]


def _is_other_work(changes: Sequence[CostChange]) -> bool:
    """Return whether the settings name another workload, whose costs do not compare."""
    return all(
        change.is_other_work or (change.before is None and change.median_before is None)
        for change in changes
    )


def _lines_above(
    scenario_results: Sequence[Result], confidence: Confidence, deployed: str
) -> list[str]:
    """Return the work that is compared, and what to buy."""
    title = workload_title(scenario_results, not confidence.curve)
    return [
        ", ".join(filter(None, (title, deployed))),
        *workloads(scenario_results),
        *computed_format_words(scenario_results),
        *advice_lines(confidence, scenario_results),
    ]


def _screen_tables(
    scenario_results: Sequence[Result], confidence: Confidence, changes: Sequence[CostChange]
) -> list[Table]:
    """Return the tables of changes by settings, of speeds or work, of racks and of choices."""
    speed = compared_speed(scenario_results, confidence)
    tables = [_change_table(changes, scenario_results)] if changes else []
    if confidence.curve:
        tables.append(_speed_table(confidence, scenario_results))
    else:
        tables += _work_table(scenario_results, confidence)
    tables.append(_rack_table(scenario_results, confidence, speed))
    return [*tables, _choice_table(confidence)] if confidence.choices else tables


def _height(table: Table) -> int:
    """Return the lines of a table with legends, a head of two lines, its rule and a blank line."""
    return len(table.above) + len(table.rows) + 4


def _folded_lines(texts: Sequence[str]) -> list[str]:
    return [line for line_text in texts for line in folded(line_text, NARROW_SCREEN)]


def _lines_within(
    texts_by_topic: Mapping[str, Sequence[str]], room: int
) -> tuple[list[str], list[str]]:
    """Fold the topics for which there is room, the first first; name those that are left out."""
    lines: list[str] = []
    left_out: list[str] = []
    for topic, texts in texts_by_topic.items():
        folded_lines = _folded_lines(texts)
        if len(lines) + len(folded_lines) <= room:
            lines += folded_lines
        else:
            left_out.append(topic)
    return lines, left_out


# ---------------------------------------------------------------- what to buy
def advice_lines(confidence: Confidence, scenario_results: Sequence[Result]) -> list[str]:
    """Return advice on the purchase by speed with its chance, a sentence for each regime."""
    if not confidence.regimes or len(scenario_results) == 1:
        return verdict_words(confidence, scenario_results)
    units = ["tokens/s per user", *["tokens/s"] * (len(confidence.regimes) - 1)]
    advice = [
        _advice(regime, confidence, scenario_results, unit)
        for regime, unit in zip(confidence.regimes, units, strict=True)
    ]
    return [*advice, *unrated_words(confidence, scenario_results)]


def _advice(
    regime: Regime, confidence: Confidence, scenario_results: Sequence[Result], unit: str
) -> str:
    where = f" at {format_speed_range(regime)} {unit}" if regime.speeds else ""
    if regime.kind == "nobody":
        share = " in half of the draws" if confidence.sure else ""
        return f"No rack serves the work{where}{share}."
    pick_names = listed_names(regime.picks)
    if regime.probability is None:
        verb = "is cheapest" if len(regime.picks) == 1 else "cost the same"
        return f"{pick_names} {verb}{where} in the base case; no range was drawn."
    points: list[AtSpeed | Sureness] = [
        point
        for point in confidence.curve
        if point.scenario in regime.picks and point.tokens_per_s_per_user in regime.speeds
    ]
    if not points:
        points += [
            sure
            for scenario_result, sure in zip(scenario_results, confidence.sure, strict=True)
            if scenario_result.scenario in regime.picks
        ]
    shares = [point.share_cheapest for point in points if point.share_cheapest is not None]
    chance = f" (cheapest in {_percent_span(min(shares), max(shares))} of draws)" if shares else ""
    if len(regime.picks) > 1:
        sentence = f"Tie{where}: {pick_names} are too close to call{chance}."
    else:
        sentence = f"Buy {pick_names}{where}{chance}."
    return " ".join([sentence, *_late_sentence(regime)])


def _late_sentence(regime: Regime) -> list[str]:
    if not regime.late:
        return []
    is_only_pick = len(regime.picks) == 1
    ships = " and ".join(
        f"{'It' if is_only_pick else scenario_name} ships in volume from {month}"
        for scenario_name, month in regime.late.items()
    )
    until = (
        f"until then buy {' or '.join(regime.available)}"
        if regime.available
        else "none that serves this work comes sooner"
    )
    return [f"{ships}; {until}."]


def computed_format_words(scenario_results: Sequence[Result]) -> list[str]:
    """Return which racks compute in another format than the weights are stored in."""
    racks: dict[str, list[str]] = {}
    for scenario_result in scenario_results:
        structure = scenario_result.structure
        formats = structure.choices.get("formats", {}) if structure else {}
        stored, computes, computed_as = formats.get("precision", "").partition(" computed as ")
        if computes:
            words = f"do not compute {stored.upper()}; it runs as {computed_as.upper()}"
            racks.setdefault(words, []).append(scenario_result.scenario)
    return [f"The chips of {listed_names(names)} {words}." for words, names in racks.items()]


def _percent_span(least: float, most: float) -> str:
    low, high = rounded_percent(least), rounded_percent(most)
    return high if low == high else f"{low.removesuffix(' %')} to {high}"


# ---------------------------------------------------------------- a row for each speed
def _speed_table(confidence: Confidence, scenario_results: Sequence[Result]) -> Table:
    """Tabulate the pick of each speed: cost, regret, draws it wins, and the runner-up."""
    points: dict[float, list[AtSpeed]] = {}
    for point in confidence.curve:
        points.setdefault(point.tokens_per_s_per_user, []).append(point)
    picks = {speed: regime.picks for regime in confidence.regimes for speed in regime.speeds}
    is_drawn, has_rivals = bool(confidence.sure), len(scenario_results) > 1
    if is_drawn:
        has_rivals = any(point.share_of_best is not None for point in confidence.curve)
    marks = {
        scenario_result.scenario: bound_mark(scenario_result)
        for scenario_result in scenario_results
    }
    speed_rows = [
        speed_row
        for speed in sorted(points)
        for speed_row in _speed_rows(speed, points[speed], picks.get(speed, ()), marks, is_drawn)
    ]
    costs = ("median", "P10", "P90") if is_drawn else ("base case",)
    rivals = ("mean regret", "wins", "runner-up", "its regret") if is_drawn else ("runner-up",)
    pick = "pick (least mean regret)" if is_drawn and has_rivals else "pick"
    columns = ("speed", pick, *costs, *(rivals if has_rivals else ()))
    width = len(columns)
    align = "rlrrrrrlr" if is_drawn else "rlrl"
    emphasis = {
        (row_index, 1): TIE if not speed_text or speed_text.endswith(TIED) else PICK
        for row_index, (speed_text, row_label, *_) in enumerate(speed_rows)
        if row_label != NO_RACK
    }
    cells = [speed_row[:width] for speed_row in speed_rows]
    legends = [SPEED_LEGEND, *DRAW_LEGENDS] if is_drawn and has_rivals else [SPEED_LEGEND]
    return Table(columns, cells, "", legends, align=align, emphasis=emphasis)


def _speed_rows(
    speed: float,
    points: Sequence[AtSpeed],
    picks: Sequence[str],
    marks: Mapping[str, str],
    is_drawn: bool,
) -> list[tuple[str, ...]]:
    """Return a row for each pick of a speed; the rows of a tie stand below each other."""
    named = {point.scenario: point for point in points}
    priced = [scenario_name for scenario_name, point in named.items() if point.note is None]
    if not picks and len(priced) == 1:
        picks = priced
    rivals = sorted(
        (point for point in points if point.scenario not in picks), key=_rival_order, reverse=True
    )
    runner_up = rivals[0] if rivals and _rival_order(rivals[0]) > float("-inf") else None
    pick_rows = []
    speed_text = f"{speed:g}{TIED if len(picks) > 1 else ''}"
    for index, pick_name in enumerate(picks):
        rival = runner_up if index == 0 else None
        cells_of = _drawn_cells if is_drawn else _base_cells
        cells = cells_of(named[pick_name], rival, marks.get(pick_name, ""))
        pick_rows.append(("" if index else speed_text, pick_name, *cells))
    none = ("-",) * (7 if is_drawn else 2)
    return pick_rows or [(f"{speed:g}", NO_RACK, *none)]


def _rival_order(point: AtSpeed) -> float:
    """Return the share of the best, or without draws the cost of which less is more."""
    if point.share_of_best is not None:
        return point.share_of_best["mean"]
    cost = point.usd_per_million_output_tokens
    return float("-inf") if cost is None else -cost


def _drawn_cells(point: AtSpeed, rival: AtSpeed | None, mark: str) -> tuple[str, ...]:
    median = point.median_usd_per_million_output_tokens
    low = point.p10_usd_per_million_output_tokens
    high = point.p90_usd_per_million_output_tokens
    cells: tuple[str, ...] = ("too slow", "-", "-")
    if not is_too_slow(point):
        cells = (
            mark + cost_text(median),
            cost_text(low),
            "slow" if high is None else cost_text(high),
        )
    second = "-" if rival is None else rival.scenario
    return *cells, regret_text(point), chance_text(point), second, regret_text(rival)


def _base_cells(point: AtSpeed, rival: AtSpeed | None, mark: str) -> tuple[str, ...]:
    second = "-"
    if rival is not None:
        second = f"{rival.scenario} ({cost_text(rival.usd_per_million_output_tokens)})"
    return mark + cost_text(point.usd_per_million_output_tokens), second


def too_slow_words(confidence: Confidence) -> list[str]:
    """Return a sentence on racks that miss speeds, with the share of draws that miss."""
    groups: dict[str, list[str]] = {}
    for point in confidence.curve:
        if is_too_slow(point) and point.meets is not None:
            share = rounded_percent(1 - point.meets)
            groups.setdefault(point.scenario, []).append(
                f"{point.tokens_per_s_per_user:g} ({share})"
            )
    racks = [
        f"{scenario_name} at {listed_names(speeds)}" for scenario_name, speeds in groups.items()
    ]
    if not racks:
        return []
    return [f"Too slow, with the share of draws that miss the speed: {', '.join(racks)}."]


# ---------------------------------------------------------------- work without a speed
def _work_table(scenario_results: Sequence[Result], confidence: Confidence) -> list[Table]:
    """Tabulate the cost of work that promises no speed, with regret and chance; or nothing."""
    metric = rated_by(scenario_results)
    if metric is None:
        return []
    size, unit = (1e6, "million USD per trillion tokens") if metric == TRAINING_COST else (1.0, "")
    label = unit or "USD per million tokens"
    sureness = confidence.sure
    if not sureness:
        cases = [
            (scenario_result.scenario, _scaled_text(scenario_result.metrics[metric], size))
            for scenario_result in scenario_results
        ]
        return [Table(("rack", f"base case, {label}"), cases)]
    work_rows: list[tuple[str, ...]] = []
    for scenario_result, sure in zip(scenario_results, sureness, strict=True):
        percentiles = sure.range(metric) or {}
        best = sure.share_of_best
        work_rows.append(
            (
                scenario_result.scenario,
                _scaled_text(percentiles.get("p50", scenario_result.metrics[metric]), size),
                percentile_range_text(sure, metric, size),
                "-" if best is None else rounded_percent(1 - best["mean"]),
                "-" if best is None else rounded_percent(sure.share_cheapest),
                _scaled_text((sure.range(RATIO) or {}).get("p50"), 1.0),
            )
        )
    columns = ("rack", f"median, {label}", "P10 to P90", "mean regret", "chance cheapest")
    medians = [
        {name: ends["p50"] for name, ends in sure.ranges.items() if ends} for sure in sureness
    ]
    below = [*training_job_words(scenario_results, medians), *_unmeasured_words(scenario_results)]
    return [Table((*columns, "median performance per TCO"), work_rows, below=below)]


def _unmeasured_words(scenario_results: Sequence[Result]) -> list[str]:
    """Return a sentence on chips without a published run of the work, nor one of a relative."""
    standings = [scenario_result.standing for scenario_result in scenario_results]
    gaps = {
        standing.reason: None
        for standing in standings
        if standing.median is None and not standing.anchors and standing.unmeasured == "prior"
    }
    return [f"The chances rest on estimates: {'; '.join(gaps)}."] if gaps else []


def _scaled_text(cost_value: float | None, size: float) -> str:
    return "none" if cost_value is None else significant(cost_value / size, 3)


# ---------------------------------------------------------------- a row for each rack
def _rack_table(
    scenario_results: Sequence[Result], confidence: Confidence, speed: float | None
) -> Table:
    """Tabulate each rack: cost, basis of its price, published runs behind it, availability."""
    points = {
        point.scenario: point for point in confidence.curve if point.tokens_per_s_per_user == speed
    }
    statistic = "median" if confidence.sure else "base case"
    columns = ["rack", "chip's USD/h", "priced by", *EVIDENCE, *AVAILABILITY]
    rack_rows: list[list[str]] = []
    sureness: Sequence[Sureness | None] = confidence.sure or [None] * len(scenario_results)
    for scenario_result, sure in zip(scenario_results, sureness, strict=True):
        mark = bound_mark(scenario_result)
        rack_row = [
            scenario_result.scenario,
            mark + _chip_hour_text(scenario_result, sure),
            _basis_text(scenario_result),
            *_evidence_texts(scenario_result.standing),
            *_availability_texts(scenario_result),
        ]
        if speed is not None:
            cost = point_cost_text(points.get(scenario_result.scenario), bool(confidence.sure))
            rack_row.insert(1, mark + cost if cost[:1].isdigit() else cost)
        rack_rows.append(rack_row)
    if speed is not None:
        columns.insert(1, f"{statistic} at {speed:g}")
        return Table(columns, rack_rows, align="lrrlrrll")
    return Table(columns, rack_rows, align="lrlrrll")


def _evidence_texts(standing: Standing) -> tuple[str, str]:
    """Return the count of the chip's published runs, and the median error on them."""
    if standing.median is None:
        return "none" if standing.unmeasured == "prior" else standing.unmeasured, "-"
    return f"{standing.validated_rows:,}", f"{standing.median * 100:.0f} %"


def _availability_texts(scenario_result: Result) -> tuple[str, str]:
    """Return the month of first volume, and that of the first token of a rack ordered now."""
    available = scenario_result.available
    return (available.volume, available.first_token or "-") if available else ("-", "-")


def _chip_hour_text(scenario_result: Result, sure: Sureness | None) -> str:
    """Return the median cost per chip-hour, USD, or without draws the base case."""
    percentiles = None if sure is None else sure.range(CHIP_HOUR)
    base_case = scenario_result.metrics[CHIP_HOUR]
    return cost_text(base_case if percentiles is None else percentiles["p50"])


def _basis_text(scenario_result: Result) -> str:
    """Return the basis of a rack's price: its owner's own cost, a vendor's, or a kind of rent."""
    if scenario_result.basis is None:
        return "-"
    if scenario_result.basis == OWN_COST:
        return "own cost"
    if scenario_result.rent is None:
        return "vendor"
    return RENTS[scenario_result.rent[0]]


def _common_rent_words(scenario_results: Sequence[Result]) -> list[str]:
    """Return that several renters pay one kind of rent, which may differ from that of one alone."""
    rents = [scenario_result.rent for scenario_result in scenario_results if scenario_result.rent]
    if len(rents) < 2:
        return []
    statistic, publisher = rents[0]
    return [
        f"All rents compared are of one kind: {RENTS[statistic]} ({publisher}). A rack alone may "
        "pay another kind; `tco rents` lists all."
    ]


# ---------------------------------------------------------------- choices and settings
def _choice_table(confidence: Confidence) -> Table:
    """Tabulate the mean regret of the choices that the user named, by speed."""
    regrets: dict[str, dict[float | None, float]] = {}
    for choice in confidence.choices:
        by_speed = regrets.setdefault(choice["choice"], {})
        by_speed[choice["tokens_per_s_per_user"]] = 1 - choice["share_of_best"]["mean"]
    speeds = list(dict.fromkeys(speed for by_speed in regrets.values() for speed in by_speed))
    heads = ["" if speed is None else f"at {speed:g} tokens/s" for speed in speeds]
    choice_rows = [
        (choice_name, *(rounded_percent(by_speed.get(speed)) for speed in speeds))
        for choice_name, by_speed in regrets.items()
    ]
    return Table(("mean regret of the choice", *heads), choice_rows)


def _change_table(changes: Sequence[CostChange], scenario_results: Sequence[Result]) -> Table:
    """Tabulate the cost of each scenario without the settings and with them."""
    is_training = rated_by(scenario_results) == TRAINING_COST
    size, unit = (
        (1e6, "million USD per trillion tokens") if is_training else (1.0, "USD/M output tokens")
    )
    statistic = "base case"
    terms = next((change.terms for change in changes if change.terms), ())
    reasons = dict.fromkeys(f"{note}." for change in changes for note in change.notes)
    if any(change.has_medians for change in changes):
        statistic = f"median{_target_speed_words(scenario_results)}"
        changes = [change.of_medians() for change in changes]
    change_rows = [
        (
            change.scenario,
            *(
                cost_text(None if cost is None else cost / size)
                for cost in (change.before, change.after)
            ),
            change.words,
        )
        for change in changes
    ]
    columns = (f"{unit}, {statistic}", "before", "with --set", "change")
    return Table(columns, change_rows, below=[*reasons, *_implied_terms_words(terms)])


def _implied_terms_words(terms: Sequence[tuple[Input, Input]]) -> list[str]:
    """Return the terms that another buyer brings, with their values before."""
    if not terms:
        return []
    brought = ", ".join(
        f"{short_name(after.path)} {_term_text(after)} (before: {_term_text(before)})"
        for before, after in terms
    )
    return [f"This buyer also brings: {brought}."]


def _term_text(term: Input) -> str:
    if term.unit in PLAIN_NUMBERS:
        return f"{term.value * 100:.3g} %"
    return f"{term.value:.3g} {term.unit}s"


def _target_speed_words(scenario_results: Sequence[Result]) -> str:
    """Return at which speed costs before and with settings stand; settings may move the target."""
    speed = target_speed(scenario_results)
    if speed is None:
        return ""
    is_moved = any(
        scenario_result.origin and not TARGETS.isdisjoint(scenario_result.origin.settings)
        for scenario_result in scenario_results
    )
    return " at the target speed" if is_moved else f" at {speed:g}"


# ---------------------------------------------------------------- systems not compared
def _cheaper_words(
    elsewhere: Sequence[Elsewhere], scenario_results: Sequence[Result], confidence: Confidence
) -> list[str]:
    """Return the cheapest systems that are not compared, and how many more beat all compared."""
    if not elsewhere:
        return []
    named = [
        f"{system.system} {cost_text(system.cost)} (volume {system.in_volume}, {system.rests_on})"
        for system in elsewhere[:NAMED]
    ]
    more = len(elsewhere) - len(named)
    rest = f", {more} more in --all" if more else ""
    speed = target_speed(scenario_results)  # of the shipped ranking
    where = "" if speed is None else f" at {speed:g}"
    if speed != compared_speed(scenario_results, confidence):
        where += " tokens/s, the only speed of the shipped ranking"
    return [f"Cheaper{where}, but compared only if named: {', '.join(named)}{rest}."]
