"""What if: drafts, trials that agree with one evaluation after the other, and what is made of them."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headgate import Edge, Event, Node, Subscription
from headgate.console import trial
from headgate.console.draft import plan
from headgate.console.trial import Question, Run, Trials
from headgate.errors import HeadgateError
from headgate.records.language.parse import parse_filter
from headgate.records.reference import evaluate
from headgate.service.envelope import stored_events
from headgate.service.tenant.past import SAMPLE
from tests.console.serving import serving
from tests.graph.reference import best_paths, reach_subscriptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headgate.core.event import Id
    from headgate.service.tenant.contents import Contents
    from tests.console.serving import Seen, Served, Visitor

_FILTERS = ("price < 3", "price >= 5", "topic = 'sport'", "topic = 'art' OR price = 1", "price > 100")
_NODES: dict[str, dict[str, Any]] = {"pub": {}, "mid": {"filter": "price < 8"}, "end": {}}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Return a server with subscriptions in and outside of a graph, and events."""
    with serving(tmp_path_factory.mktemp("what-if")) as found:
        with found.client() as client:
            for name, body in _NODES.items():
                client.ask("PUT", f"/v1/graph/nodes/{name}", body)
            client.ask("PUT", "/v1/graph/edges", {"source": "pub", "target": "mid"})
            client.ask(
                "PUT", "/v1/graph/edges", {"source": "mid", "target": "end", "filter": "topic = 'sport'"}
            )
            for number, text in enumerate(_FILTERS):
                client.subscribe(f"free{number}", text, score=number % 3, consumer="app")
                client.subscribe(f"hung{number}", text, score=5 - number, node=("mid", "end")[number % 2])
            client.publish(
                [
                    {
                        "id": f"e{n}",
                        "source": ("pub", "elsewhere", "mid")[n % 3],
                        "price": n % 11,
                        "topic": ("sport", "art", "news")[n % 7 % 3],
                    }
                    for n in range(40)
                ]
            )
        yield found


@pytest.fixture
def visitor(served: Served) -> Visitor:
    """Return somebody who uses it."""
    return served.visitor()


# The obvious slow answer


def _holds(event: Event, text: str, dialect: str) -> bool:
    assert dialect == "sql"
    return evaluate(parse_filter(text), event.attributes) is True


def _matched(contents: Contents, event: Event) -> list[str]:
    """List who gets an event, by one evaluation after the other."""
    free = [each for each in contents.subscriptions if each.node is None]
    found = {str(each.id) for each in free if _holds(event, each.filter, each.dialect)}
    if event.source in {node.id for node in contents.nodes}:
        assert event.source is not None
        hung = [each for each in contents.subscriptions if each.node is not None]
        reached = reach_subscriptions(
            contents.nodes, contents.edges, hung, event.source, partial(_holds, event)
        )
        found |= set(map(str, reached))
    return sorted(found)


def _best(contents: Contents, event: Event, k: int) -> list[str]:
    rows: list[tuple[float, str]] = []
    for each in contents.subscriptions:
        if each.node is None and _holds(event, each.filter, each.dialect):
            assert not isinstance(each.score, str)
            rows.append((-each.score, str(each.id)))
    if event.source in {node.id for node in contents.nodes}:
        assert event.source is not None
        hung = [each for each in contents.subscriptions if each.node is not None]
        paths = best_paths(
            contents.nodes, contents.edges, hung, event.source, partial(_holds, event), len(hung)
        )
        rows += [(-value, str(identity)) for identity, value, *_ in paths]
    return [identity for _, identity in sorted(rows)[:k]]


def _changed(contents: Contents, rows: list[dict[str, Any]]) -> Contents:
    """Do what rows ask for, as far as they make sense, without any of the code that is tested."""
    subscriptions: dict[Id, Subscription] = {each.id: each for each in contents.subscriptions}
    nodes = {each.id: each for each in contents.nodes}
    edges = {(each.source, each.target): each for each in contents.edges}
    for row in rows:
        op, identity = row.get("op"), row.get("id", "")
        if op in {None, "upsert"} and (row.get("node") is None or row["node"] in nodes):
            subscriptions[identity] = Subscription(
                identity, row["filter"], node=row.get("node"), score=float(row.get("score", 0))
            )
        elif op == "unsubscribe":
            subscriptions.pop(identity, None)
        elif op == "score" and identity in subscriptions:
            old = subscriptions[identity]
            subscriptions[identity] = Subscription(
                identity, old.filter, node=old.node, score=float(row["score"])
            )
        elif (op == "set_filter" and identity in nodes) or (op == "add_node" and identity not in nodes):
            nodes[identity] = Node(identity, row.get("filter"))
        elif op == "add_edge" and {row["source"], row["target"]} <= nodes.keys():
            ends = row["source"], row["target"]
            edges[ends] = Edge(*ends, row.get("filter"))
        elif op == "remove_edge":
            edges.pop((row["source"], row["target"]), None)
        elif op == "remove_node" and not any(each.node == identity for each in subscriptions.values()):
            nodes.pop(identity, None)
            edges = {ends: each for ends, each in edges.items() if identity not in ends}
    return contents._replace(
        subscriptions=list(subscriptions.values()), nodes=list(nodes.values()), edges=list(edges.values())
    )


_texts = st.sampled_from(_FILTERS)
_ids = st.sampled_from([*(f"free{n}" for n in range(5)), *(f"hung{n}" for n in range(5)), "new1", "new2"])
_ends = st.sampled_from([*_NODES, "side"])
_scores = st.integers(0, 6)
_rows = st.one_of(
    st.fixed_dictionaries(
        {"id": _ids, "filter": _texts}, optional={"node": _ends, "score": _scores, "op": st.just("upsert")}
    ),
    st.fixed_dictionaries({"op": st.just("unsubscribe"), "id": _ids}),
    st.fixed_dictionaries({"op": st.just("score"), "id": _ids, "score": _scores}),
    st.fixed_dictionaries({"op": st.just("set_filter"), "id": _ends}, optional={"filter": _texts}),
    st.fixed_dictionaries({"op": st.just("add_node"), "id": _ends}, optional={"filter": _texts}),
    st.fixed_dictionaries(
        {"op": st.just("add_edge"), "source": _ends, "target": _ends}, optional={"filter": _texts}
    ),
    st.fixed_dictionaries({"op": st.just("remove_edge"), "source": _ends, "target": _ends}),
    st.fixed_dictionaries({"op": st.just("remove_node"), "id": _ends}),
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(_rows, min_size=1, max_size=6), best=st.sampled_from([None, None, 1, 3]))
def test_trials_agree_with_one_evaluation_after_the_other(
    served: Served, rows: list[dict[str, Any]], best: int | None
) -> None:
    tenant = served.running.server.tenants["default"]
    run = Run(tenant, Question(tuple(rows), 30, None, best))
    run.work()
    assert run.result is not None, run.error
    before = tenant.contents()
    after = _changed(before, rows)
    got = run.result.planned.after
    if best is not None:
        assert {(each.id, each.filter, each.node, each.score) for each in got.subscriptions} == {
            (each.id, each.filter, each.node, each.score) for each in after.subscriptions
        }
    found: dict[str, list[Any]] = {}
    for block in tenant.store.log.read(1, 100):
        for cursor, event in enumerate(stored_events(block.texts), block.first):
            if cursor <= 10:
                continue
            asked = _matched if best is None else partial(_best, k=best)
            old, new = asked(before, event), asked(after, event)
            for identity in {*old, *new}:
                row = found.setdefault(identity, [0, 0, [], [], 0, 0])
                row[0] += identity in old
                row[1] += identity in new
                if identity not in old:
                    row[2].append(cursor)
                elif identity not in new:
                    row[3].append(cursor)
                elif best is not None:
                    row[4] += new.index(identity) < old.index(identity)
                    row[5] += new.index(identity) > old.index(identity)
    assert (run.result.events, run.result.first, run.result.last) == (30, 11, 40)
    effects = {each.id: each for each in run.result.effects}
    for identity, (was, would, gained, lost, higher, lower) in found.items():
        if identity not in effects:
            assert (gained, lost, higher, lower) == ([], [], 0, 0), identity
            continue
        each = effects[identity]
        assert (each.before, each.after, each.gained, each.lost) == (was, would, len(gained), len(lost))
        assert (each.sample_gained, each.sample_lost) == (gained[:SAMPLE], lost[:SAMPLE])
        assert (each.higher, each.lower) == (higher, lower)
    assert run.result.gained == sum(len(row[2]) for row in found.values())
    assert run.result.lost == sum(len(row[3]) for row in found.values())


def test_rows_that_make_no_sense(served: Served) -> None:
    contents = served.running.server.tenants["default"].contents()
    cases: dict[str, dict[str, Any]] = {
        "there is a subscription 'free0' already": {"op": "subscribe", "id": "free0", "filter": "a = 1"},
        "there is no subscription 'none'": {"op": "replace", "id": "none", "filter": "a = 1"},
        "there is no node 'none': add it first": {"id": "x", "filter": "a = 1", "node": "none"},
        "hangs at node 'mid'": {"op": "remove_node", "id": "mid"},
        "there is a node 'mid' already": {"op": "add_node", "id": "mid"},
        "there is no edge from 'end' to 'pub'": {"op": "remove_edge", "source": "end", "target": "pub"},
        "a node of the service has no `subscription`": {"op": "add_node", "id": "n", "subscription": "s"},
        "cannot be an id of the service": {"op": "unsubscribe", "id": "a/b"},
        "op is 'drop': use one of": {"op": "drop", "id": "a"},
        "the row does not fit": {"id": "x", "filter": "a = 1", "limit": {"events": 0}},
    }
    planned = plan(contents, list(cases.values()))
    assert len(planned.refused) == len(cases)
    for reason, (row, got) in zip(cases, planned.refused, strict=True):
        assert reason in got, row
    assert planned.after == contents._replace(
        subscriptions=list(contents.subscriptions), nodes=list(contents.nodes), edges=list(contents.edges)
    )


# The page


def _result(visitor: Visitor) -> Seen:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        seen = visitor.get("/console/what-if/progress")
        if "hx-trigger" not in seen.body:
            return visitor.get("/console/what-if")
        time.sleep(0.02)
    raise AssertionError("the trial does not end")


def test_from_a_draft_to_what_is_made_and_back(visitor: Visitor, served: Served) -> None:
    with served.client() as client:
        client.ask(
            "PUT",
            "/v1/subscriptions/whole",
            {
                "filter": "price < 2",
                "consumer": "app",
                "metadata": {"a": 1},
                "limit": {"events": 9, "period": 5},
            },
        )
        before = client.subscription("whole")
    seen = visitor.get("/console/what-if?subscription=whole")
    assert "price &lt; 2</textarea>" in seen.body
    assert "It is empty." in seen.text
    assert "the draft is empty" in visitor.post("/console/what-if/run", {"events": "10"}).text
    form = {"change": "upsert", "id": "whole", "filter": "price < 4", "dialect": "sql"}
    assert "1 change is in the draft" in visitor.post("/console/what-if/add", form).text
    wrong = visitor.post("/console/what-if/add", {**form, "filter": "price <"})
    assert (wrong.status, "missing after this" in wrong.text) == (422, True)
    rows = """{"op": "unsubscribe", "id": "free4"}
{"op": "add_node", "id": "side"}

{"op": "add_edge", "source": "pub", "target": "side"}
{"id": "fresh", "filter": "price < 100", "node": "side", "consumer": "other"}
{"op": "score", "id": "nobody", "score": 1}"""
    seen = visitor.post("/console/what-if/add", {"change": "rows", "rows": rows})
    assert (
        "These rows were refused, and the others are in the draft: there is no subscription 'nobody'"
        in seen.text
    )
    assert (
        "line 1 is no JSON object"
        in visitor.post("/console/what-if/add", {"change": "rows", "rows": "x"}).text
    )
    assert "run it first" in visitor.post("/console/what-if/apply").text
    visitor.post("/console/what-if/run", {"events": "1000"})
    seen = _result(visitor)
    assert "Over 40 events, from cursor 1 to 40" in seen.text
    assert "Apply the draft" in seen.text
    assert "noisy" in seen.text
    assert "/console/events/" in seen.body
    assert "too short to tell" in seen.text
    # Somebody else is faster with one of them.
    with served.client() as client:
        client.subscribe("free4", "price > 99", consumer="app")
    seen = visitor.post("/console/what-if/apply")
    assert "4 changes made, and 1 refused: delete subscription free4" in seen.text
    with served.client() as client:
        after = client.subscription("whole")
        assert (after["filter"], after["metadata"], after["limit"]) == (
            "price < 4",
            before["metadata"],
            before["limit"],
        )
        assert client.subscription("fresh")["consumer"] == "other"
        asked = {"id": "way", "source": "pub", "price": 50}
        assert "fresh" in client.ask("POST", "/v1/match", asked)["events"][0]["matches"]
    undo = seen.body.partition('name="what" value="')[2].partition('"')[0]
    assert "the state before 4 changes is back" in visitor.post("/console/undo", {"what": undo}).text
    with served.client() as client:
        assert client.subscription("whole")["filter"] == "price < 2"
        assert [each["id"] for each in client.ask("GET", "/v1/graph/nodes")["items"]] == ["end", "mid", "pub"]
        assert client.ask("GET", "/v1/subscriptions?search=fresh")["items"] == []
    assert "out of the draft" in visitor.post("/console/what-if/remove", {"row": "0"}).text
    assert "This is what" not in visitor.get("/console/what-if").text
    assert visitor.post("/console/what-if/remove", {"row": "77"}).status == 404
    assert "the draft is empty" in visitor.post("/console/what-if/remove", {"row": "all"}).text


def test_odd_texts_and_refusals(visitor: Visitor, served: Served) -> None:
    visitor.get("/console/what-if")
    for odd in ("<script>alert(1)<script>", '"><img src=x onerror=alert(1)>', "{{7*7}}"):
        form = {"change": "upsert", "id": odd, "filter": f"topic = '{odd}'", "dialect": "sql"}
        visitor.post("/console/what-if/add", form)
    visitor.post("/console/what-if/run", {"events": "5", "best": "2"})
    seen = _result(visitor)
    for odd in ("<script>alert(1)<script>", '"><img src=x onerror=alert(1)>', "{{7*7}}"):
        assert odd in seen.text
    assert "<script>alert" not in seen.body
    assert "<img src=x" not in seen.body
    for form, said in (
        ({"events": "0"}, "events is '0'"),
        ({"events": "5", "best": "x"}, "best is 'x'"),
        ({"events": "5", "since": "soon"}, "since is 'soon'"),
    ):
        assert said in visitor.post("/console/what-if/run", form).text
    assert visitor.post("/console/what-if/run", {"token": "0" * 64}).status == 403
    assert visitor.post("/console/what-if/run", {}, Origin="http://evil.example").status == 403
    # Another session has a draft of its own.
    assert "It is empty." in served.visitor().get("/console/what-if").text


def test_a_trial_is_cancelled(served: Served) -> None:
    run = Run(served.running.server.tenants["default"], Question(({"id": "x", "filter": "price = 1"},), 10))
    run.cancel()
    run.work()
    assert (run.ended is not None, run.result, run.error) == (True, None, "")


def test_very_many_are_not_ranked_beside_the_service(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks concern all subscriptions: beyond a limit the trial is refused, with what to use instead."""
    monkeypatch.setattr(trial, "WHOLE", 0)
    tenant = served.running.server.tenants["default"]
    few = Run(tenant, Question(({"id": "x", "filter": "price = 1"},), 10))
    few.work()
    assert few.result is not None
    many = Run(tenant, Question(({"id": "x", "filter": "price = 1"},), 10, None, 3))
    many.work()
    assert "use `headgate backtest --changes`" in many.error


def test_undo_overwrites_nothing_that_others_changed(served: Served) -> None:
    """A subscription that was changed after the draft was applied stays as it is."""
    visitor = served.visitor()
    with served.client() as client:
        client.subscribe("raced", "price < 1")
        visitor.get("/console/what-if")
        visitor.post("/console/what-if/add", {"change": "upsert", "id": "raced", "filter": "price < 2"})
        visitor.post("/console/what-if/run", {"events": "10"})
        _result(visitor)
        seen = visitor.post("/console/what-if/apply")
        assert "1 change made" in seen.text
        client.subscribe("raced", "price < 3")
        undo = seen.body.partition('name="what" value="')[2].partition('"')[0]
        assert "is not back" in visitor.post("/console/undo", {"what": undo}).text
        assert client.subscription("raced")["filter"] == "price < 3"
        client.unsubscribe("raced")


class _Long(Run):
    """A trial that takes until it is cancelled."""

    def work(self) -> None:
        while not self.cancelled:
            time.sleep(0.01)


def test_a_tenant_has_one_trial_at_a_time(served: Served) -> None:
    """Others need not wait for who begins one after the other."""
    tenant, question = served.running.server.tenants["default"], Question((), 1)

    async def begin() -> None:
        trials = Trials()
        trials.start(_Long(tenant, question))
        with pytest.raises(HeadgateError, match="a trial of this tenant runs already"):
            trials.start(_Long(tenant, question))
        await trials.close()

    asyncio.run(begin())
