"""A webhook: delivers a consumer's events to its URL, one after another or some at once.

    attempt ─► 2xx: done      410: the consumer is disabled      otherwise: again after a wait, or a dead
    letter at last

The cursor moves when an event and all before it are done. Events are delivered at least once: what was
under way when the
service stopped is sent again, with the same `webhook-id`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from typing import TYPE_CHECKING

from headgate.core import __version__
from headgate.errors import HeadgateError
from headgate.service.delivery.breaker import wait_of
from headgate.service.delivery.feed import Closed
from headgate.service.envelope import STRUCTURED
from headgate.service.security.signature import headers_of, message_id
from headgate.service.storage.consumers import Attempt, DeadLetter

if TYPE_CHECKING:
    from headgate.service.delivery.dispatcher import Dispatcher
    from headgate.service.delivery.sender import Outcome
    from headgate.service.delivery.state import State
    from headgate.service.tenant.names import Delivery

_LOG = logging.getLogger("headgate.service")
_LOOK = 1.0
"""Seconds between two looks at a circuit that is open."""
_GONE = 410
_BATCH = 256
_LISTED = 4_096
"""Bytes of ids that the header of subscriptions has, at most."""
_AGENT = f"Headgate/{__version__}"


class Webhook:
    """The deliveries to one URL, as a task."""

    def __init__(self, dispatcher: Dispatcher, state: State) -> None:
        self._dispatcher = dispatcher
        self._state = state
        self._feed = dispatcher.hub.feed(state.number, state.cursor)
        self._under_way: dict[int, None] = {}
        self._last = 0
        self._task = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        """End; what is under way is sent again by another one."""
        self._feed.close("the webhook was stopped")
        self._task.cancel()

    async def _run(self) -> None:
        state = self._state
        try:
            async with asyncio.TaskGroup() as group:
                room = asyncio.Semaphore(state.said.parallel)
                while True:
                    for delivery in await self._feed.next(_BATCH):
                        if state.said.order == "ordered":
                            await self._deliver(delivery)
                            self._dispatcher.journal.advance(state, delivery.position)
                        else:
                            await room.acquire()
                            self._under_way[delivery.position] = None
                            group.create_task(self._beside(delivery, room))
        except* Closed:
            pass
        except* HeadgateError as errors:
            _LOG.error("consumer %s: its webhook stopped: %s", state.id, errors.exceptions[0])
        finally:
            self._feed.close("the webhook was stopped")

    async def _beside(self, delivery: Delivery, room: asyncio.Semaphore) -> None:
        """Deliver one of some at once; the cursor moves up to the first that is not done."""
        try:
            await self._deliver(delivery)
        finally:
            room.release()
        del self._under_way[delivery.position]
        first = next(iter(self._under_way), None)
        # What is begun later stands after what is under way, or after this if nothing is.
        self._last = max(self._last, delivery.position)
        self._dispatcher.journal.advance(self._state, self._last if first is None else first - 1)

    async def _deliver(self, delivery: Delivery) -> None:
        """Deliver an event, whatever the number of attempts, or bury it."""
        state, journal = self._state, self._dispatcher.journal
        attempts = 0
        while True:
            outcome = await attempt(self._dispatcher, state, delivery)
            attempts += 1
            if outcome.reason is None:
                return
            if outcome.status == _GONE:
                self._dispatcher.disable(state, "the endpoint answered 410 Gone")
                raise Closed("the endpoint is gone")
            if attempts >= state.said.attempts:
                self._dispatcher.counts["dead letters"] += 1
                now = time.time_ns() // 1_000
                journal.bury(DeadLetter(state.id, delivery.position, now, attempts, outcome.reason))
                _LOG.warning(
                    "consumer %s: event %d is a dead letter after %d attempts: %s",
                    state.id, delivery.position, attempts, outcome.reason,
                )  # fmt: skip
                return
            await asyncio.sleep(wait_of(self._dispatcher.settings.retry, attempts, outcome.after))


async def attempt(dispatcher: Dispatcher, state: State, delivery: Delivery) -> Outcome:
    """Try to deliver an event once, when the circuit lets it through, and note what became of it."""
    breaker = state.breaker
    while wait := breaker.wait():
        # Somebody may change the consumer meanwhile, which closes the circuit.
        await asyncio.sleep(min(wait, _LOOK))
    try:
        outcome = await post(dispatcher, state, delivery)
    except BaseException:
        breaker.given_up()
        raise
    now = time.time_ns() // 1_000
    dispatcher.journal.note(
        Attempt(state.id, delivery.position, now, outcome.status, outcome.milliseconds, outcome.reason)
    )
    state.reason = outcome.reason
    if outcome.reason is None:
        dispatcher.counts["webhook"] += 1
        breaker.succeeded()
    else:
        dispatcher.counts["webhook failures"] += 1
        breaker.failed()
    return outcome


async def post(dispatcher: Dispatcher, state: State, delivery: Delivery) -> Outcome:
    """Sign an event, and post it."""
    identity = message_id(dispatcher.tenant.name, state.id, delivery.position)
    headers = {
        "content-type": f"{STRUCTURED}; charset=utf-8",
        "user-agent": _AGENT,
        "headgate-cursor": str(delivery.position),
        **_listed(delivery.subscriptions),
        **headers_of(state.key, identity, int(time.time()), delivery.text),
    }
    return await dispatcher.sender.post(str(state.said.url), headers, delivery.text, state.said.timeout)


def _listed(subscriptions: list[str]) -> dict[str, str]:
    """Name the subscriptions in a header, as many as it has room for."""
    size, shown = 2, []
    for each in subscriptions:
        text = json.dumps(each)
        size += len(text) + 1
        if size > _LISTED:
            break
        shown.append(text)
    found = {"headgate-subscriptions": f"[{','.join(shown)}]"}
    if len(shown) < len(subscriptions):
        found["headgate-subscriptions-more"] = str(len(subscriptions) - len(shown))
    return found
