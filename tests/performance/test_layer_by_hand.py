"""Products of a layer and waits of a chip on models and chips that are made by hand."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tco.performance.layer import layers as layer
from tco.performance.layer.operators import Pass
from tests.performance.servers import changed, server


class StoppedError(Exception):
    """Ends an operator after its products."""


def products_of(add, hidden=100, **shape):
    """Return name, layers and sides of the products that a function adds, all of several calls."""
    added = []

    def products(name, count, sides, *_):
        added.append((name, count, tuple(sides)))

    def stop(_):
        raise StoppedError

    layer_pass = SimpleNamespace(
        machine=SimpleNamespace(),
        shape=SimpleNamespace(**shape),
        model=SimpleNamespace(hidden=hidden),
        products=products,
        elementwise=stop,
        groups=1.0,
    )
    with pytest.raises((StoppedError, AttributeError)):
        add(layer_pass)
    return added


@pytest.mark.parametrize(
    ("ranks", "more_sides"),
    [
        ({"decay_rank": 0, "gate_rank": 0}, ()),
        ({"decay_rank": 6, "gate_rank": 0}, ((100, 6), (6, 3 * 8 / 2))),
        ({"decay_rank": 0, "gate_rank": 5}, ((5, 40 / 2),)),
        ({"decay_rank": 6, "gate_rank": 5}, ((100, 6), (6, 3 * 8 / 2), (5, 40 / 2))),
    ],
)
def test_a_recurrent_layer_projects_in_and_out_and_through_its_ranks(ranks, more_sides):
    """Two ranks split the projected 60 and the inner 40 numbers, but not the low ranks."""
    mixer = SimpleNamespace(projected=60, inner=40, groups=3, state=8, **ranks)
    added = products_of(
        lambda layer_pass: layer.recurrence(layer_pass, 7, mixer), tensor_parallel=2, tokens=11.0
    )
    assert added == [("recurrent projections", 7, ((100, 30), (20, 100), *more_sides))]


@pytest.mark.parametrize("latent", [0, 48])
def test_experts_in_a_latent_space_have_two_products_more(latent):
    feed_forward = SimpleNamespace(latent=latent, experts=16, active=2)
    added = products_of(
        lambda layer_pass: layer.experts(layer_pass, 7, feed_forward),
        tensor_parallel=2,
        tokens=11.0,
        attention_chips=4,
    )
    latent_products = [("expert latent", 7, ((100, 12), (12, 100)))] if latent else []
    assert added == [("router", 7, ((100, 16),)), *latent_products]


@pytest.mark.parametrize(("has_eight_bits", "peak"), [(True, "peak_fp8"), (False, "peak_bf16")])
def test_an_indexer_scores_keys_in_eight_bits_where_the_chip_has_them(
    monkeypatch, has_eight_bits, peak
):
    monkeypatch.setattr(layer, "_splits_context", lambda _: False)
    asked_peaks = []

    def rate(peak_name, efficiency_name):
        asked_peaks.append((peak_name, efficiency_name))
        raise StoppedError

    machine = SimpleNamespace(
        values=SimpleNamespace(exists=lambda path: has_eight_bits and path == "parts.a.peak_fp8"),
        kernels=SimpleNamespace(parts="parts.a", rate=rate),
    )
    shape = SimpleNamespace(keys=1000.0, tokens=4.0, sequences=4.0, decode=True, context_parallel=1)
    attention = SimpleNamespace(index_heads=64, index_dim=128)
    layer_pass = SimpleNamespace(machine=machine, shape=shape)
    with pytest.raises(StoppedError):
        layer._index_keys(layer_pass, shape, 1, attention, 500.0)
    assert asked_peaks == [(peak, f"flash_efficiency_{peak.removeprefix('peak_')}")]


def test_the_host_time_of_an_engine_is_the_overhead_of_a_step():
    name = "h100-hgx8"
    machine = server(name).machine
    path = f"performance.{machine.engine}.host_time"
    slower = changed(name, {path: 2.0}).machine
    assert machine.overhead > 0
    assert slower.overhead == pytest.approx(2 * machine.overhead)
    assert slower.launch == machine.launch
    launches = changed(name, {f"performance.{machine.family}.launch_time": 2.0}).machine
    assert launches.launch == pytest.approx(2 * machine.launch)
    assert launches.overhead == machine.overhead


@pytest.mark.parametrize(("width", "passed_numbers"), [(256, [2 * 7 * 256]), (0, [])])
def test_an_own_embedding_is_read_and_gated_in_each_layer(width, passed_numbers):
    added, passes = [], []
    layer_pass = SimpleNamespace(
        shape=SimpleNamespace(tokens=11.0),
        model=SimpleNamespace(hidden=100),
        products=lambda name, count, sides, *_: added.append((name, count, sides)),
        elementwise=passes.append,
    )
    layer.own_embedding(layer_pass, SimpleNamespace(layers=7, input_width=width))
    assert passes == passed_numbers
    sides = ((100, 256), (100, 256), (256, 100))
    assert added == ([("layer embedding", 7, sides)] if width else [])


# ---------------------------------------------------------------- split sequences
def context_pass(tensor_parallel, gathered=None):
    return SimpleNamespace(
        shape=SimpleNamespace(
            tensor_parallel=tensor_parallel,
            context_parallel=4,
            tokens=11.0,
            domains=2,
            crossing=0,
        ),
        machine=SimpleNamespace(links=SimpleNamespace(domain=8)),
        gather=lambda *arguments: gathered.append(arguments),
    )


@pytest.mark.parametrize(
    ("tensor_parallel", "crossing", "domains"),
    [
        (1, 0, 1),  # four neighbouring chips of a domain of eight
        (2, 0, 1),
        (4, 0, 2),  # sixteen chips, of which every fourth
        (16, 0, 4),  # a domain each
        (1, 1, 2),  # the axis that crosses the border
    ],
)
def test_chips_of_a_split_sequence_stand_in_as_few_domains_as_hold_them(
    tensor_parallel, crossing, domains
):
    group = layer._context_group(context_pass(tensor_parallel), 4, crossing)
    assert (group.ranks, group.domains, group.per_domain) == (4, domains, 4 / domains)


def test_each_chip_of_a_split_sequence_sends_sums_of_its_heads_to_all():
    """Ten heads over four ranks are three each, for all four parts of the sequence."""
    gathered = []
    layer._join_context(context_pass(4, gathered), 7, SimpleNamespace(heads=10))
    ((name, layers, _, size),) = gathered
    assert (name, layers) == ("context sums", 7)
    assert size == 11 * 3 * 4 * layer.SUM_BYTES


@pytest.mark.parametrize(("separate", "kernels"), [(True, [6 * 7 * 2]), (False, [])])
def test_experts_with_kernels_of_their_own_start_one_for_each_product(separate, kernels):
    """Six experts reached, in seven layers of two products."""

    class Stopping:
        separate_experts = separate
        operands = ()

    layer_pass = SimpleNamespace(machine=Stopping(), count=lambda *_: 0, kernels=[])
    with pytest.raises((TypeError, IndexError, KeyError)):
        Pass.grouped(layer_pass, "experts", 7, ((100, 48), (48, 100)), 11.0, 6.0, "experts")
    assert layer_pass.kernels == kernels
