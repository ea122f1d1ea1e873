"""Several threads over one index, against one thread."""

from __future__ import annotations

import json
import random
import threading
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from headgate import Engine, Event
from headgate.core.omission import Omissions, tell
from headgate.engine import answers
from headgate.engine.question import ALL
from headgate.errors import EventError
from tests.records.random_filters import SCHEMA, random_event, random_filter

if TYPE_CHECKING:
    from headgate.engine.backend import Backend


@pytest.fixture(autouse=True)
def short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "LEAST_RUN", 3)
    monkeypatch.setattr(answers, "MOST_RUN", 5)


def made(kind: str) -> tuple[Engine, list[dict[str, Any]]]:
    rng = random.Random(kind)
    filters = [{"id": f"s{n:02}", "filter": random_filter(rng), "score": n % 7} for n in range(20)]
    events = [{**random_event(rng, e), "source": "pub"} for e in range(29)]
    if kind != "graph":
        return Engine.build(filters, ranked=kind == "ranked"), events
    nodes = [{"id": "pub"}, {"id": "net", "filter": "i > 0"}]
    edges = [{"source": "pub", "target": "net"}]
    hung = [{**each, "node": "net"} for each in filters]
    return Engine.build(hung, nodes=nodes, edges=edges, ranked=True), events


@pytest.mark.parametrize("kind", ["plain", "ranked", "graph"])
@pytest.mark.parametrize("tail", [False, True])
def test_the_same_table(kind: str, tail: bool) -> None:
    engine, events = made(kind)
    if tail:
        node = {"node": "net"} if kind == "graph" else {}
        engine.subscribe([{"id": "later", "filter": "i > 1", **node}])
        engine.unsubscribe("s05")
    schema = pa.schema([*SCHEMA, pa.field("source", pa.string())])
    for given in (events, pa.Table.from_pylist(events, schema=schema)):
        assert engine.match_batch(given, threads=3).equals(engine.match_batch(given))
        assert engine.top_batch(given, 3, threads=3).equals(engine.top_batch(given, 3))
        if kind != "plain":
            found = engine.top_batch(given, 3, "relaxed", threads=3)
            assert found.equals(engine.top_batch(given, 3, "relaxed"))


def test_statistics_count_the_same() -> None:
    engine, events = made("plain")
    other, _ = made("plain")
    for each, count in ((engine, 4), (other, 1)):
        each.statistics()
        each.match_batch(events, threads=count)
        each.match_batch(events[:20], threads=count)
    columns = ["subscription_id", "events", "matches", "last_event"]
    found, wanted = (each.statistics().table().select(columns) for each in (engine, other))
    assert found.equals(wanted)


def test_threads_while_subscriptions_change() -> None:
    """Every event is answered as at some moment: what never changes is always there, what never is never."""
    engine = Engine.build([{"id": f"s{n}", "filter": f"a > {n}"} for n in range(50)])
    events = [json.dumps({"id": e, "a": e % 60}) for e in range(120)]
    stop = threading.Event()

    def change() -> None:
        rng = random.Random(1)
        while not stop.is_set():
            engine.subscribe([{"id": "x", "filter": "a >= 0"}])
            if rng.random() < 0.2:
                engine.compact()
            engine.unsubscribe("x")

    changing = threading.Thread(target=change)
    changing.start()
    try:
        for _ in range(20):
            found = engine.match_batch(events, threads=3).to_pydict()
            pairs = list(zip(found["event_id"], found["subscription_id"], strict=True))
            steady = [pair for pair in pairs if pair[1] != "x"]
            assert sorted(steady) == sorted((e, f"s{n}") for e in range(120) for n in range(50) if e % 60 > n)
            assert [pair[0] for pair in pairs] == sorted(pair[0] for pair in pairs)
            assert len(set(pairs)) == len(pairs)
    finally:
        stop.set()
        changing.join()


def test_the_first_failure_is_told() -> None:
    engine, events = made("plain")
    bad = [*events[:15], {"i": 2**70}, *events[15:], {"s": "\ud800"}]
    for count in (1, 2, 5):
        with pytest.raises(EventError, match="attribute i: 1180591620717411303424 does not fit"):
            engine.match_batch(bad, threads=count)

    def work(item: int) -> int:
        if item >= 4:
            raise EventError(f"item {item}")
        return item

    with pytest.raises(EventError, match="item 4"):
        answers.spread(work, range(50), 4)
    assert answers.spread(work, range(4), 9) == [0, 1, 2, 3]
    assert answers.spread(work, [], 3) == []


def test_what_is_left_out_is_told_in_order() -> None:
    class Telling:
        """Leaves out one filter an event."""

        def ask(self, events: Any, ids: Any, question: Any, most: int) -> Any:
            del ids, question, most
            for event in events:
                tell(event.id, "s", "too much")
            return iter(())

    backend: Backend = Telling()  # type: ignore[assignment]
    events = [Event(e, {}) for e in range(30)]
    with Omissions() as left_out:
        list(answers.ask(backend, events, pa.array(range(30)), ALL, 9, 4))
    assert [each.event for each in left_out] == list(range(30))


@pytest.mark.parametrize("wrong", [0, -1, 2.5, "2", None, True, 1000])
def test_what_is_no_number_of_threads(wrong: Any) -> None:
    engine, events = made("plain")
    with pytest.raises(EventError, match=r"threads is .*: give how many, a whole number from 1 to 256"):
        engine.match_batch(events, threads=wrong)
    with pytest.raises(EventError, match="threads is"):
        engine.top_batch(events, 3, threads=wrong)
