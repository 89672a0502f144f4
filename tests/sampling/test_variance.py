"""Sobol indices against closed forms and against SALib on the same samples."""

from __future__ import annotations

import numpy as np
import pytest
from SALib.analyze.sobol import first_order, total_order
from SALib.test_functions import Ishigami, Sobol_G

from tco.sampling.drivers import design, indices

G = np.array([0, 1, 4.5, 9, 99, 99, 99, 99])


def ishigami_indices(a=7.0, b=0.1):
    """Variances of Ishigami and Homma (1990), by input alone and together."""
    first_variances = np.array([(1 + b * np.pi**4 / 5) ** 2 / 2, a**2 / 8, 0])
    both = 8 * b**2 * np.pi**8 / 225
    total_variance = first_variances.sum() + both
    return first_variances / total_variance, (
        first_variances + np.array([both, 0, both])
    ) / total_variance


def g_indices():
    """Variances of the product of Saltelli and Sobol (1995)."""
    first_variances = 1 / (3 * (1 + G) ** 2)
    total_variance = np.prod(1 + first_variances) - 1
    return first_variances / total_variance, first_variances * np.prod(1 + first_variances) / (
        1 + first_variances
    ) / total_variance


CASES = {
    "ishigami": (Ishigami.evaluate, 3, (-np.pi, np.pi), ishigami_indices()),
    "g": (lambda rows: Sobol_G.evaluate(rows, G), 8, (0.0, 1.0), g_indices()),
}


def samples(inputs, low, high, count=4096):
    return [low + (high - low) * part for part in design(count, inputs, 3)]


@pytest.mark.parametrize("name", CASES)
def test_the_indices_are_those_of_the_closed_form(name):
    function, inputs, (low, high), (first, total) = CASES[name]
    sobol_indices = indices(function, *samples(inputs, low, high))
    assert sobol_indices.first == pytest.approx(first, abs=0.01)
    assert sobol_indices.total == pytest.approx(total, abs=0.01)


@pytest.mark.parametrize("name", CASES)
def test_the_indices_are_those_of_another_library_on_the_same_samples(name):
    function, inputs, (low, high), _ = CASES[name]
    a, b = samples(inputs, low, high, 256)
    sobol_indices = indices(function, a, b)
    at_a, at_b = function(a), function(b)
    middle = np.concatenate((at_a, at_b)).mean()
    for column in range(inputs):
        mixed = a.copy()
        mixed[:, column] = b[:, column]
        theirs = [part - middle for part in (at_a, function(mixed), at_b)]
        assert sobol_indices.first[column] == pytest.approx(
            float(first_order(*theirs)), rel=1e-9, abs=1e-12
        )
        assert sobol_indices.total[column] == pytest.approx(
            float(total_order(*theirs)), rel=1e-9, abs=1e-12
        )


def test_the_error_covers_the_closed_form_and_falls_with_the_sample():
    function, inputs, (low, high), (first, total) = CASES["ishigami"]
    coarse_indices, fine_indices = (
        indices(function, *samples(inputs, low, high, count)) for count in (256, 4096)
    )
    for sobol_indices in (coarse_indices, fine_indices):
        assert np.all(np.abs(sobol_indices.first - first) <= 3 * sobol_indices.first_error)
        assert np.all(np.abs(sobol_indices.total - total) <= 3 * sobol_indices.total_error)
    assert fine_indices.first_error == pytest.approx(coarse_indices.first_error / 4, rel=0.2)


def test_a_constant_has_no_indices():
    sobol_indices = indices(lambda rows: np.ones(len(rows)), *design(8, 2, 0))
    assert not sobol_indices.first.any()
    assert not sobol_indices.total.any()


def test_a_seed_gives_the_same_samples():
    assert np.array_equal(design(16, 3, 5)[1], design(16, 3, 5)[1])
    assert not np.array_equal(design(16, 3, 5)[1], design(16, 3, 6)[1])
