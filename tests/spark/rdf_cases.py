"""Patterns, documents and jobs that the tests of RDF through the pipeline share."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headgate import Event, Subscription, Taxonomy
from headgate.rdf.events.triples import write_lines
from headgate.rdf.language.printing import print_pattern
from tests.rdf.random_patterns import random_graph, random_pattern, random_taxonomy
from tests.spark.files import Row, get_lines, get_table
from tests.spark.jobs import compile_subscriptions, match_events

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from headgate import Engine
    from headgate.core.event import Id
    from headgate.tables.results import CompileResult, MatchResult

PREFIX = "PREFIX : <http://example.org/> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> "
TURTLE = "@prefix : <http://example.org/> . "
ALWAYS = "ASK {}"


def pattern(rng: random.Random) -> str:
    """Draw a filter."""
    return print_pattern(random_pattern(rng))


def too_much() -> tuple[str, str]:
    """Return a filter and N-Triples that it would take for ever to join with: a clique in a dense graph."""
    clique = " . ".join(f"?v{i} <urn:p> ?v{j}" for i in range(11) for j in range(i))
    rng = random.Random(5)
    pairs = [(i, j) for i in range(100) for j in range(i) if rng.random() < 0.5]
    return f"ASK {{ {clique} }}", "\n".join(f"<urn:n{i}> <urn:p> <urn:n{j}> ." for i, j in pairs)


def taxonomy(seed: int) -> Taxonomy:
    """Draw a taxonomy."""
    return Taxonomy.of(random_taxonomy(random.Random(seed)))


def document(rng: random.Random, identity: Id, **more: object) -> Row:
    """Draw a row with a graph, as N-Triples or Turtle, which includes them."""
    kind = rng.choice(["nt", "text/turtle", "application/n-triples; charset=utf-8"])
    # Nothing at all would be NULL in CSV.
    data = write_lines(random_graph(rng)) or "# nothing\n"
    return {"id": identity, "data": data, "datacontenttype": kind, **more}


def subscription_row(subscription: Subscription) -> Row:
    """Write a subscription as a row."""
    return {"id": subscription.id, "filter": subscription.filter, "dialect": subscription.dialect}


def answers(engine: Engine, rows: Iterable[Row]) -> list[tuple[Id, Id]]:
    """Ask the engine in this process, sorted."""
    events = [Event.from_row(row) for row in rows]
    return sorted((event.id, found) for event in events for found in engine.match(event))


# A document for every way to be refused, and what the reason says.
BOMBS: dict[str, tuple[Row, str]] = {
    "deep": ({"data": "[" * 5000 + "]" * 5000, "datacontenttype": "jsonld"}, "nests 5,000 deep"),
    "laughs": (
        {
            "data": '<!DOCTYPE x [<!ENTITY a "a"><!ENTITY b "&a;&a;">]><r:RDF xmlns:r="urn:x">&b;</r:RDF>',
            "datacontenttype": "application/rdf+xml",
        },
        "DOCTYPE",
    ),
    "broken": ({"data": "<urn:a> <urn:b> ", "datacontenttype": "turtle"}, "not valid Turtle"),
    "silent": ({"datacontenttype": "nt"}, "the event has no 'data': give its RDF there, as text"),
    "wordless": ({"data": None, "datacontenttype": "nt"}, "the event has no 'data'"),
    "numeric": ({"data": 7, "datacontenttype": "nt"}, "data is int and must be text"),
    "html": (
        {"data": "<p>", "datacontenttype": "text/html"},
        "datacontenttype 'text/html' is not a format of RDF",
    ),
    "untyped": ({"data": "<urn:a> <urn:b> <urn:c> ."}, "the event has no 'datacontenttype'"),
}


@dataclass
class Job:
    """Compile and match in a folder of its own."""

    spark: Any
    folder: Path

    @property
    def snapshot(self) -> Path:
        """Return where the snapshot is."""
        return self.folder / "snapshot"

    def compile(self, table: str, **options: Any) -> CompileResult:
        """Compile a table."""
        place, rejected = str(self.snapshot), str(self.folder / "refused.jsonl")
        return compile_subscriptions(self.spark, table, place, rejected=rejected, quiet=True, **options)

    def match(self, events: str, output: str = "matches.parquet", **options: Any) -> MatchResult:
        """Match a table or files."""
        place, rejected = str(self.folder / output), str(self.folder / "refused-events.jsonl")
        return match_events(
            self.spark, str(self.snapshot), events, place, rejected=rejected, quiet=True, **options
        )

    def pairs(self, output: str = "matches.parquet") -> list[tuple[Any, Any]]:
        """Return the matches, sorted."""
        rows = get_table(self.folder / output)
        return sorted((row["event_id"], row["subscription_id"]) for row in rows)

    def refused(self) -> list[Row]:
        """Return the subscriptions that were refused."""
        return get_lines(self.folder / "refused.jsonl")

    def refused_events(self) -> dict[Any, str]:
        """Return the reasons of events that were refused, by id."""
        rows = get_lines(self.folder / "refused-events.jsonl")
        return {_id(row["row"]): row["reason"] for row in rows}


def _id(row: str) -> object:
    try:
        return json.loads(row).get("id")
    except json.JSONDecodeError:
        return row
