"""The dispatcher: all that delivers a tenant's events, and what is known of its consumers.

    committed block ──► hub ──► feeds ──► listeners, webhooks, pulls that wait
                                              └──► journal: cursors, attempts, dead letters

There is one for each tenant that is open.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from headgate.errors import HeadgateError
from headgate.service.delivery.hub import RECENT, RECENT_DERIVED, Closed, Hub, collect
from headgate.service.delivery.journal import Behind, Journal, count_behind, count_blocks
from headgate.service.delivery.state import Listener, LiveConsumer
from headgate.service.problems import Conflict, NotFound, Problem, existing
from headgate.service.storage import consumers as stored_consumers
from headgate.service.storage.audit import noted
from headgate.service.worker import telling

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable
    from typing import Any

    from headgate.service.delivery.hub import Feed, Part
    from headgate.service.delivery.webhook import Sender
    from headgate.service.settings import ServiceSettings
    from headgate.service.storage.log import Write
    from headgate.service.tenant.names import Delivery
    from headgate.service.tenant.tenant import Tenant

_LOG = logging.getLogger("headgate.service")
_REPLAYED = 100
"""Dead letters of a consumer of which it is remembered that they were tried again."""
_NOT_KEPT = "the event is not kept any more, or its subscription is gone"
STOPPING = "the service is stopping: connect again"


class Dispatcher:
    """The deliveries of one tenant. It belongs to the event loop."""

    def __init__(self, tenant: Tenant, settings: ServiceSettings, sender: Callable[[], Sender]) -> None:
        self.tenant = tenant
        self.settings = settings
        self._sender = sender
        self.hub = Hub(tenant, RECENT if tenant.store.database.forced else RECENT_DERIVED)
        self.journal = Journal(tenant)
        self.counts: Counter[str] = Counter()
        """Deliveries by way, and what went wrong, since the service runs."""
        self._polls: set[Feed] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False
        passed = tenant.store.consumers.passed()
        self.states: dict[str, LiveConsumer] = {}
        for stored in tenant.store.consumers.all():
            state = self.states[stored.id] = LiveConsumer(stored, settings.retry)
            state.passed = passed.get(stored.id, 0)
        tenant.committed = self.hub.committed
        tenant.changed = self._changed
        for state in self.states.values():
            self._call(state)
        self._ticker = asyncio.get_running_loop().create_task(self._tick())

    @property
    def sender(self) -> Sender:
        """Return the client that calls webhooks."""
        return self._sender()

    async def close(self) -> None:
        """End all deliveries, and write how far each came."""
        self._closed = True
        self._ticker.cancel()
        self.end_listeners()
        for state in self.states.values():
            state.hang_up()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.sleep(0)
        await self.journal.close()
        await self.hub.settle()

    def end_listeners(self) -> None:
        """Have all who listen or wait be told that the service stops."""
        for state in self.states.values():
            for listener in list(state.listeners):
                listener.feed.close(STOPPING)
        for feed in list(self._polls):
            feed.close(STOPPING)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Have something done beside."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(telling(_LOG, f"tenant {self.tenant.name}"))

    # Consumers

    def state(self, identity: str) -> LiveConsumer:
        """Find a consumer."""
        return existing(self.states.get(identity), f"consumer {identity!r}")

    def _changed(self, identity: str) -> None:
        """Take over what became of a consumer."""
        stored, state = self.tenant.consumer(identity), self.states.get(identity)
        if state is not None and (stored is None or stored.number != state.number):
            del self.states[identity]
            self.journal.forget(state)
            state.moved += 1
            state.hang_up()
            for feed in self.hub.feeds(state.number):
                feed.close(f"consumer {identity!r} was deleted")
            state = None
        if stored is None or self._closed:
            return
        if state is None:
            state = self.states[identity] = LiveConsumer(stored, self.settings.retry)
        elif stored.revision != state.revision:
            state.told(stored)
            state.reason = None
            state.breaker.succeeded()
        self._call(state)

    def _call(self, state: LiveConsumer) -> None:
        """Begin to call a webhook, or begin anew after its cursor, or end."""
        state.hang_up()
        if state.called:
            from headgate.service.delivery.webhook import Webhook

            state.webhook = Webhook(self, state)
            self.replay_letters(state)

    def disable(self, state: LiveConsumer, reason: str) -> None:
        """Call a webhook no more, until a client says so."""
        _LOG.warning("consumer %s: its webhook is disabled: %s", state.id, reason)
        self.counts["webhooks disabled"] += 1

        async def disabled() -> None:
            await self.tenant.put_consumer(
                state.id,
                lambda found: msgspec.structs.replace(
                    state.said if found is None else found.said, enabled=False
                ),
                expected=state.revision,
                also=[noted("", "disable consumer", state.id)],
            )
            state.reason = reason

        self.spawn(disabled())

    def has_all(self, state: LiveConsumer) -> bool:
        """Tell whether it is known that nothing waits for a consumer."""
        start = max(state.cursor, state.clear)
        return start >= self.hub.began and self.hub.latest(state.number) <= start

    async def behind(self, states: Iterable[LiveConsumer]) -> dict[LiveConsumer, tuple[Behind, bool]]:
        """Count for consumers what they have not acknowledged, and tell whether the count is exact."""
        last, asked = self.tenant.position, {}
        lags = {}
        for state in states:
            if self.has_all(state):
                lags[state] = Behind(0, None, last), True
            else:
                asked[state.number] = max(state.cursor, state.clear), state
        if asked:
            starts = {number: start for number, (start, _) in asked.items()}
            counted = await asyncio.to_thread(
                count_behind, self.tenant.store.log, self.tenant.names, starts, last
            )
            for number, (start, state) in asked.items():
                each = counted[number]
                lags[state] = each, each.upto >= last
                if not each.events and max(state.cursor, state.clear) == start:
                    state.clear = max(start, each.upto)
        return lags

    # How far consumers came

    async def acknowledge(self, state: LiveConsumer, cursor: int) -> int:
        """Have a consumer's cursor at a position, on disk; it never moves back. Returns where it is."""
        if state.said.url is not None:
            raise Conflict(f"consumer {state.id!r} has a webhook, which acknowledges by its answers")
        if cursor > self.tenant.position:
            raise Problem(
                f"cursor {cursor} is after the last event, which has {self.tenant.position}: acknowledge "
                "what was delivered",
                422,
            )
        if cursor > state.cursor:
            moved = state.moved
            await self.tenant.write(stored_consumers.advance({state.id: cursor}))
            if moved == state.moved:
                state.cursor = max(state.cursor, cursor)
        return state.cursor

    async def replay(self, state: LiveConsumer, cursor: int, *also: Write) -> int:
        """Have a consumer go on after a position that is kept; returns it."""
        bounds = self.tenant.store.log.bounds()
        if cursor > self.tenant.position:
            raise Problem(f"cursor {cursor} is after the last event, which has {self.tenant.position}", 422)
        if cursor < bounds.first - 1:
            raise NotFound(
                f"events after cursor {cursor} are not kept any more: the first that is kept has "
                f"{bounds.first}, so replay from cursor {bounds.first - 1}",
                410,
                first=bounds.first,
            )
        state.moved += 1
        self.journal.forget(state)
        await self.tenant.write(stored_consumers.move(state.id, cursor), *also)
        state.cursor = state.clear = cursor
        if state.webhook is not None:
            self._call(state)
        for listener in state.listeners:
            listener.feed.rewind(cursor)
        return cursor

    async def forget(self, before: int, *writes: Write) -> None:
        """Write what forgets events before a position, and count what consumers have not got of them."""
        late = {state.number: state for state in self.states.values() if state.cursor < before - 1}
        if not late:
            await self.tenant.write(*writes)
            self.hub.forget(before)
            return
        cursors = {number: state.cursor for number, state in late.items()}
        log, names = self.tenant.store.log, self.tenant.names
        first = log.bounds().first
        missed, _ = await asyncio.to_thread(
            lambda: count_blocks(log.read(first, before - first), names, cursors, before)
        )
        lost = {late[number].id: each.events for number, each in missed.items()}
        moves = {state.id: before - 1 for state in late.values()}
        await self.tenant.write(*writes, stored_consumers.pass_by(lost), stored_consumers.advance(moves))
        self.hub.forget(before)
        for state in late.values():
            state.cursor = max(state.cursor, before - 1)
        for number, each in missed.items():
            late[number].passed += each.events
            self.counts["passed"] += each.events
            _LOG.warning(
                "tenant %s: consumer %s was behind: %d events for it are not kept any more",
                self.tenant.name, late[number].id, each.events,
            )  # fmt: skip

    # Those who wait

    def check_after(self, after: int) -> None:
        """Refuse a cursor behind the last event."""
        last = self.tenant.position
        if after > last:
            raise Problem(
                f"after is {after}, and the last event has {last}: give a cursor that was read", 400
            )

    async def pull(self, state: LiveConsumer, after: int, most: int, size: int, wait: float) -> Part:
        """Read deliveries after a position; waits for some if there are none."""
        part = await self.hub.read(state.number, after, most, size)
        end = time.monotonic() + wait
        # A part may have looked at many events that are for others.
        while not part.deliveries and part.upto < self.tenant.position and not part.first:
            part = await self.hub.read(state.number, part.upto, most, size)
        if part.deliveries or part.first or time.monotonic() >= end:
            return part
        feed = self.hub.feed(state.number, part.upto)
        self._polls.add(feed)
        try:
            async with asyncio.timeout(end - time.monotonic()):
                deliveries = await feed.next(most)
        except (TimeoutError, Closed):
            return part._replace(upto=max(part.upto, min(feed.position, self.tenant.position)))
        finally:
            self._polls.discard(feed)
            feed.close("the request has ended")
        cut = deliveries[:most]
        return part._replace(deliveries=cut, upto=cut[-1].position if cut else part.upto)

    def listen(
        self, way: str, state: LiveConsumer, after: int, receive: Any, *, acknowledges: bool
    ) -> Listener:
        """Have a listener after a position."""
        added = Listener(way, state, self.hub.feed(state.number, after), receive, acknowledges=acknowledges)
        state.listeners.add(added)
        return added

    def unlisten(self, listener: Listener) -> None:
        """Forget a listener."""
        listener.state.listeners.discard(listener)
        listener.feed.close("the connection has ended")

    async def _tick(self) -> None:
        """Look at listeners: who takes nothing is cut off, who hears nothing gets a sign of life."""
        stall, beat = self.settings.stall, self.settings.heartbeat
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(1.0, stall / 8, beat / 2))
            now = loop.time()
            for state in list(self.states.values()):
                for listener in list(state.listeners):
                    stalled = listener.stalled(now)
                    if stalled >= stall:
                        self.counts["cut off"] += 1
                        reason = f"it took nothing for {stalled:.1f} s"
                        _LOG.warning(
                            "tenant %s: a listener of consumer %s (%s) is cut off: %s",
                            self.tenant.name, state.id, listener.way, reason,
                        )  # fmt: skip
                        listener.cut_off(reason)
                    elif now - listener.last >= beat:
                        listener.feed.nudge()

    # Dead letters

    async def event_for(self, state: LiveConsumer, position: int) -> Delivery | None:
        """Find an event that was for a consumer; None if it is not kept any more, or for it no more."""
        log, names = self.tenant.store.log, self.tenant.names
        part = await asyncio.to_thread(
            lambda: collect(log.read(position, 1), names, state.number, position - 1, 1)
        )
        delivery = part.deliveries[0] if part.deliveries else None
        return delivery if delivery is not None and delivery.position == position else None

    def replay_letters(self, state: LiveConsumer) -> None:
        """Try the dead letters again that are marked for it, if that is not being done."""
        if state.called and not state.replaying and not self._closed:
            state.replaying = True
            self.spawn(self._replay_letters(state))

    async def _replay_letters(self, state: LiveConsumer) -> None:
        """Try each once more; what is delivered is a dead letter no more, of the rest it is kept why."""
        from headgate.service.delivery.webhook import attempt

        stored = self.tenant.store.consumers
        try:
            while self.states.get(state.id) is state and state.called:
                letter = stored.next_replay(state.id)
                if letter is None:
                    return
                delivery = await self.event_for(state, letter.position)
                outcome = None if delivery is None else await attempt(self, state, delivery)
                done = outcome is not None and outcome.reason is None
                reason = _NOT_KEPT if outcome is None else outcome.reason or ""
                attempts = letter.attempts + (outcome is not None)
                tried = letter._replace(attempts=attempts, reason=reason, again=False)
                state.replayed[letter.position] = tried._replace(time=time.time_ns() // 1_000)
                while len(state.replayed) > _REPLAYED:
                    del state.replayed[next(iter(state.replayed))]
                # Together with nothing else: what was sent and is not noted is sent again after a crash.
                await self.tenant.write(
                    stored_consumers.unbury(state.id, [letter.position])
                    if done
                    else stored_consumers.fail_again(tried)
                )
        except HeadgateError as error:
            _LOG.error("consumer %s: dead letters are not tried any further: %s", state.id, error)
        finally:
            state.replaying = False
