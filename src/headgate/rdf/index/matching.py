"""From a graph to the filters that hold: by arrays, and by evaluating what arrays cannot tell."""

from __future__ import annotations

import threading
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from headgate.errors import EventError
from headgate.rdf.events.encode import Encoder, Layouts
from headgate.rdf.events.facts import Facts
from headgate.rdf.index import kernels
from headgate.rdf.index.arrays import END, OPAQUE, PAIR, SLOTS
from headgate.rdf.index.bindings import search
from headgate.rdf.index.checking import ASK_REFERENCE
from headgate.rdf.index.laying import size_of, slots_of
from headgate.rdf.index.scratch import BUDGET, FULL, TOO_MUCH, Scratch
from headgate.rdf.language.evaluate import holds
from headgate.rdf.language.model import BELOW, BELOW_PROPERTY, SUBCLASS, SUBPROPERTY
from headgate.rdf.language.parse import parse_expression
from headgate.rdf.language.printing import print_pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from headgate.rdf.events.encode import Features
    from headgate.rdf.index.arrays import Encoded, RdfArrays
    from headgate.rdf.language.model import Expression, Graph, Options, Pattern
    from headgate.rdf.taxonomy.taxonomy import Taxonomy

_LAST_EPOCH = 2**31 - 2
_MASKS = 10
"""How many edges a triple can match: eight combinations of constants, and two of `?x p ?x`."""


class Matcher:
    """Filters in arrays, with what is needed to ask them. Any number of threads may ask."""

    def __init__(
        self,
        arrays: RdfArrays,
        features: Features,
        expressions: Callable[[int], str],
        patterns: Callable[[int], Pattern],
        options: Options,
        taxonomy: Taxonomy,
        layouts: Layouts | None = None,
    ) -> None:
        # All of one kind, whether built, mapped or growing: loops are compiled once.
        self.arrays = arrays.read_only()
        self._layouts = layouts or Layouts()
        self._features = features
        self._expressions = expressions
        self._patterns = patterns
        self._options = options
        self._taxonomy = taxonomy
        self._local = threading.local()
        self._expression = lru_cache(1 << 14)(self._read)

    @cached_property
    def encoder(self) -> Encoder:
        """Return what encodes graphs for these filters."""
        return Encoder(self.arrays.dictionary, self._features, self._options, self._taxonomy, self._layouts)

    def match(self, graph: Graph) -> NDArray[np.int32]:
        """List the filters that hold, rising."""
        return self.match_encoded(graph, self.encoder.encode(graph))

    def match_encoded(self, graph: Graph, event: Encoded) -> NDArray[np.int32]:
        """List the filters that hold for a graph that is encoded, rising."""
        room = self._room(len(event.s))
        scratch, epoch = room.scratch, room.stamp()
        found: list[NDArray[np.int32]] = []
        known: dict[tuple[int, ...], bool] = {}
        again = False
        while True:
            done = kernels.match(self.arrays, event, scratch, epoch, self._options.injective, again)
            if done == TOO_MUCH:
                self._refuse(int(scratch.counts[9]))
            doubts = int(scratch.counts[3])
            if doubts:
                asked = scratch.doubts[: 4 * doubts].reshape(-1, 4).tolist()
                more = np.array(self._resolve(graph, event, room, asked, known), np.int32)
                scratch.seen[more] = epoch
                found.append(more)
                scratch.counts[3], scratch.counts[4] = 0, 0
            if done != FULL:
                break
            again = True
        certain = scratch.out[: scratch.counts[2]]
        return np.sort(np.concatenate([*found, certain]) if found else certain)

    def _refuse(self, pattern: int) -> NoReturn:
        """Refuse an event that takes too long; names one of the filters that it does so for."""
        number = int(self.arrays.entries.number[self.arrays.patterns.entry_start[pattern]])
        raise EventError(
            f"the event is too much for the filter {print_pattern(self._patterns(number))}: "
            f"joining it takes more than {BUDGET:,} steps; send smaller events, or narrow the filter"
        )

    def _resolve(
        self,
        graph: Graph,
        event: Encoded,
        room: _Room,
        doubts: Sequence[Sequence[int]],
        known: dict[tuple[int, ...], bool],
    ) -> list[int]:
        """Decide what arrays could not; `known` is what expressions said of terms of this event."""
        scratch, epoch = room.scratch, room.epoch
        found: dict[int, None] = {}
        facts: Facts | None = None
        below = _Below(graph, self._taxonomy)
        for number, row, what, at in doubts:
            if number in found or (what != ASK_REFERENCE and scratch.seen[number] == epoch):
                continue
            if what == ASK_REFERENCE:
                facts = facts or Facts(graph, self._taxonomy)
                if search(self._patterns(number), facts, self._options, (), 1):
                    found[number] = None
            elif self._opaque_hold(event, scratch.rows, row, at, known, below):
                found[number] = None
        return list(found)

    def _opaque_hold(
        self,
        event: Encoded,
        rows: NDArray[np.int32],
        row: int,
        at: int,
        known: dict[tuple[int, ...], bool],
        below: _Below,
    ) -> bool:
        """Tell whether the opaque expressions among some checks hold for a row."""
        words = self.arrays.checks.words
        while words[at] != END:
            if words[at] in (OPAQUE, PAIR):
                terms = [int(rows[row + slot]) for slot in slots_of(words, at).tolist()]
                key = (int(words[at + 1 if words[at] == OPAQUE else at + 4]), *terms)
                answer = known.get(key)
                if answer is None:
                    named = {f"?{n}": self.encoder.term(event, t) for n, t in enumerate(terms)}
                    expression = self._expression(key[0])
                    answer = known[key] = (
                        below.holds(expression, named)
                        if isinstance(expression, tuple)
                        else holds(expression, named, self._options)
                    )
                if not answer:
                    return False
            at += int(size_of(words, at))
        return True

    def _read(self, number: int) -> Expression | tuple[str, str, str]:
        text = self._expressions(number)
        if text.startswith((BELOW, BELOW_PROPERTY)):
            path, one, other = text.split("\n")
            return path, one, other
        return parse_expression(text)

    def _room(self, triples: int) -> _Room:
        """Return this thread's room."""
        found: _Room | None = getattr(self._local, "room", None)
        if found is None or found.arrays is not self.arrays or len(found.scratch.touched) < _MASKS * triples:
            found = self._local.room = _Room(self.arrays, triples)
        return found


class _Below:
    """Whether a class or property is below another, for an event that may say so itself."""

    def __init__(self, graph: Graph, taxonomy: Taxonomy) -> None:
        self._graph = graph
        self._taxonomy = taxonomy

    @cached_property
    def _own(self) -> dict[tuple[str, str], list[str]]:
        found: dict[tuple[str, str], list[str]] = {}
        for s, p, o in self._graph.statements():
            if p in (SUBCLASS, SUBPROPERTY):
                found.setdefault((p, s), []).append(o)
        return found

    def holds(self, edge: tuple[str, str, str], named: dict[str, str]) -> bool:
        """Tell whether an edge of the taxonomy holds."""
        path, one, other = edge
        lower, upper = named.get(one, one), named.get(other, other)
        classes = path == BELOW
        above = self._taxonomy.ancestors if classes else self._taxonomy.property_ancestors
        step = SUBCLASS if classes else SUBPROPERTY
        seen: set[str] = set()
        left = [lower]
        while left:
            for term in above(left.pop()):
                if term not in seen:
                    seen.add(term)
                    left += self._own.get((step, term), ())
        return upper in seen


class _Room:
    """One thread's scratch space."""

    def __init__(self, arrays: RdfArrays, triples: int) -> None:
        self.arrays = arrays
        hits = _MASKS * max(triples, 256)
        filters = len(arrays.entries.number)
        most = int(np.diff(arrays.patterns.entry_start).max(initial=0))
        self.epoch = 0
        self.scratch = Scratch(
            np.zeros(len(arrays.edges.s), np.int64),
            np.zeros(filters, np.int32),
            np.empty(hits, np.int32),
            np.empty(hits, np.int32),
            np.empty(hits, np.int32),
            np.empty(hits, np.int32),
            np.empty(SLOTS + 1, np.int32),
            np.empty(SLOTS + 1, np.int32),
            np.zeros(SLOTS, np.int32),
            np.empty(SLOTS + 1, np.int32),
            np.empty(filters, np.int32),
            np.empty(4 * max(1024, most), np.int32),
            np.empty(SLOTS * 256, np.int32),
            np.zeros(10, np.int64),
            np.zeros(SLOTS + 1, np.uint64),
            np.zeros(SLOTS, np.int32),
            np.zeros(1, np.uint64),
            np.zeros(4096, np.int64),
            np.zeros(4096, np.int32),
        )

    def stamp(self) -> int:
        """Take an epoch that no mark holds."""
        if self.epoch >= _LAST_EPOCH:
            self.scratch.mark[:] = 0
            self.scratch.seen[:] = 0
            self.scratch.failed_when[:] = 0
            self.epoch = 0
        self.epoch += 1
        return self.epoch
