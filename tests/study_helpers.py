"""Names that tests of several files use inside the studies."""

from __future__ import annotations

from statistics import NormalDist

from tco.comparison.cash_flow import money_of
from tco.comparison.confidence import confidence_of
from tco.comparison.designs import AXES, designs_of
from tco.comparison.frontier import evaluate_plan_grid, frontier_of, pool_of
from tco.evaluation import evaluation
from tco.evaluation.evaluation import evaluate_each
from tco.evaluation.side_by_side import compare_results
from tco.sampling.median import DRAWS, SEED, drawn_metric
from tco.sampling.uncertainty import draw_statistics, share
from tco.scenario.beliefs import Dice, Range, belief_of, beliefs_of, settings_of
from tco.sweeps import job

__all__ = [  # what tests of several files ask for
    "AXES",
    "COST",
    "DRAWS",
    "LOGNORMAL",
    "NORMAL",
    "P95",
    "PERT",
    "SEED",
    "TRIANGULAR",
    "Dice",
    "Range",
    "belief_of",
    "beliefs_of",
    "compare_results",
    "confidence_of",
    "designs_of",
    "draw_statistics",
    "drawn_metric",
    "evaluate_each",
    "evaluate_plan_grid",
    "evaluation",
    "frontier_of",
    "job",
    "money_of",
    "pool_of",
    "settings_of",
    "share",
]

LOGNORMAL = "lognormal"
NORMAL = "normal"
P95 = NormalDist().inv_cdf(0.95)
PERT = "pert"
TRIANGULAR = "triangular"
COST = "usd_per_million_output_tokens"
