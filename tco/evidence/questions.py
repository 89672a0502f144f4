"""Functions for claim formulas: inputs, trees, fabrics, scenarios, premises, other claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatch
from math import prod
from typing import Any, TypeVar

from tco.catalog import Catalogue
from tco.catalog.rows import input_attributes
from tco.catalog.system_tree import System, known_systems
from tco.core.errors import DataError, unknown
from tco.core.expression import (
    DimensionedQuantity,
    amount,
    evaluate_formula,
    formula_row_function,
)
from tco.core.files import place_in
from tco.core.formula import REGISTRY
from tco.core.inputs import Values, as_number, as_traced
from tco.core.trace import recording, walk
from tco.core.types import JsonMapping, JsonObject
from tco.core.units import unit
from tco.cost.ownership import intrinsic_value, warrant_discount
from tco.evidence.ledger import Claim
from tco.fabric.collective_costs import lanes_rate
from tco.fabric.collectives import OPERATIONS, doubling_size
from tco.fabric.topology import fabric_number as number_of
from tco.fabric.topology import fabric_scopes, hops_apart
from tco.fabric.topology import lanes as lanes_of
from tco.models.architecture import load_model
from tco.performance.chip.formats import computed_on
from tco.performance.chip.roofline import block_scaled_size, cache_bytes, machine_balance
from tco.performance.serving.passes import cached_numbers
from tco.performance.serving.plan_choice import PLACES, decode_rate_with_experts
from tco.performance.serving.plans import request_of
from tco.scenario.document import HEADLINE_SYSTEM, load_scenario
from tco.scenario.evaluate import run
from tco.scenario.metrics import METRICS
from tco.scenario.network_choice import ClosRequest, links_of_system, port_rate, requested_clos
from tco.scenario.resolve import resolve_scenario, system_inputs
from tco.scenario.resolved import ResolvedScenario
from tco.scenario.workload import server_of, workload_kind
from tco.system.bill import (
    bill_of_materials,
    device_capacity,
    joint_capacity,
    pin_bandwidth,
    systolic_peak,
)
from tco.system.scale_out_network import (
    DESIGNS,
    clos_endpoints,
    clos_endpoints_by_radices,
    converged,
    edge_bandwidth,
    network_planes,
    switch_part,
    switch_radix,
)

Found = TypeVar("Found")
CALLED = (  # formulas of the program that a row may call, in their units
    *(
        systolic_peak,
        joint_capacity,
        pin_bandwidth,
        device_capacity,
        block_scaled_size,
        machine_balance,
        lanes_rate,
    ),
    *(
        switch_radix,
        clos_endpoints,
        edge_bandwidth,
        network_planes,
        intrinsic_value,
        warrant_discount,
    ),
)
FORMULAS = {one.__name__: formula_row_function(REGISTRY[one.__name__]) for one in CALLED}
# figures of a scope, and their units
SCOPE = {
    "injection": "byte/s",
    "all_to_all": "byte/s",
    "hops_mean": "",
    "hops_worst": "",
    "chips": "",
}
TORUS: dict[str, Callable[[list[float]], float]] = {
    "dimensions": len,
    "longest": max,
    "places": prod,
    "neighbours": lambda sizes: sum(min(size - 1, 2) for size in sizes),
}
POOLS = {"prefill": "input_tokens_per_s_per_chip", "decode": "output_tokens_per_s_per_chip"}


class Underived(Exception):  # noqa: N818 - no error: an answer
    """Why the catalogue, as it is set, gives nothing for a claim."""


class Context:
    """The catalogue as one claim sees it; remembers every input the claim rests on."""

    def __init__(
        self,
        catalogue: Catalogue,
        settings: Mapping[str, str],
        ledger: Mapping[str, Claim],
        claim: Claim,
    ) -> None:
        self.catalogue = catalogue
        self.settings = settings
        self.ledger = ledger
        self.claim = claim  # whose formula is read
        self.functions = FORMULAS | {name: getattr(self, name) for name in QUESTIONS}
        self._worlds: dict[str, tuple[ResolvedScenario, Values]] = {}
        self._walked: set[str] = set()
        self._open: list[str] = []

    def world(self, system: str) -> tuple[ResolvedScenario, Values]:
        """Return a system, in a variant where its name says so, and the inputs as it sets them."""
        if system not in self._worlds:
            inputs = system_inputs(self.catalogue, system, self.settings, {})
            self._worlds[system] = inputs, inputs.values(as_number)
        return self._worlds[system]

    def walked(
        self, scenario: str, settings: Mapping[str, str], walk: Callable[..., Found], *given: str
    ) -> Found:
        """Return the result of `walk` on `scenario`, cached for all claims.

        The user's settings take precedence over the settings of the claim.
        """
        own, settings = settings.keys() - self.settings.keys(), {**settings, **self.settings}

        def make() -> tuple[Found | Underived, set[str]]:
            inputs = resolve_scenario(
                self.catalogue, load_scenario(self.catalogue, scenario), dict(settings), {}
            )
            values = inputs.values(as_number)
            for path in own & inputs.given.keys():
                if not inputs.is_known(path):
                    raise unknown("input path", path, inputs.known_paths())
            try:
                return walk(inputs, values, *given), set(values.inputs)
            except Underived as reason:
                return reason, set(values.inputs)

        found: Found | Underived
        found, used = self.catalogue.once(
            ("claims", scenario, walk, *given, *sorted(settings.items())), make
        )
        self._walked |= used
        if isinstance(found, Underived):
            raise found
        return found

    @property
    def rests_on(self) -> list[str]:
        """The paths of all inputs used so far."""
        return sorted(self._walked.union(*(values.inputs for _, values in self._worlds.values())))

    # ---------------------------------------------------------------- names
    def computed(self, claim: str) -> DimensionedQuantity:
        """Return the value of the formula of `claim`.

        A claim without a formula, or a claim that rests on itself, raises `DataError`.
        """
        if claim in self._open or not self.ledger[claim].formula:
            raise DataError(
                f"{claim} {'rests on itself' if claim in self._open else 'has no formula'}"
            )
        before, self.claim = self.claim, self.ledger[claim]
        self._open.append(claim)
        try:
            return evaluate_formula(
                self.claim.formula, self, place_in(self.claim.where, self.claim.formula)
            )
        finally:
            self.claim = before
            self._open.pop()

    def named(self, name: str) -> DimensionedQuantity:
        """Return a premise of the claim, an input by its path, or what the formula of another claim
        comes to.
        """
        if name in self.claim.given:
            premise = self.claim.given[name]
            return amount(premise.value, premise.unit)
        if name in self.ledger:
            return self.computed(name)
        if "." not in name:
            raise unknown("name", name, [*self.claim.given, *self.ledger])
        return self._input(self.world(HEADLINE_SYSTEM), name)

    def text(self, name: str) -> str:
        """Return a premise as it is written, or a name as it is."""
        return self.claim.given[name].text if name in self.claim.given else name

    def check(self, parameter: str, name: str) -> None:
        """Refuse a name that a parameter of a question does not know."""
        known = KNOWN[parameter](self) if parameter in KNOWN else [name]
        if not any(fnmatch(one, name.partition("@")[0]) for one in known):
            raise unknown(parameter, name, known)

    def claimed(self, claim: str) -> DimensionedQuantity:
        """Return the number another claim states, as it is published."""
        return DimensionedQuantity(self.ledger[claim].claimed)

    # ---------------------------------------------------------------- trees
    def _input(self, asked: tuple[ResolvedScenario, Values], path: str) -> DimensionedQuantity:
        inputs, values = asked
        return amount(float(values[path]), inputs.unit_of(path))

    def _system(self, system: str) -> System:
        return self.world(system)[0].system

    def chip(self, system: str, attribute: str) -> DimensionedQuantity:
        """Return an attribute of a system's accelerator as the system runs it."""
        asked = self.world(system)
        return self._input(asked, f"parts.{asked[0].system.chip}.{attribute}")

    def chips(self, system: str) -> DimensionedQuantity:
        """Return the accelerators of one world."""
        return DimensionedQuantity(self._system(system).chips)

    def racks(self, system: str) -> DimensionedQuantity:
        """Return the racks of one world."""
        return DimensionedQuantity(self._system(system).racks)

    def count(self, system: str, part: str) -> DimensionedQuantity:
        """Return the count of `part` in a scale-up domain of `system`.

        `part` may be a pattern, which counts all parts with a matching name. Without a match the
        count is 0.
        """
        return DimensionedQuantity(
            float(
                sum(
                    number
                    for name, number in self._system(system).quantity.items()
                    if fnmatch(name, part)
                )
            )
        )

    def price(self, system: str, *part: str) -> DimensionedQuantity:
        """Return the price of the named parts in a scale-up domain, USD.

        The price is the count of the parts in the bill times their unit prices.
        """
        return amount(
            sum(
                self.count(system, name).value * self.named(f"parts.{name}.price").value
                for name in part
            ),
            "USD",
        )

    def power(self, system: str) -> DimensionedQuantity:
        """Return the power of one world by its bill; traced, so that only what power rests on
        counts as used.
        """
        inputs, values = self.world(system)
        with recording() as trace:
            node = bill_of_materials(
                inputs.system, inputs.values(as_traced(trace)), self.catalogue
            ).power.node
        for leaf in walk(node):
            if leaf.is_leaf and leaf.path:
                values.input(leaf.path)
        return amount(float(node.value), "W")

    # ---------------------------------------------------------------- fabrics and networks
    def lanes(self, system: str, *medium: str) -> DimensionedQuantity:
        """Return the lanes of a chip on some media; of a torus, of one link in a dimension."""
        return DimensionedQuantity(sum(lanes_of(self._system(system), name) for name in medium))

    def scope(self, system: str, extent: str, figure: str) -> DimensionedQuantity:
        """Return `figure` of the fabric scope `extent`, in its unit.

        `extent` is the rack or the whole scale-up domain.
        """
        inputs, values = self.world(system)
        found = next(one for one in fabric_scopes(inputs.system, values) if one.scope == extent)
        return amount(float(getattr(found, figure)), SCOPE[figure])

    def torus(self, system: str, shape: str) -> DimensionedQuantity:
        """Return a figure of a torus, dimensions of one place left out."""
        found = self._system(system)
        sizes = [float(size) for size in found.fabric.get("dims", []) if size > 1]
        if not sizes:
            raise DataError(f"{found.where}: the fabric is no torus")
        return DimensionedQuantity(float(TORUS[shape](sizes)))

    def planes(self, system: str) -> DimensionedQuantity:
        """Return the planes of a switched fabric."""
        return DimensionedQuantity(number_of(self._system(system), "planes"))

    def hops(self, system: str, rack: float, tray: float, position: float) -> DimensionedQuantity:
        """Return the devices between the first chip of a world and another, on the shortest
        path.
        """
        return DimensionedQuantity(
            hops_apart(self._system(system), int(rack), int(tray), int(position))
        )

    def doubling_size(self, system: str, collective: str) -> DimensionedQuantity:
        """Return the buffer of a rank with which a collective over one world takes twice its
        latency.
        """
        inputs, values = self.world(system)
        return amount(
            doubling_size(links_of_system(inputs, values), collective, inputs.system.chips), "byte"
        )

    def clos_reach(self, *radices: float) -> DimensionedQuantity:
        """Return the endpoints of a non-blocking Clos whose tiers, the lowest first, have these
        radices.
        """
        return DimensionedQuantity(clos_endpoints_by_radices(radices, 1.0))

    def network_price(self, chips: float, nic: str, port: str, design: str) -> DimensionedQuantity:
        """Return the price of a Clos of so many chips with switches of 25.6T, as `tco network` has
        it unless told.
        """
        inputs, values = self.world(HEADLINE_SYSTEM)
        switch = switch_part("25.6T", self.catalogue.parts)
        request = ClosRequest(
            switch, int(chips), port_rate(nic, "nic"), port_rate(port, "port"), design=design
        )
        return amount(float(requested_clos(inputs, values, request)[1].price), "USD")

    def networks(self, system: str) -> DimensionedQuantity:
        """Return the number of networks behind the cards of `system`.

        The number is 1 for a converged front end, else 2.
        """
        return DimensionedQuantity(1.0 if converged(self._system(system)) else 2.0)

    # ---------------------------------------------------------------- models and formats
    def experts(self, model: str, number: str) -> DimensionedQuantity:
        """Return the number of routed experts in a sparse layer of `model`.

        With `number` other than "all", the experts that a token passes are counted. A model without
        routed experts raises `DataError`.
        """
        for block in load_model(self.catalogue, model).blocks:
            if block.feed_forward.experts:
                return DimensionedQuantity(
                    float(
                        block.feed_forward.experts if number == "all" else block.feed_forward.active
                    )
                )
        raise DataError(f"{model} has no routed experts")

    def peak(self, system: str, precision: str) -> DimensionedQuantity:
        """Return the peak at which a system's chip computes a format."""
        inputs, values = self.world(system)
        return self.chip(
            system, computed_on(values, inputs.system.chip, precision, "workload.precision").peak
        )

    # ---------------------------------------------------------------- scenarios by their best plans
    def metric(self, scenario: str, metric: str, **settings: str) -> DimensionedQuantity:
        """Return a metric of a scenario."""
        return self._rated(scenario, metric, self.walked(scenario, settings, best_plan_metrics))

    def rate(self, scenario: str, metric: str, **settings: str) -> DimensionedQuantity:
        """Return a metric that what a scenario's chips do gives by itself, so that nothing of money
        and site counts as used.
        """
        return self._rated(
            scenario, metric, self.walked(scenario, settings, required_workload_result).rates
        )

    def pool(self, scenario: str, phase: str, **settings: str) -> DimensionedQuantity:
        """Return the rate of a chip of the pool that prefills, or of the one that decodes."""
        found = self.walked(scenario, settings, required_workload_result)
        rate, share = (
            self._rated(scenario, POOLS[phase], found.rates),
            getattr(found, "prefill_share", None),
        )
        if share is None:
            raise DataError(f"{scenario} serves on one pool")
        return rate._replace(value=float(rate.value / (share if phase == "prefill" else 1 - share)))

    def _rated(self, scenario: str, metric: str, found: JsonMapping) -> DimensionedQuantity:
        if found.get(metric) is None:
            raise DataError(f"{scenario} has no {metric}")
        unit_text = METRICS[metric].unit
        return amount(float(found[metric]) * unit(unit_text).factor, unit_text)

    def decode_with_experts(
        self, scenario: str, place: str, **settings: str
    ) -> DimensionedQuantity:
        """Return the decode rate of the best plan whose experts lie in one domain, or over the
        whole world.
        """
        return amount(self.walked(scenario, settings, decoded, place), "token/s/chip")

    def cached_per_token(self, scenario: str, **settings: str) -> DimensionedQuantity:
        """Return the bytes that a sequence of a scenario's workload caches for each token."""
        return amount(self.walked(scenario, settings, cached), "byte/token")


def required_workload_result(inputs: ResolvedScenario, values: Values) -> Any:
    """Return the workload result of a scenario under its best plans.

    A workload without a result raises `Underived`.
    """
    found = workload_kind(inputs).walk(inputs, values, None)
    if found.reason:
        raise Underived(found.reason)
    return found


def best_plan_metrics(inputs: ResolvedScenario, values: Values) -> JsonObject:
    """Return the metrics of a scenario by the best plans."""
    chain = run(inputs, values)
    if chain.serving.reason:
        raise Underived(chain.serving.reason)
    return chain.metrics


def decoded(inputs: ResolvedScenario, values: Values, place: str) -> float:
    """Return the decode rate of a scenario's workload with the experts in a place."""
    rate, reason = decode_rate_with_experts(
        *server_of(inputs, values), request_of(values), values["workload.interactivity"], place
    )
    if reason:
        raise Underived(reason)
    return rate


def cached(inputs: ResolvedScenario, values: Values) -> float:
    """Return the bytes a sequence of a workload caches for each token."""
    machine, model = server_of(inputs, values)
    return float(cache_bytes(1, 1, *cached_numbers(model, 1), machine.cache_size))


QUESTIONS = (
    *("claimed", "chip", "chips", "racks", "count", "price", "power"),
    *(
        "lanes",
        "scope",
        "torus",
        "planes",
        "hops",
        "doubling_size",
        "clos_reach",
        "network_price",
        "networks",
        "experts",
        "peak",
    ),
    *("metric", "rate", "pool", "decode_with_experts", "cached_per_token"),
)
KNOWN: dict[str, Callable[[Context], Sequence[str]]] = {  # names a parameter of a question takes
    "claim": lambda c: list(c.ledger),
    "system": lambda c: known_systems(c.catalogue),
    "scenario": lambda c: [*c.catalogue.scenarios, *known_systems(c.catalogue)],
    "part": lambda c: list(c.catalogue.parts),
    "attribute": lambda _: [name for group, name in input_attributes() if group == "parts"],
    "model": lambda c: list(c.catalogue.models),
    "metric": lambda _: list(METRICS),
    "extent": lambda _: ("rack", "world"),
    "figure": lambda _: list(SCOPE),
    "shape": lambda _: list(TORUS),
    "phase": lambda _: list(POOLS),
    "place": lambda _: PLACES,
    "design": lambda _: DESIGNS,
    "collective": lambda _: OPERATIONS,
    "number": lambda _: ("all", "active"),
}
