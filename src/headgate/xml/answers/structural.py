"""Structural semijoins: what of some nodes takes part in an embedding, by structural ids alone.

The nodes that could stand for each node of a pattern come sorted by `pre`. A tree has no other constraints
than its edges, so one pass from the leaves up and one from the roots down leave exactly what takes part. Each
edge is a merge of two sorted lists, in one pass over both:

- below: what ends last among those that began before must not have ended yet;
- child: so must what began last one level up.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.core.jit import kernel
from headgate.xml.language.model import CHILD, CONT, ID, ROOT, VAL, Node, Pattern, StructuralId

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headgate.core.arrays import Bools, Ints, Ints32

    Texts = Sequence[tuple[str, ...] | None]


class Ids(NamedTuple):
    """Structural ids, sorted by `pre`, each once."""

    pre: Ints32
    post: Ints32
    level: Ints32

    def take(self, which: Bools | Ints) -> Ids:
        """Return some of them."""
        return Ids(self.pre[which], self.post[which], self.level[which])


class Flat(NamedTuple):
    """Candidates of all nodes of a pattern: those of node n are from offsets[n] to offsets[n + 1].

    `ends` is the last node of the subtree, `post + level`.
    """

    offsets: Ints
    pre: Ints32
    ends: Ints32
    level: Ints32


class Shape(NamedTuple):
    """The edges of a pattern as arrays: the parent of each node, and whether it is a child of it."""

    parents: Ints32
    child: Bools


@lru_cache(maxsize=1024)
def shape_of(pattern: Pattern) -> Shape:
    """Return the edges of a pattern as arrays."""
    return Shape(
        np.array([node.parent for node in pattern.nodes], np.int32),
        np.array([node.axis == CHILD for node in pattern.nodes], np.bool_),
    )


def kept(pattern: Pattern, candidates: Sequence[Ids]) -> list[Bools] | None:
    """Tell for each node of a pattern which candidates take part in an embedding; None if there is none.

    Candidates have the labels and satisfy the tests already; only axes are looked at.
    """
    flat = flattened(candidates)
    keep = np.ones(len(flat.pre), np.bool_)
    if not reduce_flat(shape_of(pattern), flat, keep):
        return None
    return [keep[start:stop] for start, stop in pairwise(flat.offsets.tolist())]


def flattened(candidates: Sequence[Ids]) -> Flat:
    """Put candidates one behind the other."""
    offsets = np.zeros(len(candidates) + 1, np.int64)
    np.cumsum([len(ids.pre) for ids in candidates], out=offsets[1:])
    none = [np.empty(0, np.int32)]
    pre, post, level = (
        np.concatenate([*none, *(ids[column] for ids in candidates)]).astype(np.int32, copy=False)
        for column in range(3)
    )
    return Flat(offsets, pre, post + level, level)


@kernel
def reduce_flat(shape: Shape, flat: Flat, keep: Bools) -> bool:
    """Clear `keep` where a candidate takes part in no embedding of what is kept; false if there is none."""
    parents, child = shape.parents, shape.child
    offsets, pre, ends, level = flat.offsets, flat.pre, flat.ends, flat.level
    deepest = 0
    for each in level:
        deepest = max(deepest, each)
    latest = np.empty(deepest + 2, np.int64)  # the last one that began, by level
    marked = np.zeros(len(keep), np.bool_)
    for node in range(len(parents) - 1, -1, -1):
        start, stop = offsets[node], offsets[node + 1]
        if parents[node] < 0 and child[node]:
            for low in range(start, stop):
                keep[low] &= level[low] == 0
        some = False
        for low in range(start, stop):
            some |= keep[low]
        if not some:
            return False
        if parents[node] < 0:
            continue
        above, above_stop = offsets[parents[node]], offsets[parents[node] + 1]
        if child[node]:
            latest[:] = -1
            high = above
            for low in range(start, stop):
                if not keep[low]:
                    continue
                while high < above_stop and pre[high] < pre[low]:
                    latest[level[high]] = high
                    marked[high] = False
                    high += 1
                one = latest[level[low] - 1] if level[low] > 0 else -1
                if one >= 0 and ends[one] >= pre[low]:
                    marked[one] = True
            for one in range(high, above_stop):
                marked[one] = False
            for one in range(above, above_stop):
                keep[one] &= marked[one]
        else:
            low = start
            for high in range(above, above_stop):
                while low < stop and (not keep[low] or pre[low] <= pre[high]):
                    low += 1
                keep[high] &= low < stop and pre[low] <= ends[high]
    for node in range(len(parents)):
        if parents[node] < 0:
            continue
        start, stop = offsets[node], offsets[node + 1]
        high, above_stop = offsets[parents[node]], offsets[parents[node] + 1]
        last = -1
        if child[node]:
            latest[:] = -1
        for low in range(start, stop):
            while high < above_stop and pre[high] < pre[low]:
                if keep[high]:
                    last = max(last, ends[high])
                    latest[level[high]] = high
                high += 1
            if child[node]:
                one = latest[level[low] - 1] if level[low] > 0 else -1
                keep[low] &= one >= 0 and ends[one] >= pre[low]
            else:
                keep[low] &= last >= pre[low]
    return True


class Tuples(NamedTuple):
    """Names of columns, rows of what is returned, and whether these are all.

    Rows are distinct by the nodes that return something, not by what they return, and in document order of
    these nodes, the first one first. A `val` and a `cont` is a text, an `id` a StructuralId.
    """

    names: tuple[str, ...]
    rows: tuple[tuple[str | StructuralId, ...], ...]
    complete: bool

    def plain(self) -> list[dict[str, Any]]:
        """Return the rows by name, for JSON."""
        return [
            {
                name: list(value) if isinstance(value, StructuralId) else value
                for name, value in zip(self.names, row, strict=True)
            }
            for row in self.rows
        ]

    def written(self) -> list[tuple[str, ...]]:
        """Return the rows as text: an id as its numbers, with commas between."""
        return [
            tuple([each if isinstance(each, str) else ",".join(map(str, each)) for each in row])
            for row in self.rows
        ]


class Listing:
    """How what a pattern returns is listed, worked out once.

    Whatever is no ancestor of a returning node can be left out: it embeds, wherever its parent goes. Of the
    rest, one returning node after the other is bound to one id, and what no longer takes part is left out, so
    that there is no dead end, and no combination comes twice.
    """

    def __init__(self, pattern: Pattern) -> None:
        """Take what leads to a returning node."""
        self.names = column_names(pattern)
        self._returning = pattern.returning
        self._things = [
            (slot, node, what)
            for slot, node in enumerate(self._returning)
            for what in pattern.nodes[node].returns
        ]
        kept = set(self._returning)
        for index in range(len(pattern.nodes) - 1, -1, -1):
            if index in kept and pattern.nodes[index].parent != ROOT:
                kept.add(pattern.nodes[index].parent)
        self._chosen = sorted(kept)
        moved = {ROOT: ROOT} | {index: number for number, index in enumerate(self._chosen)}
        small = Pattern(
            tuple(
                Node(node.label, node.axis, moved[node.parent])
                for node in (pattern.nodes[each] for each in self._chosen)
            )
        )
        self._shape = shape_of(small)
        self._bound = np.array([moved[index] for index in self._returning], np.int64)

    def tuples(self, ids: Sequence[Ids], values: Texts, contents: Texts, limit: int) -> Tuples:
        """List up to `limit` rows of what takes part in embeddings."""
        columns = [
            (slot, _column(what, ids[node], values[node], contents[node]))
            for slot, node, what in self._things
        ]
        if not columns:
            # It holds in one way.
            rows: list[tuple[str | StructuralId, ...]] = [()]
        elif len(self._returning) == 1:
            # All of its ids take part, whatever the others are.
            rows = [*islice(zip(*(column for _, column in columns), strict=True), limit + 1)]
        else:
            flat = flattened([ids[index] for index in self._chosen])
            places = list_places(self._shape, flat, self._bound, limit + 1).T.tolist()
            given = [[column[index] for index in places[slot]] for slot, column in columns]
            rows = [*zip(*given, strict=True)]
        return Tuples(self.names, tuple(rows[:limit]), len(rows) <= limit)


listing_of: Callable[[Pattern], Listing] = lru_cache(maxsize=4096)(Listing)
"""Work out how a pattern is listed, or find that it was lately."""


def _column(
    what: str, ids: Ids, values: tuple[str, ...] | None, contents: tuple[str, ...] | None
) -> Sequence[str | StructuralId]:
    """Return what each id of a node returns."""
    if what == ID:
        return [*map(StructuralId._make, zip(*(part.tolist() for part in ids), strict=True))]
    column = {VAL: values, CONT: contents}[what]
    assert column is not None, "an answer has what its pattern returns"
    return column


def column_names(pattern: Pattern) -> tuple[str, ...]:
    """Name the columns by the local names of labels; a name that comes again gets a number.

    >>> nodes = Node("{urn:x}a", returns=("id", "val")), Node("a", parent=0, returns=("val",))
    >>> column_names(Pattern(nodes))
    ('a.id', 'a.val', 'a2.val')
    """
    names: list[str] = []
    taken: set[str] = set()
    for index in pattern.returning:
        node = pattern.nodes[index]
        local = node.label.rpartition("}")[2].removeprefix("@").removeprefix("*:")
        base = f"@{local}" if node.label.startswith("@") else local
        name, number = base, 1
        while name in taken:
            number += 1
            name = f"{base}{number}"
        taken.add(name)
        names += [f"{name}.{what}" for what in node.returns]
    return tuple(names)


@kernel
def list_places(shape: Shape, flat: Flat, bound: Ints, most: int) -> Ints32:
    """List up to so many combinations of the nodes in `bound`: the place of each among the ids of its node.

    All candidates take part in an embedding. `keeps[d]` says which still do when the first d nodes are bound.
    """
    depth, offsets = len(bound), flat.offsets
    keeps = np.ones((depth, len(flat.pre)), np.bool_)
    rows = np.empty((16, depth), np.int32)
    upcoming = np.empty(depth, np.int64)
    upcoming[0] = offsets[bound[0]]
    chosen = np.empty(depth, np.int32)
    count = d = 0
    while d >= 0 and count < most:
        start, stop = offsets[bound[d]], offsets[bound[d] + 1]
        candidate = upcoming[d]
        while candidate < stop and not keeps[d, candidate]:
            candidate += 1
        if candidate == stop:
            d -= 1
            continue
        upcoming[d] = candidate + 1
        chosen[d] = candidate - start
        if d == depth - 1:
            if count == len(rows):
                larger = np.empty((2 * count, depth), np.int32)
                larger[:count] = rows
                rows = larger
            rows[count] = chosen
            count += 1
            continue
        fewer = keeps[d + 1]
        fewer[:] = keeps[d]
        fewer[start:stop] = False
        fewer[candidate] = True
        reduce_flat(shape, flat, fewer)
        d += 1
        upcoming[d] = offsets[bound[d]]
    return rows[:count]
