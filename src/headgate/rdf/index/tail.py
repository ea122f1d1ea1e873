"""Filters that came since the base was built: arrays that grow, asked by the same loops.

Every filter is a pattern by itself here, with one entry and all of its ranges among the checks; nothing is
shared but edges. A filter appears to readers at once, when the edge at which it hangs points to it: all that
it needs stands in the arrays before. Arrays that are full are copied into larger ones, and then what points
into them (a table, the first pattern of each edge) is copied too: who reads the old ones never meets a number
beyond their end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.rdf.events.encode import Features, Layouts
from headgate.rdf.events.texts import bit_of
from headgate.rdf.index import laying
from headgate.rdf.index.arrays import (
    ALWAYS_CODE,
    END,
    ISA_CODE,
    PAIR,
    RANGE,
    SELF,
    SUFFIX,
    VARIABLE,
    Checks,
    Dictionary,
    Edges,
    Entries,
    Groups,
    Patterns,
    RdfArrays,
)
from headgate.rdf.index.build import guess_costs
from headgate.rdf.index.columns import Writer
from headgate.rdf.index.compile import WORD_MARK
from headgate.rdf.index.matching import Matcher
from headgate.rdf.index.word_terms import GrowingWords, grown
from headgate.rdf.language.rewrite import HAT
from headgate.rdf.taxonomy.taxonomy import Taxonomy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.rdf.index.columns import Columns
    from headgate.rdf.index.compile import CompiledPattern
    from headgate.rdf.language.model import Graph, Options, Pattern


class TailView(NamedTuple):
    """The first filters of a tail."""

    matcher: Matcher
    size: int

    def match(self, graph: Graph, left_out: dict[int, str] | None = None) -> NDArray[np.int32]:
        """List the places of the filters that hold, rising; what is too much goes to `left_out`."""
        found = self.matcher.match(graph, left_out)
        return found[found < self.size]


class Tail:
    """Filters by place, in the order in which they came. One writes, any number read."""

    def __init__(self, options: Options, taxonomy: Taxonomy) -> None:
        self._options = options
        self._taxonomy = taxonomy
        self._layouts = Layouts()
        self._writer = Writer(options)
        self._patterns: list[Pattern] = []
        self._count = 0
        self._hat_names: list[str] = []
        self._words = GrowingWords()
        self._edges: dict[tuple[int, int, int], int] = {}
        self._sizes = {"words": 1, "ends": 0, "texts": 0, "steps": 0}
        self._terms = 0
        self._arrays = _empty()
        self._features = Features()
        self._matcher = self._fresh()
        self._add_terms()

    def __len__(self) -> int:
        """Count the filters that readers can find."""
        return self._count

    def view(self) -> TailView:
        """Return the filters as they are now."""
        count = self._count
        return TailView(self._matcher, count)

    def pattern(self, place: int) -> Pattern:
        """Return a filter."""
        return self._patterns[place]

    def columns(self) -> Columns:
        """Return the filters in columns."""
        return self._writer.columns()

    def add(self, pattern: Pattern) -> None:
        """Append a filter."""
        place = self._count
        found = self._writer.add_member(pattern)
        del self._patterns[place:]
        self._patterns.append(pattern)
        self._add_terms()
        number = [self._edge(*each) for each in found.edges]
        before = self._arrays
        at = self._add_checks(found)
        self._add_pattern(place, found, np.array(number, np.int32), at)
        grown = (
            mine is not theirs
            for part in ("patterns", "entries", "checks")
            for mine, theirs in zip(getattr(before, part), getattr(self._arrays, part), strict=True)
        )
        if any(grown):
            edges = self._arrays.edges
            self._arrays = self._arrays._replace(edges=edges._replace(first=edges.first.copy()))
        self._features = self._seen(found)
        # A new one: encoders keep the codes of the taxonomy's terms, and some may have come with this filter.
        self._matcher = self._fresh()
        self._hang(place)
        self._count = place + 1

    def _fresh(self) -> Matcher:
        """Make what asks the arrays as they are now."""
        return Matcher(
            self._arrays,
            self._features,
            self._writer.expressions.texts.__getitem__,
            self._patterns.__getitem__,
            self._options,
            self._taxonomy,
            self._layouts,
            self._words.found,
        )

    def _hang(self, place: int) -> None:
        """Let readers find a filter."""
        hook = int(self._arrays.patterns.step_edge[self._arrays.patterns.step_start[place]])
        self._arrays.patterns.next[place] = self._arrays.edges.first[hook]
        self._arrays.edges.first[hook] = place

    def _seen(self, found: CompiledPattern) -> Features:
        """Tell what filters look at, with this one."""
        before = self._features
        isa = [o for _, p, o in found.edges if p == ISA_CODE]
        hats = [text[1:] for text in self._hat_names if text[1:] not in before.hats]
        self._hat_names = []
        return Features(
            before.lines or bool(found.ranges) or _holds(found.words, PAIR),
            before.suffixes or _holds(found.words, SUFFIX),
            before.classes or bool(isa),
            before.class_variables or any(o < 0 for o in isa),
            before.always or any(p == ALWAYS_CODE for _, p, _ in found.edges),
            (*before.hats, *hats),
            before.texts | sum(map(bit_of, {p for _, p, _ in found.edges})),
        )

    def _add_terms(self) -> None:
        """Bring the dictionary up to the codes of the writer."""
        known = self._terms
        fresh = self._writer.terms.texts[known:]
        if not fresh:
            return
        self._hat_names += [text for text in fresh if text.startswith(HAT + "<")]
        for code, text in enumerate(fresh, known):
            if text.startswith(WORD_MARK):
                self._words.add(text[len(WORD_MARK) :], code)
        parts = [text.encode() for text in fresh]
        offsets, data, table = self._arrays.dictionary
        size, count = int(offsets[known]), known + len(fresh)
        offsets = grown(offsets, count + 1)
        ends = size + np.cumsum([len(part) for part in parts])
        data = grown(data, int(ends[-1]))
        data[size : int(ends[-1])] = np.frombuffer(b"".join(parts), np.uint8)
        offsets[known + 1 : count + 1] = ends
        before, first = self._arrays.dictionary, known
        if 2 * count > len(table):
            table, first = np.full(4 * len(table), -1, np.int32), 0
        elif offsets is not before.offsets or data is not before.data:
            table = table.copy()
        laying.place_terms(offsets, data, first, count, table)
        self._arrays = self._arrays._replace(dictionary=Dictionary(offsets, data, table))
        self._terms = count

    def _edge(self, s: int, p: int, o: int) -> int:
        """Find the number of an edge, which is added if it is new."""
        key = (max(s, VARIABLE), max(p, VARIABLE), max(o, VARIABLE))
        if s < 0 and s == o:
            key = (SELF, key[1], SELF)
        known = self._edges.get(key)
        if known is not None:
            return known
        e = len(self._edges)
        edges = self._arrays.edges
        a, b, c, first = (grown(each, e + 1) for each in edges[:4])
        a[e], b[e], c[e] = key
        first[e] = -1
        table, begin = edges.table, e
        if 2 * (e + 1) > len(table):
            table, begin = np.full(4 * len(table), -1, np.int32), 0
        elif a is not edges.s:
            table = table.copy()
        masks = edges.masks.copy()
        masks[0] |= 256 if key[0] == SELF else 1 << (4 * (key[0] >= 0) + 2 * (key[1] >= 0) + (key[2] >= 0))
        laying.place_edges(a, b, c, begin, e + 1, table)
        self._edges[key] = e
        self._arrays = self._arrays._replace(edges=Edges(a, b, c, first, table, masks))
        return e

    def _add_checks(self, found: CompiledPattern) -> int:
        """Append the checks of a filter; returns where they begin, 0 if there are none."""
        checks = self._arrays.checks
        sizes = self._sizes
        texts = self._writer.texts.texts[sizes["texts"] :]
        text_offsets = grown(checks.text_offsets, sizes["texts"] + len(texts) + 1)
        end = int(text_offsets[sizes["texts"]])
        text_data = grown(checks.text_data, end + sum(map(len, texts)))
        for text in texts:
            text_data[end : end + len(text)] = np.frombuffer(text, np.uint8)
            end += len(text)
            sizes["texts"] += 1
            text_offsets[sizes["texts"]] = end
        words = []
        ends = grown(checks.ends, sizes["ends"] + 2 * len(found.ranges))
        for slot, line, low, high, flags in found.ranges:
            words += [RANGE, slot, line, sizes["ends"], flags]
            ends[sizes["ends"] : sizes["ends"] + 2] = low, high
            sizes["ends"] += 2
        words += found.words
        at = sizes["words"] if words else 0
        held = checks.words
        if words:
            held = grown(held, at + len(words) + 1)
            held[at : at + len(words) + 1] = [*words, END]
            sizes["words"] = at + len(words) + 1
        self._arrays = self._arrays._replace(checks=Checks(held, ends, text_offsets, text_data))
        return at

    def _add_pattern(self, place: int, found: CompiledPattern, number: NDArray[np.int32], at: int) -> None:
        """Append the steps of a filter, and its only entry."""
        first, size = self._sizes["steps"], len(number)
        patterns, entries, edges = self._arrays.patterns, self._arrays.entries, self._arrays.edges
        following, step_start, entry_start, group_start, back = (
            grown(each, place + 2) for each in patterns[:5]
        )
        step_edge, step_code = (grown(each, first + size) for each in patterns[5:])
        step_start[place + 1], entry_start[place + 1] = first + size, place + 1
        used = np.uint64(0)
        for slot in self._slots(found):
            used |= np.uint64(1) << np.uint64(slot)
        cost = guess_costs(edges.s[number], edges.p[number], edges.o[number])
        own_edge, own_code = np.empty(size, np.int32), np.empty((size, 4), np.int8)
        laying.order_steps(
            np.array([0, size], np.int32),
            np.array(found.edges, np.int32).reshape(-1, 3),
            np.arange(size, dtype=np.int32),
            cost,
            np.array([used], np.uint64),
            own_edge,
            own_code,
            back[place : place + 1],
        )
        step_edge[first : first + size], step_code[first : first + size] = number[own_edge], own_code
        numbers, checks = (grown(each, place + 1) for each in entries)
        numbers[place], checks[place] = place, at
        self._sizes["steps"] = first + size
        self._arrays = self._arrays._replace(
            patterns=Patterns(following, step_start, entry_start, group_start, back, step_edge, step_code),
            entries=Entries(numbers, checks),
        )

    @staticmethod
    def _slots(found: CompiledPattern) -> set[int]:
        """List the slots that checks look at."""
        slots = {each.slot for each in found.ranges}
        at = 0
        words = np.array(found.words, np.int32)
        while at < len(words):
            slots.update(laying.slots_of(words, at).tolist())
            at += int(laying.size_of(words, at))
        return slots


def ask_one(pattern: Pattern, graph: Graph, taxonomy: Taxonomy | None, options: Options) -> tuple[bool, str]:
    """Tell whether one filter holds, as an index of it alone would; if that is too much, the reason."""
    tail = Tail(options, Taxonomy() if taxonomy is None else taxonomy)
    tail.add(pattern)
    left_out: dict[int, str] = {}
    return len(tail.view().match(graph, left_out)) > 0, left_out.get(0, "")


def _holds(words: list[int], kind: int) -> bool:
    return bool(words) and bool(laying.has_check(np.array([0, *words], np.int32), kind))


def _empty() -> RdfArrays:
    """Make arrays that hold nothing."""

    def ints(size: int = 64) -> NDArray[np.int32]:
        return np.zeros(size, np.int32)

    def free() -> NDArray[np.int32]:
        return np.full(256, -1, np.int32)

    none = np.zeros(0, np.float64)
    return RdfArrays(
        Dictionary(np.zeros(64, np.int64), np.zeros(4096, np.uint8), free()),
        Edges(ints(), ints(), ints(), ints(), free(), np.zeros(1, np.int64)),
        Patterns(ints(), ints(), ints(), ints(), np.zeros(64, np.int8), ints(), np.zeros((64, 4), np.int8)),
        Entries(ints(), ints()),
        Groups(*(np.zeros(0, np.int8),) * 3, *(ints(0),) * 4, none, none, np.zeros(0, np.uint8), none),
        Checks(ints(), np.zeros(64), np.zeros(64, np.int64), np.zeros(64, np.uint8)),
    )
