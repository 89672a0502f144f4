"""The schemas that are published are those of the records that documents are made by;
`--force-regen` writes them anew.
"""

from __future__ import annotations

import json
import pkgutil
from importlib import import_module

import pytest
from jsonschema import Draft202012Validator

import tco.report
from tests.cli import SCHEMAS
from tests.report.helpers import DOCUMENTS, published_schema

for found in pkgutil.iter_modules(tco.report.__path__, "tco.report."):
    import_module(found.name)
NAMES = sorted(DOCUMENTS)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_published_is_the_schema_of_the_record(name, file_regression):
    schema = published_schema(name)
    Draft202012Validator.check_schema(schema)
    file_regression.check(
        json.dumps(schema, indent=1) + "\n",
        fullpath=SCHEMAS / f"{name.replace('/', '-')}.json",
        encoding="utf-8",
        newline="",
    )


def test_nothing_else_is_published():
    assert sorted(path.stem for path in SCHEMAS.glob("*.json")) == sorted(
        name.replace("/", "-") for name in NAMES
    )
