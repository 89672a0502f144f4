"""Published figures of whole scale-up domains agree with the catalogue's chips and trees."""

from __future__ import annotations

import pytest

from tests.registry import FORMULA, convert, parse_quantity, read_rows
from tests.scenario_helpers import chip_figures, fabric_of, system_of

ROWS = read_rows("domains.csv")


def figure(catalogue, name: str, figure_name: str) -> float:
    """Return a figure from the catalogue, in the unit of the formula behind it."""
    inputs = system_of(name, catalogue=catalogue)
    values, chip, chips = inputs.values(), inputs.system.chip, inputs.system.chips
    domain, injection = chip_figures(inputs, values).domain, fabric_of(inputs)[-1].injection
    scale_out = FORMULA.edge_bandwidth(chips, values[f"parts.{chip}.scale_out_bandwidth"])
    return {
        "hbm": lambda: domain["hbm_bytes"],
        "hbm_as_reported": lambda: FORMULA.joint_capacity(
            chips, reported_capacity(catalogue, chip)
        ),
        "hbm_bandwidth": lambda: domain["hbm_byte_per_s"],
        "peak_bf16": lambda: domain["peak_bf16_flop_per_s"],
        "peak_fp4": lambda: domain["peak_fp4_flop_per_s"],
        "scale_out": lambda: scale_out,
        "scale_out_both_ways": lambda: 2 * scale_out,
        "scale_up_both_ways": lambda: 2 * FORMULA.lanes_rate(chips, injection),
        "scale_up_per_chip": lambda: injection,
    }[figure_name]()


def reported_capacity(catalogue, chip: str) -> float:
    """Return the capacity that running systems report.

    The catalogue holds it as an alternative to the published capacity of the stacks.
    """
    rows = [row.cells for row in catalogue.part_rows[chip, "hbm_capacity"]]
    (row,) = [cells for cells in rows if "MLPerf" in cells["note"]]
    assert row["use"] == "alternative"
    return parse_quantity(f"{row['value']} {row['unit']}", "byte")


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_published_figure_of_a_domain(row, catalogue):
    domain_figure = float(figure(catalogue, row["system"], row["figure"]))
    assert convert(domain_figure, row["gives"], row["unit"]) == pytest.approx(
        float(row["expected"]), rel=float(row["tolerance"])
    )


def test_hbm_of_a_gb200_rack_exceeds_its_reported_capacity(catalogue):
    """The domain counts the 192 GB of the stacks per chip, of which systems report 186."""
    published_hbm, reported_hbm = (
        figure(catalogue, "gb200-nvl72", name) for name in ("hbm", "hbm_as_reported")
    )
    assert published_hbm / reported_hbm == pytest.approx(192 / 186, rel=1e-12)
