"""Dies: counted on a wafer, and their yield against the distribution it comes from."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import nbinom

from tco import DataError, evaluate
from tests.registry import FORMULA
from tests.scenario_helpers import DECEMBER, result


def usable_share(area, density, clustering, repairable):
    return FORMULA.negative_binomial_yield(
        FORMULA.critical_area(area, repairable), density, clustering
    )


def counted(side: float, diameter: float) -> float:
    """Whole squares on a disc, as a mean over a hundred placements of the grid."""
    steps = np.arange(-int(diameter / side) - 2, int(diameter / side) + 2) * side
    grid_offsets = np.arange(10) / 10 * side
    left, low = np.meshgrid(grid_offsets, grid_offsets)
    # the farther edge of each square
    x = np.abs(np.stack([left[..., None] + steps, left[..., None] + steps + side])).max(0)
    y = np.abs(np.stack([low[..., None] + steps, low[..., None] + steps + side])).max(0)
    return float((np.hypot(x[..., :, None], y[..., None, :]) <= diameter / 2).sum((-2, -1)).mean())


def test_count_of_dies_is_zero_for_the_largest_and_fills_the_disc_for_small_ones():
    """A square as wide as the disc never fits; small ones fill it."""
    assert counted(2.0, 2.0) == 0
    assert counted(0.05, 2.0) == pytest.approx(math.pi * 400, rel=0.08)


@pytest.mark.parametrize("area", [25, 49, 100])
def test_dies_of_a_wafer_as_counted(area):
    assert FORMULA.gross_dies_per_wafer(area, 300) == pytest.approx(
        counted(math.sqrt(area), 300), rel=0.012
    )


@given(st.floats(10, 900), st.floats(0.0001, 0.01), st.floats(0.5, 20))
def test_yield_is_the_chance_of_no_defect(area, density, clustering):
    """Defects of a die follow a negative binomial law with mean D0 S."""
    none = nbinom.pmf(0, clustering, clustering / (clustering + density * area))
    assert usable_share(area, density, clustering, 0.0) == pytest.approx(none, rel=1e-9)


@given(st.floats(10, 900), st.floats(0.0001, 0.01))
def test_without_clustering_it_is_poisson(area, density):
    assert FORMULA.poisson_yield(area, density) == pytest.approx(
        math.exp(-density * area), rel=1e-12
    )
    assert FORMULA.negative_binomial_yield(area, density, 1e9) == pytest.approx(
        FORMULA.poisson_yield(area, density), rel=1e-5
    )


@given(st.floats(10, 900), st.floats(0.0001, 0.01))
def test_murphys_yield_is_poissons_over_a_triangle_of_densities(area, density):
    weights, nodes = np.linspace(0, 2, 4001), np.linspace(0, 2 * density, 4001)
    triangle = np.minimum(weights, 2 - weights)
    mean = np.trapezoid(triangle * np.exp(-nodes * area), weights)
    assert FORMULA.murphy_yield(area, density) == pytest.approx(mean, rel=1e-4)
    assert FORMULA.poisson_yield(area, density) <= FORMULA.murphy_yield(area, density) * (1 + 1e-12)


YIELD_MODELS = {
    "poisson": FORMULA.poisson_yield,
    "murphy": FORMULA.murphy_yield,
    "negative-binomial": lambda area, density: FORMULA.negative_binomial_yield(area, density, 3.0),
}
DENSITIES = {  # of wafers over their mean: what each model says of how much they differ
    "poisson": lambda generator, dies: np.ones(dies),
    "murphy": lambda generator, dies: generator.triangular(0, 1, 2, dies),
    "negative-binomial": lambda generator, dies: generator.gamma(3.0, 1 / 3.0, dies),
}


@pytest.mark.parametrize("model", YIELD_MODELS)
@pytest.mark.parametrize(
    ("area", "density", "repairable"), [(680, 0.0012, 0.35), (680, 0.01, 0.35), (600, 0.0009, 0.8)]
)
def test_die_is_usable_if_all_its_defects_can_be_repaired(model, area, density, repairable):
    """Simulated dies are counted if no defect falls into their critical part.

    Defects fall on dies one by one.
    """
    generator, dies = np.random.default_rng(5), 400_000
    defects = generator.poisson(DENSITIES[model](generator, dies) * density * area)
    usable = float((generator.binomial(defects, 1 - repairable) == 0).mean())
    computed = YIELD_MODELS[model](FORMULA.critical_area(area, repairable), density)
    assert computed == pytest.approx(usable, abs=5 * math.sqrt(usable * (1 - usable) / dies))


AREAS, MEAN_DEFECTS, SHARES_OF_AREA = st.floats(10, 900), st.floats(1e-3, 20), st.floats(0, 0.99)


@pytest.mark.parametrize("model", YIELD_MODELS)
@given(AREAS, MEAN_DEFECTS, SHARES_OF_AREA)
def test_dies_recovered_are_never_more_than_the_bad(model, area, defects, repairable):
    good = YIELD_MODELS[model](area, defects / area)
    usable = YIELD_MODELS[model](FORMULA.critical_area(area, repairable), defects / area)
    assert 0 < good <= usable * (1 + 1e-12)
    assert usable <= 1
    recovered, bad = usable - good, 1 - good
    assert recovered <= bad


@pytest.mark.parametrize("model", YIELD_MODELS)
@given(AREAS, MEAN_DEFECTS, SHARES_OF_AREA, st.floats(1.01, 10))
def test_more_defects_leave_fewer_usable_dies_and_a_smaller_share_of_the_bad_recovered(
    model, area, defects, repairable, times
):
    def shares(mean):
        good = YIELD_MODELS[model](area, mean / area)
        usable = YIELD_MODELS[model](FORMULA.critical_area(area, repairable), mean / area)
        return usable, (usable - good) / (1 - good)

    (usable, recovered), (usable_of_more, recovered_of_more) = (
        shares(defects),
        shares(defects * times),
    )
    assert usable_of_more < usable
    assert recovered_of_more <= recovered + 1e-9


def test_chance_to_recover_a_die_with_one_defect_is_its_repairable_share():
    """The recovered share of bad dies is the share of the area, as few dies have two defects."""
    good, usable = (
        FORMULA.poisson_yield(FORMULA.critical_area(100, share), 1e-7) for share in (0.0, 0.35)
    )
    assert (usable - good) / (1 - good) == pytest.approx(0.35, rel=1e-4)


@pytest.mark.parametrize("model", YIELD_MODELS)
def test_the_cost_of_a_die_grows_without_bound_with_its_defects(model):
    """Each tenfold density of a 680 mm2 die raises its cost by a larger factor than the one before.

    The factor grows until the law of the model is reached.
    """
    costs = [
        FORMULA.die_cost(21_000, 78, YIELD_MODELS[model](FORMULA.critical_area(680, 0.35), density))
        for density in (1e-4, 1e-3, 1e-2, 1e-1)
    ]
    growth = [dearer / cheaper for cheaper, dearer in itertools.pairwise(costs)]
    assert growth == sorted(growth)
    assert growth[-1] > 90  # Murphy's falls as the square of the density, the others faster


def test_price_of_a_chip_rises_with_its_defects():
    """A die of 680 mm2 has 24 defects at 3.6 per cm2.

    A share of the bad dies that is always repaired would bound its price.
    """
    prices = [
        chip_price({"parts.trn3.defect_density": f"{density} 1/cm^2"})
        for density in (0.12, 0.3, 1, 3.6)
    ]
    assert prices == sorted(prices)
    assert prices[-1] > 20 * prices[0]


@pytest.mark.parametrize(
    ("area", "wafer", "density", "repairable", "gross", "usable", "two"),
    [
        (600, 15_000, 0.09, 0.26, 91, 0.69, 500),
        (680, 21_000, 0.12, 0.35, 78, 0.61, 905),
        (540, 13_500, 0.08, 0.32, 102, 0.75, 350),
    ],
    ids=["trainium2", "trainium3", "trainium2 low"],
)
def test_dies_and_cost_are_those_of_the_published_build(
    area, wafer, density, repairable, gross, usable, two
):
    """Dies per wafer, usable share and cost of two dies agree with the build's rounded table.

    Its costs include 5 % of sorting.
    """
    dies, share = (
        FORMULA.gross_dies_per_wafer(area, 300),
        usable_share(area, density / 100, 3.0, repairable),
    )
    assert dies == pytest.approx(gross, rel=0.01)
    assert share == pytest.approx(usable, abs=0.011)
    assert 2 * FORMULA.die_cost(wafer, dies, share) == pytest.approx(two, rel=0.06)


def test_margin_is_charged_on_everything():
    assert FORMULA.chip_cost(100, 2, 30, 20, 10, 40, 0.5, 1) == 450


def test_buyer_of_own_wafers_pays_margin_on_the_rest():
    assert FORMULA.chip_cost(100, 2, 30, 20, 10, 40, 0.5, 0) == 350


def chip_price(settings=(), **variant):
    evaluation = evaluate("trn3-nl72x2", {"workload": "stated", **dict(settings)}, variant=variant)
    return next(line.unit_price for line in evaluation.bill.lines if line.part == "trn3")


def test_a_model_of_yield_is_asked_for_by_name():
    """Poisson has the fewest good dies of the three, Murphy the next."""
    prices = [
        chip_price({"terms.yield": model}) for model in ("poisson", "murphy", "negative-binomial")
    ]
    assert prices == sorted(prices, reverse=True)
    assert (
        prices[2]
        == chip_price()
        == next(line.unit_price for line in result("trn3-nl72x2").bill.lines if line.part == "trn3")
    )
    assert prices[0] / prices[2] == pytest.approx(1.02, abs=0.02)
    evaluation = evaluate("trn3-nl72x2", {"workload": "stated", "terms.yield": "poisson"})
    assert "parts.trn3.defect_clustering" not in evaluation.inputs
    with pytest.raises(DataError, match="unknown model of yield 'murphi'; did you mean 'murphy'"):
        chip_price({"terms.yield": "murphi"})


def test_who_buys_the_silicon():
    blend, partner, direct = (
        chip_price(DECEMBER, procurement=name) for name in ("blend", "partner", "direct")
    )
    assert blend < partner
    assert direct < partner
    dies = FORMULA.gross_dies_per_wafer(680, 300) * usable_share(680, 0.0012, 3, 0.35)
    assert partner - direct == pytest.approx(0.26 * 2 * FORMULA.die_cost(21000, dies, 1), rel=0.02)


# ---------------------------------------------------------------- prices move on both sides
HOLDS = {
    "gb200-nvl72": "gb200-gpu",
    "gb300-nvl72": "gb300-gpu",
    "mi450x-ualoe72": "mi450x",
    "vr-nvl144": "vr200-gpu",
    "b300-hgx8": "b300-sxm",
}


@pytest.mark.parametrize("name", HOLDS)
def test_price_of_a_merchant_chip_rises_with_its_memory(name, catalogue):
    """From 2026 to 2027 the price of a chip rises by as much as that of its stacks.

    The same holds for chips that are built up.
    """

    def price_at(path, date):
        part, attribute = path.split(".")
        return catalogue.part_input(part, attribute, date).value

    evaluation = evaluate(name, {"workload": "stated"}, catalogue=catalogue)
    chip = HOLDS[name]
    stacks = [
        line
        for line in evaluation.bill.lines
        if line.part.startswith("hbm") and f"/{chip}/" in line.path
    ]
    rises = [
        line.quantity
        * (price_at(f"{line.part}.price", "2027-01") - price_at(f"{line.part}.price", "2026-09"))
        for line in stacks
    ]
    rise = sum(rises) / evaluation.metrics["chips"]
    assert rise > 2000
    assert price_at(f"{chip}.price", "2027-01") - price_at(
        f"{chip}.price", "2026-09"
    ) == pytest.approx(rise, rel=0.01)
