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
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.errors import HeadgateError
from headgate.service.storage.log import NONE, Block, hash_of
from headgate.service.tenant.names import Matches
from headgate.service.worker import Entry, Worker

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable, Sequence

    from headgate.core.event import Event
    from headgate.service.storage.log import Write
    from headgate.service.tenant.tenant import Tenant
    from headgate.service.worker import Writer

    Reply = Callable[[Any], None]

_LOG = logging.getLogger("headgate.service")
MOST_EVENTS = 1_000
"""Events that are matched and committed together."""
MOST_BEHIND = 4
"""Groups that may wait for the writer before the matcher waits, too."""


class Published(NamedTuple):
    """What became of events: the position of each, and who matched; None and the reason for one refused."""

    positions: Sequence[int | None]
    counts: Sequence[int]
    """How many subscriptions each event matched."""
    matches: Sequence[Sequence[str]]
    """The ids of these, if they were asked for; otherwise nothing."""
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
    named: bool = False
    """Whether the ids of those who matched are wanted."""


@dataclass
class Job:
    """Something else that must happen between events: it returns what must be written, and the answer."""

    run: Callable[[], tuple[list[Write], Any]]
    reply: Reply
    also: Sequence[Write] = ()
    """What is written as well, if it is not refused."""


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


Asked = Publish | Job | Tell


class Matcher(Worker[Asked]):
    """Takes events and jobs in order. `settle` is called by the writer's thread, with replies to give."""

    def __init__(
        self,
        tenant: Tenant,
        writer: Writer,
        position: int,
        settle: Callable[[list[tuple[Reply, Any]], Block | None], None],
    ) -> None:
        super().__init__(f"matcher-{tenant.name}")
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
        taken: list[Asked] = [first]
        events = len(first.events)
        while items and isinstance(items[0], Publish):
            events += len(items[0].events)
            if events > MOST_EVENTS:
                break
            taken.append(items.popleft())
        return taken

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
                writes, answer = first.run()
                group.writes = [*writes, *first.also]
            except HeadgateError as error:
                answer = error
            group.replies.append((first.reply, answer))
            return
        if isinstance(first, Tell):
            self._tell(first, group, now)
            return
        self._publish([each for each in asked if isinstance(each, Publish)], group, now)

    def _publish(self, asked: list[Publish], group: _Group, now: int) -> None:
        matches = self._tenant.match([event for each in asked for event in each.events])
        taken: list[int] = []
        texts: list[bytes] = []
        ids: list[int] = []
        first_row = 0
        for each in asked:
            rows = range(first_row, first_row + len(each.events))
            first_row += len(each.events)
            refused = {row - rows.start: str(matches.refused[row]) for row in rows if row in matches.refused}
            positions: list[int | None] = [None] * len(rows)
            if not (refused and each.atomic):
                for row, event in enumerate(each.events):
                    if row not in refused:
                        positions[row] = self._position + 1 + len(texts)
                        taken.append(rows[row])
                        texts.append(each.texts[row])
                        ids.append(hash_of(str(event.id).encode()))
            published = self._published(matches, rows, positions, refused, named=each.named)
            group.replies.append((each.reply, published))
            if each.also is not None and not (refused and each.atomic):
                group.writes += each.also(published)
        if not texts:
            return
        kept = matches.some(taken)
        held: Matches | None = None
        if self._tenant.registry.limits:
            kept, held, more = self._tenant.hold(now, kept)
            group.writes += more
        group.block = self._block(now, texts, ids, kept, held)

    def _published(
        self,
        matches: Matches,
        rows: range,
        positions: list[int | None],
        refused: dict[int, str],
        *,
        named: bool,
    ) -> Published:
        counts = matches.counts[rows.start : rows.stop].tolist()
        lists = matches.some(rows).lists() if named else []
        return Published(positions, counts, [self._tenant.names.ids_of(each) for each in lists], refused)

    def _tell(self, asked: Tell, group: _Group, now: int) -> None:
        events, group.writes = asked.make(now)
        group.job = True
        group.replies.append((asked.reply, len(events)))
        if not events:
            return
        told = Matches.of([each.numbers for each in events])
        ids = [hash_of(each.id.encode()) for each in events]
        group.block = self._block(now, [each.text for each in events], ids, told)

    def _block(
        self, now: int, texts: list[bytes], ids: list[int], got: Matches, held: Matches | None = None
    ) -> Block:
        """Take events, at the next positions, with the subscriptions that got them and what was held back."""
        back = (NONE, NONE) if held is None else (held.ends, held.numbers)
        first, self._position = self._position + 1, self._position + len(texts)
        return Block(first, now, texts, got.ends, got.numbers, *back, np.array(ids, np.uint32))

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
