"""Greenhouse gas beside the cost: by hand, in every reading, and absent without stated inputs."""

from __future__ import annotations

import pytest

from tco import DataError, evaluate
from tests.cli import tco

GRID, MADE, TOKENS = (
    "grid_co2e_g_per_chip_hour",
    "embodied_co2e_g_per_chip_hour",
    "co2e_g_per_million_output_tokens",
)
RATE = {"workload": "stated", "workload.output_rate": "1000 token/s/chip"}


def carbon_metrics(catalogue, name="gb200-nvl72", **settings):
    return evaluate(
        name,
        RATE | {path.replace("__", "."): value for path, value in settings.items()},
        catalogue=catalogue,
    ).metrics


def test_emissions_equal_those_computed_by_hand(catalogue):
    metrics = carbon_metrics(catalogue)
    assert metrics[GRID] == pytest.approx(metrics["it_power_w_per_chip"] * 0.8 * 1.15 * 0.350)
    chip = 16 * 5e3 + 192 * 0.8e3 + 59e3  # cm2 of logic, GB of HBM, the board
    power = metrics["it_power_w_per_chip"]
    assert metrics[MADE] == pytest.approx(((chip + 120 * power) / 5 + 600 * power / 20) / 8760)
    used = metrics["goodput"] * 0.8 * 3.6e6
    assert metrics[TOKENS] == pytest.approx((metrics[GRID] + metrics[MADE]) / used * 1e6)


def test_a_cleaner_grid_a_longer_life_and_a_better_site_emit_less(catalogue):
    base = carbon_metrics(catalogue)
    for path, value in (
        ("site__grid_carbon", "30 kg/MWh"),
        ("site__pue", "1.05"),
        ("terms__life", "7 year"),
    ):
        assert carbon_metrics(catalogue, **{path: value})[TOKENS] < base[TOKENS]
    dear = carbon_metrics(catalogue, site__grid_carbon="413 kg/MWh")
    assert dear["tco_usd_per_chip_hour"] == base["tco_usd_per_chip_hour"]  # no price is put on it
    assert carbon_metrics(catalogue, site="us-ohio")[GRID] == pytest.approx(
        base[GRID] * 323.05 / 350
    )


def test_a_grid_has_a_figure_for_each_year(catalogue):
    """Iowa by Google: 460 in 2022, 430 in 2023, 413 in 2024."""
    grids = [
        catalogue.grid_carbon("us-central1", date).value * 1e3
        for date in ("2022", "2023-06", "2025-12")
    ]
    assert grids == pytest.approx([460, 430, 412.72])
    with pytest.raises(DataError, match="unknown grid 'us-central9'; did you mean 'us-central"):
        carbon_metrics(catalogue, site__grid="us-central9")


def test_footprints_of_boards_are_those_nvidia_publishes(catalogue):
    """Nvidia states 164 kg per GPU of an HGX H100 and 284 kg of an HGX B200.

    Each includes its share of the board, and nothing around it.
    """
    for name, kilograms in (("h100-hgx8", 164), ("b200-hgx8", 284)):
        bare = carbon_metrics(catalogue, name, carbon__rack="0 kg/W", carbon__building="0 kg/W")[
            MADE
        ]
        assert bare * 5 * 8760 / 1e3 == pytest.approx(kilograms, rel=0.01)


def test_more_silicon_and_memory_emit_more_and_a_contract_is_no_life(catalogue):
    base = carbon_metrics(catalogue, "trn3-nl72x2")[MADE]
    assert carbon_metrics(catalogue, "trn3-nl72x2", parts__trn3__die_area="816 mm^2")[MADE] > base
    assert carbon_metrics(catalogue, "trn3-nl72x2", parts__trn3__hbm_capacity="288 GB")[MADE] > base
    assert carbon_metrics(catalogue, "trn3-nl72x2", terms__perspective="renter")[
        MADE
    ] == pytest.approx(base, rel=0.01)


def test_emissions_without_stated_inputs_are_none(catalogue, own_data):
    assert carbon_metrics(catalogue, "tpuv7-cube64")[MADE] is None
    assert carbon_metrics(catalogue, "tpuv7-cube64")[TOKENS] is None
    assert (
        carbon_metrics(catalogue, "tpuv7-cube64", **{"parts__tpu-v7__logic_area": "1400 mm^2"})[
            TOKENS
        ]
        > 0
    )
    text = own_data.catalogue().find("sites", "us-hyperscale", "site").read_text(encoding="utf-8")
    before, after = text.split("[grid_carbon]\n")
    own_data.write("sites/us-hyperscale.toml", before + after[after.index("[") :])
    assert carbon_metrics(own_data.catalogue())[GRID] is None


def test_emissions_have_columns_of_their_own():
    done = tco(
        "compare", "trn3-nl72x2", "gb200-nvl72", "--no-range", "--full", "--set", "workload=stated"
    )
    assert done.exit_code == 0
    assert "grid CO2e per chip-hour" in done.stdout
    assert "embodied CO2e per chip-hour" in done.stdout


# ---------------------------------------------------------------- what a utility charges for the
# highest draw
def test_a_demand_charge_is_on_the_worst_hour(catalogue):
    plain = evaluate("gb200-nvl72", RATE, catalogue=catalogue)
    charge = {"site.demand_charge": "15 USD/kW/month"}
    dearer = evaluate("gb200-nvl72", RATE | charge, catalogue=catalogue)
    line = next(line for line in dearer.lines if line.path == "site/demand")
    power = dearer.metrics["it_power_w_per_chip"] * 72 / 1e3
    assert line.amount == pytest.approx(power * 1.4 * 15 * 12)
    assert not [line for line in plain.lines if line.path == "site/demand"]
    hotter = evaluate("gb200-nvl72", RATE | charge | {"site.pue_peak": "1.5"}, catalogue=catalogue)
    assert (
        hotter.metrics["tco_usd_per_chip_hour"]
        > dearer.metrics["tco_usd_per_chip_hour"]
        > plain.metrics["tco_usd_per_chip_hour"]
    )
