"""Why a result moved, step by step: from one state to another by changing one thing at a time, all earlier changes kept.

First the earlier state is evaluated with its own inputs by today's program: what differs then is a formula or the tree, not an input. Then
inputs change one by one, by path; then texts, such as the model; and what is left is the system, or its variant. At each step the plan is
the best one: where another is chosen, that counts with the change that brought it. What a step adds to a metric depends on the order, the
sum of all steps does not: it is the drift.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tco.chain.metrics import perf_per_tco
from tco.foundation.errors import DataError, TcoError
from tco.foundation.files import read_json
from tco.foundation.shown import Shown
from tco.studies.counterfactual import METRICS, Counterfactual, between_systems
from tco.studies.difference import (
    Again,
    Cause,
    Move,
    Step,
    again,
    causes,
    differs,
    formula_causes,
    in_unit,
    input_causes,
    moves,
    quantity_causes,
    refuse_broken,
    state_of,
)
from tco.studies.evaluation import SAVED, Evaluation, catalogue_for, evaluate_each

if TYPE_CHECKING:
    from tco.catalog import Catalogue
    from tco.chain.result import Result

ROUNDING = 1e-11  # of the digits that files keep
PROGRAM, INPUT, TEXT, SYSTEM = range(4)  # the order in which things change
FIT = "tco-calibration"  # the source of what is fitted
CODE = Cause("code", "", None, None, "")  # what neither a fingerprint nor a quantity names

Metrics = Mapping[str, float]


class Waypoint(NamedTuple):
    """The metrics after a change, all earlier ones kept; its place in the order is the same in every scenario."""

    place: tuple[int, str]
    causes: tuple[Cause, ...]
    metrics: Metrics


def points(old: dict[str, Any], new: dict[str, Any], catalogue: Catalogue) -> list[Waypoint]:
    """Return the way from one state to another; what cannot be evaluated on its own counts with what follows it."""
    found = list(changes(old, new, catalogue))
    return [*found, Waypoint((SYSTEM, ""), last_causes(old, new, bool(found)), new["metrics"])]


def changes(old: dict[str, Any], new: dict[str, Any], catalogue: Catalogue) -> Iterator[Waypoint]:
    """Yield the points between two states; one whose values alone make no whole has no metrics."""
    kept = {path: text_of(given) for path, given in old["inputs"].items()} | old["texts"]
    try:
        found = again(old, kept, catalogue)
    except TcoError:
        return  # the earlier state cannot be had any more
    yield Waypoint((PROGRAM, ""), program_causes(old, new, found.quantities), found.metrics)
    elsewhere, last = old["system"] != new["system"], found
    for cause in input_causes(old["inputs"], new["inputs"]):
        if cause.path not in new["inputs"] or (elsewhere and cause.old is None):
            continue  # gone, or an input of the other system
        kept[cause.path] = text_of(new["inputs"][cause.path])
        made = tried(old, kept, catalogue, None if cause.old is None or cause.path in last.rests_on else last)
        yield Waypoint((INPUT, cause.path), (fitted(cause, catalogue),), made.metrics if made else {})
        last = made or last
    for path, text in new["texts"].items():
        if old["texts"].get(path) != text:
            kept[path] = text
            made = tried(old, kept, catalogue, None)
            yield Waypoint((TEXT, path), (Cause("assumption", path, old["texts"].get(path), text, ""),), made.metrics if made else {})


def tried(old: dict[str, Any], kept: dict[str, str], catalogue: Catalogue, found: Again | None) -> Again | None:
    """Return a state after a change; nothing where its values do not go together."""
    try:
        return again(old, kept, catalogue, found)
    except TcoError:
        return None


def text_of(given: Sequence[Any]) -> str:
    """Return a kept quantity as a setting."""
    value, unit = given
    return f"{value!r} {unit}".strip()


def fitted(cause: Cause, catalogue: Catalogue) -> Cause:
    """Return the change of an input as one of the program's fit, where the new value is that of the calibration."""
    group, family, name = (*cause.path.split("."), "", "", "")[:3]
    if group != "performance" or (family, name) not in catalogue.calibration_rows:
        return cause
    fit = catalogue.practice(family, name)
    if fit.source != FIT:
        return cause  # a vendor's number, or a prior
    set_by_user = fit.overlay or differs(cause.new, in_unit(fit.shown or (fit.value, fit.unit), cause.unit), ROUNDING)
    return cause if set_by_user else cause._replace(kind="fit")


def program_causes(old: dict[str, Any], new: dict[str, Any], today: dict[str, float]) -> tuple[Cause, ...]:
    """Return what changed though no input did: version and formulas by name, quantities of the tree, or what no input reads of the data."""
    tree = quantity_causes(old["quantities"], today)
    formulas = formula_causes(old.get("formulas") or {}, new.get("formulas") or {}, alone=False)
    if not formulas and not tree and old["system"] == new["system"]:
        formulas = formula_causes(old.get("formulas") or {}, new.get("formulas") or {}, alone=True)
    pairs = (("version", "tco_version"), *([("data", "data_hash")] if not tree and not formulas else []))
    hashes = [Cause(kind, "", old[key], new[key], "") for kind, key in pairs if old[key] != new[key]]
    return (*hashes, *formulas, *tree) or (CODE,)


def last_causes(old: dict[str, Any], new: dict[str, Any], whole: bool) -> tuple[Cause, ...]:
    """Return what is left when inputs and texts are those of the later state."""
    if not whole:
        return (*input_causes(old["inputs"], new["inputs"]), *program_causes(old, new, new["quantities"]))
    if old["system"] != new["system"]:
        return (Cause("assumption", "system", old["system"], new["system"], ""),)
    before, after = old["variant"], new["variant"]
    found = [Cause("assumption", f"variant {key}", before.get(key), after.get(key), "") for key in sorted(before.keys() | after.keys())]
    found = [cause for cause in found if cause.old != cause.new] or quantity_causes(old["quantities"], new["quantities"])
    return tuple(found) or (CODE,)


def steps(way: Sequence[Waypoint], start: Metrics, metric: str) -> tuple[Step, ...]:
    """Return what each change adds to a metric, from its value at the start to that of the last point; the differences sum to the drift."""
    found: list[tuple[tuple[Cause, ...], float]] = []
    at, open_causes = start[metric], tuple[Cause, ...]()
    for point in way:
        value = point.metrics.get(metric)
        if value is None:
            open_causes += point.causes
        elif differs(at, value, ROUNDING):
            found.append((open_causes + point.causes, value))
            at, open_causes = value, ()
    values = [start[metric], *(value for _, value in found[:-1]), way[-1].metrics[metric]]
    return tuple(Step(causes, b - a, b / a if a else None) for (causes, _), a, b in zip(found, values, values[1:], strict=False))


def against(own: Sequence[Waypoint], other: Sequence[Waypoint], start: tuple[Metrics, Metrics], cost: str, metric: str) -> list[Waypoint]:
    """Return the way of a ratio of another scenario's cost to one's own: a thing that both rest on changes in both at once."""
    here, there = start[0].get(cost), start[1].get(cost)
    causes: dict[tuple[int, str], tuple[Cause, ...]] = {}
    for point in (*own, *other):
        causes[point.place] = tuple(dict.fromkeys((*causes.get(point.place, ()), *point.causes)))
    mine, theirs = ({point.place: point.metrics.get(cost) for point in way} for way in (own, other))
    found = []
    for place in sorted(causes):
        here, there = mine.get(place) or here, theirs.get(place) or there
        found.append(Waypoint(place, causes[place], {metric: float(perf_per_tco(there, here))} if here and there else {}))
    return found


# ---------------------------------------------------------------- what differs between two results
class Differing(NamedTuple):
    """The metrics that moved, step by step, and all that differs beside them."""

    moves: list[Move]
    causes: list[Cause]


class Difference(Shown, Differing):
    """What differs between two results."""

    way: Counterfactual | None = None  # from one system to another

    @property
    def line(self) -> str:
        """How much differs, and of two systems what that does to the cost."""
        way = "" if self.way is None else f"{self.way.metric} {self.way.ends[0]:.3g} -> {self.way.ends[1]:.3g}, "
        return f"{way}{counted(len(self.moves), 'metric')} and {counted(len(self.causes), 'input')} differ"

    def to_frame(self) -> Any:
        """Return the steps from one system to the other as a pandas data frame, or else the metrics that moved."""
        import pandas as pd

        if self.way is None:
            return pd.DataFrame([(m.metric, m.old, m.new, m.change) for m in self.moves], columns=["metric", "old", "new", "change"])
        names = ["cause", "of", self.way.own.scenario, self.way.other.scenario, "from", "to", "change"]
        rows = [(*step[:6], step.change) for step in self.way.steps]
        last = self.way.ends[1]
        return pd.DataFrame([*rows, ("residual", "", None, None, last - self.way.residual, last, self.way.residual)], columns=names)


def counted(number: int, what: str) -> str:
    """Return how many there are of something."""
    return f"{number} {what}{'' if number == 1 else 's'}"


class Side(NamedTuple):
    """What is held against another: its state, and if it can be asked anew what it was asked as."""

    state: dict[str, Any]
    asked: Evaluation | None = None


def diff(
    a: str | Path | Result,
    b: str | Path | Result,
    set: Mapping[str, str] | None = None,  # noqa: A002
    data: Path | None = None,
    metric: str | None = None,
) -> Difference:
    """Return what changed from `a` to `b`, and why; `set` replaces inputs of `b` only. Between systems the way of a cost, or of `metric`, is told."""
    one, other = side_of(a, data), side_of(b, data, dict(set or {}))
    return between(one, other, catalogue_for(None if not isinstance(a, str) else a, data), metric)


def between(old: Side, new: Side, catalogue: Catalogue, metric: str | None = None) -> Difference:
    """Return what changed between two sides, the steps of every metric that moved, and of two systems the way from one to the other."""
    moved = moves(old.state, new.state)
    way = points(old.state, new.state, catalogue) if moved else []
    walked = [m if m.old is None or m.new is None else m._replace(steps=steps(way, old.state["metrics"], m.metric)) for m in moved]
    found = Difference(walked, causes(old.state, new.state))
    if old.asked and new.asked and old.state["system"] != new.state["system"]:
        found.way = between_systems(old.asked, new.asked, metric if metric in METRICS else None)
    return found


def side_of(name: str | Path | Result, data: Path | None, settings: Mapping[str, str] | None = None) -> Side:
    """Return a scenario or a saved result, or the state that the JSON of `tco price` carries."""
    from tco.chain.result import SCHEMA, Result

    if not isinstance(name, Result) and str(name).endswith(SAVED):
        wrong = f"{name}: is no saved result; `Result.save` or `tco price SCENARIO --format json --output FILE` writes one"
        try:
            document = read_json(Path(name), "a saved result")
        except DataError as error:
            raise DataError(f"{wrong}: {error}") from None
        if isinstance(document, dict) and "state" in document:
            try:
                refuse_broken(document["state"], "state")
            except DataError as error:
                raise DataError(f"{wrong}: {error}") from None
            return Side(dict(document["state"]))
        if isinstance(document, dict) and document.get("schema", SCHEMA) != SCHEMA:  # that of another command, such as `compare`
            raise DataError(f"{wrong}: its schema is {document['schema']!r}")
    (asked,) = evaluate_each([name], data, settings or {})
    return Side(state_of(asked.result), None if asked.saved else asked)
