"""The sides of a value that predicates look at.

Spark compares an attribute and a literal after casting one of them, and which one depends on both types. We
do not know an attribute's type when a subscription is made, so a predicate is prepared for each type that
the attribute may turn out to have. A *facet* is one such view of a value, as a number on a line (a *key*):

    value       has the facets                                            key
    BOOL        BOOL, TEXT                                                0 or 1
    INT         INT, TEXT                                                 itself
    FLOAT       FLOAT                                                     its bits, in numeric order
    STRING      STRING, TEXT and, where the cast succeeds, STRING_INT,    its place among the texts that
                STRING_FLOAT, STRING_BOOL, STRING_DATE, STRING_TIMESTAMP  the filters name; the cast's key
    TIMESTAMP   TIMESTAMP                                                 microseconds since 1970
    any of them PRESENT, and ARRAY if it is one                           0

A predicate is true when the value has a facet on which its key lies in the predicate's set for that facet.
A value has at most one facet of each predicate, because the facets of a predicate are those of one literal
type. Where there is no such facet Spark would raise an error, and the predicate is NULL.
"""

from __future__ import annotations

import math
import struct
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from headgate.records.intervals import NUMBERS, TEXTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.records.intervals import Interval

_DOUBLE = struct.Struct("<d")
_BITS = struct.Struct("<q")


class Facet(IntEnum):
    """One view of a value."""

    PRESENT = 0
    ARRAY = 1
    BOOL = 2
    INT = 3
    FLOAT = 4
    STRING = 5
    TIMESTAMP = 6
    STRING_BOOL = 7
    STRING_INT = 8
    STRING_FLOAT = 9
    STRING_DATE = 10
    STRING_TIMESTAMP = 11
    TEXT = 12


TEXT_FACETS = frozenset({Facet.STRING, Facet.TEXT})
"""Facets whose keys are places among texts."""

FACETS_OF_KIND: tuple[frozenset[Facet], ...] = (
    frozenset({Facet.PRESENT, Facet.BOOL, Facet.TEXT}),
    frozenset({Facet.PRESENT, Facet.INT, Facet.TEXT}),
    frozenset({Facet.PRESENT, Facet.FLOAT}),
    frozenset(Facet) - {Facet.ARRAY, Facet.BOOL, Facet.INT, Facet.FLOAT, Facet.TIMESTAMP},
    frozenset({Facet.PRESENT, Facet.TIMESTAMP}),
    frozenset({Facet.PRESENT, Facet.ARRAY}),
)
"""The facets that a Boolean, a whole number, a double, a string, a timestamp and an array can have."""


def line(facet: Facet) -> Interval:
    """Return the whole line of a facet's keys."""
    return TEXTS if facet in TEXT_FACETS else NUMBERS


def float_keys(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Map doubles to whole numbers in Spark's order: -0.0 is 0.0, NaN equals NaN and comes last.

    >>> keys = float_keys(np.array([-1.0, -0.0, 0.0, 2.5, np.inf, np.nan]))
    >>> bool((np.diff(keys) >= 0).all()), keys[1] == keys[2]
    (True, np.True_)
    """
    canonical = np.where(np.isnan(values), np.nan, values + 0.0)
    bits = canonical.view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)


def float_key(value: float) -> int:
    """Map one double.

    >>> float_key(-2.5) == float_keys(np.array([-2.5]))[0]
    np.True_
    """
    bits: int = _BITS.unpack(_DOUBLE.pack(math.nan if math.isnan(value) else value + 0.0))[0]
    return bits ^ 2**63 - 1 if bits < 0 else bits
