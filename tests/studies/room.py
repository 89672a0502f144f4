"""What tests of several files ask inside the studies."""

from __future__ import annotations

from statistics import NormalDist

from tco.studies import evaluation
from tco.studies.comparison import compared
from tco.studies.confidence import confidence_of
from tco.studies.curve import DRAWS
from tco.studies.designs import AXES, designs_of
from tco.studies.evaluation import evaluate_each
from tco.studies.frontier import frontier_of, grid_of, pool_of
from tco.studies.money import money_of
from tco.studies.ranges import Dice, Range, range_of, ranges_of, settings_of
from tco.studies.response import drawable
from tco.studies.sweep import job
from tco.studies.uncertainty import share, spread

SEED = 0  # of a comparison, unless another is asked for
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
    "compared",
    "confidence_of",
    "designs_of",
    "drawable",
    "evaluate_each",
    "evaluation",
    "frontier_of",
    "grid_of",
    "job",
    "money_of",
    "pool_of",
    "range_of",
    "ranges_of",
    "settings_of",
    "share",
    "spread",
]

LOGNORMAL = "lognormal"
NORMAL = "normal"
P95 = NormalDist().inv_cdf(0.95)
PERT = "pert"
TRIANGULAR = "triangular"
COST = "usd_per_million_output_tokens"
