"""What a claim may rest on: parts, trees and fabrics of the catalogue, its own premises, and other claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import NamedTuple, TypeVar

from tco.catalog import Catalogue
from tco.catalog.systems import System
from tco.chain.inputs import Inputs, load_scenario, plain_inputs, system_inputs
from tco.fabric.scopes import Scope, fabric_scopes
from tco.fabric.scopes import lanes as lanes_of
from tco.fabric.slices import lanes_rate
from tco.fabric.topology import Graph, build
from tco.foundation.errors import DataError, unknown
from tco.foundation.trace import recording, walk
from tco.foundation.units import convert
from tco.foundation.values import Values, as_number, as_traced
from tco.hardware.bill import bill_of_materials

Found = TypeVar("Found")


class Underived(Exception):  # noqa: N818 - no error: an answer
    """Why the catalogue, as it is set, gives nothing for a claim."""


class Claim(NamedTuple):
    """One published statement of a number."""

    id: str
    source: str
    claim: str
    claimed: float
    unit: str  # as published, remarks included
    tolerance: float  # relative: how exactly the source states it
    relation: str  # what the computed value must be to the claimed one: equal, at-most, at-least
    given: dict[str, float]  # premises the claim itself states, in base units
    holding: str  # the verdict where it holds: arithmetic where what it rests on was typed from it
    failing: str  # the verdict where it does not hold
    error: float  # relative: how far off the model may be in such a figure
    against: str  # the source it contradicts
    verdict: str  # the expected one
    note: str


class Context:
    """The catalogue as one claim sees it; remembers every input the claim rests on."""

    def __init__(self, catalogue: Catalogue, settings: Mapping[str, str], ledger: Mapping[str, Claim], claim: Claim) -> None:
        self.catalogue = catalogue
        self.settings = settings
        self.ledger = ledger
        self.claim = claim
        self._worlds: dict[tuple[str, ...], tuple[Inputs, Values]] = {}
        self._walked: set[str] = set()

    @cached_property
    def values(self) -> Values:
        """Every input by its path, outside any system."""
        return plain_inputs(self.catalogue, self.settings).values(as_number)

    def world(self, system: str, variant: Mapping[str, str]) -> tuple[Inputs, Values]:
        """Return a system in one of its variants, and the inputs as it sets them."""
        key = (system, *sorted(variant.values()))
        if key not in self._worlds:
            inputs = system_inputs(self.catalogue, system, self.settings, variant)
            self._worlds[key] = inputs, inputs.values(as_number)
        return self._worlds[key]

    def walked(self, scenario: str, settings: Mapping[str, str], walk: Callable[[Inputs, Values], Found]) -> Found:
        """Return what walking a scenario gives, once for all claims that ask; what the user sets goes before the claim's settings."""
        settings = {**settings, **self.settings}

        def make() -> tuple[Found | Underived, set[str]]:
            inputs = Inputs(self.catalogue, load_scenario(self.catalogue, scenario), dict(settings), {})
            values = inputs.values(as_number)
            try:
                return walk(inputs, values), set(values.inputs)
            except Underived as reason:
                return reason, set(values.inputs)

        found: Found | Underived
        found, used = self.catalogue.once(("claims", scenario, walk, *sorted(settings.items())), make)
        self._walked |= used
        if isinstance(found, Underived):
            raise found
        return found

    @property
    def rests_on(self) -> list[str]:
        """The paths of all inputs used so far."""
        used = self.values.inputs.keys() | self._walked
        for _, values in self._worlds.values():
            used |= values.inputs.keys()
        return sorted(used)

    # ---------------------------------------------------------------- the claim itself
    def given(self, name: str) -> float:
        """Return a premise of the claim, in base units."""
        if name not in self.claim.given:
            raise unknown("premise", name, self.claim.given, self.claim.id)
        return self.claim.given[name]

    def claimed(self, claim: str) -> float:
        """Return the number another claim states, in that claim's unit."""
        return self.ledger[claim].claimed

    # ---------------------------------------------------------------- values
    def part(self, part: str, attribute: str) -> float:
        """Return an attribute of a part, in the unit formulas take."""
        return float(self.values[f"parts.{part}.{attribute}"])

    def chip(self, system: str, attribute: str, **variant: str) -> float:
        """Return an attribute of a system's accelerator as the system runs it."""
        inputs, values = self.world(system, variant)
        return float(values[f"parts.{inputs.system.chip}.{attribute}"])

    def written_capacity(self, part: str) -> float:
        """Return a chip's HBM with its giga read as 1e9 even where the dies make it 2^30: sources write both as GB."""
        path = f"parts.{part}.hbm_capacity"
        number, unit = self.values.input(path).shown or (self.part(part, "hbm_capacity"), "byte")
        return convert(number, unit.replace("iB", "B"), "byte")

    # ---------------------------------------------------------------- trees
    def system(self, system: str, **variant: str) -> System:
        """Return a system in one of its variants."""
        return self.world(system, variant)[0].system

    def chips(self, system: str) -> float:
        """Return the accelerators of one world."""
        return self.system(system).chips

    def racks(self, system: str) -> float:
        """Return the racks of one world."""
        return self.system(system).racks

    def count(self, system: str, part: str, **variant: str) -> float:
        """Return how many of a part stand in one world; none is 0, a part nobody knows raises `DataError`."""
        if part not in self.catalogue.parts:
            raise unknown("part", part, self.catalogue.parts, self.claim.id)
        return self.system(system, **variant).quantity.get(part, 0.0)

    def stack(self, system: str) -> tuple[str, float]:
        """Return the HBM stack of a system's accelerator, and how many one chip carries."""
        found = self.system(system)
        for part, number in found.contains.get(found.chip, {}).items():
            if part.startswith("hbm"):
                return part, number
        raise DataError(f"{found.where}: {found.chip} contains no HBM stack")

    def power(self, system: str) -> float:
        """Return the power of one world by its bill; traced, so that only what power rests on counts as used."""
        inputs, values = self.world(system, {})
        with recording() as trace:
            node = bill_of_materials(inputs.system, inputs.values(as_traced(trace)), self.catalogue).power.node
        for leaf in walk(node):
            if leaf.is_leaf and leaf.path:
                values.input(leaf.path)
        return float(node.value)

    # ---------------------------------------------------------------- fabrics
    def lanes(self, system: str, *names: str) -> float:
        """Return the lanes of a chip on some media; of a torus, of one link in a dimension."""
        return sum(lanes_of(self.system(system), name) for name in names)

    def link(self, system: str, *names: str) -> float:
        """Return the bandwidth of a chip's lanes on some media, per direction."""
        return float(lanes_rate(self.lanes(system, *names), self.chip(system, "lane_bandwidth")))

    def scope(self, system: str, scope: str = "world", **variant: str) -> Scope:
        """Return what rack or world of a fabric gives."""
        inputs, values = self.world(system, variant)
        return next(found for found in fabric_scopes(inputs.system, values) if found.scope == scope)

    def dimensions(self, system: str) -> list[int]:
        """Return the sizes of a torus, dimensions of one place left out."""
        return [size for size in self.system(system).fabric["dims"] if size > 1]

    def graph(self, system: str) -> Graph:
        """Return the fabric of one world as a graph."""
        return build(self.system(system))

    def hops(self, system: str, rack: int, tray: int, position: int) -> float:
        """Return the devices between the first chip of a world and another, on the shortest path."""
        return self.graph(system).distances(("chip", 0, 0, 0))["chip", rack, tray, position] - 1


class Computation(NamedTuple):
    """How a claim is computed anew: a function of the catalogue in base units, and the unit it is shown in."""

    function: Callable[[Context], float]
    unit: str


COMPUTED: dict[str, Computation] = {}


def computes(claim: str, unit: str = "") -> Callable[[Callable[[Context], float]], Callable[[Context], float]]:
    """Register a function as what computes a claim, in base units; the ledger shows its value in `unit`."""

    def register(function: Callable[[Context], float]) -> Callable[[Context], float]:
        if claim in COMPUTED:
            raise ValueError(f"claim {claim} is computed twice")
        COMPUTED[claim] = Computation(function, unit)
        return function

    return register
