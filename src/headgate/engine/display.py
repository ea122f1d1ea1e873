"""An engine for people: one line, and a table for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from headgate.contents.registry import kind_of

if TYPE_CHECKING:
    from headgate.engine.backend import Backend
    from headgate.graph.index import GraphIndex

SHOWN = 10
"""Subscriptions in a table."""
_WIDE = 120
"""Characters of a filter that a table shows."""


def line(backend: Backend, place: str | None) -> str:
    """Say in one line what there is."""
    parts = [f"{_count(len(backend), 'subscription')} over {kind_of(backend.room.room_name).title}"]
    if backend.routed:
        parts.append(f"in a graph of {_count(nodes(backend.graph), 'node')}")
    if backend.ranked and not backend.routed:
        parts.append("ranked")
    if place is not None:
        parts.append(f"{'changed since it was ' if backend.changed else ''}opened from {place}")
    return f"<Engine: {', '.join(parts)}>"


def table(backend: Backend, place: str | None) -> str:
    """Draw what there is as HTML, with the first subscriptions and their filters."""
    ids = backend.ids
    rows = [
        f"<tr><td>{escape(str(identity))}</td><td><code>{escape(_short(backend.filter(identity)))}</code></td></tr>"
        for identity in ids[:SHOWN]
    ]
    if len(ids) > SHOWN:
        rows.append(f'<tr><td colspan="2">and {_count(len(ids) - SHOWN, "more", "more")}</td></tr>')
    head = "<tr><th>subscription</th><th>filter</th></tr>"
    return f"<p>{escape(line(backend, place)[1:-1])}</p><table>{head}{''.join(rows)}</table>"


def nodes(graph: GraphIndex) -> int:
    """Count the nodes of a graph, with those that came later and without those that went."""
    base, later = graph.base, graph.view.later
    found = len(base.names.node_ids)
    if later is None:
        return found
    for node, vertex in later.moved.items():
        found += (vertex >= 0) - (base.find(node) >= 0)
    return found


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def _short(text: str | None) -> str:
    text = text or ""
    return text if len(text) <= _WIDE else f"{text[: _WIDE - 1]}…"
