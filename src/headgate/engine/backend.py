"""What stands behind an engine: one protocol, which filters alone, ranked filters and a graph fulfil.

    Engine ──► Backing ──┬── PlainFilters     an index of one kind of content, or of several as one
                         ├── RankedFilters    the same, with scores and clauses
                         └── GraphFilters     a graph, perhaps with the clauses of its subscriptions

An engine checks and converts what it is given, and asks this. Jobs and streams ask it about many events at
once, with ids in the place of theirs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, cast

from headgate.contents.protocol import Measures, TaxonomyAware, slice_of
from headgate.contents.registry import kind_of
from headgate.core.ranks import EXACT, Best
from headgate.engine.question import ALL
from headgate.errors import GraphError, SubscriptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from headgate.contents.portions import Portion
    from headgate.contents.protocol import CheckCosts, Content, ContentRoom, Verdict
    from headgate.contents.results import Home
    from headgate.core.event import Event, Id
    from headgate.core.ids import Ids
    from headgate.core.ranks import Score, Weights
    from headgate.core.subscription import Subscription
    from headgate.engine.question import Question, Top
    from headgate.graph.index import GraphIndex
    from headgate.graph.ranked.ranked import RankedMatch
    from headgate.ranking.filters.explain import RankExplanation
    from headgate.ranking.filters.index import RankedIndex
    from headgate.rdf.taxonomy.taxonomy import Taxonomy

    Column = pa.Array[Any]
    Events = pa.RecordBatch | Sequence[Event]


MOST = 1 << 24
"""Answers that are found together, in memory, about."""
_NO_CLAUSES = "clauses are not ranked here: build the engine with ranked=True"


class Backend(ABC):
    """Subscriptions, to be asked and changed."""

    ranked: ClassVar[bool] = False
    """Whether there are scores."""
    routed: ClassVar[bool] = False
    """Whether there is a graph."""

    def __init__(self, index: Any, room: ContentRoom) -> None:
        self.index = index
        self.room = room
        self.changes = 0
        """How often subscriptions were changed since this was built or opened."""
        self._numbered: bool | None = None

    # What is here

    def __len__(self) -> int:
        """Count the subscriptions."""
        return len(self.index)

    def __contains__(self, identity: Id) -> bool:
        """Tell whether there is a subscription of this id."""
        return identity in self.index

    @property
    def built(self) -> Ids:
        """Return the ids of what was built or opened; those of now, where that is as easy."""
        ids: Ids = self.index.ids
        return ids

    @property
    def ids(self) -> list[Id]:
        """List the ids, sorted."""
        return self.built[:]

    @property
    def numbered(self) -> bool:
        """Tell whether ids are whole numbers rather than text; without any, they are text."""
        if self._numbered is None:
            # Asked about often, and ids of one type stay together.
            built = self.built
            self._numbered = len(built) > 0 and built.numbered
        return self._numbered

    @property
    def changed(self) -> bool:
        """Tell whether anything was changed since this was built or opened."""
        return self.changes > 0

    @property
    def contents(self) -> list[Content]:
        """List the indexes of filters that events are held against."""
        return [self.index]

    @property
    def looked_at(self) -> list[Any]:
        """List what knows which attributes are looked at: filters, and clauses by which they are ranked."""
        return [*self.contents]

    @property
    def score_attributes(self) -> set[tuple[str, ...]]:
        """Return what scores that depend on the event look at."""
        return set()

    @property
    def graph(self) -> GraphIndex:
        """Return the graph; refuses if there is none."""
        raise GraphError("there is no graph here: build the engine with nodes and edges")

    @property
    def taxonomy(self) -> Taxonomy | None:
        """Return the taxonomy through which filters see events, if there is one."""
        for each in (self.index, self.room):
            if isinstance(each, TaxonomyAware) and each.taxonomy is not None:
                return cast("Taxonomy", each.taxonomy)
        return None

    def filter(self, identity: Id) -> str | None:
        """Return the text of a subscription's filter; None if it has none of its own."""
        text: str = self.index.filter(identity)
        return text

    def plain(self, identity: Id) -> str | None:
        """Return the text of a subscription's filter as people write it; None if it has none of its own."""
        text = self.filter(identity)
        return None if text is None else kind_of(self.room.room_name).plain(text)

    def homes(self, ids: Sequence[Id]) -> Iterable[Home | None]:
        """Find filters of subscriptions: the index that has each, and its id there; None if one is gone."""
        return [(self.index, identity) for identity in ids]

    # Asking about one event

    def match(self, event: Event) -> list[Id]:
        """List the subscriptions that get an event, sorted."""
        ids: list[Id] = self.index.match(event)
        return ids

    def explain(self, event: Event, identity: Id) -> Verdict:
        """Say why a subscription gets an event or not."""
        verdict: Verdict = self.index.explain(event, identity)
        return verdict

    def comes_to(self, event: Event, identity: Id) -> bool:
        """Tell whether an event comes to a subscription, whether or not its filter holds."""
        del event, identity
        return True

    @abstractmethod
    def top(self, event: Event, top: Top) -> list[RankedMatch] | list[Best]:
        """List the best subscriptions of an event."""

    def explain_rank(self, event: Event, identity: Id, top: Top) -> RankExplanation:
        """Say why a subscription has its rank, and what it lacked to be among the best."""
        from headgate.ranking.filters.explain import explain_exact

        if top.mode != EXACT:
            self.relaxed()
        verdict = self.explain(event, identity)
        whole = self.top(event, top._replace(k=len(self) + 1))
        best = [Best(each.subscription, each.value) for each in whole]
        return explain_exact(best, Best(identity, self._score(identity)), top.k, verdict)

    def _score(self, identity: Id) -> float:
        """Return what a subscription is ranked by at best."""
        del identity
        return 0.0

    # Asking about many

    def at_once(self, top: Top | None, most: int) -> int:
        """Say how many events may be asked about together, if `most` answers fit into memory."""
        del top
        return most

    def ask(
        self, events: Events, ids: Column, question: Question = ALL, most: int = MOST
    ) -> Iterator[Portion]:
        """Find all matches of events, or the best of each, in portions of about `most` answers.

        Events are told of by their `ids`. The best of an event are all in one portion.
        """
        top = question.top
        if top is None:
            yield from self.index.ask(events, ids)
            return
        wanted = top.wanted(events)
        if wanted is not None:
            top = top._replace(k=int(wanted.max(initial=0)), column=None)
            if not top.k:
                return
        for begin, some, names in in_slices(events, ids, self.at_once(top, most)):
            portion = self._best(some, names, top).moved(begin)
            yield portion if wanted is None else portion.some(portion.ranks <= wanted[portion.rows])

    def check_costs(self, events: Events) -> CheckCosts | None:
        """Count what is checked for some events, by subscription; None where that is not known."""
        del events
        return None

    def _best(self, events: Events, ids: Column, top: Top) -> Portion:
        from headgate.engine.answers import one_by_one

        return one_by_one(self.top, events, ids, top)

    def check_sources(self, events: Events, ids: Column) -> None:
        """Refuse events of which one enters a graph at no node."""
        del events, ids

    # Changing

    def subscribe(self, subscription: Subscription) -> None:
        """Add a subscription; it matches from now on."""
        self._put(subscription, self._prepare(subscription))

    def _prepare(self, subscription: Subscription) -> Any:
        """Compile a subscription, or refuse it; nothing is changed."""
        if subscription.weights is not None and not self.weighs:
            raise SubscriptionError(
                f"subscription {subscription.id!r} has weights, and clauses are not ranked here: "
                "build the engine with ranked=True, or leave them out"
            )
        return self.index.prepare(subscription)

    def _put(self, subscription: Subscription, prepared: Any) -> None:
        self.index.subscribe(subscription, prepared)
        self._numbered = isinstance(subscription.id, int)
        self.changes += 1

    @property
    def weighs(self) -> bool:
        """Tell whether clauses may have weights."""
        return False

    def unsubscribe(self, identity: Id) -> None:
        """Remove a subscription; it matches no more."""
        self.index.unsubscribe(identity)
        self.changes += 1

    def replace(self, subscription: Subscription) -> None:
        """Have a subscription in the place of another of its id, or refuse it and leave that one.

        Whoever asks at this very moment may find neither.
        """
        prepared = self._prepare(subscription)
        self.unsubscribe(subscription.id)
        self._put(subscription, prepared)

    def set_score(self, identity: Id, score: Score) -> None:
        """Give a subscription another score."""
        if not self.ranked:
            raise SubscriptionError("nothing is ranked here: build the engine with ranked=True")
        self.index.set_score(identity, score)
        self.changes += 1

    def set_weights(self, identity: Id, weights: Weights | None) -> None:
        """Give the clauses of a subscription other weights."""
        self.relaxed().set_weights(identity, weights)
        self.changes += 1

    def relaxed(self) -> Any:
        """Return the clauses; refuses if there are none."""
        raise SubscriptionError(_NO_CLAUSES)

    def compact(self) -> None:
        """Fold what was changed into what was built."""
        self.index.compact()

    def save(self, path: Path, *, source: Mapping[str, object] | None = None) -> None:
        """Write a snapshot; `source` says what it was built from."""
        self.index.save(path, source=source)


def in_slices(events: Events, ids: Column, size: int) -> Iterator[tuple[int, Any, Column]]:
    """Take some events at a time: the row of the first, the events, and their ids."""
    for begin in range(0, len(events), size):
        some = slice_of(events, begin, begin + size)
        yield begin, some, ids.slice(begin, len(some))


class PlainFilters(Backend):
    """Filters alone: all that match are equally good."""

    def check_costs(self, events: Events) -> CheckCosts | None:
        """Ask the index, if it can tell."""
        return self.index.check_costs(events) if isinstance(self.index, Measures) else None

    def top(self, event: Event, top: Top) -> list[RankedMatch] | list[Best]:
        """List the first matches."""
        if top.mode != EXACT:
            self.relaxed()
        return [Best(identity, 0.0) for identity in self.match(event)[: top.k]]


class RankedFilters(Backend):
    """Filters with scores, and perhaps with clauses that have weights."""

    index: RankedIndex
    ranked = True

    @property
    def contents(self) -> list[Content]:
        """List the filters as they are indexed by rank."""
        return [self.index.content]

    @property
    def looked_at(self) -> list[Any]:
        """List the filters, and their clauses."""
        return [*self.contents, *(self.index.clauses.looked_at if self.index.relaxed else ())]

    @property
    def score_attributes(self) -> set[tuple[str, ...]]:
        """Return what scores that depend on the event look at."""
        return self.index.score_attributes

    def homes(self, ids: Sequence[Id]) -> Iterable[Home | None]:
        """Find filters by rank."""
        return self.index.homes(ids)

    def top(self, event: Event, top: Top) -> list[RankedMatch] | list[Best]:
        """Ask the scores, or the clauses."""
        return self.index.top(event, top.k, top.mode, factors=top.weighing)

    def explain_rank(self, event: Event, identity: Id, top: Top) -> RankExplanation:
        """Ask the scores, or the clauses."""
        return self.index.explain_rank(event, identity, top.k, top.mode, factors=top.weighing)

    def at_once(self, top: Top | None, most: int) -> int:
        """Say how many events may have all subscriptions as answers, or all clauses that are asked."""
        each = len(self.index) if top is None else min(top.k, len(self.index))
        if top is not None and top.mode != EXACT and self.index.relaxed:
            each = self.index.clauses.asked + top.k
        return max(1, most // max(1, each))

    def _best(self, events: Events, ids: Column, top: Top) -> Portion:
        return self.index.best(events, ids, top.k, top.mode, factors=top.weighing)

    @property
    def weighs(self) -> bool:
        """Tell that clauses may have weights: an index without them passes over these."""
        return True

    def relaxed(self) -> Any:
        """Return the clauses; refuses if there are none."""
        return self.index.clauses
