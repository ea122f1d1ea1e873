"""What is written a moment later, together: cursors that moved as events were sent, attempts, dead letters.

All of it may be lost in a crash: events are then delivered again. A dead letter and the cursor that passes
it are
written together. What a client acknowledges by itself does not go this way.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from headgate.errors import HeadgateError
from headgate.service.storage import consumers as stored

if TYPE_CHECKING:
    from headgate.service.delivery.state import State
    from headgate.service.storage.consumers import Attempt, DeadLetter
    from headgate.service.storage.log import Write
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
        self._cursors: dict[State, tuple[int, int]] = {}
        self._attempts: list[Attempt] = []
        self._letters: list[DeadLetter] = []
        self._task: asyncio.Task[None] | None = None

    def advance(self, state: State, position: int) -> None:
        """Have a consumer's cursor at a position, or after it."""
        found, moved = self._cursors.get(state, (0, state.moved))
        if position > found or moved != state.moved:
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

    def forget(self, state: State) -> None:
        """Drop where a consumer's cursor was to be."""
        self._cursors.pop(state, None)

    def _soon(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while self._cursors or self._attempts or self._letters:
            await asyncio.sleep(_GATHER)
            try:
                await self.flush()
            except HeadgateError as error:
                _LOG.error(
                    "tenant %s: the state of deliveries could not be written: %s", self._tenant.name, error
                )
                await asyncio.sleep(_AGAIN)
        self._task = None

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
            for state, found in cursors.items():
                self._cursors.setdefault(state, found)
            raise
        for state, (position, moved) in cursors.items():
            if moved == state.moved:
                state.cursor = max(state.cursor, position)

    async def close(self) -> None:
        """Write what waits, and end."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        try:
            await self.flush()
        except HeadgateError as error:
            _LOG.error(
                "tenant %s: the state of deliveries could not be written: %s", self._tenant.name, error
            )
