"""Subscriptions that feed each other, of every content, get what the publisher would send them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from headgate import Dissemination, Engine, Event, Settings, Subscription
from headgate.contents.kind import FilterSettings
from headgate.engine.views import views_of
from headgate.errors import PlanError, SubscriptionError
from headgate.plan.graphs.rewritability import Search
from headgate.rdf.events.triples import write_lines
from headgate.xml.answers.answers import answer
from headgate.xml.events.reading import document_of
from headgate.xml.language.parse import parse_filter
from headgate.xml.language.printing import print_pattern
from headgate.xml.views.views import XmlViews
from tests.rdf.random_patterns import random_graph
from tests.seeds import seeds
from tests.xml.random_patterns import random_document
from tests.xml.random_views import view_set

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Made = tuple[list[Subscription], list[Event]]


def xml_case(rng: random.Random) -> Made:
    """Draw views over XML and documents."""
    subscriptions = [
        Subscription(f"v{number:02}", print_pattern(pattern), "xpath")
        for number, pattern in enumerate(view_set(rng, 24))
    ]
    return subscriptions, [Event(n, random_document(rng), content_type="xml") for n in range(6)]


def record_case(rng: random.Random) -> Made:
    """Draw conjunctions and records."""
    clauses = ["a = 1", "a IN (1, 2)", "b > 3", "b > 5", "c = 'x'", "c IS NOT NULL", "d LIKE 'n%'"]
    subscriptions = [
        Subscription(f"v{number:02}", " AND ".join(rng.sample(clauses, rng.randint(1, 4))))
        for number in range(24)
    ]
    events = [
        Event(n, {"a": rng.randint(1, 2), "b": rng.randint(2, 7), "c": rng.choice(["x", None]), "d": "news"})
        for n in range(8)
    ]
    return subscriptions, events


def rdf_case(rng: random.Random) -> Made:
    """Draw stars over few properties, and graphs."""
    subscriptions = []
    for number in range(24):
        edges = rng.sample([f"?x <http://example.org/p{p}> ?y{p}" for p in range(4)], rng.randint(1, 3))
        subscriptions.append(Subscription(f"v{number:02}", f"ASK {{ {' . '.join(edges)} }}", "sparql"))
    return subscriptions, [Event(n, write_lines(random_graph(rng)), content_type="nt") for n in range(8)]


CASES: dict[str, tuple[Callable[[random.Random], Made], dict[str, Any]]] = {
    "xml": (xml_case, {}),
    "rows": (record_case, {}),
    "keys": (record_case, {"carries": "key"}),
    "rdf": (rdf_case, {}),
}
TIGHT = Settings(search=Search(k=10), fan_out=3, source_fan_out=18.0, gap=0.0)


def check(
    network: Dissemination, subscriptions: dict[Any, Subscription], events: list[Event], **more: Any
) -> int:
    """Compare what all get with what the publisher would send; returns how many results there were."""
    kept = list(subscriptions.values())
    carries = more.pop("carries", None)
    direct = views_of(kept, carries=carries, wanted=FilterSettings(**more))
    found = 0
    for event in events:
        delivered = network.deliver(event)
        assert set(delivered) == set(subscriptions) - set(network.unfed)
        for number, each in enumerate(kept):
            if each.id in delivered:
                result = direct.result(number, event)
                found += bool(direct.size(result)[0])
                if isinstance(direct, XmlViews):
                    result = answer(parse_filter(each.filter), document_of(event))
                assert delivered[each.id] == result
    return found


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", seeds(3))
def test_everybody_gets_what_the_publisher_would_send(case: str, seed: int) -> None:
    draw, more = CASES[case]
    rng = random.Random(seed)
    subscriptions, events = draw(rng)
    network = Dissemination.build(subscriptions[:20], events, TIGHT, **more)
    there = {each.id: each for each in subscriptions[:20]}
    assert check(network, there, events, **more) > 0
    fed = [each for each in there if network.feeding(each).inputs]
    assert fed
    for step in range(8):
        if step % 4 == 0 and len(subscriptions) > len(there):
            new = next(each for each in subscriptions[20:] if each.id not in there)
            network.subscribe(new)
            there[new.id] = new
        elif step % 4 == 1:
            busiest = max(
                sorted(there),
                key=lambda each: sum(
                    each in network.feeding(v).inputs for v in there if v not in network.unfed
                ),
            )
            change = network.fail(busiest)
            del there[busiest]
            assert busiest not in (*change.moved, *change.unfed)
        elif step % 4 == 2:
            gone = rng.choice(sorted(there))
            network.unsubscribe(gone)
            del there[gone]
        elif network.due:
            network.replan()
            assert not network.due
        check(network, there, events, **more)
    assert len(network) == len(there)


def test_how_one_is_fed() -> None:
    subscriptions = [
        Subscription("whole", "//news{val}[author{val}]//title{val}", "xpath"),
        Subscription("titles", "//news[author]//title{val}", "xpath"),
    ]
    event = Event("e", "<news><author>Bo</author><title>Up</title></news>", content_type="xml")
    network = Dissemination.build(subscriptions, [event], Settings(source_fan_out=1.0))
    feeding = network.feeding("titles")
    assert (feeding.level, feeding.inputs) == (2, ("whole",))
    assert any("scan view 'whole'" in step for step in feeding.steps)
    assert network.feeding("whole").steps == ("by the source",)
    change = network.unsubscribe("whole")
    assert change.moved == ("titles",)
    assert network.feeding("titles").inputs == ()


def test_words_of_a_filter_are_no_views() -> None:
    subscriptions = [Subscription("t", "t = 'view 99'"), Subscription("u", "t = 'view 99' AND a = 1")]
    network = Dissemination.build(subscriptions, [Event("e", {"t": "view 99", "a": 1})])
    (first, *_) = network.feeding("u").steps
    assert first == "take the row of view 't': t = 'view 99'"


def test_equal_subscriptions_feed_each_other_in_a_chain() -> None:
    subscriptions = [Subscription(f"s{number:03}", "a = 1") for number in range(60)]
    settings = Settings(fan_out=1, source_fan_out=1.0)
    network = Dissemination.build(subscriptions, [Event("e", {"a": 1})], settings)
    assert {network.feeding(each.id).level for each in subscriptions} == set(range(1, 61))


def test_what_is_refused() -> None:
    one = Subscription("s", "a = 1")
    event = Event("e", {"a": 1})
    network = Dissemination.build([one], [event], Settings(source_fan_out=1.0))
    with pytest.raises(PlanError, match="id 's' is subscribed already"):
        network.subscribe(one)
    with pytest.raises(PlanError, match="id 'w' is given twice"):
        network.subscribe(Subscription("w", "b = 1"), Subscription("w", "b = 2"))
    with pytest.raises(PlanError, match="there is no subscription 't' here"):
        network.unsubscribe("t")
    with pytest.raises(PlanError, match=r"^subscription 'u': there is no room for a view"):
        network.subscribe(Subscription("u", "b = 2"))
    # All or none: the first of two could be fed.
    fed = Subscription("v", "a = 1 AND b = 2")
    with pytest.raises(PlanError, match=r"^subscription 'u': there is no room for a view"):
        network.subscribe(fed, Subscription("u", "b = 2"))
    assert len(network) == 1
    assert set(network.deliver(event)) == {"s"}
    network.subscribe(fed)
    assert network.feeding("v").inputs == ("s",)
    with pytest.raises(PlanError, match="the sample has no event"):
        Dissemination.build([one], [])
    tree = Subscription("x", "//a{val}", "xpath")
    for name, value in {"nulls": "told", "names": "exact", "dots": "name"}.items():
        given: Any = {name: value}
        with pytest.raises(PlanError) as refused:
            Dissemination.build([tree], [event], **given)
        wanted = f"{name}={value!r} is for views over records, and these are over XML: leave it out"
        assert str(refused.value) == wanted
    with pytest.raises(SubscriptionError, match="names is 'loud': give 'any_case' or 'exact'"):
        Dissemination.build([one], [event], names="loud")


def test_what_names_mean(tmp_path: Path) -> None:
    """The settings of names are those of an engine, also for what is subscribed later."""
    given = {"A": "A > 5", "a": "a > 5", "both": "A > 5 AND a > 5", "there": "present(b) AND A > 5"}
    given |= {"gone": "NOT present(b)", "dot": "`a.b` = 1 AND A > 5"}
    subscriptions = {name: Subscription(name, text) for name, text in given.items()}
    events = [
        Event(number, data)
        for number, data in enumerate(
            [{"A": 9, "a": 1}, {"A": 9, "a": 9, "b": None}, {"a": 9}, {"a.b": 1, "A": 7}, {"a": {"b": 1}}]
        )
    ]
    meaning: Any = {"nulls": "told", "names": "exact", "dots": "name"}
    engine = Engine.build(subscriptions.values(), **meaning)
    first = {name: subscriptions[name] for name in ("A", "both", "dot")}
    network = Dissemination.build(first.values(), events, Settings(source_fan_out=2.0), **meaning)
    assert network.feeding("both").inputs == ("A",)
    assert network.feeding("both").steps[-1] == "select a > 5"
    network = Dissemination.build(first.values(), events, **meaning)
    for name in ("a", "there", "gone"):
        network.subscribe(subscriptions[name])
    assert check(network, subscriptions, events, **meaning) > 0
    Dissemination.build(subscriptions.values(), events, **meaning).saved.save(tmp_path / "network")
    for each in (network, Dissemination.open(tmp_path / "network")):
        for event in events:
            delivered = each.deliver(event)
            assert sorted(name for name in delivered if delivered[name] is not None) == engine.match(event)
