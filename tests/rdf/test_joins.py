"""Joins and searches that could take for ever: they end soon with the right answer, or are left out."""

from __future__ import annotations

import random
import time
from functools import partial

import pyarrow as pa
import pytest

from headgate import Event, Omission, Omissions, Options, Subscription
from headgate.errors import EventError
from headgate.rdf.events.reading import make_graph
from headgate.rdf.explain import explain
from headgate.rdf.index import matching
from headgate.rdf.index.index import RdfIndex
from headgate.rdf.language.model import XSD, literal
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


def clique(size: int) -> str:
    """Ask for nodes that are all joined."""
    return " . ".join(f"?v{i} <urn:p> ?v{j}" for i in range(size) for j in range(i))


def dense(nodes: int = 100) -> Event:
    """Draw a graph in which half of all nodes are joined: cliques of eleven take for ever."""
    rng = random.Random(5)
    pairs = [(i, j) for i in range(nodes) for j in range(i) if rng.random() < 0.5]
    statements = [(f"<urn:n{i}>", "<urn:p>", f"<urn:n{j}>") for i, j in pairs]
    return Event("e", make_graph(statements), content_type="nt")


REASON = "joining it takes more than {} steps; send smaller events, or narrow the filter"


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let filters take so few steps that nobody has to wait for them."""
    monkeypatch.setattr(matching, "BUDGET", 2_000_000)
    monkeypatch.setattr(explain, "nearest", partial(explain.nearest, budget=200))


@pytest.mark.usefixtures("short")
def test_a_filter_that_is_too_much_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    texts = {
        "clique": f"ASK {{ {clique(11)} }}",
        "edge": "ASK { ?a <urn:p> ?b }",
        "none": "ASK { ?a <urn:q> ?b }",
        "triangle": f"ASK {{ {clique(3)} }}",
    }
    index = RdfIndex.build([Subscription(each, text, "sparql") for each, text in texts.items()])
    event = dense()
    told = [Omission("e", "clique", REASON.format("2,000,000"))]
    with Omissions() as left_out:
        assert index.match(event) == ["edge", "triangle"]
    assert list(left_out) == told
    with Omissions() as left_out:
        found = index.match_batch([event, event], pa.array(["x", "y"]))
    assert found["subscription_id"].to_pylist() == ["edge", "triangle"] * 2
    assert list(left_out) == [each._replace(event=name) for name in "xy" for each in told]
    # What is looked up is told again, and each time once.
    for _ in range(2):
        with Omissions() as left_out:
            assert index.next(event, "a") == "edge"
            assert index.next(event, "f") == "triangle"
        assert list(left_out) == told
    # What nobody collects is logged.
    assert not caplog.records
    assert index.match(event) == ["edge", "triangle"]
    assert caplog.messages == [f"subscription 'clique' is left out of event 'e': {told[0].reason}"]
    why = index.explain(event, "clique")
    assert not why.matches
    assert why.lines()[0] == f"left out: {told[0].reason}"
    with pytest.raises(EventError, match=r"takes more than 200,000 steps"):
        index.bindings(event, "clique", 1)
    # It is not left out of events that it is not too much for, nor once it is gone.
    small = dense(12)
    with Omissions() as left_out:
        assert index.match(small) == ["edge", "triangle"]
        index.unsubscribe("clique")
        assert index.match(event) == ["edge", "triangle"]
    assert not list(left_out)


@pytest.mark.usefixtures("short")
def test_filters_that_came_later_are_left_out_too() -> None:
    index = RdfIndex.build([Subscription("edge", "ASK { ?a <urn:p> ?b }", "sparql")])
    index.subscribe(Subscription("clique", f"ASK {{ {clique(11)} }}", "sparql"))
    index.subscribe(Subscription("last", "ASK { ?b <urn:p> ?a }", "sparql"))
    with Omissions() as left_out:
        assert index.match(dense()) == ["edge", "last"]
    assert [each.subscription for each in left_out] == ["clique"]


@pytest.mark.nightly
def test_further_filters_that_are_too_much_have_less_time() -> None:
    """Ten of them take two seconds, not five."""
    texts = [f"{clique(11)} . ?v0 <urn:p> ?w{n % 5} . ?v{n} <urn:p> ?u" for n in range(10)]
    index = RdfIndex.build([Subscription(n, f"ASK {{ {text} }}", "sparql") for n, text in enumerate(texts)])
    event = dense()
    with Omissions():
        index.match(event)
    began = time.thread_time()
    with Omissions() as left_out:
        assert index.match(event) == []
    assert time.thread_time() - began < 2.5
    assert len(left_out) == len({each.subscription for each in left_out}) > 5
    assert min(each.reason for each in left_out) == REASON.format("1,048,576")


def test_one_filter_does_not_leave_out_those_of_its_shape() -> None:
    """Filters that share a pattern are joined together; one that wants every row must not cost the others."""
    body = "?a <urn:p> ?b . ?c <urn:q> ?d"
    texts = [f'ASK {{ {body} FILTER(CONTAINS(str(?d), "d{n}")) }}' for n in range(20)]
    texts += [f'ASK {{ {body} FILTER(CONTAINS(str(?d), "none{n}")) }}' for n in range(20)]
    texts += [f"ASK {{ {body} FILTER(str(?b) = str(?d)) }}"]
    index = RdfIndex.build([Subscription(n, text, "sparql") for n, text in enumerate(texts)])
    with Omissions() as left_out:
        assert index.match(Event("e", make_graph(sides(320)), content_type="nt")) == list(range(20))
    assert [each.subscription for each in left_out] == [40]
    # The same without doubts: each is quick by itself, and all together are not.
    body, statements = star(12)
    texts = [f"ASK {{ {body} FILTER(?v{n} > 1000) }}" for n in range(12)]
    texts += [f"ASK {{ {body} FILTER(?v{n} >= {10 * n + 9}) }}" for n in range(12)]
    index = RdfIndex.build([Subscription(n, text, "sparql") for n, text in enumerate(texts)])
    with Omissions() as left_out:
        assert index.match(Event("e", make_graph(statements), content_type="nt")) == list(range(12, 24))
    assert not list(left_out)


def test_a_reference_that_is_too_much() -> None:
    """A float is in doubt, so the whole filter is asked in Python, which must end too."""
    rng = random.Random(5)
    pairs = [(i, j) for i in range(60) for j in range(i) if rng.random() < 0.9]
    statements = [(f"<urn:n{i}>", "<urn:p>", f"<urn:n{j}>") for i, j in pairs]
    statements += [(f"<urn:n{i}>", "<urn:v>", literal("0.1", f"{XSD}float")) for i in range(60)]
    texts = [f"ASK {{ {clique(8)} . ?v0 <urn:v> ?f FILTER(?f > 0.1) }}", "ASK { ?a <urn:p> ?b }"]
    index = RdfIndex.build([Subscription(n, text, "sparql") for n, text in enumerate(texts)])
    with Omissions() as left_out:
        assert index.match(Event("e", make_graph(statements), content_type="nt")) == [1]
    assert [each.reason[:62] for each in left_out] in (
        [],
        ["searching for its bindings takes more than 200,000 steps; send"],
    )


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        ("a" * 5_000 + "b", "a" * 900_000),
        ("b" + "a" * 5_000, "a" * 900_000),
        ("ab" * 2_500 + "b", "ab" * 450_000),
    ],
    ids=["last", "first", "pairs"],
)
def test_no_text_makes_a_search_long(wanted: str, text: str) -> None:
    filters = [f'ASK {{ ?x <urn:t> ?t FILTER(CONTAINS(?t, "{each}")) }}' for each in (wanted, wanted[1:])]
    index = RdfIndex.build([Subscription(n, each, "sparql") for n, each in enumerate(filters)])
    for end, found in ((wanted[:-1] + "c", [1] if wanted[0] == "b" else []), (wanted, [0, 1])):
        statements = [("<urn:a>", "<urn:t>", literal(text + end))]
        event = Event("e", make_graph(statements), content_type="nt")
        assert index.match(event) == found
        began = time.thread_time()
        assert index.match(event) == found
        assert time.thread_time() - began < 0.5


def test_a_filter_that_searches_too_much_is_left_out() -> None:
    """Each search is quick, and one filter may ask for thousands of them, for each row anew."""
    conditions = " && ".join(f'CONTAINS(?t, "{"a" * (n % 9 + 1)}{n % 10}")' for n in range(900))
    texts = [
        f"ASK {{ ?x <urn:t> ?t FILTER({conditions}) }}",
        'ASK { ?x <urn:t> ?t FILTER(CONTAINS(?t, "a8")) }',
        'ASK { ?x <urn:t> ?t FILTER(CONTAINS(?t, "none")) }',
    ]
    index = RdfIndex.build([Subscription(n, text, "sparql") for n, text in enumerate(texts)])
    held = "".join(f"{'a' * 9}{n}" for n in range(10))
    statements = [("<urn:a>", "<urn:t>", literal("x" * 900_000 + held))]
    with Omissions() as left_out:
        assert index.match(Event("e", make_graph(statements), content_type="nt")) == [1]
    assert [each.subscription for each in left_out] == [0]
    # Many filters that search a text once are no reason to leave any of them out.
    many = RdfIndex.build(
        [
            Subscription(n, f'ASK {{ ?x <urn:t> ?t FILTER(CONTAINS(?t, "w{n}")) }}', "sparql")
            for n in range(300)
        ]
    )
    with Omissions() as left_out:
        assert many.match(Event("e", make_graph(statements), content_type="nt")) == []
    assert not list(left_out)


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
