"""Two engines for a set of changes: of the subscriptions before, and after.

Without ranks and graph a subscription matches whatever the others are: then the two hold changed ones only.
Workers make such engines for themselves, of what is sent to them, so that they can be asked whenever a
DataFrame is.
"""

from __future__ import annotations

import pickle
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from headgate.backtest.changes import Trial, read_changes
from headgate.contents.registry import kind_of, room_at
from headgate.core.snapshot import shard_places
from headgate.core.subscription import Subscription
from headgate.core.versions.stores import located
from headgate.engine.backend import PlainFilters, RankedFilters
from headgate.engine.engine import Engine
from headgate.ranking.filters.index import RankedIndex
from headgate.runtime.engines import Runtime
from headgate.runtime.operations import subscription_id
from headgate.runtime.targets import Sources, open_target, opened_as

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from headgate.backtest.changes import ParsedRow, Row
    from headgate.core.event import Id
    from headgate.engine.question import Top
    from headgate.runtime.operations import Change
    from headgate.runtime.targets import Openable, Target
    from headgate.tables.places import Format


@dataclass(frozen=True)
class FewEngine:
    """An engine of some subscriptions, that understands them as a snapshot does."""

    place: str
    digest: str
    subscriptions: bytes

    @classmethod
    def of(cls, target: Target, subscriptions: Sequence[Subscription]) -> FewEngine | None:
        """Make one ready to be sent; None if there are no subscriptions."""
        return cls(target.place, target.digest, pickle.dumps(subscriptions)) if subscriptions else None

    def open(self) -> Runtime:
        """Index the subscriptions."""
        return opened_as(self.place, self.digest, self._build)

    def _build(self, path: Path) -> Runtime:
        room = room_at(shard_places(path)[0])
        # The driver wrote it, as all of a task.
        subscriptions: list[Subscription] = pickle.loads(self.subscriptions)
        return Runtime.of(PlainFilters(room.build(subscriptions), room))


@dataclass(frozen=True)
class ChangedEngine:
    """A snapshot in one piece, with changes that it takes."""

    place: str
    digest: str
    changes: bytes

    @classmethod
    def of(cls, target: Target, changes: Sequence[Change]) -> ChangedEngine:
        """Make one ready to be sent."""
        return cls(target.place, target.digest, pickle.dumps(list(changes)))

    def open(self) -> Runtime:
        """Open the snapshot, and do the changes."""
        engines = opened_as(self.place, self.digest, lambda place: Runtime.open(place, verify=False))
        for change in pickle.loads(self.changes):
            engines.apply(change)
        return engines


@dataclass(frozen=True)
class TrialResult:
    """Changes that were tried, and the engines to compare; None is one without subscriptions."""

    trial: Trial
    whole: Target
    """The snapshot that was given."""
    target: Target
    """What both ask of events: the attributes that either looks at."""
    numbered: bool
    """Whether ids of subscriptions are whole numbers."""
    before: Openable | None
    after: Openable | None
    saved: Path | None = None
    """The whole snapshot with the changes, if there was need for it."""
    build_seconds: float = 0.0

    @property
    def sources(self) -> Sources | None:
        """Return where events may enter a graph: where nodes come and go, at those of either snapshot."""
        both = tuple(each for each in (self.before, self.after) if each is not None)
        return Sources(both) if self.whole.graph else None

    def save(self, folder: Path) -> tuple[Path, float]:
        """Write the whole snapshot with the changes, unless that was done; returns the seconds, too."""
        if self.saved is not None:
            return self.saved, self.build_seconds
        begun = time.monotonic()
        engine = Engine.open(self.whole.shards[0].place, verify=False)
        self.trial.again(engine)
        engine.save(folder / "after")
        return folder / "after", time.monotonic() - begun


def try_changes(snapshot: str, form: Format, rows: list[Row], folder: Path, top: Top | None) -> TrialResult:
    """Try changes on a snapshot; `form` is that of their table.

    The folder is for snapshots, of which nobody needs to see more than what they say of events.
    """
    whole = open_target(snapshot, top=top)
    dialect = kind_of(whole.content).dialects[0]
    if whole.graph or top is not None:
        engine = Engine.open(whole.place, verify=False)
        size = engine.graph.view.subscriptions if whole.graph else len(engine)
        numbered = whole.numbered if size else None
        changes = read_changes(
            rows, form, dialect, numbered=numbered, numbered_nodes=whole.graph and whole.numbered_nodes
        )
        trial = Trial(engine, numbered)
        trial.take(changes, _filters(engine, changes))
        begun = time.monotonic()
        engine.save(folder / "after")
        seconds = time.monotonic() - begun
        compared = _compared(trial, whole, whole, open_target(str(folder / "after"), top=top))
        changed = ChangedEngine.of(whole, trial.accepted)
        return TrialResult(trial, whole, *compared, whole.groups(0)[0], changed, folder / "after", seconds)
    current = _Current(located(whole.place), ranked=whole.ranked)
    numbered = whole.numbered if current.size else None
    changes = read_changes(rows, form, dialect, numbered=numbered)
    old = current.named(changes)
    trial = Trial(current.engine(old), numbered)
    trial.take(changes, {each.id: each.filter for each in old})
    both = (_saved(current.engine(old), folder / "few-before"), _saved(trial.engine, folder / "few-after"))
    before, after = (FewEngine.of(whole, some) for some in (old, current.of_engine(trial.engine)))
    return TrialResult(trial, whole, *_compared(trial, whole, *both), before, after)


def _compared(trial: Trial, whole: Target, *targets: Target | None) -> tuple[Target, bool]:
    """Say what two snapshots ask of events, and whether ids of subscriptions are whole numbers in them."""
    both = [each for each in targets if each is not None]
    if not both:
        # Whoever came has gone again.
        named = list(trial.changes)
        return whole, all(isinstance(each, int) for each in named) if named else whole.numbered
    attributes = {path for each in both for path in each.attributes}
    compared = frozenset(path for each in both for path in each.compared)
    target = replace(both[0], attributes=tuple(sorted(attributes)), compared=compared)
    return target, all(each.numbered for each in both)


def _named(asked: Iterable[ParsedRow]) -> Iterator[Id]:
    """Name the subscriptions that changes are about."""
    for each in asked:
        identity = None if each.change is None else subscription_id(each.change)
        if identity is not None:
            yield identity


class _Current:
    """The subscriptions of a snapshot without a graph, in one piece or in shards."""

    def __init__(self, path: Path, *, ranked: bool) -> None:
        places = shard_places(path)
        # One room for all: that of RDF has one taxonomy.
        self._room: Any = room_at(places[0])
        self._ranked = ranked
        if ranked:
            self._indexes: list[Any] = [
                RankedIndex.open(each, room=self._room, verify=False) for each in places
            ]
        else:
            self._indexes = [self._room.open(each, verify=False) for each in places]
        self.size = sum(map(len, self._indexes))

    def named(self, asked: Iterable[ParsedRow]) -> list[Subscription]:
        """List the subscriptions that changes are about, as they are now."""
        subscriptions: dict[Id, Subscription] = {}
        for identity in _named(asked):
            for index in self._indexes:
                if identity in index:
                    score = index.score(identity) if self._ranked else 0.0
                    subscriptions[identity] = Subscription(
                        identity, index.filter(identity), self._room.dialect, score=score
                    )
        return list(subscriptions.values())

    def of_engine(self, engine: Engine) -> list[Subscription]:
        """List the subscriptions of an engine that was made here and changed since."""
        dialect = self._room.dialect
        return [Subscription(each, engine.backend.filter(each) or "", dialect) for each in engine.ids]

    def engine(self, subscriptions: Sequence[Subscription]) -> Engine:
        """Build an engine of some subscriptions, that takes and refuses what the whole would."""
        if not self._ranked:
            return Engine(PlainFilters(self._room.build(subscriptions), self._room))
        relaxed = all(index.relaxed for index in self._indexes)
        ranked = RankedIndex.build(subscriptions, room=self._room, relaxed=relaxed)
        return Engine(RankedFilters(ranked, self._room))


def _saved(engine: Engine, path: Path) -> Target | None:
    if not len(engine):
        return None
    engine.save(path)
    return open_target(str(path))


def _filters(engine: Engine, asked: Iterable[ParsedRow]) -> dict[Id, str]:
    """List the filters that the subscriptions of changes have now."""
    live, filters = Runtime.of(engine.backend), {}
    for identity in _named(asked):
        if identity not in live:
            continue
        filters[identity] = engine.backend.filter(identity) or ""
    return filters
