"""Net cost moves the right way for every system of the headline and everybody who can own it."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tco import DataError, evaluate
from tests.catalogue import CATALOGUE
from tests.cost.test_perspectives import FITS
from tests.scenario_helpers import HEADLINE, result

VIEWS = [
    *((name, {"terms.perspective": view}) for view, names in FITS.items() for name in names),
    ("mi450x-ualoe72", {"terms.owner": "OpenAI"}),
    ("trn3-nl72x2", {"terms.date": "2026-09"}),
]
IDS = ["-".join([name, *view.values()]) for name, view in VIEWS]
HOUR = "tco_usd_per_chip_hour"
# what stands in a place is chosen by price alone, whatever it draws: held here
HELD = {"trn3-nl72x2": {"tray_switch": "8x32"}}
DEARER = [  # path, the range it is drawn from; a larger value never makes a chip-hour cheaper
    ("terms.rate", 0.0, 0.4, ""),
    ("terms.maintenance", 0.0, 0.2, ""),
    ("terms.margin", 0.01, 0.5, ""),
    ("site.pue", 1.0, 2.5, ""),
    ("site.pue_peak", 1.0, 3.0, ""),
    ("site.electricity_price", 0.01, 0.5, "USD/kWh"),
    ("site.usd_per_mw", 1.0, 40.0, "USD/W"),
    ("parts.optic-800g-dr8.price", 100, 3000, "USD"),
    ("terms.repairs", 0.0, 1.0, ""),
    ("site.demand_charge", 0.0, 0.05, "USD/W/month"),
]
LOSING = [  # the same of a used chip-hour
    ("failures.repair_time", 0.0, 500.0, "h"),
    ("failures.planned_share", 0.0, 0.3, ""),
    ("failures.restart_time", 0.0, 1e5, "s"),
]
USED = "tco_usd_per_used_chip_hour"


def net(catalogue, name, view, **more):
    return evaluate(
        name, view | more, result(name).plan, catalogue=catalogue, variant=HELD.get(name)
    ).metrics[HOUR]


@pytest.mark.parametrize(("name", "view"), VIEWS, ids=IDS)
def test_dearer_inputs_never_lower_the_net_cost(catalogue, name, view):
    @settings(max_examples=12)
    @given(st.sampled_from(DEARER), st.floats(0, 1), st.floats(0, 1))
    def rises(dearer_input, first_share, second_share):
        path, low, high, unit = dearer_input
        less, more = (
            f"{low + share * (high - low)!r} {unit}".strip()
            for share in sorted((first_share, second_share))
        )
        costs = [net(catalogue, name, view, **{path: value}) for value in (less, more)]
        assert costs[1] >= costs[0] * (1 - 1e-12)

    rises()


@pytest.mark.parametrize(("name", "view"), VIEWS, ids=IDS)
def test_a_lower_share_price_or_a_dearer_part_that_it_covers_never_makes_it_cheaper(
    catalogue, name, view
):
    base_result = evaluate(
        name, view, result(name).plan, catalogue=catalogue, variant=HELD.get(name)
    )
    shares = [path for path in base_result.inputs if path.startswith("shares.")]
    for path in shares:
        price = base_result.inputs[path].value
        costs = [
            net(catalogue, name, view, **{path: f"{price * factor!r} USD/share"})
            for factor in (2, 1, 0.5, 0.01)
        ]
        assert costs == sorted(costs)
    # a share price may make a warrant worth more than the purchases that vest it, which a note says
    for rebate in base_result.rebates:
        assert rebate.value <= rebate.spend or any(
            note.startswith(f"{rebate.path}: ") and "come back on" in note
            for note in base_result.notes
        )
    for path in [
        path for path in base_result.inputs if path.endswith(".price") and path.startswith("parts.")
    ][:: 1 if shares else 6]:
        dearer = net(
            catalogue,
            name,
            view,
            **{path: f"{base_result.inputs[path].value * 1.3!r} {base_result.inputs[path].unit}"},
        )
        assert dearer >= base_result.metrics[HOUR] * (1 - 1e-12), path


@pytest.mark.parametrize("name", HEADLINE)
def test_no_site_changes_what_comes_back(catalogue, name):
    """A worse PUE once vested more of a warrant."""
    for view in ({}, {"terms.owner": "OpenAI"} if name.startswith("mi450x") else {}):
        rebates = {
            evaluate(
                name,
                view | {"site.pue": str(pue), "site.pue_peak": str(pue + 0.1)},
                result(name).plan,
                catalogue=catalogue,
            ).metrics["rebate_usd_per_chip"]
            for pue in (1.05, 1.15, 1.5)
        }
        assert len(rebates) == 1


# ---------------------------------------------------------------- every system, whoever can own it
def owners(catalogue, name):
    """Yield the perspectives that fit a system, with its result where the cost is known.

    Nothing is computed beyond the cost.
    """
    for view in sorted(FITS):
        view_settings = {"workload": "stated", "terms.perspective": view}
        with suppress(DataError):
            yield view_settings, evaluate(name, view_settings, catalogue=catalogue)


@pytest.mark.parametrize(
    "name",
    [
        *HEADLINE,
        *(
            pytest.param(name, marks=pytest.mark.thorough)
            for name in CATALOGUE.ids("systems")
            if name not in HEADLINE
        ),
    ],
)
def test_dearer_terms_and_more_failures_never_lower_the_net_cost(catalogue, name):
    """Dearer terms never lower the net cost of an hour, nor do more failures that of a used hour.

    The rent follows neither.
    """
    view_count = 0
    for view_settings, base in owners(catalogue, name):
        view_count += 1
        rates = [
            (path, rate_input.value * 3, rate_input.value * 9, "1/year")
            for path, rate_input in base.inputs.items()
            if path.endswith(".failure_rate")
        ][:3]
        for metric, rows in (
            (HOUR, [row for row in DEARER if not row[0].startswith("parts.")]),
            (USED, [*LOSING, *rates]),
        ):
            for path, low, high, unit in rows:
                values = [
                    view_settings | {path: f"{value!r} {unit}".strip()}
                    for value in (low + (high - low) / 3, high)
                ]
                less, more = (
                    evaluate(
                        name, dearer_settings, catalogue=catalogue, variant=base.structure.variant
                    ).metrics[metric]
                    for dearer_settings in values
                )
                assert more >= less * (1 - 1e-12), (view_settings["terms.perspective"], path)
    assert view_count


@pytest.mark.parametrize("name", HEADLINE)
def test_no_unit_changes_a_cost(catalogue, name):
    """Terms in percent, megawatts, months or kilodollars give the same cost as in other units."""
    rows = (
        ("terms.rate", "0.11", "11%"),
        ("terms.life", "4 year", "48 month"),
        ("site.electricity_price", "0.09 USD/kWh", "90 USD/MWh"),
        ("site.usd_per_mw", "12 USD/W", "12 MUSD/MW"),
        ("site.staff", "0.07 USD/W/year", "70 USD/kW/year"),
        ("failures.repair_time", "24 h", "1 day"),
    )
    settings_by_unit = [
        {"workload": "stated"} | {row[0]: row[unit_column] for row in rows}
        for unit_column in (1, 2)
    ]
    costs = [
        evaluate(name, unit_settings, catalogue=catalogue).metrics
        for unit_settings in settings_by_unit
    ]
    for metric in (HOUR, USED, "tco_gross_usd_per_chip_hour", "energy_usd_per_chip_hour"):
        assert costs[0][metric] == pytest.approx(costs[1][metric], rel=1e-12)


# ---------------------------------------------------------------- what is refused, with the reason
@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("terms.life", "0 year", "outside 0.25 to 50 year"),
        ("terms.rate", "-1.01", "outside 0 to 2"),
        ("terms.utilisation", "1.01", "outside 0.01 to 1"),
        ("terms.availability", "0", "outside 0.01 to 1"),
        ("site.pue", "0.99", "outside 1 to 3"),
        ("terms.residual", "1.2", "outside 0 to 1"),
        ("terms.date", "2025-13", "is no date"),
        ("terms.date", "1900", "lies before the first price of this bill"),
        ("terms.perspective", "rentier", "unknown perspective 'rentier'; did you mean 'renter'"),
        ("terms.perspective", "owner-builder", "gb200-nvl72 is sold at its vendor's price"),
        ("terms.purchase_tax", "2", "outside 0 to 1"),
        ("terms.life_building", "0 year", "outside"),
        ("terms.repairs", "1.1", "outside 0 to 1"),
        ("terms.date", "someday", "is no date"),
        ("failures.repair_time", "-1 h", "outside"),
        ("failures.planned_share", "1", "outside 0 to 0.9"),
        ("site.pue_peak", "0.5", "outside 1 to"),
    ],
)
def test_bad_terms_are_refused_with_the_reason(catalogue, path, value, message):
    with pytest.raises(DataError) as caught:
        evaluate("gb200-nvl72", {path: value}, result("gb200-nvl72").plan, catalogue=catalogue)
    assert message in str(caught.value)
    assert path in str(caught.value)
