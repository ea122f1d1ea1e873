"""Every job over every content: one small world, told as records, as RDF and as XML.

A thing has a topic and an age. Somebody wants a topic from an age on. So the three contents have the same
answers, which the engine in this process gives without Spark. Run as a program, the jobs go to a master:

    python -m tests.spark.every_job FOLDER MASTER
"""

from __future__ import annotations

import json
import random
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate import Edge, Engine, Event, Node, Settings, Subscription
from headgate.contents.kind import FilterSettings
from headgate.core.rooms import RDF, RECORDS, XML
from headgate.engine.question import ALL, Question, Top
from headgate.jobs.backtest import backtest
from headgate.jobs.match import match_events
from headgate.jobs.what_if import what_if
from headgate.plan.graphs.rewritability import Search
from headgate.runtime.sharding import Sharding
from headgate.spark.runner import SparkRunner
from headgate.spark.session.session import close_session, open_session
from headgate.spark.stream.run import run_stream
from headgate.stream.settings import StreamSettings
from headgate.tables.requests import WhatIfRequest
from headgate.tables.results import Tables
from tests.spark.files import get_lines, get_table, put_lines
from tests.spark.jobs import compile_graph, compile_subscriptions, plan_subscriptions
from tests.streaming.world import read_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from headgate.core.ranks import Best
    from headgate.graph.ranked.ranked import RankedMatch

    Answer = list[list[Any]]

CONTENTS = (RECORDS, RDF, XML)
TOPICS = ("art", "law", "news", "sport")
SUBSCRIPTIONS, EVENTS, K = 40, 60, 5
JOBS = (
    "match",
    "match, empty partitions",
    "match, shards by hash",
    "match, shards by access",
    "match, shards by tenant",
    "match through a graph",
    "match through a graph in shards",
    "stream",
    "stream with changes",
    "backtest",
    "what if",
    "top",
    "top, relaxed",
    "top, shards",
    "top through a graph",
    "top through a graph in shards",
)
ALONE = ("backtest", "what if")
"""Jobs that the contract of all surfaces does not ask."""
TUPLES = "tuples"
"""For XML only: what patterns return."""
DIALECTS = {RECORDS: "sql", RDF: "sparql", XML: "xpath"}
FORMATS = {RECORDS: None, RDF: "turtle", XML: "xml"}


@dataclass(frozen=True)
class Want:
    """A topic from an age on; no topic is any."""

    topic: str | None
    age: int

    def text(self, content: str) -> str:
        """Write it as a filter."""
        if content == RECORDS:
            return " AND ".join([*([f"topic = '{self.topic}'"] if self.topic else []), f"age >= {self.age}"])
        if content == RDF:
            topic = f"<urn:topic> <urn:{self.topic}> ; " if self.topic else ""
            return f"ASK {{ ?x {topic}<urn:age> ?a FILTER(?a >= {self.age}) }}"
        topic = f"[topic = '{self.topic}']" if self.topic else ""
        return f"//thing{{id}}{topic}[age >= {self.age}]"


@dataclass(frozen=True)
class World:
    """What is asked for, who asks, and what comes."""

    content: str

    def _rng(self) -> random.Random:
        return random.Random(8)

    def subscriptions(self) -> list[Subscription]:
        """List the subscriptions; they hang at nodes where there is a graph."""
        rng, found = self._rng(), []
        for number in range(SUBSCRIPTIONS):
            want = Want(rng.choice((*TOPICS, None)), rng.randrange(50))
            score, node = float(rng.randrange(10)), f"n{rng.randrange(6)}"
            text = want.text(self.content)
            found.append(Subscription(f"s{number:02}", text, DIALECTS[self.content], score=score, node=node))
        return found

    def nodes(self) -> list[Node]:
        """List the nodes: a source, and six more of which some take only a part."""
        dialect = DIALECTS[self.content]
        wants = [Want("news", 0), None, Want(None, 20), None, None, Want("art", 0)]
        return [
            Node("source"),
            *(
                Node(f"n{number}", None if want is None else want.text(self.content), dialect=dialect)
                for number, want in enumerate(wants)
            ),
        ]

    def edges(self) -> list[Edge]:
        """List the edges: a tree of two levels, and a short cut."""
        pairs = [("source", "n0"), ("source", "n1"), ("source", "n2")]
        pairs += [("n0", "n3"), ("n1", "n4"), ("n2", "n5"), ("n1", "n5")]
        return [Edge(source, target, cost=0.5) for source, target in pairs]

    def rows(self) -> list[dict[str, Any]]:
        """List the events as rows of a table."""
        rng, found = self._rng(), []
        for number in range(EVENTS):
            topic, age = rng.choice(TOPICS), rng.randrange(60)
            row: dict[str, Any] = {"id": f"e{number:02}", "source": "source"}
            if self.content == RECORDS:
                row |= {"topic": topic, "age": age}
            elif self.content == RDF:
                row |= {
                    "datacontenttype": "text/turtle",
                    "data": f"<urn:x> <urn:topic> <urn:{topic}> ; <urn:age> {age} .",
                }
            else:
                data = f"<all><thing><topic>{topic}</topic><age>{age}</age></thing></all>"
                row |= {"datacontenttype": "application/xml", "data": data}
            found.append(row)
        return found

    def events(self) -> list[Event]:
        """List the events as the engine wants them."""
        if self.content == RECORDS:
            return [Event.from_row(row) for row in self.rows()]
        return [
            Event(row["id"], row["data"], source=row["source"], content_type=row["datacontenttype"])
            for row in self.rows()
        ]

    def changes(self) -> list[dict[str, Any]]:
        """List changes of subscriptions: one that is new, one that is another now, one that ends."""
        dialect = DIALECTS[self.content]
        return [
            {
                "op": "subscribe",
                "id": "new",
                "filter": Want("news", 1).text(self.content),
                "dialect": dialect,
            },
            {"op": "replace", "id": "s00", "filter": Want(None, 5).text(self.content), "dialect": dialect},
            {"op": "unsubscribe", "id": "s01"},
        ]

    def plain(self) -> Engine:
        """Build the engine without graph and ranking."""
        return Engine.build([self._alone(each) for each in self.subscriptions()], ranked=False)

    def ranked(self) -> Engine:
        """Build it with ranking."""
        return Engine.build(
            [self._alone(each, score=float(each.score)) for each in self.subscriptions()], ranked=True
        )

    def graph(self) -> Engine:
        """Build it with a graph."""
        return Engine.build(self.subscriptions(), nodes=self.nodes(), edges=self.edges())

    @staticmethod
    def _alone(given: Subscription, score: float = 0.0) -> Subscription:
        return Subscription(given.id, given.filter, given.dialect, score=score)


def jobs_of(content: str) -> tuple[str, ...]:
    """List the jobs that a content has."""
    return (*JOBS, TUPLES) if content == XML else JOBS


def expected(world: World) -> dict[str, Answer]:
    """Say what the jobs must give, by the engine alone."""
    events, before, through, ranked = world.events(), world.plain(), world.graph(), world.ranked()
    plain = [[event.id, found] for event in events for found in before.match(event)]
    graph = [[event.id, found] for event in events for found in through.match(event)]
    first = world.subscriptions()[0].id
    backtested = [[event.id] for event in events if first in before.match(event)]
    changed = world.plain()
    changed.unsubscribe("s00")
    changed.unsubscribe("s01")
    for row in world.changes()[:2]:
        changed.subscribe(Subscription(row["id"], row["filter"], row["dialect"]))
    after = [[event.id, found] for event in events for found in changed.match(event)]
    found: dict[str, Answer] = {
        "match": plain,
        "match, empty partitions": plain,
        "match, shards by hash": plain,
        "match, shards by access": plain,
        "match, shards by tenant": plain,
        "match through a graph": graph,
        "match through a graph in shards": graph,
        "stream": plain,
        "stream with changes": after,
        "backtest": backtested,
        "what if": [
            *([*pair, "lost"] for pair in plain if pair not in after),
            *([*pair, "gained"] for pair in after if pair not in plain),
        ],
        "top": _best(ranked, events, "exact"),
        "top, relaxed": _best(ranked, events, "relaxed"),
        "top, shards": _best(ranked, events, "exact"),
        "top through a graph": _best(through, events, "exact"),
        "top through a graph in shards": _best(through, events, "exact"),
    }
    if world.content == XML:
        engine = world.plain()
        found["tuples"] = [
            [event.id, each] for event in events for each in engine.match(event) if engine.answer(event, each)
        ]
    return {name: sorted(rows) for name, rows in found.items()}


def _best(engine: Engine, events: list[Event], mode: str) -> Answer:
    found: Answer = []
    for event in events:
        best: Sequence[RankedMatch | Best] = engine.top(event, K, mode)
        found += [[event.id, each.subscription, each.value, rank] for rank, each in enumerate(best, 1)]
    return found


def put_world(folder: Path, world: World) -> None:
    """Write the tables that jobs read."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {"id": each.id, "filter": each.filter, "dialect": each.dialect, "tenant": f"t{number % 5}"}
        for number, each in enumerate(world.subscriptions())
    ]
    put_lines(folder / "plain.jsonl", rows)
    scores = {each.id: each.score for each in world.subscriptions()}
    put_lines(folder / "ranked.jsonl", [{**row, "score": scores[row["id"]]} for row in rows])
    hung = {each.id: each.node for each in world.subscriptions()}
    put_lines(
        folder / "hung.jsonl", [{**row, "score": scores[row["id"]], "node": hung[row["id"]]} for row in rows]
    )
    dialect = DIALECTS[world.content]
    put_lines(
        folder / "nodes.jsonl",
        [
            {"id": each.id, **({"filter": each.filter, "dialect": dialect} if each.filter else {})}
            for each in world.nodes()
        ],
    )
    put_lines(
        folder / "edges.jsonl",
        [{"source": each.source, "target": each.target, "cost": each.cost} for each in world.edges()],
    )
    put_lines(folder / "events.jsonl", world.rows())
    # Empty files are partitions without events.
    for number in range(4):
        put_lines(folder / "pieces" / f"{number}.jsonl", world.rows() if number == 2 else [])
    put_lines(folder / "in" / "events.jsonl", world.rows())
    put_lines(folder / "changes.jsonl", world.changes())
    (folder / "later").mkdir()
    changes = [row for row in world.changes() if row["op"] != "replace"]
    again = next(row for row in world.changes() if row["op"] == "replace")
    changes += [{"op": "unsubscribe", "id": again["id"]}, {**again, "op": "subscribe"}]
    put_lines(folder / "later" / "changes.jsonl", changes)


class Jobs:
    """Runs the jobs in a folder that `put_world` filled."""

    def __init__(self, session: SparkSession, folder: Path, world: World) -> None:
        self._session = session
        self._folder = folder
        self._world = world
        self._named: dict[str, Callable[[], Answer]] = {
            "match": partial(self._match, "plain"),
            "match, empty partitions": partial(self._match, "plain", events="pieces"),
            "match, shards by hash": partial(self._match, "hash"),
            "match, shards by access": partial(self._match, "access"),
            "match, shards by tenant": partial(self._match, "tenant"),
            "match through a graph": partial(self._match, "graph"),
            "match through a graph in shards": partial(self._match, "graph-shards"),
            "stream": partial(self._stream, "plain"),
            "stream with changes": partial(self._stream, "plain", changes="later"),
            "backtest": self._backtest,
            "what if": self._what_if,
            "top": partial(self._match, "ranked", question=Question(Top(K))),
            "top, relaxed": partial(self._match, "ranked", question=Question(Top(K, "relaxed"))),
            "top, shards": partial(self._match, "ranked-shards", question=Question(Top(K))),
            "top through a graph": partial(self._match, "graph", question=Question(Top(K))),
            "top through a graph in shards": partial(self._match, "graph-shards", question=Question(Top(K))),
            TUPLES: self._tuples,
        }

    @classmethod
    def new(cls, session: SparkSession, folder: Path, content: str) -> Jobs:
        """Fill a folder with the tables of a content, and run jobs there."""
        put_world(folder, World(content))
        return cls(session, folder, World(content))

    def answer(self, name: str) -> Answer:
        """Run one job; what it gives, sorted."""
        return sorted(self._named[name]())

    def plan(self) -> list[float]:
        """Plan a network of the plain subscriptions; what is told of it."""
        done, _ = plan_subscriptions(
            self._session,
            self._snapshot("plain"),
            self._at("events.jsonl"),
            self._at("network"),
            Settings(search=Search(k=10), fan_out=20.0, gap=0.0),
            rejected=self._at("refused.jsonl"),
            carries="row" if self._world.content == RECORDS else None,
            by_workers=True,
            quiet=True,
        )
        return [done.views, done.events, done.embeddings, done.rewritings, done.utilization, done.latency]

    def _at(self, name: str) -> str:
        return str(self._folder / name)

    def _snapshot(self, name: str) -> str:
        """Compile the snapshot of this name, unless it is there; where it is."""
        place = self._at(name)
        if Path(place).exists():
            return place
        many = 4 if name == "access" else 3
        rule = "topic" if self._world.content == RECORDS else None
        sharding = {
            "hash": Sharding.of(many),
            "access": Sharding.of(many, "access", rule),
            "tenant": Sharding.of(many, "tenant"),
            "ranked-shards": Sharding.of(many),
            "graph-shards": Sharding.of(many),
        }.get(name)
        rejected = self._at("refused.jsonl")
        if name.startswith("graph"):
            tables = Tables(self._at("nodes.jsonl"), self._at("edges.jsonl"), self._at("hung.jsonl"))
            through = compile_graph(
                self._session, tables, place, rejected=rejected, sharding=sharding, quiet=True
            )
            assert through.rejected == 0
            return place
        table = self._at("ranked.jsonl" if name.startswith("ranked") else "plain.jsonl")
        done = compile_subscriptions(
            self._session, table, place, rejected=rejected, sharding=sharding, quiet=True
        )
        assert (done.subscriptions, done.rejected) == (SUBSCRIPTIONS, 0)
        return place

    def _match(self, snapshot: str, *, events: str = "events.jsonl", question: Question = ALL) -> Answer:
        done = match_events(
            SparkRunner(self._session, quiet=True),
            self._snapshot(snapshot),
            self._at(events),
            self._at("matches.parquet"),
            rejected=self._at("refused.jsonl"),
            question=question,
        )
        assert (done.events, done.rejected) == (EVENTS, 0)
        return [list(row.values()) for row in get_table(self._folder / "matches.parquet")]

    def _tuples(self) -> Answer:
        match_events(
            SparkRunner(self._session, quiet=True),
            self._snapshot("plain"),
            self._at("events.jsonl"),
            self._at("matches.parquet"),
            rejected=self._at("refused.jsonl"),
            tuples=self._at("tuples.jsonl"),
        )
        return [[row["event_id"], row["subscription_id"]] for row in get_lines(self._at("tuples.jsonl"))]

    def _stream(self, snapshot: str, *, changes: str | None = None) -> Answer:
        name = f"stream-{changes}"
        run_stream(
            self._session,
            StreamSettings(
                self._snapshot(snapshot),
                self._at("in"),
                self._at(f"{name}-out"),
                self._at(f"{name}-state"),
                changes=changes and self._at(changes),
                once=True,
            ),
            quiet=True,
        )
        found = read_folder(self._folder / f"{name}-out")
        return [[row["event_id"], row["subscription_id"]] for row in found]

    def _backtest(self) -> Answer:
        text, dialect = self._world.subscriptions()[0].filter, DIALECTS[self._world.content]
        runner = SparkRunner(self._session, quiet=True)
        wanted = FilterSettings(dialect)
        backtest(runner, text, self._at("events.jsonl"), wanted, output=self._at("kept.jsonl"))
        return [[row["id"]] for row in get_lines(self._at("kept.jsonl"))]

    def _what_if(self) -> Answer:
        what_if(
            SparkRunner(self._session, quiet=True),
            WhatIfRequest(self._at("changes.jsonl"), self._snapshot("plain"), self._at("events.jsonl")),
            rejected=self._at("refused.jsonl"),
            output=self._at("change.jsonl"),
        )
        found = get_lines(self._at("change.jsonl"))
        return [[row["event_id"], row["subscription_id"], row["change"]] for row in found]


def main(folder: str, master: str) -> None:
    """Run every job over every content on a master; prints the answers as JSON."""
    session = open_session(master)
    try:
        found: dict[str, Any] = {"executors": session.sparkContext.defaultParallelism}
        for content in CONTENTS:
            jobs = Jobs.new(session, Path(folder) / content, content)
            answers = {job: jobs.answer(job) for job in jobs_of(content)}
            found[content] = {"answers": answers, "plan": jobs.plan()}
    finally:
        close_session(session)
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
