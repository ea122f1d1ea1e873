"""From a graph to the filters that hold: by arrays, and by evaluating what arrays cannot tell."""

from __future__ import annotations

import threading
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.contents.columns import all_read_only, picked
from headgate.contents.documents import BaseMatcher
from headgate.core.bits import HALF
from headgate.rdf.events.encode import Encoder
from headgate.rdf.index import arrays as codes
from headgate.rdf.index import kernels
from headgate.rdf.index.arrays import BUDGET, LEAST, JoinScratch
from headgate.rdf.index.bindings import LEAST_STEPS, STEPS, Facts, TooLongError, search
from headgate.rdf.index.checking import ASK_REFERENCE
from headgate.rdf.index.laying import SLOT_WORD, roles_of, size_of
from headgate.rdf.index.word_lists import ListedPatterns, WordTerms, split
from headgate.rdf.language.model import BELOW, BELOW_PROPERTY
from headgate.rdf.language.parse import parse_expression
from headgate.rdf.language.values import holds
from headgate.rdf.taxonomy.extending import WORD_BITS
from headgate.rdf.taxonomy.taxonomy import entailed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headgate.core.arrays import Floats64, Ints, Ints32
    from headgate.core.text.listing import Split
    from headgate.rdf.events.encode import Features, Layouts
    from headgate.rdf.index.arrays import Encoded, RdfArrays
    from headgate.rdf.language.model import Expression, Graph, Options, Pattern
    from headgate.rdf.taxonomy.taxonomy import Taxonomy

_LAST_EPOCH = 2**31 - 2
_UNDONE = (codes.FULL, codes.TOO_MUCH)
"""How the loops end when they have not decided all."""
_MASKS = 10
"""How many edges a triple can match: eight combinations of constants, and two of `?x p ?x`."""


class Prepared(NamedTuple):
    """The filters that were found by a word, and the graph, encoded for others, if there are any."""

    event: Encoded | None
    listed: Ints32


class Matcher(BaseMatcher):
    """Filters in arrays, with what is needed to ask them."""

    def __init__(
        self,
        arrays: RdfArrays,
        features: Features,
        expressions: Callable[[int], str],
        patterns: Callable[[int], Pattern],
        options: Options,
        taxonomy: Taxonomy,
        layouts: Layouts,
    ) -> None:
        # All of one kind, whether built or mapped: loops are compiled once.
        self.arrays = all_read_only(arrays)
        self._layouts = layouts
        self._features = features
        self._expressions = expressions
        self.pattern = patterns
        self.options = options
        self.taxonomy = taxonomy
        self._local = threading.local()
        self.expression = lru_cache(1 << 14)(self._read)

    @cached_property
    def encoder(self) -> Encoder:
        """Return what encodes graphs for these filters."""
        return Encoder(self.arrays.dictionary, self._features, self.options, self.taxonomy, self._layouts)

    @cached_property
    def _split(self) -> Split | None:
        """Return the filters that are found by a word, and what is left to join; None if they are few."""
        if self.options.injective or not self._features.texts & WORD_BITS:
            return None
        return split(self.arrays)

    @cached_property
    def _listed(self) -> ListedPatterns | None:
        return None if self._split is None else ListedPatterns(self._split)

    @cached_property
    def _rest(self) -> Encoder | None:
        """Return what encodes graphs for filters that are not found by a word; None if there are none."""
        if self._split is None:
            return self.encoder
        if self._split.whole:
            return None
        features, words = self._features, None
        if len(self._split.joined):
            words = WordTerms.some(self.arrays.dictionary, self._split.joined)
        else:
            features = features._replace(texts=features.texts & ~WORD_BITS)
        return Encoder(self.arrays.dictionary, features, self.options, self.taxonomy, self._layouts, words)

    @property
    def finds_words(self) -> bool:
        """Tell whether words are looked up to encode a graph."""
        return bool(self._features.texts & WORD_BITS)

    def encode(self, graph: Graph) -> Encoded | Prepared:
        """Encode a graph, and find the filters that are found by a word."""
        if self._listed is None:
            return self.encoder.encode(graph)
        listed = self._listed.match(entailed(graph, self.taxonomy))
        return Prepared(None if self._rest is None else self._rest.encode(graph), listed)

    def match_encoded(self, graph: Graph, event: Encoded | Prepared, left_out: dict[int, str]) -> Ints32:
        """List the filters that hold for a graph that is encoded, rising."""
        if isinstance(event, Prepared):
            numbers = event.listed
            if event.event is not None:
                joined = self.match_encoded(graph, event.event, left_out)
                # A word that other filters ask for as well is joined, too.
                numbers = np.union1d(numbers, joined) if len(joined) else numbers
            return numbers
        own = self._thread_scratch(len(event.s))
        scratch, epoch = own.scratch, own.stamp()
        scratch.counts[codes.MOST_STEPS] = BUDGET
        done = kernels.match(self.arrays, event, scratch, epoch, self.options.injective, codes.START)
        if done in _UNDONE or scratch.counts[codes.DOUBTS]:
            return _EventSearch(self, graph, event, own, left_out).answer(int(done))
        return np.sort(scratch.out[: scratch.counts[codes.FOUND]])

    def costs(self, graph: Graph, candidates: Ints, work: Floats64) -> None:
        """Match a graph once more, and add for each filter whether it is joined, and the steps of that.

        Filters of one pattern are joined together, and share its steps. A row in doubt counts as many.
        """
        event = self.encoder.encode(graph)
        own = self._thread_scratch(len(event.s))
        scratch, epoch = own.scratch, own.stamp()
        scratch.counts[codes.MOST_STEPS] = LEAST
        injective, patterns = self.options.injective, self.arrays.patterns
        kernels.match(self.arrays, event, scratch, epoch, injective, codes.START)
        for pattern in self._possible(scratch, epoch):
            begin, end = patterns.entry_start[pattern], patterns.entry_start[pattern + 1]
            numbers = self.arrays.entries.number[begin:end]
            # As if it had been too much for its filters together: then it is joined by itself.
            scratch.seen[numbers] = 0
            scratch.counts[codes.FOUND : codes.ROW_KEPT], scratch.counts[codes.AT_EDGE :] = (
                0,
                (0, pattern, LEAST),
            )
            how = codes.ONLY
            while True:
                done = kernels.match(self.arrays, event, scratch, epoch, injective, how)
                if done != codes.FULL:
                    break
                scratch.counts[codes.DOUBTS : codes.ROW_KEPT], how = 0, codes.ONLY_ROW
            candidates[numbers] += 1
            steps = LEAST if done == codes.TOO_MUCH else int(scratch.counts[codes.STEPS_TAKEN])
            work[numbers] += 1 + steps / len(numbers)

    def _possible(self, scratch: JoinScratch, epoch: int) -> list[int]:
        """List the patterns all edges of which an event has touched."""
        patterns, (order, start) = self.arrays.patterns, self._hung
        touched = scratch.touched[: scratch.counts[codes.TOUCHED]].astype(np.int64)
        some = order[picked(start, touched)[1]]
        ends, places = picked(patterns.step_start, some)
        lacking = scratch.mark[patterns.step_edge[places]] >> HALF != epoch
        lacks = np.bincount(np.repeat(np.arange(len(some)), np.diff(ends)), lacking, len(some))
        possible: list[int] = some[lacks == 0].tolist()
        return possible

    @cached_property
    def _hung(self) -> tuple[Ints, Ints]:
        """Return the patterns by the edge at which they hang, and where those of each edge begin."""
        patterns = self.arrays.patterns
        edge = patterns.step_edge[patterns.step_start[: len(patterns.next)]]
        counts = np.bincount(edge, minlength=len(self.arrays.edges.s))
        return np.argsort(edge, kind="stable"), np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])

    def _read(self, number: int) -> Expression | tuple[str, str, str]:
        text = self._expressions(number)
        if text.startswith((BELOW, BELOW_PROPERTY)):
            path, one, other = text.split("\n")
            return path, one, other
        return parse_expression(text)

    def _thread_scratch(self, triples: int) -> _ThreadScratch:
        own: _ThreadScratch | None = getattr(self._local, "scratch", None)
        if own is None or own.arrays is not self.arrays or len(own.scratch.touched) < _MASKS * triples:
            own = self._local.scratch = _ThreadScratch(self.arrays, triples)
        return own


class _EventSearch:
    """One event that the loops did not decide in one go: what is found, and what is left out."""

    def __init__(
        self, matcher: Matcher, graph: Graph, event: Encoded, own: _ThreadScratch, left_out: dict[int, str]
    ) -> None:
        self._matcher = matcher
        self._graph = graph
        self._event = event
        self._scratch, self._epoch = own.scratch, own.epoch
        self._left_out = left_out
        self._found: list[Ints32] = []
        self._known: dict[tuple[int, ...], bool] = {}
        """What expressions said of terms of this event."""
        self._doubted: set[int] = set()
        self._steps, self._search_steps = BUDGET, STEPS
        """What the next filter may take: less, with each that took too much."""

    def answer(self, done: int) -> Ints32:
        """List the filters that hold, rising; `done` is how the loops ended first."""
        scratch = self._scratch
        done = self._decide(codes.START, done)
        while done == codes.TOO_MUCH:
            self._part(int(scratch.counts[codes.AT_PATTERN]))
            done = self._run(codes.PASS, self._steps)
        certain = scratch.out[: scratch.counts[codes.FOUND]]
        return np.sort(np.concatenate([*self._found, certain]) if self._found else certain)

    def _run(self, how: int, steps: int) -> int:
        """Run the loops, and decide what they doubt."""
        self._scratch.counts[codes.MOST_STEPS] = steps
        return self._decide(how, self._match(how))

    def _match(self, how: int) -> int:
        matcher = self._matcher
        injective = matcher.options.injective
        return int(kernels.match(matcher.arrays, self._event, self._scratch, self._epoch, injective, how))

    def _decide(self, how: int, done: int) -> int:
        """Decide what the loops doubt, and have them go on where they had no more own."""
        scratch = self._scratch
        while True:
            doubts = int(scratch.counts[codes.DOUBTS])
            if doubts:
                asked = scratch.doubts[: codes.DOUBT_WORDS * doubts].reshape(-1, codes.DOUBT_WORDS).tolist()
                more = np.array(self._resolve(asked), np.int32)
                scratch.seen[more] = self._epoch
                self._found.append(more)
                scratch.counts[codes.DOUBTS], scratch.counts[codes.ROW_WORDS] = 0, 0
            if done != codes.FULL:
                return done
            how = codes.ONLY_ROW if how >= codes.ONLY else codes.ROW
            done = self._match(how)

    def _part(self, pattern: int) -> None:
        """Ask fewer filters at a time of a pattern that was too much for all of its filters at once.

        One of them may be the cause for all: a row that any of them wants is joined. Those in doubt are the
        first to be suspected, then halves. What is too much for one by itself is left out.
        """
        scratch, epoch, arrays = self._scratch, self._epoch, self._matcher.arrays
        begin, end = arrays.patterns.entry_start[pattern], arrays.patterns.entry_start[pattern + 1]
        numbers = arrays.entries.number[begin:end]
        undecided = numbers[scratch.seen[numbers] != epoch]
        guilty = np.isin(undecided, list(self._doubted))
        if guilty.all() or not guilty.any():
            guilty = np.arange(len(undecided)) < len(undecided) // 2
        left = [(undecided[guilty], self._steps), (undecided[~guilty], self._steps)]
        if len(numbers) == 1:
            # It was alone before.
            self._leave_out(int(numbers[0]), self._steps)
            left = []
        while left:
            some, steps = left.pop()
            if not len(some):
                continue
            scratch.seen[undecided] = epoch
            scratch.seen[some] = 0
            if self._run(codes.ONLY, steps) != codes.TOO_MUCH:
                continue
            still = some[scratch.seen[some] != epoch]
            if len(still) == 1:
                self._leave_out(int(still[0]), steps)
            elif len(still):
                half, steps = len(still) // 2, max(steps // 2, LEAST)
                left += [(still[:half], steps), (still[half:], steps)]
        self._steps = max(self._steps // 2, LEAST)

    def _leave_out(self, number: int, steps: int) -> None:
        self._left_out[number] = (
            f"joining it takes more than {steps:,} steps; send smaller events, or narrow the filter"
        )

    @cached_property
    def _facts(self) -> Facts:
        return Facts(self._graph, self._matcher.taxonomy)

    def _opaque_hold(self, row: int, at: int) -> bool:
        """Tell whether the opaque expressions among some checks hold for a row."""
        words, rows, known = self._matcher.arrays.checks.words, self._scratch.rows, self._known
        while words[at] != codes.END:
            size = int(size_of(words, at))
            if words[at] in (codes.OPAQUE, codes.PAIR):
                own = words[at : at + size]
                slots = own[roles_of(own) == SLOT_WORD]
                terms: list[int] = rows[row + slots].tolist()
                expression = codes.AT_EXPRESSION if words[at] == codes.OPAQUE else codes.AT_PAIR_EXPRESSION
                key = (int(words[at + expression]), *terms)
                if key not in known:
                    known[key] = self._says(key[0], terms)
                if not known[key]:
                    return False
            at += size
        return True

    def _says(self, number: int, terms: Sequence[int]) -> bool:
        """Evaluate an expression."""
        named = {f"?{n}": Encoder.term(self._event, t) for n, t in enumerate(terms)}
        expression = self._matcher.expression(number)
        if isinstance(expression, tuple):
            path, one, other = expression
            return self._facts.below(path, named.get(one, one), named.get(other, other))
        return holds(expression, named, self._matcher.options)

    def _resolve(self, doubts: Sequence[Sequence[int]]) -> list[int]:
        """Decide what arrays could not."""
        scratch, matcher = self._scratch, self._matcher
        holding: dict[int, None] = {}
        for number, row, what, at in doubts:
            if number in holding or (what != ASK_REFERENCE and scratch.seen[number] == self._epoch):
                continue
            if what == ASK_REFERENCE:
                try:
                    rows = search(
                        matcher.pattern(number), self._facts, matcher.options, (), 1, self._search_steps
                    )
                except TooLongError as error:
                    self._left_out[number] = str(error)
                    self._search_steps = max(self._search_steps // 2, LEAST_STEPS)
                    continue
                if rows:
                    holding[number] = None
            elif self._opaque_hold(row, at):
                holding[number] = None
            else:
                self._doubted.add(number)
        return list(holding)


class _ThreadScratch:
    """What one thread joins with, and its epochs."""

    def __init__(self, arrays: RdfArrays, triples: int) -> None:
        self.arrays = arrays
        hits = _MASKS * max(triples, 256)
        filters = len(arrays.entries.number)
        most = int(np.diff(arrays.patterns.entry_start).max(initial=0))
        self.epoch = 0
        self.scratch = JoinScratch(
            np.zeros(len(arrays.edges.s), np.int64),
            np.zeros(filters, np.int32),
            np.empty(hits, np.int32),
            np.empty(hits, np.int32),
            np.empty(hits, np.int32),
            np.empty(hits, np.int32),
            np.empty(codes.SLOTS + 1, np.int32),
            np.empty(codes.SLOTS + 1, np.int32),
            np.zeros(codes.SLOTS, np.int32),
            np.empty(codes.SLOTS + 1, np.int32),
            np.empty(filters, np.int32),
            np.empty(codes.DOUBT_WORDS * max(1024, most), np.int32),
            np.empty(codes.SLOTS * 256, np.int32),
            np.zeros(codes.MOST_STEPS + 1, np.int64),
            np.zeros(codes.SLOTS + 1, np.uint64),
            np.zeros(codes.SLOTS, np.int32),
            np.zeros(codes.MOST_ASKED + 1, np.uint64),
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
