"""How views are made of subscriptions, and an index of them; those of a saved plan, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from headgate.contents.kind import FilterSettings
from headgate.contents.registry import content_of, kind_of, room_of_content
from headgate.contents.settings import NAMES
from headgate.core.subscription import Subscription
from headgate.engine.views import views_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from headgate.contents.views import Views
    from headgate.core.event import Event
    from headgate.plan.running.saved_plan import SavedPlan
    from headgate.rdf.taxonomy.taxonomy import Taxonomy


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
        given = list(subscriptions)
        content = content_of((each.dialect for each in given), "the views")
        return room_of_content(content, self.wanted).build(
            Subscription(number, each.filter, each.dialect) for number, each in enumerate(given)
        )

    def matching(self, subscriptions: Sequence[Subscription]) -> Callable[[Event], Iterable[int]]:
        """Return what lists the numbers of the subscriptions that an event matches."""
        index = self.indexed(subscriptions)
        return lambda event: index.numbers(event).tolist()


def views_in(saved: SavedPlan, taxonomy: Taxonomy | None = None) -> tuple[list[Subscription], ViewMaker]:
    """List the subscriptions of a saved plan, by number, and say how views are made of them."""
    dialect = kind_of(saved.about.get("content")).dialects[0]
    given = [
        Subscription(identity, saved.filters.text(number), dialect)
        for number, identity in enumerate(saved.ids)
    ]
    about = saved.about
    return given, ViewMaker.of(about.get("carries"), taxonomy, about.get("names", {}))
