"""Site costs (building or colocation, energy, people, storage) and greenhouse gas emissions."""

from __future__ import annotations

from tco.core.elementwise import elementwise_maximum, elementwise_minimum, floor
from tco.core.formula import formula
from tco.core.types import Quantity
from tco.core.units import (
    USD,
    Byte,
    Chip,
    Gram,
    GramPerByte,
    GramPerChip,
    GramPerChipHour,
    GramPerSquareMillimetre,
    GramPerWatt,
    GramPerWattHour,
    HourPerYear,
    MonthPerYear,
    Pure,
    SecondPerHour,
    SquareMillimetre,
    TokenPerMillion,
    TokenPerSecondPerChip,
    USDPerByte,
    USDPerByteMonth,
    USDPerChipHour,
    USDPerWatt,
    USDPerWattHour,
    USDPerWattMonth,
    USDPerWattYear,
    Watt,
    WattPerChip,
    Year,
)


@formula("USD")
def building_price(it_power: Watt, price_per_power: USDPerWatt) -> Quantity:
    """Construction cost of the hall that powers the racks: C = P x price per watt."""
    return it_power * price_per_power


@formula("USD/W")
def liquid_building_rate(price_per_power: USDPerWatt, premium: Pure) -> Quantity:
    """Construction cost per IT power of a liquid-cooled hall: p (1 + premium).

    The premium is relative to the market's average.
    """
    return price_per_power * (1 + premium)


@formula("USD/W")
def air_building_rate(price_per_power: USDPerWatt, discount: Pure) -> Quantity:
    """Construction cost per IT power of an air-cooled hall: p (1 - discount).

    The discount is relative to the market's average.
    """
    return price_per_power * (1 - discount)


@formula("USD/W")
def rate_without_backup(price_per_power: USDPerWatt, backup: USDPerWatt) -> Quantity:
    """Construction cost per IT power with batteries in the racks: p - b.

    The building then needs none.
    """
    return elementwise_maximum(price_per_power - backup, 0 * price_per_power)


@formula("USD")
def sidecar_price(rack_power: Watt, price_per_power: USDPerWatt) -> Quantity:
    """Price of liquid-to-air coolers in an air-cooled hall: C = P x price per watt."""
    return rack_power * price_per_power


@formula("W")
def sidecar_power(rack_power: Watt, power_share: Pure) -> Quantity:
    """Power of the coolers' fans and pumps beside their racks: P = P_racks x share."""
    return rack_power * power_share


@formula("USD/W")
def crowded_rate(price_per_power: USDPerWatt, hall_share: Pure) -> Quantity:
    """Price of a hall per IT power, where racks can use only a share of its power: p / share."""
    return price_per_power / hall_share


@formula("USD/W/month")
def crowded_rent(rent: USDPerWattMonth, hall_share: Pure) -> Quantity:
    """Rent of a hall per IT power, where racks can use only a share of its power: p / share."""
    return rent / hall_share


@formula("USD/year")
def yearly_rent(
    it_power: Watt, rent: USDPerWattMonth, months_per_year: MonthPerYear = 12
) -> Quantity:
    """Colocation rent of provisioned IT power: R = P x rent x 12."""
    return it_power * rent * months_per_year


@formula("W")
def rented_power(it_power: Watt, pue_peak: Pure, quoted: Pure) -> Quantity:
    """IT power that a hall's rent is paid for: P PUE_peak / PUE_quoted.

    A hall whose PUE at the worst hour exceeds the quoted one takes more of the rented power.
    """
    return it_power * pue_peak / quoted


@formula("")
def idle_draw(chip_power: Watt, it_power: Watt, chips: Pure, rest: Pure) -> Quantity:
    """Draw of idle racks over their provisioned power: i = (i_c P_c + i_r (P - P_c)) / P.

    The indices mean chips and the rest of the rack.
    """
    return (chips * chip_power + rest * (it_power - chip_power)) / it_power


@formula("")
def average_draw(load_factor: Pure, utilisation: Pure, usual: Pure, idle: Pure) -> Quantity:
    """Average draw over provisioned power: l x (i + (1 - i) u) / (i + (1 - i) u0).

    l is the draw at a utilisation of u0, i that of idle racks.
    """
    return elementwise_minimum(
        load_factor * ((idle + (1 - idle) * utilisation) / (idle + (1 - idle) * usual)), 1
    )


@formula("USD/year")
def yearly_energy(
    it_power: Watt,
    load_factor: Pure,
    pue: Pure,
    price: USDPerWattHour,
    hours_per_year: HourPerYear = 8760,
) -> Quantity:
    """Energy bill: E = P x load x PUE x 8,760 h x price."""
    return it_power * load_factor * pue * hours_per_year * price


@formula("USD/year")
def yearly_demand(
    it_power: Watt, pue_peak: Pure, charge: USDPerWattMonth, months_per_year: MonthPerYear = 12
) -> Quantity:
    """Yearly charge for the highest draw of each month: D = P x PUE_peak x charge x 12."""
    return it_power * pue_peak * charge * months_per_year


@formula("USD/year")
def yearly_staff(it_power: Watt, staff: USDPerWattYear) -> Quantity:
    """Operating staff: S = P x cost per watt and year."""
    return it_power * staff


@formula("")
def sellable_share(pue_peak: Pure, in_hand: Pure) -> Quantity:
    """Share of the site's grid power that racks may draw: s = (1 - h) / PUE_peak.

    The power must carry the worst hour, and a share h is held in reserve.
    """
    return (1 - in_hand) / pue_peak


@formula("W")
def sellable_power(site_power: Watt, share: Pure) -> Quantity:
    """IT power a site can sell of what its grid gives: P s."""
    return site_power * share


@formula("W")
def grid_power(it_power: Watt, share: Pure) -> Quantity:
    """Power of the grid that some IT power takes up, of which a share may be sold: P / s."""
    return it_power / share


@formula("USD/W")
def price_per_grid_power(price: USD, power: Watt) -> Quantity:
    """Capital cost per watt of grid power: c = C / P."""
    return price / power


@formula("")
def worlds_in_power(power: Watt, world_power: Watt) -> Quantity:
    """Whole worlds that some IT power carries: n = floor(P / P_world)."""
    return floor(power / world_power + 1e-9)


@formula("USD/W/year")
def yearly_margin(
    income: USDPerChipHour,
    cost: USDPerChipHour,
    chips: Chip,
    site_power: Watt,
    hours_per_year: HourPerYear = 8760,
) -> Quantity:
    """Yearly margin per watt of site power: m = (income - cost) x chips x 8,760 h / P.

    Income and cost are per chip and calendar hour.
    """
    return (income - cost) * chips * hours_per_year / site_power


@formula("W")
def facility_power(it_power: Watt, pue: Pure) -> Quantity:
    """Power of the site for some IT power: P x PUE."""
    return it_power * pue


@formula("USD")
def stored_price(capacity: Byte, price: USDPerByte) -> Quantity:
    """Price of storage that is bought: C = B x price."""
    return capacity * price


@formula("USD/year")
def yearly_stored(
    capacity: Byte, rent: USDPerByteMonth, months_per_year: MonthPerYear = 12
) -> Quantity:
    """Rent of storage: R = B x rent x 12."""
    return capacity * rent * months_per_year


@formula("g/chip/h")
def grid_carbon(
    it_power: WattPerChip, load_factor: Pure, pue: Pure, intensity: GramPerWattHour
) -> Quantity:
    """Grid emissions per chip and calendar hour: g = P x load x PUE x intensity.

    The intensity is the grid's yearly average, whatever power is bought.
    """
    return it_power * load_factor * pue * intensity


@formula("mm^2")
def logic_area(die_area: SquareMillimetre, dies: Pure) -> Quantity:
    """Area of the logic dies of a package: A = a n."""
    return die_area * dies


@formula("g")
def carbon_of_chip(
    area: SquareMillimetre,
    logic: GramPerSquareMillimetre,
    capacity: Byte,
    memory: GramPerByte,
    board: Gram,
) -> Quantity:
    """Gas emitted to make a chip on its board: m = A f_logic + C f_memory + b."""
    return area * logic + capacity * memory + board


@formula("g/chip")
def carbon_per_power(it_power: WattPerChip, factor: GramPerWatt) -> Quantity:
    """Gas emitted to make what stands around a chip, by its power: m = P f."""
    return it_power * factor


@formula("g/chip/h")
def embodied_carbon(
    chip_carbon: Gram,
    rack: GramPerChip,
    life: Year,
    building: GramPerChip,
    life_building: Year,
    one_chip: Chip = 1,
    hours_per_year: HourPerYear = 8760,
) -> Quantity:
    """Embodied carbon per chip-hour of chip, rack and building.

    g = ((m + m_r) / n + m_b / n_b) / 8,760 h, where n and n_b are the years that each serves.
    """
    return ((chip_carbon / one_chip + rack) / life + building / life_building) / hours_per_year


@formula("g/Mtoken")
def carbon_of_tokens(
    hour: GramPerChipHour,
    goodput: Pure,
    utilisation: Pure,
    rate: TokenPerSecondPerChip,
    seconds_per_hour: SecondPerHour = 3600,
    tokens_per_million: TokenPerMillion = 1e6,
) -> Quantity:
    """Carbon per million output tokens: g / (goodput x utilisation x 3,600 x rate) x 1e6.

    The rate is tokens per second and chip. Idle hours count.
    """
    return hour / (goodput * utilisation * rate * seconds_per_hour) * tokens_per_million
