"""What filters look for in the texts of an event, as virtual triples: texts in another case, and words.

From a string leads one triple to its lower case, one to the same in any case, and one to each of its words;
each only if a filter asks for it, and to words that a filter names. So patterns find them as they find all
else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.interning import TextPool
from headgate.core.jit import bare, bare_inner
from headgate.core.text.alphabets import RUST
from headgate.core.text.finding import next_word, number_of
from headgate.rdf.events.preparing import find_text, literal_at
from headgate.rdf.index.arrays import FOLDED_CODE, IRI, LITERAL, LOWER_CODE, WORD_CODE, WORDS
from headgate.rdf.language.model import LANG_STRING, STRING, is_blank, is_iri, literal, parts
from headgate.rdf.taxonomy.extending import add_term, add_triple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from headgate.rdf.events.preparing import Draft, Wanted
    from headgate.rdf.index.arrays import Dictionary, Encoded
    from headgate.rdf.language.model import Term

    Ints = NDArray[np.int64]

_OF_TEXTS = 6
"""Properties of virtual triples of texts: `LOWER_CODE` and those behind it."""


def bit_of(code: int) -> int:
    """Return the bit of `Features.texts` that stands for a property, 0 for one that is not of texts."""
    return 1 << (code - LOWER_CODE) if LOWER_CODE <= code < LOWER_CODE + _OF_TEXTS else 0


WORD_BITS = bit_of(WORD_CODE) | bit_of(WORD_CODE + 1)
CASE_BITS = bit_of(LOWER_CODE) | bit_of(LOWER_CODE + 1) | bit_of(FOLDED_CODE) | bit_of(FOLDED_CODE + 1)


class Derived(NamedTuple):
    """Texts in another case: of which term of the event, by which property, and the terms themselves."""

    of: NDArray[np.int32]
    code: NDArray[np.int32]
    terms: TextPool


NOTHING = Derived(np.zeros(0, np.int32), np.zeros(0, np.int32), TextPool.build([]))


def derive(terms: Iterable[Term], bits: int) -> Derived:
    """Write the texts of an event in the cases that filters ask for.

    >>> found = derive(["<urn:x>", '"News"@en', '"7"^^<urn:d>'], bit_of(LOWER_CODE))
    >>> found.of.tolist(), found.terms.texts()
    ([1], ['"news"@en'])
    """
    of, codes, texts = [], [], []
    for place, term in enumerate(terms):
        for code, text in _derived(term, bits):
            of.append(place)
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

    named: NDArray[np.int32]
    words: Ints
    last: NDArray[np.int32]

    @classmethod
    def make(cls, letters: int) -> Met:
        """Make room for the words of so many letters: a word takes one, and what stands before it another."""
        size = 1 << max(6, letters.bit_length())
        return cls(np.full(_OF_TEXTS, -1, np.int32), np.zeros(size, np.int64), np.zeros(size, np.int32))


@bare_inner
def _property(event: Encoded, draft: Draft, met: Met, code: int) -> int:
    """Return the term of a property of texts, which is added when it is asked for first; -1: no room."""
    place = code - LOWER_CODE
    if met.named[place] < 0:
        met.named[place] = add_term(event, draft, event.text, 0, 0, code, 0)
    return int(met.named[place])


@bare
def add_derived(
    event: Encoded,
    draft: Draft,
    dictionary: Dictionary,
    wanted: Wanted,
    derived: Derived,
    met: Met,
    integer: NDArray[np.uint8],
    decimal: NDArray[np.uint8],
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
        if t < 0 or draft.counts[2] + end - begin > len(event.text):
            return False
        literal_at(event, draft, t, event.start[t], event.stop[t], dictionary, wanted, integer, decimal)
        if not add_triple(event, draft, derived.of[i], p, t, 1):
            return False
    return True


@bare
def add_words(
    event: Encoded,
    draft: Draft,
    count: int,
    bits: int,
    met: Met,
    letters: NDArray[np.int32],
    known_offsets: Ints,
    known: NDArray[np.uint8],
    slots: NDArray[np.uint64],
    codes: NDArray[np.int32],
) -> bool:
    """Add the known words of the first terms, each a term of the event; returns whether there was room."""
    text, words, last = event.text, met.words, met.last
    size = len(words)
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
            at, begin, end, found = next_word(letters, text, at, stop)
            if begin == end:
                continue
            word = number_of(letters, known_offsets, known, slots, text, begin, end, found)
            if word < 0:
                continue
            place = word & (size - 1)
            while words[place] and words[place] >> 32 != word + 1:
                place = (place + 1) & (size - 1)
            if words[place] == 0:
                term = add_term(event, draft, text, 0, 0, codes[word], 0)
                if term < 0:
                    return False
                words[place] = (np.int64(word + 1) << 32) | term
            if last[place] == t + 1:
                continue
            last[place] = t + 1
            term = words[place] & 0xFFFFFFFF
            if plain >= 0 and not add_triple(event, draft, t, plain, term, 1):
                return False
            if any_text >= 0 and not add_triple(event, draft, t, any_text, term, 1):
                return False
    return True
