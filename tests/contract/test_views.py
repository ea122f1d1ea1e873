"""What the plan room asks of views, whatever they look at."""

from __future__ import annotations

import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import pytest

from headgate import Engine, Node, Options
from headgate.contents.kind import FilterSettings
from headgate.core.event import N_TRIPLES, XML, Event
from headgate.core.subscription import SPARQL, SQL, XPATH, Subscription
from headgate.engine.grown_views import GrownViews, names_of
from headgate.engine.views import views_at, views_of
from headgate.errors import PlanError, SubscriptionError
from headgate.graph.index import GraphIndex
from headgate.rdf.index.index import RdfIndex
from headgate.rdf.language.printing import print_pattern as print_rdf
from headgate.rdf.taxonomy.taxonomy import Taxonomy
from headgate.records.index.index import RecordIndex
from headgate.records.views.views import KEY
from headgate.xml.index.index import XmlIndex
from headgate.xml.language.printing import print_pattern as print_xml
from tests.rdf import random_views as rdf_views
from tests.rdf.random_patterns import random_graph
from tests.records.random_filters import random_event, random_filter
from tests.seeds import seeds
from tests.xml import random_views as xml_views

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from headgate.contents.views import Views

pytestmark = pytest.mark.jit_off

SIZE = 18


@dataclass(frozen=True)
class Kind:
    """A room: its dialect, what its views carry, and how to draw texts of views, and events for them."""

    name: str
    dialect: str
    draw: Callable[[random.Random, int], tuple[list[str], list[Event]]]
    index: type[RecordIndex | RdfIndex | XmlIndex]
    carries: str | None = None

    def views(self, texts: list[str]) -> Views:
        """Make views of texts."""
        return views_of(
            [Subscription(number, text, self.dialect) for number, text in enumerate(texts)],
            carries=self.carries,
        )


def _records(rng: random.Random, size: int) -> tuple[list[str], list[Event]]:
    clauses = [random_filter(rng, depth=rng.choice((0, 1))) for _ in range(5)]
    clauses += [f"i {rng.choice('<>')} {rng.randrange(9)}" for _ in range(4)]
    texts = [
        " AND ".join(f"({each})" for each in rng.sample(clauses, rng.choice((1, 2, 3)))) for _ in range(size)
    ]
    return texts, [Event(number, random_event(rng, number)) for number in range(12)]


def _rdf(rng: random.Random, size: int) -> tuple[list[str], list[Event]]:
    graph = random_graph(rng)
    drawn = rdf_views.view_set(rng, graph, 2 * size)
    texts = [print_rdf(each) for each in drawn if each.edges and len(each.variables) < 5]
    return (texts * 2)[:size], [Event(1, graph, content_type=N_TRIPLES)]


def _xml(rng: random.Random, size: int) -> tuple[list[str], list[Event]]:
    patterns = xml_views.view_set(rng, size)
    documents = [xml_views.planted_document(rng, rng.choice(patterns)) for _ in range(4)]
    events = [Event(number, text, content_type=XML) for number, text in enumerate(documents)]
    return [print_xml(each) for each in patterns], events


KINDS = [
    Kind("records", SQL, _records, RecordIndex),
    Kind("keys", SQL, _records, RecordIndex, KEY),
    Kind("rdf", SPARQL, _rdf, RdfIndex),
    Kind("xml", XPATH, _xml, XmlIndex),
]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def _matrix(views: Views) -> tuple[NDArray[np.bool_], NDArray[np.uint64]]:
    size = len(views)
    sources, targets = np.divmod(np.arange(size * size, dtype=np.int32), np.int32(size))
    embeds, masks = views.coverage(sources, targets)
    return embeds.reshape(size, size), masks.reshape(size, size)


@every_kind
@pytest.mark.parametrize("seed", seeds(5))
def test_embedding_is_a_preorder_that_the_filters_keep(kind: Kind, seed: int) -> None:
    """Every view embeds in itself and covers all of itself; embedding is transitive; nothing is left out."""
    views = kind.views(kind.draw(random.Random(seed), SIZE)[0])
    embeds, masks = _matrix(views)
    taking_part = views.needed != 0
    assert np.array_equal(embeds.diagonal(), taking_part)
    assert np.array_equal(masks.diagonal(), views.needed)
    assert np.all(embeds[embeds @ embeds])
    assert not np.any(masks & ~views.needed[None, :])
    assert not np.any(masks[~embeds])
    labels = [
        views.labels[views.label_offsets[view] : views.label_offsets[view + 1]].tolist()
        for view in range(len(views))
    ]
    for source, target in np.argwhere(embeds).tolist():
        assert set(labels[source]) <= set(labels[target])
        for word in (0, 1):
            assert not int(views.demands[2 * source + word]) & ~int(views.offers[2 * target + word])
    assert all(each == sorted(set(each)) for each in labels)


@every_kind
@pytest.mark.parametrize("seed", seeds(5))
def test_whatever_embeds_is_near(kind: Kind, seed: int) -> None:
    """Views that are laid out apart name the same, and what embeds in one is found by its names."""
    texts = kind.draw(random.Random(seed), SIZE)[0]
    views = kind.views(texts)
    names = [next(names_of(kind.views([text]))) for text in texts]
    assert list(names_of(views)) == names
    half = len(texts) // 2
    grown = GrownViews(kind.views(texts[:half]), [], lambda _: views)
    for view in range(half, len(texts)):
        grown.add(view, names[view])
    embeds, _ = _matrix(views)
    alive = np.random.default_rng(seed).random(len(texts)) < 0.8
    for target in range(len(texts)):
        near = grown.near([names[target]], alive)
        assert near == sorted(set(near))
        assert set(np.flatnonzero(embeds[:, target] & alive).tolist()) <= set(near)
        assert all(alive[each] for each in near)


@every_kind
@pytest.mark.parametrize("seed", seeds(5))
def test_what_is_rewritten_is_the_result(kind: Kind, seed: int) -> None:
    """Whatever inputs cover a view, they compute it; with one that is missing they are refused."""
    rng = random.Random(seed)
    texts, events = kind.draw(rng, SIZE)
    views = kind.views(texts)
    embeds, masks = _matrix(views)
    made = 0
    for view in range(len(views)):
        useful = [each for each in range(len(views)) if each != view and embeds[each, view]]
        chosen = [inputs for size in (1, 2) for inputs in combinations(useful, size)]
        for inputs in rng.sample(chosen, min(len(chosen), 12)):
            if np.bitwise_or.reduce(masks[list(inputs), view]) != views.needed[view]:
                with pytest.raises(PlanError, match=f"view {view} .*nothing covers"):
                    views.plan_of(view, inputs)
                continue
            made += 1
            assert views.plan_of(view, inputs)
            for event in events:
                direct = views.result(view, event)
                given = [views.result(each, event) for each in inputs]
                assert views.rewritten(view, inputs, given) == direct
                rows, size = views.size(direct)
                assert rows >= 0
                assert size >= 0
    assert made > 3


@every_kind
def test_what_does_not_embed_is_refused(kind: Kind) -> None:
    """An input that may lack something is refused by its number, and so is none at all."""
    views = kind.views(kind.draw(random.Random(3), SIZE)[0])
    embeds, _ = _matrix(views)
    source, target = np.argwhere(~embeds & (views.needed != 0))[0].tolist()
    with pytest.raises(PlanError, match=f"view {target} cannot be computed from view {source},"):
        views.plan_of(target, [source])
    with pytest.raises(PlanError, match="nothing covers"):
        views.plan_of(target, [])


@every_kind
def test_equal_views_give_equal_results(kind: Kind) -> None:
    """The first that is written alike stands for all of them."""
    texts, events = kind.draw(random.Random(4), SIZE)
    views = kind.views([*texts, *texts])
    equals = views.equals.tolist()
    assert equals[SIZE:] == equals[:SIZE]
    assert all(first <= view and equals[first] == first for view, first in enumerate(equals))
    embeds, masks = _matrix(views)
    for view, first in enumerate(equals):
        if views.needed[view]:
            assert embeds[first, view]
            assert masks[first, view] == views.needed[view]
        for event in events:
            assert views.result(first, event) == views.result(view, event)


@every_kind
def test_views_can_be_sent_to_workers(kind: Kind) -> None:
    """A pickled copy says the same, and several threads may ask at once."""
    texts, events = kind.draw(random.Random(5), SIZE)
    views = kind.views(texts)
    copy = pickle.loads(pickle.dumps(views))
    embeds, masks = _matrix(views)
    with ThreadPoolExecutor(3) as pool:
        for found in pool.map(_matrix, [views, copy] * 3):
            assert np.array_equal(found[0], embeds)
            assert np.array_equal(found[1], masks)
    assert [copy.result(view, events[0]) for view in range(SIZE)] == [
        views.result(view, events[0]) for view in range(SIZE)
    ]


@every_kind
def test_views_of_a_snapshot(kind: Kind, tmp_path: Path) -> None:
    """They are those of its subscriptions, in the order of the ids."""
    texts, events = kind.draw(random.Random(6), SIZE)
    subscriptions = [
        Subscription(f"s{SIZE - number:02}", text, kind.dialect) for number, text in enumerate(texts)
    ]
    kind.index.build(subscriptions).save(tmp_path / "snapshot")
    # Ranked ones lie in the order of their scores.
    ranked = [replace(each, score=float(hash(each.filter) % 5)) for each in subscriptions]
    Engine.build(ranked, ranked=True).save(tmp_path / "ranked")
    expected = kind.views(texts[::-1])
    for place in ("snapshot", "ranked"):
        ids, views = views_at(tmp_path / place, carries=kind.carries)
        assert list(ids[:]) == sorted(each.id for each in subscriptions)
        assert np.array_equal(views.needed, expected.needed)
        assert np.array_equal(_matrix(views)[1], _matrix(expected)[1])
        assert [views.result(view, events[0]) for view in range(SIZE)] == [
            expected.result(view, events[0]) for view in range(SIZE)
        ]


def test_snapshots_that_are_no_views(tmp_path: Path) -> None:
    """A graph is more than its subscriptions; options that depart from SPARQL are not planned for."""
    graph = GraphIndex.build([Node("a")], [], [Subscription("s", "a = 1", node="a")], room=RecordIndex)
    graph.save(tmp_path / "graph")
    with pytest.raises(PlanError, match="give a snapshot of the subscriptions"):
        views_at(tmp_path / "graph")
    text = "ASK { ?s ?p ?o }"
    RdfIndex.build([Subscription("s", text, SPARQL)], options=Options(coerce=True)).save(tmp_path / "rdf")
    with pytest.raises(PlanError, match="depart from SPARQL"):
        views_at(tmp_path / "rdf")
    RdfIndex.build([Subscription("s", text, SPARQL)]).save(tmp_path / "plain")
    with pytest.raises(PlanError, match="for views over records"):
        views_at(tmp_path / "plain", carries=KEY)


@every_kind
def test_there_may_be_no_views(kind: Kind) -> None:
    """Nothing is asked, nothing is answered."""
    views = kind.views([])
    assert len(views) == 0
    assert views.label_offsets.tolist() == [0]
    assert _matrix(views)[0].shape == (0, 0)


def test_views_of_one_room_only() -> None:
    """Rooms are not mixed, and what belongs to one room is refused in another."""
    one, other = Subscription("a", "//a", XPATH), Subscription("b", "a = 1")
    with pytest.raises(SubscriptionError, match="the views look at"):
        views_of([one, other])
    with pytest.raises(PlanError, match="for views over records"):
        views_of([one], carries=KEY)
    meant = FilterSettings(taxonomy=Taxonomy())
    with pytest.raises(PlanError, match="for views over RDF"):
        views_of([other], wanted=meant)
    assert len(views_of([Subscription("c", "ASK { ?s ?p ?o }", SPARQL)], wanted=meant)) == 1
