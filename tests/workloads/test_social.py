"""The social network has the degrees that its page says."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from benchmarks.specified_programs import check, programs
from benchmarks.workload_statistics import matches
from headgate.errors import HeadgateError
from headgate.workloads.graphs.social import Social
from tests.seeds import examples
from tests.workloads.specifications import decode, parsed, written

SEED = 5
SMALL = Social(3_000, 30_000)
LARGE = Social(100_000, 1_000_000)


def tail(degrees: np.ndarray[tuple[int], np.dtype[np.int64]], least: int) -> float:
    """Estimate the exponent of a power law's tail (Clauset, Shalizi and Newman 2009, equation 3.7)."""
    kept = degrees[degrees >= least]
    assert len(kept) > 300
    return float(1 + len(kept) / np.log(kept / (least - 0.5)).sum())


def test_edges_are_different_and_reach_everyone() -> None:
    graph = LARGE.structure(SEED)
    source, target = graph.edge_source.astype(np.int64), graph.edge_target.astype(np.int64)
    assert (len(graph.kind), len(source)) == (LARGE.node_count, LARGE.edge_count) == (100_000, 1_000_000)
    assert not graph.kind.any()
    assert (np.diff(source * 100_000 + target) > 0).all(), "sorted, none twice"
    assert (source != target).all()
    assert np.bincount(source, minlength=100_000).min() == np.bincount(target, minlength=100_000).min() == 1
    matrix = csr_array((np.ones(len(source)), (source, target)), (100_000, 100_000))
    _, label = connected_components(matrix, connection="strong")
    assert np.bincount(label).max() > 90_000


def test_degrees_follow_power_laws() -> None:
    graph = LARGE.structure(SEED)
    out = np.bincount(graph.edge_source, minlength=100_000)
    into = np.bincount(graph.edge_target, minlength=100_000)
    assert tail(out, 60) == pytest.approx(1 + 1 / 0.75, abs=0.25)
    assert tail(into, 60) == pytest.approx(1 + 1 / 0.6, abs=0.3)
    assert out.max() > 5_000
    assert into.max() > 1_000
    assert abs(np.corrcoef(np.argsort(np.argsort(out)), np.arange(100_000))[0, 1]) < 0.02


def test_a_structure_is_drawn_once() -> None:
    begin = time.perf_counter()
    first = Social(50_000, 500_000).structure(SEED)
    assert time.perf_counter() - begin < 10, "0.3 s on a machine at rest"
    assert Social(50_000, 500_000, "1/4").structure(SEED) is first
    assert (first.edge_target != Social(50_000, 500_000).structure(SEED + 1).edge_target).mean() > 0.9


@pytest.mark.nightly
def test_a_million_persons() -> None:
    """Draw the default in a process of its own, whose peak of memory can be read."""
    # Not getrusage: on Linux a process begins there with the peak of the one that started it.
    script = (
        "import re, time; from pathlib import Path; from headgate.workloads.graphs.social import Social; "
        "begin = time.perf_counter(); graph = Social().structure(1); seconds = time.perf_counter() - begin; "
        "peak = re.search(r'VmHWM:\\s+(\\d+) kB', Path('/proc/self/status').read_text())[1]; "
        "print(len(graph.edge_source), seconds, peak)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    edges, seconds, kilobytes = (float(word) for word in done.stdout.split())
    assert edges == 10_000_000
    assert seconds < 15
    assert kilobytes < 1_500_000


@pytest.mark.parametrize("selectivity", ["1/64", "1/16", "1/2"])
def test_persons_want_the_part_that_was_asked_for(selectivity: str) -> None:
    social = Social(20_000, 100_000, selectivity)
    spec = social.specification(social.filtered(SEED), SEED)
    assert spec.filters == 20_000
    found = np.mean([matches(spec, event).mean() for event in social.numbers(np.arange(40), SEED)])
    numerator, denominator = selectivity.split("/")
    assert found == pytest.approx(int(numerator) / int(denominator), rel=0.03)


@pytest.mark.parametrize("selectivity", ["1/64", "1/16", "1/2"])
def test_programs_are_those_of_the_texts(selectivity: str) -> None:
    social = Social(3_000, 30_000, selectivity)
    rows = np.arange(400)
    spec = social.specification(rows, SEED)
    check(spec)
    made = programs(spec)
    made.check()
    assert decode(made) == decode(parsed(written(spec)))


def test_nodes_edges_and_events() -> None:
    graph = SMALL.structure(SEED)
    nodes, edges = SMALL.nodes(np.arange(3_000), SEED), SMALL.edges(np.arange(30_000), SEED)
    events = SMALL.events(np.arange(2_000), SEED)
    for batch, schema in (
        (nodes, SMALL.node_schema()),
        (edges, SMALL.edge_schema()),
        (events, SMALL.schema()),
    ):
        batch.validate(full=True)
        assert batch.schema == schema
    ids = nodes.column("id")
    assert ids[42].as_py() == "person-0000042"
    assert {*nodes.column("kind").to_pylist()} == {"person"}
    assert nodes.column("subscription").equals(ids)
    assert nodes.column("filter").to_pylist() == written(SMALL.specification(np.arange(3_000), SEED))
    assert edges.column("source").equals(ids.take(graph.edge_source))
    assert edges.column("target").equals(ids.take(graph.edge_target))
    sources = SMALL.sources(np.arange(2_000), SEED)
    assert events.column("source").equals(ids.take(sources))
    assert (sources.min() < 30, sources.max() > 2_970) == (True, True)


def test_selectivity_1_is_no_filter() -> None:
    social = Social(3_000, 30_000, "1")
    assert social.filtered(SEED).tolist() == []
    assert social.nodes(np.arange(50), SEED).column("filter").null_count == 50
    with pytest.raises(HeadgateError, match="node 7 has no filter"):
        social.specification(np.array([7]), SEED)


@examples(10)
@given(cuts=st.lists(st.integers(0, 120), max_size=6), seed=st.integers(0, 3))
def test_rows_are_the_same_whatever_the_batches(cuts: list[int], seed: int) -> None:
    rows = np.arange(1000, 1120)
    for make in (SMALL.nodes, SMALL.edges, SMALL.events):
        whole = pa.Table.from_batches([make(rows, seed)])
        parts = [make(part, seed) for part in np.split(rows, sorted(cuts))]
        assert pa.Table.from_batches(parts).combine_chunks().equals(whole.combine_chunks())
        backward = make(rows[::-1], seed).take(pa.array(range(119, -1, -1)))
        assert backward.to_pylist() == whole.to_pylist()


@pytest.mark.parametrize(("nodes", "edges"), [(17, 34), (100, 1_237)])
def test_small_and_dense_graphs(nodes: int, edges: int) -> None:
    graph = Social(nodes, edges).structure(SEED)
    assert len({*zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True)}) == edges


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ((1, 2, "1"), "nodes 1: a social network has from 2 up to"),
        ((1000, 1999, "1"), "edges 1999: 1000 nodes have from 2000 to 124875 of them"),
        ((1000, 124_876, "1"), "edges 124876: 1000 nodes have from 2000 to 124875 of them"),
        ((1000, 2000, "1/3"), "the social network has no selectivity '1/3'; there are 1/64, 1/16"),
    ],
)
def test_what_cannot_be_drawn_is_refused(wrong: tuple[int, int, str], complaint: str) -> None:
    with pytest.raises(HeadgateError, match=complaint):
        Social(*wrong)
