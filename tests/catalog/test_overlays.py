"""A user's data folder replaces shipped data value by value."""

from __future__ import annotations

from tco import Catalogue, evaluate

QUOTE = "nitro-v6-400g,price,500,USD,400,650,2025-12,assumed,my-quote,,"


def test_own_value_replaces_the_shipped_one_and_leaves_the_rest(own_data, catalogue):
    own_data.parts(QUOTE)
    overlaid_catalogue = own_data.catalogue()
    assert overlaid_catalogue.part_input("nitro-v6-400g", "price", "2025-12").value == 500
    assert overlaid_catalogue.part_input(
        "nitro-v6-400g", "power", "2025-12"
    ) == catalogue.part_input("nitro-v6-400g", "power", "2025-12")
    assert overlaid_catalogue.parts.keys() == catalogue.parts.keys()


def test_own_value_replaces_a_whole_series(own_data, catalogue):
    assert len(catalogue.part_rows["ddr5-dimm", "price"]) > 1
    own_data.parts("ddr5-dimm,price,300,USD,,,2024-01,vendor,my-quote,,")
    assert own_data.catalogue().part_input("ddr5-dimm", "price", "2026-09").value == 300


def test_a_new_part_may_be_added(own_data):
    own_data.parts("my-switch,price,1,USD,,,2025-12,vendor,my-quote,,")
    assert "my-switch" in own_data.catalogue().parts


def test_the_price_moves_by_the_quantity(own_data, catalogue):
    """108 NICs of 50 USD more: nothing else of the bill follows the price of a part."""
    own_data.parts(QUOTE)
    before, after = (
        evaluate("trn3-nl72x2", catalogue=c).bill.price for c in (catalogue, own_data.catalogue())
    )
    assert abs(after - before - 108 * 50) < 1e-6


def test_line_of_an_own_price_is_marked_as_own(own_data):
    own_data.parts(QUOTE)
    result = evaluate("trn3-nl72x2", catalogue=own_data.catalogue())
    overlay_paths = [line.path for line in result.lines if line.overlay]
    assert len(overlay_paths) >= 1
    assert all("nitro-v6-400g" in path for path in overlay_paths)
    assert result.inputs["parts.nitro-v6-400g.price"].overlay


def test_the_last_folder_wins(tmp_path):
    folders = []
    for name, price in (("a", 100), ("b", 200)):
        (tmp_path / name / "parts").mkdir(parents=True)
        row = QUOTE.replace(",500,", f",{price},").replace(",400,650,", ",50,650,")
        (tmp_path / name / "parts" / "x.csv").write_text(
            "part,attribute,value,unit,low,high,as_of,kind,source,note,use\n" + row + "\n"
        )
        folders.append(tmp_path / name)
    assert Catalogue(folders).part_input("nitro-v6-400g", "price", "2025-12").value == 200
    assert Catalogue(folders[::-1]).part_input("nitro-v6-400g", "price", "2025-12").value == 100


def test_own_document_replaces_the_shipped_one(own_data, catalogue):
    ours, _ = catalogue.document("sites", "us-hyperscale", "site")
    text = ours.read_text(encoding="utf-8")
    overlay_path = own_data.write("sites/us-hyperscale.toml", text)
    assert own_data.catalogue().document("sites", "us-hyperscale", "site")[0] == overlay_path
    assert own_data.catalogue().is_overlay(overlay_path)
    assert not own_data.catalogue().is_overlay(ours)


def test_own_sources_add_to_the_shipped_ones(own_data, catalogue):
    own_data.write("sources.csv", "id,title,url,date\nmy-quote,A quote of mine,,2025-12\n")
    overlaid_catalogue = own_data.catalogue()
    assert overlaid_catalogue.source_title("my-quote") == "A quote of mine"
    assert overlaid_catalogue.sources.keys() == catalogue.sources.keys() | {"my-quote"}
    assert overlaid_catalogue.source_title("no id at all") == "no id at all"


def test_hash_changes_with_the_data(own_data, catalogue):
    empty = own_data.catalogue().hash()
    own_data.parts(QUOTE)
    quoted_hash = own_data.catalogue().hash()
    own_data.parts(QUOTE.replace("500", "501"))
    assert len({catalogue.hash(), quoted_hash, own_data.catalogue().hash()}) == 3
    assert empty == catalogue.hash()
