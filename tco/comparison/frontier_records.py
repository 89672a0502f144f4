"""Records of a frontier: its pools, its points, and the band of draws around each point."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tco.core.inputs import Values
from tco.core.notebook_display import Shown
from tco.core.provenance import period
from tco.core.types import BoolArray, FloatArray, JsonObject
from tco.evaluation.scenario_function import Evaluation
from tco.models.architecture import Architecture
from tco.performance.layer.chip_model import Machine
from tco.performance.serving.plans import (
    ServingPlan,
)
from tco.scenario.document import Scenario
from tco.scenario.result import Result

if TYPE_CHECKING:
    from tco.sampling.median import DrawnMetric

BANDED = (
    "usd_per_million_output_tokens",
    "usd_per_million_tokens",
    "output_tokens_per_s_per_chip",
    "tokens_per_s_per_facility_mw",
)


class Band(NamedTuple):
    """Uncertainty of a frontier point: ranges and draws of its metrics."""

    # P10, P50 and P90 of each metric, with the reason where one is none
    ranges: dict[str, JsonObject | None]
    # every draw of each metric; nan where one does not reach the interactivity
    draws: dict[str, FloatArray]

    @property
    def meets(self) -> BoolArray:
        """Whether a draw reaches the interactivity."""
        return np.isfinite(self.draws[BANDED[0]])

    @property
    def share_of_draws_that_meet_the_target(self) -> float:
        """Share of the draws that reach the interactivity."""
        return float(self.meets.mean())


@dataclass(slots=True)
class PoolScenario:
    """A scenario whose system serves one phase or both."""

    evaluation: Evaluation
    scenario: Scenario  # its own, or with the workload of another
    machine: Machine
    model: Architecture
    values: Values

    @property
    def result(self) -> Result:
        """Result of the pool's scenario."""
        return self.evaluation.result

    @property
    def misfit(self) -> str:
        """Why its racks have no cost at its site; empty where they have."""
        if self.result.metrics["tco_usd_per_used_chip_hour"] is not None:
            return ""
        return "; ".join(self.result.notes) or "it does not fit its site"

    @property
    def workload(self) -> tuple[Any, ...]:
        """Key of the model, lengths, date, perspective and owner.

        Answers are compared only where their keys are equal.
        """
        texts, input_values = self.result.texts, self.values
        workload_key = (
            texts["workload.model"],
            texts["workload.precision"],
            input_values["workload.input_tokens"],
            input_values["workload.output_tokens"],
        )
        return (
            *workload_key,
            period(texts["terms.date"]).last,
            self.result.perspective,
            texts.get("terms.owner"),
        )


class Point(NamedTuple):
    """One plan of both pools and what it gives."""

    tokens_per_s_per_user: float
    output_tokens_per_s_per_chip: float
    input_tokens_per_s_per_chip: float
    usd_per_million_output_tokens: float
    usd_per_million_tokens: float
    tokens_per_s_per_facility_mw: float
    tpot_s: float
    ttft_s: float
    prefill_share: float
    prefill_chips_per_decode_chip: float
    # of a prompt's cache through the network; None where it stays inside one system
    hand_over_s: float | None
    hand_over_bytes: float | None
    memory_bytes: float
    chips: int
    tp: int
    cp: int
    pp: int
    batch: int
    drafts: int
    prefill_chips: int
    prefill_tp: int
    prefill_cp: int
    prefill_pp: int
    across: str  # what lies across the domains of a world
    bound: str
    bound_share: float
    chosen: bool  # the cheapest that meets the workload's interactivity
    cheapest: bool  # no other system of the call gives as much interactivity for less


TOLD = (
    "scenario",
    "tokens_per_s_per_user",
    "output_tokens_per_s_per_chip",
    "usd_per_million_output_tokens",
    "tp",
    "batch",
    "bound",
)


@dataclass(slots=True, repr=False)
class Frontier(Shown):
    """The points no other plan beats in both interactivity and cost, the quickest first."""

    decode: PoolScenario
    prefill: PoolScenario
    separate: bool  # the pools hand caches over through the scale-out network
    points: list[Point] = field(default_factory=list)
    # the plans of the points, each axis an array along them; none where there is no point
    point_plans: ServingPlan | None = None
    plans: int = 0
    feasible: int = 0
    reason: str = ""  # why there is no point
    # how sure each point is, where that was asked for
    bands: list[Band] = field(default_factory=list)
    hold: bool = False  # whether that is on the point's own plan
    unsure: str = ""  # why that is not known, though it was asked for

    @property
    def drawn(self) -> DrawnMetric | None:
        """Percentiles of the cost at the workload's speed, over draws of every input."""
        from tco.sampling.median import drawn_metric
        from tco.sampling.uncertainty import COST

        if self.separate or self.chosen is None:
            return None
        return drawn_metric(self.decode.evaluation, COST, self.hold)

    @property
    def chosen(self) -> Point | None:
        """The point of the workload's interactivity."""
        return next((point for point in self.points if point.chosen), None)

    @property
    def line(self) -> str:
        """Name of the scenario and number of frontier points."""
        return f"{self.decode.result.scenario}: {len(self.points)} points"

    def to_frame(self) -> Any:
        """Return every point as a row of a pandas data frame, with what it is of."""
        import pandas as pd

        context_columns = {
            **self.decode.result.context,
            "prefill_scenario": self.prefill.result.scenario,
        }
        return pd.DataFrame(
            [context_columns | point._asdict() for point in self.points],
            columns=[*context_columns, *Point._fields],
        )

    def table(self) -> Any:
        """Return the figures of the points that are shown."""
        return self.to_frame()[list(TOLD)]


class Frontiers(Shown, list[Frontier]):
    """Those of several systems, or pairs of pools."""

    @property
    def line(self) -> str:
        """Names of all scenarios with their numbers of frontier points."""
        return ", ".join(frontier.line for frontier in self)

    def to_frame(self) -> Any:
        """Return every point as a row of a pandas data frame, with what it is of."""
        import pandas as pd

        return pd.concat([frontier.to_frame() for frontier in self], ignore_index=True)

    def table(self) -> Any:
        """Return the figures of the points that are shown."""
        return self.to_frame()[list(TOLD)]
