"""Requests of traffic against the distributions that its document states."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from tco.core.errors import DataError
from tco.performance.service.length_samples import LENGTHS
from tco.performance.service.traffic import Promise, Traffic, promise_of, traffic_from_text

COUNT = 100_000
# quantiles of a lognormal distribution whose logarithm has a standard deviation of one
UNIT_LOGNORMAL = np.exp([0.0, 1.2815515655, 2.3263478740])
LONG = dict(
    zip(LENGTHS, [*(2000 * UNIT_LOGNORMAL).tolist(), *(500 * UNIT_LOGNORMAL).tolist()], strict=True)
)


UNITS = {"thinking_time": "s"}


def stated(**values):
    """Return the traffic of a document that states some values."""
    tables = []
    for name, value in ({"requests_per_s": 50.0} | LONG | values).items():
        unit = UNITS.get(name, "")
        tables.append(
            f'[{name}]\nvalue = {value}\nunit = "{unit}"\nlow = {value}\nhigh = {value}\n'
            'as_of = "2026-10"\nkind = "assumed"\nsource = "tco-estimate-2026"\n'
        )
    return traffic_from_text("".join(tables), Path("mine.toml"))


def requests_of(traffic, engines=1, router="random", pause=10.0, count=COUNT):
    return traffic.requests(engines, router, count, 0, pause)


def test_traffic_that_says_only_rate_and_lengths_is_poissons_and_shares_nothing():
    traffic = stated()
    before, after = requests_of(traffic)
    gaps = np.diff(after.arrived)
    # an exponential distribution: its mean is its deviation, and e^-1 of it lies above both
    assert gaps.mean() == pytest.approx(1 / 50, rel=0.01)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.02)
    assert (gaps > gaps.mean()).mean() == pytest.approx(np.exp(-1), rel=0.02)
    assert len({*before.slot.tolist(), *after.slot.tolist()}) == 2 * COUNT
    assert not after.prior_tokens.any()
    assert not after.keeps.any()
    assert abs(spearmanr(after.prompt, after.answer).statistic) < 0.01
    assert traffic.thinking == 0


def test_gaps_have_the_coefficient_of_variation_stated_and_engines_share_the_rate():
    gaps = np.diff(requests_of(stated(arrival_cv=2.0))[1].arrived)
    assert gaps.std() / gaps.mean() == pytest.approx(2, rel=0.03)
    gaps = np.diff(requests_of(stated(), engines=5)[1].arrived)
    assert gaps.mean() == pytest.approx(5 / 50, rel=0.01)
    # every fourth of Poisson's is of Erlang's distribution
    gaps = np.diff(requests_of(stated(), engines=4, router="round-robin")[1].arrived)
    assert gaps.std() / gaps.mean() == pytest.approx(1 / 2, rel=0.02)


def test_lengths_with_the_quantiles_of_a_lognormal_distribution_are_of_it():
    prompts, answers = stated().lengths(COUNT, np.random.default_rng(1))
    for tokens, middle in ((prompts, 2000), (answers, 500)):
        logs = np.log(tokens / middle)
        assert logs.mean() == pytest.approx(0, abs=0.01)
        assert logs.std() == pytest.approx(1, rel=0.01)
        # nothing lies beyond four standard deviations
        assert 3 < logs.max() < 4.001
        assert -4.02 < logs.min() < -3  # 9.2 tokens are 9
        assert (tokens == np.rint(tokens)).all()


def test_no_length_is_below_a_token():
    short = dict.fromkeys(LENGTHS, 1.0) | {"input_p99": 3.0, "output_p99": 3.0}
    prompts, answers = stated(**short).lengths(COUNT, np.random.default_rng(1))
    assert prompts.min() == answers.min() == 1


def test_a_session_of_some_turns_begins_anew_in_one_of_them():
    traffic = stated(reuse=0.8, turns=5.0)
    _, after = requests_of(traffic)
    again = after.prior_tokens > 0
    assert again.mean() == pytest.approx(1 - 1 / 5, abs=0.01)
    expected = np.minimum(np.floor(0.8 * after.prompt), after.prompt - 1)
    assert (after.prior_tokens[again] == expected[again]).all()
    assert (after.keeps == after.prompt + after.answer).all()


def test_without_turns_every_prompt_begins_with_what_was_read_before():
    _, after = requests_of(stated(reuse=0.5))
    assert (after.prior_tokens == np.minimum(np.floor(after.prompt / 2), after.prompt - 1)).all()


@pytest.mark.parametrize(("router", "sessions"), [("affinity", 250), ("random", 500)])
def test_sessions_under_way_are_as_littles_law_says(router, sessions):
    """25 requests a second come to an engine, each 10 s after the last of its session.

    A router that knows no sessions sends those of both engines to either.
    """
    _, after = requests_of(stated(reuse=0.5), engines=2, router=router)
    assert len(np.unique(after.slot)) == sessions
    counts = np.bincount(after.slot)
    # each as likely next as any other
    assert counts.std() == pytest.approx(np.sqrt(COUNT / sessions), rel=0.15)


def test_a_mix_has_its_parts_in_their_shares_and_no_session_of_two():
    chat, agents = stated(thinking_time=30.0), stated(reuse=0.9, thinking_time=2.0, input_p50=2001)
    mix = Traffic(
        "mix", {"requests_per_s": 40.0, "arrival_cv": 1.0}, (), ((0.7, chat), (0.3, agents))
    )
    assert mix.thinking == pytest.approx(0.7 * 30 + 0.3 * 2)
    _, after = requests_of(mix)
    is_agent = after.keeps > 0
    assert is_agent.mean() == pytest.approx(0.3, abs=0.01)
    assert not set(after.slot[is_agent].tolist()) & set(after.slot[~is_agent].tolist())
    # 12 of the 40 requests a second, each 10 s after the last of its session
    assert len(np.unique(after.slot[is_agent])) == 120
    assert (after.prior_tokens[is_agent] > 0).mean() > 0.999


def test_no_prompt_is_known_whole():
    sample = np.array([[100.0, 10.0, 100.0], [50.0, 5.0, 20.0]])
    values = stated(reuse=0.5).values
    _, after = requests_of(Traffic("traced", values, (), (), sample), count=1000)
    assert set(zip(after.prompt.tolist(), after.prior_tokens.tolist(), strict=True)) == {
        (100.0, 99.0),
        (50.0, 20.0),
    }


def test_a_sample_comes_round_before_any_of_it_comes_again():
    sample = np.arange(1.0, 15.0).reshape(7, 2)
    traffic = Traffic("traced", stated().values, (), (), sample)
    prompts, _ = traffic.lengths(17, np.random.default_rng(0))
    assert sorted(prompts[:7]) == sorted(prompts[7:14]) == sample[:, 0].tolist()
    assert len(set(prompts[14:].tolist())) == len(prompts[14:]) == 3


@pytest.mark.parametrize(
    ("text", "promise"),
    [
        ("ttft p99 <= 2 s", Promise("ttft", 0.99, 2.0)),
        ("  TPOT P50<30 ms ", Promise("tpot", 0.5, 0.03)),
        ("e2e p99.9 <= 1 minute", Promise("e2e", 0.999, 60.0)),
    ],
)
def test_a_promise_is_read_in_any_unit_of_time(text, promise):
    assert promise_of(text) == pytest.approx(promise)
    assert promise_of(str(promise)) == pytest.approx(promise)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ttft 99 <= 2 s", "expected METRIC pQUANTILE <= TIME"),
        ("ttft p99 >= 2 s", "expected METRIC pQUANTILE <= TIME"),
        ("ttfb p99 <= 2 s", "did you mean 'ttft'"),
        ("ttft p100 <= 2 s", "between p0 and p100"),
        ("ttft p0 <= 2 s", "between p0 and p100"),
        ("ttft p99 <= 0 s", "a time above zero"),
        ("ttft p99 <= 2 GB", "'s'"),
    ],
)
def test_what_is_no_promise_is_refused(text, message):
    with pytest.raises(DataError, match=message):
        promise_of(text)


def test_reuse_within_sessions_of_one_request_is_refused():
    with pytest.raises(DataError, match="expected turns above 1"):
        stated(reuse=0.5, turns=1.0)


def test_quantiles_that_fall_are_refused():
    with pytest.raises(DataError, match="output_p50, output_p90 and output_p99 do not rise"):
        stated(output_p90=1e6)
