"""Units: types for annotations, the table of known units, and the pint registry for other units.

The table `data/units.csv` has factor and dimension of each known unit, so that commands need not
import pint. `python -m tco.core.units` writes the table from the unit file `data/units.txt`, and a
test checks that the two agree. Only unit texts outside the table, and tests, import pint.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

from tco.core.errors import DataError, nearest
from tco.core.files import data_directory, read_csv

if TYPE_CHECKING:
    import pint

from tco.core.types import Quantity

Number = TypeVar("Number", bound=Any)  # a float or an array

# Types of the parameters of formulas. The annotation has the unit.
Pure = Annotated[Quantity, ""]
Second = Annotated[Quantity, "s"]
Hour = Annotated[Quantity, "h"]
Year = Annotated[Quantity, "year"]
Month = Annotated[Quantity, "month"]
PerSecond = Annotated[Quantity, "1/s"]
HourPerYear = Annotated[Quantity, "h/year"]
SecondPerHour = Annotated[Quantity, "s/h"]
SecondPerByte = Annotated[Quantity, "s/byte"]
PerYear = Annotated[Quantity, "1/year"]
FLOP = Annotated[Quantity, "FLOP"]
FLOPPerSecond = Annotated[Quantity, "FLOP/s"]
Byte = Annotated[Quantity, "byte"]
BytePerSecond = Annotated[Quantity, "byte/s"]
Metre = Annotated[Quantity, "m"]
Token = Annotated[Quantity, "token"]
TokenPerSecond = Annotated[Quantity, "token/s"]
TokenPerSecondPerChip = Annotated[Quantity, "token/s/chip"]
TokenPerChip = Annotated[Quantity, "token/chip"]
TokenPerMillion = Annotated[Quantity, "token/Mtoken"]
TokenPerTrillion = Annotated[Quantity, "token/Ttoken"]
WattPerMegawatt = Annotated[Quantity, "W/MW"]
FLOPPerPetaflop = Annotated[Quantity, "FLOP/PFLOP"]
BytePerTerabyte = Annotated[Quantity, "byte/TB"]
Chip = Annotated[Quantity, "chip"]
Watt = Annotated[Quantity, "W"]
WattPerFLOPPerSecond = Annotated[Quantity, "W/(FLOP/s)"]
FLOPPerByte = Annotated[Quantity, "FLOP/byte"]
WattPerChip = Annotated[Quantity, "W/chip"]
USD = Annotated[Quantity, "USD"]
USDPerHour = Annotated[Quantity, "USD/h"]
USDPerYear = Annotated[Quantity, "USD/year"]
USDPerChip = Annotated[Quantity, "USD/chip"]
USDPerWattYear = Annotated[Quantity, "USD/W/year"]
USDPerChipHour = Annotated[Quantity, "USD/chip/h"]
USDPerWattHour = Annotated[Quantity, "USD/Wh"]
USDPerWatt = Annotated[Quantity, "USD/W"]
USDPerByte = Annotated[Quantity, "USD/byte"]
USDPerByteMonth = Annotated[Quantity, "USD/byte/month"]
Gram = Annotated[Quantity, "g"]
GramPerSquareMillimetre = Annotated[Quantity, "g/mm^2"]
GramPerByte = Annotated[Quantity, "g/byte"]
GramPerWatt = Annotated[Quantity, "g/W"]
GramPerWattHour = Annotated[Quantity, "g/Wh"]
GramPerChip = Annotated[Quantity, "g/chip"]
GramPerChipHour = Annotated[Quantity, "g/chip/h"]
USDPerWattMonth = Annotated[Quantity, "USD/W/month"]
MonthPerYear = Annotated[Quantity, "month/year"]
USDPerMillionTokens = Annotated[Quantity, "USD/Mtoken"]
USDPerTrillionTokens = Annotated[Quantity, "USD/Ttoken"]
USDPerShare = Annotated[Quantity, "USD/share"]
Share = Annotated[Quantity, "share"]
SquareMillimetre = Annotated[Quantity, "mm^2"]
Millimetre = Annotated[Quantity, "mm"]
PerSquareMillimetre = Annotated[Quantity, "1/mm^2"]


class Unit(NamedTuple):
    """Factor to base units and canonical dimension of a unit text."""

    factor: float
    dimension: str


@cache
def unit_table() -> dict[str, Unit]:
    """Return factor and dimension of each known unit, by unit text."""
    unit_rows = read_csv(data_directory() / "units.csv", ("unit", "factor", "dimension"))
    return {
        unit_row["unit"]: Unit(float(unit_row["factor"]), unit_row["dimension"])
        for _, unit_row in unit_rows
    }


# Units that people write, by unit of the formulas.
WRITTEN = {
    "USD/Wh": "USD/kWh",
    "byte": "GB",
    "byte/s": "GB/s",
    "FLOP/s": "TFLOP/s",
}

MEGAWATTS = " or '{} MW'"  # hint for a power, since halls are stated in MW

CENTS = frozenset(("c", "ct", "cent", "cents"))
# Currencies of prices that the user has to convert.
CURRENCIES = frozenset(
    ("AUD", "CAD", "CHF", "CNY", "EUR", "GBP", "INR", "JPY", "KRW", "RMB", "SGD", "TWD")
)


@cache
def registry() -> pint.UnitRegistry[Any]:
    """Return the pint registry of `data/units.txt`.

    Its import is slow, so only tests and unknown unit texts use it.
    """
    import pint

    return pint.UnitRegistry(
        str(data_directory() / "units.txt"), auto_reduce_dimensions=True, cache_folder=None
    )


@cache
def unit(unit_text: str) -> Unit:
    """Return factor and dimension of a unit text.

    Args:
        unit_text: The unit, such as USD/kWh; an empty text is a pure number.

    Raises:
        DataError: The text is not a unit; the error names the nearest unit.

    """
    known_unit = unit_table().get(unit_text)
    return known_unit if known_unit is not None else _from_registry(unit_text)


# Limits of a unit text for pint, which needs minutes for large powers.
LONGEST_UNIT = 80  # characters
LARGEST_POWER = 81.0  # product of all exponents, each of one digit
SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
POWER_MARK = re.compile(r"\^|\*\*")
EXPONENT = re.compile(r"(?:\^|\*\*)\s*(\()?[-+]?(\d(?:\.\d+)?)(?(1)\))(?!\s*(?:[\w.^]|\*\*))")
POWER_WORDS = re.compile(r"\b(?:squared?|cubed|cubic|sq)\b")


def _with_bounded_powers(unit_text: str) -> str | None:
    """Return a unit text with powers written as ^2; None for long texts and large powers."""
    plain = re.sub(f"[{SUPERSCRIPTS}]", lambda mark: f"^{SUPERSCRIPTS.index(mark[0])}", unit_text)
    exponents = [float(power[2]) for power in EXPONENT.finditer(plain)]
    if (
        len(unit_text) > LONGEST_UNIT
        or len(exponents) != len(POWER_MARK.findall(plain))
        or POWER_WORDS.search(plain)
        or math.prod(max(exponent, 1.0) for exponent in exponents) > LARGEST_POWER
    ):
        return None
    return plain


def _from_registry(unit_text: str) -> Unit:
    """Return a unit's factor and dimension by pint.

    Marks that pint ignores, such as '#', ',' or '?', are refused.
    """
    wrong = DataError(
        f"{unit_text!r} is not a unit{_other_money(unit_text) or nearest(unit_text, unit_table())}"
    )
    if not all(mark.isalnum() or mark in " */^()%.-" for mark in unit_text):
        raise wrong
    plain = _with_bounded_powers(unit_text)
    if plain is None:
        raise DataError(
            f"{_shorten_unit(unit_text)!r} is not a unit: expected at most "
            f"{LONGEST_UNIT} characters, "
            "and exponents of one digit, such as 'USD/mm^2'"
        )
    try:
        base = registry().Quantity(1, plain).to_base_units()
        factor = float(base.magnitude)
    except Exception as error:  # pint raises many kinds of errors, such as AssertionError
        raise wrong from error
    if not 0 < factor < math.inf:
        raise wrong
    return Unit(
        factor,
        dimension_text(
            {
                dimension_name: float(str(power))
                for dimension_name, power in base.dimensionality.items()
            }
        ),
    )


def _shorten_unit(unit_text: str) -> str:
    return unit_text if len(unit_text) <= LONGEST_UNIT else f"{unit_text[:LONGEST_UNIT]}..."


def _other_money(unit_text: str) -> str:
    """Return '; ...' with the spelling in dollars for a price in other money, or an empty text."""
    money = "".join(re.findall(r"^[^\W\d_]+", unit_text))
    dollars = f"USD{unit_text[len(money) :]}"
    if money in CENTS:
        return f"; a cent is 0.01 USD: write it in {dollars!r}"
    return (
        f"; money is in USD: convert it at the rate of its date, and write it in {dollars!r}"
        if money in CURRENCIES
        else ""
    )


def dimension_text(powers: Mapping[str, float]) -> str:
    """Return a dimension in one spelling, such as '[currency] / [chip] / [time]'.

    The order in the texts of pint depends on the units that it has read before.
    """

    def factor(dimension_name: str) -> str:
        power = abs(powers[dimension_name])
        return dimension_name if power == 1 else f"{dimension_name} ** {power:g}"

    above = " * ".join(
        factor(dimension_name) for dimension_name in sorted(powers) if powers[dimension_name] > 0
    )
    below = "".join(
        f" / {factor(dimension_name)}"
        for dimension_name in sorted(powers)
        if powers[dimension_name] < 0
    )
    return (above or "1") + below if powers else "dimensionless"


def convert(value: Number, source: str, target: str) -> Number:
    """Return a number or an array in another unit.

    Args:
        value: Number or array in unit `source`.
        source: Unit of `value`.
        target: Unit of the result.

    Raises:
        DataError: A text is not a unit, or the units differ in dimension.

    """
    if source == target:
        return value
    source_unit = unit(source)
    target_unit = unit(target)
    if source_unit.dimension != target_unit.dimension:
        raise DataError(
            f"unit {source or '1'!r} is {source_unit.dimension}, expected "
            f"{target or 'a pure number'!r} ({target_unit.dimension})"
        )
    if source_unit.factor == target_unit.factor:
        return value
    # A division by a whole ratio keeps 0.09 USD/kWh exact, and a product would not.
    ratio = target_unit.factor / source_unit.factor
    if ratio >= 1:
        divided: Number = value / ratio
        return divided
    multiplied: Number = value * (source_unit.factor / target_unit.factor)
    return multiplied


def is_pure(unit_text: str) -> bool:
    """Return whether a unit text is that of a pure number, which may be written without a unit."""
    return unit(unit_text).dimension == "dimensionless"


def same_unit(first_unit: str, second_unit: str) -> bool:
    """Return whether two unit texts have the same dimension and the same factor."""
    if first_unit == second_unit:
        return True
    first = unit(first_unit)
    second = unit(second_unit)
    return first.dimension == second.dimension and math.isclose(
        first.factor, second.factor, rel_tol=1e-12
    )


NUMBER = (
    r"[-+]?(?:(?:[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?|\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|(?:nan|inf)\b)"
)
QUANTITY = re.compile(
    rf"(?P<dollars>\$?)\s*(?P<number>{NUMBER})(?P<unit>\s+[^\s,.].*|[^\s\d,.].*)?", re.DOTALL
)
DECIMAL_COMMA = re.compile(r"\D{0,4}(?:0,\d|\d+,\d{1,2}(?!\d)|[\d.]*\.\d{3},\d|\d+,\d{4})")
POINTED_THOUSANDS = re.compile(r"\D{0,4}\d{1,3}(?:\.\d{3}){2}")
# Separator of thousands in a cell.
GROUP_MARK = re.compile(r"(?<=\d)[ '\u2019\u00a0\u202f](?=\d{3}(?!\d))")
DOLLAR_MARK = re.compile(r"^(?:US\$|USD|\$)\s*|\s*(?:US\$|\$)$")
# Scale that may follow the number of a price or a count, with its unit.
SCALED = re.compile(r"(?P<scale>k|K|M|bn|B(?=\s))(?P<unit>(?:\s+USD.*)?)", re.DOTALL)
SCALES = {"k": 1e3, "K": 1e3, "M": 1e6, "bn": 1e9, "B": 1e9}


def read_number(number_text: str) -> float:
    """Return the number of a text.

    Python reads `1_0` as 10. Such a text is refused, since it is probably a mistake.

    Raises:
        ValueError: The text is not a number.

    """
    if "_" in number_text:
        raise ValueError(f"{number_text!r} is no number")
    return float(number_text)


def number_and_unit(quantity_text: str) -> tuple[float, str] | None:
    """Parse a quantity such as '20 MW', '9,000 USD', '9k USD' or '$0.09/kWh', or return None."""
    match = QUANTITY.fullmatch(quantity_text.strip())
    if match is None:
        return None
    quantity_number = float(match["number"].replace(",", ""))
    unit_text = (match["unit"] or "").strip()
    if match["dollars"]:
        scale, _, per = unit_text.partition("/")
        unit_text = f"{scale.strip()} USD{'/' * bool(per)}{per}".strip()
    if scaled := SCALED.fullmatch(unit_text):
        quantity_number = quantity_number * SCALES[scaled["scale"]]
        unit_text = scaled["unit"].strip()
    return quantity_number, unit_text


def cell_quantity(cell_text: str) -> tuple[float, str] | None:
    """Return number and unit of a cell of a spreadsheet, such as '$31,000', '31 000' or '8%'."""
    if "_" in cell_text.partition(" ")[0]:  # Python reads `1_0` as 10
        return None
    number, dollars = DOLLAR_MARK.subn("", GROUP_MARK.sub(",", cell_text.strip()))
    return number_and_unit("$" * bool(dollars) + number)


def number_mark_hint(quantity_text: str) -> str:
    """Return '; ...' on a decimal comma or points between thousands, or an empty text."""
    if DECIMAL_COMMA.match(quantity_text):
        return "; its comma may be a decimal mark: write decimals with a point"
    return "; write thousands without a mark" if POINTED_THOUSANDS.match(quantity_text) else ""


def currency_hint(quantity_text: str) -> str:
    """Return '; ...' on money that is not in dollars, or an empty text."""
    is_foreign = not quantity_text.isascii() or any(
        currency_name in quantity_text for currency_name in CURRENCIES
    )
    return "; money is in USD: convert it at the rate of its date" if is_foreign else ""


def parse_quantity(quantity_text: str, target: str) -> float:
    """Parse a quantity such as '0.083 USD/kWh' into unit `target`.

    Args:
        quantity_text: The quantity. A bare number counts as pure and needs a dimensionless
            `target`.
        target: Unit of the result.

    Raises:
        DataError: The text does not begin with a number, the number is not finite, or the unit is
            missing, unknown or of another dimension.

    """
    quantity_match = number_and_unit(quantity_text)
    if quantity_match is None and (marked := number_mark_hint(quantity_text)):
        raise DataError(f"{quantity_text!r} is no number{marked}")
    if quantity_match is None:
        raise DataError(
            f"{quantity_text!r} does not begin with a number; expected a value like "
            f"'{meant(quantity_text, target)}'" + currency_hint(quantity_text)
        )
    quantity_number, unit_text = quantity_match
    if not math.isfinite(quantity_number):
        raise DataError(f"{quantity_text!r} is not a finite number")
    if not unit_text and not is_pure(target):
        watts_hint = MEGAWATTS.format(quantity_text.strip()) if target == "W" else ""
        raise DataError(
            f"{quantity_text!r} has no unit, expected {target!r} ({unit(target).dimension}), such "
            f"as '{meant(quantity_text, target)}'{watts_hint}"
        )
    return convert(quantity_number, unit_text, target)


def meant(quantity_text: str, target: str) -> str:
    """Return a suggested spelling of `quantity_text` with the expected unit `target`.

    The number is that of the text, or 1.5 where the text does not begin with a number.
    """
    number = re.match(
        r"(\d+(?:\.\d+)?)([kKmM](?![a-zA-Z]))?", re.sub(r"(?<=\d),(?=\d{3})", "", quantity_text)
    )
    written = number[1] if number else "1.5"
    if number and number[2]:
        written = f"{float(written) * {'k': 1e3, 'm': 1e6}[number[2].lower()]:g}"
    return f"{written} {WRITTEN.get(target, target)}".rstrip()


def table_rows() -> list[tuple[str, float, str]]:
    """Return the rows of the table as pint computes them, for every known unit text."""
    return [(unit_text, *_from_registry(unit_text)) for unit_text in sorted(unit_table())]


def _rewrite_units() -> None:
    lines = [
        "unit,factor,dimension",
        *(f"{unit_text},{factor!r},{dimension}" for unit_text, factor, dimension in table_rows()),
    ]
    (data_directory() / "units.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    _rewrite_units()
