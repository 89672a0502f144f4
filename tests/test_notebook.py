"""Python results print briefly, show a table in a notebook, and write the files of the commands."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest

import tco
from tests.cli import tco as command

SITE = Path(__file__).parents[1] / "reports/site"

PAIR = ["gb200-nvl72", "trn3-nl72x2"]
MAKE = {
    "compare": lambda: tco.compare(PAIR),
    "frontier": lambda: tco.frontier(PAIR),
    "uncertainty": lambda: tco.uncertainty(*PAIR, samples=100),
    "diff": lambda: tco.diff(*PAIR),
    "sensitivity": lambda: tco.sensitivity(PAIR[0], "usd_per_million_output_tokens", hold=True),
    "solve": lambda: tco.solve(PAIR[0], "terms.life", "tco_usd_per_chip_hour=+10%"),
    "map": lambda: tco.map_of(PAIR, ["terms.life", "terms.rate"]),
    "evaluate": lambda: tco.evaluate(PAIR[0]),
}


@pytest.mark.parametrize("name", MAKE)
def test_a_result_is_short_and_has_a_table(name):
    result = MAKE[name]()
    assert len(repr(result)) < 1000
    assert PAIR[0] in repr(result) or name == "diff"
    html = result._repr_html_()
    assert html.count("<tr") > 5
    assert len(html) < 30_000
    assert len(result.to_frame()) >= 5


def test_diff_of_systems_is_a_frame_whose_steps_add_up():
    difference = tco.diff(*PAIR)
    frame = difference.to_frame()
    start, end = difference.counterfactual.ends
    assert frame["change"].sum() == pytest.approx(end - start, rel=1e-9)


def test_a_comparison_writes_what_the_command_line_does(tmp_path):
    comparison = tco.compare(PAIR, set={"site.pue": "1.2"})
    comparison.export(tmp_path / "python.csv")
    assert (
        command("export", *PAIR, "--set", "site.pue=1.2", "-o", tmp_path / "command.csv").exit_code
        == 0
    )
    assert (tmp_path / "python.csv").read_bytes() == (tmp_path / "command.csv").read_bytes()
    assert (
        command(
            "plot", "cost", *PAIR, "--set", "site.pue=1.2", "-o", tmp_path / "cost.svg"
        ).exit_code
        == 0
    )
    assert comparison.plot("cost")._repr_svg_() == (tmp_path / "cost.svg").read_text()


def test_a_comparison_with_settings_shows_before_after_and_change():
    comparison = tco.compare(PAIR, set={"terms.rate": "0.2"})
    printed = command("compare", *PAIR, "--no-range", "--set", "terms.rate=0.2", "--format", "json")
    changes = [
        {
            "scenario": change.scenario,
            "before": change.before,
            "after": change.after,
            "median_before": None,
            "median_after": None,
        }
        for change in comparison.changes
    ]
    assert changes == json.loads(printed.stdout)["changes"]
    frame = comparison.changes_to_frame()
    for row in frame.itertuples():
        assert row.change_percent == pytest.approx((row.after / row.before - 1) * 100)
        words = f"{row.before:.4g} -> {row.after:.4g} (change {row.change_percent:+.1f} %)"
        assert f"{row.Index} {words}" in repr(comparison)
    assert comparison._repr_html_().count("<table") == 2
    assert "->" not in repr(tco.compare(PAIR))


def test_a_setting_that_changes_nothing_names_the_binding_input():
    comparison = tco.compare("trn3-nl72x2", set={"parts.trn3.hbm_bandwidth": "+20%"})
    assert "(change none)" in repr(comparison)
    (change,) = comparison.changes
    assert any("dma_bandwidth 4.224 TB/s binds" in note for note in change.notes)
    assert set(change.notes) <= set(comparison.results[0].notes)
    assert "binds" in comparison._repr_html_()


def test_wrong_input_raises_an_error(tmp_path):
    comparison = tco.compare(PAIR)
    for wrong in (
        lambda: comparison.plot("pie"),
        lambda: comparison.export(tmp_path / "a.doc"),
        lambda: tco.compare(comparison.results).export(tmp_path / "a.csv"),
    ):
        with pytest.raises(tco.UsageError):
            wrong()


# ---------------------------------------------------------------- Python of the docs
def python_blocks(page):
    """Return the Python of a page of the guide, in the order in which a reader runs it."""
    return re.findall(r"(?ms)^```python\n(.*?)^```$", (SITE / "pages" / page).read_text())


@pytest.mark.thorough
def test_python_of_the_guide_runs_from_its_first_block_to_its_last(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in python_blocks("guide/python.md"):
        exec(block, names)
    assert names["costs"].shape == (len(names["rates"]), len(names["prices"]))
    assert (np.diff(names["costs"]) > 0).all()  # dearer electricity, dearer tokens
    assert {"today.json", "page.html", "model.xlsx", "grid.png"} <= {
        path.name for path in tmp_path.iterdir()
    }


@pytest.mark.thorough
@pytest.mark.parametrize(
    "path", sorted((SITE / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem
)
def test_a_notebook_runs_from_its_first_cell_to_its_last(path):
    """As the site of docs runs it: a cell that raises stops it."""
    module_spec = importlib.util.spec_from_file_location("literate", SITE / "literate.py")
    literate = importlib.util.module_from_spec(module_spec)
    module_spec.loader.exec_module(literate)
    page = literate.noted(path)
    assert page.startswith("# ")
    assert page.count("<svg") >= 1
    assert page.count("<table") >= 2
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert all(
        f"```python\n{''.join(cell['source'])}\n```" in page
        for cell in cells
        if cell["cell_type"] == "code"
    )
    assert not any(cell.get("outputs") for cell in cells)  # what is kept is what was typed


def test_figure_of_one_scenario_refuses_a_comparison_of_two(tmp_path):
    bom_picture = tco.compare(PAIR[:1]).plot("bom")
    assert command("plot", "bom", PAIR[0], "-o", tmp_path / "bom.svg").exit_code == 0
    assert bom_picture == (tmp_path / "bom.svg").read_text()
    with pytest.raises(tco.UsageError, match="frontier"):
        tco.compare(PAIR).plot("bom")
