"""Every kind of bad row is refused with its file and line, what was found and what was expected."""

from __future__ import annotations

import pytest

from tco import DataError
from tests.cli import tco

GOOD = "nitro-v6-400g,price,500,USD,400,650,2025-12,vendor,tco-model,,"


def read(own_data, row, part="nitro-v6-400g", name="price"):
    path = own_data.parts(row)
    with pytest.raises(DataError) as caught:
        own_data.catalogue().part_input(part, name, "2025-12")
    message = str(caught.value)
    assert message.startswith(f"{path}:2: "), message
    return message


@pytest.mark.parametrize(
    ("source", "finding"),
    [
        ("tco-model", ""),
        ("hearsay", "source 'hearsay' is not in sources.csv"),
        ("", "the source is missing"),
    ],
)
def test_the_check_looks_for_the_source_of_a_row(own_data, source, finding):
    path = own_data.parts(GOOD.replace("tco-model", source))
    done = tco("parts", "check", "--data", own_data.folder)
    assert done.exit_code == (1 if finding else 0)
    assert done.stdout.count(f"{path}:2: ") == (1 if finding else 0)
    assert finding in done.stdout


def test_a_good_row_is_read(own_data):
    path = own_data.parts(GOOD)
    price_input = own_data.catalogue().part_input("nitro-v6-400g", "price", "2025-12")
    assert (
        price_input.value,
        price_input.low,
        price_input.high,
        price_input.unit,
        price_input.kind,
        price_input.source,
    ) == (
        500,
        400,
        650,
        "USD",
        "vendor",
        "tco-model",
    )
    assert (
        price_input.as_of,
        price_input.where,
        price_input.overlay,
        price_input.stated_quantity,
    ) == (
        "2025-12",
        f"{path}:2",
        True,
        (500, "USD"),
    )


def test_a_row_in_another_unit_is_converted(own_data):
    own_data.parts("nitro-v6-400g,price,0.5,kUSD,0.4,0.65,2025-12,vendor,tco-model,,")
    price_input = own_data.catalogue().part_input("nitro-v6-400g", "price", "2025-12")
    assert (
        price_input.value,
        price_input.low,
        price_input.high,
        price_input.unit,
        price_input.stated_quantity,
    ) == (
        500,
        400,
        650,
        "USD",
        (0.5, "kUSD"),
    )


@pytest.mark.parametrize(
    ("old", "new", "fragments"),
    [
        (",500,USD,", ",500,USD/chip,", ["[currency] / [chip]", "expected 'USD'"]),
        (",500,USD,", ",500,W,", ["parts.nitro-v6-400g.price", "expected 'USD'"]),
        (",500,USD,", ",500,,", ["unit '1' is dimensionless", "expected 'USD'"]),
        (",500,USD,", ",500,dollar,", ["'dollar' is not a unit"]),
        (",500,USD,", ",500,kUDS,", ["'kUDS' is not a unit", "did you mean 'kUSD'"]),
        (",500,USD,", ",,USD,", ["the value is missing", "never taken as zero"]),
        (",500,USD,400", ",-500,USD,-600", ["value -500 USD is outside 0 to 1e+09 USD"]),
        (",500,USD,400,650", ",1e300,USD,,", ["value 1e+300 USD is outside 0 to 1e+09 USD"]),
        (",500,USD,", ",1e999,USD,", ["value is '1e999', expected a finite number"]),
        (",500,USD,", ",500,USD^50,", ["'USD^50' is not a unit", "exponents of one digit"]),
        (",500,USD,", ",5_00,USD,", ["value is '5_00', expected a number"]),
        (",500,USD,", ",nan,USD,", ["value is 'nan', expected a finite number"]),
        (",500,USD,", ",about 500,USD,", ["value is 'about 500', expected a number"]),
        (
            ",500,USD,",
            ',"1,5",USD,',
            ["value is '1,5', expected a number; its comma may be a decimal"],
        ),
        (",500,USD,", ',"1.500,00",USD,', ["expected a number; its comma may be a decimal mark"]),
        (",500,USD,", ",1.500.000,USD,", ["write thousands without a mark"]),
        (",500,USD,", ",€500,USD,", ["money is in USD: convert it"]),
        (",500,USD,", ",500 W,USD,", ["value: unit 'W' is", "expected 'USD'"]),
        (",500,USD,", ",1,500,USD,", ["12 cells, expected 11", "quote the number 1,500"]),
        (",400,650,", ",many,650,", ["low is 'many', expected a number"]),
        (",400,650,", ",400,lots,", ["high is 'lots', expected a number"]),
        (",400,650,", ",600,650,", ["low 600 is above the value 500"]),
        (",400,650,", ",400,450,", ["high 450 is below the value 500"]),
        (",400,650,", ",-1,650,", ["low -1 USD is outside"]),
        (",vendor,", ",guess,", ["kind 'guess' is not one of measured, vendor"]),
        (",vendor,", ",estimat,", ["did you mean 'estimate'"]),
        (",vendor,", ",,", ["kind '' is not one of"]),
        (",vendor,tco-model,", ",vendor,,", ["the source is missing"]),
        ("400,650,2025-12,vendor", ",,2025-12,estimate", ["an estimate value needs low and high"]),
        ("400,650,2025-12,vendor", "400,,2025-12,assumed", ["an assumed value needs low and high"]),
    ],
)
def test_bad_row_is_refused_with_file_and_line(own_data, old, new, fragments):
    assert old in GOOD
    message = read(own_data, GOOD.replace(old, new))
    assert [text for text in fragments if text not in message] == [], message


def test_an_unknown_attribute_gets_the_nearest_name(own_data):
    message = read(own_data, GOOD.replace(",price,", ",prise,"), name="prise")
    assert "unknown attribute of parts 'prise'; did you mean 'price'?" in message


def test_value_stated_twice_is_refused(own_data):
    path = own_data.parts(GOOD, GOOD)
    with pytest.raises(DataError) as caught:
        own_data.catalogue().part_input("nitro-v6-400g", "price", "2025-12")
    assert str(caught.value).startswith(
        f"{path}:3: parts.nitro-v6-400g.price is given twice (also {path}:2)"
    )


def test_undated_attribute_with_rows_of_two_dates_is_refused(own_data):
    own_data.parts(
        *(
            f"nitro-v6-400g,power,40,W,,,{date},vendor,tco-model,,"
            for date in ("2024-12", "2025-12")
        )
    )
    with pytest.raises(DataError, match="given twice"):
        own_data.catalogue().part_input("nitro-v6-400g", "power", "2025-12")


def test_an_unknown_part_gets_the_nearest_name(catalogue):
    with pytest.raises(
        DataError, match="unknown part 'nitro-v6-400'; did you mean 'nitro-v6-400g'"
    ):
        catalogue.part_input("nitro-v6-400", "price", "2025-12")


def test_missing_value_of_a_part_is_refused(catalogue):
    with pytest.raises(
        DataError, match=r"parts.nitro-v6-400g.hbm_capacity is missing .* never taken as zero"
    ):
        catalogue.part_input("nitro-v6-400g", "hbm_capacity", "2025-12")


def test_attribute_that_does_not_exist_is_refused(catalogue):
    with pytest.raises(DataError, match="unknown attribute of parts 'powr'; did you mean 'power'"):
        catalogue.part_input("nitro-v6-400g", "powr", "2025-12")


def test_an_unknown_company_gets_the_nearest_name(catalogue):
    company = next(iter(catalogue.rows("shares")))[0]
    with pytest.raises(DataError, match=f"unknown company '{company}x'; did you mean '{company}'"):
        catalogue.share_price(company + "x", "2025-12")
