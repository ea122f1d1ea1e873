"""The library as a surface: engines in this process."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from headgate import Edge, Engine, Event, Node, Subscription
from headgate.errors import HeadgateError
from tests.contract.refusals import key_of
from tests.contract.surfaces import Match, Refusal, Shape, Surface, Told, event_lines
from tests.contract.telling import taxonomy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from headgate.core.event import Id
    from tests.contract.refusals import Bad
    from tests.contract.world import Question, World
    from tests.spark.files import Row


class Library(Surface):
    """Engines in this process. Rows are taken one by one to see which are refused."""

    name, objects, changes = "library", True, True

    def __init__(self, world: World, shape: Shape | None = None) -> None:
        del shape
        self.world = world
        self._refused: Counter[Refusal] = Counter()
        self._refused_changes: Counter[Refusal] = Counter()
        self.engine = self._asked = self._build()
        self._changed: Engine | None = None

    def _build(self) -> Engine:
        world = self.world
        return Engine.build(
            [Subscription(**row) for row in world.subscriptions],
            nodes=[Node(**row) for row in world.nodes] if world.graph else None,
            edges=[Edge(**row) for row in world.edges],
            ranked=world.ranked,
            taxonomy=taxonomy(world.content),
        )

    def compile(self) -> Counter[Refusal]:
        """Offer the bad rows to an engine that has all others."""
        world, engine = self.world, self._build()
        refused: Counter[Refusal] = Counter()
        for rows, offer in (
            (world.bad_nodes, lambda row: engine.graph.add_node(Node(**row))),
            (world.bad_edges, lambda row: engine.graph.add_edge(Edge(**row))),
            (world.bad_subscriptions, lambda row: _subscribe(engine, row)),
        ):
            refused += _offered(rows, offer)
        return refused

    def match(self, question: Question) -> Counter[Match]:
        """Ask about one event after the other."""
        self.turn_to(question)
        self._refused = Counter()
        found: Counter[Match] = Counter()
        for text in event_lines(self.world):
            try:
                found.update(self._answer(Event.from_json(text), question))
            except HeadgateError as error:
                self._refused[key_of(text), str(error)] += 1
        return found

    def turn_to(self, question: Question) -> None:
        """Take the first subscriptions, or the changed ones."""
        if question.changed and self._changed is None:
            self._changed = self._change()
        self._asked = self._changed if question.changed and self._changed else self.engine

    @property
    def asked(self) -> Engine:
        """Return the engine that questions go to."""
        return self._asked

    def _answer(self, event: Event, question: Question) -> list[Match]:
        top = question.top
        if top is None:
            return [(event.id, each) for each in self._asked.match(event)]
        best: Any = self._asked.top(event, top.k, top.mode, factors=top.weighing, **top.path._asdict())
        return [(event.id, each.subscription, each.value, rank) for rank, each in enumerate(best, 1)]

    def _change(self) -> Engine:
        engine = self._build()

        def apply(row: Row) -> None:
            given = {name: value for name, value in row.items() if name != "op"}
            if row["op"] == "subscribe":
                _subscribe(engine, given)
            elif row["op"] == "unsubscribe":
                engine.unsubscribe(given["id"])
            elif row["op"] == "score":
                engine.set_score(given["id"], given["score"])
            else:
                engine.set_weights(given["id"], given["weights"])

        for row in self.world.changes:
            apply(row)
        self._refused_changes = _offered(self.world.bad_changes, apply)
        return engine

    def refused(self) -> Counter[Refusal]:
        """List what was raised."""
        return self._refused

    def refused_changes(self) -> Counter[Refusal]:
        """List what was raised."""
        return self._refused_changes

    def explain(self, event: Row, subscription: Id) -> Told:
        """Ask the engine."""
        found: Any = self._asked.explain(Event.from_row(event), subscription)
        # A filter may span lines.
        return Told(found.matches, "\n".join(found.lines()).splitlines())


def _subscribe(engine: Engine, row: Row) -> None:
    """Subscribe a row; jobs tell the id in a column of its own, and the engine before the reason."""
    subscription = Subscription(**row)
    try:
        engine.subscribe(subscription)
    except HeadgateError as error:
        raise HeadgateError(str(error).removeprefix(f"subscription {row['id']!r}: ")) from error


def _offered(rows: Iterable[Bad], offer: Callable[[Row], object]) -> Counter[Refusal]:
    """Offer rows of which there are objects; lists what is raised."""
    refused: Counter[Refusal] = Counter()
    for bad in rows:
        if not bad.has_object:
            continue
        try:
            offer(bad.row)
        except HeadgateError as error:
            refused[key_of(bad.line), str(error)] += 1
    return refused
