"""Time of the page of four headline racks, from scenarios to text, and of a frame of its what-if.

Run with `--benchmark-only`.
"""

from __future__ import annotations

import pytest

from tco.comparison.report_data import material_of
from tco.report.page.report import report_page
from tco.report.page.write import render_page
from tests.report.chromium import BINARY, WIDE, Opened, browser
from tests.scenario_helpers import HEADLINE

FRAME = 16.0  # milliseconds
FRAMES = """path => { const control = CONTROLS.get(path), times = [];
for (let place = 0; place <= 1000; place += 10) {
  moved.set(path, valueAt(control, place));
  const began = performance.now();
  settle();
  document.body.getBoundingClientRect();
  times.push(performance.now() - began);
}
moved.clear(); settle();
return times.sort((one, other) => one - other); }"""


def headline() -> str:
    return render_page(
        report_page(material_of(HEADLINE, None, None, {}), ["tco", "report"], ["tco", "compare"])
    )


def test_four_racks_on_a_page(benchmark):
    # the ranges of shipped scenarios are kept
    text = benchmark.pedantic(headline, rounds=3, warmup_rounds=1)
    assert "what-if" in text
    assert benchmark.stats.stats.min <= 5


@pytest.mark.skipif(BINARY is None, reason="Chromium is not installed")
@pytest.mark.parametrize(
    "path", ["terms.utilisation", "performance.trainium.launch_time", "workload.input_tokens"]
)
def test_a_frame_of_the_what_if(benchmark, tmp_path, path):
    """From an input that moves to all figures shown, in the middle of a hundred moves."""
    file = tmp_path / "report.html"
    file.write_text(headline(), encoding="utf-8")
    with browser() as running:
        opened_report = Opened(running, file, WIDE)
        times = benchmark.pedantic(lambda: opened_report.page.evaluate(FRAMES, path), rounds=1)
    assert times[len(times) // 2] <= FRAME
