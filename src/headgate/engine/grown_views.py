"""Views of a network that grows: those it began with, laid out together, and others as they come.

A view that comes later is compared with those that may feed it, and with no other: they are found by what
they name (`Views.names`), since the names of a view that embeds are among those of what it embeds in. What a
later view gives is computed by views of its own: itself, and those that feed it at present. So is what an
earlier view gives that a later one feeds.
"""

from __future__ import annotations

import itertools
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from headgate.plan.costs import costs_of
from headgate.plan.graphs.embeddings import embedding_graph
from headgate.plan.graphs.rewritability import find_rewritings
from headgate.plan.running.options import Option

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from headgate.contents.views import Views
    from headgate.core.arrays import Bools, Floats64, Ints
    from headgate.core.event import Event
    from headgate.core.subscription import Subscription
    from headgate.plan.model import Costs, Embeddings, Rewritings
    from headgate.plan.placement import Placement
    from headgate.plan.running.planner import Settings

    Names: TypeAlias = frozenset[Hashable]


_VIEW = re.compile(r"^([^'\"]*?)\bview (\d+)\b")
"""The first view that a step names, before any text of a filter."""


class _Around(NamedTuple):
    """A later view, laid out with its inputs, which come before it."""

    inputs: tuple[int, ...]
    views: Views

    @property
    def place(self) -> int:
        return len(self.inputs)


class GrownViews:
    """Views by number: as many as there are `subscriptions`, a list that its owner appends to."""

    def __init__(
        self,
        first: Views,
        subscriptions: Sequence[Subscription],
        make: Callable[[Sequence[Subscription]], Views],
    ) -> None:
        self._first = first
        self._subscriptions = subscriptions
        self._make = make
        self._around: dict[int, _Around] = {}

    # What a plan is carried out with

    def result(self, view: int, event: Event) -> Any:
        """Compute what a view gives for an event, from the event itself."""
        if view < len(self._first):
            return self._first.result(view, event)
        around = self._laid_out(view, ())
        return around.views.result(around.place, event)

    def rewritten(self, view: int, inputs: Sequence[int], results: Sequence[Any]) -> Any:
        """Compute the same from what other views give for that event; refuses inputs that do not cover it."""
        if self._together(view, inputs):
            return self._first.rewritten(view, inputs, results)
        around = self._laid_out(view, inputs)
        return around.views.rewritten(around.place, range(len(inputs)), results)

    def written(self, view: int, result: Any) -> Any:
        """Return a result as the one who wrote the view expects it."""
        if view < len(self._first):
            return self._first.written(view, result)
        around = self._around.get(view) or self._laid_out(view, ())
        return around.views.written(around.place, result)

    def size(self, result: Any) -> tuple[int, int]:
        """Count the rows and the bytes of a result that is sent to another site."""
        # A network may begin with nothing, and then does not know what its views are about.
        views = self._first if len(self._first) else next(iter(self._around.values())).views
        return views.size(result)

    def plan_of(self, view: int, inputs: Sequence[int], name: Callable[[int], str]) -> Iterator[str]:
        """Say in lines how a view is computed from others, each called by its name."""
        if self._together(view, inputs):
            numbers: Sequence[int] = range(len(self._first))
            lines = self._first.plan_of(view, inputs)
        else:
            around = self._laid_out(view, inputs)
            numbers = [*inputs, view]
            lines = around.views.plan_of(around.place, range(len(inputs)))

        def named(match_: re.Match[str]) -> str:
            return f"{match_[1]}view {name(numbers[int(match_[2])])}"

        return (_VIEW.sub(named, line) for line in lines)

    def forget(self, view: int) -> None:
        """Let go what was laid out for a view that is gone."""
        self._around.pop(view, None)

    def _together(self, view: int, inputs: Sequence[int]) -> bool:
        """Tell whether a view and its inputs were laid out together at the beginning."""
        return max(view, *inputs) < len(self._first)

    def _laid_out(self, view: int, inputs: Sequence[int]) -> _Around:
        """Lay a later view out with its inputs; kept until it is fed by others."""
        wanted = tuple(inputs)
        known = self._around.get(view)
        if known is None or known.inputs != wanted:
            some = [self._subscriptions[number] for number in (*wanted, view)]
            known = self._around[view] = _Around(wanted, self._make(some))
        return known

    # What new views are compared with

    def add(self, view: int, names: Names) -> None:
        """Take in a view by what it names."""
        self._groups.add(view, names)

    def near(self, names: Iterable[Names], alive: Bools) -> list[int]:
        """List the views that are alive and may embed in one of some that name this, rising."""
        near = {view for each in names for view in self._groups.within(each)}
        return sorted(view for view in near if alive[view])

    @cached_property
    def _groups(self) -> _Groups:
        made = _Groups()
        for view, names in enumerate(names_of(self._first)):
            made.add(view, names)
        return made


class _Groups:
    """Views by what they name: those that name the same are a group, at home with one of the names."""

    def __init__(self) -> None:
        self._members: dict[Names, list[int]] = {}
        self._homes: dict[Hashable, list[Names]] = {}
        self._bare: Names = frozenset()

    def add(self, view: int, names: Names) -> None:
        members = self._members.get(names)
        if members is None:
            members = self._members[names] = []
            if names:
                # With the name that fewest are at home with; any would do.
                home = min(names, key=lambda name: (len(self._homes.get(name, ())), repr(name)))
                self._homes.setdefault(home, []).append(names)
        members.append(view)

    def within(self, names: Names) -> Iterator[int]:
        """Give the views whose names are among some."""
        yield from self._members.get(self._bare, ())
        for name in names:
            for group in self._homes.get(name, ()):
                if group <= names:
                    yield from self._members[group]


def names_of(views: Views) -> Iterator[Names]:
    """Give what each view names."""
    names, labels, starts = views.names, views.labels.tolist(), views.label_offsets.tolist()
    for begin, end in itertools.pairwise(starts):
        yield frozenset(names[label] for label in labels[begin:end])


def options_of(
    views: Views, settings: Settings, first: int, rows: Floats64, sizes: Floats64, placement: Placement
) -> list[tuple[list[Option], Option]]:
    """Find how views from `first` on can be fed: by those before them, and by the source."""
    targets = np.arange(first, len(views), dtype=np.int32)
    embeddings = _earlier(embedding_graph(views, targets=targets, threads=settings.threads))
    rewritings = find_rewritings(
        views.needed, embeddings, settings.search, targets=targets, weights=sizes, threads=settings.threads
    ).rewritings
    costs = costs_of(rewritings, rows, sizes, settings.costs, placement)
    options: list[tuple[list[Option], Option]] = []
    for target in targets.tolist():
        ways = [
            _option(rewritings, costs, number) for number in range(*rewritings.offsets[target : target + 2])
        ]
        source = Option(
            (),
            float(costs.source_utilization[target]),
            float(costs.source_latency[target]),
            (float(costs.source_sent[target]),),
            (float(costs.source_sending[target]),),
            float(costs.source_joining[target]),
        )
        options.append((ways, source))
    return options


def renumbered(option: Option, numbers: Ints) -> Option:
    """Name the inputs of a rewriting by their numbers among all views."""
    return option._replace(inputs=tuple(numbers[list(option.inputs)].tolist()))


def _earlier(embeddings: Embeddings) -> Embeddings:
    """Keep the sources that come before their target."""
    targets = np.repeat(np.arange(len(embeddings.offsets) - 1), np.diff(embeddings.offsets))
    kept = embeddings.sources < targets
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])
    return embeddings._replace(
        offsets=before[embeddings.offsets], sources=embeddings.sources[kept], masks=embeddings.masks[kept]
    )


def _option(rewritings: Rewritings, costs: Costs, number: int) -> Option:
    inputs = slice(*rewritings.input_offsets[number : number + 2])
    return Option(
        tuple(rewritings.inputs[inputs].tolist()),
        float(costs.utilization[number]),
        float(costs.latency[number]),
        tuple(costs.sent[inputs].tolist()),
        tuple(costs.sending[inputs].tolist()),
        float(costs.joining[number]),
        costs.host_of(number),
    )
