"""The baseline of the record index: look at every filter, and leave it at the first predicate that fails.

The columns of a specification are narrowed to the smallest types that hold them, so that the scan reads as
little memory as it can. It needs no encoding and gives every filter its due of early exit, which is what an
index has to beat.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.measure import best
from headgate.core.jit import kernel
from headgate.records.programs.programs import starts
from headgate.workloads.records.specification import Operator, Specification

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.arrays import Ints


__all__ = [
    "SELECTIVE",
    "WRITTEN",
    "Scan",
    "Scanned",
    "most_selective_first",
    "scan",
    "scan_all",
    "scan_events",
]

WRITTEN, SELECTIVE = "as written", "most selective first"
"""Orders of the predicates of a conjunction."""


class Scan(NamedTuple):
    """A specification in narrow columns; see there."""

    conjunction_start: NDArray[np.int32]
    predicate_start: NDArray[np.int32]
    attribute: NDArray[np.uint8]
    operator: NDArray[np.uint8]
    operand_start: NDArray[np.int32]
    operands: NDArray[np.int32]


def scan(spec: Specification) -> Scan:
    """Narrow the columns of a specification."""
    return Scan(
        spec.conjunction_start.astype(np.int32),
        spec.predicate_start.astype(np.int32),
        spec.attribute.astype(np.uint8),
        spec.operator,
        spec.operand_start.astype(np.int32),
        spec.operands.astype(np.int32),
    )


def most_selective_first(spec: Specification, sample: Ints) -> Specification:
    """Put the predicates of each conjunction into the order in which events of a sample fail them."""
    share = _shares(spec, sample)
    sizes = np.diff(spec.predicate_start)
    order = np.lexsort((share, np.repeat(np.arange(len(sizes)), sizes)))
    counts = np.diff(spec.operand_start)[order]
    begins = starts(counts)
    places = np.repeat(spec.operand_start[order] - begins[:-1], counts) + np.arange(begins[-1])
    return spec._replace(
        attribute=spec.attribute[order],
        operator=spec.operator[order],
        operand_start=begins,
        operands=spec.operands[places],
    )


def _shares(spec: Specification, sample: Ints) -> NDArray[np.float64]:
    """Return the share of the sample that satisfies each predicate."""
    sizes = np.array([each.size for each in spec.attributes], np.int64)
    base = starts(sizes)
    seen = np.zeros(base[-1])
    for place, column in enumerate(sample.T):
        seen[base[place] : base[place + 1]] = np.bincount(column[column >= 0], minlength=sizes[place])
    seen /= len(sample)
    before = np.append(0.0, np.cumsum(seen))
    of_operand = np.repeat(base[spec.attribute], np.diff(spec.operand_start)) + spec.operands
    listed = np.add.reduceat(seen[of_operand], spec.operand_start[:-1])
    first, last = of_operand[spec.operand_start[:-1]], of_operand[spec.operand_start[1:] - 1]
    low = np.where(spec.is_operator(Operator.LE), base[spec.attribute], first)
    high = np.where(spec.is_operator(Operator.GE), base[spec.attribute + 1] - 1, last)
    ranges = spec.is_operator(*(each for each in Operator if each.is_range))
    positive = np.where(ranges, before[high + 1] - before[low], listed)
    present = (before[base[1:]] - before[base[:-1]])[spec.attribute]
    negations = spec.is_operator(*(each for each in Operator if each.is_negation))
    return np.where(negations, present - positive, positive)


class Scanned(NamedTuple):
    """What the scan found for some events, and the microseconds an event by the order of predicates."""

    matches: list[NDArray[np.int32]]
    micros: dict[str, float]

    def best(self) -> tuple[float, str]:
        """Return the better time, and its order."""
        order = min(self.micros, key=self.micros.__getitem__)
        return self.micros[order], order


def scan_all(spec: Specification, sample: Ints, events: Ints, times: int = 3) -> Scanned:
    """Match some events by the scan, in both orders; `sample` and `events` are rows of numbers."""
    drawn = np.ascontiguousarray(events, np.int32)
    found: list[list[NDArray[np.int32]]] = []
    micros: dict[str, float] = {}
    for order in (WRITTEN, SELECTIVE):
        filters = scan(spec if order == WRITTEN else most_selective_first(spec, sample))
        # Pages of it that no match is written to are never made.
        out = np.empty(len(drawn) * spec.filters, np.int32)
        counts = np.zeros(len(drawn), np.int64)
        micros[order] = best(partial(scan_events, filters, drawn, out, counts), times) / len(drawn) * 1e6
        found.append([part.copy() for part in np.split(out[: counts.sum()], np.cumsum(counts)[:-1])])
    if not all(np.array_equal(ours, theirs) for ours, theirs in zip(*found, strict=True)):
        raise AssertionError("the two orders of the scan find different matches")
    return Scanned(found[0], micros)


@kernel
def scan_events(filters: Scan, events: NDArray[np.int32], out: NDArray[np.int32], counts: Ints) -> int:
    """Write the filters that each event matches, one event after another; returns how many in all.

    Operands are not negative, so only what an event lacks must be told apart where a negative number fits.
    """
    conjunction_start, predicate_start = filters.conjunction_start, filters.predicate_start
    attribute, operator = filters.attribute, filters.operator
    operand_start, operands = filters.operand_start, filters.operands
    n = 0
    for e in range(len(events)):
        event = events[e]
        before = n
        for f in range(len(conjunction_start) - 1):
            found = False
            for c in range(conjunction_start[f], conjunction_start[f + 1]):
                holds = True
                for p in range(predicate_start[c], predicate_start[c + 1]):
                    value = event[attribute[p]]
                    op = operator[p]
                    at = operand_start[p]
                    if op == 0:
                        holds = value == operands[at]
                    elif op == 2:
                        holds = operands[at] <= value <= operands[at + 1]
                    elif op == 3:
                        holds = value >= operands[at]
                    elif op == 4:
                        holds = 0 <= value <= operands[at]
                    elif op == 5:
                        holds = value >= 0 and value != operands[at]
                    elif op == 7:
                        holds = 0 <= value < operands[at] or value > operands[at + 1]
                    else:
                        listed = False
                        for i in range(at, operand_start[p + 1]):
                            if operands[i] == value:
                                listed = True
                                break
                        holds = listed == (op == 1) and value >= 0
                    if not holds:
                        break
                if holds:
                    found = True
                    break
            if found:
                out[n] = f
                n += 1
        counts[e] = n - before
    return n
