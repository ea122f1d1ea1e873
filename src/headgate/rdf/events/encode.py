"""Graphs to encoded events."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.interning import TextPool
from headgate.rdf.events import preparing
from headgate.rdf.events.preparing import ASK, TERMS, TRIPLES, Draft, Wanted
from headgate.rdf.index.arrays import ALWAYS_CODE, ISA_CODE, PAIR, RANGE, SUFFIX, Encoded
from headgate.rdf.index.build import table_size
from headgate.rdf.index.compile import place
from headgate.rdf.index.laying import HEAD, place_terms, roles_of
from headgate.rdf.index.word_lists import WordTerms
from headgate.rdf.language.model import SUBCLASS, SUBPROPERTY, TYPE, XSD
from headgate.rdf.language.rewrite import HAT
from headgate.rdf.taxonomy import extending
from headgate.rdf.taxonomy.taxonomy import CONTAINERS, build_closure, entailed, own_order

if TYPE_CHECKING:
    from headgate.core.arrays import Ints, Ints32
    from headgate.rdf.index.arrays import Dictionary, RdfArrays
    from headgate.rdf.language.model import Graph, Options
    from headgate.rdf.taxonomy.extending import Derived
    from headgate.rdf.taxonomy.taxonomy import Closure, Taxonomy

_INTEGER = np.frombuffer(f"^^<{XSD}integer>".encode(), np.uint8)
_DECIMAL = np.frombuffer(f"^^<{XSD}decimal>".encode(), np.uint8)
_FEW = 64
"""Words of an event that there is room for at first."""
_OWN = b"http://www.w3.org/2000/01/rdf-schema#sub"


class Features(NamedTuple):
    """What filters of an index look at; `hats` are the properties that they name with those below."""

    lines: bool = False
    suffixes: bool = False
    classes: bool = False
    class_variables: bool = False
    always: bool = False
    hats: tuple[str, ...] = ()
    texts: int = 0
    """Which virtual triples of texts: bits of `texts.bit_of`."""


def features_of(arrays: RdfArrays) -> Features:
    """Find out what the filters of an index look at."""
    edges = arrays.edges
    isa = edges.p == ISA_CODE
    # The codes of hats are among those of properties.
    offsets, data, _ = arrays.dictionary
    named = TextPool(offsets, data)
    words = arrays.checks.words
    checks = set(words[roles_of(words) == HEAD].tolist())
    codes = np.unique(edges.p[edges.p > ALWAYS_CODE])
    hats = codes[data[offsets[codes]] == ord(HAT)].tolist()
    return Features(
        lines=bool(len(arrays.groups.slot)) or bool({RANGE, PAIR} & checks),
        suffixes=SUFFIX in checks,
        classes=bool(isa.any()),
        class_variables=bool((edges.o[isa] < 0).any()),
        always=bool((edges.p == ALWAYS_CODE).any()),
        hats=tuple(named.text(code)[1:] for code in hats),
        texts=sum(map(extending.bit_of, codes.tolist())),
    )


class TaxonomyLayout(NamedTuple):
    """A taxonomy, with hats, before it meets a dictionary: `mapped` lacks the codes.

    `hat_at` are the places of the hats, `type_at` that of rdf:type.
    """

    mapped: extending.Mapped
    pool: TextPool
    hat_at: Ints
    type_at: int
    has_types: bool


class Layouts:
    """The layouts of a version of a taxonomy, which dictionaries that follow each other share, by hats."""

    def __init__(self) -> None:
        self._last: tuple[int, dict[tuple[str, ...], TaxonomyLayout]] = (-1, {})
        """A version and its layouts, replaced as a whole: threads share them without a lock."""

    def of(self, taxonomy: Taxonomy, hats: tuple[str, ...]) -> tuple[int, TaxonomyLayout]:
        """Return the version of a taxonomy and its layout."""
        version, last = taxonomy.version, self._last
        known = last[1] if version == last[0] else {}
        if hats not in known:
            known[hats] = lay_out(taxonomy.closure(), hats)
        self._last = version, known
        return version, known[hats]


def lay_out(closure: Closure, hats: tuple[str, ...]) -> TaxonomyLayout:
    """Lay a taxonomy out for looking terms up; hats that it does not know stand alone."""
    terms = closure.terms.split(b"\n") if closure.terms else []
    there = set(terms)
    alone = [text for text in map(str.encode, dict.fromkeys((*hats, TYPE))) if text not in there]
    terms += alone
    number_of = {text: n for n, text in enumerate(terms)}
    pool = TextPool.build([text.decode() for text in terms])
    table = np.full(table_size(pool.size), -1, np.int32)
    place_terms(pool.offsets, pool.data, 0, pool.size, table)
    none = np.zeros(0, np.int32)
    mapped = extending.Mapped(
        pool.offsets,
        pool.data,
        table,
        none,
        none,
        *_extended(closure.class_start, closure.class_up, len(alone), itself=True),
        *_extended(closure.property_start, closure.property_up, len(alone), itself=True),
        *_extended(closure.type_start, closure.type_of, len(alone), itself=False),
    )
    hat_at = np.array([number_of[text.encode()] for text in hats], np.int64)
    return TaxonomyLayout(mapped, pool, hat_at, number_of[TYPE.encode()], bool(len(closure.type_of)))


class Encoder:
    """Encodes graphs for one dictionary, with one taxonomy."""

    def __init__(
        self,
        dictionary: Dictionary,
        features: Features,
        options: Options,
        taxonomy: Taxonomy,
        layouts: Layouts,
        words: WordTerms | None = None,
    ) -> None:
        self._layouts = layouts
        self._texts = features.texts
        self._words = (
            WordTerms.of(dictionary) if words is None and features.texts & extending.WORD_BITS else words
        )
        self._most = _FEW
        self._dictionary = dictionary
        self._taxonomy = taxonomy
        self._hats = features.hats
        self._wanted = Wanted(
            features.lines,
            options.coerce,
            features.suffixes,
            features.classes,
            features.class_variables,
            bool(features.hats),
            False,
            features.always,
        )
        self._mapped: tuple[int, extending.Mapped, Wanted, int] | None = None

    def encode(self, graph: Graph) -> Encoded:
        """Encode a graph."""
        mapped, wanted, type_place = self._map()
        graph = entailed(graph, self._taxonomy)
        if (_OWN in graph.text and (wanted.classes or wanted.hats)) or (
            wanted.hats and CONTAINERS in graph.text
        ):
            mapped, wanted, type_place = self._map_own(graph)
        terms, triples = graph.text.count(b"\n") + bool(graph.text), len(graph.triples)
        derived, more, letters = None, 0, 0
        if self._texts:
            derived = (
                extending.derive(graph.terms(), self._texts)
                if self._texts & extending.CASE_BITS
                else extending.NOTHING
            )
            more, letters = len(derived.of) + self._most, 2 * len(derived.terms.data)
        room = 32 if wanted.classes or wanted.hats or wanted.types else int(wanted.always)
        while True:
            event = self._try(
                graph,
                mapped,
                wanted,
                type_place,
                terms + 2 * room + more,
                triples + 2 * room + 2 * more,
                64 * room + letters,
                derived,
            )
            if event is not None:
                break
            room = 4 * max(room, 8)
            if self._texts & extending.WORD_BITS:
                # Texts of one feed are much alike: the next one finds room at once.
                more = self._most = max(self._most, 4 * more)
        if wanted.lines:
            self._find_lines(event)
        return event

    def _try(
        self,
        graph: Graph,
        mapped: extending.Mapped,
        wanted: Wanted,
        type_place: int,
        terms: int,
        triples: int,
        more: int,
        derived: Derived | None,
    ) -> Encoded | None:
        grows = wanted.classes or wanted.types or wanted.hats
        event, draft = _draft_of(graph, terms, triples, more, grows)
        size, given = len(graph.text), len(graph.triples)
        preparing.read_terms(event, draft, self._dictionary, wanted, size, _INTEGER, _DECIMAL, grows)
        draft.counts[TRIPLES] = given
        if grows:
            done = not wanted.types or extending.add_types(event, draft, mapped, type_place)
            real = int(draft.counts[TRIPLES])
            done = done and (not wanted.classes or extending.add_classes(event, draft, mapped, wanted))
            done = done and (not wanted.hats or extending.add_hats(event, draft, mapped, real))
            if not done:
                return None
        if wanted.always and not extending.add_always(event, draft):
            return None
        if derived is not None and not self._add_texts(event, draft, derived, wanted):
            return None
        count, count_found = int(draft.counts[TRIPLES]), int(draft.counts[TERMS])
        event = event._replace(
            s=event.s[:count],
            p=event.p[:count],
            o=event.o[:count],
            virtual=event.virtual[:count],
            by_s=event.by_s[:count],
            by_o=event.by_o[:count],
            s_start=event.s_start[: count_found + 1],
            o_start=event.o_start[: count_found + 1],
            code=event.code[:count_found],
        )
        preparing.sort_triples(event, count)
        return event

    def _add_texts(self, event: Encoded, draft: Draft, derived: Derived, wanted: Wanted) -> bool:
        """Add what filters look for in texts; returns whether there was room."""
        count = int(draft.counts[TERMS])
        met = extending.Met.make(len(event.text) if self._texts & extending.WORD_BITS else 0)
        done = not len(derived.of) or extending.add_derived(
            event, draft, self._dictionary, wanted, derived, met, _INTEGER, _DECIMAL
        )
        if done and self._words is not None and self._texts & extending.WORD_BITS:
            done = extending.add_words(event, draft, count, self._texts, met, *self._words)
        return bool(done)

    def _find_lines(self, event: Encoded) -> None:
        """Find out where values lie that took too long to read in a loop."""
        for t in np.flatnonzero(event.line[: len(event.code)] == ASK).tolist():
            position = place(self.term(event, t), self._wanted.coerce)
            event.line[t], event.key[t], event.slack[t] = position.line, position.key, position.slack
            event.marks[t] |= position.marks

    @staticmethod
    def term(event: Encoded, t: int) -> str:
        """Return a term of an event as text."""
        return event.text[event.start[t] : event.stop[t]].tobytes().decode()

    def _map(self) -> tuple[extending.Mapped, Wanted, int]:
        """Return the taxonomy in terms of the dictionary, made anew if it has changed."""
        if self._mapped is None or self._mapped[0] != self._taxonomy.version:
            version, layout = self._layouts.of(self._taxonomy, self._hats)
            self._mapped = (version, *self._mapped_to(layout))
        return self._mapped[1:]

    def _mapped_to(self, layout: TaxonomyLayout) -> tuple[extending.Mapped, Wanted, int]:
        code, hat = np.full((2, layout.pool.size), -1, np.int32)
        preparing.find_all(self._dictionary, layout.pool, code)
        if self._hats:
            hat_codes = np.empty(len(self._hats), np.int32)
            preparing.find_all(
                self._dictionary, TextPool.build([HAT + text for text in self._hats]), hat_codes
            )
            hat[layout.hat_at] = hat_codes
        wanted = self._wanted._replace(types=layout.has_types)
        return layout.mapped._replace(code=code, hat=hat), wanted, layout.type_at

    def _map_own(self, graph: Graph) -> tuple[extending.Mapped, Wanted, int]:
        """Map the taxonomy as an event changes it that says itself what is below what."""
        given = self._taxonomy
        statements = graph.statements()
        classes = [(below, above) for below, kind, above in statements if kind == SUBCLASS]
        properties = [(below, above) for below, kind, above in own_order(statements) if kind == SUBPROPERTY]
        near = {term for each in statements for term in each}
        types = [(term, kind) for term in near for kind in given.types(term)]
        near.update(kind for _, kind in types)
        classes += [(term, above) for term in near for above in given.ancestors(term)]
        properties += [(term, above) for term in near for above in given.property_ancestors(term)]
        return self._mapped_to(lay_out(build_closure(classes, properties, types), self._hats))


def _extended(start: Ints, items: Ints32, more: int, *, itself: bool) -> tuple[Ints, Ints32]:
    """Add rows of terms that stand alone."""
    if not itself:
        return np.concatenate([start, np.full(more, start[-1])]), items
    count = len(start) - 1
    return (
        np.concatenate([start, start[-1] + np.arange(1, more + 1)]),
        np.concatenate([items, np.arange(count, count + more, dtype=np.int32)]),
    )


def _draft_of(graph: Graph, terms: int, triples: int, more: int, grows: bool) -> tuple[Encoded, Draft]:
    """Make room for an event, with its text and its triples in place."""
    size = len(graph.text)
    # Texts with escapes are written once more without.
    more += size if b"\\" in graph.text else 0
    text = np.empty(size + more, np.uint8)
    text[:size] = np.frombuffer(graph.text, np.uint8)
    given = len(graph.triples)
    s, p, o, by_s, by_o = np.empty((5, triples), np.int32)
    s[:given], p[:given], o[:given] = graph.triples.T
    code, suffix, begin, end, start, stop = np.empty((6, terms), np.int32)
    kind, marks = np.zeros((2, terms), np.uint8)
    key, slack = np.zeros((2, terms), np.float64)
    s_start, o_start = np.zeros((2, terms + 1), np.int32)
    event = Encoded(
        code,
        kind,
        marks,
        np.zeros(terms, np.int8),
        key,
        slack,
        suffix,
        begin,
        end,
        start,
        stop,
        text,
        s,
        p,
        o,
        np.zeros(triples, np.uint8),
        s_start,
        by_s,
        o_start,
        by_o,
    )
    local = np.full(table_size(2 * terms) if grows else 8, -1, np.int32)
    return event, Draft(local, np.zeros(3, np.int64))
