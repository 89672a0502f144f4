"""Decisions of a scenario, its notes and its saved parts, on numbers that are made by hand."""

from __future__ import annotations

import math
import operator
from types import SimpleNamespace

import numpy as np
import pytest

from tco import DataError
from tco.core.provenance import P95, Input
from tco.scenario import checkpoint, draw_groups, network_choice, pricing
from tco.scenario.anchors import EFFICIENCY, _moved_input
from tco.scenario.distributions import TRIANGULAR, _two_slopes, distribution_quantiles, pert
from tco.scenario.draw_case import _sampled_input_arrays
from tco.scenario.draw_groups import equal_groups
from tco.scenario.evaluate_samples import evaluate_draws
from tco.scenario.network_tiers import _tiers_for
from tco.scenario.plan_cache import SearchReads, _is_repeatable
from tco.scenario.pricing import beyond_a_position, excess_notes, worlds_in_a_rack
from tco.scenario.result_notes import notes_on_numbers
from tco.scenario.saved import HOLDS, SHOWN
from tco.scenario.workload_sizing import SMOOTH_NUMBERS, chips_in


# ---------------------------------------------------------------- sizes
@pytest.mark.parametrize("needed", [1, 2, 7, 48, 97, 130, 1000, 4099])
def test_the_fewest_domains_are_those_that_train_in_time(needed):
    """A cluster of `needed` domains takes ten days, and fewer take longer in proportion."""
    domain, days, tokens = 8.0, 10.0, 1e12
    rate_of_domain = tokens / (days * 86400) / needed
    chips = chips_in(days, tokens, domain, lambda chips: chips / domain * rate_of_domain, "job")
    assert needed * domain <= chips <= max(needed * (1 + 2e-3), needed + 1) * domain
    if needed < 500:
        assert chips == needed * domain


def test_clusters_over_which_a_job_does_not_divide_are_passed():
    """Nothing fits below five domains; six are quick enough, and five are not."""

    def rate(chips):
        return None if chips < 40 else chips * 1e6

    days = 1e12 / (48 * 1e6) / 86400
    assert chips_in(days * (1 + 1e-9), 1e12, 8.0, rate, "job") == 48
    with pytest.raises(DataError, match=r"job: workload.days is 1e-09: no cluster is as quick"):
        chips_in(1e-9, 1e12, 8.0, rate, "job")


# ---------------------------------------------------------------- networks
@pytest.mark.parametrize(
    ("chips", "racks", "domain", "tiers"),
    [
        (64, None, 1, 1),
        (65, None, 1, 2),
        (2048, None, 1, 2),  # 64 x 64 / 2
        (2049, None, 1, 3),
        (65 * 8, None, 8, 2),  # a port for each of 65 domains
        (64 * 8, None, 8, 1),
        (7, None, 8, 1),
        (72, (1.0, 72.0), 1, 1),  # a first tier in the racks: one rack needs no other
        (73, (1.0, 72.0), 1, 2),
        (64 * 72, (1.0, 72.0), 1, 2),
        (64 * 72 + 1, (1.0, 72.0), 1, 3),
    ],
)
def test_tiers_of_a_clos_of_switches_with_64_ports(chips, racks, domain, tiers):
    assert _tiers_for(chips, 1.0, 64 * 50e9, 50e9, racks, domain) == tiers


# ---------------------------------------------------------------- racks
class Kilowatts:
    """Inputs of a site whose rack position takes some power."""

    def __init__(self, kilowatts):
        self.kilowatts = kilowatts

    def number(self, _):
        return self.kilowatts * 1e3


@pytest.mark.parametrize(
    ("power", "racks", "is_beyond"),
    [
        (130e3, 1.0, False),
        (130.1e3, 1.0, True),
        (260e3, 2.0, False),  # of a domain of two racks
        (261e3, 2.0, True),
        (65e3, 0.5, False),
        (70e3, 0.5, False),  # two would be too much, one is not
        (131e3, 0.5, True),
    ],
)
def test_a_rack_is_too_much_for_a_position_unless_fewer_domains_share_it(power, racks, is_beyond):
    bill = SimpleNamespace(power=power)
    assert bool(beyond_a_position(Kilowatts(130), bill, racks)) is is_beyond
    bills = SimpleNamespace(power=np.array([power, 1.0]))
    assert beyond_a_position(Kilowatts(130), bills, racks).tolist() == [is_beyond, False]


@pytest.mark.parametrize(
    ("most", "power", "racks", "worlds"),
    [(100.0, 30.0, 0.25, 3), (90.0, 30.0, 0.25, 3), (200.0, 30.0, 0.25, 4), (20.0, 30.0, 0.25, 0),
     (100.0, 30.0, 1.0, 0)],
)  # fmt: skip
def test_domains_that_share_a_rack_are_as_many_as_power_and_design_take(most, power, racks, worlds):
    assert worlds_in_a_rack(most, power, racks) == worlds


# ---------------------------------------------------------------- rebates and rents
def rebate_of(value, spend):
    return SimpleNamespace(
        value=value, spend=spend, path="rebates.amd", inputs=["share_prices.amd.price", "x"]
    )


def test_an_agreement_that_gives_back_more_than_is_paid_is_noted(monkeypatch):
    monkeypatch.setattr(pricing, "SHARE_PRICES", "share_prices.")
    inputs = SimpleNamespace(shape=())
    values = SimpleNamespace(number=lambda _: 250.0)
    rebates = [rebate_of(150.0, 100.0), rebate_of(100.0, 100.0), rebate_of(5.0, 0.0)]
    first, second = excess_notes(inputs, values, rebates)
    assert "150 USD come back on 100 USD paid" in first
    assert ", 150 % of it at " in first
    assert "250.00 USD" in first
    assert "% of it" not in second
    assert excess_notes(SimpleNamespace(shape=(3,)), values, rebates) == []


@pytest.mark.parametrize(
    ("publisher", "is_stated", "words"),
    [("a", True, None), ("b", True, "is stated by a alone"), ("A", True, "stated by a alone"),
     ("b", False, "is not public")],
)  # fmt: skip
def test_a_rent_of_another_publisher_is_refused(monkeypatch, publisher, is_stated, words):
    path = "parts.chip.rent"
    monkeypatch.setattr(pricing, "_rent_path", lambda *_: path)
    inputs = SimpleNamespace(
        texts={pricing.PUBLISHER: publisher},
        catalogue=SimpleNamespace(has_part_value=lambda *_: is_stated),
    )
    values = SimpleNamespace(has=lambda _: False, input=lambda _: SimpleNamespace(publisher="a"))
    if words is None:
        assert pricing._comparable_rent_path(inputs, values) == path
    else:
        with pytest.raises(DataError, match=words):
            pricing._comparable_rent_path(inputs, values)


# ---------------------------------------------------------------- anchors
def test_runs_move_an_efficiency_by_a_factor_and_a_share_of_time_by_its_excess():
    efficiency = Input(f"deployments.a{EFFICIENCY}", 0.8, "", 0.5, 0.9)
    anchored = _moved_input(efficiency, 0.1, 0.05, "runs.csv")
    assert anchored.value == pytest.approx(0.8 * math.exp(-0.1))
    assert anchored.low == pytest.approx(0.8 * math.exp(-0.1 - P95 * 0.05))
    assert anchored.high == pytest.approx(0.8 * math.exp(-0.1 + P95 * 0.05))
    anchored = _moved_input(Input("deployments.a.longer", 0.2, "", 0.0, 0.5), 0.1, 0.05, "runs.csv")
    assert anchored.value == pytest.approx(math.exp(0.1) - 1)
    assert (anchored.low, anchored.high) == pytest.approx(
        (math.exp(0.1 - P95 * 0.05) - 1, math.exp(0.1 + P95 * 0.05) - 1)
    )
    assert (anchored.kind, anchored.where) == ("measured", "runs.csv")


# ---------------------------------------------------------------- plans from the cache
class LooksLikeOne:
    """No number, though it is written like one."""

    def __repr__(self):
        return "1"


def test_a_decision_with_a_name_and_plain_arguments_is_repeatable():
    assert _is_repeatable((operator.gt, ("a",), (0,)))
    assert not _is_repeatable((lambda value: value, ("a",), (0,)))
    assert not _is_repeatable((operator.gt, ("a",), (object(),)))
    assert not _is_repeatable((operator.gt, ("a",), (math.nan,)))
    assert not _is_repeatable((operator.gt, ("a",), (LooksLikeOne(),)))


def test_reads_of_a_search_are_read_and_decided_again():
    calls = []
    values = SimpleNamespace(
        derived_units={},
        looked=set(),
        **{
            name: lambda *path, name=name, **rest: calls.append((name, *path, *rest.values()))
            for name in ("input", "exists", "plain", "decided")
        },
    )
    reads = SearchReads(
        ["site.pue"],
        {"a.b": "W"},
        ["terms.rate"],
        {"workload.model": "m"},
        {"cluster.chips": 8.0, "workload.offline": True},
        [
            ("_operator", "gt", ["workload.ttft"], "(0,)"),
            ("_operator", "gt", ["workload.days", "x"], "(1,)"),
        ],
    )
    inputs = SimpleNamespace(texts_used={})
    reads.repeat(inputs, values)
    assert calls == [
        ("input", "site.pue"),
        ("plain", "cluster.chips"),
        ("exists", "workload.offline"),
        ("exists", "workload.ttft"),
        ("decided", operator.gt, "workload.days", "x", (1,)),
    ]
    assert (values.derived_units, values.looked) == ({"a.b": "W"}, {"terms.rate"})
    assert inputs.texts_used == {"workload.model": "m"}
    assert [
        reads.is_affected_by(path) for path in ("site.pue", "terms.rate", "a.b", "terms.life")
    ] == [
        True,
        True,
        True,
        False,
    ]


# ---------------------------------------------------------------- notes and saved parts
@pytest.mark.parametrize(
    ("metrics", "words"),
    [
        ({"capex_usd": 1.0, "goodput": 0.9}, []),
        ({"capex_usd": math.inf}, ["capex_usd: left out"]),
        ({"goodput": 0.0}, ["goodput is 0"]),
        ({"goodput": -0.5}, ["goodput -0.5: outside what can be"]),
        ({"capex_usd": None}, []),
    ],
)
def test_numbers_that_cannot_be_are_noted(metrics, words):
    notes = notes_on_numbers(metrics)
    assert len(notes) == len(words)
    assert all(part in note for part, note in zip(words, notes, strict=True))


@pytest.mark.parametrize(
    ("cell", "holds"),
    [
        (None, True),
        ([1.5, "TB/s"], True),
        ([1.5], False),
        ([1.5, "TB/s", ""], False),
        (["1.5", "TB/s"], False),
        ([1.5, 2.0], False),
        ((1.5, "TB/s"), False),
        ([math.inf, "TB/s"], False),
    ],
)
def test_a_stated_quantity_is_a_number_and_a_unit(cell, holds):
    assert bool(HOLDS[SHOWN](cell)) is holds


# ---------------------------------------------------------------- choices and placement
def test_domains_that_are_tried_first_are_products_of_twos_and_threes():
    assert SMOOTH_NUMBERS[:12] == [1, 2, 3, 4, 6, 8, 9, 12, 16, 18, 24, 27]
    assert len(SMOOTH_NUMBERS) == len(set(SMOOTH_NUMBERS)) == 21 * 13
    for domains in SMOOTH_NUMBERS:
        rest = domains
        for factor in (2, 3):
            while rest % factor == 0:
                rest //= factor
        assert rest == 1


@pytest.mark.parametrize(
    ("kind", "stated", "is_taken"),
    [
        ("serving", {}, True),
        ("serving", {checkpoint.PRECISION: "fp8"}, False),
        ("training", {}, False),
        ("stated", {}, False),
    ],
)
def test_formats_of_a_checkpoint_are_taken_for_serving_alone(monkeypatch, kind, stated, is_taken):
    stored = SimpleNamespace(
        text="weights FP8", **dict.fromkeys(checkpoint.FORMAT_PATHS.values(), "")
    )
    setattr(stored, checkpoint.FORMAT_PATHS[checkpoint.PRECISION], "fp8")
    model = SimpleNamespace(id="m", reading="", unread=(), stored=stored)
    monkeypatch.setattr(checkpoint, "load_model", lambda *_: model)
    inputs = SimpleNamespace(
        kind=kind, text=lambda _: "m", catalogue=None, notes=[], cautions=[], texts={}
    )
    checkpoint.take_checkpoint(inputs, stated)
    assert inputs.texts == ({checkpoint.PRECISION: "fp8"} if is_taken else {})
    assert len(inputs.notes) == is_taken


@pytest.mark.parametrize(
    ("lists", "structure_texts", "cheapest_calls"),
    [
        ((), None, 1),
        ((), {}, 0),
        ((network_choice.SWITCH,), None, 1),
        ((network_choice.SWITCH,), {network_choice.SWITCH: "decided", "further": "x"}, 0),
        ((network_choice.SWITCH,), {"further": "x"}, 1),
    ],
)
def test_switch_of_a_list_is_that_of_the_structure_or_the_cheapest(
    monkeypatch, lists, structure_texts, cheapest_calls
):
    calls = []

    def cheapest_parts(_):
        calls.append(1)
        return "cheapest", "cheapest optic"

    monkeypatch.setattr(network_choice, "_cheapest_clos_parts", cheapest_parts)
    for name in ("switch_part", "optic_part"):
        monkeypatch.setattr(network_choice, name, lambda text, _: text)
    texts = {
        path: f"{network_choice.CHEAPEST} of a, b" if path in lists else "named"
        for path in (network_choice.SWITCH, network_choice.OPTIC)
    }
    structure = None if structure_texts is None else SimpleNamespace(texts=structure_texts)
    inputs = SimpleNamespace(
        choosable={}, texts=texts, structure=structure, catalogue=SimpleNamespace(parts=())
    )
    inputs.text = lambda path: inputs.texts[path]
    parts = network_choice.clos_parts(inputs)
    is_decided = network_choice.SWITCH in (structure_texts or {})
    assert parts.switch == ("named" if not lists else "decided" if is_decided else "cheapest")
    assert (parts[1], len(calls)) == ("named", cheapest_calls)


@pytest.mark.parametrize(("power", "is_noted"), [(90e3, False), (110e3, True)])
def test_rack_within_the_power_of_a_position_has_no_note(monkeypatch, power, is_noted):
    monkeypatch.setattr(pricing, "_not_ready", lambda _: [])
    monkeypatch.setattr(pricing, "needs_sidecar", lambda _: False)
    monkeypatch.setattr(pricing, "_needless_hall", lambda *_: [])
    monkeypatch.setattr(pricing, "_told_apart", lambda *_: "")
    values = SimpleNamespace(number=lambda _: 100e3, inputs={})
    inputs = SimpleNamespace(
        values=lambda: values,
        scenario=SimpleNamespace(documents={"site": "hall"}),
        system=SimpleNamespace(racks=0.5, id="rack"),
        judged=set(),
    )
    # two domains share a rack: both draw 90 or 110 kW, of which a position takes 100
    notes = pricing.rack_placement_notes(inputs, SimpleNamespace(power=power / 2))
    assert ["so 1 of rack stand in a rack" in note for note in notes] == [True] * is_noted


# ---------------------------------------------------------------- draws
def test_equal_groups_hold_the_draws_that_decide_everything_alike():
    decided = {
        "switch": np.array([2, 0, 2, 1, 0, 2]),
        "tiers": np.array([1.0, 1.0, 3.0, 1.0, 1.0, 1.0]),
    }
    groups = sorted(members.tolist() for members in equal_groups(decided, 6))
    assert groups == [[0, 5], [1, 4], [2], [3]]
    assert [members.tolist() for members in equal_groups({}, 3)] == [[0, 1, 2]]


@pytest.mark.parametrize(
    ("arrays", "is_refused"),
    [
        (([1.0, 2.0], [3.0, 4.0]), False),
        (([1.0, 2.0], [3.0]), True),
        (([[1.0, 2.0]], [[3.0, 4.0]]), True),
    ],
)
def test_draws_of_inputs_are_rows_of_one_length(monkeypatch, arrays, is_refused):
    monkeypatch.setattr(
        "tco.scenario.draw_case.given_of",
        lambda _, setting, __: SimpleNamespace(array=np.array(setting)),
    )
    settings = dict(zip(("parts.a.price", "parts.b.price"), arrays, strict=True))
    programs = SimpleNamespace(unit_of=lambda _: "USD")
    if is_refused:
        with pytest.raises(DataError, match=r"all of one length: parts\.a\.price has"):
            _sampled_input_arrays(programs, settings)
    else:
        assert _sampled_input_arrays(programs, settings)["parts.b.price"][1] == "USD"


@pytest.mark.parametrize(
    ("below", "above", "ends"), [(1.0, 2.0, [-3.0, 0.0, 6.0]), (2.0, 1.0, [-6.0, 0.0, 3.0])]
)
def test_bent_deviates_have_a_slope_on_either_side(below, above, ends):
    assert _two_slopes(below, above, np.array([-3.0, 0.0, 3.0])).tolist() == ends


def test_triangular_range_meets_its_ends_at_p5_and_p95():
    values = distribution_quantiles(TRIANGULAR, 1.0, 2.0, 4.0, np.array([-P95, P95]))
    assert values == pytest.approx([1.0, 4.0], rel=1e-9)
    middle = distribution_quantiles(TRIANGULAR, 1.0, 2.5, 4.0, np.array([-0.5, 0.0, 0.5]))
    assert middle[1] == pytest.approx(2.5, rel=1e-6)
    assert middle[0] + middle[2] == pytest.approx(5.0, rel=1e-6)


def test_quantiles_of_a_symmetric_pert_are_those_of_beta_three_three():
    """The share of Beta(3, 3) below x is 10 x^3 - 15 x^4 + 6 x^5."""
    x = 0.3
    share = 10 * x**3 - 15 * x**4 + 6 * x**5
    (quantiles,) = pert(np.array([[0.5]]), np.array([share, 0.5, 1 - share]))
    assert quantiles == pytest.approx([0.3, 0.5, 0.7], abs=1e-4)


def test_draws_take_scenario_and_settings_by_name_and_the_rest_by_name_alone():
    with pytest.raises(DataError, match="unknown scenario 'no-such-rack'"):
        evaluate_draws(scenario="no-such-rack", set={})
    with pytest.raises(TypeError, match="positional argument"):
        evaluate_draws("no-such-rack", {}, None)


@pytest.mark.parametrize(
    ("readings", "drawn_path", "is_in_key"),
    [
        ({"cluster.chips": 1.0}, "parts.a.price", True),
        ({"cluster.chips": 1.0}, "cluster.chips", False),
        ({"site.pue": 1.0}, "parts.a.price", False),
    ],
)
def test_drawn_values_enter_the_key_of_a_grouping_that_is_resized_by_other_inputs(
    monkeypatch, readings, drawn_path, is_in_key
):
    """A size that is decided by draw follows from inputs that the scenario reads."""
    keys = []

    def cached(parts, _):
        keys.append(parts)
        return np.array([0, 1], dtype=np.int32), np.frombuffer(b'["a", "b"]', dtype=np.uint8)

    base = SimpleNamespace(readings=readings)
    decided = {"cluster.chips": np.array([8.0, 8.0, 16.0])}
    replacements = {
        "structure_in": lambda _: base,
        "decisions": lambda *_: decided,
        "cheapest_clos_parts_by_draw": lambda *_: None,
        "_group_key": lambda _: "",
        "cached_arrays": cached,
    }
    for name, replacement in replacements.items():
        monkeypatch.setattr(draw_groups, name, replacement)
    array = np.array([1.0, 2.0, 3.0])
    case = SimpleNamespace(
        programs=SimpleNamespace(is_shipped=True),
        count=3,
        input_arrays=lambda: {drawn_path: array},
        drawn={drawn_path: (array, "USD")},
        settings_key=lambda _: "",
    )
    inputs = SimpleNamespace(system=SimpleNamespace(alternatives={}), kind="serving")
    grouping = draw_groups.draws_by_structure(case, None, inputs, None)
    assert [draws.tolist() for draws in grouping.draws] == [[0, 1], [2]]
    assert (keys[0][-1] == array[[0, 2]].tobytes()) is is_in_key
