"""A plan on sites: put there, looked after, changed while documents come, and taken away.

    deploy      every site is told its views
    look        every site is asked how it fares
    repair      sites that do not answer are taken out: those that they fed are fed in another way
    admit       a site that answers again has its views again, and catches up
    relieve     a site that cannot keep up feeds nobody elsewhere, until it is taken back

A change is told to the sites that it concerns, each with a number that rises (`epoch`). Where views have come
to is known by their sites; a change says only from where, never how far.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from headgate.client.asking import Ask
from headgate.engine.dissemination import PlacedView
from headgate.errors import NetworkError, ServiceError
from headgate.network.assignment import PROTOCOL, SOURCE, Assignment, assignments, begins_of, forgotten
from headgate.network.site import SiteStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Self

    from headgate.client.asynchronous import AsyncClient
    from headgate.core.event import Id
    from headgate.engine.dissemination import ChangeEffect, Dissemination
    from headgate.network.assignment import Held, Kind, Neighbour

T = TypeVar("T")
_AT_ONCE = 16
"""Sites that are told something at once."""
_PATIENCE = 60.0
"""Seconds that a site may take to begin."""
_SILENCE = 8.0
"""Seconds after which a site that does not answer counts as one that is gone."""
_LOOK = 0.1
"""Seconds between looks at how far views have come."""
_JSON = {"Content-Type": "application/json"}


class Repair(NamedTuple):
    """What was done about sites that do not answer."""

    failed: tuple[str, ...]
    moved: tuple[Id, ...]
    """Views that are fed in another way now."""
    unfed: tuple[Id, ...]
    """Views that nobody can feed."""
    seconds: float


class Deployment:
    """A network that runs."""

    def __init__(self, kind: Kind, plan: Dissemination, sites: Mapping[str, Neighbour]) -> None:
        if SOURCE not in sites:
            raise NetworkError(f"there is no site {SOURCE!r} among the sites: it is the publisher's")
        self.kind = kind
        self.plan = plan
        self.sites = dict(sites)
        self.epoch = 0
        self.failed: set[str] = set()
        """Sites that did not answer, and were taken out."""
        self.relieved: set[str] = set()
        """Sites that feed nobody elsewhere at present."""
        self.seen: dict[str, SiteStatus | None] = {}
        """How sites fared when they were last looked at for repair."""
        self._untold = False
        """Whether the plan has changed, and not all sites were told."""
        self._told: dict[str, Assignment] = {}
        self._begins: dict[Held, int] = {}
        self._clients: dict[str, AsyncClient] = {}

    async def __aenter__(self) -> Self:
        """Return it."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close its connections; the sites go on."""
        await self.close()

    async def close(self) -> None:
        """Close its connections; the sites go on."""
        await asyncio.gather(*(client.close() for client in self._clients.values()))
        self._clients.clear()

    async def attach(self) -> None:
        """Learn what the sites were told before; those that do not answer count as failed."""
        ask: Ask[Assignment | None] = Ask("GET", "/v1/site/assignment", Assignment | None)
        for name in self.sites:
            try:
                assigned = await self._client(name).send(ask)
            except ServiceError as error:
                if error.status is not None or name == SOURCE:
                    raise NetworkError(f"site {name!r}: {error}") from None
                self.failed.add(name)
                continue
            if assigned is None:
                continue
            if assigned.network != self.kind.network:
                raise NetworkError(
                    f"site {name!r} belongs to network {assigned.network!r}, and not to "
                    f"{self.kind.network!r}: stop that one first"
                )
            self._told[name] = assigned
            self.epoch = max(self.epoch, assigned.epoch)
            self._begins |= {(name, view.id): view.after for view in assigned.views}
        for name in sorted(self.failed & {view.site for view in self.plan.placed()}):
            self.plan.fail_site(name)

    @property
    def told(self) -> Mapping[str, Assignment]:
        """Return what sites were told."""
        return self._told

    @property
    def deployed(self) -> list[PlacedView]:
        """List the views as the sites were told of them, inputs first."""
        views = {(name, view.id): view for name, told in self._told.items() for view in told.views}
        # What is taken by another site as it is has its own site there.
        elsewhere = {
            (each.site, each.view)
            for (_, identity), view in views.items()
            for each in view.inputs
            if each.view == identity
        }
        known = []
        for (name, identity), view in views.items():
            if name == SOURCE or (name, identity) in elsewhere:
                continue
            inputs, host = view.inputs, None
            if inputs[0].view == identity:
                host = inputs[0].site
                inputs = views[host, identity].inputs if (host, identity) in views else ()
            placed = tuple(each.view for each in inputs)
            host = None if host == SOURCE else host
            known.append(PlacedView(identity, view.filter, view.dialect, name, view.level, placed, host))
        return sorted(known, key=lambda view: view.level)

    # What is told to sites

    async def deploy(self) -> None:
        """Tell each site its views, as the plan has them now; a new view begins after the last document."""
        statuses, documents = await self._look_all()
        silent = [name for name, each in statuses.items() if each is None]
        if silent:
            raise NetworkError(f"site {silent[0]!r} does not answer at {self.sites[silent[0]].address}")
        await self._tell(statuses, documents)

    async def _tell(
        self,
        statuses: Mapping[str, SiteStatus | None],
        position: int,
        views: Sequence[PlacedView] | None = None,
    ) -> None:
        self._untold = True
        placed = self.plan.placed() if views is None else views
        own = {view.id: view.site for view in placed}
        reached = {
            view.id: view.reached
            for name, status in statuses.items()
            if status is not None
            for view in status.views
            if own.get(view.id) == name
        }
        alive = {name: each for name, each in self.sites.items() if name not in self.failed}
        begins = begins_of(placed, self._begins, reached, position)
        self.epoch += 1
        wanted = assignments(
            self.kind,
            placed,
            alive,
            self.epoch,
            begins=begins,
            fan_outs=self.plan.fan_outs() if views is None else None,
        )
        changed = {name: each for name, each in wanted.items() if _differ(each, self._told.get(name))}
        # Who takes from a site finds its views there: first those that compute for others.
        few = asyncio.Semaphore(_AT_ONCE)

        async def assign(name: str) -> None:
            async with few:
                await self._assign(changed[name])

        hosts = {view.host for view in placed} - {None}
        for some in (
            [SOURCE],
            [name for name in changed if name in hosts],
            [name for name in changed if name != SOURCE and name not in hosts],
        ):
            await asyncio.gather(*(assign(name) for name in some if name in changed))
        # The source forgets how far it came with a view that it does not feed any more.
        self._begins = forgotten(placed, self._begins) | begins
        self._told |= changed
        self._untold = False

    async def _assign(self, assignment: Assignment) -> None:
        body = msgspec.json.encode(assignment)
        status: SiteStatus = await self._client(assignment.site).send(
            Ask("PUT", "/v1/site", SiteStatus, body, _JSON)
        )
        if status.protocol != PROTOCOL:
            raise NetworkError(
                f"site {assignment.site!r} has protocol {status.protocol}, and this version of Headgate has "
                f"{PROTOCOL}: run the same version everywhere"
            )

    # How sites fare

    async def look(self, names: Iterable[str] | None = None) -> dict[str, SiteStatus | None]:
        """Ask sites how they fare; None for one that does not answer."""
        wanted = list(self.sites if names is None else names)
        return dict(zip(wanted, await asyncio.gather(*map(self._look, wanted)), strict=True))

    async def _look_all(self) -> tuple[dict[str, SiteStatus | None], int]:
        """Ask all sites that were not taken out; returns the last document of the source, too."""
        statuses = await self.look([name for name in self.sites if name not in self.failed])
        source = statuses[SOURCE]
        if source is None:
            raise NetworkError(f"the source does not answer at {self.sites[SOURCE].address}: start it again")
        return statuses, source.documents

    async def _look(self, name: str) -> SiteStatus | None:
        try:
            async with asyncio.timeout(_SILENCE):
                status: SiteStatus = await self._client(name).send(Ask("GET", "/v1/site", SiteStatus))
        except TimeoutError:
            return None
        except ServiceError as error:
            if error.status is not None:
                raise NetworkError(f"site {name!r}: {error}") from None
            return None
        return status

    async def repair(self) -> Repair | None:
        """Take out sites that do not answer; None if all do. What sites were not told yet, they are told."""
        began = time.monotonic()
        statuses, documents = await self._look_all()
        self.seen = statuses
        silent = sorted(name for name, each in statuses.items() if each is None)
        if not silent:
            if self._untold:
                await self._tell(statuses, documents)
            return None
        self.failed |= set(silent)
        self.relieved -= set(silent)
        moved: set[Id] = set()
        unfed: set[Id] = set()
        for name in silent:
            effect = self.plan.fail_site(name)
            moved |= set(effect.moved)
            unfed = (unfed | set(effect.unfed)) - set(effect.fed_again)
        await self._tell(statuses, documents)
        for name in silent:
            self._told.pop(name, None)
        return Repair(tuple(silent), tuple(moved), tuple(unfed), time.monotonic() - began)

    async def admit(self) -> tuple[str, ...]:
        """Have sites again that were taken out and answer now; returns which."""
        statuses = await self.look(sorted(self.failed))
        back = tuple(name for name, each in statuses.items() if each is not None)
        if not back:
            return ()
        for name in back:
            self.plan.restore_site(name)
        self.failed -= set(back)
        self._untold = True
        await self.deploy()
        return back

    async def relieve(self, name: str) -> tuple[Id, ...]:
        """Have a site feed nobody elsewhere, as far as there is another way; returns which views moved."""
        return await self._change(self.plan.relieve_site, name)

    async def take_back(self, name: str) -> tuple[Id, ...]:
        """Let a site that was relieved feed others again; returns which views moved."""
        return await self._change(self.plan.resume_site, name)

    async def _change(self, change: Callable[[str], ChangeEffect], name: str) -> tuple[Id, ...]:
        statuses = await self.look([each for each in self.sites if each not in self.failed])
        begin = statuses[SOURCE]
        if begin is None or statuses.get(name) is None:
            raise NetworkError(f"the source or site {name!r} does not answer: it is left as it is")
        moved = change(name).moved
        self.relieved ^= {name}
        await self._tell(statuses, begin.documents)
        return moved

    async def drain(self, name: str) -> Repair:
        """Have a site hold nothing, and those that it fed be fed in another way, while it runs."""
        began = time.monotonic()
        if name == SOURCE:
            raise NetworkError("the source cannot leave: stop the network")
        statuses, documents = await self._look_all()
        effect = self.plan.fail_site(name)
        self.failed.add(name)
        self.relieved.discard(name)
        await self._tell(statuses, documents)
        await self._client(name).send(Ask("DELETE", "/v1/site"))
        self._told.pop(name, None)
        return Repair((name,), effect.moved, effect.unfed, time.monotonic() - began)

    async def redeploy(self, plan: Dissemination, patience: float = 60.0) -> None:
        """Go over to another plan, of the same views and others, while documents come.

        Views that come begin first. When all that stay have come to where those began, they are fed as the
        new plan says; then views that are gone are taken away.
        """
        before, after = self.deployed, plan.placed()
        known, wanted = {view.id for view in before}, {view.id for view in after}
        coming = [view for view in after if view.id not in known]
        staying = [view for view in before if view.id in wanted]
        moved = {view.id: view.site for view in after}
        for view in staying:
            if moved[view.id] != view.site:
                raise NetworkError(
                    f"view {view.id!r} is at site {view.site!r}, and the new plan has it at "
                    f"{moved[view.id]!r}: plan it where it is"
                )
        statuses, documents = await self._look_all()
        if coming:
            # Until the others have come here, the source feeds those that come.
            await self._tell(
                statuses, documents, [*before, *(view._replace(inputs=(), level=1) for view in coming)]
            )
            await self.wait(documents, patience)
        self.plan = plan
        self.relieved.clear()
        await self._tell(await self.look(statuses), documents)

    async def wait(self, document: int, patience: float = 60.0) -> dict[str, SiteStatus | None]:
        """Wait until every view has come to a document."""
        deadline = time.monotonic() + patience
        left: set[str] = set()
        while True:
            # Asking is work for sites, too: those that are there are asked again at the end.
            began = time.monotonic()
            wanted = [name for name in self.sites if name not in self.failed]
            statuses = await self.look([name for name in wanted if name in left] or wanted)
            late = [
                (name, view.id, view.reached)
                for name, status in statuses.items()
                if status is not None
                for view in status.views
                if view.reached < document
            ]
            whole = len(statuses) == len(wanted)
            left = {name for name, _, _ in late} | {name for name, each in statuses.items() if each is None}
            if not left and whole:
                return statuses
            if time.monotonic() > deadline:
                name, view, reached = late[0] if late else ("", "", 0)
                status = statuses.get(name)
                links = [] if status is None else [f"{each.site}: {each.state}" for each in status.links]
                raise NetworkError(
                    f"{len(late):,} views have not come to document {document} after {patience:g} s: "
                    f"view {view!r} of site {name!r} is at {reached}; links {', '.join(links)}"
                )
            if left:
                await asyncio.sleep(max(_LOOK, 2 * (time.monotonic() - began)))

    def _client(self, name: str) -> AsyncClient:
        if name not in self._clients:
            self._clients[name] = self.sites[name].client(_PATIENCE)
        return self._clients[name]


def _differ(one: Assignment, other: Assignment | None) -> bool:
    return other is None or msgspec.structs.replace(one, epoch=other.epoch) != other


async def look_at(sites: Mapping[str, Neighbour]) -> dict[str, SiteStatus | None]:
    """Ask sites how they fare; None for one that does not answer."""
    return await _ask_each(sites, Ask("GET", "/v1/site?memory=true", SiteStatus), 10.0)


async def clear_all(sites: Mapping[str, Neighbour]) -> int:
    """Have all sites that answer hold nothing; returns how many did."""
    answers = await _ask_each(sites, Ask("DELETE", "/v1/site", bytes), 30.0)
    return sum(each is not None for each in answers.values())


async def _ask_each(sites: Mapping[str, Neighbour], ask: Ask[T], seconds: float) -> dict[str, T | None]:
    async def one(site: Neighbour) -> T | None:
        async with site.client(seconds) as client:
            try:
                return await client.send(ask)
            except ServiceError as error:
                if error.status is not None:
                    raise NetworkError(f"{site.address}: {error}") from None
                return None

    return dict(zip(sites, await asyncio.gather(*map(one, sites.values())), strict=True))
