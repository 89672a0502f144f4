"""The examples in docstrings of the studies' public functions hold."""

from __future__ import annotations

import doctest
import importlib
import sys

import pytest

import tco

STUDIES = ("frontier", "map_of", "sensitivity", "solve", "uncertainty")


@pytest.mark.parametrize("name", STUDIES)
def test_example_of_a_public_function_holds(name):
    function = getattr(tco, name)
    assert name in tco.__all__
    module = importlib.import_module(function.__module__)
    (example,) = (
        doc_test
        for doc_test in doctest.DocTestFinder(recurse=False).find(
            function, name, module=module, globs=vars(module)
        )
        if doc_test.examples
    )
    result = doctest.DocTestRunner().run(example, out=sys.stdout.write)
    assert result.attempted
    assert result.failed == 0
