"""The site: figures anybody can check."""

from __future__ import annotations

from tests.registry import FORMULA


def test_a_megawatt_for_a_year_is_8760_megawatt_hours():
    assert FORMULA.yearly_energy(1e6, 1.0, 1.0, 100 / 1e6) == 876_000


def test_energy_is_bought_at_the_meter_of_the_site():
    assert FORMULA.yearly_energy(1e6, 0.8, 1.25, 1e-4) == FORMULA.yearly_energy(
        FORMULA.facility_power(1e6, 1.25), 0.8, 1.0, 1e-4
    )


def test_rent_is_for_provisioned_power():
    assert FORMULA.yearly_rent(1000.0, 0.15) == 1800


def test_a_gigawatt_at_eleven_million_a_megawatt():
    assert FORMULA.building_price(1e9, 11.0) == 11e9


def test_staff():
    assert FORMULA.yearly_staff(2e6, 0.25) == 500_000
