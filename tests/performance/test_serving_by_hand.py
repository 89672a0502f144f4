"""Plans and batches of serving on engines that are made by hand, whose best is known."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tco.performance.serving import batches, plan_choice
from tco.performance.serving import plan_choice_compiled as compiled
from tco.performance.serving.decode_plan_solver import _back_off_from_tile_step
from tco.performance.serving.fixed_axes import _built, _deployment
from tco.performance.serving.loaded_plans import rates_under_load
from tco.performance.serving.plan_choice import PlanChoice
from tco.performance.serving.plans import (
    CUTS,
    DecodePlan,
    PrefillPlan,
    ServingPlan,
    ServingWorkload,
    borders_crossed,
    decoding_at,
    layout_of,
)
from tco.performance.serving.record import ServingResult
from tests.performance.servers import cached_numbers, server

TWO_RACKS = "trn3-nl72x2"


# ---------------------------------------------------------------- plans that a user gives
@pytest.mark.parametrize(
    ("axes", "chips"),
    [
        ({"tp": 8, "ep": 16}, 16),  # the experts' ranks hold two attention groups
        ({"tp": 8, "ep": 4}, 8),
        ({"tp": 8, "ep": 16, "pp": 3}, 48),
        ({"tp": 8, "cp": 4, "ep": 16, "pp": 2}, 64),
    ],
)
def test_tensor_and_expert_parallel_imply_the_chips_of_an_engine(axes, chips):
    stated, note = _deployment(axes)
    assert stated == {"chips": chips, "pp": axes.get("pp", 1)}
    assert f"one engine of {chips} chips" in note
    assert ("without a pipeline" in note) == ("pp" not in axes)


def model_of(heads, experts=0):
    attention, feed_forward = SimpleNamespace(heads=heads), SimpleNamespace(experts=experts)
    block = SimpleNamespace(attention=attention, feed_forward=feed_forward)
    return SimpleNamespace(blocks=[block], has_experts=bool(feed_forward.experts))


def test_a_model_without_attention_heads_is_not_split_by_heads():
    plans = _built(model_of(heads=0, experts=8), {"chips": 8, "pp": 1})
    assert plans.tensor_parallel.ravel().tolist() == [1.0]
    plans = _built(model_of(heads=4, experts=8), {"chips": 8, "pp": 1})
    assert plans.tensor_parallel.ravel().tolist() == [1.0, 2.0, 4.0]


# ---------------------------------------------------------------- borders of domains
STAGES_ACROSS = PrefillPlan(
    np.array([[72.0], [144.0], [144.0], [144.0], [288.0], [144.0]]),
    *(np.full((6, 1), 4.0), np.ones((6, 1))),
    np.array([[1.0], [1.0], [1.0], [1.0], [1.0], [2.0]]),
    np.array([[0.0], [0.0], [1.0], [2.0], [0.0], [0.0]]),
    np.zeros((6, 1)),
)


def test_a_stage_crosses_the_border_that_it_spans():
    """A stage of 72 stays in its rack, of 144 spans two, of 288 leaves them for the network."""
    links = server(TWO_RACKS).machine.links
    assert (links.domain, links.world) == (72, 144)
    assert borders_crossed(STAGES_ACROSS, links).tolist() == [
        "nothing",
        *CUTS,
        "network",
        "nothing",
    ]


def test_the_best_rate_of_each_cut_is_the_best_of_its_plans():
    links = server(TWO_RACKS).machine.links
    rates = np.array([3.0, 5.0, 2.0, 0.0, 9.0, 4.0])
    choice = PlanChoice(None, 6, 6, None, best=rates, axes=STAGES_ACROSS)
    result = ServingResult(None, choices={"decode": choice}, links=links)
    assert result.cuts == {"nothing": 4.0, CUTS[0]: 5.0, CUTS[1]: 2.0, CUTS[2]: 0.0}
    assert (
        ServingResult(None, choices={"decode": choice._replace(axes=None)}, links=links).cuts == {}
    )
    single_rack = links._replace(world=72)
    assert ServingResult(None, choices={"decode": choice}, links=single_rack).cuts == {}
    assert ServingResult(None, links=links).cuts == {}


def test_plans_are_repeated_for_each_depth_of_drafts():
    axes = PrefillPlan(*(np.array([[number], [number + 10]]) for number in range(6)))
    plans = decoding_at(axes, np.array([[7.0], [8.0]]), (0.0, 1.0, 3.0))
    assert plans.chips.ravel().tolist() == [0, 10] * 3
    assert plans.sequences.ravel().tolist() == [7, 8] * 3
    assert plans.drafts.ravel().tolist() == [0, 0, 1, 1, 3, 3]


@pytest.mark.parametrize("placement", ["one-domain", "whole-world"])
def test_experts_lie_in_a_domain_or_over_a_world_and_never_beyond(monkeypatch, placement):
    """Copies of all experts in both racks would lie within one; 288 chips leave the world."""
    links = server(TWO_RACKS).machine.links
    monkeypatch.setattr(plan_choice, "decode_axes", lambda *_: STAGES_ACROSS)
    axes = []

    def choose(*arguments):
        axes.append(arguments[-1])
        return PlanChoice(None, 0, 0, None, reason="too slow")

    monkeypatch.setattr(plan_choice, "choose_decode", choose)
    layout = layout_of(STAGES_ACROSS, links)
    spread = (layout.stage / (layout.replicas * layout.copies)).ravel()
    assert spread.tolist() == [72.0, 144.0, 72.0, 72.0, 288.0, 72.0]
    rate, reason = plan_choice.decode_rate_with_experts(
        ServingWorkload(SimpleNamespace(links=links), None, None), 50.0, placement
    )
    assert (rate, reason) == (0.0, "no decode plan: too slow")
    inside = spread <= 72
    expected = inside if placement == "one-domain" else ~inside
    within_world = STAGES_ACROSS.chips.ravel() <= 144
    assert axes[0].chips.ravel().tolist() == (
        STAGES_ACROSS.chips.ravel()[expected & within_world].tolist()
    )


def test_states_of_a_sequence_are_cached_by_layer_and_split_over_ranks():
    """Five layers of 60 numbers and three of 8, on four ranks."""
    states = SimpleNamespace(fixed_numbers_per_sequence=60)
    convolutions = SimpleNamespace(fixed_numbers_per_sequence=8)
    mixers = _Items([(states, 5), (convolutions, 3)])
    model = SimpleNamespace(attentions=_Items([]), mixers=mixers)
    assert cached_numbers(model, 4) == (0, (5 * 60 + 3 * 8) / 4)


class _Items(list):
    """Pairs that a mapping would give, of keys without a hash."""

    def items(self):
        return self


# ---------------------------------------------------------------- batches
def engine_of(token_time):
    """A pass whose only result is the time of a token at each batch."""

    def decode_pass(_workload, plan):
        return SimpleNamespace(per_token=token_time(np.asarray(plan.sequences)))

    return decode_pass


def test_the_best_batch_below_a_step_is_the_last_before_it(monkeypatch):
    """A token takes a tenth longer above 97.0496 sequences, so that 100 make less than these.

    They lie between 97.0 and 97.1 of the first grid; the second divides this step by 128.
    """
    monkeypatch.setattr(
        batches, "decode_pass", engine_of(lambda size: np.where(size > 97.0496, 1.1, 1.0))
    )
    plan = DecodePlan(*(np.full((1, 1), 1.0) for _ in range(5)), None, np.zeros((1, 1)), 0.0)
    best, most = batches._best_batch_before_step(
        None, plan, 2.0, np.array([100.0]), (np.array([50.0]), np.array([50.0]))
    )
    assert 97.0496 - 0.1 / 128 <= best[0] <= 97.0496
    assert most[0] == pytest.approx(best[0])
    # a rate that is known to be higher stays
    unchanged = batches._best_batch_before_step(
        None, plan, 2.0, np.array([100.0]), (np.array([50.0]), np.array([98.0]))
    )
    assert [unchanged[0][0], unchanged[1][0]] == [50.0, 98.0]


def test_the_last_batch_in_time_of_a_grid_has_no_next():
    """Where time does not grow the largest batch is the best, and nothing lies beyond it."""
    plan = DecodePlan(*(np.full((1, 1), 1.0) for _ in range(5)), None, np.zeros((1, 1)), 0.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "decode_pass", engine_of(np.ones_like))
        best, most = batches._best_batch_before_step(
            None, plan, 2.0, np.array([100.0]), (np.array([1.0]), np.array([1.0]))
        )
    assert (best[0], most[0]) == (100.0, 100.0)


@pytest.mark.parametrize(
    ("quick", "slow", "allowed", "share"),
    [(1.0, 3.0, 2.0, 0.5), (1.0, 3.0, 1.5, 0.25), (1.0, 3.0, 4.0, 1.0), (1.0, 3.0, 0.5, 0.0),
     (2.0, 2.0, 3.0, 0.0)],
)  # fmt: skip
def test_the_share_of_the_way_to_the_time_allowed_is_between_none_and_all(
    quick, slow, allowed, share
):
    assert batches._even_share(np.array([quick]), np.array([slow]), allowed) == [share]


# ---------------------------------------------------------------- draws
class Block:
    """A block of one draw: results by name."""

    count = 1

    def __init__(self, **results):
        self.results = {
            name.replace("_of_", " "): np.array(array) for name, array in results.items()
        }

    def __getitem__(self, names):
        return [self.results[name] for name in names]


UNDER_LOAD = Block(
    needed=[[10.0], [10.0], [10.0], [30.0]],
    memory=[20.0],
    output_tokens_per_s_per_chip=[[4.0], [5.0], [6.0], [7.0]],
    tokens_per_s_per_user=[[50.0], [46.0], [40.0], [50.0]],
    ttft_s=[[1.0], [2.1], [1.0], [1.0]],
    tpot_s=[[0.02], [0.021], [0.025], [0.02]],
    longest_of_wait=[2.0],
    offline=[0.0],
    interactivity=[50.0],
)


def test_plans_with_requests_in_flight_count_where_they_nearly_keep_the_promises():
    """The second is 8 % slow and 5 % late, the third a fifth too slow, the last too large."""
    plans = SimpleNamespace(flight=np.ones((4, 1)))
    rates = rates_under_load(UNDER_LOAD, plans, (None, 30.0))
    assert rates.tolist() == [[4.0, 5.0, 0.0, 0.0], [4.0, 5.0, 6.0, 0.0]]
    without = rates_under_load(UNDER_LOAD, SimpleNamespace(flight=None), (None,))
    assert without.tolist() == [[4.0, 5.0, 6.0, 0.0]]


@pytest.mark.parametrize(
    ("speed", "offline", "row", "meets"),
    [(None, 0.0, 0, True), (40.0, 0.0, 2, True), (60.0, 0.0, 0, False), (60.0, 1.0, 2, True)],
)
def test_the_choice_under_load_is_the_best_in_time_or_else_the_quickest(speed, offline, row, meets):
    block = Block()
    block.results = UNDER_LOAD.results | {"offline": np.array([offline])}
    chosen = compiled._choose_loaded_plans(block, speed, np.arange(1))
    assert (int(chosen.rows[compiled.DECODE][0]), bool(chosen.meets[0])) == (row, meets)


def test_a_batch_next_to_a_tile_step_backs_off_to_its_edge():
    """A token takes a fifth longer above 97.3 sequences; the search halves its way there."""

    def token(batch, _pairs):
        return np.where(batch > 97.3, 1.2, 1.0)

    batch, rate = np.array([100.0, 10.0]), np.array([100 / 1.2, 10.0])
    _back_off_from_tile_step(token, np.ones(2), batch, rate, np.array([0]))
    # 94.1 is the first of the batches tried below that is quick: eight halves of the way to 100
    assert 97.3 - 5.9 / 2**8 <= batch[0] <= 97.3
    assert rate[0] == batch[0]
    assert (batch[1], rate[1]) == (10.0, 10.0)


def test_rows_are_taken_on_each_axis_alone():
    decode = DecodePlan(*(np.arange(3.0)[:, None] + 10 * axis for axis in range(8)))
    prefill = PrefillPlan(*(np.arange(2.0)[None, :] + 10 * axis for axis in range(6)))
    taken = compiled.of_rows(
        ServingPlan(decode, prefill),
        {compiled.DECODE: np.array([2, 0]), compiled.PREFILL: np.array([1])},
    )
    assert taken.decode.chips.ravel().tolist() == [2.0, 0.0]
    assert taken.prefill.chips.ravel().tolist() == [1.0]
