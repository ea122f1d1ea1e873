"""Statistics of subscriptions: what is counted against a slow twin, what is estimated against bounds."""

from __future__ import annotations

import random
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from headgate import Engine, Event, Node, Omissions, Subscription
from headgate.core.subscription import dialects
from headgate.engine import counters, statistics
from headgate.rdf.index import matching
from headgate.records.events.columns import columns_of
from headgate.records.events.encode import encode
from headgate.records.index.arrays import REFERENCE_WORDS
from headgate.records.index.index import RecordIndex
from tests.contract.reference import holds
from tests.contract.rooms import ROOMS
from tests.contract.test_omissions import EASY, HARD, dense
from tests.records.random_filters import SCHEMA, random_event, random_filter
from tests.seeds import seeds

if TYPE_CHECKING:
    from headgate.core.event import Id
    from headgate.records.index.arrays import BuiltIndex
    from tests.contract.rooms import Room

every_content = pytest.mark.parametrize(
    "room", [room for room in ROOMS if room.index.dialect in dialects()], ids=lambda room: room.name
)


class Twin:
    """The same, slowly: every filter is asked about every event, by its definition."""

    def __init__(self, content: str) -> None:
        self._content = content
        self.filters: dict[Id, str] = {}
        self.counts: dict[Id, list[Any]] = {}

    def begin(self, identity: Id, text: str) -> None:
        """Count anew."""
        self.filters[identity], self.counts[identity] = text, [0, 0, None]

    def ask(self, events: list[Event], k: int | None = None) -> None:
        """Count what some events match: all, or the first k."""
        for event in events:
            found = [each for each in sorted(self.filters) if holds(self._content, event, self.filters[each])]
            for identity, counts in self.counts.items():
                counts[0] += 1
                if identity in found[:k]:
                    counts[1:] = counts[1] + 1, str(event.id)


@pytest.mark.parametrize("seed", seeds(24))
@every_content
def test_counts_are_those_of_the_reference(room: Room, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is asked and changed in between, and however much waits to be counted."""
    rng = random.Random(seed)
    monkeypatch.setattr(statistics, "PENDING", rng.choice([1, 16, 1 << 20]))
    dialect = room.index.dialect
    names = [f"s{number:02}" for number in range(12)]
    texts = {name: room.draw_filter(rng) for name in names}
    engine = Engine.build([Subscription(name, texts[name], dialect) for name in names[:8]])
    twin = Twin(room.name)
    for name in names[:8]:
        twin.begin(name, texts[name])
    counted = engine.statistics()
    for _ in range(12):
        rows = [room.draw_row(rng, rng.randrange(10**6)) for _ in range(rng.randrange(4))]
        events = [Event.from_row(row) for row in rows]
        step = rng.randrange(7)
        if step == 0:
            engine.match_batch(pa.RecordBatch.from_pylist(rows, room.schema))
            twin.ask(events)
        elif step == 1:
            engine.match_events(events)
            twin.ask(events)
        elif step == 2:
            engine.top_batch(events, 2)
            twin.ask(events, 2)
        elif step == 3:
            for event in events:
                engine.match(event)
                engine.top(event, 1)
                twin.ask([event])
                twin.ask([event], 1)
        elif step == 4:
            name, text = rng.choice(names), room.draw_filter(rng)
            given = Subscription(name, text, dialect)
            (engine.replace if name in engine else engine.subscribe)(given)
            twin.begin(name, text)
        elif step == 5:
            gone = rng.choice(engine.ids)
            engine.unsubscribe(gone)
            del twin.filters[gone], twin.counts[gone]
        else:
            engine.compact()
    found = counted.table()
    columns = [found[name].to_pylist() for name in ("subscription_id", "events", "matches", "last_event")]
    assert {row[0]: list(row[1:]) for row in zip(*columns, strict=True)} == twin.counts
    for row in found.to_pylist():
        assert (row["last_match"] is None) == (row["matches"] == 0)
        if row["candidates"] is not None:
            # A filter is found among those that are checked; what came lately was not measured.
            assert row["candidates"] <= row["events"]
            assert row["work"] >= row["candidates"]


@pytest.mark.parametrize("seed", seeds(24))
@every_content
def test_what_matches_was_checked(room: Room, seed: int) -> None:
    """Every match is a candidate, if all events are measured and nothing is subscribed later."""
    rng = random.Random(seed)
    dialect = room.index.dialect
    engine = Engine.build([Subscription(n, room.draw_filter(rng), dialect) for n in range(12)])
    counted = engine.statistics()
    engine.match_batch(
        pa.RecordBatch.from_pylist([room.draw_row(rng, row) for row in range(12)], room.schema)
    )
    for row in counted.table().to_pylist():
        assert row["matches"] <= row["candidates"] <= 12
        assert row["work"] >= row["candidates"]


def reached(built: BuiltIndex, events: Any, e: int) -> set[int]:
    """List the filters that an event's values lead to, slowly: from the arrays as they are described."""
    index, found = built.arrays, set()
    atoms = []
    for line in range(len(index.line_base) - 1):
        if index.line_multi[line]:
            codes = events.multi_codes[events.multi_start[line, e] : events.multi_start[line, e + 1]]
            atoms += [index.line_base[line] + code for code in codes.tolist()]
            continue
        code = int(events.codes[e, line])
        if code:
            atoms.append(index.line_base[line] + code)
            if index.level_base[line] >= 0:
                atoms.append(index.level_base[line] + int(index.quantile[atoms[-1]]))
    runs = [(index.single_start[atom], index.single_start[atom + 1]) for atom in atoms]
    pairs = {tuple(sorted(map(int, pair))) for pair in combinations(set(map(int, atoms)), 2)}
    stream = index.stream
    heads = index.slot_at[index.slot_print > 0].tolist()
    runs += [
        (at + 3, at + 3 + stream[at + 2]) for at in heads if tuple(stream[at : at + 2].tolist()) in pairs
    ]
    for begin, end in runs:
        at = int(begin)
        while at < end:
            found.add(int(stream[at] >> 3))
            at += REFERENCE_WORDS if stream[at] & 2 else 2 + int(stream[at + 1])
    ruled = set()
    for line in range(len(index.line_base) - 1):
        if not index.line_multi[line]:
            atom = index.line_base[line] + int(events.codes[e, line])
            ruled |= set(index.spoiled[index.spoil_start[atom] : index.spoil_start[atom + 1]].tolist())
            if index.spoil_row[atom] >= 0:
                bits = index.spoil_bits[index.spoil_row[atom]]
                ruled |= {m for m in range(len(index.unkeyed_at)) if int(bits[m >> 6]) >> (m & 63) & 1}
    left = [at for m, at in enumerate(index.unkeyed_at.tolist()) if m not in ruled]
    return found | {int(stream[at] >> 3) for at in left}


@pytest.mark.parametrize("seed", seeds(24))
def test_candidates_of_records_are_what_values_lead_to(seed: int) -> None:
    """Held against the description of the arrays."""
    rng = random.Random(seed)
    given = [Subscription(number, random_filter(rng)) for number in range(40)]
    index = RecordIndex.build(given)
    rows = [random_event(rng, number) for number in range(8)]
    batch = pa.RecordBatch.from_pylist(rows, SCHEMA)
    encoded = encode(columns_of(batch), index.built)
    wanted = np.zeros(len(given), np.int64)
    for e in range(len(rows)):
        wanted[sorted(reached(index.built, encoded, e))] += 1
    assert index.check_costs(batch).candidates.tolist() == wanted.tolist()


def test_some_events_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """They stand for all the others; the first ones are all measured."""
    monkeypatch.setattr(counters, "CALLS", 64)
    engine = Engine.build([{"id": "s1", "filter": "a = 1 AND b LIKE '%x%'"}, {"id": "s2", "filter": "a = 2"}])
    counted = engine.statistics()
    row = {"a": 1, "b": "yyyy"}
    engine.match_events([row] * counters.FIRST)
    first = counted.table().to_pylist()[0]
    assert (first["candidates"], first["matches"]) == (counters.FIRST, 0)
    asked = counters.FIRST
    for size in (1_000, 1, counters.EVENTS_BETWEEN, 0, 7, *[1] * counters.CALLS):
        engine.match_events([row] * size)
        asked += size
    found = counted.table().to_pylist()
    assert found[0]["candidates"] == found[0]["events"] == asked
    assert found[0]["work"] == first["work"] // counters.FIRST * asked
    assert (found[1]["candidates"], found[1]["work"]) == (0, 0)
    large = Engine.build([{"id": "s1", "filter": "a = 1"}, {"id": "s2", "filter": "a = 2"}])
    counted = large.statistics()
    large.match_events([row, {"a": 2}] * 1_000)
    assert sum(row["candidates"] for row in counted.table().to_pylist()) == 2_000


def test_filters_that_are_too_much_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for an event, whoever is told of them, too."""
    monkeypatch.setattr(matching, "BUDGET", 100_000)
    monkeypatch.setattr(matching, "LEAST", 1_000)
    engine = Engine.build([Subscription("hard", HARD, "sparql"), Subscription("easy", EASY, "sparql")])
    counted = engine.statistics()
    with Omissions() as left_out:
        engine.match(dense("e1"))
        engine.match_batch([dense("e2"), dense("e3")])
    assert [each.event for each in left_out] == ["e1", "e2", "e3"]
    assert counted.table().select(["subscription_id", "matches", "exceeded"]).to_pylist() == [
        {"subscription_id": "easy", "matches": 3, "exceeded": 0},
        {"subscription_id": "hard", "matches": 0, "exceeded": 3},
    ]


def test_graphs_and_ranks_are_counted_and_not_measured() -> None:
    """Of the best only what is given counts."""
    graph = Engine.build(
        [Subscription("s1", "age > 30", node="n"), Subscription("s2", "age > 20", node="n", score=1)],
        nodes=[Node("n")],
    )
    ranked = Engine.build([Subscription("s1", "age > 30"), Subscription("s2", "age > 20", score=1)])
    for engine in (graph, ranked):
        counted = engine.statistics()
        engine.match_batch([{"id": "e1", "age": 35, "source": "n"}, {"id": "e2", "age": 25, "source": "n"}])
        engine.top({"id": "e3", "age": 99, "source": "n"}, 1)
        found = counted.table().select(["matches", "last_event", "candidates"]).to_pylist()
        assert [tuple(row.values()) for row in found] == [(1, "e1", None), (3, "e3", None)]


def test_an_engine_without_statistics_counts_nothing() -> None:
    """They begin with the first call, and are the same object from then on."""
    engine = Engine.build([{"id": "s1", "filter": "age > 30"}])
    engine.match({"age": 35})
    counted = engine.statistics()
    assert counted is engine.statistics()
    assert counted.table()["matches"].to_pylist() == [0]
    assert Engine.build([]).statistics().table().num_rows == 0
