"""What a site is told: the views that it holds, what each is computed from, and where that comes from.

    source     reads documents, and computes the views that it feeds
    site       takes results of views from the source and from other sites, computes its own, and feeds others

A view that the source feeds stands twice: at the source, which computes it, and at its own site, which takes
it as it is. So does a view whose join runs at the site of one of its inputs. All others stand once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from headgate.core.event import Id  # noqa: TC001 -- msgspec reads it
from headgate.errors import NetworkError

if TYPE_CHECKING:
    from collections.abc import Iterable

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
    found: dict[str, set[Id]] = {}
    for view in views:
        for each in view.inputs:
            if each.site != site:
                found.setdefault(each.site, set()).add(each.view)
    return found
