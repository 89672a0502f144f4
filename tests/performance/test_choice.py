"""The choice among plans takes the best that fits in time, and states its lead over the next."""

from __future__ import annotations

import numpy as np
import pytest

from tco.performance.serving import passes
from tco.performance.serving.disaggregation import PoolBalance, rate_of_split, whole_engines
from tco.performance.serving.plan_choice import PlanChoice, choose_best
from tco.performance.serving.plans import PrefillPlan
from tests.cli import document, tco
from tests.performance.servers import DecodePlan
from tests.scenario_helpers import CATALOGUE, evaluate


def test_margin_is_that_to_the_best_other_feasible_plan():
    """The best of 12, 10 and 6 leads by a fifth.

    Plans that do not fit or are too slow do not count.
    """
    score = np.array([[6.0, 50.0], [12.0, 10.0], [40.0, 0.1]])
    fits = np.array([[True, False], [True, True], [True, True]])
    meets = np.array([[True, True], [True, True], [False, True]])
    axes = DecodePlan(*(np.arange(3.0)[:, None] for _ in range(5)), np.array([[7.0, 9.0]]))
    best_choice = choose_best(score, fits, meets, axes)
    assert (best_choice.plan.chips, best_choice.plan.sequences, best_choice.plan_index) == (
        1.0,
        7.0,
        (1, 0),
    )
    assert (best_choice.plans, best_choice.feasible, best_choice.margin) == (
        6,
        4,
        pytest.approx(0.2),
    )
    assert best_choice.best.tolist() == [6.0, 12.0, 0.1]
    single_choice = choose_best(score, fits & (score == 12), meets, axes)
    assert (single_choice.feasible, single_choice.margin) == (1, None)
    assert choose_best(score, fits & False, meets, axes).plan is None


def test_the_best_proportion_is_the_best_of_all_splits():
    shares = np.linspace(1e-3, 1 - 1e-3, 100_001)
    for decode_rate, read, prompt, answer, sharpness in (
        (3000.0, 9000.0, 1000.0, 500.0, 4.0),
        (100.0, 6000.0, 8192.0, 1024.0, 2.0),
        (900.0, 800.0, 1.0, 7.0, 16.0),
    ):
        split = rate_of_split(decode_rate, read, shares, 1 - shares, prompt, answer, sharpness)
        assert split.max() == pytest.approx(
            passes.output_rate(decode_rate, read, prompt, answer, sharpness), rel=1e-8
        )
        assert 1 - shares[split.argmax()] == pytest.approx(
            passes.prefill_share(decode_rate, read, prompt, answer, sharpness), abs=1e-4
        )


@pytest.mark.parametrize("chips", [8, 64, 72, 144])
def test_whole_engines_on_one_domain_are_the_best_that_fit(chips):
    """The choice equals the best of every split, counted out one by one.

    A fleet makes what very many chips do, and never less than one domain.
    """

    def choice(rates):
        sizes = np.array(sorted(rates), dtype=float)[:, None]
        return PlanChoice(
            None,
            0,
            0,
            None,
            best=np.array([rates[int(size)] for size in sizes[:, 0]]),
            axes=PrefillPlan(sizes, sizes),
        )

    decode, prefill, (prompt, answer, sharpness) = (
        {4: 180.0, 24: 1500.0, 64: 2100.0, 144: 2200.0},
        {2: 7000.0, 4: 7500.0, 96: 9000.0},
        (8192.0, 1024.0, 4.0),
    )
    balance = PoolBalance(prompt, answer, sharpness)
    domain_engines = whole_engines(choice(decode), choice(prefill), chips, balance)
    rates = {
        (size, engines, part, readers): (
            (engines * size * decode_rate) ** -sharpness
            + (readers * part * read * answer / prompt) ** -sharpness
        )
        ** (-1 / sharpness)
        / chips
        for size, decode_rate in decode.items()
        for part, read in prefill.items()
        for engines in range(1, chips // size + 1)
        for readers in range(1, (chips - engines * size) // part + 1)
    }
    best = max(rates.values())
    assert domain_engines.output_tokens_per_s_per_chip == pytest.approx(best, rel=1e-12)
    engines = (
        domain_engines.decode_chips,
        domain_engines.decode_engines,
        domain_engines.prefill_chips,
        domain_engines.prefill_engines,
    )
    assert rates[engines] == pytest.approx(best, rel=1e-12)
    fleet = passes.output_rate(
        max(decode.values()), max(prefill.values()), prompt, answer, sharpness
    )
    assert best < fleet * (1 + 1e-12)
    assert whole_engines(choice(decode), choice(prefill), 100_000, balance)[-1] == pytest.approx(
        fleet, rel=1e-3
    )


def test_engine_larger_than_a_domain_gives_no_whole_engines():
    pool_choice = PlanChoice(
        None, 0, 0, None, best=np.array([5.0]), axes=PrefillPlan(np.array([[8.0]]), 8.0)
    )
    balance = PoolBalance(1.0, 1.0, 4.0)
    assert whole_engines(pool_choice, pool_choice, 15, balance) is None
    assert whole_engines(pool_choice, pool_choice, 16, balance).decode_engines == 1


def test_perf_prints_the_rate_of_whole_engines_on_one_domain():
    perf_answer = document("perf", "trn3-nl32x2")
    domain_engines = perf_answer["alone"]
    used = (
        domain_engines["decode_chips"] * domain_engines["decode_engines"]
        + domain_engines["prefill_chips"] * domain_engines["prefill_engines"]
    )
    assert used <= domain_engines["chips"] == 64
    assert (
        0.4
        < domain_engines["output_tokens_per_s_per_chip"]
        / perf_answer["metrics"]["output_tokens_per_s_per_chip"]
        <= 1
    )
    assert 0.3 < perf_answer["prefill_share"] < 0.7
    assert document("perf", "trn3-nl32x2", "--set", "workload.concurrency=64")["alone"] is None


def test_the_chips_of_one_domain_are_divided_in_whole_instances():
    text = tco("perf", "gb200-nvl72").stdout
    engines = document("perf", "gb200-nvl72")["alone"]
    _, _, of_domain = text.partition(f"In one scale-up domain of {engines['chips']} chips\n")
    for phase, line in zip(("prefill", "decode"), of_domain.splitlines(), strict=False):
        chips, instances = engines[f"{phase}_chips"], engines[f"{phase}_engines"]
        share = chips * instances / engines["chips"] * 100
        assert line.split() == [phase, f"{share:.0f}", "%", str(chips), str(instances)]


def test_a_step_of_speculative_decoding_says_its_tokens_beside_the_time_per_token():
    text = tco("perf", "gb200-nvl72").stdout
    (title,) = [line for line in text.splitlines() if line.startswith("Decode: ")]
    answer = document("perf", "gb200-nvl72")
    step = sum(row["time_us"] for row in answer["operators"] if row["phase"] == "decode") / 1e3
    time_per_token = answer["metrics"]["tpot_s"] * 1e3
    assert title == (
        f"Decode: {step:.1f} ms, by operator. By speculative decoding a step gives each user "
        f"{step / time_per_token:.2f} tokens: {time_per_token:.1f} ms per token"
    )
    plain = tco("perf", "gb200-nvl72", "--set", "workload.draft_tokens=0").stdout
    assert "By speculative decoding" not in plain


def test_a_step_between_prompts_gives_the_tokens_that_its_drafts_are_accepted_for():
    """The time per token holds waits for prompts, which a decode step has not."""
    settings = {"workload.concurrency": "256"}
    evaluation = evaluate("b200-hgx8", settings, catalogue=CATALOGUE)
    acceptance, decline = (
        evaluation.inputs[f"workload.spec_{name}"].value for name in ("acceptance", "decline")
    )
    drafts, repeated = evaluation.plan.decode.drafts, acceptance * decline
    accepted = 1 + acceptance * (1 - repeated**drafts) / (1 - repeated)
    text = tco("perf", "b200-hgx8", "--set", "workload.concurrency=256").stdout
    assert f"a step gives each user {accepted:.2f} tokens" in text
    assert "ms per token, before waits for prompts" in text
