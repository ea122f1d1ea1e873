"""A graph and the path of an event in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.graph import summary
from headgate.report import words

if TYPE_CHECKING:
    from headgate.core.event import Event

LAYERS = {
    summary.PUBLISHER: "publishers",
    summary.INTERMEDIARY: "intermediaries",
    summary.SUBSCRIBER: "subscribers",
    summary.ISOLATED: "isolated nodes",
}
SIDES = {
    summary.ANYWHERE: "in no cycle",
    summary.BEFORE: "before the core",
    summary.CORE: "the core",
    summary.BEHIND: "behind the core",
    summary.ASIDE: "aside",
}
GROUPS = (
    "A band is the edges from one box to another, with their number; its width grows with the logarithm of "
    "that number."
)
INSIDE = "Edges inside a box are counted in it."
BOW_TIE = (
    "The core is the largest strongly connected component; intermediaries before it lead to it, those behind "
    "it are led to by it, those aside are neither."
)
COUNTS = "Numbers are what the event reached / all there are; the source counts as reached."


def kind_name(kinds: tuple[str, ...], kind: int, points: int) -> str:
    """Name the kind of some points."""
    if kind == summary.HANGING:
        return "subscription" if points == 1 else "subscriptions"
    if kind == summary.SEVERAL:
        return "several kinds"
    return words.clean(kinds[kind]) or ("node" if points == 1 else "nodes")


def form(group: summary.Group) -> str:
    """Say of which components the intermediaries of a group are; nothing of other layers."""
    if group.layer == summary.ISOLATED:
        return "isolated"
    if group.layer != summary.INTERMEDIARY:
        return ""
    if group.side == summary.CORE:
        return (
            f"in the core of {group.largest:,}" if group.points < group.largest else "the core, one component"
        )
    if group.cyclic:
        largest = f", largest {group.largest:,}" if group.components > 1 else ""
        return f"{words.many(group.components, 'component')}{largest}"
    return "in no cycle" if group.side else ""


def graph(outline: summary.Outline) -> str:
    """Say how large a graph is."""
    if not len(outline.vertex):
        return "The graph has no nodes."
    hanging = len(outline.vertex) - outline.nodes
    hang = f", and {words.many(hanging, 'subscription')} attached to nodes" if hanging else ""
    largest = int(outline.sizes.max(initial=0))
    cycles = f"the largest component has {largest:,} nodes" if largest > 1 else "there are no cycles"
    size = f"{words.many(outline.nodes, 'node')} and {words.many(outline.edges, 'edge')}{hang}"
    return f"{size}; {cycles}."


def journey(event: Event, outline: summary.Outline, way: summary.Journey, subscriptions: int) -> str:
    """Say what became of an event."""
    who = f"Event {words.clean(str(event.id))}" if event.id != "" else "The event"
    nodes = outline.kind != summary.HANGING
    reached, stopped = int((way.reached & nodes).sum()), int((way.stopped & nodes).sum())
    where = f"{who} entered at {words.clean(str(event.source))}"
    went = f"{where} and reached {words.many(reached, 'node')}."
    if stopped:
        their = f"{stopped:,} by their filters" if stopped > 1 else "one by its filter"
        went = f"{where}, reached {words.many(reached, 'node')} and was stopped at {their}."
    return f"{went} {len(way.served):,} of {words.many(subscriptions, 'subscription')} got it."
