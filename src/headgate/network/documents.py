"""The documents of a network, read at the source from the log that publishers write to.

An index of the views that the source feeds tells which of them hold for a document; these are computed. A
document is read again where a view begins later than others did: what was computed of it before is known.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from headgate.core.subscription import Subscription
from headgate.engine.planned.view_maker import ViewMaker
from headgate.errors import EventError
from headgate.service.envelope import read_envelope

if TYPE_CHECKING:
    from headgate.core.event import Id
    from headgate.network.assignment import Assignment
    from headgate.network.entry import Result
    from headgate.network.evaluation import Evaluation
    from headgate.rdf.taxonomy.taxonomy import Taxonomy
    from headgate.service.storage.block import Block
    from headgate.service.tenant.tenant import Tenant

_LOG = logging.getLogger("headgate.network")
MOST = 100
"""Documents that are computed together."""


class Documents:
    """Reads documents for the views of a source."""

    def __init__(
        self, tenant: Tenant, assignment: Assignment, evaluation: Evaluation, taxonomy: Taxonomy | None
    ) -> None:
        self.refused = 0
        """Documents that cannot be read, or are of another kind."""
        self._tenant = tenant
        self._evaluation = evaluation
        self._ids: list[Id] = [view.id for view in assignment.views]
        maker = ViewMaker.of(assignment.carries, taxonomy, assignment.names)
        self._index = maker.indexed(
            Subscription(view.id, view.filter, view.dialect) for view in assignment.views
        )
        self.position = min(evaluation.reached.values(), default=tenant.position)
        """The last document that was read."""
        self._wake = asyncio.Event()
        self._before = tenant.committed
        tenant.committed = self._committed

    def close(self) -> None:
        """Listen no more."""
        self._tenant.committed = self._before

    def _committed(self, block: Block) -> None:
        self._before(block)
        self._wake.set()

    @property
    def ready(self) -> bool:
        """Tell whether there are documents that were not read."""
        return self.position < self._tenant.position

    async def wait(self, seconds: float) -> None:
        """Wait until there may be some, or the time is over."""
        self._wake.clear()
        if self.ready:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return

    def read(self, now: int) -> list[Result]:
        """Read some documents, and compute what the views give for them. Made for threads."""
        last = self._tenant.position
        found: list[Result] = []
        blocks = list(self._tenant.store.log.read(self.position + 1, MOST))
        for block in blocks:
            for position, text in block:
                if self.position < position <= last:
                    found += self._computed(position, text, now)
                    self.position = position
        if not blocks:
            # Positions are missing where an append failed.
            self.position = last
        self._evaluation.computed_upto(self.position)
        return found

    def _computed(self, position: int, text: bytes, now: int) -> list[Result]:
        try:
            event = read_envelope(text).event
            matched = self._index.numbers(event).tolist()
            wanted = [self._ids[number] for number in matched]
            return self._evaluation.compute(position, event, wanted, now)
        except EventError as error:
            self.refused += 1
            _LOG.warning("document %d is left out: %s", position, error)
            return []
