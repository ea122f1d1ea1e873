"""Specifications as programs: what parsing and compiling their texts gives, without either.

A leaf's sets are made facet by facet as half-open intervals of keys. A text is compared as a text only; a
whole number n also meets doubles and texts that are numbers (see `records.lowering`):

    cat = 'v17'            STRING      [before 'v17', after 'v17')
    num BETWEEN 10 AND 90  INT         [10, 91)
                           FLOAT       [key of 10.0, key of 90.0 + 1)
                           STRING_INT  [10, 91)

A negation is what these leave of the facet's line. Predicates of one operand that are equal are one leaf:
their operands are small numbers, so a table finds them without sorting. Others are left as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.interning import TextPool
from headgate.records.programs.decimals import SHORT_LIMIT, double_numbers
from headgate.records.programs.leaves import Facet, float_keys
from headgate.records.programs.programs import TOP, VALUE, Programs, starts
from headgate.records.programs.tokens import AND, OR
from headgate.workloads.records.specification import Operator, text_order, within

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from headgate.core.arrays import Ints
    from headgate.workloads.records.specification import Specification


_BOTTOM = -(2**63)
_NUMBER_FACETS = (Facet.INT, Facet.FLOAT, Facet.STRING_INT, Facet.DECIMAL)


class _Block(NamedTuple):
    """The ranges of some leaves on one facet, in the order of the leaves."""

    facet: Facet
    leaves: Ints
    counts: Ints
    low: Ints
    high: Ints


def programs(spec: Specification) -> Programs:
    """Make the program of each filter."""
    leaf, source = _leaves(spec)
    named = np.zeros(len(spec.attributes), np.bool_)
    named[spec.attribute] = True
    attribute = (np.cumsum(named) - 1)[spec.attribute[source]]
    texts, places = _texts(spec)
    blocks = list(_blocks(spec, source, places))
    counts = np.zeros(len(source), np.int64)
    begin = []
    for block in blocks:
        # Facets of a leaf lie one after another: each begins where those before it end.
        begin.append(counts[block.leaves])
        counts[block.leaves] += block.counts
    range_start = starts(counts)
    facet = np.empty(range_start[-1], np.uint8)
    low, high = np.empty(range_start[-1], np.int64), np.empty(range_start[-1], np.int64)
    for block, offset in zip(blocks, begin, strict=True):
        at = np.repeat(range_start[block.leaves] + offset, block.counts) + within(block.counts)
        facet[at], low[at], high[at] = block.facet, block.low, block.high
    token_start, tokens = _tokens(spec, leaf)
    return Programs(
        token_start=token_start,
        tokens=tokens,
        leaf_kind=np.full(len(source), VALUE, np.uint8),
        leaf_attribute=attribute.astype(np.int32),
        leaf_on_null=np.zeros(len(source), np.uint8),
        range_start=range_start,
        range_facet=facet,
        range_low=low,
        range_high=high,
        glob_start=np.zeros(len(source) + 1, np.int64),
        glob_tokens=np.zeros(0, np.int16),
        texts=texts,
        attributes=tuple(
            (each.name,) for each, used in zip(spec.attributes, named.tolist(), strict=True) if used
        ),
    )


def _leaves(spec: Specification) -> tuple[Ints, Ints]:
    """Return the leaf of each predicate, and a predicate of each leaf."""
    sizes = np.array([each.size for each in spec.attributes], np.int64)
    before, total = np.cumsum(sizes) - sizes, int(sizes.sum())
    (single,) = np.nonzero(np.diff(spec.operand_start) == 1)
    (longer,) = np.nonzero(np.diff(spec.operand_start) != 1)
    code = before[spec.attribute[single]] + spec.operands[spec.operand_start[single]]
    code += total * spec.operator[single].astype(np.int64)
    known = np.zeros(total * len(Operator), np.bool_)
    known[code] = True
    number = np.cumsum(known) - 1
    shared = int(known.sum())
    leaf = np.empty(spec.predicates, np.int64)
    leaf[single] = number[code]
    leaf[longer] = shared + np.arange(len(longer))
    source = np.empty(shared + len(longer), np.int64)
    source[leaf] = np.arange(spec.predicates)
    return leaf, source


def _tokens(spec: Specification, leaf: Ints) -> tuple[Ints, NDArray[np.int32]]:
    """Write `p AND p AND …` of each conjunction in postfix, and the conjunctions of each filter likewise."""
    sizes, conjunctions = np.diff(spec.predicate_start), np.diff(spec.conjunction_start)
    joined = (within(conjunctions) > 0).astype(np.int64)
    conjunction_at = starts(2 * sizes - 1 + joined)
    place = _places(spec, sizes)
    begin = np.repeat(conjunction_at[:-1], sizes)
    # Places of pushes within a conjunction are 0, 1, 3, 5, …; what lies between and after them is AND.
    tokens = np.full(conjunction_at[-1], AND, np.int32)
    tokens[begin + np.maximum(2 * place - 1, 0)] = leaf
    tokens[(conjunction_at[1:] - 1)[joined > 0]] = OR
    return conjunction_at[spec.conjunction_start], tokens


def _places(spec: Specification, sizes: Ints) -> Ints:
    """Place the predicates of each conjunction: NOT BETWEEN is an OR to the compiler, which puts it last."""
    late = spec.is_operator(Operator.NOT_BETWEEN).astype(np.int64)
    before = np.cumsum(late) - late
    before -= np.repeat(before[spec.predicate_start[:-1]], sizes)
    late_in_all = np.repeat(np.add.reduceat(late, spec.predicate_start[:-1]), sizes) if len(sizes) else late
    early = within(sizes) - before
    return np.where(late > 0, np.repeat(sizes, sizes) - late_in_all + before, early)


def _texts(spec: Specification) -> tuple[TextPool, Ints]:
    """Pool the texts that operands name, in their order; return it, and each value's place there."""
    is_text = np.array([each.is_text for each in spec.attributes])[spec.attribute]
    order = text_order(max((each.size for each in spec.attributes), default=0))
    known = np.zeros(len(order), np.bool_)
    known[order[spec.operands[np.repeat(is_text, np.diff(spec.operand_start))]]] = True
    # The empty text is where the line of texts begins, so only negations name it.
    first = [""] if bool((spec.is_operator(Operator.NE, Operator.NOT_IN) & is_text).any()) else []
    named = np.argsort(order)[known].tolist()
    return TextPool.build([*first, *(f"v{value}" for value in named)]), (
        np.cumsum(known)[order] - 1 + len(first)
    )


def _blocks(spec: Specification, source: Ints, places: Ints) -> Iterator[_Block]:
    is_text = np.array([each.is_text for each in spec.attributes])[spec.attribute[source]]
    negated = spec.is_operator(*(each for each in Operator if each.is_negation))[source]
    for text, negation in ((True, False), (True, True), (False, False), (False, True)):
        (leaves,) = np.nonzero((is_text == text) & (negated == negation))
        if not len(leaves):
            continue
        # In the order of facets.
        for facet in (Facet.STRING,) if text else _NUMBER_FACETS:
            keys = spec.operands
            if text:
                keys = 2 * places[keys]
            elif facet is Facet.FLOAT:
                keys = float_keys(keys.astype(np.float64))
            elif facet is Facet.DECIMAL:
                assert not len(keys) or max(-int(keys.min()), int(keys.max())) <= SHORT_LIMIT
                keys = 3 * double_numbers(keys.astype(np.float64)) + 1
            bottom = 0 if text else _BOTTOM
            counts, low, high = _intervals(spec, source[leaves], keys, bottom)
            if negation:
                counts, low, high = _complement(counts, low, high, bottom)
            if not text:
                # Programs keep ranges of numbers with both ends.
                high = np.where(high == TOP, TOP, high - 1)
            yield _Block(facet, leaves, counts, low, high)


def _intervals(spec: Specification, source: Ints, keys: Ints, bottom: int) -> tuple[Ints, Ints, Ints]:
    """List the intervals of some predicates or, for a negation, of what it negates; neighbours are merged."""
    first, last = spec.operand_start[source], spec.operand_start[source + 1] - 1
    lists = spec.is_operator(Operator.IN, Operator.NOT_IN)[source]
    counts = np.where(lists, last - first + 1, 1)
    low_at = np.repeat(first, counts) + within(counts)
    high_at = np.where(np.repeat(lists, counts), low_at, np.repeat(last, counts))
    low, high = keys[low_at], keys[high_at] + 1
    low[np.repeat(spec.is_operator(Operator.LE)[source], counts)] = bottom
    high[np.repeat(spec.is_operator(Operator.GE)[source], counts)] = TOP
    begins = within(counts) == 0
    begins[1:] |= low[1:] != high[:-1]
    ends = np.append(begins[1:], True)[: len(begins)]
    owner = np.repeat(np.arange(len(source)), counts)
    return np.bincount(owner[begins], minlength=len(source)), low[begins], high[ends]


def _complement(counts: Ints, low: Ints, high: Ints, bottom: int) -> tuple[Ints, Ints, Ints]:
    """Take intervals away from the line; none of them reaches its ends, so each leaf gets one gap more."""
    gaps = counts + 1
    place = within(gaps)
    gap_low, gap_high = np.full(len(place), bottom), np.full(len(place), TOP)
    gap_low[place > 0] = high
    gap_high[place < np.repeat(counts, gaps)] = low
    return gaps, gap_low, gap_high


def check(spec: Specification) -> None:
    """Assert the invariants."""
    for begins, size in (
        (spec.conjunction_start, len(spec.predicate_start) - 1),
        (spec.predicate_start, spec.predicates),
        (spec.operand_start, len(spec.operands)),
    ):
        assert begins[0] == 0
        assert begins[-1] == size
        assert bool((np.diff(begins) > 0).all())
    assert len(spec.operator) == spec.predicates == len(spec.operand_start) - 1
    sizes = np.diff(spec.predicate_start)
    conjunctions = np.diff(spec.conjunction_start)
    assert bool((sizes[np.repeat(conjunctions, conjunctions) > 1] > 1).all())
    _check_attributes(spec, sizes, conjunctions)
    _check_operands(spec)


def _check_attributes(spec: Specification, sizes: Ints, conjunctions: Ints) -> None:
    count = len(spec.attributes)
    named = np.repeat(np.arange(len(sizes)), sizes) * count + spec.attribute
    assert len(np.unique(named)) == len(named), "attributes of a conjunction differ"
    first = spec.attribute[spec.predicate_start[:-1]]
    begun = np.repeat(np.arange(spec.filters), conjunctions) * count + first
    assert len(np.unique(begun)) == len(begun), "conjunctions of a filter begin differently"


def _check_operands(spec: Specification) -> None:
    counts = np.diff(spec.operand_start)
    is_text = np.array([each.is_text for each in spec.attributes])[spec.attribute]
    ranges = spec.is_operator(*(each for each in Operator if each.is_range))
    assert not bool((ranges & is_text).any()), "a range is about a number"
    assert bool((counts[spec.is_operator(Operator.BETWEEN, Operator.NOT_BETWEEN)] == 2).all())
    plain = spec.is_operator(Operator.EQ, Operator.NE, Operator.GE, Operator.LE)
    assert bool((counts[plain] == 1).all())
    sizes = np.array([each.size for each in spec.attributes])[spec.attribute]
    assert bool((spec.operands >= 0).all())
    assert bool((spec.operands < np.repeat(sizes, counts)).all())
    as_text = text_order(max((each.size for each in spec.attributes), default=1))[spec.operands]
    places = np.where(np.repeat(is_text, counts), as_text, spec.operands)
    inside = np.repeat(np.arange(len(counts)), counts)
    steps = np.diff(places)[inside[1:] == inside[:-1]]
    lists = spec.is_operator(Operator.IN, Operator.NOT_IN)[inside[1:][inside[1:] == inside[:-1]]]
    assert bool((steps[lists] > 0).all()), "a list ascends"
    assert bool((steps >= 0).all()), "a range ascends"
