"""Plans of a serving engine: their number, layout on racks, memory and cost of each axis."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tco import evaluate
from tco.performance.serving.axes import pass_communication_axes
from tco.performance.serving.plan_choice import choose_decode
from tco.performance.serving.plans import (
    DomainLayout,
    decode_plan_document,
    engines_of_world,
    filling,
    layout_of,
    parallelism_table,
    stages_of,
)
from tests.cli import document
from tests.fabric_helpers import RankGroup, fastest_algorithm_time, reach
from tests.performance.servers import (
    CATALOGUE,
    DecodePlan,
    PrefillPlan,
    attention_chips,
    bare,
    cached_numbers,
    decode_plan_from_axes,
    named,
    over_layers,
    plan_axes,
    server,
)
from tests.scenario_helpers import dispatched

CONTEXT_PARALLEL = (2, 4, 8)
CUTS = ("experts", "tensor", "context")
LARGEST = 144
LEAST_CONTEXT = 16384
STAGES = (2, 4, 8)
TENSOR_PARALLEL = (1, 2, 4, 8, 16)

TWO_RACKS, TRAY = "trn3-nl72x2", 4
EXPERTS, TENSOR, CONTEXT = range(len(CUTS))
WHOLE = (1,)
SPLIT = (1, *CONTEXT_PARALLEL)
FABRICS = {  # chips of a world, of a domain
    "two racks of 72": (144, 72),
    "two racks of 36": (72, 36),
    "two racks of 32": (64, 32),
    "one rack": (72, 72),
    "server": (8, 8),
    "torus": (64, 64),
}


def divisors(number: int) -> list[int]:
    return [part for part in range(1, number + 1) if number % part == 0]


def rows(fabric: str, sparse: bool, parts: tuple[int, ...], heads: int = 128) -> list[PrefillPlan]:
    return [
        PrefillPlan(*(int(cell) for cell in row))
        for row in parallelism_table(*FABRICS[fabric], heads, sparse, parts)
    ]


# ---------------------------------------------------------------- which plans there are
@pytest.mark.parametrize("parts", [WHOLE, (1, 2), SPLIT], ids=str)
@pytest.mark.parametrize("sparse", [True, False], ids=["experts", "dense"])
@pytest.mark.parametrize("fabric", FABRICS)
def test_every_row_is_a_plan_of_its_own_that_divides_its_chips_and_heads(fabric, sparse, parts):
    world, domain = FABRICS[fabric]
    plan_rows = rows(fabric, sparse, parts, heads=96)
    assert plan_rows
    assert max(Counter(plan_rows).values()) == 1
    for plan in plan_rows:
        assert (
            plan.chips % (plan.tensor_parallel * plan.context_parallel * plan.pipeline_parallel)
            == 0
        )
        assert 96 % plan.tensor_parallel == 0
        stage = plan.chips // plan.pipeline_parallel
        assert plan.pipeline_parallel == 1 or plan.chips <= (LARGEST if stage == world else world)
        assert stage <= world or stage <= LARGEST
        if plan.cut:
            assert domain < stage <= world
            assert plan.pipeline_parallel == 1
            # otherwise there is nothing beside the group that could stay in its rack
            assert attention_chips(plan) < stage


@pytest.mark.parametrize("fabric", FABRICS)
def test_a_dense_model_is_one_attention_group_a_stage(fabric):
    for plan in rows(fabric, False, SPLIT, heads=144):
        assert attention_chips(plan) == plan.chips / plan.pipeline_parallel
        assert plan.cut == EXPERTS


def test_stages_are_parts_of_a_world_powers_of_two_in_it_or_worlds_up_to_the_widest_published():
    assert stages_of(8) == [1, 2, 4, 8, 16, 32, 64, 128]
    assert stages_of(144) == sorted([*divisors(144), 32, 64, 128])
    assert stages_of(72) == sorted([*divisors(72), 16, 32, 64, 144])
    pipelines = {
        (plan.chips, plan.pipeline_parallel)
        for plan in rows("server", True, WHOLE)
        if plan.pipeline_parallel > 1
    }
    assert pipelines == {(2, 2), (4, 2), (4, 4), (8, 2), (8, 4), (8, 8), (16, 2), (32, 4), (64, 8)}
    # 2, 4 or 8 stages of 1, 2, 3, 4, 6, 8, 9, 12, 16, 18, 24, 32 or 36 chips
    in_a_rack = {
        2,
        4,
        6,
        8,
        12,
        16,
        18,
        24,
        32,
        36,
        48,
        64,
        72,
    }
    assert {plan.chips for plan in rows("one rack", True, WHOLE) if plan.pipeline_parallel > 1} == {
        *in_a_rack,
        144,
    }


def test_plans_of_two_racks_counted_by_hand():
    """Plans take 1, 2, ... 144 chips that a tensor-parallel group divides.

    Beyond one rack the racks are joined by experts or by halves of groups.
    """
    flat = {
        (chips, tensor)
        for chips in (*divisors(144), 32, 64, 128)
        for tensor in TENSOR_PARALLEL
        if chips % tensor == 0
    }
    unstaged_plans = [
        plan for plan in rows("two racks of 72", True, WHOLE) if plan.pipeline_parallel == 1
    ]
    assert {
        (plan.chips, plan.tensor_parallel) for plan in unstaged_plans if plan.cut == EXPERTS
    } == flat
    assert [plan[:5] for plan in unstaged_plans if plan.cut == TENSOR] == [
        (chips, tensor, 1, 1, TENSOR) for chips in (128, 144) for tensor in (2, 4, 8, 16)
    ]
    # sequences too short to be split are split in two over the racks, and only there
    assert [plan[:5] for plan in unstaged_plans if plan.context_parallel > 1] == [
        (chips, tensor, 2, 1, CONTEXT)
        for chips in (128, 144)
        for tensor in TENSOR_PARALLEL
        if chips % (2 * tensor) == 0
    ]


def test_engines_that_share_a_world_are_whole_ones():
    links = server(TWO_RACKS).machine.links
    assert [float(engines_of_world(links, chips)) for chips in (8, 72, 64, 128, 144, 288)] == [
        18,
        2,
        2,
        1,
        1,
        1,
    ]
    whole_engines = filling(plan_axes(server(TWO_RACKS).model, links, 0), links)
    assert set(np.ravel(whole_engines.chips)) == set(divisors(144))


@pytest.mark.parametrize(
    ("tokens", "most"),
    [
        (0, 1),
        (LEAST_CONTEXT, 1),
        (2 * LEAST_CONTEXT - 1, 1),
        (2 * LEAST_CONTEXT, 2),
        (4 * LEAST_CONTEXT, 4),
        (10**7, 8),
    ],
)
def test_a_sequence_is_split_where_each_part_is_worth_it(tokens, most):
    model_server = server(TWO_RACKS)
    axes = plan_axes(model_server.model, model_server.machine.links, tokens)
    assert axes.context_parallel[axes.cut != CONTEXT].max() == most
    across = axes.context_parallel[axes.cut == CONTEXT]
    assert set(across) == (
        set()
        if not tokens
        else {ranks for ranks in {2, *CONTEXT_PARALLEL} if ranks <= max(most, 2)}
    )


@pytest.mark.parametrize("model", ["minimax-m2", "deepseek-v3"])
@pytest.mark.parametrize("system", ["gb200-nvl72", "h100-hgx8", TWO_RACKS, "tpuv7-cube64"])
def test_long_prompts_have_plans_on_every_fabric(system, model):
    model_server = server(
        system, workload__model=model, workload__precision="bf16", workload__input_tokens="130048"
    )
    axes = plan_axes(model_server.model, model_server.machine.links, 131072)
    assert axes.context_parallel.max() == 8
    assert np.all(
        np.isfinite(model_server.decode(decode_plan_from_axes(axes, np.array([[1.0]]))).time)
    )


# ---------------------------------------------------------------- how they lie on racks
LAYOUT_NAMES = [
    "flat",
    "halves of groups",
    "halves of sequences",
    "one rack",
    "two stages",
    "experts shared",
]
# chips, tensor, context, pipeline, cut, experts: stage, domains, replicas, copies, crossing, groups
# of experts
LAYOUTS = [
    ((144, 4, 1, 1, EXPERTS), (144, 2, 1, 1, 0, 144)),
    ((144, 4, 1, 1, TENSOR), (144, 2, 1, 2, 1, 72)),
    ((144, 4, 2, 1, CONTEXT), (144, 2, 2, 1, 1, 72)),
    ((72, 4, 2, 1, EXPERTS), (72, 1, 1, 1, 0, 72)),
    ((288, 4, 1, 2, EXPERTS), (144, 2, 1, 1, 0, 144)),
    ((8, 8, 1, 1, EXPERTS, 2), (8, 1, 1, 1, 0, 2)),
]


@pytest.mark.parametrize(
    ("row", "lies"),
    LAYOUTS,
    ids=[
        "flat",
        "halves of groups",
        "halves of sequences",
        "one rack",
        "two stages",
        "experts shared",
    ],
)
def test_layout_on_racks_of_72(row, lies):
    links = server(TWO_RACKS).machine.links
    assert tuple(float(part) for part in layout_of(PrefillPlan(*row), links)) == lies
    as_arrays = layout_of(PrefillPlan(*(np.array([[value]]) for value in row)), links)
    assert DomainLayout(*(float(np.squeeze(part)) for part in as_arrays)) == DomainLayout(*lies)


@pytest.mark.parametrize("system", [TWO_RACKS, "gb200-nvl36x2", "h100-hgx8"])
def test_a_plan_is_described_by_factors_of_its_chips(system):
    model_server = server(system, workload__input_tokens="130048")
    axes = plan_axes(model_server.model, model_server.machine.links, 131072)
    plans = [
        decode_plan_from_axes(PrefillPlan(*(float(column[row_index, 0]) for column in axes)), 8.0)
        for row_index in range(len(axes.chips))
    ]
    for plan in plans:
        plan_document = decode_plan_document(plan, model_server.machine.links)
        assert (
            plan_document["tp"] * plan_document["dp"] * plan_document["cp"] * plan_document["pp"]
            == plan.chips
        )
        assert plan_document["batch"] == 8 * plan_document["dp"] * plan_document["pp"]
        lies = layout_of(plan, model_server.machine.links)
        # of every expert, where each chip holds one
        parts = lies.stage if plan.expert_parallel else 1
        assert (
            plan_document["ep"] * parts * plan_document["pp"] * lies.replicas * lies.copies
            == plan.chips
        )


# ---------------------------------------------------------------- memory
def memory_of_chip(plan: DecodePlan, model_server=None) -> float:
    return float((model_server or server(TWO_RACKS)).decode(plan).memory)


def weights_of_chip(plan: DecodePlan, model_server=None) -> float:
    """Return the weights that a chip holds.

    They are the memory without its sequences, which all take the same.
    """
    return 2 * memory_of_chip(plan._replace(sequences=1.0), model_server) - memory_of_chip(
        plan._replace(sequences=2.0), model_server
    )


def test_experts_of_each_cut_by_hand():
    """256 experts over 144 chips are two each, in halves of four over 72 too; sets are four each.

    A set is the experts of one rack. The other weights are alike.
    """
    model = server(TWO_RACKS).model
    expert = 3 * 7168 * 2048
    flat, halves, sets = (
        weights_of_chip(DecodePlan(144.0, 4.0, 1.0, 1.0, cut, 1.0)) for cut in range(3)
    )
    # one byte a number
    assert flat == pytest.approx(
        58 * 2 * expert + (model.parameters - 58 * 256 * expert) / 4, rel=1e-3
    )
    assert halves == pytest.approx(flat, rel=1e-12)
    assert sets - flat == pytest.approx(58 * 2 * expert, rel=1e-9)


def test_the_longer_of_two_stages_holds_31_of_61_layers():
    """A stage holds its part of the weights, and as large a part of all sequences' caches.

    The sequences are those of both stages.
    """
    model_server = server("h100-hgx8")
    single_stage, two = (
        DecodePlan(8.0, 4.0, 1.0, 1.0, 0.0, 6.0),
        DecodePlan(16.0, 4.0, 1.0, 2.0, 0.0, 6.0),
    )
    assert weights_of_chip(two, model_server) == pytest.approx(
        weights_of_chip(single_stage, model_server) * 31 / 61, rel=1e-12
    )
    caches = [
        memory_of_chip(plan, model_server) - weights_of_chip(plan, model_server)
        for plan in (single_stage, two)
    ]
    # TensorRT-LLM gives caches nine tenths of what the weights leave free
    assert caches[0] == pytest.approx(6 * (8192 + 1024) * 576 * 61 / 0.9, rel=1e-9)
    assert caches[1] == pytest.approx(caches[0] * 2 * 31 / 61, rel=1e-9)


@pytest.mark.parametrize("ranks", CONTEXT_PARALLEL)
def test_ranks_that_split_sequences_share_their_caches(ranks):
    unsplit_plan, split = (
        DecodePlan(72.0, 1.0, 1.0, 1.0, 0.0, 6.0),
        DecodePlan(72.0, 1.0, float(ranks), 1.0, 0.0, 6.0),
    )
    unsplit_cache, split_cache = (
        memory_of_chip(unsplit_plan) - weights_of_chip(unsplit_plan),
        memory_of_chip(split) - weights_of_chip(split),
    )
    assert unsplit_cache == pytest.approx(6 * (8192 + 1024) * 576 * 61, rel=1e-9)
    assert split_cache == pytest.approx(unsplit_cache / ranks, rel=1e-9)
    assert memory_of_chip(split) < memory_of_chip(unsplit_plan)
    model = server(TWO_RACKS).model
    numbers = cached_numbers(model, 1, ranks)[0], cached_numbers(model, 1)[0]
    assert numbers[0] * ranks == pytest.approx(numbers[1], rel=1e-12)


# ---------------------------------------------------------------- times
@pytest.mark.parametrize("ranks", CONTEXT_PARALLEL)
@pytest.mark.parametrize("model", ["deepseek-v3", "minimax-m2"])
def test_splitting_sequences_divides_the_attention_core(model, ranks):
    model_server = server(TWO_RACKS, workload__model=model, workload__input_tokens="32768")
    unsplit, split = (
        model_server.decode(DecodePlan(72.0, 1.0, float(parts), 1.0, 0.0, 4.0))
        for parts in (1, ranks)
    )
    core = [named(pass_result, "attention core") for pass_result in (unsplit, split)]
    assert core[1].flops == pytest.approx(core[0].flops / ranks, rel=1e-12)
    assert core[1].bytes == pytest.approx(core[0].bytes / ranks, rel=1e-12)
    assert core[1].time == pytest.approx(core[0].time / ranks, rel=1e-12)
    assert "context sums" not in {operator.name for operator in unsplit.operators}
    assert named(split, "context sums").time > 0
    projections = [
        over_layers(pass_result, "attention projections", "flops")
        for pass_result in (unsplit, split)
    ]
    assert projections[0] == projections[1]  # all ranks compute the same tokens


def test_ranks_that_split_a_prompt_compute_their_part_of_it():
    model_server = server(TWO_RACKS, workload__input_tokens="130048")
    unsplit, split = (
        model_server.prefill(PrefillPlan(72.0, 4.0, float(parts))) for parts in (1, 4)
    )
    for name in ("attention core", "attention projections", "norms and residuals"):
        assert over_layers(split, name, "flops") == pytest.approx(
            over_layers(unsplit, name, "flops") / 4, rel=1e-12
        )
    gathered = named(split, "context gather")
    assert gathered.bytes == pytest.approx(130048 * 576, rel=1e-12)  # keys and values of all parts
    assert gathered.time > 0


@pytest.mark.parametrize(
    ("phase", "plan"),
    [("decode", DecodePlan(8.0, 8.0, 1.0, 1.0, 0.0, 16.0)), ("prefill", PrefillPlan(8.0, 8.0))],
)
def test_a_second_stage_adds_one_transfer_and_waits_for_the_longer(phase, plan):
    """The pass of two stages takes 62/61 of the work of one, and a transfer between servers.

    The longer stage has 31 of 61 layers.
    """
    model_server = server("h100-hgx8", workload__precision="bf16")
    single_stage, two = (
        getattr(model_server, phase)(
            plan._replace(chips=8.0 * depth, pipeline_parallel=float(depth))
        )
        for depth in (1, 2)
    )
    links, tokens = model_server.machine.links, 16 if phase == "decode" else 8192
    # each of eight ranks sends its part
    transfer = float(links.latencies.network_step) + tokens / 8 * 7168 * 2 / float(links.network)
    work = sum(float(operator.time) for operator in single_stage.operators)
    assert [operator.name for operator in bare(two) if operator not in bare(single_stage)] == [
        "stage transfer",
        "uneven stages",
    ]
    assert named(two, "stage transfer").time == pytest.approx(transfer, rel=1e-12)
    assert named(two, "uneven stages").time == pytest.approx(work / 61, rel=1e-12)
    assert two.time - single_stage.time == pytest.approx(transfer + work / 61, rel=1e-6)


@pytest.mark.parametrize("depth", [2, 4, 8])
def test_stages_inside_a_domain_pass_tokens_over_its_links(depth):
    model_server = server("h100-hgx8", workload__precision="bf16")
    links = model_server.machine.links
    decode_step = model_server.decode(DecodePlan(8.0, 1.0, 1.0, float(depth), 0.0, 16.0))
    once = float(links.latencies.step) + 16 * 7168 * 2 / float(links.inside)
    assert named(decode_step, "stage transfer").time == pytest.approx((depth - 1) * once, rel=1e-12)


def test_stages_on_a_mesh_meet_over_the_one_link_of_a_pair():
    model_server = server("mi355x-8", workload__precision="bf16")
    links = model_server.machine.links
    decode_step = model_server.decode(DecodePlan(8.0, 1.0, 1.0, 2.0, 0.0, 16.0))
    assert named(decode_step, "stage transfer").time == pytest.approx(
        float(links.latencies.step) + 16 * 7168 * 2 / (float(links.inside) / 7), rel=1e-12
    )


def test_stages_that_divide_the_layers_wait_for_none():
    """Llama 3 of 80 layers on eight stages."""
    model_server = server(
        "h100-hgx8",
        workload__model="llama-3-70b",
        workload__precision="bf16",
        workload__input_tokens="4096",
    )
    decode_step = model_server.decode(DecodePlan(8.0, 1.0, 1.0, 8.0, 0.0, 16.0))
    assert named(decode_step, "uneven stages").time == 0


def test_experts_in_halves_exchange_in_their_rack_and_sum_across():
    model_server = server(TWO_RACKS)
    links, machine = model_server.machine.links, model_server.machine
    flat, halves = (
        model_server.decode(DecodePlan(144.0, 4.0, 1.0, 1.0, cut, 32.0))
        for cut in (EXPERTS, TENSOR)
    )
    for name, size in (("dispatch", 1), ("combine", 2)):
        assert named(halves, name).bytes == pytest.approx(2 * named(flat, name).bytes, rel=1e-12)
        for decode_step, ranks, tokens in ((flat, 144, 8), (halves, 72, 16)):
            expected = dispatched(links, ranks, tokens, 8, 7168.0 * size) + machine.waits[
                "exchange_wait"
            ] * np.sqrt(np.log2(ranks))
            assert named(decode_step, name).time == pytest.approx(58 * expected, rel=1e-12)
    joined = named(halves, "expert all-reduce")
    assert joined.time == pytest.approx(
        58
        * (
            fastest_algorithm_time(reach(links, RankGroup(2, 2, 1)), "all-reduce", 16 * 7168 * 2.0)
            + machine.waits["collective_wait"]
        ),
        rel=1e-12,
    )
    assert joined.bytes == 16 * 7168 * 2
    assert "expert all-reduce" not in {operator.name for operator in flat.operators}


def test_experts_in_each_rack_exchange_there():
    model_server = server(TWO_RACKS)
    sets = model_server.decode(DecodePlan(144.0, 4.0, 2.0, 1.0, CONTEXT, 32.0))
    # 32 sequences of a group of eight chips
    expected = dispatched(
        model_server.machine.links, 72, 4, 8, 7168.0
    ) + model_server.machine.waits["exchange_wait"] * np.sqrt(np.log2(72))
    assert named(sets, "dispatch").time == pytest.approx(58 * expected, rel=1e-12)


@pytest.mark.parametrize("cut", range(3), ids=CUTS)
def test_every_cut_computes_the_same_work(cut):
    """Each chip computes its share of the experts' products: the engine's tokens over its chips."""
    model_server = server(TWO_RACKS)
    context = 2.0 if cut == CONTEXT else 1.0
    prompt = model_server.prefill(PrefillPlan(144.0, 4.0, context, 1.0, float(cut)))
    groups = 144 / 4  # each on a prompt, or two on the halves of one
    tokens = groups * 8192 / context
    assert over_layers(prompt, "experts", "flops") == pytest.approx(
        58 * 2 * tokens * 8 * 3 * 7168 * 2048 / 144, rel=1e-9
    )


# ---------------------------------------------------------------- the search
def test_what_fits_no_server_is_served_on_several():
    """671 billion numbers of one byte against eight chips of 80 GB."""
    evaluation = evaluate(
        "h100-hgx8", {"workload.interactivity": "20 token/s"}, catalogue=CATALOGUE
    )
    assert evaluation.metrics["tokens_per_s_per_user"] >= 20
    assert {evaluation.plan.decode.chips, evaluation.plan.prefill.chips} <= {16, 32, 64, 128}
    model_server = server("h100-hgx8")
    single = plan_axes(model_server.model, model_server.machine.links, 9216)
    single_server_plans = PrefillPlan(*(column[single.chips[:, 0] <= 8] for column in single))
    assert "does not fit" in choose_decode(model_server, 1.0, single_server_plans).reason
    assert model_server.decode(evaluation.plan.decode).memory <= model_server.machine.memory


@pytest.mark.parametrize("name", ["trn3-nl72x2", "trn3-nl32x2", "moe-3t-decode-trn3-nl72x2"])
def test_the_chosen_plan_is_the_best_of_all_ways_across(name):
    perf_answer = document("perf", name)
    assert list(perf_answer["across_domains"]) == ["nothing", *CUTS]
    plan = perf_answer["plan"]["decode"]
    rate = (
        plan["sequences"]
        / (plan["tensor_parallel"] * plan["context_parallel"])
        / perf_answer["metrics"]["tpot_s"]
    )
    assert rate == pytest.approx(max(perf_answer["across_domains"].values()), rel=1e-12)


def test_one_rack_has_nothing_to_cross():
    assert document("perf", "gb200-nvl72")["across_domains"] is None


# ---------------------------------------------------------------- axes on the fabric
def lies(plan, phase: str = "decode") -> dict[str, tuple[int, int, float | None]]:
    model_server = server(TWO_RACKS)
    return {
        axis.name: (axis.ranks, axis.domains, axis.hops)
        for axis in pass_communication_axes(
            phase, plan, model_server.machine.links, getattr(model_server, phase)(plan)
        )
    }


def test_axes_of_two_racks_by_hand():
    """Hops are those of `tco fabric`: 2.4366 in a rack and 2.9161 in the whole domain.

    The chips of a tray are one hop apart, and paired chips none.
    """
    rack, world = (scope["hops_mean"] for scope in document("fabric", TWO_RACKS)["scopes"])
    rack, world = pytest.approx(rack, rel=1e-9), pytest.approx(world, rel=1e-9)
    assert lies(DecodePlan(144.0, 4.0, 1.0, 1.0, EXPERTS, 32.0)) == {
        "tensor": (4, 1, 1.0),
        "experts": (144, 2, world),
    }
    assert lies(DecodePlan(72.0, 8.0, 1.0, 1.0, EXPERTS, 32.0)) == {
        "tensor": (8, 1, rack),
        "experts": (72, 1, rack),
    }
    halves = {"tensor": (2, 2, 0.0), "experts": (72, 1, rack), "expert parts": (2, 2, 0.0)}
    assert lies(DecodePlan(144.0, 2.0, 1.0, 1.0, TENSOR, 32.0)) == halves
    sets = {"tensor": (2, 2, 0.0), "context": (2, 2, 0.0), "experts": (72, 1, rack)}
    assert lies(DecodePlan(144.0, 1.0, 2.0, 1.0, CONTEXT, 32.0)) == sets


def test_an_axis_moves_what_its_collectives_move():
    model_server, plan = server(TWO_RACKS), DecodePlan(144.0, 4.0, 1.0, 1.0, TENSOR, 32.0)
    decode_step = model_server.decode(plan)
    axes = {
        axis.name: axis
        for axis in pass_communication_axes("decode", plan, model_server.machine.links, decode_step)
    }
    # one all-reduce a layer
    assert axes["tensor"].bytes == pytest.approx(61 * 32 * 7168 * 2, rel=1e-12)
    # a byte out, two back, to eight experts
    assert axes["experts"].bytes == pytest.approx(58 * 16 * 8 * 7168 * 3, rel=1e-12)
    assert axes["experts"].time_s == pytest.approx(
        named(decode_step, "dispatch").time + named(decode_step, "combine").time, rel=1e-12
    )
    assert axes["expert parts"].bytes == pytest.approx(58 * 16 * 7168 * 2, rel=1e-12)


def test_stages_meet_over_the_network():
    model_server, plan = server("h100-hgx8"), DecodePlan(16.0, 8.0, 1.0, 2.0, EXPERTS, 32.0)
    axes = {
        axis.name: axis
        for axis in pass_communication_axes(
            "decode", plan, model_server.machine.links, model_server.decode(plan)
        )
    }
    assert (axes["stages"].ranks, axes["stages"].hops, axes["stages"].bytes) == (
        2,
        None,
        32 / 8 * 7168 * 2,
    )


def test_stages_of_a_server_meet_over_its_switches():
    model_server, plan = server("h100-hgx8"), DecodePlan(8.0, 1.0, 1.0, 4.0, EXPERTS, 32.0)
    (stages,) = (
        axis
        for axis in pass_communication_axes(
            "decode", plan, model_server.machine.links, model_server.decode(plan)
        )
        if axis.name == "stages"
    )
    assert (stages.ranks, stages.domains, stages.hops) == (4, 1, 1)
    assert stages.bytes == pytest.approx(3 * 32 * 7168 * 2, rel=1e-12)


# ---------------------------------------------------------------- an exchange by itself and in a
# step
# as they are measured, one token a sequence
WAITS = (
    "workload.software=10000 months",
    "workload.draft_tokens=0",
    "workload.as_deployed=0",
)
GROWN_UP = [word for wait_setting in WAITS for word in ("--set", wait_setting)]


def exchange_us(perf_document, name: str) -> float:
    """Return the time in us of one exchange of a decode step of DeepSeek-V3.

    The model has 58 layers of experts.
    """
    return float(
        next(
            operator["time_us"]
            for operator in perf_document["operators"]
            if (operator["phase"], operator["name"]) == ("decode", name)
        )
        / 58
    )


def test_an_exchange_takes_as_long_in_a_step_as_the_command_for_collectives_says():
    perf_answer = document("perf", TWO_RACKS, *GROWN_UP)
    (axis,) = (
        axis
        for axis in perf_answer["axes"]
        if (axis["phase"], axis["name"]) == ("decode", "experts")
    )
    tokens = perf_answer["plan"]["batch"] / axis["ranks"]
    words = (
        "--op",
        "dispatch",
        "--ranks",
        str(axis["ranks"]),
        "--tokens",
        str(tokens),
        "--precision",
        "fp8",
    )
    collective_answer = document("collective", TWO_RACKS, *words)
    assert collective_answer["in_step_us"] == pytest.approx(
        exchange_us(perf_answer, "dispatch"), rel=0.02
    )
    assert axis["wait_s"] == pytest.approx(
        2 * 58 * 1e-6 * (collective_answer["in_step_us"] - collective_answer["time_us"]), rel=1e-6
    )


def test_where_the_ends_of_a_collective_lie_moves_it_and_the_step_alike():
    """Two trips to HBM of 1 us each where buffers do not stay in on-chip memory."""
    inside, outside = (
        ("--set", f"performance.trainium.endpoint_in_memory={share}") for share in (0, 1)
    )
    words = ("--op", "dispatch", "--ranks", "128", "--tokens", "2", "--precision", "fp8")
    collective_times = [
        document("collective", TWO_RACKS, *words, *endpoint_words)["time_us"]
        for endpoint_words in (inside, outside)
    ]
    step = [
        document("perf", TWO_RACKS, "--plan", "tp=4,ep=128,batch=256", *GROWN_UP, *endpoint_words)
        for endpoint_words in (inside, outside)
    ]
    assert collective_times[1] - collective_times[0] == pytest.approx(2.0, rel=1e-6)
    assert exchange_us(step[1], "dispatch") - exchange_us(step[0], "dispatch") == pytest.approx(
        2.0, rel=1e-6
    )
