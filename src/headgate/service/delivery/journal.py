"""How far consumers came: what is written a moment later, together, and what is behind, counted in the log.

All of it may be lost in a crash: events are then delivered again. A dead letter and the cursor that passes
it are
written together. What a client acknowledges by itself does not go this way.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.errors import HeadgateError
from headgate.service.storage import consumers as stored

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from headgate.service.delivery.state import LiveConsumer
    from headgate.service.storage.consumers import Attempt, DeadLetter
    from headgate.service.storage.log import Block, Log, Write
    from headgate.service.tenant.names import Names
    from headgate.service.tenant.tenant import Tenant


_LOG = logging.getLogger("headgate.service")
_GATHER = 0.05
"""Seconds in which writes gather."""
_AGAIN = 1.0
"""Seconds until a write that failed is tried again."""
_MOST = 10_000
"""Attempts that may wait; older ones are forgotten."""


class Journal:
    """Writes of a tenant's deliveries that gather."""

    def __init__(self, tenant: Tenant) -> None:
        self._tenant = tenant
        self._cursors: dict[LiveConsumer, tuple[int, int]] = {}
        self._attempts: list[Attempt] = []
        self._letters: list[DeadLetter] = []
        self._task: asyncio.Task[None] | None = None

    def advance(self, state: LiveConsumer, position: int) -> None:
        """Have a consumer's cursor at a position, or after it."""
        written, moved = self._cursors.get(state, (0, state.moved))
        if position > written or moved != state.moved:
            self._cursors[state] = position, state.moved
            self._soon()

    def note(self, attempt: Attempt) -> None:
        """Keep an attempt."""
        self._attempts.append(attempt)
        self._soon()

    def bury(self, letter: DeadLetter) -> None:
        """Keep a dead letter."""
        self._letters.append(letter)
        self._soon()

    def forget(self, state: LiveConsumer) -> None:
        """Drop where a consumer's cursor was to be."""
        self._cursors.pop(state, None)

    def _soon(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while self._cursors or self._attempts or self._letters:
            await asyncio.sleep(_GATHER)
            if not await self._flushed():
                await asyncio.sleep(_AGAIN)
        self._task = None

    async def _flushed(self) -> bool:
        """Write what waits, or log why that could not be; tells whether it is written."""
        try:
            await self.flush()
        except HeadgateError as error:
            _LOG.error(
                "tenant %s: the state of deliveries could not be written: %s", self._tenant.name, error
            )
            return False
        return True

    async def flush(self) -> None:
        """Write what waits."""
        cursors, self._cursors = self._cursors, {}
        attempts, self._attempts = self._attempts, []
        letters, self._letters = self._letters, []
        moves = {state.id: position for state, (position, moved) in cursors.items() if moved == state.moved}
        writes: list[Write] = []
        if letters:
            writes.append(stored.bury(letters))
        if attempts:
            writes.append(stored.note(attempts))
        if moves:
            writes.append(stored.advance(moves))
        if not writes:
            return
        try:
            await self._tenant.write(*writes)
        except HeadgateError:
            self._letters = letters + self._letters
            self._attempts = (attempts + self._attempts)[-_MOST:]
            for state, move in cursors.items():
                self._cursors.setdefault(state, move)
            raise
        for state, (position, moved) in cursors.items():
            if moved == state.moved:
                state.cursor = max(state.cursor, position)

    async def close(self) -> None:
        """Write what waits, and end."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        await self._flushed()


LOOKED = 100_000
"""Events of the log that are looked at; a count that needs more says that it is not exact."""


class Behind(NamedTuple):
    """How far a consumer is behind."""

    events: int
    since: int | None
    """When the first of them was committed, in microseconds since 1970."""
    upto: int
    """The position up to which was counted."""


def count_behind(log: Log, names: Names, cursors: Mapping[int, int], last: int) -> dict[int, Behind]:
    """Count what came for consumers after their cursors, all by number. Made for threads."""
    begin = min(cursors.values())
    counts, upto = count_blocks(log.read(begin + 1, LOOKED), names, cursors)
    if upto - begin < LOOKED:
        upto = max(upto, last)
    return {each: counts.get(each, Behind(0, None, 0))._replace(upto=upto) for each in cursors}


def count_blocks(
    blocks: Iterable[Block], names: Names, cursors: Mapping[int, int], before: int = 1 << 62
) -> tuple[dict[int, Behind], int]:
    """Count what blocks have for consumers after their cursors, before a position; also the last position."""
    size = max(cursors) + 2
    after = np.full(size, 1 << 62, np.int64)
    for number, cursor in cursors.items():
        after[number] = cursor
    counts: dict[int, Behind] = {}
    upto = 0
    for block in blocks:
        if block.first >= before:
            break
        upto = block.last
        # Nobody, and consumers that nobody asks for, are looked up in places that come after all positions.
        owners = names.owners(block.subscriptions)
        positions = block.first + block.rows()
        wanted = (after.take(owners, mode="clip") < positions) & (positions < before)
        if not wanted.any():
            continue
        # An event counts once, whatever the number of subscriptions.
        pairs = np.unique(np.stack([owners[wanted], positions[wanted]]), axis=1)[0]
        for number, count in zip(
            *(each.tolist() for each in np.unique(pairs, return_counts=True)), strict=True
        ):
            old = counts.get(number)
            counts[number] = (
                Behind(count, block.time, 0) if old is None else old._replace(events=old.events + count)
            )
    return counts, upto
