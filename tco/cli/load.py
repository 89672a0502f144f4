"""Loading what commands share: the catalogue with its overlays, and evaluated scenarios."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tco.foundation.errors import DataError
from tco.studies.evaluation import HEADLINE, catalogue_for, evaluate_all

if TYPE_CHECKING:
    from tco.catalog import Catalogue
    from tco.chain.result import Result
    from tco.cli.options import Request

__all__ = ["HEADLINE", "catalogue_for", "evaluate_all", "performing"]


def performing(scenario: str, given: Request) -> tuple[Catalogue, Result]:
    """Return a scenario whose plan takes its time, and its catalogue; one without a plan is refused with the reason."""
    catalogue, (result,) = evaluate_all([scenario], given.data, given.settings, given.variant, given.plan, priced=False)
    if result.texts["workload.kind"] == "stated":
        raise DataError(f"{scenario}: no model is run, its rates are stated: there is no plan and no time to show")
    if result.serving is not None and result.serving.reason:
        raise DataError(f"{scenario}: {result.serving.reason}")
    if not result.report.phases:
        raise DataError(f"{scenario}: a saved answer, which keeps its plan but no operators; expected a scenario such as {result.scenario}")
    return catalogue, result
