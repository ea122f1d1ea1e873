"""A site: holds views, takes their inputs over links, keeps what they give in its log, and so feeds others.

    links, documents ──► queue ──► evaluation ──► log of the site's tenant ──► other sites, subscribers
                                                        with `reached`, in one commit

The log is a tenant of the service, and other sites are its consumers. What is kept besides:

    meta        `site`: the assignment; `reached`: the last document that is decided, by view
    documents   for each document the first position of one of its results
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any

import msgspec

from headgate.errors import NetworkError
from headgate.network.assignment import PROTOCOL, Assignment, taken
from headgate.network.entry import Mark, Result, read_entry
from headgate.network.evaluation import Documents, Evaluation
from headgate.network.link import Link, Located
from headgate.service.storage import documents
from headgate.service.storage.database import keep

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from headgate.core.event import Id
    from headgate.service.server import Server
    from headgate.service.storage.log import Write
    from headgate.service.tenant.matcher import Published
    from headgate.service.tenant.tenant import Tenant

_LOG = logging.getLogger("headgate.network")
_QUEUE = 128
"""Entries that may wait to be taken; links wait when there are more."""
TOGETHER = 128
"""Entries that are taken together: fewer cost more commits, more take more memory."""
_MARKS = 0.2
"""Seconds between marks."""
_PRUNE = 60.0
"""Seconds between looks for documents that are not kept any more."""
_AGAIN = 1.0
"""Seconds until a site that failed goes on."""
_SITE, _REACHED = "site", "reached"
_Reached = msgspec.json.Decoder(list[tuple[str | int, int]])


class LinkStatus(msgspec.Struct, frozen=True):
    """How a link fares."""

    site: str
    state: str
    since: float
    views: int


class ViewStatus(msgspec.Struct, frozen=True):
    """How a view fares."""

    id: str | int
    level: int
    reached: int
    """The last document that is decided, as far as it is kept."""
    results: int
    """What it gave since the site runs."""
    waiting: int
    """Documents that wait for an input."""


class SiteStatus(msgspec.Struct, frozen=True):
    """How a site fares."""

    network: str | None
    site: str | None
    epoch: int
    documents: int
    """At the source: the last document. Elsewhere: the last that was heard of."""
    views: list[ViewStatus]
    links: list[LinkStatus]
    entries: int
    """Results that were kept since the site runs."""
    taken: int
    """Entries of other sites that were taken since then."""
    cpu: float
    """Seconds of its process."""
    memory: int | None
    """Bytes of its process that are its own, and its part of what is shared; only if it was asked for."""
    failure: str | None = None
    protocol: int = PROTOCOL


class Site:
    """One site, in a server. It belongs to the event loop."""

    def __init__(self, server: Server, tenant: Tenant) -> None:
        self.tenant = tenant
        self.assignment: Assignment | None = None
        self.failure: str | None = None
        """Why it does not go on."""
        self._server = server
        self._evaluation: Evaluation | None = None
        self._links: dict[str, Link] = {}
        self._documents: Documents | None = None
        self._queue: asyncio.Queue[tuple[str, Result | Mark]] = asyncio.Queue(_QUEUE)
        self._worker: asyncio.Task[None] | None = None
        self._stopping = False
        self._changing = asyncio.Lock()
        self._kept: dict[Id, int] = {}
        self._marked: dict[Id, int] = {}
        """How far the log says that views have come, by results and marks."""
        self._fed: set[Id] = set()
        """The views that others take."""
        self._marked_at = 0.0
        self._pruned_at = time.monotonic()
        self._counts: dict[Id, int] = {}
        self._taken = 0
        self._heard = 0

    @classmethod
    async def open(cls, server: Server, tenant: Tenant) -> Site:
        """Open what a site was told before, and go on."""
        site = cls(server, tenant)
        await tenant.write(documents.begin())
        kept = tenant.store.setting(_SITE)
        if isinstance(kept, bytes):
            site.assignment = msgspec.json.decode(kept, type=Assignment)
            await site._begin()
        return site

    async def close(self) -> None:
        """End; what was taken is kept."""
        async with self._changing:
            await self._end()

    # What it is told

    async def assign(self, wanted: Assignment) -> None:
        """Hold other views from now on; those that are held already go on where they are."""
        wanted.check()
        if wanted.documents == self.tenant.name:
            raise NetworkError(
                f"the documents are in tenant {wanted.documents!r}, which is where results are kept: "
                "publish documents to another tenant"
            )
        async with self._changing:
            before = self.assignment
            if before is not None and before.network == wanted.network and wanted.epoch < before.epoch:
                raise NetworkError(
                    f"site {wanted.site!r} has assignment {before.epoch}, and this one is {wanted.epoch}, "
                    "which is older"
                )
            same = before is not None and msgspec.structs.replace(
                wanted, epoch=before.epoch, feeds=before.feeds, fan_out=before.fan_out
            )
            if same and same == before:
                # Others take other things from here: nothing stops for that.
                await self.tenant.write(keep(_SITE, msgspec.json.encode(wanted)))
                self.assignment = wanted
                self._fed = _fed(wanted)
                return
            # Refused here, what cannot be computed changes nothing.
            checked = await asyncio.to_thread(Evaluation, wanted, {}, _taxonomy(wanted))
            await self._end(set(taken(wanted.views, wanted.site)))
            reached = self._reached() if before is not None and before.network == wanted.network else {}
            left = {view.id: reached[view.id] for view in wanted.views if view.id in reached}
            await self.tenant.write(keep(_SITE, msgspec.json.encode(wanted)), keep(_REACHED, _pairs(left)))
            self.assignment = wanted
            await self._begin(checked)

    async def clear(self) -> None:
        """Hold nothing any more."""
        async with self._changing:
            await self._end(set())
            await self.tenant.write(keep(_SITE, None), keep(_REACHED, b"[]"))
            self.assignment, self._evaluation = None, None

    def locate(self, site: str, wanted: Iterable[tuple[Id, int]], protocol: int) -> Located:
        """Say where the log has all documents of some views after the given ones, for another site."""
        if protocol != PROTOCOL:
            raise NetworkError(
                f"a site with protocol {protocol} asks, and this one has {PROTOCOL}: run the same version "
                "of Headgate everywhere"
            )
        assignment = self.assignment
        views = {} if assignment is None else {view.id: view for view in assignment.views}
        fed = () if assignment is None else assignment.feeds.get(site, ())
        first = None
        for identity, document in wanted:
            view = views.get(identity)
            if view is None:
                raise NetworkError(f"view {identity!r} is not at this site")
            if identity not in fed and site != assignment.site:  # type: ignore[union-attr]
                raise NetworkError(f"view {identity!r} is not planned to feed site {site!r} from here")
            if document < view.after:
                raise NetworkError(
                    f"view {identity!r} begins here after document {view.after}, and is wanted after "
                    f"{document}: take it from the source"
                )
            first = document if first is None else min(first, document)
            # Who comes after the last mark hears of it, too.
            self._marked.pop(identity, None)
        store = self.tenant.store
        first_cursor = documents.first_after(store.database, 0 if first is None else first)
        last = self.tenant.position
        cursor = last if first_cursor is None else first_cursor - 1
        begin = store.log.bounds().first
        if cursor < begin - 1 or (first is not None and first < documents.forgotten(store.database)):
            raise NetworkError(
                f"documents after {first} are not kept here any more: take them from the source, or keep "
                "results for longer"
            )
        return Located(cursor, last, PROTOCOL)

    def status(self, *, memory: bool = False) -> SiteStatus:
        """Say how it fares; to count memory takes the kernel tens of milliseconds."""
        assignment, evaluation = self.assignment, self._evaluation
        views = [
            ViewStatus(
                identity,
                each.view.level,
                self._kept.get(identity, each.view.after),
                self._counts.get(identity, 0),
                each.waiting,
            )
            for identity, each in ({} if evaluation is None else evaluation.targets).items()
        ]
        links = [
            LinkStatus(
                name, link.state, link.since, 0 if evaluation is None else len(evaluation.wanted(name))
            )
            for name, link in self._links.items()
        ]
        return SiteStatus(
            None if assignment is None else assignment.network,
            None if assignment is None else assignment.site,
            0 if assignment is None else assignment.epoch,
            self._heard if self._documents is None else self._documents.position,
            views,
            links,
            sum(self._counts.values()),
            self._taken,
            time.process_time(),
            _memory() if memory else None,
            self.failure,
        )

    # What it does

    def _reached(self) -> dict[Id, int]:
        """Return what is kept of how far views have come: with it go the results that are kept."""
        kept = self.tenant.store.setting(_REACHED)
        return dict(_Reached.decode(kept)) if isinstance(kept, bytes) else {}

    async def _begin(self, made: Evaluation | None = None) -> None:
        await self._evaluate(made)
        self._worker = asyncio.get_running_loop().create_task(self._run())

    async def _evaluate(self, made: Evaluation | None = None) -> None:
        """Begin with what is kept: what was known in memory may be more."""
        assignment = self.assignment
        assert assignment is not None
        await self._unlink()
        self._queue = asyncio.Queue(_QUEUE)
        taxonomy = _taxonomy(assignment)
        self._kept = self._reached()
        if made is None:
            made = await asyncio.to_thread(Evaluation, assignment, self._kept, taxonomy)
        made.begin(self._kept)
        self._evaluation = made
        self._fed = _fed(assignment)
        self._marked = {}
        if assignment.documents is not None:
            published = await self._server.tenant(assignment.documents)
            self._documents = await asyncio.to_thread(
                Documents, published, assignment, self._evaluation, taxonomy
            )
        for name in taken(assignment.views, assignment.site):
            self._open(name)

    async def _unlink(self) -> None:
        links, self._links = list(self._links.values()), {}
        await asyncio.gather(*(link.close() for link in links))
        if self._documents is not None:
            self._documents.close()
            self._documents = None

    def _open(self, name: str) -> None:
        assignment, evaluation = self.assignment, self._evaluation
        assert assignment is not None
        assert evaluation is not None
        self._links[name] = Link(
            assignment.site,
            name,
            assignment.neighbours[name],
            lambda: evaluation.wanted(name),
            lambda site, entry: self._queue.put((site, entry)),
        )

    async def _end(self, staying: set[str] | None = None) -> None:
        """End what runs; others than those that stay are told that nothing is taken from them any more."""
        if self._worker is not None:
            self._stopping = True
            await self._worker
            self._worker, self._stopping = None, False
        for name in [] if staying is None else sorted(set(self._links) - staying):
            await self._links.pop(name).leave()
        await self._unlink()
        self._evaluation = None

    async def _run(self) -> None:
        """Take what comes, until the site ends; what fails is told, and tried again from what is kept."""
        while not self._stopping:
            try:
                await self._replay()
                self.failure = None
                while not self._stopping:
                    await (self._take() if self._documents is None else self._read(self._documents))
            except Exception as error:  # noqa: BLE001 -- a site goes on
                self.failure = f"{type(error).__name__}: {error}"
                _LOG.exception("site %s fails, and is tried again", self.tenant.name)
                await asyncio.sleep(_AGAIN)
                if not self._stopping:
                    await self._evaluate()

    async def _read(self, source: Documents) -> None:
        """Compute views from documents, at the source."""
        await source.wait(_MARKS)
        results = await asyncio.to_thread(source.read, time.time_ns() // 1_000) if source.ready else []
        await self._keep(results)

    async def _take(self) -> None:
        """Take what links brought."""
        evaluation = self._evaluation
        assert evaluation is not None
        some: list[tuple[str, Result | Mark]] = []
        try:
            async with asyncio.timeout(_MARKS):
                some.append(await self._queue.get())
        except TimeoutError:
            pass
        while len(some) < TOGETHER and not self._queue.empty():
            some.append(self._queue.get_nowait())
        results: list[Result] = []
        for site, entry in some:
            if isinstance(entry, Mark):
                evaluation.come(site, entry.upto)
                self._heard = max(self._heard, *entry.upto.values(), 0)
            else:
                self._taken += 1
                self._heard = max(self._heard, entry.document)
                results += evaluation.take(site, entry)
        await self._keep(results)
        for name in evaluation.behind():
            if name == evaluation.site:
                await self._replay()
            elif name in self._links:
                await self._links.pop(name).close()
                self._open(name)

    async def _replay(self) -> None:
        """Give views their inputs of this site again, from the log: what they kept is not kept on disk."""
        evaluation = self._evaluation
        assert evaluation is not None
        wanted = evaluation.wanted(evaluation.site)
        begun = evaluation.reached
        late = {view: document for view, document in wanted.items() if document < begun[view]}
        if not late:
            return
        located = self.locate(evaluation.site, late.items(), PROTOCOL)
        blocks = await asyncio.to_thread(
            lambda: list(self.tenant.store.log.read(located.cursor + 1, located.last - located.cursor))
        )
        for block in blocks:
            for position, text in block:
                entry = read_entry(text) if position <= located.last else None
                if isinstance(entry, Result) and entry.document <= begun.get(entry.view, 0):
                    await self._keep(evaluation.take(evaluation.site, entry))
        # The log has no more of them: what those that take them had heard of that may have been dropped.
        evaluation.come(evaluation.site, {view: begun[view] for view in late})

    async def _keep(self, results: Sequence[Result]) -> None:
        """Keep results, with how far views have come; a mark now and then."""
        evaluation = self._evaluation
        if evaluation is None:
            return
        now = time.time_ns() // 1_000
        name = evaluation.site
        entries = [
            msgspec.structs.replace(each, path=[*each.path, [name, now - each.began]]).written()
            for each in results
        ]
        reached = evaluation.reached
        for each in results:
            # A result says that there is nothing else up to its document.
            self._marked[each.view] = each.document
        if time.monotonic() - self._marked_at > _MARKS:
            self._marked_at = time.monotonic()
            upto = {
                view: reached[view]
                for view in self._fed
                if self._marked.get(view, -1) < reached.get(view, -1)
            }
            if upto:
                entries.append(Mark(upto).written())
                self._marked |= upto
            elif not entries and reached != self._kept:
                await self.tenant.write(keep(_REACHED, _pairs(reached)))
                self._kept = reached
        if not entries:
            return
        numbers = [each.document for each in results]

        writes = [keep(_REACHED, _pairs(reached))]
        if time.monotonic() - self._pruned_at > _PRUNE:
            self._pruned_at = time.monotonic()
            writes.append(documents.forget(self.tenant.store.log.bounds().first))

        def also(published: Published) -> list[Write]:
            return [*writes, documents.note(numbers, published.positions)]

        await self.tenant.publish([event for event, _ in entries], [text for _, text in entries], also=also)
        self._kept = reached
        for each in results:
            self._counts[each.view] = self._counts.get(each.view, 0) + 1


def _fed(assignment: Assignment) -> set[Id]:
    """List the views that others take."""
    return {view for some in assignment.feeds.values() for view in some}


def _pairs(reached: Mapping[Id, int]) -> bytes:
    return msgspec.json.encode(list(reached.items()))


def _taxonomy(assignment: Assignment) -> Any:
    if assignment.taxonomy is None:
        return None
    from headgate.service.tenant.contents import read_taxonomy

    return read_taxonomy(assignment.taxonomy)


def _memory() -> int:
    """Return the bytes of this process that are its own."""
    try:
        with open("/proc/self/smaps_rollup", encoding="ascii") as lines:  # noqa: PTH123
            for line in lines:
                if line.startswith("Pss:"):
                    return int(line.split()[1]) * 1_024
    except OSError:
        pass
    return 0
