"""Ranges of every metric: the draws of inputs, the draws that two scenarios share, and seeds."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import time
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

import tco
from tco import DataError
from tco.compile.execute import fork_map
from tco.core.numeric_environment import agree
from tco.report.uncertainty import notes
from tco.sampling.uncertainty import (
    BLOCK,
    JointSample,
    Sample,
    error_of_share,
    error_of_spread,
    ratios,
)
from tco.scenario.beliefs import loadings
from tests.catalogue import CATALOGUE, DATA, input_attributes, read_csv
from tests.cli import document
from tests.cli import tco as command
from tests.scenario_helpers import HEADLINE, KINDS, bounds
from tests.study_helpers import (
    COST,
    LOGNORMAL,
    NORMAL,
    P95,
    PERT,
    TRIANGULAR,
    Dice,
    Range,
    beliefs_of,
    draw_statistics,
    evaluate_each,
    share,
)

COLUMNS = ("cause", "pattern", "loading", "low", "high", "kind", "note")

TRN3, GB200 = "trn3-nl72x2", "gb200-nvl72"
RATIO = "perf_per_tco_vs_baseline"
CASES = {evaluation.name: evaluation for evaluation in evaluate_each(HEADLINE, None, {})}
MANY = 200_000


def range_of(
    low,
    value,
    high,
    minimum=-1e9,
    maximum=1e9,
    steps=False,
    path="site.pue",
    leader=None,
    belief=LOGNORMAL,
):
    return Range(path, low, value, high, "", minimum, maximum, steps, None, leader or path, belief)


@pytest.mark.parametrize("name", HEADLINE)
def test_no_input_with_a_range_is_left_undrawn(name):
    """Every input with a low below its high is drawn, moves, and stays within its bounds."""
    result = CASES[name].result
    ranges, dice = beliefs_of(result), Dice(CATALOGUE, 1, 0, 2000)
    for path, ranged_input in result.inputs.items():
        if ranged_input.low is not None and ranged_input.low != ranged_input.high:
            drawn_values = ranges[path].quantile(dice.correlated_deviates(ranges[path]))
            assert drawn_values.std() > 0, path
            assert bounds(path)[0] <= drawn_values.min() <= drawn_values.max() <= bounds(path)[1], (
                path
            )
    assert len(ranges) > 100


@pytest.mark.parametrize(
    "input_range",
    [
        range_of(0.5, 0.8, 0.95),
        range_of(-1, 0, 3, belief=NORMAL),
        range_of(0, 2, 3, belief=NORMAL),
        range_of(1, 1, 4),
        range_of(0.2, 1, 1),
        range_of(0.2, 1, 1, belief=PERT),
        range_of(2, 2, 6, belief=TRIANGULAR),
        range_of(4, 16, 131, steps=True),
    ],
    ids=str,
)
def test_of_draws_low_and_high_are_the_5th_and_95th_percentile_and_the_value_is_at_home(
    input_range,
):
    deviates = Dice(CATALOGUE, 3, 0, MANY).throw("any")
    below = 0.5 if input_range.belief not in (PERT, TRIANGULAR) else norm.cdf(input_range.home)
    assert np.quantile(input_range.quantile(deviates), [0.05, below, 0.95]) == pytest.approx(
        [input_range.low, input_range.value, input_range.high], rel=0.01, abs=0.03
    )


def test_three_values_have_the_weights_of_the_extended_pearson_tukey_method():
    drawn_values = range_of(1, 2, 3, steps=True).quantile(Dice(CATALOGUE, 3, 0, MANY).throw("any"))
    values, counts = np.unique(drawn_values, return_counts=True)
    assert values.tolist() == [1, 2, 3]
    assert counts / MANY == pytest.approx([0.185, 0.63, 0.185], abs=0.004)


def test_the_deviates_are_normal_and_of_one_path_alone():
    """Held against the moments, the tail and the independence of a standard normal distribution."""
    dice = Dice(CATALOGUE, 11, 0, MANY)
    here, there = dice.throw("site.pue"), dice.throw("site.staff")
    assert [np.mean(here**power) for power in (1, 2, 3, 4)] == pytest.approx([0, 1, 0, 3], abs=0.04)
    assert np.mean(here > 3) == pytest.approx(0.00135, rel=0.2)
    assert np.array_equal(here[1::2], -here[::2])  # antithetic: each is followed by its opposite
    assert np.corrcoef([here[2::2], here[:-2:2], there[2::2]])[
        np.triu_indices(3, 1)
    ] == pytest.approx(0, abs=0.01)
    assert not np.array_equal(here, Dice(CATALOGUE, 12, 0, MANY).throw("site.pue"))


def test_splitmix_gives_the_numbers_of_its_authors():
    """First outputs of SplitMix64 from seed 1234567 are those of its reference program."""
    from tco.scenario.beliefs import GOLDEN, splitmix64

    steps = np.arange(1, 4, dtype=np.uint64) * GOLDEN + np.uint64(1234567)
    assert splitmix64(steps).tolist() == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


def test_a_draw_rests_on_seed_path_and_its_own_number_alone():
    full_dice = Dice(CATALOGUE, 5, 0, 5000)
    for start, stop in (
        (1234, 1300),
        (1233, 1300),
        (1234, 1301),
        (1233, 1234),
        (0, 1),
        (4999, 5000),
    ):
        part = Dice(CATALOGUE, 5, start, stop)
        for path in ("parts.ddr5-dimm.price", "terms.rate"):
            assert np.array_equal(
                full_dice.correlated_deviates(range_of(1, 2, 3, path=path))[start:stop],
                part.correlated_deviates(range_of(1, 2, 3, path=path)),
            )


def test_a_scenario_never_beats_itself_and_more_draws_go_on_where_fewer_end(monkeypatch):
    monkeypatch.setattr("tco.sampling.uncertainty.BLOCK", 40)
    short_study, more = (
        tco.uncertainty(GB200, GB200, samples=samples, seed=3) for samples in (40, 100)
    )
    assert len(more.to_frame()) == 100
    assert more.to_frame()[:40].equals(short_study.to_frame())
    table = more.table()
    assert list(table) == ["p5", "p10", "p50", "p90", "p95"]
    assert table.loc["capex_usd", "p90"] == pytest.approx(
        np.percentile(more.sample.metrics["capex_usd"], 90), rel=1e-12
    )
    assert share(more.sample.better) == 0
    assert np.all(more.sample.metrics[RATIO][more.sample.meets] == 1)


@pytest.mark.parametrize("hold", [True, False])
def test_draws_in_blocks_equal_draws_in_a_single_piece(hold, monkeypatch):
    monkeypatch.setattr("tco.sampling.uncertainty.BLOCK", 400)
    in_blocks = tco.uncertainty(TRN3, GB200, samples=1_000, seed=4, hold=hold).to_frame()
    monkeypatch.setattr("tco.sampling.uncertainty.BLOCK", 1_000)
    in_a_piece = tco.uncertainty(TRN3, GB200, samples=1_000, seed=4, hold=hold).to_frame()
    assert in_blocks.equals(in_a_piece)


def test_a_metric_that_a_block_lacks_has_no_value_in_its_draws():
    joint_sample = JointSample(5)
    joint_sample.add(3, Sample({"capex_usd": np.array([4.0, 5.0])}, np.array([False, True])))
    ratio = {"capex_usd": np.array([1.0, 2.0, 3.0]), RATIO: np.array([0.5, np.nan, 2.0])}
    meets, both = np.array([True, False, True]), np.array([True, False, False])
    joint_sample.add(0, Sample(ratio, meets, both, np.isnan(ratio[RATIO])))
    sample = joint_sample.sample()
    assert sample.metrics["capex_usd"].tolist() == [1, 2, 3, 4, 5]
    assert sample.metrics[RATIO] == pytest.approx([0.5, np.nan, 2, np.nan, np.nan], nan_ok=True)
    assert sample.meets.tolist() == [True, False, True, False, True]
    assert sample.both.tolist() == [True, False, False, False, False]
    assert sample.ties.tolist() == [False, True, False, True, True]


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured as Linux reports it")
def test_a_million_draws_take_less_than_800_megabytes(tmp_path):
    """The memory that each draw adds is measured, beside that of a study in four blocks."""
    small_study, large_study = 4 * BLOCK, 8 * BLOCK
    least, most = (
        peak_memory(tmp_path / str(samples), samples) for samples in (small_study, large_study)
    )
    memory_per_draw = (most - least) / (large_study - small_study)
    assert most + (1e6 - large_study) * memory_per_draw < 800e6


def peak_memory(cache_home, samples):
    """Return the most bytes that `tco uncertainty` keeps in memory, with an empty cache."""
    code = (
        "import resource, subprocess, sys;"
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)"
    )
    study = ["uncertainty", GB200, "--samples", str(samples), "--quiet"]
    measured = subprocess.run(
        [sys.executable, "-c", code, sys.executable, "-m", "tco", *study],
        env=os.environ | {"XDG_CACHE_HOME": str(cache_home)},
        check=True,
        capture_output=True,
        text=True,
    )
    return int(measured.stdout)


@pytest.mark.thorough
def test_blocks_made_in_any_order_and_process_give_the_same_draws(monkeypatch):
    """Blocks made out of order and in pickled copies give the answer of one after the other."""
    monkeypatch.setattr("tco.sampling.uncertainty.BLOCK", 64)
    serial_frame = tco.uncertainty(TRN3, GB200, samples=200, seed=9).to_frame()

    def elsewhere(workers, cluster, environment, probe, make, numbers):
        assert environment().data == (CATALOGUE.hash(),) * 2
        assert agree(probe(), pickle.loads(pickle.dumps(probe))())
        return (
            (number, pickle.loads(pickle.dumps(make))(number), f"numpy {number % 2}")
            for number in reversed(numbers)
        )

    progress_reports = []
    monkeypatch.setattr("tco.evaluation.workers.run_pieces", elsewhere)
    worker_study = tco.uncertainty(
        TRN3, GB200, samples=200, seed=9, workers=3, tell=progress_reports.append
    )
    assert worker_study.to_frame().equals(serial_frame)
    assert (
        notes(worker_study)[-1]
        == "made with numpy 0 and with numpy 1: figures agree to 1e-09, not to the byte"
    )
    assert [
        (report.cases_made, report.finished, report.partitions) for report in progress_reports
    ] == [
        (8, 1, 4),
        (72, 2, 4),
        (136, 3, 4),
        (200, 4, 4),
    ]
    monkeypatch.undo()
    unsplit_frame = tco.uncertainty(TRN3, GB200, samples=200, seed=9).to_frame()
    assert unsplit_frame.equals(serial_frame)


@pytest.mark.parametrize("hold", [True, False])
def test_draws_are_the_same_to_the_byte_on_however_many_cores(hold, monkeypatch):
    monkeypatch.setattr("tco.sampling.uncertainty.BLOCK", 300)
    core_samples = []
    for cores in (1, 3):
        monkeypatch.setattr("tco.compile.execute.CORES", cores)
        core_samples.append(tco.uncertainty(TRN3, GB200, samples=1_300, seed=2, hold=hold).sample)
    for metric, metric_draws in core_samples[0].metrics.items():
        assert metric_draws.tobytes() == core_samples[1].metrics[metric].tobytes(), metric


def test_work_that_a_copy_fails_to_do_is_done_by_the_parent_which_raises_its_error(monkeypatch):
    home = os.getpid()
    monkeypatch.setattr("tco.compile.execute.CORES", 3)
    assert dict(
        fork_map(lambda number: number if os.getpid() == home else os._exit(9), [5, 6, 7, 8])
    ) == {0: 5, 1: 6, 2: 7, 3: 8}
    with pytest.raises(ZeroDivisionError):
        dict(fork_map(lambda number: 1 / number, [1, 0]))
    assert dict(fork_map(lambda number: dict(fork_map(abs, [-number, number])), [1, 2])) == {
        0: {0: 1, 1: 1},
        1: {0: 2, 1: 2},
    }


@pytest.mark.parametrize("refused", ["fork", "memfd_create"])
@pytest.mark.parametrize("granted", [0, 1])
def test_work_is_done_by_the_parent_if_the_system_refuses_copies(monkeypatch, refused, granted):
    usual, left = getattr(os, refused), [True] * granted

    def scarce(*arguments):
        if not left:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        left.pop()
        return usual(*arguments)

    monkeypatch.setattr("tco.compile.execute.CORES", 3)
    monkeypatch.setattr(os, refused, scarce)
    assert dict(fork_map(lambda number: number**2, [5, 6, 7, 8])) == {0: 25, 1: 36, 2: 49, 3: 64}


@pytest.mark.skipif(sys.platform != "linux", reason="copies are made on Linux alone")
def test_copies_end_with_their_parent_process(tmp_path):
    """A killed parent leaves no copies running."""
    code = (
        "import os, sys, time\nfrom tco.compile import execute\n"
        "execute.CORES = 2\nhome = os.getpid()\n"
        "def made(one):\n    os.getpid() == home or print(os.getpid(), flush=True)\n    "
        "time.sleep(30)\n"
        "dict(execute.fork_map(made, [1, 2]))\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    copy = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    for _ in range(200):
        state = Path(f"/proc/{copy}/stat")
        if not state.exists() or state.read_text().rpartition(") ")[2].startswith("Z"):
            return
        time.sleep(0.01)
    pytest.fail("the copy goes on without its parent")


def test_copies_end_if_nobody_reads_their_results(monkeypatch):
    monkeypatch.setattr("tco.compile.execute.CORES", 2)
    home = os.getpid()

    def made(number):
        if os.getpid() != home:
            time.sleep(30)
        raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        dict(fork_map(made, [1, 2]))
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--workers", "0"), "expected one or more"),
        (("--workers", "2", "--cluster", "tcp://127.0.0.1:1"), "give one of them"),
    ],
    ids=str,
)
def test_workers_are_a_number_or_those_of_a_scheduler(options, words):
    done = command("uncertainty", GB200, "--samples", "10", *options)
    assert done.exit_code == 2
    assert words in done.stderr


def test_inputs_share_the_draws_of_what_they_follow_and_part_of_a_common_cause():
    dice = Dice(CATALOGUE, 5, 0, MANY)
    ranges = beliefs_of(CASES["mi450x-ualoe72"].result)
    followers = [path for path, input_range in ranges.items() if input_range.leader != path]
    assert "performance.amd.exchange_wait" in followers
    for path in followers:
        assert np.array_equal(
            dice.correlated_deviates(ranges[path]), dice.throw(ranges[path].leader)
        )
    loading = {
        path: loadings(CATALOGUE, path)["memory"]
        for path in ("parts.ddr5-dimm.price", "parts.nvme-8tb.price")
    }
    dimm, flash = (dice.correlated_deviates(range_of(1, 2, 3, path=path)) for path in loading)
    assert np.corrcoef(dimm, flash)[0, 1] == pytest.approx(
        np.prod(list(loading.values())), abs=0.01
    )
    assert dimm.std() == pytest.approx(1, abs=0.01)


@pytest.mark.thorough
def test_shared_inputs_cancel_in_a_ratio():
    """A ratio on common draws spreads far less than with each side drawn by itself.

    An input that scales both sides leaves it unchanged.
    """
    hour = "tco_usd_per_used_chip_hour"
    scenario_draws, base, separate_draws = (
        CASES[name].drawn_function().sample(Dice(CATALOGUE, seed, 0, 2000)).metrics[hour]
        for name, seed in ((TRN3, 2), (GB200, 2), (GB200, 99))
    )
    assert np.log(scenario_draws / base).std() < 0.6 * np.log(scenario_draws / separate_draws).std()
    there = {"terms.availability": (np.array([0.9, 0.95, 0.99]), "")}
    costs = [CASES[name].drawn_function().draws(there).metrics[COST] for name in (TRN3, GB200)]
    assert costs[0] / costs[1] == pytest.approx(costs[0][0] / costs[1][0], rel=1e-12)
    itself = tco.uncertainty(GB200, GB200, samples=500)
    assert share(itself.sample.better) == 0
    assert np.all(itself.sample.metrics[RATIO][itself.sample.meets] == 1)


@pytest.mark.thorough
def test_two_seeds_agree_within_their_errors():
    """Percentiles of two seeds differ by their standard errors as normal deviates do."""
    first_sample, second_sample = (
        tco.uncertainty(TRN3, GB200, samples=4000, seed=seed).sample for seed in (1, 2)
    )
    away = []
    for name, metric_draws in first_sample.metrics.items():
        if np.nanstd(np.where(np.isfinite(metric_draws), metric_draws, np.nan)) > 0:
            first, second, error = (
                draw_statistics(name, metric_draws),
                draw_statistics(name, second_sample.metrics[name]),
                [
                    error_of_spread(name, sample.metrics[name])
                    for sample in (first_sample, second_sample)
                ],
            )
            known_percentiles = [
                percentile
                for percentile in ("p10", "p50", "p90")
                if first[percentile] is not None
                and second[percentile] is not None
                and error[0][percentile]
            ]
            away += [
                (first[percentile] - second[percentile])
                / np.hypot(error[0][percentile], error[1][percentile])
                for percentile in known_percentiles
            ]
    assert np.abs(away).max() < 5
    assert 0.3 < np.mean(np.square(away)) < 3
    chances = [share(sample.better) for sample in (first_sample, second_sample)]
    assert abs(chances[0] - chances[1]) < 4 * np.hypot(
        error_of_share(first_sample.better), error_of_share(second_sample.better)
    )


def test_percentiles_are_those_of_numbers_in_order():
    """Percentiles interpolate between ordered draws, and missing values lie beyond the worse end.

    Of 0 to 100 each percentile is its own number.
    """
    full_statistics = draw_statistics(
        "tco_usd_per_chip_hour", np.random.default_rng(1).permutation(101).astype(float)
    )
    assert {name: full_statistics[name] for name in ("p5", "p10", "p50", "p90", "p95")} == {
        "p5": 5,
        "p10": 10,
        "p50": 50,
        "p90": 90,
        "p95": 95,
    }
    two = draw_statistics("tco_usd_per_chip_hour", np.array([3.0, 1.0]))
    assert (two["p5"], two["p50"], two["p90"]) == pytest.approx((1.1, 2, 2.8), rel=1e-12)
    assert (two["mean"], two["sd"]) == pytest.approx((2, np.sqrt(2)), rel=1e-12)
    three = draw_statistics("tco_usd_per_chip_hour", np.array([3.0, np.nan, 1.0]))
    assert (three["p5"], three["p50"], three["p90"], three["mean"]) == (
        pytest.approx(1.2, rel=1e-12),
        3,
        None,
        None,
    )
    assert draw_statistics("tco_usd_per_chip_hour", np.array([np.nan, 1.0])) is None


def test_the_errors_are_those_of_normal_draws():
    """Standard errors of the mean, the median and a share of normal draws have closed forms."""
    normal_draws = Dice(CATALOGUE, 21, 0, 10_000).throw("any")
    spread_errors = error_of_spread("ttft_s", normal_draws)
    assert spread_errors["mean"] == pytest.approx(0.01, rel=0.05)
    assert spread_errors["p50"] == pytest.approx(np.sqrt(np.pi / 2) / 100, rel=0.2)
    assert spread_errors["p90"] == pytest.approx(np.sqrt(0.09 / 10_000) / 0.17550, rel=0.2)
    assert error_of_share(normal_draws > 0) == pytest.approx(0.005, rel=0.01)


def test_a_miss_is_a_loss_and_lies_beyond_the_worse_end():
    """A draw that misses is a cost without end or a rate of nothing.

    Three of ten draws miss. A ratio is then zero, without end, or a tie that does not count.
    """
    cost = np.array([1.0, 2, 3, 4, 5, 6, 7, np.nan, np.nan, np.nan])
    assert draw_statistics(COST, cost) == {
        "p5": pytest.approx(1.45),
        "p10": pytest.approx(1.9),
        "p50": 5.5,
        "p90": None,
        "p95": None,
        "mean": None,
        "sd": None,
    }
    rate = draw_statistics("output_tokens_per_s_per_chip", cost)
    assert (rate["p5"], rate["p10"], rate["p50"], rate["p90"]) == (
        None,
        None,
        pytest.approx(2.5),
        pytest.approx(6.1),
    )
    cost_ratios = ratios(np.array([4.0, 4, np.nan, np.nan]), np.array([2.0, np.nan, 2, np.nan]))
    assert cost_ratios.tolist()[:3] == [2, 0, np.inf]
    assert np.isnan(cost_ratios[3])
    assert error_of_spread(COST, cost)["p90"] is None
    assert draw_statistics(RATIO, np.array([0.0, 1, 2, np.inf]))["p95"] is None
    assert draw_statistics(RATIO, np.array([0.0, 1, 2, np.nan])) == draw_statistics(
        RATIO, np.array([0.0, 1, 2])
    )


@pytest.mark.thorough
@pytest.mark.parametrize("target", ["50 token/s", "200 token/s"])
def test_chance_and_ties_are_those_of_the_draws_counted_one_by_one(target):
    target_settings = {"workload.interactivity": target}
    pair_sample = tco.uncertainty(TRN3, GB200, samples=300, seed=2, set=target_settings).sample
    single_samples = [
        tco.uncertainty(name, samples=300, seed=2, set=target_settings).sample
        for name in (TRN3, GB200)
    ]
    scenario_costs, baseline_costs = (
        np.where(single_sample.meets, single_sample.metrics[COST], np.inf)
        for single_sample in single_samples
    )
    tie = np.isinf(scenario_costs) & np.isinf(baseline_costs)
    assert share(pair_sample.ties) == tie.mean()
    assert (
        share(pair_sample.better) == (scenario_costs < baseline_costs).mean()
    )  # where both miss nobody wins
    assert (tie.any() and not tie.all()) == (target != "50 token/s")


@pytest.mark.thorough
def test_draws_that_miss_the_target_are_counted_and_have_no_price():
    uncertainty_study = tco.uncertainty(
        TRN3, samples=800, seed=4, set={"workload.interactivity": "100 token/s"}
    )
    meets = uncertainty_study.sample.meets
    assert 0 < share(meets) < 1
    assert np.array_equal(np.isfinite(uncertainty_study.sample.metrics[COST]), meets)
    assert np.isfinite(uncertainty_study.sample.metrics["tco_usd_per_chip_hour"]).all()
    assert uncertainty_study.sample.better is None
    drawn_costs = (
        CASES[TRN3].drawn_function().draws({"terms.rate": (np.full(2, 0.09), "")}).metrics[COST]
    )
    # the plan's batch is solved, not taken from a grid
    assert drawn_costs[0] == pytest.approx(CASES[TRN3].result.metrics[COST], rel=0.05)


def test_a_plan_that_each_draw_chooses_meets_the_target_where_the_one_held_does_and_costs_no_more():
    size = {"cluster.chips": "16384", "cluster.oversubscription": "1"}
    dearer = {}
    for flag in "01":
        flag_settings = size | {"workload.as_deployed": flag}
        held_sample, free = (
            tco.uncertainty(GB200, samples=300, hold=hold, set=flag_settings).sample
            for hold in (True, False)
        )
        assert np.all(free.meets >= held_sample.meets)
        dearer[flag] = (
            free.metrics[COST][held_sample.meets] / held_sample.metrics[COST][held_sample.meets] - 1
        )
    assert dearer["0"].max() <= 2e-3
    assert np.mean(dearer["1"] > 2e-3) < 0.01
    # a batch is chosen by what decodes, and a quicker user has prompts read by other software too
    assert dearer["1"].max() < 0.01


def test_the_size_of_the_cluster_is_chosen_and_never_drawn():
    """Whoever asks knows how many chips he buys: a range of sizes is a sweep."""
    uncertainty_study = tco.uncertainty(GB200, samples=20)
    assert "cluster.chips" not in uncertainty_study.drawn
    assert not uncertainty_study.undrawn_inputs


@pytest.mark.thorough
def test_the_document_repeats_to_the_byte_and_changes_with_the_seed():
    first_document, again, reseeded_document = (
        document("uncertainty", TRN3, "--baseline", GB200, "--samples", "100", "--seed", seed)
        for seed in ("7", "7", "8")
    )
    assert first_document == again
    assert first_document["metrics"] != reseeded_document["metrics"]
    assert first_document["metrics"]["tco_usd_per_chip_hour"].keys() == {
        "p5",
        "p10",
        "p50",
        "p90",
        "p95",
        "mean",
        "sd",
    }
    assert first_document["monte_carlo_error"]["metrics"][COST]["p50"] > 0
    rate = {
        "path": "terms.rate",
        "low": 0.06,
        "value": 0.09,
        "high": 0.13,
        "unit": "ratio",
        "distribution": "pert",
        "follows": None,
    }
    assert rate in first_document["drawn"]


def test_a_setting_is_not_drawn():
    assert "terms.rate" not in tco.uncertainty(GB200, samples=10, set={"terms.rate": "0.1"}).drawn


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"samples": 1}, "expected 2 or more"),
        ({"samples": 10**8}, "more than the 10,000,000"),
        ({"seed": -1}, "seed -1"),
        ({"set": {"workload": "stated"}}, "stated, not computed"),
    ],
    ids=str,
)
def test_bad_questions_are_refused(options, words):
    with pytest.raises(DataError, match=words):
        tco.uncertainty(GB200, **options)


def test_inputs_of_two_causes_go_with_either_as_far_as_stated(monkeypatch):
    """An input of two causes stays normal and has the stated correlation with each cause.

    Other causes do not matter.
    """
    monkeypatch.setitem(
        CATALOGUE.cache, ("loadings", "site.staff"), {"building": 0.4, "wages": 0.7}
    )
    dice = Dice(CATALOGUE, 8, 0, MANY)
    staff, building = (
        dice.correlated_deviates(range_of(1, 2, 3, path=f"site.{name}"))
        for name in ("staff", "usd_per_mw")
    )
    assert [
        np.corrcoef(staff, dice.throw(f"cause {name}"))[0, 1] for name in ("building", "wages")
    ] == pytest.approx([0.4, 0.7], abs=0.01)
    assert np.corrcoef(staff, building)[0, 1] == pytest.approx(
        0.4 * loadings(CATALOGUE, "site.usd_per_mw")["building"], abs=0.01
    )
    assert staff.std() == pytest.approx(1, abs=0.01)


def test_of_patterns_of_one_cause_the_first_holds():
    assert loadings(CATALOGUE, "parts.nvlink-cable.failure_rate") == {"failures": 0.9}
    assert loadings(CATALOGUE, "parts.trn3.failure_rate") == {"failures": 0.5}
    assert loadings(CATALOGUE, "terms.rate") == {}


def test_what_one_site_makes_dear_widens_the_range_of_its_cost():
    """Lines of one building that rise together spread further than independent ones.

    The spread is the closed form of normal lines.
    """
    dice = Dice(CATALOGUE, 8, 0, MANY)
    lines = [
        range_of(8, 10, 12, belief=NORMAL, path=f"site.{name}")
        for name in ("usd_per_mw", "backup_usd_per_mw")
    ]
    a, b = (loadings(CATALOGUE, line.path)["building"] for line in lines)
    together = sum(line.quantile(dice.correlated_deviates(line)) for line in lines)
    assert together.std() == pytest.approx(np.sqrt(2 + 2 * a * b) * 2 / P95, rel=0.01)


def test_every_cause_moves_rows_of_the_catalogue_and_is_a_correlation():
    """Every pattern of a cause matches a row, and its range is a share of the variance.

    Each stated range holds its value.
    """
    paths = [f"parts.{part}.{name}" for part, name in CATALOGUE.part_rows]
    paths += [
        f"{group}.{name}" for group, name in input_attributes() if group not in ("parts", "shares")
    ]
    paths += [f"shares.{company}.price" for company in ("astera", "credo", "amd")]
    paths += [f"performance.{owner}.{name}" for owner, name in CATALOGUE.calibration_rows]
    for _, row in read_csv(DATA / "causes.csv", COLUMNS):
        assert any(fnmatch(path, row["pattern"]) for path in paths), row["pattern"]
        assert 0 < float(row["low"]) <= float(row["loading"]) <= float(row["high"]) <= 1
        assert row["kind"] in KINDS
    for path in paths:
        assert sum(loading**2 for loading in loadings(CATALOGUE, path).values()) <= 1, path


def test_named_metrics_are_shown_alone():
    words = ("uncertainty", GB200, "--samples", "64", "--metric", "hbm_bytes")
    assert set(document(*words)["metrics"]) == {"hbm_bytes"}
    screen = command(*words).stdout
    assert "HBM, GB" in screen
    assert "cost per" not in screen
    _, row = command(*words, "--format", "csv").stdout.splitlines()
    assert row.startswith("hbm_bytes,")


@pytest.mark.parametrize(
    ("metric", "next_step"),
    [
        (RATIO, "a ratio needs --baseline NAME"),
        ("train_usd_per_trillion_tokens", f"`tco uncertainty {GB200}` shows those that it has"),
        ("cost", "`tco metrics list` shows all metrics"),
    ],
)
def test_a_metric_without_draws_is_refused_with_the_next_step(metric, next_step):
    done = command("uncertainty", GB200, "--samples", "64", "--metric", metric)
    assert done.exit_code in (2, 3)
    assert next_step in done.stderr


@pytest.mark.parametrize("speed", [50, 130])
def test_the_histogram_shows_all_draws(speed):
    words = (TRN3, "--samples", "256", "--set", f"workload.interactivity={speed} token/s")
    screen = command("uncertainty", *words).stdout
    histogram = screen.partition("How the draws spread")[2]
    shares = [float(share) for share in re.findall(r"([\d.]+) %", histogram)]
    assert sum(shares) == pytest.approx(100, abs=0.1 * len(shares))
    assert ("a target is missed" in histogram) == (speed == 130)
    assert len(shares) == 14 + (speed == 130)


def test_the_screen_names_the_baseline_of_a_ratio_and_the_next_commands():
    words = ("uncertainty", TRN3, "--samples", "64")
    screen = command(*words).stdout
    compared = command(*words, "--baseline", GB200).stdout
    assert f"performance per TCO ({GB200} = 1)" in compared
    assert f"Performance per TCO ({GB200} = 1): median" in compared
    assert "Cost per million output tokens, USD: median" in screen
    assert f"tco uncertainty {TRN3} --baseline NAME" in screen
    assert f"tco sensitivity {TRN3}" in compared
    assert f"tco inputs {TRN3}" in compared
