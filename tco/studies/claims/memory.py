"""Claims on HBM: stacks, pins, capacities, and what each logical device sees of them."""

from __future__ import annotations

from tco.hardware.chip import pin_bandwidth, stack_capacity
from tco.studies.claims.context import Context, computes


def capacity_of_stack(c: Context, stack: str) -> float:
    """Return the capacity of one HBM stack from its dies."""
    return float(stack_capacity(c.part(stack, "stack_dies"), c.part(stack, "die_capacity")))


def capacity_of_chip(c: Context, system: str) -> float:
    """Return the HBM of a system's chip from the stacks it carries."""
    stack, number = c.stack(system)
    return number * capacity_of_stack(c, stack)


def bandwidth_of_pins(c: Context, system: str, pin_rate: float) -> float:
    """Return the HBM bandwidth of a system's chip at a pin rate."""
    stack, number = c.stack(system)
    return float(pin_bandwidth(number, c.part(stack, "stack_pins"), pin_rate))


def logical_device(c: Context, capacity: float) -> float:
    """Return what one logical device of Trainium3 sees of a capacity."""
    return capacity * c.given("cores") / c.part("trn3", "cores")


@computes("C001", "GiB")
def trn3_capacity(c: Context) -> float:
    """Dies of a stack times stacks of a chip."""
    return capacity_of_chip(c, "trn3-nl72x2")


@computes("C002", "GiB")
def trn3_stack(c: Context) -> float:
    """Twelve layers, by the part the tree names."""
    return capacity_of_stack(c, c.stack("trn3-nl72x2")[0])


@computes("C003", "GiB")
def trn2_stack(c: Context) -> float:
    """Eight layers, by the part the tree names."""
    return capacity_of_stack(c, c.stack("trn2-nl16")[0])


@computes("C004", "GiB")
def trn2_capacity(c: Context) -> float:
    """Dies of a stack times stacks of a chip."""
    return capacity_of_chip(c, "trn2-nl16")


@computes("C005", "TB/s")
def trn3_bandwidth(c: Context) -> float:
    """Stacks, pins and pin rate."""
    return bandwidth_of_pins(c, "trn3-nl72x2", c.part("trn3", "pin_rate"))


@computes("C006", "TB/s")
def trn2_bandwidth(c: Context) -> float:
    """Stacks, pins and pin rate."""
    return bandwidth_of_pins(c, "trn2-nl16", c.part("trn2", "pin_rate"))


@computes("C007", "%")
def bandwidth_increase(c: Context) -> float:
    """Both bandwidths from their pins."""
    return trn3_bandwidth(c) / trn2_bandwidth(c) - 1


@computes("C008")
def bandwidth_ratio(c: Context) -> float:
    """Both bandwidths as the vendor states them."""
    return c.part("trn3", "hbm_bandwidth") / c.part("trn2", "hbm_bandwidth")


@computes("C009")
def capacity_ratio(c: Context) -> float:
    """Both capacities as the vendor states them."""
    return c.part("trn3", "hbm_capacity") / c.part("trn2", "hbm_capacity")


@computes("C010", "TB/s")
def trn2_faster_sku(c: Context) -> float:
    """The most that stacks at the top rate of the HBM3 standard would give."""
    return bandwidth_of_pins(c, "trn2-nl16", c.part("hbm3-standard", "pin_rate"))


@computes("C030", "GiB")
def tripled_memory(c: Context) -> float:
    """Trainium1's capacity times what the claim says."""
    return c.given("times") * c.part("trn1", "hbm_capacity")


@computes("C042", "TB")
def gen2_capacity(c: Context) -> float:
    """Capacity of a chip as written, times chips."""
    return c.chips("trn3-nl72x2") * c.written_capacity("trn3")


@computes("C043", "TiB")
def gen2_capacity_in_table(c: Context) -> float:
    """Capacity of a chip times chips."""
    return c.chips("trn3-nl72x2") * c.part("trn3", "hbm_capacity")


@computes("C044", "TiB")
def gen1_capacity(c: Context) -> float:
    """Capacity of a chip times chips."""
    return c.chips("trn3-nl32x2") * c.part("trn3", "hbm_capacity")


@computes("C047", "TiB")
def trn2_ultraserver_capacity(c: Context) -> float:
    """Capacity of a chip times chips."""
    return c.chips("trn2-nl32x2-3d") * c.part("trn2", "hbm_capacity")


@computes("C154", "TB/s")
def trn4_bandwidth(c: Context) -> float:
    """Trainium3's bandwidth times what the claim says."""
    return c.given("times") * c.part("trn3", "hbm_bandwidth")


@computes("C155", "GiB")
def trn4_capacity(c: Context) -> float:
    """Dies of a stack times stacks of a chip."""
    return capacity_of_chip(c, "trn4-preview")


@computes("C177", "GiB")
def two_cores_one_device(c: Context) -> float:
    """Share of the cores a logical device maps onto."""
    return logical_device(c, c.part("trn3", "hbm_capacity"))


@computes("C178", "GiB")
def two_cores_one_device_in_digest(c: Context) -> float:
    """Share of the cores a logical device maps onto."""
    return logical_device(c, c.part("trn3", "hbm_capacity"))


@computes("C179")
def h100_over_device(c: Context) -> float:
    """Capacities as written."""
    return c.written_capacity(c.system("h100-hgx8").chip) / logical_device(c, c.written_capacity("trn3"))


@computes("C180")
def gb300_over_device(c: Context) -> float:
    """Capacities as written."""
    return c.written_capacity(c.system("gb300-nvl72").chip) / logical_device(c, c.written_capacity("trn3"))


@computes("C184", "GB")
def rack_capacity(c: Context) -> float:
    """Capacity of a chip as written, times the chips of a rack."""
    return c.chips("trn3-nl72x2") / c.racks("trn3-nl72x2") * c.written_capacity("trn3")
