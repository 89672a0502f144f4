"""The figures of the page: each drawn for a wide window and for a narrow one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from tco.chain.result import Result
from tco.outputs.figures import NARROW, WIDE
from tco.outputs.figures.bom import bom_figure
from tco.outputs.figures.cost import cost_figure
from tco.outputs.figures.errors import errors_figure
from tco.outputs.figures.fabric import fabric_figure
from tco.outputs.figures.frontier import COST, frontier_figure
from tco.outputs.figures.maps import map_figure
from tco.outputs.figures.performance import dots_of, roofline_figure, roofs_of
from tco.outputs.figures.tornado import tornado_figure
from tco.outputs.page.page import Picture
from tco.studies.reporting import Material, variant_of

HALF = 540  # pixels, where two stand beside each other


def both(draw: Callable[..., str], wide: float = WIDE) -> Picture:
    """Return a figure in both widths."""
    return Picture(draw(width=wide), draw(width=NARROW))


def beside(drawings: Sequence[Callable[..., str]]) -> list[Picture]:
    """Return figures of one kind: alone over the whole width, several in pairs."""
    return [both(draw, WIDE if len(drawings) == 1 else HALF) for draw in drawings]


def cost_stack(results: Sequence[Result]) -> list[Picture]:
    """Return what a chip-hour costs, by what is paid for."""
    return [both(partial(cost_figure, results))] if results else []


def rooflines(results: Sequence[Result]) -> list[Picture]:
    """Return the operators of every plan under the roofs of its chip."""
    return beside([partial(roofline_figure, result) for result in results if any(dots_of(result)) and roofs_of(result)])


def frontiers(material: Material) -> list[Picture]:
    """Return what interactivity costs on each system, with the range of what the workload's plan may come to."""
    found = [one for one in material.frontiers if one.points]
    sure = {one.result.scenario: its for one, its in zip(material.asked, material.sure, strict=True)}
    ranges = [sure[one.decode.result.scenario].range(COST) for one in found]
    return [both(partial(frontier_figure, found, ranges=ranges))] if found else []


def tornados(material: Material) -> list[Picture]:
    """Return what drives each answer."""
    return beside([partial(tornado_figure, one) for one in material.tornados])


def winners(material: Material) -> list[Picture]:
    """Return who wins where."""
    return [] if material.field is None else [both(partial(map_figure, material.field))]


def fabrics(material: Material) -> list[Picture]:
    """Return hops and bandwidth of every fabric."""
    found = [(one.system.name, one.scopes) for one in material.fabrics]
    return [both(partial(fabric_figure, found))] if found else []


def bills(material: Material) -> list[Picture]:
    """Return the map of every bill."""
    systems = {(one.system.id, str(one.system.variant)): one.system for one in material.fabrics}
    drawings = []
    for one in material.asked:
        system = systems.get((one.result.system, str(variant_of(one))))
        if system is not None and one.result.bill is not None:
            drawings.append(partial(bom_figure, system, one.result.bill, one.result.texts["terms.date"]))
    return beside(drawings)


def errors(rows: Sequence[dict[str, str]]) -> list[Picture]:
    """Return how far predictions lie from measurements, chip by chip."""
    return [both(partial(errors_figure, rows))] if rows else []
