"""Scenarios as programs: a structure is traced once with all its plans, then run for any number of
draws.

Structures that draws of one scenario get share a program: what they have in common stands there
once, and is computed once for all draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tco.catalog import Catalogue
from tco.compile.execute import (
    best_rows,
    evaluate_partitions,
    keep_memory,
    kernel_outputs,
    taken,
)
from tco.compile.lower import BATCH_PATH, ArithmeticKernel, given_step
from tco.compile.program import Program
from tco.core.array_cache import cached_arrays
from tco.core.errors import DataError
from tco.core.inputs import Values
from tco.core.provenance import Input
from tco.core.trace import recorded_by, scope
from tco.core.types import AnyArray, FloatArray, JsonMapping, JsonObject, Settings
from tco.models.architecture import Architecture
from tco.performance.deployment import APART, BENCHMARK, FLEET, OPERATED_BY, SERVER
from tco.performance.layer.chip_model import Machine
from tco.performance.serving.plans import ServingPlan, ServingRequest
from tco.scenario.document import Scenario
from tco.scenario.evaluate import evaluate, run
from tco.scenario.memo import exactly
from tco.scenario.network_choice import SWITCH
from tco.scenario.resolve import resolve_scenario
from tco.scenario.resolved import ResolvedScenario
from tco.scenario.result import Result
from tco.scenario.structure import Structure
from tco.scenario.workload import job_on, server_of, workload_kind

if TYPE_CHECKING:
    from tco.performance.serving.plan_choice_compiled import Chosen, DrawBlock

ALL = "all"  # plans of serving to choose among
# of a plan and a draw that are looked at together: what is known of them fills the memory
PAIRS = 2**17
MOST = 2**10  # structures under settings of their own that are kept
METRIC = "metric "  # before the names of metrics among the results of a program
RATE = "output_tokens_per_s_per_chip"  # that is asked for at other speeds than the workload's own


def recorded(
    program: Program, inputs: ResolvedScenario, plan: Any
) -> tuple[dict[str, int], set[str]]:
    """Record a scenario on a plan, or on plans as columns.

    Args:
        program: Takes the steps of the evaluation.
        inputs: The resolved scenario.
        plan: Plan of the workload; None where the structure holds no plan.

    Returns:
        Places in the program by name, of the metrics and of the values that targets are judged by;
        and paths without a value now that would make the record wrong if a user set the paths.

    """
    with recorded_by(program):
        values = inputs.values(program.read)
        beside: JsonObject = {}
        begin = len(program.steps)
        if not workload_kind(inputs).axis:  # runs no model
            workload = workload_kind(inputs).walk(inputs, values, plan)
        elif plan is None:
            workload, beside = (
                workload_kind(inputs).without_plan("the structure holds no plan"),
                {"no plan": 1.0},
            )
        elif inputs.kind == "serving":
            from tco.performance.serving import plan_choice_compiled

            with scope("serving"):
                if plan.engines is None:
                    plan = plan._replace(
                        decode=plan.decode._replace(
                            sequences=program.read(Input(BATCH_PATH, 1.0, ""))
                        )
                    )
                workload, beside = plan_choice_compiled.traced(
                    *server_of(inputs, values, plan.stated), values, plan
                )
        else:
            from tco.performance.training.result import train

            with scope("training"):
                job, reached, formats = job_on(inputs, values)
                workload = train(job, reached, formats, plan)
                beside = {
                    "step": workload.rates["step_s"],
                    "held": workload.hbm_bytes_used,
                    "memory": reached.memory,
                }
        program.workload_steps.update(range(begin, len(program.steps)))
        metrics = run(inputs, values, None, workload).metrics
    named = {f"{METRIC}{name}": value for name, value in metrics.items()} | beside
    found = {name: program.step_index(value) for name, value in named.items() if value is not None}
    return found, (values.looked | values.derived_units.keys()) - values.inputs.keys()


def every_plan(inputs: ResolvedScenario) -> ServingPlan:
    """Return all plans of a serving workload.

    Decode plans stand in rows, and prefill plans in columns. Under a stated load, or offline, each
    engine reads its own prompts, so that both phases have the same plans.

    Args:
        inputs: The resolved scenario.

    Returns:
        Plans of both phases: decode of shape (plans, 1), prefill of shape (1, plans). An operator
        other than a fleet has only the plans of its class, in rows for both phases.

    Raises:
        DataError: No pools of a published size divide the chips of the system.

    """
    from tco.performance.serving import plan_choice, plans
    from tco.performance.serving.plans import depths_of, request_of

    values = inputs.values()
    machine, model = server_of(inputs, values)
    request = request_of(values)
    depths = depths_of(machine, model, request, values)
    if machine.deployer is not None and machine.deployer.name != FLEET:
        return _plans_of_operator(inputs, machine, model, request, values)
    if request.offline or values.exists("workload.concurrency"):
        axes = plans.filling(plan_choice.offered_axes(machine, model, 0), machine.links)
        every = plans.decoding_at(axes, 1.0, depths)
        return ServingPlan(
            every, plans.as_prefill_plan(every), plans.engines_of_world(machine.links, every.chips)
        )
    reading = plan_choice.offered_axes(machine, model, request.prompt)
    beside = plans.PrefillPlan(*(axis.reshape(1, -1) for axis in reading))
    return ServingPlan(
        plans.decoding_at(plan_choice.decode_axes(machine, model, request), 1.0, depths), beside
    )


def _plans_of_operator(
    inputs: ResolvedScenario,
    machine: Machine,
    model: Architecture,
    request: ServingRequest,
    values: Values,
) -> ServingPlan:
    """Return all plans of the class that an operator runs; of a benchmark those of the class that
    its best plan is of.
    """
    from tco.performance.serving.classes import plans_of_class

    name = machine.deployer.name if machine.deployer is not None else FLEET
    held = None if inputs.structure is None else inputs.structure.plan
    if name == BENCHMARK:
        name = SERVER if held is None or held.readers is None else APART
    found = plans_of_class(machine, model, request, values, name)
    if found is None:
        raise DataError(
            f"{OPERATED_BY}={name}: no pools of a published size divide the chips of "
            f"{inputs.system.id}"
        )
    return found


class DrawGroup(NamedTuple):
    """Draws of one structure, with the places of its results in a program: one set of them for each
    plan of training.
    """

    draws: FloatArray
    names: list[dict[str, int]]
    plan: Any  # that the structure holds


class DrawResults(NamedTuple):
    """Results of draws: metrics by name, targets met, sequences per attention group.

    `meets` says whether the draws meet the targets. `batch` is the number of sequences.
    """

    metrics: dict[str, FloatArray]
    meets: Any
    batch: Any


class Lot:
    """The program of structures that have the same plans: one that is held, or all that a draw may
    choose.
    """

    def __init__(self, plans: ServingPlan | None) -> None:
        self.plans = plans  # of serving
        self.program = Program()
        self.kernels: dict[Any, ArithmeticKernel] = {}
        # of the plans that are chosen among, and what is known of them, by what is drawn
        self.rows: dict[Any, tuple[dict[int, FloatArray], Any]] = {}
        self.begin: dict[Any, Any] = {}

    def kernel(self, drawn: frozenset[str], rows: Mapping[int, FloatArray]) -> ArithmeticKernel:
        """Return the kernel of some drawn inputs and some rows of plans, with whatever has come to
        the program.
        """
        key = drawn, *((axis, one.tobytes()) for axis, one in rows.items())
        if key not in self.kernels:
            self.kernels[key] = ArithmeticKernel(self.program, (*drawn, BATCH_PATH), rows)
        self.kernels[key].grow()
        return self.kernels[key]

    def promising(
        self,
        paths: frozenset[str],
        part: DrawGroup,
        pilots: Mapping[str, FloatArray],
        speeds: Sequence[float],
    ) -> tuple[dict[int, FloatArray], Any]:
        """Return the rows of plans to choose among by axis, and hints for them, found once."""
        from tco.performance.serving.plan_choice_compiled import promising

        key = paths, hash(b"".join([one.tobytes() for one in pilots.values()])), tuple(speeds)
        if key not in self.rows:
            kernel = self.kernel(paths, {})
            names = _kernel_indices(kernel, part.names[0])
            plans: ServingPlan = self.plans  # type: ignore[assignment]
            self.rows[key] = promising(kernel, names, pilots, plans, speeds)
        return self.rows[key]

    def hints(
        self,
        kernel: ArithmeticKernel,
        names: Mapping[str, int],
        plans: ServingPlan,
        speeds: tuple[float | None, ...],
    ) -> Any:
        """Return cached hints for the plan choice at the base case.

        Every input has its traced value there.
        """
        from tco.performance.serving.plan_choice_compiled import hinted

        key = id(kernel), names.get("token"), speeds
        if key not in self.begin:
            centre = {
                path: np.array([self.program.leaves[self.program.inputs[path][0]]])
                for path in kernel.inputs
                if path != BATCH_PATH
            }
            self.begin[key] = hinted(kernel, names, centre, plans, speeds)
        return self.begin[key]

    def run(
        self,
        drawn: Mapping[str, FloatArray],
        parts: list[DrawGroup],
        count: int,
        pilots: Mapping[str, FloatArray] | None,
        solve: bool,
        speeds: Sequence[float],
    ) -> list[DrawResults]:
        """Return the results of all draws, at their own and other speeds.

        The first item is at the scenario's own speed. Serving has a further item for each speed of
        `speeds`.
        """
        keep_memory()
        paths, first = frozenset(drawn), parts[0].names[0]
        if self.plans is not None:
            return self.serve(drawn, parts, count, pilots, solve, speeds)
        kernel = self.kernel(paths, {})
        values = kernel.values(drawn)
        if "step" not in first:  # rates that are stated have no target they could miss
            meets: Any = "no plan" not in first
            return [
                DrawResults(
                    self.metrics(
                        kernel, [(part.names[0], part.draws) for part in parts], values, count
                    ),
                    meets,
                    np.nan,
                )
            ]
        meets, asked = np.zeros(count, dtype=bool), []
        for part in parts:
            own = {
                place: value[part.draws] if np.ndim(value) else value
                for place, value in values.items()
            }
            wanted = [
                kernel.made[names[name]]
                for name in ("step", "held", "memory")
                for names in part.names
            ]
            made = np.stack(
                [
                    np.broadcast_to(one, len(part.draws))
                    for one in kernel_outputs(kernel, wanted, own, len(part.draws))
                ]
            )
            step, held, memory = made.reshape(3, len(part.names), -1)
            plan, meets[part.draws] = best_rows(1 / step, -held, held <= memory, len(part.draws))
            asked += [(part.names[one], part.draws[plan == one]) for one in np.unique(plan)]
        return [DrawResults(self.metrics(kernel, asked, values, count), meets, np.nan)]

    def serve(
        self,
        drawn: Mapping[str, FloatArray],
        parts: list[DrawGroup],
        count: int,
        pilots: Mapping[str, FloatArray] | None,
        solve: bool,
        speeds: Sequence[float],
    ) -> list[DrawResults]:
        """Return the same of serving: plan and batch of each draw first, then what rests on
        them.
        """
        results = [
            DrawResults({}, np.empty(count, dtype=bool), np.empty(count)) for _ in (None, *speeds)
        ]
        alike: dict[Any, list[DrawGroup]] = {}  # whose plans are chosen together
        for part in parts:
            targets = tuple(
                place for name, place in part.names[0].items() if not name.startswith(METRIC)
            )
            alike.setdefault(targets, []).append(part)
        for some in alike.values():
            which = (
                np.arange(count)
                if len(alike) == 1
                else np.sort(np.concatenate([part.draws for part in some]))
            )
            whole = len(which) == count
            many = drawn if whole else {path: one[which] for path, one in drawn.items()}
            asked = [(part.names[0], _positions_in(which, part.draws)) for part in some]
            border = self._border(asked)
            choices = ServingChoice(self, many, some, len(which), pilots, solve, speeds).cached(
                border, self._border(asked, RATE)
            )
            for at, (result, choice) in enumerate(zip(results, choices, strict=True)):
                metrics = self._metrics_beyond(border, choice, asked, many, RATE if at else "")
                result.meets[which], result.batch[which] = choice.meets, choice.batch
                scatter_into(result.metrics, metrics, which, count)
        return results

    def _border(self, asked: list[tuple[dict[str, int], FloatArray]], only: str = "") -> list[int]:
        """Return the places of the workload's results that some metrics take, or one `only`."""
        metrics = {
            place
            for names, _ in asked
            for name, place in names.items()
            if (name == f"{METRIC}{only}" if only else name.startswith(METRIC))
        }
        return self.program.workload_border(metrics, BATCH_PATH)

    def _metrics_beyond(
        self,
        border: list[int],
        choice: ServedDraws,
        asked: list[tuple[dict[str, int], FloatArray]],
        drawn: Mapping[str, FloatArray],
        only: str,
    ) -> dict[str, FloatArray]:
        """Return the metrics of draws from what their workload comes to."""
        wanted = tuple(
            place for names, _ in asked for name, place in names.items() if name.startswith(METRIC)
        )
        key = frozenset(drawn), tuple(border), wanted
        if key not in self.kernels:
            self.kernels[key] = ArithmeticKernel(self.program, drawn, {}, border, wanted)
        kernel = self.kernels[key]
        workload = {given_step(place): many for place, many in choice.workload.items()}
        values = kernel.values({**drawn, **workload})
        return self.metrics(kernel, asked, values, len(choice.meets), only)

    def metrics(
        self,
        kernel: ArithmeticKernel,
        asked: list[tuple[dict[str, int], FloatArray]],
        values: Mapping[int, Any],
        count: int,
        only: str = "",
    ) -> dict[str, FloatArray]:
        """Return the metrics of some draws each, nan in others, from what is known of all.

        They are all, or one `only`.
        """
        every = [
            {
                name.removeprefix(METRIC): kernel.made[place]
                for name, place in names.items()
                if name.startswith(METRIC)
            }
            for names, _ in asked
        ]
        wanted = (
            [{name: place for name, place in own.items() if name == only} for own in every]
            if only
            else every
        )
        # where failures leave no hour in which anything makes progress, nothing has a price
        with np.errstate(divide="ignore"):
            made = evaluate_partitions(
                kernel,
                [([*own.values()], draws) for own, (_, draws) in zip(wanted, asked, strict=True)],
                values,
                count,
            )
        found: dict[str, FloatArray] = {}
        for own, (_, draws), many in zip(wanted, asked, made, strict=True):
            scatter_into(found, dict(zip(own, many, strict=True)), draws, count)
        return {
            name: np.where(endless, np.nan, many) if (endless := np.isinf(many)).any() else many
            for name, many in found.items()
        }


class ServedDraws(NamedTuple):
    """What the chosen plan and batch of every draw come to.

    `workload` holds results of the workload by their place in the program, shape (draws,).
    """

    meets: Any
    batch: Any
    workload: dict[int, FloatArray]


class ServingChoice:
    """The choice of plan and batch for draws of serving, at the workload's own and other speeds.

    It rests on the workload alone, so that draws under other prices have the same choice.

    Args:
        lot: The program of the draws, and its plans.
        drawn: Values of the inputs that vary, by path.
        parts: Groups of draws with the same targets.
        count: Number of draws.
        pilots: Draws that tell which plans can be the best; None where a plan is held.
        solve: Whether the batch is solved for the target.
        speeds: Further speeds, in tokens/s per user.

    """

    def __init__(
        self,
        lot: Lot,
        drawn: Mapping[str, FloatArray],
        parts: list[DrawGroup],
        count: int,
        pilots: Mapping[str, FloatArray] | None,
        solve: bool,
        speeds: Sequence[float],
    ) -> None:
        self.lot, self.drawn, self.parts, self.count = lot, drawn, parts, count
        self.pilots, self.solve, self.speeds = pilots, solve, speeds

    def cached(self, border: list[int], rate_border: list[int]) -> list[ServedDraws]:
        """Return what the draws come to at each speed, from the disk cache where it is known.

        Draws that differ only in inputs the workload does not read are looked at once.

        Args:
            border: Places of the workload's results that are wanted at the own speed.
            rate_border: Those that are wanted at other speeds.

        """
        borders = [border, *([rate_border] * len(self.speeds))]
        if self.pilots is None:
            return self.served(borders)
        wanted = [*self._targets().values(), *border, *rate_border]
        program = self.lot.program
        leaves = sorted(program.path_of.keys() & program.needed(wanted))
        read = sorted({program.path_of[leaf] for leaf in leaves} & self.drawn.keys())
        first, draw = distinct_draws([self.drawn[path] for path in read], self.count)
        if len(first) < self.count:
            self.drawn = {path: many[first] for path, many in self.drawn.items()}
            self.count = len(first)

        def make_arrays() -> list[AnyArray]:
            return [array for served in self.served(borders) for array in _packed(served)]

        asked = repr((sorted(self._targets()), len(border), self.solve, tuple(self.speeds)))
        key = [asked.encode(), *map(program.identity, wanted)]
        for leaf in leaves:
            key += self._leaf_key(leaf)
        arrays = iter(cached_arrays(key, make_arrays))
        return [
            ServedDraws(
                meets[draw],
                batch[draw],
                {place: row[draw] for place, row in zip(places, rows, strict=True)},
            )
            for places, meets, batch, rows in zip(borders, arrays, arrays, arrays, strict=True)
        ]

    def _targets(self) -> dict[str, int]:
        names = self.parts[0].names[0].items()
        return {name: place for name, place in names if not name.startswith(METRIC)}

    def _leaf_key(self, leaf: int) -> list[bytes]:
        """Return an input of the program, with its draws and pilots or its one number."""
        program, pilots = self.lot.program, self.pilots or {}
        path = program.path_of[leaf]
        key = [program.identity(leaf)]
        if path in self.drawn:
            key += [self.drawn[path].tobytes(), pilots[path].tobytes()]
        elif path != BATCH_PATH:
            key.append(repr(program.leaves[leaf]).encode())
        return key

    def served(self, borders: list[list[int]]) -> list[ServedDraws]:
        """Choose plan and batch of every draw, and return what they come to at each speed."""
        from tco.performance.serving import plan_choice_compiled

        lot, every_speed = self.lot, (*plan_choice_compiled.OWN, *self.speeds)
        plans: ServingPlan = lot.plans  # type: ignore[assignment]
        rows, known = dict[int, FloatArray](), None
        paths = frozenset(self.drawn)
        if self.pilots is not None:
            rows, known = lot.promising(paths, self.parts[0], self.pilots, self.speeds)
            plans = plan_choice_compiled.of_rows(plans, rows)
        kernel = lot.kernel(paths, rows)
        names = _kernel_indices(kernel, self.parts[0].names[0])
        held = self.parts[0].plan.decode.sequences if self.pilots is None else np.nan
        begin = known or lot.hints(kernel, names, plans, every_speed)
        chips = plan_choice_compiled.decode_attention_chips(plans)
        most = max(PAIRS // (len(chips) * len(every_speed)), 1)
        blocks = []
        for which in np.array_split(np.arange(self.count), max(-(-self.count // most), 1)):
            whole = len(which) == self.count
            many = self.drawn if whole else {path: one[which] for path, one in self.drawn.items()}
            block = plan_choice_compiled.DrawBlock(kernel, names, many, len(which))
            chosen = (
                plan_choice_compiled.best_plans_per_draw(block, plans, begin, every_speed)
                if self.solve
                else [plan_choice_compiled.held_with(held, len(which))] * len(every_speed)
            )
            is_solved = begin is not None or self.pilots is not None
            blocks.append(
                [
                    ServedDraws(
                        np.broadcast_to(choice.meets, len(which)),
                        np.broadcast_to(choice.batch if is_solved else held, len(which)),
                        _on_choice(kernel, places, block, choice),
                    )
                    for places, choice in zip(borders, chosen, strict=True)
                ]
            )
        return [_joined(same) for same in zip(*blocks, strict=True)]


def distinct_draws(columns: Sequence[FloatArray], count: int) -> tuple[AnyArray, AnyArray]:
    """Return the first draw of each distinct row of inputs, and each draw's place among these.

    Args:
        columns: Arrays of shape (count,), one for each input.
        count: Number of draws.

    """
    table = np.column_stack(columns) if columns else np.zeros((count, 1))
    place_of: dict[bytes, int] = {}
    places = np.array([place_of.setdefault(row.tobytes(), len(place_of)) for row in table])
    return np.unique(places, return_index=True)[1], places


def _on_choice(
    kernel: ArithmeticKernel, places: list[int], block: DrawBlock, choice: Chosen
) -> dict[int, FloatArray]:
    """Return results of the workload on the plans and batches that draws chose."""
    wanted = [kernel.made[place] for place in places]
    batch = {kernel.inputs[BATCH_PATH]: choice.batch} if BATCH_PATH in kernel.inputs else {}
    needed = kernel.needed(wanted, block.values.keys() | batch)
    rests = needed & block.values.keys() - batch.keys()
    values = taken(kernel, block.values, rests, choice.rows) | batch
    outputs = kernel_outputs(kernel, wanted, values, block.count)
    return {
        place: np.broadcast_to(output, block.count)
        for place, output in zip(places, outputs, strict=True)
    }


def _packed(served: ServedDraws) -> tuple[AnyArray, AnyArray, AnyArray]:
    rows = [*served.workload.values()]
    return served.meets, served.batch, np.stack(rows) if rows else np.empty((0, len(served.meets)))


def _joined(blocks: Sequence[ServedDraws]) -> ServedDraws:
    if len(blocks) == 1:
        return blocks[0]
    places = blocks[0].workload
    return ServedDraws(
        np.concatenate([block.meets for block in blocks]),
        np.concatenate([block.batch for block in blocks]),
        {place: np.concatenate([block.workload[place] for block in blocks]) for place in places},
    )


def _positions_in(which: AnyArray, draws: AnyArray) -> AnyArray:
    some = draws[(draws >= which[0]) & (draws <= which[-1])]
    found: AnyArray = np.searchsorted(which, some)
    return found


def scatter_into(
    whole: dict[str, FloatArray], part: JsonMapping, draws: AnyArray, count: int
) -> None:
    """Write the numbers of chosen draws into arrays of all draws.

    A new array is nan elsewhere.

    Args:
        whole: Arrays of shape (count,) by name, changed in place.
        part: Numbers of the chosen draws by name, an array or a number for all.
        draws: Indices of the chosen draws.
        count: Number of all draws.

    """
    for name, one in part.items():
        if len(draws) == count:
            whole[name] = one if np.shape(one) == (count,) else np.full(count, one)
        else:
            if name not in whole:
                whole[name] = np.full(count, np.nan)
            whole[name][draws] = one


def structure_in(answer: Result) -> Structure:
    """Return the structure of an evaluation."""
    if answer.structure is None:
        raise ValueError("a result that was not evaluated has no structure")
    return answer.structure


def _kernel_indices(kernel: ArithmeticKernel, names: Mapping[str, int]) -> dict[str, int]:
    return {name: kernel.made[place] for name, place in names.items()}


class ScenarioPrograms:
    """The programs of one scenario with some settings of one value, and what it comes to with these
    alone.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        scenario: Scenario,
        fixed: JsonMapping,
        variant: Mapping[str, str],
    ) -> None:
        self.catalogue, self.scenario, self.fixed, self.variant = (
            catalogue,
            scenario,
            fixed,
            variant,
        )
        self.lock = Lock()  # a program grows by what is asked of it
        self.lots: dict[Any, Lot] = {}  # by plans
        self.known: dict[Any, tuple[Lot, list[dict[str, int]], set[str]]] = {}  # by structure
        self.unit_of = cache(self.inputs(None, {}).unit_of)
        self.structure_under = lru_cache(MOST)(
            lambda settings, plan: structure_in(self.evaluate(dict(settings), plan))
        )

    def inputs(self, structure: Structure | None, settings: Settings) -> ResolvedScenario:
        """Return the inputs with more settings, on a structure if one is held."""
        return resolve_scenario(
            self.catalogue, self.scenario, {**self.fixed, **settings}, dict(self.variant), structure
        )

    def evaluate(self, settings: Settings, plan: Any = None) -> Result:
        """Evaluate one value of every input."""
        return evaluate(
            self.scenario,
            {**self.fixed, **settings},
            plan,
            catalogue=self.catalogue,
            variant=self.variant,
        )

    @cached_property
    def centre(self) -> Result:
        """The answer with every input at its value."""
        return self.evaluate({})

    def names(
        self,
        inputs: Callable[[Structure, Iterable[str]], ResolvedScenario],
        structure: Structure,
        drawn: frozenset[str],
        plans: Any,
    ) -> tuple[Lot, list[dict[str, int]]]:
        """Return the program of a structure, with the places of its results; `inputs` gives those
        of a structure, some drawn ones at one value.
        """
        key: tuple[Any, ...] = _structure_key(structure, plans)
        if key not in self.known:
            self.known[key] = self.trace(inputs(structure, ()), structure, plans)
        if others := drawn & self.known[key][2]:
            key = *key, others
            if key not in self.known:
                self.known[key] = self.trace(inputs(structure, others), structure, plans)
        return self.known[key][:2]

    def trace(
        self, inputs: ResolvedScenario, structure: Structure, plans: Any
    ) -> tuple[Lot, list[dict[str, int]], set[str]]:
        """Trace a structure on the plan it holds, or on those to choose among."""
        each: list[Any] = (
            [_without_batch(structure.plan)]
            if plans is None
            else [every_plan(inputs)]
            if plans is ALL
            else plans
        )
        lot = self.lots.setdefault(
            exactly(tuple(each)), Lot(each[0] if isinstance(each[0], ServingPlan) else None)
        )
        made = [recorded(lot.program, inputs, plan) for plan in each]
        return lot, [names for names, _ in made], set().union(*(cut for _, cut in made))


def _structure_key(structure: Structure, plans: Any) -> tuple[Any, ...]:
    """Return a hashable key of a structure and its candidate plans.

    The key tells the structure from other structures of its scenario.
    """
    plan = (
        _without_batch(structure.plan) if plans is None else plans if plans is ALL else tuple(plans)
    )
    return (
        structure.texts.get(SWITCH),
        tuple(sorted(structure.alternatives.items())),
        tuple(sorted(structure.readings.items())),
        exactly(plan),
    )


def _without_batch(plan: Any) -> Any:
    if isinstance(plan, ServingPlan) and plan.engines is None:
        return plan._replace(decode=plan.decode._replace(sequences=1.0))
    return plan
