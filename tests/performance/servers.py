"""What serves a workload, for the tests: a system's chip on its links, the model and the request, without a search."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from tco.catalog import Catalogue, load_catalogue
from tco.chain.inputs import Inputs
from tco.chain.workloads import server_of
from tco.foundation.values import as_number
from tco.models.architecture import Architecture
from tco.performance.chip.machine import Machine
from tco.performance.serving import phases as serving
from tco.performance.serving.operators import Operator
from tco.performance.serving.phases import PassResult
from tco.performance.serving.plans import DecodePlan, PrefillPlan
from tco.performance.serving.requests import Request, request_of
from tco.studies.pools import scenario_named

CATALOGUE: Catalogue = load_catalogue()


class Server(NamedTuple):
    """A chip on its links, and what it is asked for."""

    machine: Machine
    model: Architecture
    request: Request

    def decode(self, plan: DecodePlan) -> PassResult:
        return serving.decode(self.machine, self.model, plan, self.request)

    def prefill(self, plan: PrefillPlan) -> PassResult:
        return serving.prefill(self.machine, self.model, plan, self.request)


@cache
def server(name: str, **settings: str) -> Server:
    """Return what serves a scenario or system; a setting's dots are written as double underscores, its hyphens as they are."""
    inputs = Inputs(CATALOGUE, scenario_named(CATALOGUE, name), {path.replace("__", "."): text for path, text in settings.items()}, {})
    values = inputs.values(as_number)
    return Server(*server_of(inputs, values), request_of(values))


def named(made: PassResult, name: str) -> Operator:
    """Return the one operator of a name."""
    (found,) = [operator for operator in made.operators if operator.name == name]
    return found


def over_layers(made: PassResult, name: str, field: str) -> float:
    """Return a field of all operators of a name, summed over their layers."""
    return sum(float(getattr(operator, field)) * float(operator.layers) for operator in made.operators if operator.name == name)
