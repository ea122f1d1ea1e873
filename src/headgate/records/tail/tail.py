"""The part of a live index that grows: filters that can be matched as soon as they are added.

One thread adds, any number of threads match, without locks: arrays are only appended to, an array that is
full is copied into a larger one, and a view of them is published last, as one reference. What a view counts
never changes again, so a reader that holds one sees exactly the filters of its moment.

All filters are gone through for an event. Most have *guards*, each a range or some texts on one attribute,
and fail the first. Nothing is ever taken out: who owns the tail says which filters are removed, and makes an
index from `programs` in time.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.contents.columns import Growing
from headgate.core.interning import TextPool
from headgate.records.programs.leaves import FACETS_OF_KIND, TEXT_FACETS, Facet, GlobLeaf, Quantifier
from headgate.records.programs.programs import GLOB, NOT_GLOB, TOP, Programs, starts, take
from headgate.records.programs.tokens import AND, MAX_HEIGHT, TRUE
from headgate.records.tail.events import ALL_BITS, Sides, encode_one, hash_bit, text_hash
from headgate.records.tail.kernels import (
    COLUMNS,
    ELEMENTS,
    FACET_MASK,
    GUARD_WORDS,
    KIND_MASK,
    LAST_BITS,
    LEAF_WORDS,
    ON_NULL,
    RANGE_WORDS,
    RUN_BITS,
    SKIP_BITS,
    TailArrays,
    match_tail,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    from headgate.core.arrays import Bools, Bytes, Ints32
    from headgate.core.values import Path
    from headgate.records.programs.intervals import Cut
    from headgate.records.programs.leaves import Leaf, SetLeaf
    from headgate.records.programs.tokens import Program
    from headgate.records.tail.events import Side

    Guard: TypeAlias = tuple[int, int, int, int]
    """The words of a guard; the first has the column and nothing below it."""

MOST_GUARDS = 16
"""Guards of an alternative, and alternatives of a filter; what more it joins is found out by its program."""
_TEXTS = tuple(int(facet) for facet in TEXT_FACETS)
_BESIDE = [
    sum(
        1 << other
        for other in Facet
        if other != facet and any({facet, other} <= kind for kind in FACETS_OF_KIND.values())
    )
    for facet in Facet
]
"""Of each facet the others, one bit each, that a value can have at the same time."""


class TailView(NamedTuple):
    """The filters of one moment."""

    arrays: TailArrays
    sides: Sides
    named: int
    texts: int

    @property
    def filters(self) -> int:
        """Count the filters."""
        return self.arrays.filters

    @property
    def attributes(self) -> list[Path]:
        """List the attributes that filters look at."""
        # Making the list is one step, so no attribute can come in between.
        return list(self.sides.of)[: self.named]


class Tail:
    """Filters by position: 0, 1, 2, … in the order in which they are added.

    >>> from headgate.records.language.parse import parse_filter
    >>> from headgate.records.programs.program import compile_program
    >>> from headgate.records.language.rewrite import normalise
    >>> tail = Tail()
    >>> tail.add(compile_program(normalise(parse_filter("age > 30 AND topic = 'news'"))))
    0
    >>> event = {("age",): 35, ("topic",): "news"}
    >>> tail.match_one(tail.view(), event, np.zeros(1, np.uint8)).tolist()
    [0]
    """

    def __init__(self, mark: str = "") -> None:
        self.mark = mark
        """What names mean, see `core/values.py`."""
        self._sides = Sides()
        # In the order of `TailArrays`.
        self._token_start, self._tokens, self._leaves, self._ranges = (Growing(np.int64) for _ in range(4))
        self._globs, self._guard_start, self._guards = (
            Growing(kind) for kind in (np.int16, np.int64, np.int64)
        )
        self._columns = [self._token_start, self._tokens, self._leaves, self._ranges]
        self._columns += [self._globs, self._guard_start, self._guards]
        self._token_start.append(0)
        self._guard_start.append(0)
        self._text_ends, self._text_data = Growing(np.int64), Growing(np.uint8)
        self._text_ends.append(0)
        self._texts: dict[str, tuple[int, int]] = {}
        self._publish(0)

    def __len__(self) -> int:
        """Count the filters."""
        return self._view.filters

    def view(self) -> TailView:
        """Return the filters of this moment."""
        return self._view

    def add(self, program: Program) -> int:
        """Add a filter and return its position; for one thread only."""
        number = self._view.filters
        # What was left of an `add` that failed is forgotten.
        for column, size in zip(self._columns, self._sizes, strict=True):
            column.size = size
        first = self._leaves.size // LEAF_WORDS
        guards = [self._add_leaf(leaf) for leaf in program.leaves]
        self._guards.extend(_guard_words(_required(program, guards)))
        self._guard_start.append(self._guards.size // GUARD_WORDS)
        self._tokens.extend([first + token if token >= 0 else token for token in program.tokens])
        self._token_start.append(self._tokens.size)
        self._publish(number + 1)
        return number

    def _publish(self, filters: int) -> None:
        columns = [column.array for column in (*self._columns, self._text_ends, self._text_data)]
        arrays = TailArrays._make([*columns, filters])
        self._view = TailView(arrays, self._sides, len(self._sides.of), self._text_ends.size - 1)
        self._sizes = [column.size for column in self._columns]

    def _add_leaf(self, leaf: Leaf) -> list[Guard]:
        """Append a leaf; returns its guards."""
        side = self._sides.side(leaf.path)
        guards: list[Guard] = []
        if isinstance(leaf, GlobLeaf):
            _ask(side.values, Facet.TEXT)
            kind, part, words = NOT_GLOB if leaf.negated else GLOB, self._globs, 1
        else:
            kind, part, words = leaf.quantifier | ON_NULL * leaf.on_null, self._ranges, RANGE_WORDS
        begin = part.size // words
        if isinstance(leaf, GlobLeaf):
            part.extend(leaf.tokens)
        else:
            guards = self._add_ranges(side, leaf)
        self._leaves.extend((kind, side.number, begin, part.size // words))
        return guards

    def _add_ranges(self, side: Side, leaf: SetLeaf) -> list[Guard]:
        """Append the ranges of a leaf; returns its guards.

        A value has one of the facets, and passes the guards of the others.
        """
        base, asked = COLUMNS * side.number, side.values
        if leaf.quantifier is not Quantifier.VALUE:
            base, asked = base + ELEMENTS, side.elements
            _ask(asked, Facet.PRESENT)
        guards: list[Guard] = []
        facets = sum(1 << facet for facet, _ in leaf.sets)
        ranges: list[int] = []
        for facet, intervals in leaf.sets:
            assert intervals, "a group without ranges would mean NULL"
            if facet != Facet.PRESENT:
                _ask(asked, facet)
            column, first = base + facet, len(ranges)
            hashes: list[int] = []
            for low, high in intervals:
                if facet in _TEXTS:
                    before, code = self._cut(low)
                    after, _ = self._cut(high)
                    # Only texts by themselves have hashes.
                    if after == before + 1 and not before & 1:
                        hashes.append(code)
                else:
                    before, after = low[0], high[0] - 1
                ranges += (column << RUN_BITS, before, after)
            ranges[first] |= len(intervals)
            if facets & _BESIDE[facet]:
                continue
            head = column << (SKIP_BITS + LAST_BITS)
            if facet not in _TEXTS:
                guards.append((head, ranges[first + 1], ranges[-1], ALL_BITS))
            elif len(hashes) == len(intervals):
                guards.append((head, min(hashes), max(hashes), sum(set(map(hash_bit, hashes)))))
        self._ranges.extend(ranges)
        if leaf.on_null or leaf.quantifier is Quantifier.ALL:
            return []
        if leaf.quantifier is Quantifier.VALUE:
            return guards
        # Of elements there are the bits of texts and nothing else.
        is_text = len(leaf.sets) == 1 and leaf.sets[0][0] in _TEXTS
        return [(head, 0, 0, bits) for head, _, _, bits in guards if is_text]

    def _cut(self, cut: Cut) -> tuple[int, int]:
        """Return the number of a cut, and the hash of its text."""
        top, text, after = cut
        if top:
            return TOP, 0
        known = self._texts.get(text)
        if known is None:
            data = text.encode()
            number = self._text_ends.size - 1
            self._text_data.size = int(self._text_ends.array[number])
            self._text_data.extend(np.frombuffer(data, np.uint8))
            self._text_ends.append(self._text_data.size)
            known = self._texts[text] = (2 * number, text_hash(data))
        return known[0] + after, known[1]

    def match_one(self, view: TailView, attributes: Mapping[Path, object], removed: Bytes) -> Ints32:
        """Match one event; returns the positions of the filters that hold, rising.

        removed[p] says that position p is passed over.
        """
        matches = np.empty(view.filters, np.int32)
        if not view.filters:
            return matches
        assert len(removed) >= view.filters
        event = encode_one(view.sides, view.named, attributes)
        return matches[: match_tail(view.arrays, event, removed, np.empty(MAX_HEIGHT, np.bool_), matches)]

    def programs(self, keep: Bools) -> Programs:
        """Return the kept ones of the first `len(keep)` filters, in columns; any thread may ask."""
        view = self._view
        arrays, filters = view.arrays, len(keep)
        assert filters <= view.filters
        token_start = arrays.token_start[: filters + 1]
        tokens = arrays.tokens[: token_start[-1]].astype(np.int32)
        leaves = arrays.leaves[: LEAF_WORDS * (int(tokens.max(initial=-1)) + 1)].reshape(-1, LEAF_WORDS)
        kind, sizes = leaves[:, 0] & KIND_MASK, leaves[:, 3] - leaves[:, 2]
        range_start = starts(np.where(kind < GLOB, sizes, 0))
        glob_start = starts(np.where(kind < GLOB, 0, sizes))
        ranges = arrays.ranges[: RANGE_WORDS * range_start[-1]].reshape(-1, RANGE_WORDS)
        offsets = arrays.text_offsets[: view.texts + 1]
        programs = Programs(
            token_start=token_start,
            tokens=tokens,
            leaf_kind=kind.astype(np.uint8),
            leaf_attribute=leaves[:, 1].astype(np.int32),
            leaf_on_null=(leaves[:, 0] & ON_NULL != 0).astype(np.uint8),
            range_start=range_start,
            range_facet=(ranges[:, 0] >> RUN_BITS & FACET_MASK).astype(np.uint8),
            range_low=ranges[:, 1],
            range_high=ranges[:, 2],
            glob_start=glob_start,
            glob_tokens=arrays.globs[: glob_start[-1]],
            texts=TextPool(offsets, arrays.text_data),
            attributes=tuple(view.attributes),
        )
        return take(programs, np.flatnonzero(keep))


def _ask(facets: list[int], facet: int) -> None:
    if facet not in facets:
        facets.append(int(facet))


def _required(program: Program, guards: list[list[Guard]]) -> list[list[Guard]]:
    """List alternatives: an event for which a program holds passes all guards of one of them."""
    stack: list[list[list[Guard]]] = []
    for token in program.tokens:
        if token >= 0:
            stack.append([guards[token]])
        elif token <= TRUE:
            stack.append([[]])
        else:
            right, left = stack.pop(), stack.pop()
            if token != AND:
                stack.append([*left, *right] if len(left) + len(right) <= MOST_GUARDS else [[]])
            elif len(left) == len(right) == 1:
                stack.append([[*left[0], *right[0]][:MOST_GUARDS]])
            else:
                # One of the two is enough: the one that has guards throughout, and fewer alternatives.
                stack.append(min(left, right, key=lambda each: ([] in each, len(each))))
        assert len(stack) <= MAX_HEIGHT
    assert len(stack) == 1, "pushes are one more than joins"
    return stack[0]


def _guard_words(alternatives: list[list[Guard]]) -> list[int]:
    """Return the words of the guards of a filter; of none, if one of its alternatives has none."""
    if [] in alternatives:
        return []
    words: list[int] = []
    for number, guards in enumerate(alternatives, 1):
        first = len(words)
        words.extend(chain.from_iterable(guards))
        words[-GUARD_WORDS] |= 1
        if number < len(alternatives):
            for skip, at in enumerate(range(len(words) - GUARD_WORDS, first - 1, -GUARD_WORDS), 1):
                words[at] |= skip << LAST_BITS
    return words
