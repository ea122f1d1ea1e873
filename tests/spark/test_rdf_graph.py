"""A graph of RDF filters through the pipeline: what it may be mixed of, and what is told of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from headgate.tables.results import Tables
from tests.spark.files import get_lines, put_lines
from tests.spark.jobs import compile_graph
from tests.spark.rdf_cases import Job, taxonomy

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from headgate.tables.results import GraphCompileResult


class GraphJob(Job):
    """A graph whose filters are patterns."""

    def compile_graph(self, parts: Drawn, **options: Any) -> GraphCompileResult:
        nodes, edges, subscriptions = parts
        place, rejected = str(self.snapshot), str(self.folder / "refused.jsonl")
        tables = Tables(
            put_lines(self.folder / "nodes.jsonl", nodes),
            put_lines(self.folder / "edges.jsonl", edges),
            put_lines(self.folder / "subs.jsonl", subscriptions),
        )
        return compile_graph(self.spark, tables, place, rejected=rejected, quiet=True, **options)


Drawn = tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]


def test_a_graph_may_be_mixed_of_two_contents_and_nodes_need_no_dialect(
    session: SparkSession | None, tmp_path: Path
) -> None:
    job = GraphJob(session, tmp_path)
    nodes: list[dict[str, Any]] = [{"id": 1}, {"id": 2, "kind": "sparql"}]
    edges: list[dict[str, Any]] = [{"source": 1, "target": 2}]
    subscriptions = [{"id": "a", "filter": "ASK { ?x a <urn:A> }", "dialect": "sparql", "node": 2}]
    subscriptions.append({"id": "b", "filter": "ASK {}", "dialect": "sparql", "node": 7})
    done = job.compile_graph((nodes, edges, subscriptions), taxonomy=taxonomy(4))
    assert (done.nodes, done.subscriptions, done.rejected) == (2, 1, 1)
    assert done.holds is not None
    assert done.holds.counts["taxonomy"] == len(taxonomy(4))
    rows = [{"id": "e", "source": 1, "data": "<urn:x> a <urn:A> .", "datacontenttype": "turtle"}]
    job.match(put_lines(tmp_path / "events.jsonl", rows))
    assert job.pairs() == [("e", "a")]
    # What is written anew in the rejected table can be read again.
    (refused,) = get_lines(tmp_path / "refused.jsonl")
    assert (refused["id"], json.loads(refused["row"])["dialect"]) == ("b", "sparql")
    edges[0]["filter"] = "age > 3"
    done = job.compile_graph((nodes, edges, subscriptions))
    assert (done.edges, done.subscriptions, done.rejected) == (1, 1, 1)
