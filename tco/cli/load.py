"""Loading what commands share: the catalogue with its overlays, and evaluated scenarios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tco.catalog import Catalogue

if TYPE_CHECKING:
    from tco.chain.scenario import Result

HEADLINE = ("trn3-nl32x2", "trn3-nl72x2", "gb200-nvl72", "mi450x-ualoe72")


def catalogue_for(scenario: str | None, data: Path | None) -> Catalogue:
    """Return the catalogue a scenario sees: the shipped data, the `data/` folder beside its file, then `--data`."""
    overlays = []
    if scenario is not None and Path(scenario).is_file():
        beside = Path(scenario).resolve().parent / "data"
        if beside.is_dir():
            overlays.append(beside)
    return Catalogue([*overlays, *([data] if data is not None else [])])


def evaluate_all(
    names: Sequence[str],
    data: Path | None,
    settings: Mapping[str, str],
    variant: Mapping[str, str] | None = None,
    plan: Mapping[str, str] | None = None,
    priced: bool = True,
) -> tuple[Catalogue, list[Result]]:
    """Return the results of some scenarios, and the catalogue of the last; scenarios without own data share one catalogue.

    A chip alone has no bill, and is refused where the answer is one (`priced`).
    """
    from tco.chain.scenario import evaluate, without_bill

    shared = catalogue_for(None, data)
    results, catalogue = [], shared
    for name in names:
        catalogue = catalogue_for(name, data) if Path(name).is_file() else shared
        results.append(evaluate(name, settings, plan, catalogue=catalogue, variant=variant))
        if priced and results[-1].bill is None:
            raise without_bill(catalogue, results[-1].system)
    return catalogue, results
