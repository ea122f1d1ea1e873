"""The thread that matches: events and changes of subscriptions, in the order in which they came.

    queue ──► a group: events up to the next change ──► index ──► writer ──► acknowledged, delivered

A change is in the index before the events that came after it are matched. It is acknowledged when it is on
disk. If it cannot be put there, the index has what the disk has not: it is opened again from what is
stored.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.errors import EventError, HeadgateError
from headgate.service.storage.block import NONE, Block, hash_of
from headgate.service.storage.writer import Entry
from headgate.service.worker import Worker

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from headgate.core.event import Event, Id
    from headgate.service.storage.log import Write
    from headgate.service.storage.writer import Writer

    Numbers = NDArray[np.uint32]
    Reply = Callable[[Any], None]

_LOG = logging.getLogger("headgate.service")
MOST_EVENTS = 1_000
"""Events that are matched and committed together."""
MOST_BEHIND = 4
"""Groups that may wait for the writer before the matcher waits, too."""


class Published(NamedTuple):
    """What became of events: the position of each, and who matched; None and the reason for one refused."""

    positions: Sequence[int | None]
    matches: Sequence[Sequence[Id]]
    refused: dict[int, str]
    """The reasons, by the event's place in the request."""


@dataclass
class Publish:
    """Events of one request, and the texts that are kept of them."""

    events: Sequence[Event]
    texts: Sequence[bytes]
    reply: Reply
    atomic: bool = True
    """Whether none is taken if one is refused."""
    also: Callable[[Published], list[Write]] | None = None
    """What is written together with the events, if they are taken."""


@dataclass
class Job:
    """Something else that must happen between events: it returns what must be written, and the answer."""

    run: Callable[[], tuple[list[Write], Any]]
    reply: Reply


@dataclass
class Tell:
    """Events of the service's own, for subscriptions that it names: made in the matcher's thread."""

    make: Callable[[int], tuple[list[Told], list[Write]]]
    reply: Reply


class Told(NamedTuple):
    """An event of the service's own: its id, its text, and the numbers of the subscriptions that get it."""

    id: str
    text: bytes
    numbers: list[int]


@dataclass
class _Group:
    """What is committed together."""

    block: Block | None = None
    writes: list[Write] = field(default_factory=list)
    replies: list[tuple[Reply, Any]] = field(default_factory=list)
    job: bool = False


class Matching:
    """What the matcher asks: the tenant's index and the numbers of its subscriptions."""

    def match(self, events: Sequence[Event]) -> list[list[Id] | EventError]:
        """List for each event the subscriptions that get it, or why it is refused."""
        raise NotImplementedError

    def numbers_of(self, ids: Sequence[Id]) -> list[int]:
        """Return the numbers of subscriptions."""
        raise NotImplementedError

    def hold(self, now: int, found: list[list[int]]) -> tuple[list[list[int]] | None, list[Write]]:
        """Take out of matches what limits hold back; returns that, or None if it is nothing."""
        raise NotImplementedError

    def recover(self) -> None:
        """Open the index again from what is stored: a change of it could not be written."""
        raise NotImplementedError


Asked = Publish | Job | Tell


class Matcher(Worker[Asked]):
    """Takes events and jobs in order. `settle` is called by the writer's thread, with replies to give."""

    def __init__(
        self,
        tenant: Matching,
        writer: Writer,
        position: int,
        settle: Callable[[list[tuple[Reply, Any]], Block | None], None],
        name: str,
    ) -> None:
        super().__init__(f"matcher-{name}")
        self._tenant = tenant
        self._writer = writer
        self._position = position
        self._settle = settle
        self._behind = threading.Semaphore(MOST_BEHIND)
        self._failed = threading.Event()
        self.start()

    @property
    def position(self) -> int:
        """Return the position of the last event that was taken."""
        return self._position

    # In the matcher's thread

    def _take(self, items: deque[Asked]) -> list[Asked]:
        """Take one job, or requests with events until the next job."""
        first = items.popleft()
        if not isinstance(first, Publish):
            return [first]
        found: list[Asked] = [first]
        events = len(first.events)
        while items and isinstance(items[0], Publish):
            events += len(items[0].events)
            if events > MOST_EVENTS:
                break
            found.append(items.popleft())
        return found

    def _do(self, items: list[Asked]) -> None:
        # When the writer is slow, requests wait in the queue, where they are counted.
        self._behind.acquire()
        group = _Group()
        try:
            if self._failed.is_set():
                self._tenant.recover()
                self._failed.clear()
            self._answer(items, group)
        except Exception as error:  # noqa: BLE001 -- others must go on
            # A defect of ours, or an index that cannot be opened: these requests fail, and all others go on.
            _LOG.exception("a request could not be matched")
            self._failed.set()
            group = _Group(replies=[(each.reply, error) for each in items])
        self._hand_on(group)

    def _answer(self, asked: list[Asked], group: _Group) -> None:
        now = time.time_ns() // 1_000
        first = asked[0]
        if isinstance(first, Job):
            group.job = True
            try:
                group.writes, answer = first.run()
            except HeadgateError as error:
                answer = error
            group.replies.append((first.reply, answer))
            return
        if isinstance(first, Tell):
            self._tell(first, group, now)
            return
        self._publish([each for each in asked if isinstance(each, Publish)], group, now)

    def _publish(self, asked: list[Publish], group: _Group, now: int) -> None:
        events = [event for each in asked for event in each.events]
        answers = self._tenant.match(events)
        texts: list[bytes] = []
        ids: list[int] = []
        found: list[list[int]] = []
        place = 0
        for each in asked:
            some = answers[place : place + len(each.events)]
            place += len(each.events)
            refused = {row: str(answer) for row, answer in enumerate(some) if isinstance(answer, EventError)}
            positions: list[int | None] = []
            taken = not (refused and each.atomic)
            for row, answer in enumerate(some):
                if isinstance(answer, EventError) or not taken:
                    positions.append(None)
                    continue
                positions.append(self._position + 1 + len(texts))
                texts.append(each.texts[row])
                ids.append(hash_of(str(each.events[row].id).encode()))
                found.append(self._tenant.numbers_of(answer))
            matches = [[] if isinstance(answer, EventError) else answer for answer in some]
            published = Published(positions, matches, refused)
            group.replies.append((each.reply, published))
            if each.also is not None and taken:
                group.writes += each.also(published)
        if not texts:
            return
        held, more = self._tenant.hold(now, found)
        group.writes += more
        group.block = Block(
            self._position + 1, now, texts, *_flat(found), *_flat(held or []), np.array(ids, np.uint32)
        )
        self._position += len(texts)

    def _tell(self, asked: Tell, group: _Group, now: int) -> None:
        events, group.writes = asked.make(now)
        group.job = True
        group.replies.append((asked.reply, len(events)))
        if not events:
            return
        group.block = Block(
            self._position + 1,
            now,
            [each.text for each in events],
            *_flat([each.numbers for each in events]),
            NONE,
            NONE,
            np.array([hash_of(each.id.encode()) for each in events], np.uint32),
        )
        self._position += len(events)

    def _hand_on(self, group: _Group) -> None:
        if group.block is None and not group.writes:
            self._behind.release()
            self._settle(group.replies, None)
            return

        def done(error: HeadgateError | None) -> None:
            self._behind.release()
            if error is None:
                self._settle(group.replies, group.block)
                return
            if group.job:
                self._failed.set()
            self._settle([(reply, error) for reply, _ in group.replies], None)

        self._writer.submit(Entry(group.block, group.writes, done))


def _flat(found: list[list[int]]) -> tuple[Numbers, Numbers]:
    """Put numbers of all events one after another, with the end of each event's."""
    if not found:
        return NONE, NONE
    ends = np.cumsum(np.fromiter(map(len, found), np.uint32, len(found)), dtype=np.uint32)
    numbers = np.fromiter(chain.from_iterable(found), np.uint32, int(ends[-1]))
    return ends, numbers
