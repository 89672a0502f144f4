"""The studies that come with the program, each run whole: its answer is today's."""

from __future__ import annotations

import pandas
import pytest

from tests.catalogue import CATALOGUE, read_toml
from tests.cli import document
from tests.cli import tco as cli

SHIPPED = {
    path.stem: path
    for path in (CATALOGUE.scenarios["trn3-nl72x2"].parent / "studies").glob("*.toml")
}
NAMES = sorted(SHIPPED)


def test_studies_are_shipped():
    assert len(NAMES) >= 10


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_answer_of_a_shipped_study_is_the_one_computed_today(name, tmp_path):
    study = read_toml(SHIPPED[name])
    for word in ("title", "question", "answer"):
        assert len(study[word]) > 20
    assert study["question"].endswith("?")
    sweep_document = document("sweep", name, "-o", tmp_path / "o")
    assert len(sweep_document["answer"]) == len(study["expect"]) >= 5
    assert [figure for figure in sweep_document["answer"] if not figure["holds"]] == []
    case_frame = pandas.read_parquet(tmp_path / "o")
    assert case_frame[study["report"]].notna().any().all(), "a metric that it reports has no value"


def test_a_shipped_study_is_found_by_its_name(tmp_path):
    done = cli("sweep", "memory-prices", "-o", tmp_path / "o")
    assert done.exit_code == 0, done.stderr
    assert "December 2027" in done.stdout
    assert "8 of the 8 figures of the answer are today's." in done.stdout
    assert read_toml(SHIPPED["memory-prices"])["question"] in done.stdout.replace("\n", " ")
    done = cli("sweep", "memory-price", "-o", tmp_path / "o")
    assert done.exit_code == 3
    assert "did you mean 'memory-prices'" in done.stderr
