"""The plan space of a training job: all divisible plans on whole domains, as arrays.

A row is what divides something: the groups (tensor, context, pipeline, data, expert parallel), how
they lie on the fabric, the micro-batch, and the schedule with its interleave. The choices that
divide nothing (sequence parallelism, overlap, offload, recomputation, sharding) are axes of their
own, so that no array is larger than what depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from tco.core.errors import DataError, refuse_unknown, unknown
from tco.core.types import AnyArray, Quantity, is_whole_number
from tco.fabric.links import Links
from tco.performance.serving.plans import divisors
from tco.performance.training.job import TrainingJob

# one in so many positions for layers of a pipeline may stay empty, as with 61 layers on 16 stages
# of 4
EMPTY = 20
ENDS = 2  # embedding and output head may each take the place of a layer
# layers of a stage: the deepest published pipeline has 128 on 64 stages (Narayanan et al. 2021)
LEAST_LAYERS = 2
# share of the best chip count down to which a second count with more replicas is sought
LEAST_BUSY = 0.85
NEARLY = 0.9  # share of the best plan's busy time that a plan must reach
MAX_TENSOR = 64  # a wider split leaves products too small for any matrix unit
SCHEDULES = ("1f1b", "interleaved", "zero-bubble", "dual-pipe")
# the last: as many layers in full as memory asks for, nothing of the others
RECOMPUTE = (
    "none",
    "selective",
    "full",
    "partial",
)
# innermost on the fabric first; expert groups lie on the ranks of tp, cp and dp
ORDERS = (
    "tp-cp-dp-pp",
    "tp-cp-pp-dp",
)
COUNTS = {
    "tp": "tensor",
    "cp": "context",
    "pp": "pipeline",
    "dp": "data",
    "ep": "expert",
    "micro_batch": "micro_batch",
    "interleave": "interleave",
    "vp": "interleave",
    "zero": "zero",
}
FLAGS = {
    "sequence_parallel": "sequence_parallel",
    "tp_overlap": "overlap",
    "optimizer_offload": "offload",
    "hybrid_sharding": "hybrid",
}
WORDS = {"schedule": SCHEDULES, "recompute": RECOMPUTE, "order": ORDERS}
ANSWERS = {"yes": 1, "no": 0, "true": 1, "false": 0, "1": 1, "0": 0}
LEVELS = (0, 1, 2, 3)  # of sharding


class TrainingPlan(NamedTuple):
    """A parallel plan, whose numbers may be arrays that broadcast.

    Schedule, recompute and zero are single values.
    """

    tensor: Any
    context: Any
    pipeline: Any
    data: Any
    expert: Any
    order: Any  # position in ORDERS
    micro_batch: Any
    interleave: Any
    schedule: str
    recompute: str = "none"
    zero: int = 0
    sequence_parallel: Quantity = 0  # 0 or 1, as the next two
    overlap: Quantity = 0
    offload: Quantity = 0
    hybrid: int = 0  # 1: state is sharded inside a domain only, and gradients are averaged across
    # of layers that partial recomputation does again; none: as many as memory asks for
    share: Any = None
    chosen: int = 0  # 1: the quickest of all plans, which nobody stated


CHOICES = ("sequence_parallel", "overlap", "offload")  # axes of a grid behind the rows
# fields of a plan that differ within a block
NUMBERS = (*TrainingPlan._fields[:8], *CHOICES)


class Fixed(NamedTuple):
    """The values that the axes of a plan may take, by field; an axis without an entry is free."""

    axes: Mapping[str, tuple[Any, ...]]

    def has(self, axis: str) -> bool:
        """Say whether an axis is fixed."""
        return axis in self.axes

    def allows(self, axis: str, axis_value: Any) -> bool:
        """Say whether an axis may take a value."""
        return axis not in self.axes or axis_value in self.axes[axis]

    def among(self, axis: str, choices: Iterable[Any]) -> tuple[Any, ...]:
        """Return the values of `choices` that `axis` may take.

        An axis that is an option, such as `offload`, takes its fixed values as they are.
        """
        if (
            axis in ("offload", "hybrid", "zero", "sequence_parallel", "overlap", "recompute")
            and axis in self.axes
        ):
            return self.axes[axis]
        return tuple(axis_value for axis_value in choices if self.allows(axis, axis_value))


ALL_FREE = Fixed({})


class Groups(NamedTuple):
    """Chips divided into groups: a column for each way."""

    tensor: Quantity
    context: Quantity
    pipeline: Any
    data: Any
    expert: Quantity
    order: Quantity


@dataclass(slots=True)
class PlanBlock:
    """Rows of one schedule, and the choices that do not depend on the row."""

    schedule: str
    rows: AnyArray  # columns: those of Groups, then micro_batch and interleave
    zero_levels: tuple[int, ...]
    sequence_parallel: tuple[int, ...]
    overlap: tuple[int, ...]
    offload: tuple[int, ...]
    recompute: tuple[str, ...]
    hybrid: tuple[int, ...]

    def grid(self, plan_rows: AnyArray) -> TrainingPlan:
        """Return plans of some rows on four axes: rows, then each choice that is a number.

        Recomputation and sharding are not yet chosen.
        """
        columns = [column.reshape(-1, 1, 1, 1) for column in plan_rows.T]
        return whole_plan(columns, self.schedule)._replace(
            sequence_parallel=np.array(self.sequence_parallel).reshape(1, -1, 1, 1),
            overlap=np.array(self.overlap).reshape(1, 1, -1, 1),
            offload=np.array(self.offload).reshape(1, 1, 1, -1),
        )

    @property
    def flat(self) -> list[AnyArray]:
        """The numbers of every plan, a column for each of `NUMBERS`, in the order of the grid."""
        plans = self.grid(self.rows)
        columns = np.broadcast_arrays(*(getattr(plans, number_name) for number_name in NUMBERS))
        return [column.ravel() for column in columns]

    @property
    def sharding(self) -> list[tuple[int, int]]:
        """Levels of sharding, and whether it stops at the border of a domain."""
        return [(zero, hybrid) for zero in self.zero_levels for hybrid in self.hybrid]

    @property
    def grid_size(self) -> int:
        """Plans of the grid, before recomputation and sharding are chosen."""
        return len(self.rows) * math.prod(
            len(getattr(self, choice_name)) for choice_name in CHOICES
        )

    @property
    def plans(self) -> int:
        """Plans of these rows."""
        return self.grid_size * len(self.recompute) * len(self.sharding)


def whole_plan(plan_row: Sequence[Quantity], schedule: str) -> TrainingPlan:
    """Return the plan of a row before any choice is made."""
    return TrainingPlan._make((*plan_row, schedule, *TrainingPlan._field_defaults.values()))


def parts_allowed(layers: int, parts: int) -> bool:
    """Say whether layers divide into parts with at most one slot in twenty empty.

    Embedding and output head count as about a layer each.
    """
    layer_slots = -(-layers // parts) * parts  # each part holds as many, rounded up
    return parts <= layers + ENDS and (layer_slots - layers) * EMPTY <= layer_slots


def schedules(layers: int, stages: int) -> list[tuple[str, int]]:
    """Return the (schedule, interleave) pairs of a pipeline."""
    if not parts_allowed(layers, stages):
        return []
    schedule_pairs = [("1f1b", 1)]
    if stages > 1:
        schedule_pairs += [
            ("interleaved", v)
            for v in range(2, (layers + ENDS) // stages + 1)
            if parts_allowed(layers, stages * v)
        ]
        schedule_pairs.append(("zero-bubble", 1))
        if stages % 2 == 0 and stages > 2:
            schedule_pairs.append(("dual-pipe", 1))
    return schedule_pairs


def _candidate_divisions(job: TrainingJob, domain: int, fixed: Fixed) -> Iterator[tuple[int, ...]]:
    """Yield every division of the chips into groups that the fixed axes leave."""
    model, chips = job.model, job.chips
    heads = [attention.heads for attention in model.attentions] + [
        mixer.heads for mixer in model.mixers
    ]
    experts = [block.feed_forward.experts for block in model.blocks if block.feed_forward.experts]
    for tensor in fixed.among("tensor", divisors(chips)):
        if (tensor > MAX_TENSOR or any(h % tensor for h in heads)) and not fixed.has("tensor"):
            continue
        for context in fixed.among("context", divisors(chips // tensor)):
            # each rank takes an early and a late part, to balance the causal mask
            if context > 1 and job.length % (2 * context):
                continue
            for stages in fixed.among("pipeline", divisors(chips // tensor // context)):
                data_parallel = chips // tensor // context // stages
                if (
                    job.batch % data_parallel
                    or not parts_allowed(model.layers, stages)
                    or not fixed.allows("data", data_parallel)
                ):
                    continue
                if (
                    stages > 1
                    and model.layers < LEAST_LAYERS * stages - ENDS
                    and not fixed.has("pipeline")
                ):
                    continue
                ranks = tensor * context * data_parallel
                inner = tensor * context
                for expert in fixed.among("expert", divisors(ranks) if experts else [1]):
                    if any(e % expert for e in experts) or (inner % expert and expert % inner):
                        continue
                    for order in orders(domain, tensor * context, stages, data_parallel):
                        if fixed.allows("order", order):
                            yield tensor, context, stages, data_parallel, expert, order


def chips_in_use(job: TrainingJob, links: Links, fixed: Fixed = ALL_FREE) -> list[int]:
    """Return the chip counts that a job may take.

    The counts are of whole domains of the cluster that leave least of it without work.

    Three things are idle: chips left over, empty positions for layers, and stages that wait for the
    first micro-batch. A smaller count is added if it allows more replicas: each replica then has
    fewer chips, whose communication costs less. A torus has slices of every size. If no plan takes
    more than half of the cluster in whole domains, all chips are taken.
    """
    cluster_chips, domain = int(job.chips), links.domain
    if links.torus is not None:
        return [cluster_chips]
    counts = [Count(0, 0.0, 0)]
    for chips in range(cluster_chips // domain * domain, cluster_chips // 2, -domain):
        if chips / cluster_chips <= counts[0].working and (
            len(counts) > 1 or chips < LEAST_BUSY * counts[0].chips
        ):
            break
        candidate = _chip_count_candidate(replace(job, chips=chips), domain, fixed)
        if chips / cluster_chips * candidate.working > counts[0].working:
            counts = [candidate._replace(working=chips / cluster_chips * candidate.working)]
        elif len(counts) < 2 and candidate.replicas > counts[0].replicas:
            counts.append(candidate)
    return [count.chips for count in counts] if counts[0].chips else [cluster_chips]


class Count(NamedTuple):
    """A number of chips, the busy share of the best plan's step, and its most useful replicas."""

    chips: int
    working: float
    replicas: int


def _chip_count_candidate(job: TrainingJob, domain: int, fixed: Fixed) -> Count:
    """Return the working share and the replicas of a job's best plans.

    The plans take all chips of the job. The share is 0 where the job has no plan.
    """
    working_shares = [
        (max(_working_share(job, stages, data_parallel), default=0.0), data_parallel)
        for _, _, stages, data_parallel, *_ in _candidate_divisions(job, domain, fixed)
    ]
    most = max((working for working, _ in working_shares), default=0.0)
    return Count(
        job.chips,
        most,
        max(
            (
                data_parallel
                for working, data_parallel in working_shares
                if working >= NEARLY * most
            ),
            default=0,
        ),
    )


def _working_share(job: TrainingJob, stages: int, data_parallel: int) -> Iterator[float]:
    layers, count = job.model.layers, job.batch // data_parallel
    for schedule, parts in schedules(layers, stages):
        if schedule == "1f1b" or (schedule == "interleaved" and count >= stages):
            layer_slots = -(-layers // (stages * parts)) * stages * parts
            yield layers / layer_slots / (1 + (stages - 1) / (parts * count))


def orders(domain: int, inner: int, stages: int, data_parallel: int) -> tuple[int, ...]:
    """Return the orders of pipeline and data groups on the fabric that differ."""
    if stages == 1 or data_parallel == 1:
        return (0,)
    near, far = (
        math.gcd(stride * data_parallel, domain) // math.gcd(stride, domain)
        for stride in (inner, inner * stages)
    )
    return (0, 1) if near != far else (0,)


def space(job: TrainingJob, domain: int, fixed: Fixed = ALL_FREE) -> list[PlanBlock]:
    """Return all rows of the plan space that the fixed axes leave.

    Args:
        job: The training job with its model, batch, chips and software.
        domain: Chips of a scale-up domain.
        fixed: Values that axes may take; an axis without values is free.

    Returns:
        Blocks of rows that share their structure, sorted by schedule. A block has rows of shape
        (plans, 8): the columns of `Groups`, micro-batch and interleave.

    """
    layers = job.model.layers
    kinds: dict[int, list[tuple[str, int]]] = {}
    rows_by_structure: dict[tuple[str, bool, bool], list[AnyArray]] = {}
    sizes: dict[int, AnyArray] = {}
    for division in _candidate_divisions(job, domain, fixed):
        group = Groups(*division)
        if group.pipeline not in kinds:
            kinds[group.pipeline] = schedules(layers, group.pipeline)
        local = job.batch // group.data
        if local not in sizes:
            sizes[local] = np.array(
                fixed.among(
                    "micro_batch", [local] if job.software.whole_batches else divisors(local)
                ),
                dtype=np.int64,
            )
        sharded = (
            group.data * group.context > 1
            or group.data * group.context * group.tensor > group.expert > 1
        )
        for schedule, interleave in kinds[group.pipeline]:
            if not fixed.allows("schedule", schedule) or not fixed.allows("interleave", interleave):
                continue
            sizes_allowed = sizes[local]
            count = local // sizes_allowed
            # fewer leave stages without work, or too few weight gradients to fill the bubble
            if schedule in (
                "interleaved",
                "zero-bubble",
            ):
                sizes_allowed = sizes_allowed[count >= group.pipeline]
            elif schedule == "dual-pipe":
                sizes_allowed = sizes_allowed[count >= 2 * group.pipeline]
            if not len(sizes_allowed):
                continue
            division_rows = np.empty((len(sizes_allowed), 8), dtype=np.int64)
            division_rows[:, :6], division_rows[:, 6], division_rows[:, 7] = (
                division,
                sizes_allowed,
                interleave,
            )
            rows_by_structure.setdefault((schedule, group.tensor > 1, sharded), []).append(
                division_rows
            )
    return [
        _block_of(job, fixed, *structure_key, np.concatenate(structure_rows))
        for structure_key, structure_rows in sorted(rows_by_structure.items())
    ]


def _block_of(
    job: TrainingJob,
    fixed: Fixed,
    schedule: str,
    tensor: bool,
    sharded: bool,
    plan_rows: AnyArray,
) -> PlanBlock:
    """Return plan rows with their free choices.

    Sharding levels apply where anything is shared, two choices only with tensor parallelism.
    """
    split, pieces = (1,) * job.software.splits_sequences, (1,) * job.software.splits_collectives
    return PlanBlock(
        schedule,
        plan_rows,
        zero_levels=fixed.among("zero", (0, 1, 2, 3)) if sharded else (0,),
        sequence_parallel=fixed.among("sequence_parallel", (0, *split)) if tensor else (0,),
        overlap=fixed.among("overlap", (0, *pieces)) if tensor else (0,),
        offload=fixed.among("offload", (0, 1)),
        recompute=fixed.among("recompute", RECOMPUTE),
        hybrid=fixed.among("hybrid", (0,)),
    )


def fixed_axes(plan: Mapping[str, str]) -> Fixed:
    """Return the axes that `--plan` fixes.

    Args:
        plan: Text by axis name; `|` joins several values of an axis.

    Raises:
        DataError: An axis or a value is unknown, or an axis is given twice.

    """
    axis_values: dict[str, tuple[Any, ...]] = {}
    for axis_name, axis_text in plan.items():
        field = (
            COUNTS.get(axis_name)
            or FLAGS.get(axis_name)
            or (axis_name if axis_name in WORDS else None)
        )
        if field is None:
            raise unknown("axis of a training plan", axis_name, [*COUNTS, *FLAGS, *WORDS], "--plan")
        if field in axis_values:
            raise DataError(f"--plan {axis_name}={axis_text}: interleave is given twice")
        axis_values[field] = tuple(
            _value_of(axis_name, part.strip()) for part in str(axis_text).split("|")
        )
    return Fixed(axis_values)


def _value_of(axis_name: str, axis_text: str) -> Any:
    """Return the value of an axis; one that it cannot take raises `DataError`."""
    where = f"--plan {axis_name}={axis_text}"
    if axis_name in WORDS:
        if axis_text == "1f1b-interleaved":
            axis_text = "interleaved"
        refuse_unknown(axis_name, [axis_text], WORDS[axis_name], "--plan")
        return ORDERS.index(axis_text) if axis_name == "order" else axis_text
    if axis_name in FLAGS:
        if axis_text.lower() not in ANSWERS:
            raise DataError(f"{where}: expected yes or no")
        return ANSWERS[axis_text.lower()]
    if (
        not is_whole_number(axis_text)
        or (axis_name != "zero" and int(axis_text) < 1)
        or (axis_name == "zero" and int(axis_text) not in LEVELS)
    ):
        raise DataError(
            f"{where}: expected "
            f"{'0, 1, 2 or 3' if axis_name == 'zero' else 'a whole number from 1 on'}"
        )
    return int(axis_text)
