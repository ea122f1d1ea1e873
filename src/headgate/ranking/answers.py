"""What is answered: the best rows of one question, of many at once, and of many one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.arrays import Bools, Floats64, Ints, Ints32


class Answers(NamedTuple):
    """The best of question i: rows numbers[i, :counts[i]] and what they are worth, the best first."""

    numbers: Ints32
    values: Floats64
    counts: Ints


def no_answers(questions: int, width: int) -> Answers:
    """Make room for so many answers to each question."""
    return Answers(
        np.zeros((questions, width), np.int32), np.zeros((questions, width)), np.zeros(questions, np.int64)
    )


class RankedRows(NamedTuple):
    """Rows and their values."""

    rows: Ints
    values: Floats64

    def with_(self, other: RankedRows) -> RankedRows:
        """Put others behind."""
        return RankedRows(
            np.concatenate([self.rows, other.rows]), np.concatenate([self.values, other.values])
        )

    def where(self, kept: Bools) -> RankedRows:
        """Keep some."""
        return RankedRows(self.rows[kept], self.values[kept])

    def ordered(self) -> RankedRows:
        """Put the best first, equal ones by row."""
        return self.first(len(self.rows), self.rows)

    def first(self, k: int, places: NDArray[np.integer[Any]]) -> RankedRows:
        """Return the best k, equal ones by their places."""
        order = np.lexsort((places, -self.values))[:k]
        return RankedRows(self.rows[order], self.values[order])


class RankedMatches(NamedTuple):
    """Rows and values of events, given by place: by event, and for each the best first."""

    events: Ints
    rows: Ints
    values: Floats64

    def take(self, places: NDArray[Any]) -> RankedMatches:
        """Pick some, by place or by flag."""
        return RankedMatches(self.events[places], self.rows[places], self.values[places])
