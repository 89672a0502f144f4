"""Dated series and alternatives: which row holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tco import DataError
from tco.catalog.rows import CatalogueRow, at_date, attribute_of_path, split_path


def dated(*dates):
    return [CatalogueRow({"as_of": date}, date, False) for date in dates]


SERIES = dated("2025-06", "2024-12-15", "2025", "2025-12-01", "2026-03")


@pytest.mark.parametrize(
    ("date", "holds"),
    [
        ("2024-12-15", "2024-12-15"),
        ("2024-12", "2024-12-15"),  # a month covers its days
        ("2025-05", "2025"),  # a year stands from its beginning
        ("2025-06-01", "2025-06"),
        ("2025-11-30", "2025-06"),
        ("2025-12", "2025-12-01"),
        ("2025", "2025-12-01"),  # a year covers its months
        ("2026-02", "2025-12-01"),
        ("2030", "2026-03"),
        ("2020", "2024-12-15"),  # before the series: its first row
    ],
)
def test_the_latest_row_not_after_the_date_holds(date, holds):
    assert at_date(SERIES, date).as_of == holds


@given(st.permutations(SERIES), st.dates().map(str))
def test_the_order_of_the_file_does_not_matter(rows, date):
    assert at_date(rows, date).as_of == at_date(SERIES, date).as_of


def test_single_row_holds_at_every_date():
    assert at_date(dated("2030"), "2000").as_of == "2030"


def test_a_series_moves_with_the_date(own_data):
    own_data.parts(
        *(
            f"nitro-v6-400g,price,{price},USD,,,{date},vendor,tco-model,,"
            for price, date in ((400, "2024-12"), (500, "2025-06"))
        )
    )
    catalogue = own_data.catalogue()
    assert [
        catalogue.part_input("nitro-v6-400g", "price", date).value
        for date in ("2024-12", "2025-05", "2025-06", "2026")
    ] == [400, 400, 500, 500]


def test_date_stated_twice_is_refused_with_both_rows(own_data):
    """Whichever of a longer series they are, in every table that has dates."""
    dates = ("2024", "2025-01", "2025-06", "2025-06")
    path = own_data.parts(
        *(
            f"nitro-v6-400g,price,{price_value},USD,,,{date},vendor,tco-model,,"
            for price_value, date in enumerate(dates)
        )
    )
    with pytest.raises(DataError) as caught:
        own_data.catalogue().part_input("nitro-v6-400g", "price", "2025-06")
    expected_message = (
        f"{path}:5: parts.nitro-v6-400g.price is given twice (also {path}:4), both of 2025-06; "
        "mark one 'alternative' or date both apart"
    )
    assert str(caught.value) == expected_message
    columns = "region,attribute,value,unit,low,high,as_of,kind,source,note\n"
    grid = own_data.write(
        "grids/own.csv",
        columns
        + "".join(
            f"us-east5,grid_carbon,{carbon_value},kg/MWh,,,2024,vendor,tco-model,\n"
            for carbon_value in (300, 400)
        ),
    )
    with pytest.raises(
        DataError, match=f"{grid}:3: site.grid_carbon is given twice .also {grid}:2., both of 2024"
    ):
        own_data.catalogue().grid_carbon("us-east5", "2025-06")


def test_an_alternative_is_kept_but_not_used(own_data):
    own_data.parts(
        "nitro-v6-400g,price,400,USD,,,2025-12,vendor,tco-model,,alternative",
        "nitro-v6-400g,price,500,USD,,,2025-06,vendor,tco-model,,",
    )
    catalogue = own_data.catalogue()
    assert catalogue.part_input("nitro-v6-400g", "price", "2025-12").value == 500
    assert len(catalogue.part_rows["nitro-v6-400g", "price"]) == 2


def test_alternatives_alone_are_refused(own_data):
    own_data.parts("nitro-v6-400g,price,400,USD,,,2025-12,vendor,tco-model,,alternative")
    with pytest.raises(DataError, match="every row is an alternative, one must be chosen"):
        own_data.catalogue().part_input("nitro-v6-400g", "price", "2025-12")


def test_shipped_memory_prices_move_with_the_date(catalogue):
    """RDIMM prices rose about threefold between the December 2025 and the autumn 2026 decks."""
    then, later = (
        catalogue.part_input("ddr5-dimm", "price", date).value for date in ("2025-12", "2026-09")
    )
    assert (then, later) == (450, 1445)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("parts.h100-sxm.price", ("parts", "h100-sxm", "price")),
        ("site.pue", ("site", "", "pue")),
        ("performance.nvidia.sm90.gemm_rate", ("performance", "nvidia.sm90", "gemm_rate")),
    ],
)
def test_path_splits_into_group_owner_and_attribute(path, words):
    assert split_path(path) == words


def test_attribute_of_a_path_is_that_of_its_group():
    assert attribute_of_path("parts.h100-sxm.price").unit == "USD"
    assert attribute_of_path("site.price") is None
