"""What is returned, as rows for people: enumerated from what takes part, up to a limit."""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.core.jit import kernel
from headgate.xml.answers.structural import flattened, reduce_flat, shape_of
from headgate.xml.language.model import CONT, ID, ROOT, VAL, Node, Pattern, StructuralId

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from headgate.xml.answers.structural import Flat, Ids, Shape

    Texts = Sequence[tuple[str, ...] | None]


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
        for place in range(len(pattern.nodes) - 1, -1, -1):
            if place in kept and pattern.nodes[place].parent != ROOT:
                kept.add(pattern.nodes[place].parent)
        self._chosen = sorted(kept)
        moved = {ROOT: ROOT} | {place: number for number, place in enumerate(self._chosen)}
        small = Pattern(
            tuple(
                Node(node.label, node.axis, moved[node.parent])
                for node in (pattern.nodes[each] for each in self._chosen)
            )
        )
        self._shape = shape_of(small)
        self._bound = np.array([moved[place] for place in self._returning], np.int64)

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
            flat = flattened([ids[place] for place in self._chosen])
            places = list_places(self._shape, flat, self._bound, limit + 1).T.tolist()
            given = [[column[place] for place in places[slot]] for slot, column in columns]
            rows = [*zip(*given, strict=True)]
        return Tuples(self.names, tuple(rows[:limit]), len(rows) <= limit)


listing_of: Callable[[Pattern], Listing] = lru_cache(maxsize=4096)(Listing)
"""Work out how a pattern is listed, or find that it was lately."""


def list_tuples(pattern: Pattern, ids: Sequence[Ids], values: Texts, contents: Texts, limit: int) -> Tuples:
    """List up to `limit` rows of what takes part in embeddings."""
    return listing_of(pattern).tuples(ids, values, contents, limit)


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
    for place in pattern.returning:
        node = pattern.nodes[place]
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
def list_places(shape: Shape, flat: Flat, bound: NDArray[np.int64], most: int) -> NDArray[np.int32]:
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
        place = upcoming[d]
        while place < stop and not keeps[d, place]:
            place += 1
        if place == stop:
            d -= 1
            continue
        upcoming[d] = place + 1
        chosen[d] = place - start
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
        fewer[place] = True
        reduce_flat(shape, flat, fewer)
        d += 1
        upcoming[d] = offsets[bound[d]]
    return rows[:count]
