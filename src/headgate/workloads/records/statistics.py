"""Statistics of specified workloads, and the obvious way to evaluate a specification."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.workloads.records.specification import Operator

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.workloads.records.specification import Specification
    from headgate.workloads.records.synthetic import Synthetic

    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

__all__ = ["matches", "measure"]


def matches(spec: Specification, event: Ints) -> Bools:
    """Tell which filters an event matches, given as its row of `Synthetic.numbers`.

    Looks at every operand of every filter.
    """
    if not spec.filters:
        return np.zeros(0, np.bool_)
    first = spec.operand_start[:-1]
    value = event[spec.attribute]
    low, high = spec.operands[first], spec.operands[spec.operand_start[1:] - 1]
    listed = np.logical_or.reduceat(spec.operands == np.repeat(value, np.diff(spec.operand_start)), first)
    inside = (value >= low) & (value <= high)
    inside |= spec.is_operator(Operator.GE) & (value >= low)
    inside |= spec.is_operator(Operator.LE) & (value <= high)
    ranges = spec.is_operator(*(each for each in Operator if each.is_range))
    negations = spec.is_operator(*(each for each in Operator if each.is_negation))
    # A predicate over an attribute that is missing is NULL, negated or not.
    holds = (np.where(ranges, inside, listed) != negations) & (value >= 0)
    conjunctions = np.logical_and.reduceat(holds, spec.predicate_start[:-1])
    return np.asarray(np.logical_or.reduceat(conjunctions, spec.conjunction_start[:-1]), np.bool_)


def measure(workload: Synthetic, filters: int, events: int, seed: int) -> dict[str, float]:
    """Measure a workload: its filters, its events, and how many filters an event matches."""
    spec = workload.specification(np.arange(filters), seed)
    drawn = workload.numbers(np.arange(events), seed)
    shares = np.bincount(spec.operator, minlength=len(Operator)) / spec.predicates
    ranges = spec.is_operator(*(each for each in Operator if each.is_range))
    negations = spec.is_operator(*(each for each in Operator if each.is_negation))
    first = spec.predicate_start[spec.conjunction_start[:-1]]
    lists = spec.is_operator(Operator.IN, Operator.NOT_IN)
    found = np.array([np.count_nonzero(matches(spec, event)) for event in drawn])
    return {
        "matches an event": found.mean(),
        "matches, standard error": found.std() / np.sqrt(events),
        "matches, median": float(np.median(found)),
        "attributes an event": (drawn >= 0).sum(axis=1).mean(),
        "predicates a conjunction": spec.predicates / (len(spec.predicate_start) - 1),
        "filters with OR": (np.diff(spec.conjunction_start) > 1).mean(),
        "filters with ranges only": np.logical_and.reduceat(ranges, first).mean(),
        "filters with negations only": np.logical_and.reduceat(negations, first).mean(),
        "values a list": np.diff(spec.operand_start)[lists].mean() if lists.any() else 0.0,
        **{f"predicates with {each.name}": share for each, share in zip(Operator, shares, strict=True)},
    }
