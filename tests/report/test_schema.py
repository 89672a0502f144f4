"""Published schemas are those of the records of documents.

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
from tests.report.helpers import DOCUMENTS
from tests.report.schema import published_schema

for module in pkgutil.iter_modules(tco.report.__path__, "tco.report."):
    import_module(module.name)
NAMES = sorted(DOCUMENTS)


@pytest.mark.parametrize("name", NAMES)
def test_published_schema_is_that_of_the_record(name, file_regression):
    schema = published_schema(name)
    Draft202012Validator.check_schema(schema)
    file_regression.check(
        json.dumps(schema, indent=1) + "\n",
        fullpath=SCHEMAS / f"{name.replace('/', '-')}.json",
        encoding="utf-8",
        newline="",
    )


def test_every_published_schema_is_of_a_document():
    assert sorted(path.stem for path in SCHEMAS.glob("*.json")) == sorted(
        name.replace("/", "-") for name in NAMES
    )
