"""The questions users and commands ask: scenarios side by side, and what differs between two.

Wherever a scenario is named it may be a name, a file, a system, a result, or the file of a saved result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os.path import isfile  # unlike a path's method it says no to a name that no file can have
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tco.catalog import Catalogue
from tco.foundation.errors import DataError, UsageError
from tco.foundation.files import data_directory

if TYPE_CHECKING:
    from tco.chain.result import Result
    from tco.studies.difference import Cause, Move

HEADLINE = ("trn3-nl32x2", "trn3-nl72x2", "gb200-nvl72", "mi450x-ualoe72")
SAVED = ".json"  # the ending of a saved result


def catalogue_for(scenario: str | None, data: Path | None, checked: bool = True) -> Catalogue:
    """Return the catalogue a scenario sees: the shipped data, `data/` of the folder one stands in and of the scenario's file, then `--data`.

    A person's own rows are checked first, but where a command lists what is wrong with them (`checked` is False).
    """
    beside = [Path("data")] if scenario is None or not isfile(scenario) else [Path("data"), Path(scenario).resolve().parent / "data"]
    found = {path.resolve(): path for path in beside if path.is_dir() and path.resolve() != data_directory()}
    catalogue = Catalogue([*found.values(), *([data] if data is not None else [])])
    if checked and len(catalogue.folders) > 1:
        from tco.catalog.own import check_own_rows

        check_own_rows(catalogue)
    return catalogue


class Asked(NamedTuple):
    """A scenario as it was asked for, and what it comes to."""

    name: str
    settings: Mapping[str, str]
    catalogue: Catalogue
    result: Result
    saved: bool  # a result that was kept, and cannot be asked anew


def evaluate_each(
    names: Sequence[str | Path | Result],
    data: Path | None,
    settings: Mapping[str, str],
    variant: Mapping[str, str] | None = None,
    plan: Mapping[str, str] | None = None,
    priced: bool = True,
    refuse: bool = True,
    workload: bool = True,
    trace: bool = False,
    what_if: Mapping[str, str] | None = None,
) -> list[Asked]:
    """Evaluate some scenarios; those without own data share one catalogue.

    A chip alone has no bill, and is refused where the answer is one (`priced`); racks that do not fit their site are unless `refuse` is false.
    Without `workload` no plan is searched: only what the chips cost is asked for. `what_if` replaces inputs with all that was decided held.
    """
    from tco.catalog.systems import is_bare_chip
    from tco.chain.bills import without_bill
    from tco.chain.inputs import Inputs, load_scenario
    from tco.chain.result import Result
    from tco.chain.scenario import evaluate
    from tco.studies.unmoved import unmoved

    shared = catalogue_for(None, data)
    asked: list[Asked] = []
    for name in names:
        catalogue, saved, asks, called = shared, False, settings, str(name)
        if isinstance(name, Result) or str(name).endswith(SAVED):
            if settings or variant or plan or what_if:
                raise UsageError(f"{name if not isinstance(name, Result) else name.scenario}: a saved result cannot be changed; name its scenario")
            result = name if isinstance(name, Result) else kept_result(Path(name), shared)
            saved, asks, called = not is_of_today(result, shared), asked_of(result), result.scenario
        else:
            catalogue = catalogue_for(str(name), data) if isfile(name) else shared
            how: Any = {"catalogue": catalogue, "variant": variant, "refuse": refuse, "workload": workload}

            def ask(asked: Mapping[str, str], structure: Any = None, trace: bool = trace, name: Any = name, how: Any = how) -> Result:
                return evaluate(name, asked, plan if structure is None else None, structure=structure, trace=trace, **how)

            result = ask(settings)
            result.notes += unmoved(result, settings, settings, ask)
            if what_if:
                from tco.studies.holding import holding  # few ask what if

                asks = {**settings, **what_if}
                inputs = Inputs(catalogue, load_scenario(catalogue, name), dict(asks), dict(variant or {}), result.structure)
                result = holding(result, settings, what_if, inputs, ask)
        if priced and result.bill is None and is_bare_chip(catalogue, result.system):
            raise without_bill(catalogue, result.system)
        asked.append(Asked(called, asks, catalogue, result, saved))
    return asked


def is_of_today(result: Result, catalogue: Catalogue) -> bool:
    """Say whether a kept result rests on a scenario and data that are still there, so that it can be asked anew."""
    origin = result.origin
    return origin is not None and result.scenario in catalogue.scenarios and origin.data_hash() == catalogue.once("hash", catalogue.hash)


def asked_of(result: Result) -> dict[str, str]:
    """Return the documents and settings that a kept result was asked for."""
    return {} if result.origin is None else {**result.origin.documents, **result.origin.settings}


def evaluate_all(
    names: Sequence[str | Path | Result],
    data: Path | None,
    settings: Mapping[str, str],
    variant: Mapping[str, str] | None = None,
    plan: Mapping[str, str] | None = None,
    priced: bool = True,
    refuse: bool = True,
    workload: bool = True,
    trace: bool = False,
) -> tuple[Catalogue, list[Result]]:
    """Return the results of some scenarios as `evaluate_each` does, and the catalogue of the last."""
    asked = evaluate_each(names, data, settings, variant, plan, priced, refuse, workload, trace)
    return catalogue_of(asked, data), [one.result for one in asked]


def catalogue_of(asked: Sequence[Asked], data: Path | None) -> Catalogue:
    """Return the catalogue of the last scenario that was evaluated; of none, the shared one."""
    return asked[-1].catalogue if asked else catalogue_for(None, data)


def kept_result(path: Path, catalogue: Catalogue) -> Result:
    """Return a saved result, with a note where it rests on other data than today's."""
    from tco.chain.saved import load_result

    found = load_result(path)
    if found.origin and found.origin.data_hash() != (today := catalogue.once("hash", catalogue.hash)):
        found.notes.append(f"{path} was saved by tco {found.origin.version} on data {found.origin.data_hash()}, today's data is {today}")
    return found


class Comparison(NamedTuple):
    """Scenarios side by side, each held against the baseline."""

    baseline: str
    results: list[Result]

    def to_frame(self) -> Any:
        """Return the metrics as a pandas data frame, a column for each scenario."""
        import pandas as pd

        return pd.DataFrame({result.scenario: result.metrics for result in self.results})


class Difference(NamedTuple):
    """What differs between two results: the metrics that moved, step by step, and all that differs beside them."""

    moves: list[Move]
    causes: list[Cause]


def compare(
    scenarios: Sequence[str | Path | Result] = HEADLINE,
    baseline: str | None = None,
    set: Mapping[str, str] | None = None,  # noqa: A002 - the name users know from the command line
    data: Path | None = None,
) -> Comparison:
    """Return scenarios side by side; `set` replaces inputs of all of them."""
    return compared(evaluate_all(scenarios, data, dict(set or {}), refuse=False)[1], baseline)


def compared(results: Sequence[Result], baseline: str | None = None) -> Comparison:
    """Return results side by side, themselves left as they are."""
    from tco.chain import scenario

    if not results:
        raise DataError("nothing to compare: name a scenario")
    own = [replace(result, metrics=dict(result.metrics), notes=list(result.notes)) for result in results]
    return Comparison(scenario.compare(own, baseline), own)


def diff(
    a: str | Path | Result,
    b: str | Path | Result,
    set: Mapping[str, str] | None = None,  # noqa: A002
    data: Path | None = None,
) -> Difference:
    """Return what changed from `a` to `b`, and why; `set` replaces inputs of `b` only."""
    return between(state_at(a, data), state_at(b, data, dict(set or {})), catalogue_for(None if not isinstance(a, str) else a, data))


def between(old: dict[str, Any], new: dict[str, Any], catalogue: Catalogue) -> Difference:
    """Return what changed between two states, and the steps of every metric that moved."""
    from tco.studies.difference import causes, moves
    from tco.studies.waterfall import points, steps

    moved = moves(old, new)
    way = points(old, new, catalogue) if moved else []
    walked = [m if m.old is None or m.new is None else m._replace(steps=steps(way, old["metrics"], m.metric)) for m in moved]
    return Difference(walked, causes(old, new))


def state_at(name: str | Path | Result, data: Path | None, settings: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the state of a scenario, of a saved result, or the one that the JSON of `tco price` carries."""
    from tco.chain.result import SCHEMA, Result
    from tco.foundation.files import read_json
    from tco.studies.state import refuse_broken, state_of

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
            return dict(document["state"])
        if isinstance(document, dict) and document.get("schema", SCHEMA) != SCHEMA:  # that of another command, such as `compare`
            raise DataError(f"{wrong}: its schema is {document['schema']!r}")
    _, (result,) = evaluate_all([name], data, settings or {})
    return state_of(result)
