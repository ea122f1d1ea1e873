"""The taxonomy: its closure against the obvious one, live changes, and real vocabularies."""

from __future__ import annotations

import os
import pickle
import random
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import TaxonomyError
from headgate.rdf.events.reading import Reader
from headgate.rdf.language.model import RDF, RDFS, SUBCLASS, SUBPROPERTY, TYPE
from headgate.rdf.taxonomy import taxonomy as closing
from headgate.rdf.taxonomy.taxonomy import OWL, Closure, Taxonomy, build_closure
from tests.rdf.invariants import check_closure
from tests.seeds import seeds

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DATA = Path(os.environ.get("HEADGATE_DATA", "data"))
SCHEMA_ORG = DATA / "schemaorg" / "schemaorg-all-https.nt"
Statement = tuple[str, str, str]


def name(number: int) -> str:
    return f"<urn:{number}>"


def naive(pairs: set[tuple[str, str]], term: str) -> frozenset[str]:
    """Go up until nothing is new."""
    found = {term}
    while more := {high for low, high in pairs if low in found} - found:
        found |= more
    return frozenset(found)


def pairs_of(statements: list[Statement], relation: str) -> set[tuple[str, str]]:
    return {(low, high) for low, given, high in statements if given == relation}


def agree(taxonomy: Taxonomy, statements: list[Statement]) -> None:
    classes, properties = pairs_of(statements, SUBCLASS), pairs_of(statements, SUBPROPERTY)
    types = pairs_of(statements, TYPE)
    for term in {*(term for triple in statements for term in triple[::2]), "<urn:unknown>"}:
        assert taxonomy.ancestors(term) == naive(classes, term)
        assert taxonomy.property_ancestors(term) == naive(properties, term)
        assert taxonomy.types(term) == {high for low, high in types if low == term}
    check_closure(taxonomy.closure())


def rows(closure: Closure, start: NDArray[np.int64], items: NDArray[np.int32]) -> dict[str, set[str]]:
    terms = closure.terms.decode().split("\n")
    return {term: {terms[item] for item in items[start[t] : start[t + 1]]} for t, term in enumerate(terms)}


NAMES = st.integers(0, 9).map(name)
RELATIONS = st.sampled_from([SUBCLASS, SUBCLASS, SUBPROPERTY, TYPE])
STATEMENTS = st.lists(st.tuples(NAMES, RELATIONS, NAMES), max_size=25)


@given(STATEMENTS)
def test_the_closure_is_the_obvious_one(statements: list[Statement]) -> None:
    taxonomy = Taxonomy.of(statements)
    agree(taxonomy, statements)
    closure = taxonomy.closure()
    if statements:
        found = rows(closure, closure.class_start, closure.class_up)
        assert found == {term: set(taxonomy.ancestors(term)) for term in found}
    assert taxonomy.statements() == sorted(set(statements))
    assert len(taxonomy) == len(set(statements))


@given(STATEMENTS)
def test_arrays_and_back(statements: list[Statement]) -> None:
    taxonomy = Taxonomy.of(statements)
    again = Taxonomy.from_arrays(taxonomy.to_arrays())
    assert again.statements() == taxonomy.statements()
    assert (again.ignored, again.unnamed) == (0, 0)
    assert pickle.loads(pickle.dumps(taxonomy)).statements() == taxonomy.statements()


@pytest.mark.parametrize("seed", seeds(20))
def test_live_changes(seed: int) -> None:
    rng = random.Random(seed)
    taxonomy = Taxonomy()
    held: list[Statement] = []
    for _ in range(60):
        statement = (
            name(rng.randrange(8)),
            rng.choice([SUBCLASS, SUBPROPERTY, TYPE]),
            name(rng.randrange(8)),
        )
        version = taxonomy.version
        if statement in held and rng.random() < 0.8:
            taxonomy.remove(statement)
            held.remove(statement)
            assert taxonomy.version == version + 1
        else:
            taxonomy.add(statement)
            assert taxonomy.version == version + (statement not in held)
            held += [statement] * (statement not in held)
        if rng.random() < 0.3:
            agree(taxonomy, held)
    agree(taxonomy, held)


def test_a_closure_stays_as_it_was() -> None:
    taxonomy = Taxonomy.of([(name(1), SUBCLASS, name(2))])
    before = taxonomy.closure()
    assert taxonomy.closure() is before, "nothing has changed"
    terms, items = before.terms, before.class_up.tolist()
    taxonomy.add((name(2), SUBCLASS, name(3)))
    assert taxonomy.closure() is not before
    assert (before.terms, before.class_up.tolist()) == (terms, items)


def test_a_cycle_is_one() -> None:
    taxonomy = Taxonomy.of([(name(n), SUBCLASS, name((n + 1) % 5)) for n in range(5)])
    taxonomy.add((name(3), SUBCLASS, name(9)))
    taxonomy.add((name(8), SUBCLASS, name(0)))
    everyone = frozenset(map(name, (0, 1, 2, 3, 4, 9)))
    assert {taxonomy.ancestors(name(n)) for n in range(5)} == {everyone}
    assert taxonomy.ancestors(name(8)) == everyone | {name(8)}
    assert taxonomy.ancestors(name(9)) == {name(9)}


def test_what_is_left_out_is_counted() -> None:
    book, label = "<urn:Book>", f"<{RDFS}label>"
    taxonomy = Taxonomy.of(
        [
            (book, label, '"Book"'),
            (book, f"<{RDFS}comment>", '"A book"@en'),
            (book, TYPE, f"<{RDFS}Class>"),
            (book, TYPE, f"<{OWL}Class>"),
            ("<urn:title>", TYPE, f"<{RDF}Property>"),
            (book, SUBCLASS, "_:b0"),
            ("_:b0", TYPE, book),
            ("<urn:x>", TYPE, '"book"'),
            (book, SUBCLASS, f"<{OWL}Thing>"),
            ("<urn:moby-dick>", TYPE, book),
        ]
    )
    assert (taxonomy.ignored, taxonomy.unnamed) == (5, 3)
    assert taxonomy.types(book) == frozenset()
    assert taxonomy.types("<urn:moby-dick>") == {book}
    assert taxonomy.ancestors(book) == {book, f"<{OWL}Thing>"}


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        (("<urn:a>", f"<{RDFS}label>", '"a"'), "the property is one of rdfs:subClassOf"),
        (("_:a", SUBCLASS, "<urn:b>"), "a class, a property and an instance are IRIs"),
        (("<urn:a>", TYPE, '"b"'), "a class, a property and an instance are IRIs"),
        (("<urn:a>", TYPE, f"<{RDFS}Class>"), "makes no instance"),
    ],
)
def test_what_cannot_be_added(statement: Statement, why: str) -> None:
    taxonomy = Taxonomy()
    with pytest.raises(TaxonomyError, match=f"cannot be part of a taxonomy: .*{why}"):
        taxonomy.add(statement)
    with pytest.raises(TaxonomyError, match="is not in the taxonomy"):
        taxonomy.remove(statement)
    assert taxonomy.version == 0


def test_a_vocabulary_in_every_format() -> None:
    turtle = f"""@prefix rdfs: <{RDFS}> . @prefix e: <urn:e:> .
        e:Novel a rdfs:Class ; rdfs:subClassOf e:Book ; rdfs:label "novel" .
        e:author rdfs:subPropertyOf e:maker . e:moby a e:Novel ."""
    xml = f"""<rdf:RDF xmlns:rdf="{RDF}" xmlns:rdfs="{RDFS}" xmlns:e="urn:e:">
        <rdfs:Class rdf:about="urn:e:Novel"><rdfs:subClassOf rdf:resource="urn:e:Book"/>
        <rdfs:label>novel</rdfs:label></rdfs:Class>
        <rdf:Description rdf:about="urn:e:author"><rdfs:subPropertyOf rdf:resource="urn:e:maker"/>
        </rdf:Description><e:Novel rdf:about="urn:e:moby"/></rdf:RDF>"""
    for text, kind in ((turtle, "turtle"), (xml, "rdfxml")):
        taxonomy = Taxonomy.read(text, kind, Reader(isolated=False))
        assert taxonomy.ignored == 2
        assert taxonomy.ancestors("<urn:e:Novel>") == {"<urn:e:Novel>", "<urn:e:Book>"}
        assert taxonomy.property_ancestors("<urn:e:author>") == {"<urn:e:author>", "<urn:e:maker>"}
        assert taxonomy.types("<urn:e:moby>") == {"<urn:e:Novel>"}


def test_a_vocabulary_may_be_larger_than_an_event() -> None:
    lines = [
        f"<http://example.org/class/{n}> {SUBCLASS} <http://example.org/class/{n // 2}> .\n"
        for n in range(40_000)
    ]
    text = "".join(lines)
    assert len(text) > 4 << 20
    assert len(Taxonomy.read(text, "nt")) == 40_000


def test_terms_are_sorted_by_their_bytes() -> None:
    terms = ["<urn:é>", "<urn:z>", "<urn:\U0001f388>", "<urn:\uffee>", "<urn:A>"]
    closure = build_closure([(term, "<urn:top>") for term in terms], [], [])
    lines = closure.terms.split(b"\n")
    assert lines == sorted(lines)
    check_closure(closure)


def test_nothing_is_a_taxonomy() -> None:
    closure = Taxonomy().closure()
    check_closure(closure)
    assert closure.terms == b""
    assert closure.class_start.tolist() == [0]


def test_a_taxonomy_that_is_too_deep_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closing, "LIMIT", 1000)
    chain = [(name(n), SUBCLASS, name(n + 1)) for n in range(60)]
    with pytest.raises(TaxonomyError, match=r"more than 1,000 pairs of a class and its ancestor"):
        Taxonomy.of(chain).closure()


def test_a_long_chain_needs_no_recursion() -> None:
    taxonomy = Taxonomy.of([(name(n), SUBCLASS, name(n + 1)) for n in range(3000)])
    assert len(taxonomy.ancestors(name(0))) == 3001


def test_readers_and_writers_at_once() -> None:
    """Whoever adds a class above all and takes it away again is seen whole, or not at all."""
    taxonomy = Taxonomy.of([(name(n), SUBCLASS, name(n // 2)) for n in range(1, 200)])
    low, high = len(taxonomy.ancestors(name(199))), len(taxonomy.ancestors(name(199))) + 1
    wrong: list[object] = []
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            closure = taxonomy.closure()
            found = rows(closure, closure.class_start, closure.class_up)
            if len(found[name(199)]) not in {low, high}:
                wrong.append(found[name(199)])
            if len(taxonomy.ancestors(name(199))) not in {low, high}:
                wrong.append("ancestors")

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(60):
        taxonomy.add((name(0), SUBCLASS, "<urn:top>"))
        taxonomy.remove((name(0), SUBCLASS, "<urn:top>"))
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert taxonomy.version == 120


@pytest.mark.skipif(not SCHEMA_ORG.exists(), reason="schema.org's vocabulary is not here")
def test_schema_org() -> None:
    taxonomy = Taxonomy.read(SCHEMA_ORG.read_bytes(), "nt")
    statements = taxonomy.statements()
    assert len(pairs_of(statements, SUBCLASS)) > 900
    restaurant = taxonomy.ancestors("<https://schema.org/Restaurant>")
    assert {"<https://schema.org/Place>", "<https://schema.org/Organization>"} < restaurant
    assert taxonomy.types("<https://schema.org/Hardcover>") == {"<https://schema.org/BookFormatType>"}
    assert taxonomy.types("<https://schema.org/Restaurant>") == frozenset()
    rng = random.Random(1)
    classes = pairs_of(statements, SUBCLASS)
    for term in rng.sample(sorted({low for low, _ in classes}), 50):
        assert taxonomy.ancestors(term) == naive(classes, term)
    check_closure(taxonomy.closure())
