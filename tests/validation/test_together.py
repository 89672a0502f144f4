"""Searches that ask together find what each finds alone."""

import numpy as np
import pytest

from tco.validation.batched_searches import batch_searches


def newton(start, root, calls):
    """A search for the square root of a number, in as many steps as it needs."""

    def search(ask):
        estimate = start
        for _ in range(60):
            value, slope = ask(np.array([[estimate], [estimate + 1e-6]]))[:, 0]
            step = (value - root**2) / ((slope - value) / 1e-6)
            estimate -= step
            if abs(step) < 1e-9:
                break
            calls.append(1)
        return estimate

    return search


def test_searches_of_different_length_find_their_own_answers():
    calls, batches = [], []

    def ask(sets):
        batches.append(len(sets))
        return sets**2

    roots = [1.0, 2.0, 30.0, 400.0, 5e4]
    search_results = batch_searches(ask, [newton(1.0, root, calls) for root in roots])
    assert search_results == pytest.approx(roots, rel=1e-6)
    assert batches[0] == 2 * len(roots)  # all of them in one question
    assert batches[-1] == 2  # the longest ends alone
    assert len(batches) < len(calls)


def test_one_search_and_none():
    assert batch_searches(lambda sets: sets**2, [newton(3.0, 7.0, [])]) == pytest.approx([7.0])
    assert batch_searches(lambda sets: sets**2, []) == []


def test_a_search_that_never_asks_does_not_hold_up_the_others():
    assert batch_searches(
        lambda sets: sets**2, [lambda _: 0.0, newton(1.0, 2.0, [])]
    ) == pytest.approx([0.0, 2.0])


def test_what_goes_wrong_in_the_engine_is_raised():
    def ask(sets):
        if (sets > 10).any():
            raise ValueError("too far")
        return sets**2

    with pytest.raises(ValueError, match="too far"):
        batch_searches(ask, [newton(1.0, 2.0, []), newton(1.0, 100.0, [])])


def test_what_goes_wrong_in_one_search_is_raised_and_the_others_end():
    def broken(ask):
        ask(np.array([[1.0]]))
        raise RuntimeError("lost")

    with pytest.raises(RuntimeError, match="lost"):
        batch_searches(lambda sets: sets**2, [broken, newton(1.0, 9.0, [])])
