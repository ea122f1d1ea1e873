"""From a plan to what each site is told."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from headgate.errors import NetworkError
from headgate.network.assignment import SOURCE, Assignment, Input, View

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headgate.core.event import Id
    from headgate.engine.dissemination import PlacedView
    from headgate.network.assignment import Neighbour

    Held = tuple[str, Id]
    """A view, and the site that holds it."""


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
    found: dict[Held, int] = {}
    for view in placed:
        begin = found[view.site, view.id] = before.get((view.site, view.id), position)
        elsewhere = view.host if view.inputs else SOURCE
        if elsewhere is not None:
            held = (elsewhere, view.id)
            found[held] = before.get(held, reached.get(view.id, begin))
    return found


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
        if not inputs:
            views[SOURCE].append(
                View(view.id, view.filter, view.dialect, 1, (), after.get((SOURCE, view.id), 0))
            )
            inputs = (Input(view.id, SOURCE, view.filter, view.dialect),)
        elif view.host is not None:
            held_at = after.get((view.host, view.id), 0)
            views[view.host].append(View(view.id, view.filter, view.dialect, view.level, inputs, held_at))
            inputs = (Input(view.id, view.host, view.filter, view.dialect),)
        begin = after.get((view.site, view.id), 0)
        views[view.site].append(View(view.id, view.filter, view.dialect, view.level, inputs, begin))
    feeds: dict[str, dict[str, list[Id]]] = {name: {} for name in views}
    for name, held in views.items():
        # A view that several of a site's views use is sent there once.
        for taken_from, identity in dict.fromkeys(
            (each.site, each.view) for view in held for each in view.inputs
        ):
            if taken_from != name:
                feeds[taken_from].setdefault(name, []).append(identity)
    found = {}
    for name, held in views.items():
        near = {each.site for view in held for each in view.inputs if each.site != name}
        found[name] = Assignment(
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
    return found
