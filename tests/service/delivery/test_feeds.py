"""Feeds and the log against the plain model: who gets what, in which order, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headgate.service.delivery import hub as feeds
from headgate.service.delivery.hub import Hub, read_log
from headgate.service.delivery.journal import count_behind, count_blocks
from headgate.service.storage.log import NONE, Block
from headgate.service.storage.store import Store
from headgate.service.tenant.names import Names
from tests.seeds import examples
from tests.service.delivery.reference import Model

if TYPE_CHECKING:
    from headgate.service.delivery.hub import Feed
    from headgate.service.tenant.tenant import Tenant

CONSUMERS = ["a", "b", "c"]
SUBSCRIPTIONS = [f"s{each}" for each in range(6)]


@dataclass
class Source:
    """The log and the names of a tenant, without its index."""

    store: Store
    names: Names
    position: int = 0


_events = st.lists(st.sets(st.sampled_from(SUBSCRIPTIONS), max_size=4), min_size=1, max_size=5)
_consumer = st.sampled_from(CONSUMERS)
_steps = st.one_of(
    st.tuples(st.just("publish"), _events),
    st.tuples(st.just("publish"), _events),
    st.tuples(st.just("take"), st.integers(0, 5)),
    st.tuples(st.just("take"), st.integers(0, 5)),
    st.tuples(st.just("open"), _consumer, st.integers(0, 12)),
    st.tuples(st.just("rewind"), st.integers(0, 5), st.integers(0, 12)),
    st.tuples(st.just("close"), st.integers(0, 5)),
    st.tuples(st.just("own"), st.sampled_from(SUBSCRIPTIONS), st.sampled_from([*CONSUMERS, None])),
    st.tuples(st.just("trim"), st.integers(1, 12)),
    st.tuples(st.just("fail"), st.integers(1, 3)),
)


class World:
    """A hub over a real log, and the model beside it."""

    def __init__(self, place: Path, recent: int) -> None:
        self.model = Model()
        self.untrimmed = Model()
        """What would be there if nothing was ever forgotten: memory may still have it."""
        names = Names()
        names.consumers.update({each: number for number, each in enumerate(CONSUMERS, 1)})
        self.source = Source(Store(place), names)
        self.numbers = 0
        self.hub = Hub(cast("Tenant", self.source), recent)
        self.feeds: list[tuple[str, Feed]] = []
        for row, each in enumerate(SUBSCRIPTIONS):
            self.own(each, CONSUMERS[row % 3])

    def own(self, subscription: str, consumer: str | None) -> None:
        self.settle()
        self.source.names.remove(subscription)
        # What a number matched is for nobody when it is gone, also after the subscription came again.
        for model in (self.model, self.untrimmed):
            for _, _, matched in model.events:
                matched[:] = [each for each in matched if each != subscription]
            model.owners.pop(subscription, None)
        if consumer is not None:
            self.numbers += 1
            self.source.names.add(self.numbers, subscription, consumer)
            self.model.owners[subscription] = self.untrimmed.owners[subscription] = consumer

    def settle(self) -> None:
        """Have feeds hold nothing of which the names change now."""
        for _, feed in self.feeds:
            feed.rewind(feed.position)

    def publish(self, matched: list[set[str]]) -> None:
        names, source = self.source.names, self.source
        first = source.position + 1
        known = [sorted(each & self.model.owners.keys()) for each in matched]
        texts = [b'{"n":%d}' % (first + row) for row in range(len(matched))]
        numbers = [sorted(names.numbers[each] for each in some) for some in known]
        ends = np.cumsum([len(each) for each in numbers]).astype(np.uint32)
        flat = np.array([each for some in numbers for each in some], np.uint32)
        ids = np.array([zlib.crc32(each) for each in texts], np.uint32)
        block = Block(first, first * 10, texts, ends, flat, NONE, NONE, ids)
        source.store.log.append([block], [])
        source.position = block.last
        self.hub.committed(block)
        by_number = {names.numbers[each]: each for each in self.model.owners}
        for row, some in enumerate(numbers):
            for model in (self.model, self.untrimmed):
                model.events.append((first + row, texts[row], [by_number[each] for each in some]))

    async def take(self, consumer: str, feed: Feed) -> None:
        """Compare the next part of a feed with the model; there is one if and only if there should be."""
        expected = self.model.deliveries(consumer, feed.position)
        in_memory = self.untrimmed.deliveries(consumer, feed.position)
        try:
            async with asyncio.timeout(0.01 if not expected else 5):
                found = await feed.next(3)
                while not found:
                    # Something is gone: it is said, and only then.
                    passed = feed.take_passed()
                    assert passed is not None
                    assert passed[0] + 1 < passed[1] == self.source.store.log.bounds().first
                    found = await feed.next(3)
        except TimeoutError:
            assert not expected
            return
        got = [(each.position, each.text, each.subscriptions) for each in found]
        assert got in (expected[: len(got)], in_memory[: len(got)])
        assert got


@examples(960)
@given(st.lists(_steps, max_size=30), st.sampled_from([0, 150, 1 << 20]))
def test_feeds_agree_with_the_model(steps: list[Any], recent: int) -> None:
    queue, feeds.QUEUE = feeds.QUEUE, 4
    try:
        asyncio.run(_run(steps, recent))
    finally:
        feeds.QUEUE = queue


async def _run(steps: list[Any], recent: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        world = World(Path(place), recent)
        source, model = world.source, world.model
        for step, *more in steps:
            if step == "publish":
                world.publish(*more)
            elif step == "open":
                after = min(more[1], source.position)
                world.feeds.append((more[0], world.hub.feed(source.names.consumers[more[0]], after)))
            elif step == "own":
                world.own(*more)
            elif step == "fail":
                # Positions of an append that failed are missing.
                world.settle()
                source.position += more[0]
            elif step == "trim":
                before = min(more[0], source.position + 1)
                # A block goes as a whole, or stays.
                kept = [each for each in source.store.log.read(1, 1 << 30) if each.last >= before]
                first = kept[0].first if kept else before
                source.store.log.append([], [source.store.log.trimming(before)])
                model.trim(min(first, before) if kept else before)
            elif world.feeds:
                consumer, feed = world.feeds[more[0] % len(world.feeds)]
                if step == "take":
                    await world.take(consumer, feed)
                elif step == "rewind":
                    feed.rewind(min(more[1], source.position))
                else:
                    feed.close("done")
                    world.feeds.remove((consumer, feed))
        for consumer, feed in world.feeds:
            while model.deliveries(consumer, feed.position):
                await world.take(consumer, feed)
        _check_counts(world)
        await world.hub.settle()
        source.store.close()


def _check_counts(world: World) -> None:
    """Compare what is read and counted in the log with the model."""
    source, model = world.source, world.model
    log, names = source.store.log, source.names
    first = log.bounds().first
    starts = {names.consumers[each]: max(first - 1, row) for row, each in enumerate(CONSUMERS)}
    behind = count_behind(log, names, starts, source.position)
    for each in CONSUMERS:
        number = names.consumers[each]
        expected = model.deliveries(each, starts[number])
        assert behind[number].events == len(expected)
        assert behind[number].upto == source.position
        part = read_log(log, names, number, starts[number], source.position, 1 << 30)
        assert [(one.position, one.text, one.subscriptions) for one in part.deliveries] == expected
    before = first + 3
    lost, _ = count_blocks(log.read(first, 3), names, starts, before)
    model.cursors = {each: starts[names.consumers[each]] for each in CONSUMERS}
    assert {CONSUMERS[number - 1]: each.events for number, each in lost.items()} == model.trim(before)


def test_a_slow_feed_costs_bounded_memory_and_misses_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        world = World(tmp_path, 1 << 10)
        feed = world.hub.feed(1, 0)
        world.publish([{"s0"}])
        assert [each.position for each in await feed.next()] == [1]
        assert feed.live
        for _ in range(30):
            world.publish([{"s0"}, {"s1"}] * 50)
            assert len(feed._queue) <= feeds.QUEUE  # noqa: SLF001
        assert feed.fell_behind == 1
        got: list[int] = []
        while len(got) < 1_500:
            got += [each.position for each in await feed.next()]
        assert got == [each for each, _, _ in world.model.deliveries("a", 1)]
        assert feed.live
        world.source.store.close()

    asyncio.run(run())
