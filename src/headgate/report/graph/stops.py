"""Where an event was stopped in a graph: the place, its filter, and the clauses that failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.graph.model import EDGE, NODE, SUBSCRIPTION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headgate.contents.protocol import Verdict
    from headgate.core.event import Event
    from headgate.graph.changes.view import View
    from headgate.graph.summary import Journey, Outline

SHOWN = 50
"""Stops that are explained; a large graph has thousands, of few kinds."""
_KINDS = {NODE: "node", EDGE: "edge", SUBSCRIPTION: "subscription"}
_FAILED = ("failed", "unknown", "error", "missing")
"""How verdicts of any content begin the line of a clause that did not hold."""


class Failure(NamedTuple):
    """A clause that failed, and what the event says; if there is none to name, why the filter failed."""

    text: str
    seen: str = ""


class Stop(NamedTuple):
    """A place whose filter failed."""

    vertex: int
    name: str
    kind: str
    filter: str
    failing: tuple[Failure, ...]


def stops(view: View, outline: Outline, journey: Journey, event: Event) -> list[Stop]:
    """Explain the first of the places where an event was stopped."""
    found = []
    for vertex in _vertices(outline, journey):
        text = view.filter_of(vertex)
        # A node can be shut to an event without a filter of its own: it was removed.
        if text is not None:
            kind = _KINDS[view.stands_for(vertex)[0]]
            verdict = view.explain_filter(event, vertex)
            found.append(Stop(vertex, view.name(vertex), kind, text, failing(verdict)))
        if len(found) == SHOWN:
            break
    return found


def count(journey: Journey) -> int:
    """Count the places where an event was stopped."""
    return int(np.count_nonzero(journey.stopped)) + int(np.count_nonzero(journey.refused))


def _vertices(outline: Outline, journey: Journey) -> Iterator[int]:
    yield from outline.via[journey.refused].tolist()
    yield from outline.vertex[journey.stopped].tolist()


def failing(verdict: Verdict) -> tuple[Failure, ...]:
    """Read from the lines of a verdict what failed: the word for it, the clause, what the event says."""
    first, *rest = verdict.lines()
    lines = (line.strip() for line in rest)
    clauses = [line.partition(" ")[2].strip() for line in lines if line.startswith(_FAILED)]
    # Three blanks at least stand between a clause and what the event says.
    found = [(text, seen.strip()) for text, _, seen in (line.partition("   ") for line in clauses)]
    return tuple(Failure(*each) for each in found) or (Failure(first.removeprefix("no match: ")),)
