"""Searches that ask together: each runs in a thread of its own, and the engine is asked once all of them have a question.

An engine asked for many sets of parameters at once spends its time on numbers instead of on calls, so that thirty searches side by
side take a few times as long as one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

Array = np.ndarray[Any, Any]
Ask = Callable[[Array], Array]  # sets of parameters, a row each -> what the engine says, a row each
Found = TypeVar("Found")


class Meeting:
    """Where searches bring their questions: the last to come asks for all."""

    def __init__(self, ask: Ask, searches: int) -> None:
        self.ask, self.running = ask, searches
        self.asked: dict[int, Array] = {}  # by the number of the search
        self.answers: dict[int, Array | BaseException] = {}
        self.turn = threading.Condition()

    def put(self, number: int, sets: Array) -> Array:
        """Ask for some sets of parameters, and return the answer once there is one."""
        with self.turn:
            self.asked[number] = sets
            self.settle()
            self.turn.wait_for(lambda: number in self.answers)
            found = self.answers.pop(number)
        if isinstance(found, BaseException):
            raise found
        return found

    def leave(self) -> None:
        """Come no more: the others need not wait."""
        with self.turn:
            self.running -= 1
            self.settle()

    def settle(self) -> None:
        """Ask the engine if every search that still runs has a question; what goes wrong goes wrong for all of them."""
        if not self.asked or len(self.asked) < self.running:
            return
        numbers = sorted(self.asked)
        sets = [self.asked.pop(number) for number in numbers]
        try:
            made: Sequence[Array | BaseException] = np.split(self.ask(np.concatenate(sets)), np.cumsum([len(one) for one in sets])[:-1])
        except BaseException as error:
            made = [error] * len(numbers)
        self.answers.update(zip(numbers, made, strict=True))
        self.turn.notify_all()


def side_by_side(ask: Ask, searches: Sequence[Callable[[Ask], Found]]) -> list[Found]:
    """Run searches side by side, each of which is given what it asks with, and return what they find."""
    meeting = Meeting(ask, len(searches))

    def run(number: int) -> Found:
        try:
            return searches[number](lambda sets: meeting.put(number, sets))
        finally:
            meeting.leave()

    with ThreadPoolExecutor(max(len(searches), 1)) as pool:
        return list(pool.map(run, range(len(searches))))
