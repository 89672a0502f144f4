"""Rates and latencies of a fabric by closed forms on small numbers."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tco import DataError
from tco.fabric import collective_costs, collectives, topology


@pytest.mark.parametrize(("domains", "latency"), [(1, 3.0), (2, 9.0), (8, 21.0), (9, 27.0)])
def test_latency_of_a_reduction_in_the_switch_is_two_ways_through_a_tree_of_domains(
    domains, latency
):
    assert collective_costs.in_network_latency_of(1.0, 2.0, domains, 3.0) == latency


@pytest.mark.parametrize(
    ("planes", "is_switched", "rates"),
    [
        # 8 chips in trays of 4: traffic to 4 chips of the other tray, to 4 of the other plane, and
        # to 4 + 1 on the own plane's lanes and a third of the tray's
        (2, False, [12 * 7 / 4, 2 / 3 * 6 * 7 / 4, (12 + 6 / 3) * 7 / 5]),
        (2, True, [12 * 7 / 4, 6 * 7 / 4, (12 + 6) * 7 / 9]),
        # a plane for each chip of a tray: nobody shares tray and plane
        (4, False, [12 * 7 / 4, 6 * 7 / 6]),
        (1, False, [12 * 7 / 4, (12 + 6) * 7 / 7]),
    ],
)
def test_rates_of_two_levels_are_those_of_tray_and_plane(planes, is_switched, rates):
    assert topology._two_level_rates(8, 4, planes, 12.0, 6.0, is_switched, 1) == pytest.approx(
        rates, rel=1e-12
    )


@pytest.mark.parametrize("kind", ["mesh", "star", "torus", "two-star", None])
def test_places_of_a_tray_are_refused_on_a_fabric_without_trays(kind):
    system = SimpleNamespace(fabric={"kind": kind} if kind else {}, where="a.toml")
    with pytest.raises(DataError, match="the fabric is no two-level one"):
        topology.hops_apart(system, 0, 0, 1)


@pytest.mark.parametrize("doubling", [10.0, 3e6, 1e11])
def test_size_that_doubles_an_empty_collective_is_where_its_wire_takes_as_long(
    monkeypatch, doubling
):
    monkeypatch.setattr(
        collectives, "cheapest", lambda links, operation, ranks, size: 1 + size / doubling
    )
    assert collectives.doubling_size(None, "all-reduce", 8) == pytest.approx(doubling, rel=1e-6)


@pytest.mark.parametrize(
    ("ranks", "reduces", "added"), [(4, True, 0.5), (1, True, 0), (4, False, 0)]
)
def test_forwarded_exchange_of_several_ranks_adds_up_once(monkeypatch, ranks, reduces, added):
    monkeypatch.setattr(collectives, "straight_latency", lambda *_: 10.0)
    monkeypatch.setattr(collectives, "two_tier_wire_time", lambda *_: 5.0)
    latencies = SimpleNamespace(direct_start=1.0, far_step=1.0, reduction=0.5)
    links = SimpleNamespace(latencies=latencies, torus=None, direct=1.0)
    group = SimpleNamespace(ranks=ranks, per_domain=ranks)
    share = SimpleNamespace(passes=1, reduces=reduces, inner=8.0)
    timing = collectives._forwarded_timing(SimpleNamespace(links=links, group=group), 8.0, share)
    assert timing.time == 15.0 + added
