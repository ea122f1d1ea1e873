"""What is returned, as rows for people: enumerated from what takes part, up to a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.xml.answers.structural import flattened, reduce_flat, shape_of
from headgate.xml.language.model import CONT, ID, ROOT, VAL, Node, Pattern, StructuralId

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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


def list_tuples(pattern: Pattern, ids: Sequence[Ids], values: Texts, contents: Texts, limit: int) -> Tuples:
    """List up to `limit` rows of what takes part in embeddings."""
    returning = pattern.returning
    rows: list[tuple[str | StructuralId, ...]] = []
    for combination in _combinations(pattern, ids):
        if len(rows) == limit:
            return Tuples(column_names(pattern), tuple(rows), False)
        row: list[str | StructuralId] = []
        for node, place in zip(returning, combination, strict=True):
            things = pattern.nodes[node].returns
            row += [_thing(what, place, ids[node], values[node], contents[node]) for what in things]
        rows.append(tuple(row))
    return Tuples(column_names(pattern), tuple(rows), True)


def _thing(
    what: str, place: int, ids: Ids, values: tuple[str, ...] | None, contents: tuple[str, ...] | None
) -> str | StructuralId:
    if what == ID:
        return StructuralId(int(ids.pre[place]), int(ids.post[place]), int(ids.level[place]))
    column = {VAL: values, CONT: contents}[what]
    assert column is not None, "an answer has what its pattern returns"
    return column[place]


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


def _combinations(pattern: Pattern, ids: Sequence[Ids]) -> Iterator[tuple[int, ...]]:
    """Yield the places, among the ids of each returning node, of each combination that an embedding has.

    Whatever is no ancestor of a returning node can be left out: it embeds, wherever its parent goes. Of the
    rest, one returning node after the other is bound to one id, and what no longer takes part is left out, so
    that there is no dead end, and no combination comes twice.
    """
    returning = set(pattern.returning)
    for place in range(len(pattern.nodes) - 1, -1, -1):
        if place in returning and pattern.nodes[place].parent != ROOT:
            returning.add(pattern.nodes[place].parent)
    chosen = sorted(returning)
    moved = {ROOT: ROOT} | {place: number for number, place in enumerate(chosen)}
    small = Pattern(
        tuple(
            Node(node.label, node.axis, moved[node.parent])
            for node in (pattern.nodes[each] for each in chosen)
        )
    )
    flat = flattened([ids[place] for place in chosen])
    bound = [moved[place] for place in pattern.returning]
    yield from _bind(shape_of(small), flat, bound, np.ones(len(flat.pre), np.bool_))


def _bind(
    shape: Shape,
    flat: Flat,
    bound: Sequence[int],
    keep: NDArray[np.bool_],
) -> Iterator[tuple[int, ...]]:
    """Yield the combinations of the nodes in `bound`, all of what is kept takes part in."""
    if not bound:
        yield ()
        return
    start, stop = int(flat.offsets[bound[0]]), int(flat.offsets[bound[0] + 1])
    for place in np.flatnonzero(keep[start:stop]).tolist():
        if len(bound) == 1:
            yield (place,)
            continue
        fewer = keep.copy()
        fewer[start:stop] = False
        fewer[start + place] = True
        reduce_flat(shape, flat, fewer)
        for rest in _bind(shape, flat, bound[1:], fewer):
            yield (place, *rest)
