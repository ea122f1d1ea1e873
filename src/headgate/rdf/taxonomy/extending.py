"""Hot loops: what the taxonomy adds to an event.

It is looked up here, on the event's side: a node that it lists gets its types, and each type gives virtual
triples to all classes above it, each property to all above it that filters name. So a filter is one edge
whatever the taxonomy is, and the taxonomy can change without the index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.bits import lower, packed
from headgate.core.hashing import hash_bytes
from headgate.core.interning import TextPool
from headgate.core.jit import bare, bare_inner
from headgate.core.searching import same_bytes
from headgate.core.text.alphabets import RUST
from headgate.core.text.finding import next_known, slot_of
from headgate.rdf.events.preparing import BYTES, TERMS, TRIPLES, find_text, literal_at
from headgate.rdf.index.arrays import (
    ALWAYS_CODE,
    FOLDED_CODE,
    IRI,
    ISA_CODE,
    LITERAL,
    LOWER_CODE,
    TYPE_CODE,
    WORD_CODE,
    WORDS,
)
from headgate.rdf.language.model import LANG_STRING, STRING, is_blank, is_iri, literal, parts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headgate.core.arrays import Bytes, Ints, Ints32
    from headgate.core.text.finding import KnownWords
    from headgate.rdf.events.preparing import Draft, Wanted
    from headgate.rdf.index.arrays import Dictionary, Encoded
    from headgate.rdf.language.model import Term


class Mapped(NamedTuple):
    """A taxonomy in terms of a dictionary: `code[t]` and `hat[t]` are those of term t and of ^t, or -1."""

    offsets: Ints
    data: Bytes
    table: Ints32
    code: Ints32
    hat: Ints32
    class_start: Ints
    class_up: Ints32
    property_start: Ints
    property_up: Ints32
    type_start: Ints
    type_of: Ints32


@bare_inner
def _find_local(event: Encoded, draft: Draft, data: Bytes, begin: int, end: int) -> int:
    """Find a term of the event by its text; -1 less the free place in the table for none."""
    mask = np.uint64(len(draft.local) - 1)
    at = hash_bytes(data, begin, end) & mask
    while True:
        t = draft.local[at]
        if t < 0:
            return -1 - int(at)
        first = event.start[t]
        size = event.stop[t] - first
        if size == end - begin and same_bytes(event.text, first, data, begin, size):
            return int(t)
        at = (at + np.uint64(1)) & mask


@bare_inner
def add_term(event: Encoded, draft: Draft, data: Bytes, begin: int, end: int, code: int, kind: int) -> int:
    """Add a term that the event does not hold; returns -1 if there is no room."""
    t, size = draft.counts[TERMS], draft.counts[BYTES]
    if t >= len(event.code) or size + end - begin > len(event.text):
        return -1
    for i in range(end - begin):
        event.text[size + i] = data[begin + i]
    event.start[t], event.stop[t] = size, size + end - begin
    event.code[t], event.kind[t] = code, kind
    event.begin[t], event.end[t] = size + 1, size + end - begin - 1
    event.marks[t], event.line[t], event.suffix[t] = 0, 0, -1
    draft.counts[TERMS] = t + 1
    draft.counts[BYTES] = size + end - begin
    return int(t)


@bare_inner
def _local(event: Encoded, draft: Draft, mapped: Mapped, term: int) -> int:
    """Find or add the term of the taxonomy at a place; returns -1 if there is no room."""
    begin, end = mapped.offsets[term], mapped.offsets[term + 1]
    t = _find_local(event, draft, mapped.data, begin, end)
    if t >= 0:
        return t
    free = -1 - t
    t = add_term(event, draft, mapped.data, begin, end, mapped.code[term], IRI)
    if t >= 0:
        draft.local[free] = t
    return t


@bare_inner
def add_triple(event: Encoded, draft: Draft, s: int, p: int, o: int, virtual: int) -> bool:
    """Add a triple; returns whether there was room."""
    t = draft.counts[TRIPLES]
    if t >= len(event.s):
        return False
    event.s[t], event.p[t], event.o[t], event.virtual[t] = s, p, o, virtual
    draft.counts[TRIPLES] = t + 1
    return True


@bare
def add_types(event: Encoded, draft: Draft, mapped: Mapped, type_place: int) -> bool:
    """Add the types that the taxonomy lists for nodes; returns whether there was room."""
    triples, terms = draft.counts[TRIPLES], draft.counts[TERMS]
    # Triples by subject as lists, and marks of objects, in arrays that are filled later.
    first, following, is_object = event.s_start, event.by_s, event.o_start
    for t in range(terms):
        first[t], is_object[t] = -1, 0
    for i in range(triples):
        following[i] = first[event.s[i]]
        first[event.s[i]] = i
        is_object[event.o[i]] = 1
    for t in range(terms):
        if event.kind[t] != IRI or (first[t] < 0 and not is_object[t]):
            continue
        term = find_text(mapped, event.text, event.start[t], event.stop[t])
        if term < 0 or mapped.type_start[term] == mapped.type_start[term + 1]:
            continue
        p = _local(event, draft, mapped, type_place)
        if p < 0:
            return False
        for k in range(mapped.type_start[term], mapped.type_start[term + 1]):
            o = _local(event, draft, mapped, mapped.type_of[k])
            if o < 0:
                return False
            i = first[t]
            while i >= 0 and (event.p[i] != p or event.o[i] != o):
                i = following[i]
            if i < 0 and not add_triple(event, draft, t, p, o, 0):
                return False
    return True


@bare
def add_classes(event: Encoded, draft: Draft, mapped: Mapped, wanted: Wanted) -> bool:
    """Add virtual triples to the classes above the types of each node; returns whether there was room."""
    isa = -1
    for i in range(draft.counts[TRIPLES]):
        o = event.o[i]
        if event.code[event.p[i]] != TYPE_CODE or event.virtual[i]:
            continue
        if isa < 0:
            isa = add_term(event, draft, mapped.data, 0, 0, ISA_CODE, 0)
            if isa < 0:
                return False
        term = find_text(mapped, event.text, event.start[o], event.stop[o])
        if term < 0:
            known = event.code[o] >= 0 or wanted.class_variables
            if known and not add_triple(event, draft, event.s[i], isa, o, 1):
                return False
            continue
        for k in range(mapped.class_start[term], mapped.class_start[term + 1]):
            above = mapped.class_up[k]
            if mapped.code[above] < 0 and not wanted.class_variables:
                continue
            t = _local(event, draft, mapped, above)
            if t < 0 or not add_triple(event, draft, event.s[i], isa, t, 1):
                return False
    return True


@bare
def add_hats(event: Encoded, draft: Draft, mapped: Mapped, triples: int) -> bool:
    """Add virtual triples of the properties above each property; returns whether there was room."""
    first = draft.counts[TERMS]
    for i in range(triples):
        p = event.p[i]
        term = find_text(mapped, event.text, event.start[p], event.stop[p])
        if term < 0:
            continue
        for k in range(mapped.property_start[term], mapped.property_start[term + 1]):
            code = mapped.hat[mapped.property_up[k]]
            if code < 0:
                continue
            hat = -1
            for t in range(first, draft.counts[TERMS]):
                if event.code[t] == code:
                    hat = t
            if hat < 0:
                hat = add_term(event, draft, mapped.data, 0, 0, code, 0)
            if hat < 0 or not add_triple(event, draft, event.s[i], hat, event.o[i], 1):
                return False
    return True


@bare
def add_always(event: Encoded, draft: Draft) -> bool:
    """Add the virtual triple that a pattern without edges asks for; returns whether there was room."""
    t = add_term(event, draft, event.text, 0, 0, ALWAYS_CODE, 0)
    return t >= 0 and add_triple(event, draft, t, t, t, 1)


_OF_TEXTS = 6
"""Properties of virtual triples of texts: `LOWER_CODE` and those behind it."""


def bit_of(code: int) -> int:
    """Return the bit of `Features.texts` that stands for a property, 0 for one that is not of texts."""
    return 1 << (code - LOWER_CODE) if LOWER_CODE <= code < LOWER_CODE + _OF_TEXTS else 0


WORD_BITS = bit_of(WORD_CODE) | bit_of(WORD_CODE + 1)
CASE_BITS = bit_of(LOWER_CODE) | bit_of(LOWER_CODE + 1) | bit_of(FOLDED_CODE) | bit_of(FOLDED_CODE + 1)


class Derived(NamedTuple):
    """Texts in another case: of which term of the event, by which property, and the terms themselves."""

    of: Ints32
    code: Ints32
    terms: TextPool


NOTHING = Derived(np.zeros(0, np.int32), np.zeros(0, np.int32), TextPool.build([]))


def derive(terms: Iterable[Term], bits: int) -> Derived:
    """Write the texts of an event in the cases that filters ask for.

    >>> found = derive(["<urn:x>", '"News"@en', '"7"^^<urn:d>'], bit_of(LOWER_CODE))
    >>> found.of.tolist(), found.terms.texts()
    ([1], ['"news"@en'])
    """
    of, codes, texts = [], [], []
    for index, term in enumerate(terms):
        for code, text in _derived(term, bits):
            of.append(index)
            codes.append(code)
            texts.append(text)
    return Derived(np.array(of, np.int32), np.array(codes, np.int32), TextPool.build(texts))


def _derived(term: Term, bits: int) -> Iterable[tuple[int, Term]]:
    if is_blank(term):
        return
    if is_iri(term):
        text, language, is_text = term[1:-1], "", False
    elif term.endswith('"') and "\\" not in term:
        # Most of what is published.
        text, language, is_text = term[1:-1], "", True
    else:
        text, datatype, language = parts(term)
        is_text = datatype in {STRING, LANG_STRING}
    for code in (LOWER_CODE, FOLDED_CODE):
        if not bits & (bit_of(code) | bit_of(code + 1)):
            continue
        other = text.lower() if code == LOWER_CODE else RUST.fold(text)
        if is_text and bits & bit_of(code):
            yield code, literal(other, language=language if code == LOWER_CODE else "")
        if bits & bit_of(code + 1):
            yield code + 1, literal(other)


class Met(NamedTuple):
    """What was met in an event: the term of each property of texts, -1 before it is; and words.

    `words` finds a word by its number: in a slot are the number plus one and the term. `last` is the term
    that had the word last, plus one.
    """

    named: Ints32
    words: Ints
    last: Ints32

    @classmethod
    def make(cls, letters: int) -> Met:
        """Make room for the words of so many letters: a word takes one, and what stands before it another."""
        size = 1 << max(6, letters.bit_length())
        return cls(np.full(_OF_TEXTS, -1, np.int32), np.zeros(size, np.int64), np.zeros(size, np.int32))


@bare_inner
def _property(event: Encoded, draft: Draft, met: Met, code: int) -> int:
    """Return the term of a property of texts, which is added when it is asked for first; -1: no room."""
    index = code - LOWER_CODE
    if met.named[index] < 0:
        met.named[index] = add_term(event, draft, event.text, 0, 0, code, 0)
    return int(met.named[index])


@bare
def add_derived(
    event: Encoded,
    draft: Draft,
    dictionary: Dictionary,
    wanted: Wanted,
    derived: Derived,
    met: Met,
    integer: Bytes,
    decimal: Bytes,
) -> bool:
    """Add texts in another case; returns whether there was room."""
    data, offsets = derived.terms.data, derived.terms.offsets
    for i in range(len(derived.of)):
        begin, end = offsets[i], offsets[i + 1]
        p = _property(event, draft, met, derived.code[i])
        if p < 0:
            return False
        code = find_text(dictionary, data, begin, end)
        t = add_term(event, draft, data, begin, end, code, LITERAL)
        if t < 0 or draft.counts[BYTES] + end - begin > len(event.text):
            return False
        literal_at(event, draft, t, event.start[t], event.stop[t], dictionary, wanted, integer, decimal)
        if not add_triple(event, draft, derived.of[i], p, t, 1):
            return False
    return True


@bare
def add_words(
    event: Encoded, draft: Draft, count: int, bits: int, met: Met, known: KnownWords, codes: Ints32
) -> bool:
    """Add the known words of the first terms, each a term of the event; returns whether there was room."""
    text, words, last = event.text, met.words, met.last
    for t in range(count):
        if event.kind[t] & (IRI | LITERAL) == 0:
            continue
        plain, any_text = -1, -1
        if event.marks[t] & WORDS and bits >> (WORD_CODE - LOWER_CODE) & 1:
            plain = _property(event, draft, met, WORD_CODE)
            if plain < 0:
                return False
        if bits >> (WORD_CODE + 1 - LOWER_CODE) & 1:
            any_text = _property(event, draft, met, WORD_CODE + 1)
            if any_text < 0:
                return False
        if plain < 0 and any_text < 0:
            continue
        at, stop = int(event.begin[t]), int(event.end[t])
        while at < stop:
            at, word = next_known(known, text, at, stop)
            if word < 0:
                break
            slot = slot_of(words, word)
            if words[slot] == 0:
                term = add_term(event, draft, text, 0, 0, codes[word], 0)
                if term < 0:
                    return False
                words[slot] = packed(word + 1, term)
            if last[slot] == t + 1:
                continue
            last[slot] = t + 1
            term = int(lower(words[slot]))
            if plain >= 0 and not add_triple(event, draft, t, plain, term, 1):
                return False
            if any_text >= 0 and not add_triple(event, draft, t, any_text, term, 1):
                return False
    return True
