"""Functions for claim formulas: inputs, trees, fabrics, scenarios, premises, other claims."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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
    amount_in_unit,
    evaluate_formula,
    formula_row_function,
)
from tco.core.files import source_positions
from tco.core.formula import REGISTRY
from tco.core.inputs import Values, as_number, as_traced
from tco.core.trace import recording, walk
from tco.core.types import JsonMapping, JsonObject
from tco.core.units import unit
from tco.cost.ownership import intrinsic_value, warrant_discount
from tco.evidence.ledger import Claim
from tco.fabric.collective_costs import lanes_rate
from tco.fabric.collectives import OPERATIONS, doubling_size
from tco.fabric.topology import fabric_number, fabric_scopes, hops_apart
from tco.fabric.topology import lanes as lanes_of
from tco.models.architecture import load_model
from tco.performance.chip.formats import computed_on
from tco.performance.chip.roofline import block_scaled_size, cache_bytes, machine_balance
from tco.performance.serving.passes import cached_numbers
from tco.performance.serving.plan_choice import PLACES, decode_rate_with_experts
from tco.scenario.collective_links import links_of_system
from tco.scenario.document import HEADLINE_SYSTEM, load_scenario
from tco.scenario.metrics import METRICS
from tco.scenario.network_choice import ClosRequest, requested_clos
from tco.scenario.network_tiers import port_rate
from tco.scenario.resolve import resolve_scenario, system_inputs
from tco.scenario.resolved import ResolvedScenario
from tco.scenario.run_chain import run
from tco.scenario.workload import server_of, serving_workload, workload_kind
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
    edge_bandwidth,
    network_planes,
    shares_scale_out_switches,
    switch_part,
    switch_radix,
)

Answer = TypeVar("Answer")
# formulas of the program that a row may call, in their units
CALLED_FORMULAS = (
    systolic_peak,
    joint_capacity,
    pin_bandwidth,
    device_capacity,
    block_scaled_size,
    machine_balance,
    lanes_rate,
    switch_radix,
    clos_endpoints,
    edge_bandwidth,
    network_planes,
    intrinsic_value,
    warrant_discount,
)
FORMULAS = {
    formula.__name__: formula_row_function(REGISTRY[formula.__name__])
    for formula in CALLED_FORMULAS
}
# figures of a scope, and their units
SCOPE_FIGURES = {
    "injection": "byte/s",
    "all_to_all": "byte/s",
    "hops_mean": "",
    "hops_worst": "",
    "chips": "",
}
TORUS_FIGURES: dict[str, Callable[[list[float]], float]] = {
    "dimensions": len,
    "longest": max,
    "places": prod,
    "neighbours": lambda sizes: sum(min(size - 1, 2) for size in sizes),
}
POOL_RATES = {"prefill": "input_tokens_per_s_per_chip", "decode": "output_tokens_per_s_per_chip"}


class Underived(Exception):  # noqa: N818 - no error: an answer
    """Why the catalogue, as it is set, gives nothing for a claim."""


def metric_amount(metric: str, metric_value: Any) -> DimensionedQuantity:
    """Return a metric in its unit, one number or an array of draws, as an amount."""
    unit_text = METRICS[metric].unit
    return amount(metric_value * unit(unit_text).factor, unit_text)


class ClaimScope:
    """Names that the formula of a claim may use; remembers every input the claim rests on.

    Args:
        catalogue: Holds the data.
        settings: The user's settings by input path.
        ledger: All claims by id.
        claim: Claim whose formula is read.

    """

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
        self.claim = claim
        self.functions = FORMULAS | {
            question_name: getattr(self, question_name) for question_name in QUESTIONS
        }
        self._worlds: dict[str, tuple[ResolvedScenario, Values]] = {}
        self._read_paths: set[str] = set()
        self._open_claims: list[str] = []

    def world(self, system: str) -> tuple[ResolvedScenario, Values]:
        """Return a system, in a variant where its name says so, and the inputs as it sets them."""
        if system not in self._worlds:
            inputs = system_inputs(self.catalogue, system, self.settings, {})
            self._worlds[system] = inputs, inputs.values(as_number)
        return self._worlds[system]

    def walked(
        self,
        scenario: str,
        settings: Mapping[str, str],
        walk_scenario: Callable[..., Answer],
        *arguments: str,
    ) -> Answer:
        """Return the answer of `walk_scenario` on a scenario, cached for all claims.

        Args:
            scenario: Name of the scenario.
            settings: Settings of the claim; those of the user take precedence.
            walk_scenario: Function of the resolved scenario, its values and the arguments.
            *arguments: Further arguments of the function.

        Raises:
            Underived: The function raised it.
            DataError: A setting of the claim is no input.

        """
        claim_paths = settings.keys() - self.settings.keys()
        settings = {**settings, **self.settings}

        def answer_and_paths() -> tuple[Answer | Underived, set[str]]:
            document = load_scenario(self.catalogue, scenario)
            inputs = resolve_scenario(self.catalogue, document, settings, {})
            input_values = inputs.values(as_number)
            for path in claim_paths & inputs.setting_values.keys():
                if not inputs.is_known(path):
                    raise unknown("input path", path, inputs.known_paths())
            try:
                return walk_scenario(inputs, input_values, *arguments), set(input_values.inputs)
            except Underived as reason:
                return reason, set(input_values.inputs)

        answer: Answer | Underived
        answer_key = ("claims", scenario, walk_scenario, *arguments, *sorted(settings.items()))
        answer, paths = self.catalogue.once(answer_key, answer_and_paths)
        self._read_paths |= paths
        if isinstance(answer, Underived):
            raise answer
        return answer

    @property
    def rests_on(self) -> list[str]:
        """The paths of all inputs used so far."""
        world_paths = (input_values.inputs for _, input_values in self._worlds.values())
        return sorted(self._read_paths.union(*world_paths))

    def computed(self, claim: str) -> DimensionedQuantity:
        """Return the value of the formula of a claim.

        Raises:
            DataError: The claim has no formula, or rests on itself.

        """
        if claim in self._open_claims or not self.ledger[claim].formula:
            fault = "rests on itself" if claim in self._open_claims else "has no formula"
            raise DataError(f"{claim} {fault}")
        outer_claim, self.claim = self.claim, self.ledger[claim]
        self._open_claims.append(claim)
        try:
            formula = self.claim.formula
            return evaluate_formula(formula, self, source_positions(self.claim.where, formula))
        finally:
            self.claim = outer_claim
            self._open_claims.pop()

    def claim_figure(self) -> float:
        """Return the value of the formula of the claim, in its unit."""
        position = source_positions(self.claim.where, self.claim.formula)
        return amount_in_unit(self.computed(self.claim.id), self.claim.formula_unit, position)

    def named(self, name: str) -> DimensionedQuantity:
        """Return a premise of the claim, the input at a path, or the computed value of a claim."""
        if name in self.claim.premises:
            premise = self.claim.premises[name]
            return amount(premise.value, premise.unit)
        if name in self.ledger:
            return self.computed(name)
        if "." not in name:
            raise unknown("name", name, [*self.claim.premises, *self.ledger])
        return self.input_of(HEADLINE_SYSTEM, name)

    def text(self, name: str) -> str:
        """Return a premise as it is written, or a name as it is."""
        return self.claim.premises[name].text if name in self.claim.premises else name

    def check(self, parameter: str, name: str) -> None:
        """Refuse a name that a parameter of a question does not know."""
        if parameter not in KNOWN_NAMES:
            return
        known_names = KNOWN_NAMES[parameter](self)
        if not any(fnmatch(known_name, name.partition("@")[0]) for known_name in known_names):
            raise unknown(parameter, name, known_names)

    def input_of(self, system: str, path: str) -> DimensionedQuantity:
        """Return an input as a system sets it."""
        inputs, input_values = self.world(system)
        return amount(float(input_values[path]), inputs.unit_of(path))

    def system(self, system_name: str) -> System:
        """Return a system, in a variant where its name says so."""
        return self.world(system_name)[0].system


class Context(ClaimScope):
    """The catalogue as one claim sees it: each public method is a question of its formula."""

    # ---------------------------------------------------------------- claims and trees
    def claimed(self, claim: str) -> DimensionedQuantity:
        """Return the number another claim states, as it is published."""
        return DimensionedQuantity(self.ledger[claim].claimed.value)

    def chip(self, system: str, attribute: str) -> DimensionedQuantity:
        """Return an attribute of a system's accelerator as the system runs it."""
        return self.input_of(system, f"parts.{self.system(system).chip}.{attribute}")

    def chips(self, system: str) -> DimensionedQuantity:
        """Return the accelerators of one scale-up domain."""
        return DimensionedQuantity(self.system(system).chips)

    def racks(self, system: str) -> DimensionedQuantity:
        """Return the racks of one scale-up domain."""
        return DimensionedQuantity(self.system(system).racks)

    def count(self, system: str, part: str) -> DimensionedQuantity:
        """Return the count of the parts in a scale-up domain whose names match a pattern."""
        quantity = self.system(system).quantity
        return DimensionedQuantity(
            float(sum(number for part_name, number in quantity.items() if fnmatch(part_name, part)))
        )

    def price(self, system: str, *part: str) -> DimensionedQuantity:
        """Return the price of the named parts in a scale-up domain, USD.

        The price is the count of the parts in the bill times their unit prices.
        """
        prices = (
            self.count(system, part_name).value * self.named(f"parts.{part_name}.price").value
            for part_name in part
        )
        return amount(sum(prices), "USD")

    def power(self, system: str) -> DimensionedQuantity:
        """Return the power of one scale-up domain by its bill."""
        inputs, input_values = self.world(system)
        # traced, so that only what power rests on counts as used
        with recording() as trace:
            node = bill_of_materials(
                inputs.system, inputs.values(as_traced(trace)), self.catalogue
            ).power.node
        for leaf in walk(node):
            if leaf.is_leaf and leaf.path:
                input_values.input(leaf.path)
        return amount(float(node.value), "W")

    # ---------------------------------------------------------------- fabrics and networks
    def lanes(self, system: str, *medium: str) -> DimensionedQuantity:
        """Return the lanes of a chip on some media; of a torus, of one link in a dimension."""
        return DimensionedQuantity(
            sum(lanes_of(self.system(system), medium_name) for medium_name in medium)
        )

    def scope(self, system: str, extent: str, figure: str) -> DimensionedQuantity:
        """Return a figure of the fabric in a rack or in the whole scale-up domain, in its unit."""
        inputs, input_values = self.world(system)
        scopes = {scope.scope: scope for scope in fabric_scopes(inputs.system, input_values)}
        return amount(float(getattr(scopes[extent], figure)), SCOPE_FIGURES[figure])

    def torus(self, system: str, shape: str) -> DimensionedQuantity:
        """Return a figure of a torus, dimensions of one place left out."""
        tree = self.system(system)
        sizes = [float(size) for size in tree.fabric.get("dims", []) if size > 1]
        if not sizes:
            raise DataError(f"{tree.where}: the fabric is no torus")
        return DimensionedQuantity(float(TORUS_FIGURES[shape](sizes)))

    def planes(self, system: str) -> DimensionedQuantity:
        """Return the planes of a switched fabric."""
        return DimensionedQuantity(fabric_number(self.system(system), "planes"))

    def hops(self, system: str, rack: float, tray: float, position: float) -> DimensionedQuantity:
        """Return the devices on the shortest path from the first chip of a domain to another."""
        return DimensionedQuantity(
            hops_apart(self.system(system), int(rack), int(tray), int(position))
        )

    def doubling_size(self, system: str, collective: str) -> DimensionedQuantity:
        """Return the buffer of a rank at which a collective takes twice its latency, bytes."""
        inputs, input_values = self.world(system)
        links = links_of_system(inputs, input_values)
        return amount(doubling_size(links, collective, inputs.system.chips), "byte")

    def clos_reach(self, *radices: float) -> DimensionedQuantity:
        """Return the endpoints of a non-blocking Clos by the radices of its tiers, lowest first."""
        return DimensionedQuantity(clos_endpoints_by_radices(radices, 1.0))

    def network_price(self, chips: float, nic: str, port: str, design: str) -> DimensionedQuantity:
        """Return the price of a Clos with switches of 25.6T, as `tco network` designs it, USD."""
        inputs, input_values = self.world(HEADLINE_SYSTEM)
        switch = switch_part("25.6T", self.catalogue.parts)
        request = ClosRequest(
            switch, int(chips), port_rate(nic, "nic"), port_rate(port, "port"), design=design
        )
        return amount(float(requested_clos(inputs, input_values, request)[1].price), "USD")

    def networks(self, system: str) -> DimensionedQuantity:
        """Return the number of networks behind the cards: 1 for a converged front end, else 2."""
        return DimensionedQuantity(1.0 if shares_scale_out_switches(self.system(system)) else 2.0)

    # ---------------------------------------------------------------- models and formats
    def experts(self, model: str, number: str) -> DimensionedQuantity:
        """Return the routed experts in a sparse layer: all, or the active ones of a token.

        Raises:
            DataError: The model has no routed experts.

        """
        for block in load_model(self.catalogue, model).blocks:
            layer = block.feed_forward
            if layer.experts:
                return DimensionedQuantity(
                    float(layer.experts if number == "all" else layer.active)
                )
        raise DataError(f"{model} has no routed experts")

    def peak(self, system: str, precision: str) -> DimensionedQuantity:
        """Return the peak at which a system's chip computes a format."""
        inputs, input_values = self.world(system)
        used_format = computed_on(input_values, inputs.system.chip, precision, "workload.precision")
        return self.chip(system, used_format.peak)

    # ---------------------------------------------------------------- scenarios by their best plans
    def metric(self, scenario: str, metric: str, **settings: str) -> DimensionedQuantity:
        """Return a metric of a scenario."""
        return self._rated(scenario, metric, self.walked(scenario, settings, _best_plan_metrics))

    def rate(self, scenario: str, metric: str, **settings: str) -> DimensionedQuantity:
        """Return a metric of what chips do; nothing of money and site counts as used."""
        workload_result = self.walked(scenario, settings, _required_workload_result)
        return self._rated(scenario, metric, workload_result.rates)

    def pool(self, scenario: str, phase: str, **settings: str) -> DimensionedQuantity:
        """Return the rate of a chip of the pool that prefills, or of the one that decodes."""
        workload_result = self.walked(scenario, settings, _required_workload_result)
        rate = self._rated(scenario, POOL_RATES[phase], workload_result.rates)
        share = getattr(workload_result, "prefill_share", None)
        if share is None:
            raise DataError(f"{scenario} serves on one pool")
        return rate._replace(value=float(rate.value / (share if phase == "prefill" else 1 - share)))

    def decode_with_experts(
        self, scenario: str, expert_span: str, **settings: str
    ) -> DimensionedQuantity:
        """Return the best decode rate with the experts in one domain, or over all domains."""
        return amount(
            self.walked(scenario, settings, _best_decode_rate, expert_span), "token/s/chip"
        )

    def cached_per_token(self, scenario: str, **settings: str) -> DimensionedQuantity:
        """Return the bytes that a sequence of a scenario's workload caches for each token."""
        return amount(self.walked(scenario, settings, _cache_bytes_per_token), "byte/token")

    def _rated(self, scenario: str, metric: str, metrics: JsonMapping) -> DimensionedQuantity:
        if metrics.get(metric) is None:
            raise DataError(f"{scenario} has no {metric}")
        return metric_amount(metric, float(metrics[metric]))


QUESTIONS = [question_name for question_name in vars(Context) if not question_name.startswith("_")]


def _required_workload_result(inputs: ResolvedScenario, input_values: Values) -> Any:
    """Return the workload result of a scenario under its best plans.

    Raises:
        Underived: The workload has no result.

    """
    workload_result = workload_kind(inputs).walk(inputs, input_values, None)
    if workload_result.reason:
        raise Underived(workload_result.reason)
    return workload_result


def _best_plan_metrics(inputs: ResolvedScenario, input_values: Values) -> JsonObject:
    """Return the metrics of a scenario by the best plans."""
    chain = run(inputs, input_values)
    if chain.serving.reason:
        raise Underived(chain.serving.reason)
    return chain.metrics


def _best_decode_rate(inputs: ResolvedScenario, input_values: Values, expert_span: str) -> float:
    """Return the decode rate of a scenario's workload with the experts in a place."""
    workload = serving_workload(inputs, input_values)
    speed = input_values["workload.interactivity"]
    rate, reason = decode_rate_with_experts(workload, speed, expert_span)
    if reason:
        raise Underived(reason)
    return rate


def _cache_bytes_per_token(inputs: ResolvedScenario, input_values: Values) -> float:
    """Return the bytes that a sequence of a workload caches for each token."""
    machine, model = server_of(inputs, input_values)
    return float(cache_bytes(1, 1, *cached_numbers(model, 1), machine.cache_size))


# names that a parameter of a question takes
KNOWN_NAMES: dict[str, Callable[[ClaimScope], Iterable[str]]] = {
    "claim": lambda scope: scope.ledger,
    "system": lambda scope: known_systems(scope.catalogue),
    "scenario": lambda scope: [*scope.catalogue.scenarios, *known_systems(scope.catalogue)],
    "part": lambda scope: scope.catalogue.parts,
    "attribute": lambda _: [
        attribute_name for group, attribute_name in input_attributes() if group == "parts"
    ],
    "model": lambda scope: scope.catalogue.models,
    "metric": lambda _: METRICS,
    "extent": lambda _: ("rack", "world"),
    "figure": lambda _: SCOPE_FIGURES,
    "shape": lambda _: TORUS_FIGURES,
    "phase": lambda _: POOL_RATES,
    "place": lambda _: PLACES,
    "design": lambda _: DESIGNS,
    "collective": lambda _: OPERATIONS,
    "number": lambda _: ("all", "active"),
}
