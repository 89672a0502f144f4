"""Searches in parallel threads whose evaluations are collected into common batches.

An engine that evaluates many parameter sets in one call spends its time on arithmetic instead of
on calls. Thirty least-squares searches together take a few times as long as one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

import numpy as np

from tco.core.types import AnyArray

Evaluate = Callable[[AnyArray], AnyArray]  # parameter sets -> predictions, a row per set
SearchResult = TypeVar("SearchResult")
Search = Callable[[Evaluate], SearchResult]


def batch_searches(
    evaluate: Evaluate, searches: Sequence[Search[SearchResult]]
) -> list[SearchResult]:
    """Run searches in threads, and evaluate their parameter sets in common batches.

    Args:
        evaluate: Evaluates parameter sets; never called by two threads at once.
        searches: Each is called with a function to evaluate with, and returns its result.

    Returns:
        Results in the order of `searches`.

    Raises:
        Exception: The first exception of a search. An exception of a batch is raised in every
            search whose parameter sets the batch holds.

    """
    if not searches:
        return []
    batches = _Batches(evaluate, searches)
    with ThreadPoolExecutor(len(searches)) as pool:
        return list(pool.map(batches.run_search, range(len(searches))))


class _Batches(Generic[SearchResult]):
    """Rounds of evaluations, one batch each, at a barrier where all searches wait.

    The thread of a search waits at the barrier with the parameter sets that it needs. When all
    threads have arrived, the last of them evaluates all parameter sets in one batch and splits the
    predictions by search. The thread of a search that has returned keeps arriving without a
    request, since the barrier waits for every thread. A round without any request ends all threads.
    """

    def __init__(self, evaluate: Evaluate, searches: Sequence[Search[SearchResult]]) -> None:
        self.evaluate = evaluate
        self.searches = searches
        # by the index of a search
        self.requests: dict[int, AnyArray] = {}
        self.responses: dict[int, AnyArray | BaseException] = {}
        self.all_have_returned = False
        self.barrier = threading.Barrier(len(searches), action=self._evaluate_batch)

    def run_search(self, search_index: int) -> SearchResult:
        """Run a search, then keep arriving at the barrier until all searches have returned."""
        try:
            return self.searches[search_index](
                lambda parameter_sets: self._request(search_index, parameter_sets)
            )
        finally:
            while not self.all_have_returned:
                self.barrier.wait()

    def _request(self, search_index: int, parameter_sets: AnyArray) -> AnyArray:
        """Return the predictions of parameter sets, evaluated in the batch of the next round."""
        self.requests[search_index] = parameter_sets
        self.barrier.wait()
        response = self.responses.pop(search_index)
        if isinstance(response, BaseException):
            raise response
        return response

    def _evaluate_batch(self) -> None:
        """Evaluate the requests of a round; runs in one thread while all others wait."""
        if not self.requests:
            self.all_have_returned = True
            return
        search_indices = sorted(self.requests)
        parameter_sets = [self.requests[search_index] for search_index in search_indices]
        self.requests.clear()
        starts = np.cumsum([len(search_sets) for search_sets in parameter_sets])[:-1]
        responses: Sequence[AnyArray | BaseException]
        try:
            responses = np.split(self.evaluate(np.concatenate(parameter_sets)), starts)
        except BaseException as error:
            # raised here, it would break the barrier for searches that are not to blame
            responses = [error] * len(search_indices)
        self.responses.update(zip(search_indices, responses, strict=True))
