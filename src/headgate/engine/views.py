"""Subscriptions as views, of the kind of content that their dialects belong to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from headgate.contents.kind import FilterSettings
from headgate.contents.registry import content_at, content_of, is_content, kind_of, room_of_content
from headgate.contents.settings import NAMES
from headgate.core.rooms import RANKING
from headgate.core.snapshot import room_of
from headgate.core.subscription import Subscription
from headgate.core.versions.current import resolved
from headgate.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from headgate.contents.kind import Kind
    from headgate.contents.views import Views
    from headgate.core.event import Event
    from headgate.core.ids import Ids
    from headgate.plan.running.saved_plan import SavedPlan
    from headgate.rdf.taxonomy.taxonomy import Taxonomy


_USUAL = FilterSettings()


def views_of(
    subscriptions: Sequence[Subscription],
    *,
    carries: str | None = None,
    wanted: FilterSettings = _USUAL,
) -> Views:
    """Make views of subscriptions, in their order; their dialects must belong to one kind.

    `carries` is what views over records give, ROW (as they do if it is left out) or KEY.

    >>> from headgate.core.subscription import Subscription
    >>> views = views_of([Subscription("s1", "//a{id}", "xpath"), Subscription("s2", "//a//b{id}", "xpath")])
    >>> type(views).__name__, views.plan_of(0, [0])
    ('XmlViews', ['node 0 a:', '  scan view 0 node 0 a (id)', '  project id', 'reduce along //0'])
    """
    kind = kind_of(content_of((each.dialect for each in subscriptions), "the views"))
    _check_carries(carries, kind)
    wrong = [name for name in wanted.said if name not in kind.settings]
    if "taxonomy" in wrong:
        raise PlanError("a taxonomy is for views over RDF: leave it out")
    if wrong:
        raise PlanError(
            f"{wrong[0]}={getattr(wanted, wrong[0])!r} is for views over records, and these are over "
            f"{kind.title}: leave it out"
        )
    return kind.views(subscriptions, carries=carries, wanted=wanted)


def views_at(path: Path, *, carries: str | None = None) -> tuple[Ids, Views]:
    """Make views of the subscriptions in a snapshot of filters, ranked or not, in the order of their ids.

    Those over RDF see events through the snapshot's taxonomy.
    """
    path = resolved(path)
    kind = kind_of(check_views(path, carries=carries))
    if room_of(path) != RANKING:
        return kind.views_at(path, carries=carries)
    from headgate.ranking.filters.base import CONTENT, open_frozen

    # Inside, filters are in the order of their ranks.
    ranked = open_frozen(path, verify=True)
    order = ranked.rows.argsort().tolist()
    return ranked.ids, kind.views_at(path / CONTENT, carries=carries, order=order)[1]


def check_views(path: Path, *, carries: str | None = None) -> str:
    """Name the kind of a snapshot that views can be made of; refuses another."""
    room = room_of(path)
    if room == RANKING:
        room = content_at(path)
    if is_content(room) and len(kind_of(room).kinds) > 1:
        raise PlanError(
            f"snapshot {path} has filters of {kind_of(room).title}, and a plan is of one kind of content: "
            "give a snapshot of one of them"
        )
    if not is_content(room):
        raise PlanError(
            f"snapshot {path} is a snapshot of {room!r}, and views are made of subscriptions alone: "
            "give a snapshot of the subscriptions, in one piece and without a graph"
        )
    _check_carries(carries, kind_of(room))
    return room


def _check_carries(carries: str | None, kind: Kind) -> None:
    if carries is not None and kind.documents:
        raise PlanError(f"carries={carries!r} is for views over records: leave it out")


class ViewMaker(NamedTuple):
    """What is the same for all views that are made."""

    carries: str | None = None
    wanted: FilterSettings = FilterSettings()

    @classmethod
    def of(cls, carries: str | None, taxonomy: Taxonomy | None, names: Mapping[str, Any]) -> ViewMaker:
        """Return it for views as a plan, or a site of a network, has written them down."""
        return cls(carries, FilterSettings(taxonomy=taxonomy, **names))

    @property
    def settings(self) -> dict[str, str]:
        """Return what names mean, where it is not as usual."""
        return {name: getattr(self.wanted, name) for name in NAMES if name in self.wanted.said}

    def views(self, subscriptions: Sequence[Subscription]) -> Views:
        """Make views, in the order of subscriptions."""
        return views_of(subscriptions, carries=self.carries, wanted=self.wanted)

    def indexed(self, subscriptions: Iterable[Subscription]) -> Any:
        """Index subscriptions by their numbers."""
        rows = list(subscriptions)
        content = content_of((each.dialect for each in rows), "the views")
        return room_of_content(content, self.wanted).build(
            Subscription(number, each.filter, each.dialect) for number, each in enumerate(rows)
        )

    def matching(self, subscriptions: Sequence[Subscription]) -> Callable[[Event], Iterable[int]]:
        """Return what lists the numbers of the subscriptions that an event matches."""
        index = self.indexed(subscriptions)
        return lambda event: index.numbers(event).tolist()


def views_in(saved: SavedPlan, taxonomy: Taxonomy | None = None) -> tuple[list[Subscription], ViewMaker]:
    """List the subscriptions of a saved plan, by number, and say how views are made of them."""
    dialect = kind_of(saved.about.get("content")).dialects[0]
    subscriptions = [
        Subscription(identity, saved.filters.text(number), dialect)
        for number, identity in enumerate(saved.ids)
    ]
    about = saved.about
    return subscriptions, ViewMaker.of(about.get("carries"), taxonomy, about.get("names", {}))
