"""Views over XML: embedding, what is covered, and what leaves pairs out quickly."""

from __future__ import annotations

import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pytest

from headgate.core.event import Event
from headgate.xml.answers.answers import answer
from headgate.xml.events.reading import document_of
from headgate.xml.language.model import CHILD, CONT, DESCENDANT, ROOT, VAL, Node, Pattern
from headgate.xml.language.model import Test as Condition
from headgate.xml.language.values import implies
from headgate.xml.views.embedding import fits, implications, needed, provides
from headgate.xml.views.views import XmlViews, canonical
from tests.seeds import seeds
from tests.xml.random_patterns import random_document, random_pattern
from tests.xml.random_views import view_set, wider

if TYPE_CHECKING:
    from collections.abc import Iterator


def _pairs(count: int) -> tuple[np.ndarray, np.ndarray]:
    sources, targets = np.divmod(np.arange(count * count, dtype=np.int32), np.int32(count))
    return sources, targets


def _subset(views: XmlViews, one: int, other: int) -> bool:
    """Tell whether neither labels nor bits leave a pair out."""
    labels = [
        set(views.labels[views.label_offsets[v] : views.label_offsets[v + 1]].tolist()) for v in (one, other)
    ]
    bits = all(
        int(views.demands[2 * one + word]) & ~int(views.offers[2 * other + word]) == 0 for word in (0, 1)
    )
    return labels[0] <= labels[1] and bits


@pytest.mark.parametrize("seed", seeds(60))
def test_coverage_is_what_the_embeddings_cover_one_by_one(seed: int) -> None:
    """The loops agree with trying everything, and the filters lose nothing."""
    rng = random.Random(seed)
    views = XmlViews.build(view_set(rng, 24))
    sources, targets = _pairs(len(views))
    embeds, masks = views.coverage(sources, targets)
    for source, target, embed, mask in zip(
        sources.tolist(), targets.tolist(), embeds.tolist(), masks.tolist(), strict=True
    ):
        expected = covered(views.patterns[source], views.patterns[target])
        assert (mask if embed else None) == expected, (views.patterns[source], views.patterns[target])
        if embed:
            assert _subset(views, source, target)
        if source == target:
            assert embed
            assert mask == needed(views.patterns[target])


def test_the_random_views_are_worth_comparing() -> None:
    """Pairs embed often enough, and not only in themselves or as a whole."""
    rng = random.Random(1)
    count = proper = partly = 0
    for _ in range(20):
        views = XmlViews.build(view_set(rng, 24))
        embeds, masks = views.coverage(*_pairs(len(views)))
        sources, targets = _pairs(len(views))
        for source, target, mask in zip(
            sources[embeds].tolist(), targets[embeds].tolist(), masks[embeds].tolist(), strict=True
        ):
            count += 1
            proper += views.equals[source] != views.equals[target]
            partly += 0 < mask < int(views.needed[target])
    assert count > 1200
    assert proper > 600
    assert partly > 300


@pytest.mark.parametrize("seed", seeds(30))
def test_embedding_is_transitive(seed: int) -> None:
    """What embeds in what embeds in a view embeds in it."""
    rng = random.Random(seed)
    views = XmlViews.build(view_set(rng, 30))
    embeds = views.coverage(*_pairs(len(views)))[0].reshape(len(views), len(views))
    assert np.all(embeds[(embeds @ embeds)])


@pytest.mark.parametrize("seed", seeds(30))
def test_a_view_has_one_form_however_it_is_written(seed: int) -> None:
    """Branches in another order, and written twice, are the same view; both embed in each other."""
    rng = random.Random(seed)
    pattern = random_pattern(rng)
    views = XmlViews.build([pattern, _shuffled(rng, pattern), wider(rng, pattern)])
    assert views.equals[1] == 0
    assert views.patterns[0] == views.patterns[1]
    for view, written in enumerate((pattern,)):
        for place, node in enumerate(written.nodes):
            form = views.patterns[view].nodes[views.places[view][place]]
            assert (form.label, form.axis) == (node.label, node.axis)
            assert (set(form.tests), set(form.returns)) == (set(node.tests), set(node.returns))
    embeds, masks = views.coverage(np.array([0, 1], np.int32), np.array([1, 0], np.int32))
    assert embeds.all()
    assert masks[0] == views.needed[1]


def _shuffled(rng: random.Random, pattern: Pattern) -> Pattern:
    """Write the branches in another order, now and then one of them twice."""
    nodes: list[Node] = []

    def write(place: int, parent: int) -> None:
        node = pattern.nodes[place]
        here = len(nodes)
        tests = list(node.tests)
        rng.shuffle(tests)
        nodes.append(Node(node.label, node.axis, parent, tuple(tests), node.returns[::-1]))
        children = list(pattern.children[place])
        rng.shuffle(children)
        for child in children + children[: rng.randrange(2)]:
            write(child, here)

    roots = list(pattern.roots)
    rng.shuffle(roots)
    for root in roots:
        write(root, -1)
    return Pattern(tuple(nodes))


def test_what_differs_is_not_equal() -> None:
    """Axis, tests, returns and labels tell views apart; so does a number from a text."""
    base = Node("a", DESCENDANT, -1, (Condition("=", "1"),), (VAL,))
    others = [
        base,
        Node("a", CHILD, -1, (Condition("=", "1"),), (VAL,)),
        Node("a", DESCENDANT, -1, (Condition("=", 1.0),), (VAL,)),
        Node("a", DESCENDANT, -1, (), (VAL,)),
        Node("a", DESCENDANT, -1, (Condition("=", "1"),), (CONT,)),
        Node("*", DESCENDANT, -1, (Condition("=", "1"),), (VAL,)),
    ]
    views = XmlViews.build([Pattern((each,)) for each in others])
    assert views.equals.tolist() == list(range(len(others)))


def test_what_a_branch_implies_stays() -> None:
    """//a[b][b/c] keeps both branches: the ids of every b that is below a are part of the result."""
    nodes = (Node("a", DESCENDANT), Node("b", CHILD, 0), Node("b", CHILD, 0), Node("c", CHILD, 2))
    assert len(canonical(Pattern(nodes)).pattern.nodes) == 4


def test_a_view_of_more_than_16_nodes_takes_no_part() -> None:
    """It needs nothing, embeds nowhere, and nothing embeds in it; 16 nodes are not too many."""
    chain = [Node("a", DESCENDANT)] + [Node("a", CHILD, place) for place in range(16)]
    views = XmlViews.build([Pattern(tuple(chain)), Pattern(tuple(chain[:16])), Pattern(tuple(chain[:1]))])
    assert views.needed.tolist() == [0, 0x1111111111111111, 1]
    embeds, masks = views.coverage(*_pairs(3))
    assert embeds.reshape(3, 3).tolist() == [[False, False, False], [False, True, False], [False, True, True]]
    assert masks[3 * 2 + 1] == 0x1111111111111111


def test_no_views_at_all() -> None:
    """There can be none."""
    views = XmlViews.build([])
    assert len(views) == 0
    assert views.coverage(np.zeros(0, np.int32), np.zeros(0, np.int32))[0].tolist() == []


def test_views_can_be_pickled_and_asked_from_threads() -> None:
    """A copy in a worker, and several threads, say the same."""
    views = XmlViews.build(view_set(random.Random(5), 30))
    copy = pickle.loads(pickle.dumps(views))
    expected = views.coverage(*_pairs(30))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda each: each.coverage(*_pairs(30)), [views, copy] * 4))
    for embeds, masks in found:
        assert np.array_equal(embeds, expected[0])
        assert np.array_equal(masks, expected[1])
    assert np.array_equal(copy.demands, views.demands)
    assert copy.patterns == views.patterns


@pytest.mark.parametrize("seed", seeds(20))
def test_implications_are_found_wherever_labels_can_meet(seed: int) -> None:
    """Pairs are left out only of labels that have nothing in common, or if they imply nothing."""
    rng = random.Random(seed)
    nodes = [node for _ in range(30) for node in random_pattern(rng).nodes]
    sets = list(dict.fromkeys(((), *(node.tests for node in nodes))))
    used = {
        label: {sets.index(node.tests) for node in nodes if node.label == label}
        for label in {n.label for n in nodes}
    }
    found = implications(sets, used)
    for one in used["a"]:
        row = found.implied[found.offsets[one] : found.offsets[one + 1]].tolist()
        assert row == sorted(set(row) - {one})
        for other in used["a"] | used.get("*", set()):
            expected = other != one and all(implies(sets[one], test) for test in sets[other])
            assert (other in row) == expected


@pytest.mark.parametrize("seed", seeds(10))
def test_results_go_back_to_how_views_were_written(seed: int) -> None:
    """Views are computed in canonical form; those who wrote them get what they wrote."""
    rng = random.Random(seed)
    patterns = view_set(rng, 24)
    views = XmlViews.build(patterns)
    event = Event("e", random_document(rng), content_type="xml")
    for view, pattern in enumerate(patterns):
        assert views.written(view, views.result(view, event)) == answer(pattern, document_of(event))


def embeddings(source: Pattern, target: Pattern, images: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """List all embeddings that begin with some images, tried out slowly: for each node one of the target."""
    if len(images) == len(source.nodes):
        yield images
        return
    node = source.nodes[len(images)]
    above = ROOT if node.parent == ROOT else images[node.parent]
    for image, other in enumerate(target.nodes):
        ways = [other.parent]
        while ways[-1] != ROOT:
            ways.append(target.nodes[ways[-1]].parent)
        child = other.axis == CHILD and other.parent == above
        if fits(node, other) and (child if node.axis == CHILD else above in ways):
            yield from embeddings(source, target, (*images, image))


def covered(source: Pattern, target: Pattern) -> int | None:
    """List the items that a source covers through all of its embeddings; None if it has none."""
    found: int | None = None
    for images in embeddings(source, target):
        found = found or 0
        for place, image in enumerate(images):
            found |= provides(source.nodes[place], target.nodes[image]) << 4 * image
    return found
