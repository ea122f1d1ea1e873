"""Graph patterns and their events are as their page says, and texts mean what was drawn."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.rdf_data import graphs_of, patterns_of, read_classes
from benchmarks.workload_statistics import measure_rdf
from headgate.errors import HeadgateError
from headgate.papers.matchers import MATCHERS
from headgate.rdf.events.reading import read_graph
from headgate.rdf.language.model import ISA, RDFS, SUBCLASS, TYPE, Pattern, is_iri, is_literal, is_variable
from headgate.rdf.taxonomy.taxonomy import Taxonomy
from headgate.workloads.rdf.stars import Stars, draw_classes
from headgate.workloads.rdf.triples import Paper
from tests.cli.running import Command
from tests.lanes import some
from tests.seeds import examples
from tests.spark.files import get_table

if TYPE_CHECKING:
    from pathlib import Path

    from headgate.rdf.language.model import Edge, Graph
    from headgate.workloads.rdf.publications import RdfWorkload

SEED = 5
ROWS = np.arange(4_000)
FEW = np.arange(300)
WORKLOADS: dict[str, RdfWorkload] = {
    "paper": Paper(),
    "constrained": Paper(constrained=True),
    "large": Paper(subscription=(20, 35)),
    "stars": Stars(),
}


def ends(pattern: Pattern) -> set[str]:
    """List the nodes of a pattern."""
    return {term for edge in pattern.edges for term in (edge.subject, edge.object)}


def connected(edges: list[tuple[str, str]]) -> bool:
    """Tell whether all ends of edges hang together."""
    reached = {edges[0][0]}
    for _ in edges:
        reached |= {end for edge in edges if reached & {*edge} for end in edge}
    return reached == {end for edge in edges for end in edge}


def own(edge: Edge) -> tuple[str, ...]:
    """Write an edge without the names of its variables."""
    return tuple("*" if is_variable(term) else term for term in (edge.subject, edge.property, edge.object))


def texts(workload: RdfWorkload) -> list[str]:
    """Write a few filters."""
    return [str(text) for text in workload.filters(FEW, SEED).to_pylist()]


def matches(workload: RdfWorkload, patterns: list[Pattern], graphs: list[Graph]) -> list[list[int]]:
    """List the filters that each event matches."""
    matcher = MATCHERS["naive"](Taxonomy.of(workload.taxonomy(SEED)))
    for number, pattern in enumerate(patterns):
        matcher.insert(number, pattern)
    return [matcher.match(graph) for graph in graphs]


@pytest.mark.parametrize("name", WORKLOADS)
def test_texts_mean_what_was_drawn(name: str) -> None:
    made = WORKLOADS[name]
    events, graphs = made.events(FEW[:20], SEED), graphs_of(made, FEW[:20], SEED)
    for data, form, graph in zip(events["data"], events["datacontenttype"], graphs, strict=True):
        read = read_graph(data.as_py(), form.as_py())
        assert read.statements() == graph.statements()
    assert len(made.filters(FEW[:0], SEED)) == 0
    assert graphs_of(made, FEW[:0], SEED) == []


@examples(8)
@given(cuts=st.lists(st.integers(0, 60), max_size=5), seed=st.integers(0, 3))
def test_rows_are_the_same_whatever_the_batches(cuts: list[int], seed: int) -> None:
    rows = np.arange(1000, 1060)
    for made in (Paper(constrained=True), Paper(), Stars()):
        for make in (made.subscriptions, made.events):
            whole = make(rows, seed).to_pylist()
            parts = [make(part, seed).to_pylist() for part in np.split(rows, sorted(cuts))]
            assert [row for part in parts for row in part] == whole
            assert make(rows[::-1], seed).to_pylist() == whole[::-1]


# The paper's.


def test_the_defaults_are_those_of_table_1() -> None:
    made = Paper()
    assert made.publication == (35, 90)
    assert (made.ratio, made.overlap, made.starred, made.stars) == (0.001, 0.5, 0.9, 2)


@pytest.mark.parametrize("constrained", [False, True])
def test_a_publication_is_a_path_and_random_edges(constrained: bool) -> None:
    for graph in graphs_of(Paper(constrained=constrained), np.arange(10), SEED):
        statements = graph.statements()
        assert len(statements) == len({*statements}) == 90
        assert len({end for s, _, o in statements for end in (s, o)}) == 35
        path = [(s, o) for s, _, o in statements[:34]]
        assert connected(path)
        assert len({end for pair in path for end in pair}) == 35
        assert all(s != o for s, _, o in statements)
        assert all(is_iri(s) for s, _, _ in statements)
        assert any(is_literal(o) for _, _, o in statements) == constrained


@pytest.mark.parametrize("name", ["paper", "constrained", "large"])
def test_filters_are_connected_and_have_the_size(name: str) -> None:
    made = WORKLOADS[name]
    assert isinstance(made, Paper)
    count, most = made.subscription
    patterns = patterns_of(made, FEW, SEED)
    for pattern in patterns:
        assert len(ends(pattern)) == count
        assert count - 1 <= len(pattern.edges) == len({*pattern.edges}) <= most
        assert connected([(edge.subject, edge.object) for edge in pattern.edges])
    starred = [pattern for pattern in patterns if pattern.variables]
    assert {len(pattern.variables) for pattern in starred} == {2}
    assert len(starred) / len(patterns) == pytest.approx(0.9, abs=0.05)


def test_subgraphs_are_subgraphs_and_others_are_not() -> None:
    made = Paper(starred=0)
    kinds = made.kinds(ROWS, SEED)
    pool = [{*graph.statements()} for graph in graphs_of(made, np.arange(made.publications), SEED)]
    for pattern, kind in zip(patterns_of(made, ROWS, SEED), kinds.tolist(), strict=True):
        triples = {(edge.subject, edge.property, edge.object) for edge in pattern.edges}
        within = [number for number, statements in enumerate(pool) if triples <= statements]
        assert within == ([kind] if 0 <= kind < made.publications else [])
    share = (kinds < 0).mean(), (kinds >= made.publications).mean()
    assert share == pytest.approx((0.475, 0.475), abs=0.02)


@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize(("ratio", "publications"), some([(0.001, 50), (0.05, 10)], 1))
def test_as_many_match_as_asked_for(ratio: float, publications: int, constrained: bool) -> None:
    made = Paper(ratio=ratio, publications=publications, constrained=constrained)
    found = matches(made, patterns_of(made, ROWS, SEED), graphs_of(made, np.arange(10), SEED))
    kinds = made.kinds(ROWS, SEED)
    assert found == [np.flatnonzero(kinds == number).tolist() for number in range(10)], "and no other does"
    assert np.mean([len(each) for each in found]) / len(ROWS) == pytest.approx(ratio, rel=0.25)


def test_bounds_are_on_numbers_and_hold_for_their_own() -> None:
    made = Paper(constrained=True, ratio=0.02)
    patterns = [pattern for pattern in patterns_of(made, ROWS, SEED) if pattern.filters]
    assert 0.4 < len(patterns) / len(ROWS) < 0.8
    without = [Pattern(pattern.edges) for pattern in patterns_of(made, ROWS, SEED)]
    graphs = graphs_of(made, np.arange(5), SEED)
    assert matches(made, without, graphs) == matches(made, patterns_of(made, ROWS, SEED), graphs)
    moved = patterns_of(Paper(constrained=True, ratio=0.02), ROWS, SEED + 1)
    assert moved != patterns


@pytest.mark.parametrize("overlap", [0.0, 0.5, 1.0])
def test_overlap_makes_edges_fewer(overlap: float) -> None:
    made = Paper(overlap=overlap, ratio=0)
    edges = [own(edge) for pattern in patterns_of(made, ROWS, SEED) for edge in pattern.edges]
    constant = [edge for edge in edges if "*" not in edge]
    share = len({*constant}) / len(constant)
    assert share == pytest.approx(1 - overlap, abs=0.15)


def test_events_repeat_after_the_publications() -> None:
    made = Paper(publications=7)
    events = made.events(np.arange(14), SEED).to_pylist()
    assert [row["data"] for row in events[:7]] == [row["data"] for row in events[7:]]
    assert len({row["data"] for row in events}) == 7
    assert len({row["id"] for row in events}) == 14


def test_what_cannot_be_drawn_is_refused() -> None:
    for make, complaint in (
        (lambda: Paper(subscription=(5, 3)), r"a subscription of 5 nodes and 3 edges"),
        (lambda: Paper(subscription=(1, 1)), r"a subscription of 1 nodes"),
        (lambda: Paper(publication=(4, 9)), r"5 nodes of 4 of 10000"),
        (lambda: Paper(nodes=30), r"5 nodes of 35 of 30"),
        (lambda: Paper(stars=6), r"6 stars of 5 nodes: give as many at most"),
        (lambda: Paper(publications=0), r"a publication and an unsent graph at least"),
        (lambda: Paper(overlap=1.5), r"are parts, from 0 to 1"),
        (lambda: Paper(ratio=0.03), r"0\.03 of the subscriptions cannot match each of 50 publications"),
        (lambda: Stars(widths=(0.3, 0.2)), r"give two parts, the lesser first"),
        (lambda: Stars(read_classes([])), r"there must be a class at least"),
    ):
        with pytest.raises(HeadgateError, match=complaint):
            make()


# Stars.


def test_classes_have_the_shape_of_schema_org() -> None:
    for seed in range(3):
        classes = draw_classes(seed)
        taxonomy = Taxonomy.of(classes.statements())
        above = [len(taxonomy.ancestors(name)) for name in classes.names]
        assert len(above) == len({*classes.names}) == 1_014
        assert np.mean(above) == pytest.approx(4.0, abs=0.1)
        assert max(above) == 8
        assert sum(len(parents) > 1 for parents in classes.parents) == 57
        assert max(len(parents) for parents in classes.parents) == 3
        assert {classes.names[0]} == {*taxonomy.ancestors(classes.names[0])}
        assert all(classes.line(number)[-1] == 0 for number in range(1_014))
    assert draw_classes(1) != draw_classes(2)


def test_classes_of_a_real_taxonomy() -> None:
    made = draw_classes(SEED)
    read = read_classes([*made.statements(), (made.names[3], TYPE, made.names[4])])
    assert {*read.statements()} == {*made.statements()}
    said = [(f"<urn:{name}>", TYPE, f"<{RDFS}Class>") for name in "abc"]
    some = read_classes([*said, ("<urn:a>", SUBCLASS, "<urn:b>"), ("<urn:b>", SUBCLASS, "<urn:d>")])
    assert some == (("<urn:a>", "<urn:b>", "<urn:c>"), ((1,), (), ()))
    cycle = read_classes([("<urn:a>", SUBCLASS, "<urn:b>"), ("<urn:b>", SUBCLASS, "<urn:a>")])
    assert cycle.line(0) == [0, 1]
    stars = Stars(cycle)
    assert len(patterns_of(stars, FEW, SEED)) == len(FEW)
    assert "a/rdfs:subClassOf* <urn:" in texts(stars)[0]


def test_events_describe_things() -> None:
    made = Stars()
    known = {*draw_classes(SEED).names}
    for graph in graphs_of(made, np.arange(20), SEED):
        statements = graph.statements()
        assert len(statements) == 90
        types = [(s, o) for s, p, o in statements if p == TYPE]
        assert len({s for s, _ in types}) == 10
        assert {o for _, o in types} <= known
        assert all(is_literal(o) for _, p, o in statements if p != TYPE)
        assert len({(s, p) for s, p, _ in statements}) == 90, "a property has one value"


def test_filters_ask_for_a_class_properties_and_ranges() -> None:
    patterns = patterns_of(Stars(), ROWS, SEED)
    assert {len(pattern.edges) for pattern in patterns} == {3, 4}
    assert {len(pattern.filters) for pattern in patterns} == {1, 2}
    for pattern in patterns[:200]:
        (first, *rest) = pattern.edges
        assert (first.subject, first.path) == ("?x", ISA)
        assert {edge.subject for edge in rest} == {"?x"}
        assert len({edge.property for edge in rest}) == len({edge.object for edge in rest}) == len(rest)
    structures = {frozenset(own(edge) for edge in pattern.edges) for pattern in patterns}
    assert 0.6 < len(structures) / len(patterns) < 0.95, "of some 10,000 that there are"


def test_half_a_percent_matches() -> None:
    made = Stars()
    found = matches(made, patterns_of(made, ROWS, SEED), graphs_of(made, np.arange(40), SEED))
    assert np.mean([len(each) for each in found]) / len(ROWS) == pytest.approx(0.005, rel=0.2)
    wider = Stars(widths=(0.1, 0.5))
    more = matches(wider, patterns_of(wider, ROWS, SEED), graphs_of(wider, np.arange(40), SEED))
    assert sum(map(len, more)) > 2 * sum(map(len, found))
    taxonomy_matters = matches(Paper(), patterns_of(made, ROWS, SEED), graphs_of(made, np.arange(40), SEED))
    assert sum(map(len, taxonomy_matters)) < sum(map(len, found))


# All of them.


@pytest.mark.parametrize("name", ["paper", "stars"])
def test_many_are_written_in_seconds(name: str) -> None:
    begin = time.perf_counter()
    assert len(WORKLOADS[name].filters(np.arange(30_000), SEED)) == 30_000
    assert time.perf_counter() - begin < 5, "0.5 s on a machine at rest"


def test_statistics() -> None:
    found = measure_rdf(Paper(), 2_000, 10, SEED)
    assert found["triples an event"] == 90
    assert 5 < found["edges a filter"] < 6
    assert found["variables a filter"] == pytest.approx(1.8, abs=0.1)
    assert found["bounds a filter"] == 0
    assert found["least, %"] <= found["matches an event, %"] <= found["most, %"]
    stars = measure_rdf(Stars(), 2_000, 10, SEED)
    assert 1 <= stars["bounds a filter"] <= 2
    assert stars["variables a filter"] == stars["edges a filter"]


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
@pytest.mark.parametrize(
    ("command", "made"),
    [
        ("--match-ratio 0.01 --overlap 0.2 --constrained", Paper(ratio=0.01, overlap=0.2, constrained=True)),
        ("--workload stars", Stars()),
    ],
    ids=["paper", "stars"],
)
@pytest.mark.nightly
def test_the_command_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    form: str,
    command: str,
    made: RdfWorkload,
) -> None:
    # So that there are several partitions.
    monkeypatch.setattr("headgate.spark.runner.TASK_NUMBERS", 1)
    headgate = Command(monkeypatch, capsys)
    sizes = ["--subscriptions", "40", "--events", "30", "--seed", "4", "--quiet", "--json", "--format"]
    ran = headgate("generate", "rdf", *command.split(), *sizes, form, "--output", tmp_path)
    assert ran.code == 0, ran.err
    places = {name: tmp_path / f"{name}.{form}" for name in ("subscriptions", "events")}
    taxonomy = tmp_path / "taxonomy.nt"
    assert ran.json == {
        **{name: str(place) for name, place in places.items()},
        "taxonomy": str(taxonomy),
        "seed": 4,
    }
    assert get_table(places["subscriptions"]) == made.subscriptions(np.arange(40), 4).to_pylist()
    assert get_table(places["events"]) == made.events(np.arange(30), 4).to_pylist()
    assert [
        *Taxonomy.of(read_graph(taxonomy.read_bytes(), "application/n-triples").statements()).statements()
    ] == [*Taxonomy.of(made.taxonomy(4)).statements()]


def test_options_that_do_not_go_together(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    headgate = Command(monkeypatch, capsys)
    ran = headgate("generate", "rdf", "--workload", "stars", "--overlap", "0.5", "--output", tmp_path)
    assert ran.code == 2
    assert "--overlap goes with --workload paper" in ran.err
    (tmp_path / "taxonomy.nt").mkdir()
    ran = headgate("generate", "rdf", "--output", tmp_path)
    assert ran.code == 1
    assert "taxonomy.nt is a directory: choose another place" in ran.err
