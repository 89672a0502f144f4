"""The results of one evaluation of a scenario, stage by stage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tco.catalog.system_tree import System
from tco.core.errors import UnavailableError
from tco.core.types import JsonObject
from tco.cost.ledger import Cost
from tco.cost.ownership import Rebate
from tco.performance.serving.record import ServingResult
from tco.system.bill import Bill
from tco.system.scale_out_network import Network

if TYPE_CHECKING:
    from tco.performance.training.result import TrainingResult


class Chain(NamedTuple):
    """Results of one evaluation, from the system to the metrics."""

    system: System
    serving: ServingResult | TrainingResult
    metrics: JsonObject
    # The fields below are empty for a chip alone, which has no racks and no cost.
    bill: Bill | None = None
    network: Network | None = None
    rebates: Sequence[Rebate] = ()
    cost: Cost | None = None
    unpriced: UnavailableError | None = None  # why there is no cost
