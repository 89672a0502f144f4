"""Figures of comparisons on numbers that are made by hand: no scenario is evaluated."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

from tco.comparison import curve_points, maps, ranking, service
from tco.comparison.base_case import BaseCase
from tco.comparison.maps import Map, MapAxis
from tco.comparison.operations import (
    doublings,
    operation_of,
    parse_group_limits,
    performance_bound_rows,
)
from tco.comparison.records import AtSpeed
from tco.core.errors import DataError, UsageError
from tco.performance.service.traffic import Traffic


# ---------------------------------------------------------------- kernels and collectives
def test_sizes_double_up_to_the_last_and_meet_it_where_they_can():
    assert doublings(1024.0, 8192.0) == [1024, 2048, 4096, 8192]
    assert doublings(1000.0, 7999.0) == [1000, 2000, 4000]
    assert doublings(3.0, 3.0) == [3]
    # 0.1 * 2^10 is a little off in binary
    assert len(doublings(0.1, 102.4)) == 11


@pytest.mark.parametrize(("first", "last"), [(2.0, 1.0), (0.0, 1.0), (-1.0, 1.0)])
def test_sizes_that_do_not_rise_are_refused(first, last):
    with pytest.raises(DataError, match="is below --size"):
        doublings(first, last)


def test_groups_are_some_of_all():
    assert parse_group_limits("4/8") == (4, 8)
    assert parse_group_limits("8/8") == (8, 8)
    assert parse_group_limits("1/1") == (1, 1)


@pytest.mark.parametrize("text", ["0/8", "9/8", "4", "4/", "/8", "4/8/2", "a/b", "-1/8", "1.5/8"])
def test_what_are_no_groups_is_refused(text):
    with pytest.raises(DataError, match="expected D/G such as 4/8"):
        parse_group_limits(text)


def test_attention_is_the_kernel_of_its_phase():
    assert operation_of("attention", "latent") == "latent"
    assert operation_of("gemm", "decode") == "gemm"
    for operation, phase, message in (("gem", "decode", "gemm"), ("gemm", "decoed", "decode")):
        with pytest.raises(DataError, match=f"did you mean '{message}'"):
            operation_of(operation, phase)


def profile(time, shares, lines, single_prompt=None):
    lines = [SimpleNamespace(bound=bound, ideal=ideal) for bound, ideal in lines]
    return SimpleNamespace(time=time, shares=shares, lines=lines, single_prompt=single_prompt)


def test_a_figure_at_its_bound_alone_is_as_much_better_as_the_phase_would_be_shorter():
    """A decode step of 10 s, of whose bound operators would take 2 + 3 s at their peak."""
    decode = profile(
        10.0,
        {"memory": 0.6, "network": 0.4},
        [("memory", 2.0), ("memory", 3.0), ("network", 1.0), ("memory", None)],
    )
    first_token = profile(8.0, {"compute": 1.0}, [("compute", 4.0)])
    prefill = profile(9.0, {"network": 1.0}, [("compute", 1.0), ("network", 3.0)], first_token)
    step = profile(1.0, {"host": 1.0}, [("host", None)])
    result = SimpleNamespace(
        report=SimpleNamespace(
            phases={"decode": decode, "prefill": prefill, "step": step, "other": step}
        ),
        metrics={
            "tpot_s": 0.05,
            "tokens_per_s_per_user": 20.0,
            "output_tokens_per_s_per_chip": None,
            "ttft_s": 1.0,
            "input_tokens_per_s_per_chip": 900.0,
            "mfu": 0.3,
        },
    )
    rows = {row["metric"]: row for row in performance_bound_rows(result)}
    assert list(rows) == [
        "tpot_s",
        "tokens_per_s_per_user",
        "ttft_s",
        "input_tokens_per_s_per_chip",
        "mfu",
    ]
    assert [(row["bound"], row["bound_share"], row["gap"]) for row in rows.values()] == [
        ("memory", 0.6, 2.0),
        ("memory", 0.6, 2.0),
        ("compute", 1.0, 2.0),  # of a prompt alone
        ("network", 1.0, 3.0),
        ("host", 1.0, None),
    ]
    assert [row["at_bound"] for row in rows.values()] == [0.025, 40.0, 0.5, 2700.0, None]


# ---------------------------------------------------------------- services
class Sized(NamedTuple):
    """A service that keeps its promises at a cost."""

    metrics: dict[str, float]
    share_of_best: float = 1.0


def test_a_service_keeps_the_least_cost_over_its_own(monkeypatch):
    costs = {"a": 2.0, "b": 0.5, "d": 1.0}

    def size(name, _):
        if name not in costs:
            raise DataError(f"{name} keeps no promise")
        return Sized({"usd_per_million_output_tokens": costs[name]})

    monkeypatch.setattr(service, "_size_serving_fleet", size)
    monkeypatch.setattr(service, "load_scenario", lambda *_: None)
    monkeypatch.setattr(service, "catalogue_for", lambda *_: None)
    demand = SimpleNamespace(router="random", users=None, settings={}, data=None)
    sized, missed = service.services(["a", "b", "c", "d"], demand)
    assert [item.share_of_best for item in sized] == [0.25, 1.0, 0.5]
    assert missed == ["c keeps no promise"]
    with pytest.raises(DataError, match="c keeps no promise"):
        service.services(["c"], demand)
    with pytest.raises(UsageError, match="the rate of requests follows from the users"):
        service.services(
            ["a"], SimpleNamespace(router="random", users=5, settings={service.RATE: "1"})
        )


@pytest.mark.parametrize("users", [90, 9_000, 90_000])
def test_users_send_the_rate_at_which_their_sessions_come_round(monkeypatch, users):
    """Session times s solve s = 30 + 0.1 users / s.

    A request takes 0.1 s more for each that comes in a second, besides 30 s of thinking.
    """

    def cheapest(_, __, traffic):
        rate = traffic.values["requests_per_s"]
        return SimpleNamespace(traffic=traffic), SimpleNamespace(growing=False, rate=rate)

    monkeypatch.setattr(service, "_cheapest_fleet", cheapest)
    monkeypatch.setattr(service, "session_seconds", lambda _, fleet: 30 + 0.1 * fleet.rate)
    traffic = Traffic("chat", {"requests_per_s": 1.0}, ())
    system = SimpleNamespace(pause=30.0, traffic=traffic)
    search, fleet = service._fleet_for_users(system, None, users)
    session_time = 15 + math.sqrt(225 + 0.1 * users)
    assert fleet.rate == pytest.approx(users / session_time, rel=0.02)
    assert search.traffic.values["requests_per_s"] == fleet.rate


def test_users_beyond_what_traffic_may_have_are_refused():
    system = SimpleNamespace(pause=1.0, traffic=None)
    with pytest.raises(DataError, match=r"they send .* requests/s, expected at most"):
        service._fleet_for_users(system, None, 10**15)


# ---------------------------------------------------------------- base cases
def test_a_base_case_differs_from_the_median_by_its_medians_and_by_the_spread_of_draws():
    base = BaseCase("rack", 2.0, 3.0, 3.6, [])
    assert base.medians == 1.5
    assert base.spread == pytest.approx(1.2)


# ---------------------------------------------------------------- a point of a curve
def test_a_point_is_better_in_the_draws_that_cost_less_and_says_where_both_miss(monkeypatch):
    monkeypatch.setattr(curve_points, "_ratios_at_software_ends", lambda *_: None)
    monkeypatch.setattr(curve_points, "_software_share", lambda *_: None)

    def side_of(*costs):
        return SimpleNamespace(drawn_metric=lambda *_: np.array(costs))

    point, miss = AtSpeed("rack", 50.0, 1.0), math.nan
    base = side_of(2.0, 2.0, 2.0, miss, miss)
    rated = curve_points._with_ratio(point, side_of(1.0, 4.0, miss, 4.0, miss), base, None)
    assert rated.probability_better_than_baseline == pytest.approx(2 / 5)
    assert rated.ties == pytest.approx(1 / 5)
    assert rated.note is None
    missed = side_of(miss, miss)
    unrated = curve_points._with_ratio(point, missed, missed, None)
    assert unrated.note == "neither it nor the baseline reaches this speed in any draw"
    assert unrated.ties == 1
    explained = point._replace(note="no plan fits")
    assert curve_points._with_ratio(explained, missed, missed, None).note == "no plan fits"


# ---------------------------------------------------------------- the order of all systems
def test_the_order_is_written_with_a_line_for_each_system_that_has_a_rank(tmp_path, monkeypatch):
    def row_of(system, rank, median):
        standing = SimpleNamespace(evidence="8 runs, its own")
        available = SimpleNamespace(volume="2027-05")
        result = SimpleNamespace(system=system, standing=standing, available=available)
        return SimpleNamespace(
            rank=rank, median_usd_per_million_output_tokens=median, result=result
        )

    rows = [row_of("a", 1, 0.98765), row_of("b", 2, 12.3456), row_of("c", None, None)]
    monkeypatch.setattr(ranking, "ranking", lambda *_: SimpleNamespace(rows=rows))
    monkeypatch.setattr(ranking, "data_directory", lambda: tmp_path)
    ranking._rewrite_ranking()
    header, *lines = (tmp_path / "ranking.csv").read_text(encoding="utf-8").splitlines()
    assert header.split(",")[:2] == ["system", "usd_per_million_output_tokens"]
    assert lines == ['a,0.988,2027-05,"8 runs, its own"', 'b,12.3,2027-05,"8 runs, its own"']


# ---------------------------------------------------------------- maps
def map_of(values, metric):
    axes = (
        MapAxis("site.pue", "ratio", 1.2, (1.0, 2.0)),
        MapAxis("terms.rate", "1/year", 0.1, (0.1, 0.2)),
    )
    return Map(["a", "b"], metric, *axes, np.array(values), [])


def test_the_best_of_a_map_costs_least_or_does_most():
    values = [[[1.0, 5.0], [math.nan, math.nan]], [[2.0, 4.0], [3.0, math.nan]]]
    cheap = map_of(values, "usd_per_million_output_tokens")
    assert cheap.best.tolist() == [[0, 1], [1, -1]]
    assert cheap.leaders == {"a": 0.25, "b": 0.5}
    assert cheap.line == "best by usd_per_million_output_tokens: a 25%, b 50%"
    assert cheap.to_frame().fillna("nobody").to_numpy().tolist() == [["a", "b"], ["b", "nobody"]]
    assert cheap.to_frame().index.tolist() == [0.1, 0.2]
    quick = map_of(values, "output_tokens_per_s_per_chip")
    assert quick.best.tolist() == [[1, 0], [1, -1]]


@pytest.mark.parametrize("metric", ["perf_per_tco_vs_baseline", "chips"])
def test_a_metric_of_which_none_has_the_best_makes_no_map(metric):
    with pytest.raises(UsageError, match="of it no scenario has the best"):
        maps.map_of(["gb200-nvl72"], ("site.pue", "terms.rate"), metric=metric)
