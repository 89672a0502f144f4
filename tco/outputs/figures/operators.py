"""Where the time of a plan goes: a bar for each operator, in the colour of what binds it."""

from __future__ import annotations

from tco.chain.result import Result
from tco.outputs.figures import WIDE
from tco.outputs.figures.scales import Linear
from tco.outputs.figures.style import BODY, SMALL, series
from tco.outputs.figures.svg import Drawing
from tco.outputs.figures.words import fitted, width_of
from tco.outputs.performance import operators_of, plan_text
from tco.outputs.premises import workload_words
from tco.outputs.table import significant
from tco.performance.profile import BOUNDS

BAR, ROW = 14.0, 21.0  # pixels
NAMES = 0.4  # of the width, at most


def operators_figure(result: Result, width: float = WIDE) -> str:
    """Return the bars phase by phase, the longest first, with the share of the phase and the time."""
    rows = operators_of(result)
    phases = {phase: [row for row in rows if row.phase == phase] for phase in dict.fromkeys(row.phase for row in rows)}
    said = "; ".join(f"{phase} {line.name} {share * 100:.1f} %, {line.bound}" for phase, line, share in rows)
    drawing = Drawing(f"Where the time of {result.title} goes", f"Share of each phase by operator: {said}.", width)
    drawing.paragraph(workload_words(result))
    if result.report.plan:
        drawing.paragraph(f"Plan: {plan_text(result.report.plan)}")
    bounds = [bound for bound in BOUNDS if any(row.line.bound == bound for row in rows)]
    drawing.legend([(f"fill-{series(BOUNDS.index(bound))}", f"bound by {bound}" if at == 0 else bound) for at, bound in enumerate(bounds)])
    names = min(max(width_of(row.line.name, BODY) for row in rows) + 8, width * NAMES)
    room = width_of("100.0 %  1,000 ms", SMALL) + 6
    scale = Linear.over([0.0, *(row.share for row in rows)], drawing.left + names, drawing.right - room)
    for phase, some in phases.items():
        whole = float(result.report.phases[phase].time)
        drawing.bottom += 8
        drawing.text((drawing.left, drawing.bottom + BODY), f"{phase}: {significant(whole * 1e3)} ms", bold=True)
        drawing.bottom += BODY * 1.6
        for _, line, share in some:
            y = drawing.bottom + (ROW - BAR) / 2
            drawing.text((scale.start - 6, y + BAR - 3), fitted(line.name, names - 6, BODY), anchor="end")
            tip = f"{phase}, {line.name}: {significant(line.time * 1e3)} ms, {share * 100:.1f} %, bound by {line.bound}"
            tip += f", at {line.of_bound * 100:.0f} % of that bound" if line.of_bound is not None else ""
            drawing.rectangle(scale.at(0), y, scale.at(share) - scale.at(0), BAR, f"fill-{series(BOUNDS.index(line.bound))}", tip)
            where = scale.at(share) + 5, y + BAR - 3
            drawing.text(where, f"{share * 100:.1f} %", size=SMALL, tail=f"{significant(line.time * 1e3, 3)} ms")
            drawing.bottom += ROW
        drawing.line((scale.at(0), drawing.bottom - ROW * len(some)), (scale.at(0), drawing.bottom), "axis")
    drawing.bottom += 6
    drawing.paragraph(f"{result.standing.text[0].upper()}{result.standing.text[1:]}.")
    return drawing.svg()
