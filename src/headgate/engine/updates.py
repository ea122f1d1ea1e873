"""How an engine changes: subscriptions come, go and are replaced, and what ranks them changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from headgate.engine.inputs import id_of, subscriptions_of
from headgate.engine.refusals import RAISE, RefusedSubscription, add, check_node, check_way
from headgate.errors import HeadgateError, SubscriptionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headgate.core.event import Id
    from headgate.core.ranks import Score, Weights
    from headgate.core.subscription import Subscription
    from headgate.engine.backend import Backend
    from headgate.engine.statistics import Statistics


class Updates:
    """The calls of an engine that change it."""

    backend: Backend
    _statistics: Statistics | None = None

    @overload
    def subscribe(self, subscriptions: Any, *, on_error: Literal["raise"] = "raise") -> None: ...

    @overload
    def subscribe(self, subscriptions: Any, *, on_error: Literal["collect"]) -> list[RefusedSubscription]: ...

    def subscribe(self, subscriptions: Any, *, on_error: str = RAISE) -> list[RefusedSubscription] | None:
        """Add a subscription, or some: all of them or, if one is refused, none. They match from now on.

        With `on_error="collect"` the others are added, and those that are refused are returned.

        >>> from headgate import Engine
        >>> engine = Engine.build()
        >>> some = [{"id": "s1", "filter": "age NOT"}, {"id": "s2", "filter": "age > 30"}]
        >>> [(each.row, each.id) for each in engine.subscribe(some, on_error="collect")]
        [(0, 's1')]
        >>> engine.ids
        ['s2']
        """
        refused: list[RefusedSubscription] | None = [] if check_way(on_error) else None
        added: list[Id] = []
        try:
            for row, each in enumerate(subscriptions_of(subscriptions, refused)):
                if isinstance(each, RefusedSubscription):
                    continue
                try:
                    add(self.backend, each)
                except HeadgateError as error:
                    if refused is None:
                        raise
                    refused.append(RefusedSubscription(row, each.id, str(error)))
                else:
                    added.append(each.id)
        except HeadgateError:
            for identity in added:
                self.backend.unsubscribe(identity)
            raise
        if self._statistics is not None:
            for identity in added:
                self._statistics.begin(identity)
        return None if refused is None else sorted(refused, key=lambda each: each.row)

    def unsubscribe(self, identity: Id) -> None:
        """Remove a subscription; it matches no more."""
        own = id_of(identity)
        self.backend.unsubscribe(own)
        if self._statistics is not None:
            self._statistics.begin(own, gone=True)

    def replace(self, subscription: Subscription | Mapping[str, Any]) -> None:
        """Have a subscription in the place of the one of its id; if it is refused, that one stays.

        Whoever asks at this very moment may find neither.

        >>> from headgate import Engine
        >>> engine = Engine.build([{"id": "s1", "filter": "age > 30"}])
        >>> engine.replace({"id": "s1", "filter": "age > 40"})
        >>> engine.match({"age": 35})
        []
        """
        found = subscriptions_of(subscription)
        if len(found) != 1:
            raise SubscriptionError(f"{len(found)} subscriptions are given: give one")
        (wanted,) = found
        if id_of(wanted.id) not in self.backend:
            raise SubscriptionError(f"there is no subscription {wanted.id!r} here")
        check_node(wanted, routed=self.backend.routed)
        self.backend.replace(wanted)
        if self._statistics is not None:
            self._statistics.begin(wanted.id)

    def set_score(self, identity: Id, score: Score) -> None:
        """Give a subscription another score."""
        self.backend.set_score(id_of(identity), score)

    def set_weights(self, identity: Id, weights: Weights | None) -> None:
        """Give the clauses of a subscription other weights."""
        self.backend.set_weights(id_of(identity), weights)

    def compact(self) -> None:
        """Fold all changes into what was built: it is as quick then as if it were built anew."""
        self.backend.compact()
