"""What each site is told: the views that it holds, what they are computed from, and where that comes from.

    source     reads documents, and computes the views that it feeds
    site       takes results of views from the source and from other sites, computes its own, and feeds others

A view that the source feeds stands twice: at the source, which computes it, and at its own site, which takes
it as it is. So does a view whose join runs at the site of one of its inputs. All others stand once.

    {"site": "source", "address": "https://hub.example:8080", "key_file": "keys/source"}
    {"site": "paris", "address": "https://paris.example:8080", "key_file": "keys/paris"}

`key_file` is read from the file's folder; `key` gives the key itself. Such a file is for its owner alone.
"""

from __future__ import annotations

import os
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from headgate.client.asking import Retries
from headgate.client.asynchronous import AsyncClient
from headgate.core.event import Id
from headgate.errors import NetworkError, TableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from headgate.engine.dissemination import PlacedView

    Held = tuple[str, Id]
    """A view, and the site that holds it."""


PROTOCOL = 1
"""What sites say to each other; sites of another number are refused."""
SOURCE = "source"
"""The name of the site of the publisher."""


class Input(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A view that another is computed from, and the site that it is taken from."""

    view: Id
    site: str
    filter: str
    dialect: str


class View(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A view of a site."""

    id: Id
    filter: str
    dialect: str
    level: int
    inputs: tuple[Input, ...] = ()
    """None at the source, which computes it from documents."""
    after: int = 0
    """The document after which it begins."""
    until: int | None = None
    """The last document that it is computed for; it has been moved to another site then."""


class Neighbour(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Another site, as it can be reached."""

    address: str
    key: str | None = None

    def client(self, timeout: float) -> AsyncClient:
        """Return a client that asks once."""
        return AsyncClient(self.address, key=self.key, retries=Retries(1), timeout=timeout)


class Assignment(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What one site is told by one deployment."""

    network: str
    """The name of the network."""
    site: str
    epoch: int
    """Counts deployments and changes; a later one replaces an earlier one."""
    views: tuple[View, ...] = ()
    neighbours: dict[str, Neighbour] = {}
    """Those that it takes something from."""
    feeds: dict[str, tuple[Id, ...]] = {}
    """The views that other sites may take, by site."""
    fan_out: float | None = None
    """How many these may be, at most."""
    documents: str | None = None
    """At the source: the tenant whose events are the documents."""
    carries: str | None = None
    taxonomy: str | None = None
    """As N-Triples."""
    names: dict[str, str] = {}
    """What names mean in filters of records: `nulls`, `names`, `dots`."""
    protocol: int = PROTOCOL

    def check(self) -> None:
        """Refuse what cannot be carried out."""
        if self.protocol != PROTOCOL:
            raise NetworkError(
                f"the assignment of site {self.site!r} has protocol {self.protocol}, and this version of "
                f"Headgate has {PROTOCOL}: run the same version everywhere"
            )
        seen: set[Id] = set()
        for view in self.views:
            if view.id in seen:
                raise NetworkError(f"view {view.id!r} is assigned to site {self.site!r} twice: give it once")
            seen.add(view.id)
            if not view.inputs and self.documents is None:
                raise NetworkError(
                    f"view {view.id!r} of site {self.site!r} has no inputs, and only the source reads "
                    "documents: say what it is computed from"
                )
            for each in view.inputs:
                if each.site != self.site and each.site not in self.neighbours:
                    raise NetworkError(
                        f"view {view.id!r} of site {self.site!r} is fed by site {each.site!r}, whose address "
                        "is not given: add it to the neighbours"
                    )
        fed = sum(map(len, self.feeds.values()))
        if self.fan_out is not None and fed > self.fan_out:
            raise NetworkError(
                f"site {self.site!r} is to feed {fed:,} views at other sites, and its bound is "
                f"{self.fan_out:g}: plan within it"
            )
        for view in self.views:
            for each in view.inputs:
                if each.site == self.site and each.view not in seen:
                    raise NetworkError(
                        f"view {view.id!r} of site {self.site!r} is fed by {each.view!r} of the same site, "
                        "which is not there"
                    )


def taken(views: Iterable[View], site: str) -> dict[str, set[Id]]:
    """List what a site takes from others: the views, by site."""
    views_by_site: dict[str, set[Id]] = {}
    for view in views:
        for each in view.inputs:
            if each.site != site:
                views_by_site.setdefault(each.site, set()).add(each.view)
    return views_by_site


class Kind(NamedTuple):
    """What the views of a network are."""

    network: str
    documents: str
    """The tenant of the source that documents are published to."""
    carries: str | None = None
    taxonomy: str | None = None
    names: Mapping[str, str] = MappingProxyType({})
    """What names mean in filters of records: `nulls`, `names`, `dots`."""


def begins_of(
    placed: Sequence[PlacedView], before: Mapping[Held, int], reached: Mapping[Id, int], position: int
) -> dict[Held, int]:
    """Say after which document each view begins at the sites that hold it.

    Where it is held already, that stays as it was. A view that comes begins after the last document, which is
    at `position`; one that the source feeds from now on, or whose join runs elsewhere, begins there where its
    own site has come to.
    """
    begins: dict[Held, int] = {}
    for view in placed:
        begin = begins[view.site, view.id] = before.get((view.site, view.id), position)
        elsewhere = view.host if view.inputs else SOURCE
        if elsewhere is not None:
            held = (elsewhere, view.id)
            begins[held] = before.get(held, reached.get(view.id, begin))
    return begins


def forgotten(placed: Sequence[PlacedView], begins: Mapping[Held, int]) -> dict[Held, int]:
    """Leave out where views began elsewhere than at their own sites: there they may begin again, later."""
    own = {view.id: view.site for view in placed}
    return {held: at for held, at in begins.items() if own.get(held[1], held[0]) == held[0] != SOURCE}


def assignments(
    kind: Kind,
    placed: Sequence[PlacedView],
    sites: Mapping[str, Neighbour],
    epoch: int,
    *,
    begins: Mapping[Held, int] | None = None,
    fan_outs: Mapping[str, float] | None = None,
) -> dict[str, Assignment]:
    """Say what each site is told, by name.

    A view that the source feeds is computed there, and taken by its own site as it is; so is one whose join
    runs at the site of an input.
    """
    known = {view.id: view for view in placed}
    after, bounds = begins or {}, fan_outs or {}
    views: dict[str, list[View]] = {name: [] for name in sites}
    for view in placed:
        if view.site not in views or view.site == SOURCE:
            raise NetworkError(
                f"view {view.id!r} is planned for site {view.site!r}, which is not among the sites: add it, "
                "with its address"
            )
        inputs = tuple(
            Input(each, known[each].site, known[each].filter, known[each].dialect) for each in view.inputs
        )
        elsewhere = view.host if inputs else SOURCE
        for site in (view.site,) if elsewhere is None else (elsewhere, view.site):
            begin = after.get((site, view.id), 0)
            views[site].append(View(view.id, view.filter, view.dialect, view.level, inputs, begin))
            inputs = (Input(view.id, site, view.filter, view.dialect),)
    feeds: dict[str, dict[str, list[Id]]] = {name: {} for name in views}
    for name, held in views.items():
        # A view that several of a site's views use is sent there once.
        for taken_from, identity in dict.fromkeys(
            (each.site, each.view) for view in held for each in view.inputs
        ):
            if taken_from != name:
                feeds[taken_from].setdefault(name, []).append(identity)
    by_site = {}
    for name, held in views.items():
        near = {each.site for view in held for each in view.inputs if each.site != name}
        by_site[name] = Assignment(
            network=kind.network,
            site=name,
            epoch=epoch,
            views=tuple(held),
            neighbours={each: sites[each] for each in sorted(near)},
            feeds={other: tuple(some) for other, some in feeds[name].items()},
            fan_out=bounds.get(name),
            documents=kind.documents if name == SOURCE else None,
            carries=kind.carries,
            taxonomy=kind.taxonomy,
            names=dict(kind.names),
        )
    return by_site


class _Line(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    site: str
    address: str
    key: str | None = None
    key_file: str | None = None


def read_sites(path: Path) -> dict[str, Neighbour]:
    """Read the sites of a network."""
    known: dict[str, Neighbour] = {}
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror}") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = msgspec.json.decode(line, type=_Line)
        except (msgspec.DecodeError, UnicodeError) as error:
            raise TableError(
                f"{path}, line {number}: {error}: give `site`, `address` and `key_file`"
            ) from None
        if row.site in known:
            raise TableError(f"{path}, line {number}: site {row.site!r} is there already: give it once")
        key = row.key
        if row.key_file is not None:
            try:
                key = (path.parent / row.key_file).read_text("utf-8").strip()
            except (OSError, UnicodeError) as error:
                raise TableError(f"{path}, line {number}: the key cannot be read: {error}") from None
        known[row.site] = Neighbour(row.address, key)
    if SOURCE not in known:
        raise TableError(f"{path} has no site {SOURCE!r}: add the publisher's, under this name")
    return known


def write_sites(path: Path, sites: Mapping[str, Neighbour]) -> None:
    """Write a file of sites, for its owner alone."""
    lines = (msgspec.json.encode(_Line(name, each.address, each.key)) for name, each in sites.items())
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(b"\n".join(lines) + b"\n")
