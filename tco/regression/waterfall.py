"""Why a result moved, step by step: from one to another by changing one thing at a time, all
earlier changes kept.

From one state to another the earlier one is first evaluated with its own inputs by today's program:
what differs then is a formula or the tree, not an input. Then inputs change one by one, by path;
then texts, such as the model; and what is left is the system, or its variant. At each step the plan
is the best one: where another is chosen, that counts with the change that brought it. What a step
adds to a metric depends on the order, the sum of all steps does not: it is the drift.

From one system to another the other's things take the place of its own, group by group. First what
is asked for becomes the other's, where that differs. Then costs: the lines of one group after
another become the other's, at the rate that the first system works at. Then speed: figures of its
chip, latencies and software become the other's, and the chain is walked anew, the plan chosen
again. What no input says, such as how many chips a scale-up domain has and how they are joined, is
left: the residual.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tco.catalog.labels import count_with_noun
from tco.catalog.rows import attribute
from tco.core.errors import DataError, TcoError, located
from tco.core.files import read_json
from tco.core.notebook_display import Shown
from tco.core.types import JsonObject
from tco.evaluation.chip_price import chip_of
from tco.evaluation.evaluated_scenario import Evaluation
from tco.evaluation.evaluation import SAVED, catalogue_for, evaluate_each
from tco.performance.chip.formats import family_of
from tco.performance.software_maturity import parameters_of_family, served_by
from tco.regression.difference import (
    ChangeCause,
    ChangeContribution,
    Move,
    causes,
    changed_metrics,
    differs,
    formula_causes,
    input_causes,
    quantity_causes,
    reevaluate_state,
    refuse_broken,
    state_of,
    value_in_unit_or_text,
)
from tco.scenario.choices import DOCUMENTS
from tco.scenario.metrics import PRICED, perf_per_tco

if TYPE_CHECKING:
    from tco.catalog import Catalogue
    from tco.cost.cash_flows import Flow
    from tco.evaluation.evaluated_scenario import Evaluation
    from tco.scenario.result import Result

Found = TypeVar("Found")
HOUR, USED = "tco_usd_per_chip_hour", "tco_usd_per_used_chip_hour"
TOLD = (*PRICED, HOUR, USED)  # whose change is told in steps: the first that both systems have
GROUPS = CHIP, RACK, NETWORK, SITE, ENERGY, UPKEEP, REBATES, OTHER = (
    "chip",
    "rack",
    "network",
    "site",
    "energy",
    "upkeep",
    "rebates",
    "other",
)
LOST = "hours lost"
ASSETS = {  # class of asset -> group of lines
    **{"network": NETWORK, "storage": NETWORK, "design": CHIP, "building": SITE, "staff": SITE},
    **{"energy": ENERGY, "upkeep": UPKEEP, "rebate": REBATES},
}
# What a step of speed replaces on the chip, and what stands for it: attribute -> metric
FIGURES = {
    "arithmetic": {
        "peak_bf16": "peak_bf16_flop_per_s",
        "peak_fp8": "peak_fp8_flop_per_s",
        "peak_fp4": "peak_fp4_flop_per_s",
    },
    "memory": {
        "hbm_bandwidth": "hbm_byte_per_s",
        "hbm_capacity": "hbm_bytes",
        "dma_bandwidth": "hbm_byte_per_s",
    },  # what reads it keeps up
    "links": {
        "scale_up_bandwidth": "scale_up_byte_per_s",
        "scale_out_bandwidth": "scale_out_byte_per_s",
    },
}
SHOWN = {
    "arithmetic": ("peak_fp8_flop_per_s", 1e15, "PFLOP/s"),
    "memory": ("hbm_byte_per_s", 1e12, "TB/s"),
    "links": ("scale_up_byte_per_s", 1e9, "GB/s"),
}
# names of what takes its time however little there is to do
LATENCY = re.compile(r"_(time|latency|step|start|wait|unit)$")


class Stride(NamedTuple):
    """One group of things made the other system's."""

    cause: str
    of: str  # what it belongs to: asked, cost or performance
    here: str | float | None  # what it was, in USD a chip-hour or in words
    there: str | float | None
    start: float  # the metric before
    end: float
    settings: Mapping[str, str] = {}  # what was put in place, as `--set` takes it

    @property
    def change(self) -> float:
        """Change of the metric by this step."""
        return self.end - self.start


class Counterfactual(NamedTuple):
    """The way from one system to another."""

    metric: str
    own: Result
    other: Result
    steps: list[Stride]
    residual: float  # what no step tells: all of them and it sum to the change

    @property
    def ends(self) -> tuple[float, float]:
        """The metric of one and of the other."""
        return float(self.own.metrics[self.metric]), float(self.other.metrics[self.metric])


def between_systems(
    own: Evaluation, other: Evaluation, metric: str | None = None
) -> Counterfactual | None:
    """Return the way from one system to the other; none where no cost is known of both."""
    mine, its = own.result.metrics, other.result.metrics
    known = (
        name
        for name in ((metric,) if metric else TOLD)
        if mine[name] is not None and its[name] is not None
    )
    found = next(known, None)
    if found is None:
        return None
    steps = list(counterfactual_steps(own, other, found))
    at = steps[-1].end if steps else float(mine[found])
    return Counterfactual(found, own.result, other.result, steps, float(its[found]) - at)


def counterfactual_steps(own: Evaluation, other: Evaluation, metric: str) -> Iterator[Stride]:
    """Yield the steps."""
    settings: dict[str, str] = {}
    base, at = own.result, float(own.result.metrics[metric])
    for cause, asked in asked_apart(own.result, other.result):
        settings |= asked
        result = result_or_none(partial(own.again, settings, refuse=False))
        if result is not None and result.metrics[metric] is not None:
            said = [
                ", ".join(document_or_input_text(one, path) for path in asked)
                for one in (own.result, other.result)
            ]
            yield Stride(
                cause, "asked", said[0], said[1], at, at := float(result.metrics[metric]), asked
            )
            base = result
    before = hour = float(base.metrics[HOUR])
    sums, its = (
        cost_groups(base, chip_of(own.catalogue, own.result)),
        cost_groups(other.result, chip_of(other.catalogue, other.result)),
    )
    for group in GROUPS:
        here, there = sums.get(group, 0.0), its.get(group, 0.0)
        if here or there:
            hour, start = hour + there - here, at
            yield Stride(
                group, "cost", here, there, start, at := float(base.metrics[metric]) * hour / before
            )
    if metric == HOUR:
        return
    used = hours_paid(other.result)
    yield Stride(LOST, "cost", hours_paid(base), used, at, at := at * used / hours_paid(base))
    if metric == USED:
        return
    # utilised chip-hours that the work takes
    rate = float(base.metrics[metric]) / float(base.metrics[USED])
    # causes that give no plan on their own, and what they put in place
    waiting: dict[str, dict[str, str]] = {}
    for swap in speeds(own, other):
        settings |= swap.settings
        waiting[swap.cause] = swap.settings
        result = result_or_none(partial(own.again, settings, refuse=False))
        if result is not None and result.metrics[metric] is not None:
            took = float(result.metrics[metric]) / float(result.metrics[USED])
            all_put = {path: text for some in waiting.values() for path, text in some.items()}
            yield Stride(
                " and ".join(waiting),
                "performance",
                swap.here,
                swap.there,
                at,
                at := at * took / rate,
                all_put,
            )
            rate, waiting = took, {}


def asked_apart(own: Result, other: Result) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield (group, settings) pairs in which the question of `other` differs.

    The groups are documents, and the settings of `other` that `own` lacks or sets differently.
    Nothing is yielded if a result has no origin.
    """
    if own.origin is None or other.origin is None:
        return
    for group in DOCUMENTS:
        name = other.origin.documents[group]
        if name != own.origin.documents[group]:
            yield group, {group: name}
    kept = {
        path: text
        for path, text in other.origin.settings.items()
        if not path.startswith("parts.") and path not in DOCUMENTS
    }
    put = {path: text for path, text in kept.items() if own.origin.settings.get(path) != text}
    if put:
        yield "settings", put


def document_or_input_text(result: Result, path: str) -> str:
    """Return the text of a document or input of `result`.

    The text is `-` where `result` has no value at `path`.
    """
    origin = result.origin
    given = result.inputs.get(path)
    if origin is not None and path in origin.documents:
        return origin.documents[path]
    return f"{given.value:g} {given.unit}".rstrip() if given else result.texts.get(path, "-")


def cost_groups(result: Result, chip: str) -> dict[str, float]:
    """Return cost per chip-hour in USD, keyed by group of lines."""
    found: dict[str, float] = {}
    for line in result.lines:
        group = cost_group(line, chip)
        found[group] = found.get(group, 0.0) + float(line.usd_per_chip_hour)
    return found


def cost_group(line: Flow, chip: str) -> str:
    """Return the group of a line; the memory inside a chip is of the chip."""
    if line.asset == "servers":
        return CHIP if chip in line.path.split("/") else RACK
    return (
        SITE
        if line.path.startswith("site/") and line.asset == "upkeep"
        else ASSETS.get(line.asset, OTHER)
    )


def hours_paid(result: Result) -> float:
    """Return the hours that are paid for each that is used."""
    return float(result.metrics[USED]) / float(result.metrics[HOUR])


class ReplacedInputs(NamedTuple):
    """Inputs of one system with the values of the other, as settings, and what both have in
    words.
    """

    cause: str
    settings: dict[str, str]
    here: str
    there: str


def speeds(own: Evaluation, other: Evaluation) -> Iterator[ReplacedInputs]:
    """Yield the groups of inputs that decide how fast a system is."""
    mine, its = chip_of(own.catalogue, own.result), chip_of(other.catalogue, other.result)
    for cause, figures in FIGURES.items() if mine != its else ():
        put = {}
        for name, metric in figures.items():
            value, path = chip_metric(other.result, metric), f"parts.{mine}.{name}"
            if value and (name != "dma_bandwidth" or path in own.result.inputs):
                put[path] = setting_text((value, attribute("parts", name, path).unit))
        metric, size, unit = SHOWN[cause]
        figures_of = (chip_metric(one.result, metric) for one in (own, other))
        yield ReplacedInputs(
            cause,
            put,
            *("-" if value is None else f"{value / size:,.4g} {unit}" for value in figures_of),
        )
    family, its_family = family_of(own.catalogue, mine), family_of(own.catalogue, its)
    if family == its_family:
        return
    taken = practice_of(own, other, family, its_family)
    quick = {path: text for path, text in taken.items() if LATENCY.search(path)}
    launches = (
        own.result.inputs.get(f"performance.{family}.launch_time"),
        other.result.inputs.get(f"performance.{its_family}.launch_time"),
    )
    yield ReplacedInputs(
        "latency", quick, *(f"{one.value * 1e6:.3g} us" if one else "-" for one in launches)
    )
    engines = [str(served_by(own.catalogue, name)["engine"]) for name in (family, its_family)]
    put = {path: text for path, text in taken.items() if path not in quick}
    if own.result.texts["workload.kind"] == "serving":
        yield ReplacedInputs(
            "software", put | {"workload.engine": engines[1]}, engines[0], engines[1]
        )
    else:
        yield ReplacedInputs("software", put, family, its_family)


def chip_metric(result: Result, metric: str) -> float | None:
    """Return a figure of a chip; a format that it does not compute in it computes as BF16."""
    value: float | None = result.metrics[metric] or (
        result.metrics["peak_bf16_flop_per_s"] if metric.startswith("peak") else None
    )
    return value


def practice_of(own: Evaluation, other: Evaluation, family: str, its: str) -> dict[str, str]:
    """Return software parameters of `other` as settings for the family of `own`.

    The values come from the answer of `other`, or else from the catalogue.
    """
    chip = chip_of(own.catalogue, own.result)
    found = {
        path: other.result.inputs.get(path.replace(f".{family}.", f".{its}."), known)
        for path, known in parameters_of_family(own.catalogue, chip, its).items()
    }
    return {path: setting_text((given.value, given.unit)) for path, given in found.items()}


ROUNDING = 1e-11  # of the digits that files keep
STATE, INPUT, TEXT, SYSTEM = range(4)  # the order in which things change
FIT = "tco-calibration"  # the source of what is fitted
CODE = ChangeCause("code", "", None, None, "")  # what neither a fingerprint nor a quantity names

Metrics = Mapping[str, float]


class Waypoint(NamedTuple):
    """The metrics after a change, all earlier ones kept; its place in the order is the same in
    every scenario.
    """

    place: tuple[int, str]
    causes: tuple[ChangeCause, ...]
    metrics: Metrics


def points(old: JsonObject, new: JsonObject, catalogue: Catalogue) -> list[Waypoint]:
    """Return the way from one state to another; what cannot be evaluated on its own counts with
    what follows it.
    """
    found = list(changes(old, new, catalogue))
    return [*found, Waypoint((SYSTEM, ""), last_causes(old, new, bool(found)), new["metrics"])]


def changes(old: JsonObject, new: JsonObject, catalogue: Catalogue) -> Iterator[Waypoint]:
    """Yield the points between two states; one whose values alone make no whole has no metrics."""
    kept = {path: setting_text(given) for path, given in old["inputs"].items()} | old["texts"]
    found = result_or_none(partial(reevaluate_state, old, kept, catalogue))
    if found is None:
        return  # the earlier state cannot be had any more
    yield Waypoint((STATE, ""), program_causes(old, new, found.quantities), found.metrics)
    elsewhere = old["system"] != new["system"]
    for cause in input_causes(old["inputs"], new["inputs"]):
        if cause.path not in new["inputs"] or (elsewhere and cause.old is None):
            continue  # gone, or an input of the other system
        kept[cause.path] = setting_text(new["inputs"][cause.path])
        made = result_or_none(partial(reevaluate_state, old, kept, catalogue))
        yield Waypoint(
            (INPUT, cause.path),
            (attribute_cause_to_fit(cause, catalogue),),
            made.metrics if made else {},
        )
    for path, text in new["texts"].items():
        if old["texts"].get(path) != text:
            kept[path] = text
            made = result_or_none(partial(reevaluate_state, old, kept, catalogue))
            yield Waypoint(
                (TEXT, path),
                (ChangeCause("assumption", path, old["texts"].get(path), text, ""),),
                made.metrics if made else {},
            )


def result_or_none(ask: Callable[[], Found]) -> Found | None:
    """Return an answer after a change; none where its values do not go together, and count with
    what follows.
    """
    try:
        return ask()
    except TcoError:
        return None


def setting_text(given: Sequence[Any]) -> str:
    """Return a kept quantity as a setting."""
    value, unit = given
    return f"{value!r} {unit}".strip()


def attribute_cause_to_fit(cause: ChangeCause, catalogue: Catalogue) -> ChangeCause:
    """Return the change of an input as one of the program's fit, where the new value is that of the
    calibration.
    """
    group, family, name = (*cause.path.split("."), "", "", "")[:3]
    if group != "performance" or (family, name) not in catalogue.calibration_rows:
        return cause
    fit = catalogue.practice(family, name)
    if fit.source != FIT:
        return cause  # a vendor's number, or a prior
    set_by_user = fit.overlay or differs(
        cause.new, value_in_unit_or_text(fit.shown or (fit.value, fit.unit), cause.unit), ROUNDING
    )
    return cause if set_by_user else cause._replace(kind="fit")


def program_causes(
    old: JsonObject, new: JsonObject, today: dict[str, float]
) -> tuple[ChangeCause, ...]:
    """Return the causes of a change that no input explains.

    The causes are the version, formulas by name and quantities of the tree. The data hash counts
    only where neither formulas nor quantities differ. `CODE` is the cause where nothing else
    differs.
    """
    tree = quantity_causes(old["quantities"], today)
    formulas = formula_causes(old.get("formulas") or {}, new.get("formulas") or {}, alone=False)
    if not formulas and not tree and old["system"] == new["system"]:
        formulas = formula_causes(old.get("formulas") or {}, new.get("formulas") or {}, alone=True)
    pairs = (
        ("version", "tco_version"),
        *([("data", "data_hash")] if not tree and not formulas else []),
    )
    hashes = [
        ChangeCause(kind, "", old[key], new[key], "") for kind, key in pairs if old[key] != new[key]
    ]
    return (*hashes, *formulas, *tree) or (CODE,)


def last_causes(old: JsonObject, new: JsonObject, whole: bool) -> tuple[ChangeCause, ...]:
    """Return the remaining causes once inputs and texts match the later state."""
    if not whole:
        return (
            *input_causes(old["inputs"], new["inputs"]),
            *program_causes(old, new, new["quantities"]),
        )
    if old["system"] != new["system"]:
        return (ChangeCause("assumption", "system", old["system"], new["system"], ""),)
    before, after = old["variant"], new["variant"]
    found = [
        ChangeCause("assumption", f"variant {key}", before.get(key), after.get(key), "")
        for key in sorted(before.keys() | after.keys())
    ]
    found = [cause for cause in found if cause.old != cause.new] or quantity_causes(
        old["quantities"], new["quantities"]
    )
    return tuple(found) or (CODE,)


def waterfall_steps(
    way: Sequence[Waypoint], start: Metrics, metric: str
) -> tuple[ChangeContribution, ...]:
    """Return the contributions of successive changes to a metric.

    The steps run from the value in `start` to the value of the last point. The differences sum to
    the drift.
    """
    found: list[tuple[tuple[ChangeCause, ...], float]] = []
    at, open_causes = start[metric], tuple[ChangeCause, ...]()
    for point in way:
        value = point.metrics.get(metric)
        if value is None:
            open_causes += point.causes
        elif differs(at, value, ROUNDING):
            found.append((open_causes + point.causes, value))
            at, open_causes = value, ()
    values = [start[metric], *(value for _, value in found[:-1]), way[-1].metrics[metric]]
    return tuple(
        ChangeContribution(causes, b - a, b / a if a else None)
        for (causes, _), a, b in zip(found, values, values[1:], strict=False)
    )


def ratio_drift_steps(
    own: Sequence[Waypoint],
    other: Sequence[Waypoint],
    start: tuple[Metrics, Metrics],
    cost: str,
    metric: str,
) -> list[Waypoint]:
    """Return the way of a ratio of another scenario's cost to one's own: a thing that both rest on
    changes in both at once.
    """
    here, there = start[0].get(cost), start[1].get(cost)
    causes: dict[tuple[int, str], tuple[ChangeCause, ...]] = {}
    for point in (*own, *other):
        causes[point.place] = tuple(dict.fromkeys((*causes.get(point.place, ()), *point.causes)))
    mine, theirs = ({point.place: point.metrics.get(cost) for point in way} for way in (own, other))
    found = []
    for place in sorted(causes):
        here, there = mine.get(place) or here, theirs.get(place) or there
        found.append(
            Waypoint(
                place,
                causes[place],
                {metric: float(perf_per_tco(there, here))} if here and there else {},
            )
        )
    return found


# ---------------------------------------------------------------- what differs between two results
class Differing(NamedTuple):
    """The metrics that moved, step by step, and all that differs beside them."""

    moves: list[Move]
    causes: list[ChangeCause]


class Difference(Shown, Differing):
    """Differences between two results, with the cost waterfall between two systems."""

    way: Counterfactual | None = None  # from one system to another

    @property
    def line(self) -> str:
        """Counts of differing metrics and inputs, as a line of text.

        Between two systems the line begins with the change of the cost.
        """
        way = (
            ""
            if self.way is None
            else f"{self.way.metric} {self.way.ends[0]:.3g} -> {self.way.ends[1]:.3g}, "
        )
        return (
            f"{way}{count_with_noun(len(self.moves), 'metric')} and "
            f"{count_with_noun(len(self.causes), 'input')} differ"
        )

    def to_frame(self) -> Any:
        """Return the steps from one system to the other as a pandas data frame, or else the metrics
        that moved.
        """
        import pandas as pd

        if self.way is None:
            return pd.DataFrame(
                [(m.metric, m.old, m.new, m.change) for m in self.moves],
                columns=["metric", "old", "new", "change"],
            )
        names = [
            "cause",
            "of",
            self.way.own.scenario,
            self.way.other.scenario,
            "from",
            "to",
            "change",
        ]
        rows = [(*step[:6], step.change) for step in self.way.steps]
        last = self.way.ends[1]
        return pd.DataFrame(
            [
                *rows,
                ("residual", "", None, None, last - self.way.residual, last, self.way.residual),
            ],
            columns=names,
        )


class DiffState(NamedTuple):
    """State of a compared result, with its evaluation where repeatable."""

    state: JsonObject
    asked: Evaluation | None = None


def diff(
    a: str | Path | Result,
    b: str | Path | Result,
    set: Mapping[str, str] | None = None,  # noqa: A002
    data: Path | None = None,
    metric: str | None = None,
) -> Difference:
    """Return the differences from `a` to `b`, with their causes.

    Args:
        a: Scenario by name or path, result, or file of a saved result.
        b: Scenario or result to compare with `a`, in any of these forms.
        set: Values of inputs of `b` by path; `a` stays as it is.
        data: Folder of own data; None takes no further data.
        metric: Cost to split into steps between two systems; None, or a metric that is no cost,
            takes the first cost that both systems have.

    Returns:
        Metrics that moved, inputs that differ and, between two evaluated systems, the change of a
        cost in steps.

    Raises:
        DataError: A scenario is unknown, or a file is no saved result.

    """
    old, new = load_diff_state(a, data), load_diff_state(b, data, dict(set or {}))
    catalogue = catalogue_for(None if not isinstance(a, str) else a, data)
    moved = changed_metrics(old.state, new.state)
    way = points(old.state, new.state, catalogue) if moved else []
    walked = [
        m
        if m.old is None or m.new is None
        else m._replace(steps=waterfall_steps(way, old.state["metrics"], m.metric))
        for m in moved
    ]
    found = Difference(walked, causes(old.state, new.state))
    if old.asked and new.asked and old.state["system"] != new.state["system"]:
        found.way = between_systems(old.asked, new.asked, metric if metric in TOLD else None)
    return found


def load_diff_state(
    name: str | Path | Result, data: Path | None, settings: Mapping[str, str] | None = None
) -> DiffState:
    """Return a scenario or a saved result, or the state that the JSON of `tco price` carries."""
    from tco.scenario.result import SCHEMA, Result

    if not isinstance(name, Result) and str(name).endswith(SAVED):
        wrong = (
            f"{name}: is no saved result; `Result.save` or `tco price SCENARIO --format json "
            "--output FILE` writes one"
        )
        with located(wrong):
            document = read_json(Path(name), "a saved result")
            if isinstance(document, dict) and "state" in document:
                refuse_broken(document["state"], "state")
        if isinstance(document, dict) and "state" in document:
            return DiffState(dict(document["state"]))
        # that of another command, such as `compare`
        if isinstance(document, dict) and document.get("schema", SCHEMA) != SCHEMA:
            raise DataError(f"{wrong}: its schema is {document['schema']!r}")
    (asked,) = evaluate_each([name], data, settings or {})
    return DiffState(state_of(asked.result), None if asked.saved else asked)
