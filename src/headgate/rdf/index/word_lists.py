"""Patterns that ask for a word of a property's text, and nothing else: found by the word, without a join.

    ?x p ?t . ?t word w      p is an IRI or a variable that stands nowhere else

A way is such a property, with the texts that are looked at: strings, or all of STR(?t). What is added to an
event by a taxonomy has other properties, so an event's own triples tell which texts a way leads to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow.compute as pc

from headgate.contents.columns import picked, read_only
from headgate.core.interning import TextPool
from headgate.core.jit import bare
from headgate.core.text.alphabets import RUST
from headgate.core.text.finding import KnownWords
from headgate.core.text.listing import (
    LEAST,
    ListedFilters,
    Marks,
    Split,
    WordLists,
    collect,
    frequent,
    mark_words,
)
from headgate.rdf.events.preparing import find_text, unescape
from headgate.rdf.index.arrays import SLOT, VARIABLE, WORD_CODE, Dictionary
from headgate.rdf.index.build import table_size
from headgate.rdf.index.compile import FIRST_TERMS, WORD_MARK
from headgate.rdf.index.laying import place_terms

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.rdf.index.arrays import RdfArrays
    from headgate.rdf.language.model import Graph

    Ints = NDArray[np.int32]


class WordTerms(NamedTuple):
    """Words by number, and the code of each."""

    known: KnownWords
    codes: NDArray[np.int32]

    @classmethod
    def of(cls, dictionary: Dictionary) -> WordTerms:
        """Find the words of a dictionary."""
        offsets, data, _ = dictionary
        first = np.append(data, np.uint8(0))[offsets[:-1]]
        codes = np.flatnonzero((first == ord(WORD_MARK)) & (np.diff(offsets) > 0))
        return cls.some(dictionary, codes.astype(np.int32))

    @classmethod
    def some(cls, dictionary: Dictionary, codes: NDArray[np.int32]) -> WordTerms:
        """Take some words of a dictionary, given by their codes."""
        return cls(KnownWords.of(words_of(dictionary, codes), None, RUST), read_only(codes))


def words_of(dictionary: Dictionary, codes: NDArray[np.int32]) -> TextPool:
    """Return the words of some codes, without what marks them."""
    marked = TextPool(dictionary.offsets, dictionary.data).to_arrow().take(codes)
    return TextPool.from_arrow(pc.utf8_slice_codeunits(marked, len(WORD_MARK)))


_QUOTE, _LESS, _AT, _NEWLINE = 34, 60, 64, 10
_UNKNOWN = -2
_TERMS, _LETTERS = 64, 4096
"""What there is room for at first."""


class Ways(NamedTuple):
    """Properties that lead to texts, with the ways of each as bits; `each` are those of all properties.

    `strings` are for strings only, `texts` for IRIs and all literals.
    """

    properties: Dictionary
    strings: NDArray[np.uint64]
    texts: NDArray[np.uint64]
    each: NDArray[np.uint64]


def split(arrays: RdfArrays) -> Split | None:
    """List the patterns that ask for a word of a text and nothing else; None if they are few."""
    listed = _listed(arrays)
    if listed is None:
        return None
    pattern, word, name, source = listed
    # A way is a property and which texts: both in one number.
    kinds = 2 * name + (source - WORD_CODE)
    chosen = frequent(kinds)
    inside = np.isin(kinds, chosen)
    pattern, word, kinds = pattern[inside], word[inside], kinds[inside]
    way = np.argsort(chosen)[np.searchsorted(np.sort(chosen), kinds)]
    patterns, entries, edges = arrays.patterns, arrays.entries, arrays.edges
    ends, at = picked(patterns.entry_start, pattern)
    others = np.ones(len(patterns.next), np.bool_)
    others[pattern] = False
    used = patterns.step_edge[np.repeat(others, np.diff(patterns.step_start))]
    asked = edges.p[used]
    joined = np.unique(edges.o[used[(asked == WORD_CODE) | (asked == WORD_CODE + 1)]])
    # Texts are read twice if some words are left to be joined.
    if len(at) < max(LEAST, len(joined)):
        return None
    codes, word_number = np.unique(word, return_inverse=True)
    of_word, of_way = (np.repeat(each, np.diff(ends)) for each in (word_number, way))
    lists, large = WordLists.build(
        words_of(arrays.dictionary, codes), RUST, of_word, of_way, entries.number[at]
    )
    ways = _ways(arrays.dictionary, chosen)
    return Split(lists, ways, len(entries.number), large, joined.astype(np.int32), not others.any())


def _listed(arrays: RdfArrays) -> tuple[NDArray[Any], ...] | None:
    """List the patterns of that form: each with its word, property, and property of words."""
    patterns, edges, (offsets, data, _) = arrays.patterns, arrays.edges, arrays.dictionary
    two = np.flatnonzero((np.diff(patterns.step_start) == 2) & (np.diff(patterns.group_start) == 0))
    checked = np.concatenate([np.zeros(1, np.int64), np.cumsum(arrays.entries.checks != 0)])
    two = two[checked[patterns.entry_start[two + 1]] == checked[patterns.entry_start[two]]]
    if not len(two):
        return None
    steps = patterns.step_start[two][:, None] + np.arange(2)
    asks = edges.p[patterns.step_edge[steps]]
    of_words = (asks == WORD_CODE) | (asks == WORD_CODE + 1)
    last = of_words[:, 1].astype(np.int64)
    rows = np.arange(len(two))
    to_word, to_text = steps[rows, last], steps[rows, 1 - last]
    word_edge, text_edge = patterns.step_edge[to_word], patterns.step_edge[to_text]
    slot = patterns.step_code[to_word][:, 0].astype(np.int64) & SLOT
    code = patterns.step_code[to_text][:, :3].astype(np.int64)
    subject, own, text = (code[:, side] & SLOT for side in range(3))
    name, source = edges.p[text_edge].astype(np.int64), edges.p[word_edge].astype(np.int64)
    is_variable = name == VARIABLE
    first_byte = np.append(data, np.uint8(0))[offsets[np.where(is_variable, 0, name)]]
    fits = (
        (of_words.sum(axis=1) == 1)
        & (edges.s[word_edge] == VARIABLE)
        & (edges.s[text_edge] == VARIABLE)
        & (edges.o[text_edge] == VARIABLE)
        & (text == slot)
        & (subject != slot)
        # What a taxonomy says of types is an event's own for a variable, and leads to IRIs.
        & np.where(
            is_variable,
            (own != slot) & (own != subject) & (source == WORD_CODE),
            (name >= len(FIRST_TERMS)) & (first_byte == _LESS),
        )
    )
    return two[fits], edges.o[word_edge[fits]], name[fits], source[fits]


def _ways(dictionary: Dictionary, kinds: NDArray[np.int64]) -> Ways:
    """Lay out the properties of some ways."""
    pool = TextPool(dictionary.offsets, dictionary.data)
    names = [name for name in dict.fromkeys((kinds >> 1).tolist()) if name != VARIABLE]
    number_of = {name: n for n, name in enumerate(names)}
    own = TextPool.build([pool.text(name) for name in names])
    table = np.full(table_size(own.size), -1, np.int32)
    place_terms(own.offsets, own.data, 0, own.size, table)
    strings, texts = np.zeros((2, len(names)), np.uint64)
    each = np.zeros(1, np.uint64)
    for way, kind in enumerate(kinds.tolist()):
        name, of_all = kind >> 1, kind & 1
        bit = np.uint64(1 << way)
        if name == VARIABLE:
            each[0] |= bit
        elif of_all:
            texts[number_of[name]] |= bit
        else:
            strings[number_of[name]] |= bit
    return Ways(
        Dictionary(read_only(own.offsets), read_only(own.data), read_only(table)),
        read_only(strings),
        read_only(texts),
        read_only(each),
    )


class TextScratch(NamedTuple):
    """What one thread needs: where terms begin, what is known of each as a property, its ways; a text."""

    start: Ints
    known: Ints
    strings: NDArray[np.uint64]
    texts: NDArray[np.uint64]
    text: NDArray[np.uint8]

    @classmethod
    def make(cls, terms: int, letters: int) -> TextScratch:
        """Make room for so many terms and letters."""
        start, known = np.zeros((2, terms + 1), np.int32)
        strings, texts = np.zeros((2, terms), np.uint64)
        return cls(start, known, strings, texts, np.zeros(letters, np.uint8))


class ListedPatterns(ListedFilters):
    """Such patterns, asked."""

    def match(self, graph: Graph) -> Ints:
        """List the numbers of those that hold, rising."""
        local = self._local
        terms, letters = graph.text.count(b"\n") + 1, len(graph.text)
        scratch: TextScratch | None = getattr(local, "scratch", None)
        if scratch is None or terms > len(scratch.strings) or letters > len(scratch.text):
            scratch = local.scratch = TextScratch.make(max(2 * terms, _TERMS), max(2 * letters, _LETTERS))
        marks, epoch = self._marks()
        count = _find(
            np.frombuffer(graph.text, np.uint8),
            read_only(np.ascontiguousarray(graph.triples, np.int32)),
            self._parts.lists,
            self._parts.ways,
            marks,
            scratch,
            b"\\" in graph.text,
            epoch,
        )
        return marks.out[:count].copy()


@bare
def _find(
    text: NDArray[np.uint8],
    triples: Ints,
    lists: WordLists,
    ways: Ways,
    marks: Marks,
    scratch: TextScratch,
    escapes: bool,
    epoch: int,
) -> int:
    """Find what is listed for the words of a graph's texts; returns how much is in `marks.out`."""
    start, known, strings, texts = scratch.start, scratch.known, scratch.strings, scratch.texts
    terms = 0
    start[0] = 0
    for i in range(len(text) + 1):
        if i == len(text) or text[i] == _NEWLINE:
            known[terms] = _UNKNOWN
            strings[terms], texts[terms] = np.uint64(0), np.uint64(0)
            terms += 1
            start[terms] = i + 1
    each = ways.each[0]
    for i in range(len(triples)):
        p, o = triples[i, 1], triples[i, 2]
        if known[p] == _UNKNOWN:
            known[p] = find_text(ways.properties, text, start[p], start[p + 1] - 1)
        strings[o] |= each
        if known[p] >= 0:
            strings[o] |= ways.strings[known[p]]
            texts[o] |= ways.texts[known[p]]
    for t in range(terms):
        if strings[t] | texts[t] == 0:
            continue
        begin, end, wanted = start[t], start[t + 1] - 1, texts[t]
        is_literal = text[begin] == _QUOTE
        if is_literal:
            close = end - 1
            while text[close] != _QUOTE:
                close -= 1
            if close == end - 1 or text[close + 1] == _AT:
                wanted |= strings[t]
            end = close + 1
        elif text[begin] != _LESS:
            continue
        if wanted == 0:
            continue
        stop = end - begin - 2
        if is_literal and escapes:
            stop = unescape(text, begin + 1, end - 1, scratch.text, 0)
        else:
            for i in range(stop):
                scratch.text[i] = text[begin + 1 + i]
        mark_words(lists, marks, scratch.text, 0, stop, wanted, epoch)
    return collect(marks)
