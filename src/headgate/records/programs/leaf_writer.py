"""The leaves of many filters, written into the columns of `Programs` as they come.

Objects for millions of leaves would cost more in the collector of garbage than in the making, so a leaf that
is known by its pieces (`plain`) is never one.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import numpy as np

from headgate.core.interning import TextPool
from headgate.records.programs.elements import typeof_path
from headgate.records.programs.leaves import TEXT_FACETS, Facet, GlobLeaf, Quantifier, SetLeaf
from headgate.records.programs.programs import GLOB, NOT_GLOB, TOP, VALUE, Programs, starts
from headgate.records.programs.tokens import Program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.core.values import Path
    from headgate.records.programs.intervals import Cut
    from headgate.records.programs.leaves import Leaf
    from headgate.records.programs.simple_clauses import SimpleClause

_TEXT = bytes([Facet.STRING])


class LeafWriter:
    """Leaves by number; equal ones have one number.

    owners[l]   the number of a leaf's attribute
    mergers[l]  a number that leaves have in common which may merge, else one of its own
    """

    def __init__(self) -> None:
        self.owners: list[int] = []
        self.mergers: list[int] = []
        self._numbers: dict[tuple[object, ...], int] = {}
        self._leaves: dict[Leaf, int] = {}
        self._attributes: dict[Path, int] = {}
        self._merging: dict[Path, int] = {}
        self._texts: dict[str, int] = {}
        self._kinds = bytearray()
        self._on_null = bytearray()
        self._counts = array("q")
        self._facets = bytearray()
        self._lows = array("q")
        self._highs = array("q")
        self._glob_counts = array("q")
        self._globs = array("h")

    def plain(self, leaf: SimpleClause, kind: int = VALUE) -> int:
        """Return the number of a leaf that is given by its pieces, of a value or of elements."""
        if leaf.texts is None:
            return self._number(leaf.path, kind, 0, leaf.facets, leaf.lows, leaf.highs)
        places = self._texts
        before = [2 * places.setdefault(text, len(places)) for text in leaf.texts]
        after = [cut + 1 for cut in before]
        if leaf.outside:
            before, after = [2 * places.setdefault("", len(places)), *after], [*before, TOP]
            if not leaf.texts[0]:
                # Nothing lies before the empty text.
                del before[0], after[0]
        return self._number(leaf.path, kind, 0, _TEXT * len(before), tuple(before), tuple(after))

    def leaf(self, leaf: Leaf) -> int:
        """Return the number of a leaf."""
        known = self._leaves.get(leaf)
        if known is None:
            known = self._leaves[leaf] = self._write(leaf)
        return known

    def _write(self, leaf: Leaf) -> int:
        if isinstance(leaf, GlobLeaf):
            return self._number(leaf.path, NOT_GLOB if leaf.negated else GLOB, 0, b"", (), (), leaf.tokens)
        facets = bytearray()
        lows: list[int] = []
        highs: list[int] = []
        for facet, ranges in leaf.sets:
            facets += bytes([facet]) * len(ranges)
            if facet in TEXT_FACETS:
                lows += [self._cut(low) for low, _ in ranges]
                highs += [self._cut(high) for _, high in ranges]
            else:
                lows += [low[0] for low, _ in ranges]
                highs += [high[0] - 1 for _, high in ranges]
        return self._number(
            leaf.path, int(leaf.quantifier), int(leaf.on_null), bytes(facets), tuple(lows), tuple(highs)
        )

    def _cut(self, cut: Cut) -> int:
        top, text, side = cut
        return TOP if top else 2 * self._texts.setdefault(text, len(self._texts)) + side

    def _number(
        self,
        path: Path,
        kind: int,
        on_null: int,
        facets: bytes,
        lows: tuple[int, ...],
        highs: tuple[int, ...],
        glob: tuple[int, ...] = (),
    ) -> int:
        owner = self._attributes.setdefault(path, len(self._attributes))
        number = len(self.owners)
        known = self._numbers.setdefault((owner, kind, on_null, facets, lows, highs, glob), number)
        if known == number:
            self.owners.append(owner)
            self.mergers.append(self._merger(path) if kind == VALUE else -1 - number)
            self._kinds.append(kind)
            self._on_null.append(on_null)
            self._counts.append(len(facets))
            self._facets += facets
            self._lows.extend(lows)
            self._highs.extend(highs)
            self._glob_counts.append(len(glob))
            self._globs.extend(glob)
        return known

    def _merger(self, path: Path) -> int:
        """Number what leaves are about; the type of an attribute merges with its values."""
        about = typeof_path(path) or path
        return self._merging.setdefault(about, len(self._merging))

    def finish(self, lengths: Sequence[int], tokens: Sequence[int]) -> Programs:
        """Return programs, laid end to end, over these leaves."""
        return Programs(
            token_start=starts(np.array(lengths, np.int64)),
            tokens=np.array(tokens, np.int32),
            leaf_kind=np.array(self._kinds, np.uint8),
            leaf_attribute=np.array(self.owners, np.int32),
            leaf_on_null=np.array(self._on_null, np.uint8),
            range_start=starts(np.array(self._counts, np.int64)),
            range_facet=np.array(self._facets, np.uint8),
            range_low=np.array(self._lows, np.int64),
            range_high=np.array(self._highs, np.int64),
            glob_start=starts(np.array(self._glob_counts, np.int64)),
            glob_tokens=np.array(self._globs, np.int16),
            texts=TextPool.build(self._texts),
            attributes=tuple(self._attributes),
        )


class LeafList:
    """The same of one filter: leaves as objects."""

    def __init__(self) -> None:
        self.mergers: list[object] = []
        self._numbers: dict[Leaf, int] = {}

    def plain(self, leaf: SimpleClause, kind: int = VALUE) -> int:
        """Return the number of a leaf that is given by its pieces, of a value or of elements."""
        return self.leaf(leaf.leaf(Quantifier(kind)))

    def leaf(self, leaf: Leaf) -> int:
        """Return the number of a leaf."""
        number = self._numbers.setdefault(leaf, len(self.mergers))
        if number == len(self.mergers):
            of_value = isinstance(leaf, SetLeaf) and leaf.quantifier is Quantifier.VALUE
            self.mergers.append((typeof_path(leaf.path) or leaf.path) if of_value else leaf)
        return number

    def program(self, tokens: Sequence[int]) -> Program:
        """Return the program of the filter, whose leaves are numbered as they are pushed."""
        leaves = list(self._numbers)
        pushed: dict[int, int] = {}
        numbered = [pushed.setdefault(token, len(pushed)) if token >= 0 else token for token in tokens]
        return Program(tuple(numbered), tuple(leaves[number] for number in pushed))
