"""What the plan room asks of a content room: which views can be computed from which, in numbers.

A view is a filter with what it gives for an event. A source view *embeds* in a target view if, on every
event, whatever the target gives can only come from what the source gives. What the target's result is made of
is a set of up to 64 items; through its embeddings a source *covers* some of them. Views that together cover
all items of a target can compute it: that is a rewriting.

Embedding is a preorder: it is reflexive and transitive. If u embeds in v, `labels` of u are among those of v
and `demands` of u among the `offers` of v (necessary, not sufficient: for leaving pairs out quickly).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from headgate.core.arrays import Bools, Ints, Ints32, Words
    from headgate.core.event import Event


class Results(Protocol):
    """Views by number, as far as a plan is carried out with them."""

    def __len__(self) -> int:
        """Count the views."""

    def result(self, view: int, event: Event) -> Any:
        """Compute what a view gives for an event, from the event itself: a value that has `==`."""

    def rewritten(self, view: int, inputs: Sequence[int], results: Sequence[Any]) -> Any:
        """Compute the same from what other views give for that event; refuses inputs that do not cover it."""

    def size(self, result: Any) -> tuple[int, int]:
        """Count the rows and the bytes of a result that is sent to another site."""

    def written(self, view: int, result: Any) -> Any:
        """Return a result as the one who wrote the view expects it."""


class Rewriting(Protocol):
    """How a view is computed from others, made once for all events."""

    def run(self, results: Sequence[Any]) -> Any:
        """Compute what the view gives from what its inputs give for one event, in their order."""


class Pairs(NamedTuple):
    """Pairs of views, and places for what is found of them."""

    sources: Ints32
    targets: Ints32
    embeds: Bools
    """Whether the source embeds in the target."""
    masks: Words
    """Which items it covers."""


class Views(Results):
    """Views by number, of one content room, laid out in arrays that the room fills when it is given them.

    Sites compute some of them and send results to each other. Can be pickled, so that workers get them.
    """

    label_offsets: Ints
    """Where the labels of each view begin in `labels`; one more at the end."""
    labels: Ints32
    """The labels of all views, rising within each view, counted from 0."""
    names: Sequence[Hashable]
    """What labels stand for, by number: the same in all views of the room."""
    demands: Words
    """Bits, two words a view, which must be among the `offers` of what it embeds in."""
    offers: Words
    """Bits, two words a view."""
    needed: Words
    """The items of each view, as bits; 0 for a view that cannot be rewritten at all."""
    equals: Ints32
    """For each view the first that is written alike, up to order: they give the same."""

    @abstractmethod
    def rewriting(self, view: int, inputs: Sequence[int]) -> Rewriting:
        """Make what computes a view from others; refuses inputs that do not cover it."""

    @abstractmethod
    def pack(self, result: Any) -> Any:
        """Return a result for JSON; None if it is nothing."""

    @abstractmethod
    def unpack(self, view: int, packed: Any) -> Any:
        """Return the result of a view that was packed."""

    @abstractmethod
    def plan_of(self, view: int, inputs: Sequence[int]) -> list[str]:
        """Say in lines how a view is computed from others: what is taken from where, joined, selected."""

    @abstractmethod
    def _cover(self, pairs: Pairs) -> None:
        """Find what can be said of pairs of views."""

    def coverage(self, sources: Ints32, targets: Ints32) -> tuple[Bools, Words]:
        """Tell for pairs of views whether the source embeds in the target, and which items it covers.

        Safe to call from several threads at once.
        """
        sources, targets = (np.ascontiguousarray(each, np.int32) for each in (sources, targets))
        embeds = np.zeros(len(sources), np.bool_)
        masks = np.zeros(len(sources), np.uint64)
        self._cover(Pairs(sources, targets, embeds, masks))
        return embeds, masks

    def rewritten(self, view: int, inputs: Sequence[int], results: Sequence[Any]) -> Any:
        """Compute what a view gives from what others give for the same event."""
        return self.rewriting(view, inputs).run(results)

    def written(self, view: int, result: Any) -> Any:
        """Return a result as it is, where views are kept as they were written."""
        del view
        return result
