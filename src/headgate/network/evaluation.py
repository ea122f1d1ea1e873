"""The views of a site: what comes in of their inputs, or of documents, and what they give for it.

Results of a view come in the order of documents, from whichever site it is taken; results of different views
come in any order. So a view of several inputs keeps what came of a document until all of it is there. A
document that an input gives nothing for is not heard of: when that input has come past it, what was kept of
it is dropped. That needs no message, and is why a view gives its own results in the order of documents, too.

    reached    for each view, the last document that is decided: what comes again of it, or of one before, is
               dropped. It is kept with the results, and is all that a site must know to go on.

A view keeps a bounded number of documents. When an input is so far ahead that there is no room, what it gives
is dropped from there on, and it is asked for again, from `reached` on, when there is room (`behind`).

An index of the views that the source feeds tells which of them hold for a document; these are computed. A
document is read again where a view begins later than others did: what was computed of it before is known.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec

from headgate.core.subscription import Subscription
from headgate.engine.views import ViewMaker
from headgate.errors import EventError
from headgate.network.entry import Result
from headgate.service.envelope import read_envelope

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from headgate.contents.views import Rewriting, Views
    from headgate.core.event import Event, Id
    from headgate.network.assignment import Assignment, View
    from headgate.rdf.taxonomy.taxonomy import Taxonomy
    from headgate.service.storage.log import Block
    from headgate.service.tenant.tenant import Tenant

    Key = tuple[str, Id]
    """A view, at the site that it is taken from."""


_UNREAD: Any = object()
"""Stands for a result whose text nobody had to read yet."""
MOST_KEPT = 2_000
"""Documents that a view keeps while it waits for an input."""


class _Target:
    """A view that is computed here, and what came of its inputs."""

    def __init__(self, view: View, views: Views, numbers: Mapping[Id, int], most: int) -> None:
        self.view = view
        self.reached = view.after
        self.heard: dict[Key, int] = {(each.site, each.view): 0 for each in view.inputs}
        """How far each input has come, whether it gave anything or not."""
        self.dropped: set[Key] = set()
        """Inputs that were so far ahead that something of them was dropped."""
        self._kept: dict[int, dict[Key, Any]] = {}
        self._most = most
        self.same = len(view.inputs) == 1 and view.inputs[0].view == view.id
        """Whether it is taken as it is, from where it is computed."""
        places = [numbers[each.view] for each in view.inputs]
        self._rewriting: Rewriting | None = (
            None if self.same or not places else views.rewriting(numbers[view.id], places)
        )

    @property
    def waiting(self) -> int:
        """Count the documents of which some inputs came, and not all."""
        return len(self._kept)

    def room_for(self) -> set[Key]:
        """Take out of `dropped` what can be asked for again: half of the room is free, or all wait for it."""
        least = min(self.heard.values())
        room = 2 * len(self._kept) <= self._most
        free = {key for key in self.dropped if room or self.heard[key] == least}
        self.dropped -= free
        return free

    def wants(self, document: int) -> bool:
        """Tell whether a document is not decided yet, and to be decided here."""
        return document > self.reached and (self.view.until is None or document <= self.view.until)

    def take(self, key: Key, document: int, result: Any) -> list[Any] | None:
        """Take what an input gives; returns what all inputs give, if this was the last of them."""
        if key in self.dropped:
            return None
        # It gives nothing any more for those before.
        self.come(key, document - 1)
        if not self.wants(document):
            self.come(key, document)
            return None
        kept = self._kept.get(document, {})
        if key in kept:
            return None
        if any(upto >= document and each not in kept for each, upto in self.heard.items() if each != key):
            # Another input has come past it, and gives nothing for it.
            self.come(key, document)
            return None
        if len(kept) + 1 < len(self.heard):
            if not kept and len(self._kept) >= self._most:
                self.dropped.add(key)
                return None
            self._kept.setdefault(document, kept)[key] = result
            self.heard[key] = document
            return None
        self.heard[key] = document
        inputs = {**kept, key: result}
        self._decide(document)
        return [inputs[each] for each in self.heard]

    def come(self, key: Key, document: int) -> bool:
        """Note that an input has given all up to a document; tells whether more is decided."""
        if key in self.dropped:
            return False
        self.heard[key] = max(self.heard[key], document)
        upto = min(self.heard.values())
        if self.view.until is not None:
            upto = min(upto, self.view.until)
        if upto <= self.reached:
            return False
        self._decide(upto)
        return True

    def compute(self, results: list[Any]) -> Any:
        """Compute what the view gives from what its inputs give."""
        assert self._rewriting is not None
        return self._rewriting.run(results)

    def _decide(self, document: int) -> None:
        self.reached = document
        for each in [each for each in self._kept if each <= document]:
            del self._kept[each]


class Evaluation:
    """The views of one assignment."""

    def __init__(
        self,
        assignment: Assignment,
        reached: Mapping[Id, int],
        taxonomy: Taxonomy | None = None,
        *,
        most_kept: int = MOST_KEPT,
    ) -> None:
        self.site = assignment.site
        known: dict[Id, Subscription] = {}
        for view in assignment.views:
            known[view.id] = Subscription(view.id, view.filter, view.dialect)
            known |= {each.view: Subscription(each.view, each.filter, each.dialect) for each in view.inputs}
        self._numbers = {identity: number for number, identity in enumerate(known)}
        made = ViewMaker.of(assignment.carries, taxonomy, assignment.names)
        self.views = made.views(list(known.values()))
        self.targets: dict[Id, _Target] = {}
        self._uses: dict[Key, list[_Target]] = {}
        for view in assignment.views:
            target = self.targets[view.id] = _Target(view, self.views, self._numbers, most_kept)
            for key in target.heard:
                self._uses.setdefault(key, []).append(target)
        self.begin(reached)

    def begin(self, reached: Mapping[Id, int]) -> None:
        """Begin where views have come to; those that are not named, where they begin."""
        for identity, target in self.targets.items():
            target.reached = reached.get(identity, target.view.after)

    @property
    def reached(self) -> dict[Id, int]:
        """Return the last document that is decided, by view."""
        return {identity: each.reached for identity, each in self.targets.items()}

    @property
    def waiting(self) -> int:
        """Count the documents that wait for an input, once for each view."""
        return sum(each.waiting for each in self.targets.values())

    def wanted(self, site: str) -> dict[Id, int]:
        """Return what is taken from another site: the views, and the document after which each is needed."""
        needed: dict[Id, int] = {}
        for target in self.targets.values():
            for each in target.view.inputs:
                if each.site == site:
                    needed[each.view] = min(needed.get(each.view, target.reached), target.reached)
        return needed

    def behind(self) -> set[str]:
        """Name the sites that must be asked again, from `wanted` on: there is room for what was dropped.

        The site itself is one of them if results of its own views were: it has them in its log.
        """
        return {site for target in self.targets.values() if target.dropped for site, _ in target.room_for()}

    def take(self, site: str, given: Result) -> list[Result]:
        """Take a result of another site; returns what that leads to here, in the order it must be kept."""
        key = (site, given.view)
        if key not in self._uses:
            return []
        # First in, first out: results of one view stay in order.
        left: deque[tuple[Key, Any, msgspec.Raw]] = deque([(key, _UNREAD, given.text)])
        results: list[Result] = []
        while left:
            key, result, text = left.popleft()
            for target in self._uses.get(key, ()):
                if result is _UNREAD and not target.same:
                    result = self.views.unpack(self._numbers[key[1]], msgspec.json.decode(text))
                before = target.reached
                complete = target.take(key, given.document, result)
                computed, written = result, text if complete is not None and target.same else None
                if complete is not None and not target.same:
                    computed = target.compute(complete)
                    written = self._written(computed)
                if written is not None:
                    results.append(msgspec.structs.replace(given, view=target.view.id, text=written))
                    left.append(((self.site, target.view.id), computed, written))
                elif target.reached > before:
                    # It gives nothing: views here that take it hear of that.
                    self.come(self.site, {target.view.id: target.reached})
        return results

    def come(self, site: str, upto: Mapping[Id, int]) -> None:
        """Note that views of another site have given all up to a document."""
        left = deque(((site, view), document) for view, document in upto.items())
        while left:
            key, document = left.popleft()
            for target in self._uses.get(key, ()):
                if target.come(key, document):
                    left.append(((self.site, target.view.id), target.reached))

    def compute(self, document: int, event: Event, wanted: Iterable[Id], began: int) -> list[Result]:
        """Compute views from a document itself, as the source does."""
        results: list[Result] = []
        for identity in wanted:
            target = self.targets[identity]
            if not target.wants(document):
                continue
            target.reached = document
            text = self._written(self.views.result(self._numbers[identity], event))
            if text is not None:
                results.append(Result(identity, document, text, event.id, began))
        return results

    def _written(self, result: Any) -> msgspec.Raw | None:
        """Write what a view gives; None if that is nothing."""
        packed = self.views.pack(result)
        return None if packed is None else msgspec.Raw(msgspec.json.encode(packed))

    def computed_upto(self, document: int) -> None:
        """Note that all up to a document has been computed at the source."""
        for target in self.targets.values():
            upto = document if target.view.until is None else min(document, target.view.until)
            target.reached = max(target.reached, upto)


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
        results: list[Result] = []
        blocks = list(self._tenant.store.log.read(self.position + 1, MOST))
        for block in blocks:
            for position, text in block:
                if self.position < position <= last:
                    results += self._computed(position, text, now)
                    self.position = position
        if not blocks:
            # Positions are missing where an append failed.
            self.position = last
        self._evaluation.computed_upto(self.position)
        return results

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
