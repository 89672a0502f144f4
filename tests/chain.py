"""The headline scenarios, evaluated once, for the tests that look at whole results."""

from __future__ import annotations

from functools import cache

from tco import evaluate
from tco.chain.inputs import Inputs, load_scenario
from tco.chain.scenario import Result
from tests.shipped import CATALOGUE

HEADLINE = ("trn3-nl32x2", "trn3-nl72x2", "gb200-nvl72", "mi450x-ualoe72")


@cache
def result(name: str) -> Result:
    """Return a headline result with its trace. Do not change it."""
    return evaluate(name, catalogue=CATALOGUE, trace=True)


VENDORS = {"gb200-nvl72": {"nic": "400g"}, "mi450x-ualoe72": {"nic": "3x"}}  # the network a rack has by its vendor, not by its owner


@cache
def on_vendors_network(name: str) -> Result:
    """Return a headline result on the network of its rack's vendor. Do not change it."""
    return evaluate(name, catalogue=CATALOGUE, variant=VENDORS.get(name))


def again(name: str, plan=None, **settings: str) -> Result:
    """Evaluate with settings, `__` standing for the dot of a path, on the plan of the headline unless another is given."""
    paths = {path.replace("__", "."): value for path, value in settings.items()}
    return evaluate(name, paths, plan or result(name).plan, catalogue=CATALOGUE)


def inputs_of(name: str) -> Inputs:
    """Return the resolver of a headline scenario."""
    return Inputs(CATALOGUE, load_scenario(CATALOGUE, name), {}, {})
