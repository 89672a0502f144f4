"""`tco network`."""

from __future__ import annotations

from typing import Annotated

import typer

from tco.cli import app
from tco.cli.options import Given, command


@command(app, "set")
def network(
    given: Given,
    switch: Annotated[str, typer.Option(help="Switch by capacity (12.8T, 25.6T, 51.2T) or by part id (quantum-qm9700).")] = "25.6T",
    port: Annotated[str, typer.Option(help="Rate of a logical port: 100G, 200G, 400G, 800G.")] = "100G",
    tiers: Annotated[int | None, typer.Option(min=1, max=4, help="Tiers; left out: as many as the size needs.")] = None,
    chips: Annotated[int | None, typer.Option(min=1, help="Chips to join; left out: as many as the tiers reach.")] = None,
    nic: Annotated[str | None, typer.Option(help="NIC bandwidth of a chip, such as 400G; left out: one port.")] = None,
    design: Annotated[str, typer.Option(help="tor: copper to switches in the rack; leaf: optics from the NIC on.")] = "tor",
    oversubscription: Annotated[float, typer.Option(min=0.05, help="Downlink over uplink bandwidth; below 1 leaves spare uplinks.")] = 1.0,
    span: Annotated[str, typer.Option(help="Length of the links between the top tiers, such as '2 km': chooses DR, FR or ZR optics.")] = "100 m",
) -> None:
    """Size a folded Clos: what it reaches, and the switches, links, optics, watts and dollars of a cluster."""
    from tco.chain.connections import port_rate
    from tco.chain.inputs import plain_inputs
    from tco.cli.emit import Answer
    from tco.cli.load import catalogue_for
    from tco.foundation.errors import DataError
    from tco.foundation.units import parse_quantity
    from tco.foundation.values import as_number
    from tco.hardware.clos import network_planes, reach_of, switch_radix, tiers_needed
    from tco.hardware.network import OPTICS, Plan, scale_out_network, switch_part
    from tco.outputs.document import document
    from tco.outputs.networks import HEADER, network_cells, network_document, network_table

    catalogue = catalogue_for(None, given.data)
    inputs = plain_inputs(catalogue, {"cluster.oversubscription": f"{oversubscription!r}", **given.settings})
    values = inputs.values(as_number)
    part = switch_part(switch, list(catalogue.parts))
    port_speed = port_rate(port, "--port")
    nic_rate = port_rate(nic, "--nic") if nic else port_speed
    tapering = float(values["cluster.oversubscription"])
    radix = float(switch_radix(values[f"parts.{part}.switch_capacity"], port_speed))
    if radix < 2:
        raise DataError(f"{switch} has no two ports of {port}: {radix:.0f} ports")
    levels = tiers or (tiers_needed(chips, radix, tapering) if chips else 2)
    reach = int(reach_of([radix] * levels, tapering) + 1e-9)
    joined = chips or reach
    if joined > reach:
        raise DataError(
            f"{joined:,} chips do not fit {levels} tiers of {radix:.0f}-port switches, which reach {reach:,}; `--tiers {levels + 1}` or slower ports"
        )
    split = port_speed < values[f"parts.{OPTICS[0]}.port_bandwidth"]
    made = scale_out_network(values, Plan(joined, nic_rate, part, levels, design, False, split, parse_quantity(span, "m")))
    planes = float(network_planes(nic_rate, port_speed))
    facts = [
        f"{joined:,} chips at {nic or port} on {radix:.0f}-port switches ({switch} in ports of {port}), {levels} tiers in {planes:g} parallel planes",
        f"largest cluster of these tiers: {reach:,} endpoints",
    ]
    made_of = {
        "switch": part,
        "port_gb_per_s": port_speed / 1e9,
        "radix": radix,
        "planes": planes,
        "design": design,
        "chips": joined,
        "max_endpoints": reach,
    }
    given.emit(
        Answer(
            lambda: document("network", catalogue, network_document(made, made_of)),
            lambda: [network_table("Scale-out network", made, facts, joined)],
            HEADER,
            [network_cells(line) for line in made.lines],
        ),
    )
