"""Views over XMark's schema and its documents are as their pages say, and texts mean what the patterns do."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from benchmarks.workload_statistics import PAPER_VIEWS, measure_views, measure_xml
from headgate.errors import HeadgateError
from headgate.plan.costs import costs_of
from headgate.plan.graphs.cycles import without_cycles
from headgate.plan.graphs.embeddings import embedding_graph
from headgate.plan.graphs.rewritability import find_rewritings
from headgate.plan.model import same_capacities
from headgate.plan.program.program import solve
from headgate.plan.running.validate import problems
from headgate.workloads.xml.schema import CHILDREN, CONTINENTS, EITHER, below, labels, values
from headgate.workloads.xml.walks import LARGEST, ViewLaw
from headgate.workloads.xml.xmark import LAWS, TABLE_2, WAN, XMark, draw_views, unique_views
from headgate.xml.events.reading import read_document
from headgate.xml.language.model import ANY, CHILD, DESCENDANT, ROOT, TEXT, is_attribute
from headgate.xml.language.parse import parse_filter
from headgate.xml.views.views import XmlViews, canonical
from tests.cli.running import Command
from tests.seeds import examples, seeds
from tests.spark.files import get_table
from tests.xml.reference import matches

if TYPE_CHECKING:
    from pathlib import Path

    from headgate.xml.language.model import Pattern

SEED = 5
FEW = np.arange(400)
VIEWS = XMark().views(3_000, SEED)


# Documents.


def children_of(element: etree._Element) -> set[str]:
    """List the labels of what an element contains."""
    return {str(child.tag) for child in element} | {"@" + str(name) for name in element.attrib}


@pytest.mark.parametrize("seed", seeds(3))
def test_documents_follow_the_schema(seed: int) -> None:
    seen: Counter[tuple[str, str]] = Counter()
    for text in XMark().documents(np.arange(4), seed):
        root = etree.fromstring(text)
        assert root.tag == "site"
        assert [child.tag for child in root[0]] == list(CONTINENTS)
        for element in root.iter():
            tag = str(element.tag)
            marked = {"keyword", "bold", "emph"}
            allowed = {"emph"} if tag in marked else {*CHILDREN.get(tag, ())}
            assert children_of(element) <= allowed, tag
            assert tag not in EITHER or len(element) == 1
            seen.update((tag, child) for child in children_of(element))
    missing = {pair for pair in labels()[1:] if not seen[pair]}
    assert missing == set(), "every path of the schema is in four documents"


def test_documents_are_as_large_as_asked_for() -> None:
    sizes = [len(text) for text in XMark().documents(np.arange(60), SEED)]
    assert 10_000 <= min(sizes) < 14_000
    assert 36_000 < max(sizes) < 42_500
    assert np.mean(sizes) == pytest.approx(26_000, rel=0.15)
    for most in (1_000, 100_000):
        (text,) = XMark(sizes=(most, most)).documents(np.arange(1), SEED)
        assert most <= len(text) < most + 2_500


def test_values_come_from_the_vocabularies() -> None:
    root = etree.fromstring(XMark().documents(np.arange(1), SEED)[0])
    counted = Counter(person.findtext("name") for person in root.iter("person"))
    assert {*counted} <= {*values("person", "name")}
    for element in root.iter():
        for name, value in element.attrib.items():
            known = values(str(element.tag), "@" + str(name))
            assert value in known or str(value).rstrip("0123456789") == known[0].rstrip("0123456789")


def test_documents_are_read_as_they_are_written() -> None:
    text = XMark().documents(np.arange(1), SEED)[0]
    document = read_document(text)
    elements = list(etree.fromstring(text).iter())
    named = [label for label in document.labels.tolist() if document.names[label] in {*CHILDREN}]
    assert len(named) == sum(str(each.tag) in CHILDREN for each in elements)


# Views.


def schema_allows(pattern: Pattern) -> bool:
    """Tell whether a document of the schema can have each edge of a view, whatever * stands for."""
    known = [label for _, label in labels()]
    sets: list[set[str]] = []
    for node in pattern.nodes:
        if node.label == TEXT:
            sets.append({TEXT} if any(values("", above) for above in sets[node.parent]) else set())
            continue
        own = {each for each in known if not is_attribute(each)} if node.label == ANY else {node.label}
        if node.parent == ROOT:
            own &= {"site"} if node.axis == CHILD else {*known}
        elif node.axis == CHILD:
            own &= {child for above in sets[node.parent] for child in CHILDREN.get(above, ())}
        else:
            own &= {child for above in sets[node.parent] for _, child in below(above)}
        sets.append(own)
    return all(sets)


def test_views_are_unique_and_follow_the_schema() -> None:
    assert len({canonical(view).pattern for view in VIEWS}) == len(VIEWS)
    for view in VIEWS:
        assert canonical(view).pattern == view
        assert 1 <= len(view.nodes) <= LARGEST
        assert view.returning, "each returns something"
        assert len(view.roots) == 1
        assert schema_allows(view)


def test_tests_ask_for_values_that_there_are() -> None:
    known = {label: {*values(parent, label)} for parent, label in labels()}
    for parent, label in labels():
        known[label] |= {*values(parent, label)}
    tested = [(node.label, test) for view in VIEWS for node in view.nodes for test in node.tests]
    assert len(tested) > 1_000
    for label, test in tested:
        if isinstance(test.value, str):
            assert test.value in known[label]
        else:
            assert test.value in {float(value) for value in known[label]}
    signs = Counter(test.sign for _, test in tested)
    assert signs["="] > 20 * signs[">"] > 0
    assert signs["<"] > 0


def test_statistics_are_those_of_table_2() -> None:
    found = measure_views(XMark().views(20_000, SEED))
    for name, paper in PAPER_VIEWS.items():
        assert found[name] == pytest.approx(paper, rel=0.08), name


def test_most_documents_answer_most_views() -> None:
    documents = [read_document(text) for text in XMark().documents(np.arange(4), SEED)]
    held = [[matches(view, document) for view in VIEWS[:150]] for document in documents]
    assert np.mean(held) > 0.7
    for text in XMark(sizes=(30_000, 30_000)).documents(np.arange(1), SEED):
        assert np.mean([matches(view, read_document(text)) for view in VIEWS[:150]]) > 0.75


def test_a_law_without_something_draws_nothing_of_it() -> None:
    law = TABLE_2._replace(descendant=0, loose=0, wildcard=0, test=0, absolute=1, sizes=(0,) * 5 + (1,))
    for _, view in unique_views(law, 300, SEED):
        assert view.nodes[0].label == "site"
        assert {node.axis for node in view.nodes} == {CHILD}
        assert ANY not in {node.label for node in view.nodes}
        assert not any(node.tests for node in view.nodes)
        assert 1 < len(view.nodes) <= 9, "six, up to two more if refined, and a text"
    anywhere = TABLE_2._replace(absolute=0, wildcard=1, descendant=0, loose=0, textual=0, period=1)
    for view in draw_views(anywhere, FEW, SEED, bytes(400)):
        assert view.nodes[0].axis == DESCENDANT
        assert {node.axis for node in view.nodes[1:]} <= {CHILD}
    stars = draw_views(anywhere, FEW, SEED, bytes(400))
    assert sum(ANY in {node.label for node in view.nodes} for view in stars) > 250
    for view in (*stars, *VIEWS):
        alone = [node.parent for node in view.nodes if node.label == ANY]
        assert all(len(view.children[parent]) == 1 for parent in alone)


def test_refined_views_have_what_they_refine() -> None:
    law = TABLE_2._replace(period=2, wildcard=0, textual=0)
    plain = draw_views(law, 2 * np.arange(300), SEED, bytes(300))
    refined = draw_views(law, 2 * np.arange(300) + 1, SEED, bytes(300))
    views = XmlViews.build([*plain, *refined])
    sources, targets = np.divmod(np.arange(300 * 300), 300)
    embeds, _ = views.coverage(sources.astype(np.int32), (300 + targets).astype(np.int32))
    of = embeds.reshape(300, 300).any(axis=0)
    assert of.all(), "each refines one of the plain ones before it"


def test_views_among_topics_can_all_be_computed_from_them() -> None:
    """The law of the WAN: labels first, then walks that name these alone, so few views need the source."""
    made = XMark(unique=300, law=WAN)
    views = made.views(1_000, SEED)
    topics = views[: WAN.topics]
    assert all(len(view.nodes) == 1 and view.nodes[0].returns for view in topics)
    labels = {view.nodes[0].label for view in topics}
    assert len(labels) == WAN.topics
    assert {node.label for view in views for node in view.nodes} == labels
    assert len({*views}) == 300
    assert made.patterns(np.arange(1_000), SEED) == views
    laid = XmlViews.build(views)
    found, _ = without_cycles(embedding_graph(laid), needed=laid.needed)
    ways = find_rewritings(laid.needed, found).rewritings
    alone = np.flatnonzero(np.diff(ways.offsets) == 0)
    assert WAN.topics <= len(alone) <= 72
    costs = costs_of(ways, np.ones(len(views)), np.array([len(view.nodes) for view in views]))
    for bound in (5.0, math.inf):
        capacities = same_capacities(len(views), bound, source_fan_out=72.0)
        plan = solve(ways, costs, capacities).plan
        assert problems(plan, ways, costs, capacities) == []
    measured = measure_xml(made, 1_000, 4, SEED)
    assert measured["views that a document answers, %"] > 95


def test_more_unique_views_than_there_are_are_refused() -> None:
    law = ViewLaw(sizes=(1,), test=0, absolute=0, period=1)
    with pytest.raises(HeadgateError, match=r"was drawn 250 times and never new: ask for fewer unique views"):
        list(unique_views(law, 1_000, SEED))


# Rows.


def test_texts_mean_the_patterns() -> None:
    made = XMark()
    texts, patterns = made.filters(FEW, SEED), made.patterns(FEW, SEED)
    assert [canonical(parse_filter(text)).pattern for text in texts] == patterns
    assert patterns == VIEWS[:400]
    assert made.views(0, SEED) == made.patterns(FEW[:0], SEED) == []
    assert made.filters(FEW[:0], SEED) == []


@examples(8)
@given(cuts=st.lists(st.integers(0, 60), max_size=5), seed=st.integers(0, 3))
def test_rows_are_the_same_whatever_the_batches(cuts: list[int], seed: int) -> None:
    rows = np.arange(200, 260)
    plain = XMark(sizes=(1_000, 2_000))
    for made in (plain, plain.settled(260, seed), XMark(unique=50, sizes=(1_000, 2_000)).settled(260, seed)):
        for make in (made.subscriptions, made.events):
            whole = make(rows, seed).to_pylist()
            parts = [make(part, seed).to_pylist() for part in np.split(rows, sorted(cuts))]
            assert [row for part in parts for row in part] == whole
            assert make(rows[::-1], seed).to_pylist() == whole[::-1]
    assert plain.settled(260, seed).subscriptions(rows, seed) == plain.subscriptions(rows, seed)


def test_a_view_does_not_depend_on_how_many_follow() -> None:
    assert XMark().views(500, SEED) == VIEWS[:500]
    assert XMark().views(500, SEED + 1) != VIEWS[:500]
    again = [attempt for attempt, _ in unique_views(TABLE_2, 3_000, SEED)]
    assert max(again) > 0, "some were drawn again, or this tests nothing"


def test_popular_views_repeat() -> None:
    made = XMark(unique=300)
    views = made.views(1_000, SEED)
    counted = Counter(views)
    assert len(counted) == 300
    assert views[:300] == VIEWS[:300]
    assert counted[views[0]] > 10 > counted[views[299]]
    assert made.patterns(np.arange(1_000), SEED) == views
    assert XMark(unique=5_000).views(400, SEED) == VIEWS[:400]


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"unique": 0}, r"there must be one at least"),
        ({"sizes": (9, 3)}, r"give two sizes, the lesser first"),
        ({"law": ViewLaw(sizes=())}, r"weights of 1 to 16 nodes, not \(\)"),
        ({"law": ViewLaw(sizes=(1.0,) * 17)}, r"weights of 1 to 16 nodes"),
        ({"law": ViewLaw(sizes=(0.0, 0.0))}, r"weights of 1 to 16 nodes"),
        ({"law": ViewLaw(wildcard=1.5)}, r"wildcard is a part, from 0 to 1, not 1\.5"),
        ({"law": ViewLaw(period=0)}, r"one view in 0 cannot be drawn again: give 1 or more"),
        ({"law": ViewLaw(topics=99)}, r"99 topics: there are labels for 0 to 70"),
    ],
)
def test_what_cannot_be_drawn_is_refused(wrong: dict[str, object], complaint: str) -> None:
    with pytest.raises(HeadgateError, match=complaint):
        XMark(**wrong)  # type: ignore[arg-type]


def test_statistics() -> None:
    found = measure_xml(XMark(unique=300), 1_000, 4, SEED)
    assert found["unique views, %"] == 30
    assert 10_000 < found["bytes a document"] < 42_000
    assert found["least, %"] <= found["views that a document answers, %"] <= found["most, %"]
    assert found["least, %"] > 60
    documents = [read_document(text) for text in XMark().documents(np.arange(2), SEED)]
    counted = [sum(matches(view, each) for view in VIEWS[:100]) for each in documents]
    assert measure_xml(XMark(), 100, 2, SEED)["views that a document answers, %"] == np.mean(counted)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_the_command_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    form: str,
) -> None:
    # So that there are several partitions.
    monkeypatch.setattr("headgate.spark.runner.TASK_NUMBERS", 1)
    headgate = Command(monkeypatch, capsys)
    sizes = ["--subscriptions", "40", "--events", "3", "--seed", "4", "--quiet", "--json", "--format"]
    law = {"jsonl": "table-2", "parquet": "wan"}[form]
    chosen = ["--unique", "30", "--kilobytes", "2", "3", "--law", law]
    ran = headgate("generate", "xmark", *chosen, *sizes, form, "--output", tmp_path)
    assert ran.code == 0, ran.err
    places = {name: tmp_path / f"{name}.{form}" for name in ("subscriptions", "events")}
    assert ran.json == {**{name: str(place) for name, place in places.items()}, "seed": 4}
    made = XMark(unique=30, sizes=(2_000, 3_000), law=LAWS[law])
    assert get_table(places["subscriptions"]) == made.subscriptions(np.arange(40), 4).to_pylist()
    assert get_table(places["events"]) == made.events(np.arange(3), 4).to_pylist()


def test_the_command_refuses_what_cannot_be(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    headgate = Command(monkeypatch, capsys)
    ran = headgate("generate", "xmark", "--kilobytes", "40", "10", "--output", tmp_path)
    assert ran.code == 1
    assert "give two sizes, the lesser first" in ran.complaint
    ran = headgate("generate", "xmark", "--unique", "0", "--output", tmp_path)
    assert "Invalid value for '--unique': 0 is not in the range x>=1" in ran.err


@pytest.mark.nightly
def test_the_graphs_are_those_of_table_2() -> None:
    views = XmlViews.build(XMark().views(100_000, SEED))
    found = embedding_graph(views)
    assert 10_000_000 < len(found.sources) < 17_000_000, "10,592,053 in the paper"
    assert np.mean(np.diff(found.offsets) > 0) == pytest.approx(0.9995, abs=0.0005)
    acyclic, removed = without_cycles(found, needed=views.needed)
    assert 10_000 < removed < 80_000, "18,665 in the paper"
    ways = find_rewritings(views.needed, acyclic).rewritings
    assert np.mean(np.diff(ways.offsets) > 0) == pytest.approx(0.948, abs=0.02)
