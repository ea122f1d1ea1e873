"""Joins that could take for ever: they end quickly with the right answer, or say what was too much."""

from __future__ import annotations

import random
import time

import pytest

from headgate import Event, EventError, Options, RdfIndex, Subscription
from headgate.rdf.events.reading import make_graph
from headgate.rdf.language.model import XSD
from headgate.rdf.language.terms import literal
from tests.seeds import seeds

Statements = list[tuple[str, str, str]]


def match(text: str, statements: Statements, options: Options | None = None) -> list[object]:
    """Match one filter; a second of this thread's time is more than enough."""
    index = RdfIndex.build([Subscription("s", text, "sparql")], options=options)
    event = Event("e", make_graph(statements), content_type="nt")
    # Once before, so that no loop is compiled while the clock runs.
    found: list[object] = list(index.match(event))
    began = time.thread_time()
    assert index.match(event) == found
    assert time.thread_time() - began < 1
    return found


def star(properties: int) -> tuple[str, Statements]:
    """Draw a node with ten values of each property: 10 to the power of these rows."""
    body = " ; ".join(f"<urn:p{n}> ?v{n}" for n in range(properties))
    return f"?x {body}", [
        ("<urn:x>", f"<urn:p{n}>", literal(str(10 * n + value), f"{XSD}integer"))
        for n in range(properties)
        for value in range(10)
    ]


@pytest.mark.parametrize("guilty", [0, 7, 19])
def test_properties_of_a_node_are_searched_beside_each_other(guilty: int) -> None:
    body, statements = star(20)
    conditions = [f"?v{n} >= {10 * n + 9}" for n in range(20)]
    assert match(f"ASK {{ {body} FILTER({' && '.join(conditions)}) }}", statements) == ["s"]
    conditions[guilty] = f"?v{guilty} > 1000"
    assert match(f"ASK {{ {body} FILTER({' && '.join(conditions)}) }}", statements) == []


def test_a_property_that_leads_nowhere() -> None:
    body, statements = star(20)
    beside = ("<urn:z>", "<urn:q>", "<urn:w>")
    assert match(f"ASK {{ {body} . ?v3 <urn:q> ?w }}", [*statements, beside]) == []


def test_a_way_through_layers_that_ends() -> None:
    """Each layer is joined with all of the next: 12 ** 10 ways, and none is long enough."""
    statements = [
        (f"<urn:{layer}-{n}>", "<urn:p>", f"<urn:{layer + 1}-{m}>")
        for layer in range(9)
        for n in range(12)
        for m in range(12)
    ]
    steps = [f"?v{n} <urn:p> ?v{n + 1}" for n in range(10)]
    assert match(f"ASK {{ {' . '.join(steps)} }}", statements) == []
    assert match(f"ASK {{ {' . '.join(steps[:-1])} }}", statements) == ["s"]


def sides(size: int) -> Statements:
    """Draw two sets of nodes that nothing joins."""
    return [
        triple
        for n in range(size)
        for triple in (
            (f"<urn:a{n}>", "<urn:p>", f"<urn:b{n}>"),
            (f"<urn:c{n}>", "<urn:q>", f"<urn:d{n}>"),
        )
    ]


@pytest.mark.parametrize(("condition", "found"), [("?b = ?d", []), ("?b != ?d", ["s"]), ("?b < ?d", [])])
def test_parts_that_a_comparison_joins(condition: str, found: list[object]) -> None:
    text = f"ASK {{ ?a <urn:p> ?b . ?c <urn:q> ?d FILTER({condition}) }}"
    assert match(text, sides(100)) == found


def test_more_rows_in_doubt_than_there_is_room_for() -> None:
    text = "ASK { ?a <urn:p> ?b . ?c <urn:q> ?d FILTER(CONTAINS(str(?d), str(?b))) }"
    assert match(text, sides(30)) == []
    last = ("<urn:c>", "<urn:q>", "<urn:b29-and-more>")
    assert match(text, [*sides(30), last]) == ["s"]


def test_more_filters_in_doubt_than_there_is_room_for() -> None:
    """Thousands of filters share a pattern, and only evaluating them tells which hold."""
    texts = [f'ASK {{ ?x <urn:t> ?t FILTER(?t = "k{n}" || ?t = "j{n}") }}' for n in range(3000)]
    index = RdfIndex.build([Subscription(n, text, "sparql") for n, text in enumerate(texts)])
    statements = [("<urn:a>", "<urn:t>", literal(text)) for text in ("k3", "j7", "nothing")]
    assert index.match(Event("e", make_graph(statements), content_type="nt")) == [3, 7]


def test_texts_with_escapes_are_searched_as_quickly() -> None:
    index = RdfIndex.build(
        [
            Subscription(n, f'ASK {{ ?x <urn:t> ?t FILTER(CONTAINS(?t, "word{n} ")) }}', "sparql")
            for n in range(3000)
        ]
    )
    text = literal('she said "hi",\n\tword7 \\ word12 \x01\ufffe')
    event = Event("e", make_graph([("<urn:a>", "<urn:t>", text)]), content_type="nt")
    assert index.match(event) == [7, 12]
    began = time.thread_time()
    assert index.match(event) == [7, 12]
    assert time.thread_time() - began < 0.2
    odd = RdfIndex.build(
        [
            Subscription(0, 'ASK { ?x ?p ?t FILTER(STRENDS(?t, "\\u0001\\uFFFE")) }', "sparql"),
            Subscription(1, 'ASK { ?x ?p ?t FILTER(CONTAINS(?t, "\\",\\n\\tword")) }', "sparql"),
            Subscription(2, 'ASK { ?x ?p ?t FILTER(CONTAINS(?t, "\\\\n")) }', "sparql"),
        ]
    )
    assert odd.match(event) == [0, 1]


@pytest.mark.nightly
def test_too_much_is_refused_with_the_filter() -> None:
    text = "ASK { ?a <urn:p> ?b . ?c <urn:q> ?d FILTER(str(?b) = str(?d)) }"
    index = RdfIndex.build([Subscription("s", text, "sparql")])
    with pytest.raises(
        EventError, match=r"too much for the filter ASK \{ \?a <urn:p> \?b .* 50,000,000 steps"
    ):
        index.match(Event("e", make_graph(sides(400)), content_type="nt"))


@pytest.mark.jit_off
@pytest.mark.parametrize("seed", seeds(12))
def test_triangles_in_long_joins(seed: int) -> None:
    """Halves that are crossed in the last layer, so that hardly a triangle closes; the join is long."""
    rng = random.Random(seed)
    sizes = [rng.choice((2, 3, 200)) for _ in range(3)]
    nodes = [[f"<urn:{k}-{n}>" for n in range(sizes[k])] for k in range(3)]
    names = [f"<urn:p{rng.randrange(10**6)}>" for _ in range(3)]
    statements = [
        (one, names[k], other)
        for k in range(3)
        for i, one in enumerate(nodes[k])
        for j, other in enumerate(nodes[(k + 1) % 3])
        if ((i + j) % 2 == 0) == (k < 2)
    ]
    statements.append((nodes[2][-1], names[2], nodes[0][-1]))
    statements = list(dict.fromkeys(statements))
    rng.shuffle(statements)
    after: dict[tuple[str, str], list[str]] = {}
    for s, p, o in statements:
        after.setdefault((s, p), []).append(o)
    closes = any(
        a in after.get((c, names[2]), [])
        for (a, p), others in after.items()
        if p == names[0]
        for b in others
        for c in after.get((b, names[1]), [])
    )
    text = f"ASK {{ ?a {names[0]} ?b . ?b {names[1]} ?c . ?c {names[2]} ?a }}"
    assert match(text, statements) == (["s"] if closes else [])
    assert match(text, statements, Options(injective=True)) == (["s"] if closes else [])


@pytest.mark.jit_off
def test_injective_joins_go_back_one_by_one() -> None:
    ring = [(f"<urn:{n}>", "<urn:p>", f"<urn:{(n + 1) % 6}>") for n in range(6)]
    steps = " . ".join(f"?v{n} <urn:p> ?v{n + 1}" for n in range(6))
    assert match(f"ASK {{ {steps} }}", ring) == ["s"]
    assert match(f"ASK {{ {steps} }}", ring, Options(injective=True)) == []
    assert match(f"ASK {{ {steps.rsplit(' . ', 1)[0]} }}", ring, Options(injective=True)) == ["s"]


@pytest.mark.jit_off
def test_sixty_four_edges() -> None:
    chain = [(f"<urn:{n}>", "<urn:p>", f"<urn:{n + 1}>") for n in range(63)]
    body = " . ".join(f"?v{n} <urn:p> ?v{n + 1}" for n in range(63))
    assert match(f"ASK {{ {body} FILTER(str(?v63) = 'urn:63') }}", chain) == ["s"]
    assert match(f"ASK {{ {body} FILTER(str(?v63) = 'urn:62') }}", chain) == []
