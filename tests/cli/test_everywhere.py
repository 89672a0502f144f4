"""Whatever names a system names its variants, in every command; a rack that does not fit is an entry with its reason."""

from __future__ import annotations

import pytest

from tests.cli import document, tco

FAST = "trn3-nl72x2@switch=gen2"


@pytest.mark.parametrize(
    "arguments",
    [
        ("price",),
        ("bom",),
        ("fabric",),
        ("systems", "show"),
        ("inputs",),
    ],
    ids=" ".join,
)
def test_a_variant_after_the_id_is_the_option(arguments):
    """The same answer, but for the name it is given under."""
    named, chosen = (document(*arguments, *words) for words in ((FAST,), ("trn3-nl72x2", "--variant", "switch=gen2")))
    for found in (named, chosen):
        for key in ("scenario", "title", "system", "state"):
            found.pop(key, None)
    assert named == chosen
    assert named != document(*arguments, "trn3-nl72x2")


def test_a_frontier_of_a_variant():
    (frontier,) = document("frontier", FAST)["frontiers"]
    assert frontier["scenario"] == FAST
    assert frontier["points"]


def test_a_variant_that_is_none_is_refused():
    for command in (("bom",), ("fabric",), ("frontier",), ("compare",)):
        done = tco(*command, "trn3-nl72x2@swtch=gen2")
        assert (done.exit_code, done.stdout) == (3, "")
        assert "did you mean 'switch'?" in done.stderr


def test_a_rack_that_does_not_fit_is_a_frontier_without_points():
    misfit, fits = document("frontier", "gb200-nvl72", "h200-hgx8", "--set", "site=us-air-hall")["frontiers"]
    assert (misfit["points"], misfit["tco_usd_per_used_chip_hour"]) == ([], None)
    assert any("a rack position takes 50 kW" in note for note in misfit["notes"])
    assert fits["points"]


def test_what_is_priced_at_another_date_is_cheapest_for_itself(tmp_path):
    """Prices of one year are no offer in another."""
    documents = 'site = "us-hyperscale"\nterms = "hyperscaler-2025-12"\nworkload = "deepseek-v3-8k-1k"\ncluster = "tor-100g-16k"\n'
    later = tmp_path / "later.toml"
    later.write_text(f'system = "h200-hgx8"\n{documents}[set]\n"terms.date" = "2026-09"\n')
    for frontier in document("frontier", "gb200-nvl72", str(later))["frontiers"]:
        assert all(point["cheapest"] for point in frontier["points"])
    assert not all(point["cheapest"] for point in document("frontier", "gb200-nvl72", "h200-hgx8")["frontiers"][1]["points"])
