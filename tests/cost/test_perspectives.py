"""Each perspective changes the costs that it states, and refuses systems that do not fit it."""

from __future__ import annotations

import pytest
import pyxirr

from tco import DataError, evaluate
from tco.cost.ownership import load_perspective
from tests.cli import document, tco
from tests.scenario_helpers import HEADLINE, inputs_of, load_scenario, period, result

FOLDER = "perspectives"

HOUR, USED = "tco_usd_per_chip_hour", "tco_usd_per_used_chip_hour"
FITS = {  # perspective -> the systems of the headline it can own
    "hyperscaler": HEADLINE,
    "owner-builder": ("trn3-nl32x2", "trn3-nl72x2"),
    "neocloud": ("gb200-nvl72", "mi450x-ualoe72"),
    "on-premises": ("gb200-nvl72", "mi450x-ualoe72"),
    "renter": HEADLINE,
}


def evaluate_for(catalogue, name, perspective, **settings):
    paths = {path.replace("__", "."): value for path, value in settings.items()}
    return evaluate(
        name, {"terms.perspective": perspective, **paths}, result(name).plan, catalogue=catalogue
    )


def test_every_perspective_is_named_and_dated(catalogue):
    assert set(catalogue.ids(FOLDER)) == set(FITS)
    for name in FITS:
        assert load_perspective(catalogue, name).note
        assert period(str(catalogue.document(FOLDER, name, "perspective")[1]["as_of"]))


@pytest.mark.parametrize("perspective", FITS)
@pytest.mark.parametrize("name", HEADLINE)
def test_a_perspective_prices_what_fits_it_and_refuses_the_rest(catalogue, name, perspective):
    if name in FITS[perspective]:
        priced_result = evaluate_for(catalogue, name, perspective)
        assert priced_result.perspective == perspective
        assert 0.3 < priced_result.metrics[HOUR] < 8
        return
    with pytest.raises(
        DataError,
        match=rf"{name} is .* terms\.perspective={perspective} .*; perspectives that .*: .*renter",
    ):
        evaluate_for(catalogue, name, perspective)


def test_no_two_perspectives_cost_the_same(catalogue):
    costs = {
        perspective: evaluate_for(catalogue, "gb200-nvl72", perspective).metrics[USED]
        for perspective in FITS
        if perspective != "owner-builder"
    }
    assert len({round(cost, 6) for cost in costs.values()}) == len(costs)
    assert costs["hyperscaler"] < costs["neocloud"] < costs["on-premises"]


def test_an_unknown_perspective_is_refused_with_the_nearest():
    done = tco("price", "gb200-nvl72", "--set", "terms.perspective=hyperscalar")
    assert done.exit_code == 3
    assert "unknown perspective 'hyperscalar'; did you mean 'hyperscaler'?" in done.stderr


# ---------------------------------------------------------------- what a perspective brings
def test_values_of_a_perspective_hold_unless_terms_or_settings_replace_them(catalogue, own_data):
    assert evaluate_for(catalogue, "gb200-nvl72", "neocloud").inputs["terms.rate"].value == 0.103
    assert (
        evaluate_for(catalogue, "gb200-nvl72", "neocloud", terms__rate="0.2")
        .inputs["terms.rate"]
        .value
        == 0.2
    )
    text = (
        own_data.catalogue()
        .find("terms", "hyperscaler-2026-11", "terms")
        .read_text(encoding="utf-8")
    )
    rate = (
        '\n[rate]\nvalue = 0.15\nunit = ""\nlow = 0.1\nhigh = 0.2\nas_of = "2026"\nkind = '
        '"assumed"\nsource = "tco-estimate-2026"\n'
    )
    own_data.write("terms/hyperscaler-2026-11.toml", text + rate)
    assert (
        evaluate_for(own_data.catalogue(), "gb200-nvl72", "neocloud").inputs["terms.rate"].value
        == 0.15
    )


def test_perspective_takes_unstated_values_from_its_base(catalogue, own_data):
    hyperscaler, neocloud = (
        evaluate_for(catalogue, "gb200-nvl72", name).inputs for name in ("hyperscaler", "neocloud")
    )
    assert neocloud["terms.maintenance"] == hyperscaler["terms.maintenance"]
    assert neocloud["terms.margin"].value > hyperscaler["terms.margin"].value == 0
    perspective_text = (
        'base = "hyperscaler"\nname = "Mine"\nas_of = "2026"\nowner = ""\npays = '
        '["selling-price"]\n'
    )
    rate = (
        '\n[rate]\nvalue = 0.15\nunit = ""\nlow = 0.1\nhigh = 0.2\nas_of = "2026"\nkind = '
        '"assumed"\nsource = "tco-estimate-2026"\n'
    )
    own_data.write("perspectives/mine.toml", perspective_text + rate)
    priced_result = evaluate_for(own_data.catalogue(), "gb200-nvl72", "mine")
    assert (priced_result.inputs["terms.rate"].value, priced_result.inputs["terms.life"].value) == (
        0.15,
        5,
    )
    own_data.write("perspectives/mine.toml", perspective_text.replace("hyperscaler", "neocloud"))
    with pytest.raises(DataError, match="base 'neocloud' has a base itself"):
        evaluate_for(own_data.catalogue(), "gb200-nvl72", "mine")


def test_margin_and_tax_of_a_seller_equal_those_by_hand(catalogue):
    plain = evaluate_for(catalogue, "gb200-nvl72", "hyperscaler")
    both = evaluate_for(
        catalogue, "gb200-nvl72", "hyperscaler", terms__margin="0.1", terms__purchase_tax="0.05"
    )
    lines = {line.path: line for line in both.lines}
    margin = 0.1 * both.bill.price
    assert lines["servers/seller-margin"].usd == pytest.approx(margin, rel=1e-12)
    assert lines["servers/tax"].usd == pytest.approx(
        0.05 * (plain.metrics["capex_usd"] + margin), rel=1e-12
    )
    assert both.metrics["capex_usd"] == pytest.approx(
        1.05 * (plain.metrics["capex_usd"] + margin), rel=1e-12
    )
    assert not {line.path for line in plain.lines} & {"servers/seller-margin", "servers/tax"}


@pytest.mark.parametrize("name", HEADLINE)
def test_builder_of_a_chip_pays_for_its_design(name):
    """A builder pays 250 USD per chip for the design; the price of a vendor includes it.

    Half a billion USD for the chip and a quarter for its software spread over three million
    chips.
    """
    lines = [line for line in result(name).lines if line.asset == "design"]
    if not name.startswith("trn3"):
        assert lines == []
        return
    (line,) = lines
    assert line.usd == pytest.approx(250 * result(name).metrics["chips"], rel=1e-12)
    charge = -12 * pyxirr.pmt(0.09 / 12, 60, 1.0)
    assert line.usd_per_chip_hour == pytest.approx(250 * charge / 8760, rel=1e-12)


def test_a_design_of_fewer_chips_costs_each_more(catalogue):
    low_volume = evaluate_for(
        catalogue, "trn3-nl72x2", "hyperscaler", parts__trn3__design_volume="1000000"
    )
    assert sum(line.usd for line in low_volume.lines if line.asset == "design") == pytest.approx(
        144 * 750, rel=1e-12
    )


# ---------------------------------------------------------------- rent
@pytest.mark.parametrize("name", HEADLINE)
def test_a_renter_pays_rent_and_nothing_else(catalogue, name):
    priced_result = evaluate_for(catalogue, name, "renter")
    (line,) = priced_result.lines
    (path,) = line.inputs
    assert path.startswith(f"parts.{load_scenario_chip(catalogue, name)}.rent")
    rent = priced_result.inputs[path].value
    assert line.usd_per_chip_hour == pytest.approx(rent, rel=1e-12)
    assert priced_result.metrics[HOUR] == pytest.approx(rent, rel=1e-12)
    assert priced_result.metrics[USED] == pytest.approx(rent / (0.8 * 0.99), rel=1e-12)
    assert [
        priced_result.metrics[metric]
        for metric in (
            "capex_usd",
            "network_usd_per_chip",
            "rebate_usd_per_chip",
            "energy_usd_per_chip_hour",
        )
    ] == [0] * 4
    assert priced_result.metrics["it_power_w_per_chip"] == pytest.approx(
        result(name).metrics["it_power_w_per_chip"], rel=0.01
    )
    assert list(priced_result.shares["hardware"].values()).count(1.0) == 1


def load_scenario_chip(catalogue, name):
    return inputs_of(name, catalogue=catalogue).system.chip


def test_system_that_nobody_rents_out_has_no_rent(catalogue):
    with pytest.raises(DataError, match=r"parts\.vr200-gpu\.rent is missing"):
        evaluate("vr-nvl144", {"terms.perspective": "renter"}, catalogue=catalogue)


def test_trainium_at_the_high_end_of_its_rent_is_dearer_than_gb200_for_a_renter(catalogue):
    """A renter pays less per token on GB200; the best software brings Trainium near.

    Public rents are 1.29 to 1.78 USD, implied by OpenAI's contract, and 3.30 for three years of
    GB200.
    """
    renter_settings = {"terms.perspective": "renter", "workload.interactivity": "50 token/s"}
    costs = {
        (name, software): evaluate(
            name, renter_settings | {"workload.software": software}, catalogue=catalogue
        ).metrics["usd_per_million_output_tokens"]
        for name in ("trn3-nl72x2", "gb200-nvl72")
        for software in ("public", "best")
    }
    public, best = (
        costs["gb200-nvl72", software] / costs["trn3-nl72x2", software]
        for software in ("public", "best")
    )
    assert 0.4 < public < 0.8 < best < 1


# ---------------------------------------------------------------- owners and their agreements
def test_rebate_of_another_owner_is_not_counted(catalogue):
    amd = evaluate("mi450x-ualoe72", catalogue=catalogue)
    assert amd.metrics["rebate_usd_per_chip"] == 0
    assert amd.metrics[HOUR] == amd.metrics["tco_gross_usd_per_chip_hour"]
    assert "amd-openai, held by OpenAI: not counted, as the owner is Amazon" in amd.notes
    theirs = evaluate("mi450x-ualoe72", {"terms.owner": "OpenAI"}, catalogue=catalogue)
    assert theirs.metrics["rebate_usd_per_chip"] > 1000
    # on the same network
    assert theirs.metrics["tco_gross_usd_per_chip_hour"] == pytest.approx(
        amd.metrics[HOUR], rel=1e-12
    )


def test_a_rebate_its_owner_does_not_hold_is_refused_with_the_gross_cost(catalogue):
    scenario = load_scenario(catalogue, "mi450x-ualoe72")._replace(rebates=("amd-openai",))
    gross = evaluate("mi450x-ualoe72", catalogue=catalogue).metrics["tco_gross_usd_per_chip_hour"]
    with pytest.raises(DataError) as caught:
        evaluate(scenario, catalogue=catalogue)
    assert "amd-openai is held by OpenAI, the owner here is Amazon" in str(caught.value)
    assert (
        f"leave it out for the gross cost of {gross:.4g} USD per chip-hour, or set "
        "terms.owner=OpenAI" in str(caught.value)
    )
    assert (
        evaluate(scenario, {"terms.owner": "OpenAI"}, catalogue=catalogue).metrics[
            "rebate_usd_per_chip"
        ]
        > 0
    )


def test_system_kept_by_its_builder_refuses_another_owner(catalogue):
    with pytest.raises(
        DataError,
        match=r"terms\.owner=OpenAI: trn3-nl72x2 is built by Amazon for its own use; "
        r"others rent it",
    ):
        evaluate("trn3-nl72x2", {"terms.owner": "OpenAI"}, catalogue=catalogue)
    assert evaluate("tpuv6e-256", catalogue=catalogue).texts["terms.owner"] == "Google"


def test_a_setting_of_an_agreement_that_one_column_knows_is_known_to_all():
    done = tco(
        "compare",
        "gb200-nvl72",
        "mi450x-ualoe72",
        "--set",
        "rebates.amd-openai.vested=0.5",
        "--no-range",
    )
    assert (
        "gb200-nvl72, mi450x-ualoe72: rebates.amd-openai.vested is set, but nothing in this "
        "scenario rests on it" in done.stderr
    )
    assert (
        "unknown input path"
        in tco("price", "gb200-nvl72", "--set", "rebates.amd-openai.vestet=0.5").stderr
    )


# ---------------------------------------------------------------- what is printed
def test_compare_prints_gross_and_net():
    rows = {
        row["scenario"]: row
        for row in document("compare", "trn3-nl72x2", "gb200-nvl72", "--no-range")["rows"]
    }
    base, trainium_metrics = rows["gb200-nvl72"]["metrics"], rows["trn3-nl72x2"]["metrics"]
    assert base["perf_per_tco_gross_vs_baseline"] == base["perf_per_tco_vs_baseline"] == 1
    gross = (
        trainium_metrics["perf_per_tco_vs_baseline"]
        * trainium_metrics[HOUR]
        / trainium_metrics["tco_gross_usd_per_chip_hour"]
    )
    assert trainium_metrics["perf_per_tco_gross_vs_baseline"] == pytest.approx(gross, rel=1e-12)
    assert (
        trainium_metrics["perf_per_tco_gross_vs_baseline"]
        < trainium_metrics["perf_per_tco_vs_baseline"]
    )


def test_two_perspectives_in_one_table_say_so_before_it(tmp_path):
    text = (
        'system = "gb200-nvl72"\nsite = "us-hyperscale"\nterms = '
        '"hyperscaler-2026-11"\nworkload = "deepseek-v3-8k-1k"\ncluster = "tor-100g-16k"\n'
    )
    rented = tmp_path / "rented.toml"
    rented.write_text(text + '[set]\n"terms.perspective" = "renter"\n')
    done = tco("compare", "gb200-nvl72", str(rented), "--no-range")
    assert (
        "rented is not rated: its terms.perspective is renter, that of gb200-nvl72 hyperscaler"
        in " ".join(done.stdout.split())
    )
    assert (
        "rented: performance per TCO says nothing here: its terms.perspective is renter"
        in done.stderr
    )
    assert done.stdout.startswith("different perspectives: gb200-nvl72 hyperscaler, rented renter")
    assert "different" not in tco("compare", "gb200-nvl72", "--no-range").stdout
