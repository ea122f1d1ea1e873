"""What a picture of a graph shows, before anything is measured: boxes in columns, links, headings, a key.

Few nodes are drawn one by one, with their names; many as groups, with numbers.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.graph import summary
from headgate.graph.model import EDGE, NODE, SUBSCRIPTION
from headgate.report import words
from headgate.report.graph import words as graph_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headgate.contents.protocol import Verdict
    from headgate.core.event import Event
    from headgate.graph.changes.view import View


SHOWN = 50
"""Stops that are explained; a large graph has thousands, of few kinds."""
_KINDS = {NODE: "node", EDGE: "edge", SUBSCRIPTION: "subscription"}
_CLAUSES = ("clauses", "edges", "filters", "nodes")
"""Fields of verdicts that have clauses, each with its text, whether it held, and what the event says."""


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


def stops(view: View, outline: summary.Outline, journey: summary.Journey, event: Event) -> list[Stop]:
    """Explain the first of the places where an event was stopped."""
    explained = []
    for vertex in _vertices(outline, journey):
        text = view.filter_of(vertex)
        # A node can be shut to an event without a filter of its own: it was removed.
        if text is not None:
            kind = _KINDS[view.stands_for(vertex)[0]]
            verdict = view.explain_filter(event, vertex)
            explained.append(Stop(vertex, view.name(vertex), kind, text, failing(verdict)))
        if len(explained) == SHOWN:
            break
    return explained


def count_stops(journey: summary.Journey) -> int:
    """Count the places where an event was stopped."""
    return int(np.count_nonzero(journey.stopped)) + int(np.count_nonzero(journey.refused))


def _vertices(outline: summary.Outline, journey: summary.Journey) -> Iterator[int]:
    yield from outline.via[journey.refused].tolist()
    yield from outline.vertex[journey.stopped].tolist()


def failing(verdict: Verdict) -> tuple[Failure, ...]:
    """List the clauses of a verdict that failed; without any, say why the filter did."""
    failed = (
        Failure(each.text.strip(), f"{each.seen} ({each.note})".strip() if each.note else each.seen)
        for each in _failed_clauses(verdict)
    )
    return tuple(failed) or (Failure(verdict.lines()[0].removeprefix("no match: ")),)


def _failed_clauses(verdict: Any) -> Iterator[Any]:
    """Find the clauses that failed, also of the patterns that a query or an expression is indexed by."""
    for name in _CLAUSES:
        for clause in getattr(verdict, name, ()):
            # What was never looked at has no note.
            if clause.held is False or (clause.held is None and clause.note):
                yield clause
    for member, _ in getattr(verdict, "members", ()):
        yield from _failed_clauses(member)
    if not getattr(verdict, "reached", True):
        yield from _failed_clauses(verdict.parts[0])


_COLUMNS = 7
_KIND_COLUMNS = 3
_EDGE_LABEL = 26


def columns_of_points(outline: summary.Outline) -> tuple[list[int], list[int]]:
    """Put points into columns by the longest way to them; where these are too many, several steps in one."""
    layer = outline.layer.tolist()
    depth = [1 if each == summary.INTERMEDIARY else 0 for each in layer]
    edges = list(zip(outline.source.tolist(), outline.target.tolist(), strict=True))
    rank_of = {point: number for number, point in enumerate(_few_back(len(layer), edges))}
    for source, target in sorted(edges, key=lambda edge: rank_of[edge[0]]):
        if rank_of[source] < rank_of[target] and layer[target] == summary.INTERMEDIARY:
            depth[target] = max(depth[target], depth[source] + 1)
    deepest = max(depth, default=0)
    others = len({*layer} & {summary.PUBLISHER, summary.ISOLATED}) > 0, summary.SUBSCRIBER in layer
    block = -(-deepest // max(1, _COLUMNS - sum(others)))
    columns, ranks = [], []
    for each, deep in zip(layer, depth, strict=True):
        column, rank = 0, int(each == summary.ISOLATED)
        if each == summary.INTERMEDIARY:
            turn, step = divmod(deep - 1, block)
            # A long way goes down one column and up the next.
            column, rank = turn + 1, step if turn % 2 == 0 else block - 1 - step
        columns.append(deepest + 1 if each == summary.SUBSCRIBER else column)
        ranks.append(rank)
    return _dense(columns), ranks


def _few_back(points: int, edges: list[tuple[int, int]]) -> list[int]:
    """Order points so that few edges lead back, after Eades, Lin and Smyth (1993).

    Take what nothing leads to, then what leads nowhere, to the end; in a cycle, what leads to more than leads
    to it.

    >>> _few_back(4, [(3, 0), (0, 1), (1, 2), (2, 0)])
    [3, 0, 1, 2]
    """
    left = {*range(points)}
    first: list[int] = []
    last: list[int] = []
    while left:
        inside = [(a, b) for a, b in edges if a in left and b in left and a != b]
        entered, leaves = Counter(b for _, b in inside), Counter(a for a, _ in inside)
        starts = [point for point in sorted(left) if not entered[point]]
        ends = [point for point in sorted(left) if not leaves[point] and entered[point]]
        if not starts and not ends:
            starts = [max(sorted(left), key=lambda point: leaves[point] - entered[point])]
        first += starts
        last = ends + last
        left -= {*starts, *ends}
    return first + last


def columns_of_groups(groups: summary.Groups) -> list[int]:
    """Put groups into columns; without a core, intermediaries go by where their kind is on the way."""
    columns = [_column(each) for each in groups.groups]
    loose = [
        n
        for n, each in enumerate(groups.groups)
        if (each.layer, each.side) == (summary.INTERMEDIARY, summary.ANYWHERE)
    ]
    # Points are numbered along the way from publishers to subscribers.
    loose.sort(key=lambda number: float(np.flatnonzero(groups.of == number).mean()))
    for rank, number in enumerate(loose):
        columns[number] = 1 + rank * min(_KIND_COLUMNS, len(loose)) // len(loose)
    return _dense(columns)


def _column(each: summary.Group) -> int:
    if each.layer in {summary.PUBLISHER, summary.ISOLATED}:
        return 0
    return 9 if each.layer == summary.SUBSCRIBER else {summary.BEFORE: 1, summary.BEHIND: 3}.get(each.side, 2)


def _dense(columns: list[int]) -> list[int]:
    """Leave no column empty."""
    used = sorted({*columns})
    return [used.index(column) for column in columns]


MOST_NODES, MOST_EDGES = 40, 150
"""A graph with more is drawn as groups."""


class State(Enum):
    """What became of an event at a box or on a link."""

    PLAIN = "no event"
    SOURCE = "where the event entered"
    REACHED = "reached"
    STOPPED = "stopped by a filter"
    MISSED = "not reached"


@dataclass(frozen=True)
class Line:
    """A line of text in a box."""

    text: str
    size: float
    bold: bool = False


@dataclass(frozen=True)
class Part:
    """A box: its column, its rank there, its lines and its state."""

    column: int
    rank: int
    lines: tuple[Line, ...]
    state: State


@dataclass(frozen=True)
class Tie:
    """A link; `inner` is the width of what the event travelled, `gate` the state of the link's own filter."""

    source: int
    target: int
    width: float
    state: State
    inner: float = 0.0
    label: str = ""
    gate: State | None = None


@dataclass(frozen=True)
class Scene:
    """All that is drawn; headings stand over columns, from the first to the last."""

    parts: tuple[Part, ...]
    ties: tuple[Tie, ...]
    headings: tuple[tuple[int, int, str], ...]
    notes: tuple[str, ...]
    grouped: bool
    loops: bool = False
    keyed: bool = True
    """Whether a key below says what boxes and links mean."""


def scene(
    view: View, outline: summary.Outline, journey: summary.Journey | None, stops: Sequence[Stop] = ()
) -> Scene:
    """Choose how a graph is drawn; at places where the event was stopped stands the clause that failed."""
    if len(outline.vertex) <= MOST_NODES and len(outline.source) <= MOST_EDGES:
        return _nodes(view, outline, journey, {stop.vertex: stop.failing[0].text for stop in stops})
    return _groups(outline, journey)


# Node by node


def _nodes(
    view: View, outline: summary.Outline, journey: summary.Journey | None, failing: dict[int, str]
) -> Scene:
    columns, ranks = columns_of_points(outline)
    loops = {*outline.source[outline.source == outline.target].tolist()}
    parts = []
    for point, vertex in enumerate(outline.vertex.tolist()):
        state = _state_of_point(point, journey)
        name = f"{_MARKS.get(state, '')}{view.name(vertex)}{' ↻' if point in loops else ''}"
        lines = [Line(name, 10.5, bold=state in {State.SOURCE, State.REACHED})]
        lines += [Line(text, 8.5) for text in _about(view, outline, point)]
        if vertex in failing:
            lines.append(Line(f"not: {failing[vertex]}", 8.5))
        parts.append(Part(columns[point], ranks[point], tuple(lines), state))
    ties = []
    for edge, (source, target) in enumerate(
        zip(outline.source.tolist(), outline.target.tolist(), strict=True)
    ):
        if source != target:
            gate = _state_of_gate(edge, journey) if outline.via[edge] >= 0 else None
            label = words.shorten(failing.get(int(outline.via[edge]), ""), _EDGE_LABEL)
            label = f"not: {label}" if label else ""
            ties.append(Tie(source, target, 1.6, _state_of_edge(edge, journey), label=label, gate=gate))
    layers = [outline.layer[point] for point in range(len(parts))]
    return Scene(tuple(parts), tuple(ties), _headings(columns, layers), (), grouped=False, loops=bool(loops))


_MARKS = {State.SOURCE: "▶ ", State.REACHED: "✓ ", State.STOPPED: "✕ "}


def _about(view: View, outline: summary.Outline, point: int) -> list[str]:
    """Say of a node what it is, and whom it serves if that is not its own name."""
    vertex = int(outline.vertex[point])
    if view.stands_for(vertex)[0] != NODE:
        return ["subscription"]
    lines = [outline.kinds[outline.kind[point]]]
    subscription = view.serves(vertex)
    if subscription >= 0 and str(view.subscription_id(subscription)) != view.name(vertex):
        lines.append(f"serves {view.subscription_id(subscription)}")
    return [line for line in lines if line]


def _state(reached: object, stopped: object) -> State:
    return State.REACHED if reached else State.STOPPED if stopped else State.MISSED


def _state_of_point(point: int, journey: summary.Journey | None) -> State:
    if journey is None:
        return State.PLAIN
    if point == journey.source:
        return State.SOURCE
    return _state(journey.reached[point], journey.stopped[point])


def _state_of_edge(edge: int, journey: summary.Journey | None) -> State:
    if journey is None:
        return State.PLAIN
    return _state(journey.travelled[edge], journey.tried[edge])


def _state_of_gate(edge: int, journey: summary.Journey | None) -> State:
    if journey is None:
        return State.PLAIN
    if journey.refused[edge]:
        return State.STOPPED
    return State.REACHED if journey.travelled[edge] or journey.tried[edge] else State.MISSED


# In groups


def _groups(outline: summary.Outline, journey: summary.Journey | None) -> Scene:
    groups = summary.group(outline)
    columns = columns_of_groups(groups)
    parts = [
        Part(
            columns[number],
            int(each.layer == summary.ISOLATED),
            *_group_lines(outline, groups, number, journey),
        )
        for number, each in enumerate(groups.groups)
    ]
    travelled = summary.between(outline, groups, journey.travelled) if journey else {}
    tried = summary.between(outline, groups, journey.tried) if journey else {}
    ties = []
    for (source, target), edges in groups.edges.items():
        if source == target:
            continue
        done = travelled.get((source, target), 0)
        state = _state(done, (source, target) in tried)
        label = f"{done:,} / {edges:,}" if done else f"{edges:,}"
        ties.append(
            Tie(source, target, _width(edges), state if journey else State.PLAIN, _width(done), label)
        )
    notes = [" ".join([graph_words.GROUPS] * bool(ties) + [graph_words.INSIDE])]
    if any(each.side == summary.CORE for each in groups.groups):
        notes.append(graph_words.BOW_TIE)
    if journey:
        notes.append(graph_words.COUNTS)
    headings = _headings(columns, [each.layer for each in groups.groups])
    return Scene(tuple(parts), tuple(ties), headings, tuple(notes), grouped=True)


def _group_lines(
    outline: summary.Outline, groups: summary.Groups, number: int, journey: summary.Journey | None
) -> tuple[tuple[Line, ...], State]:
    each, there = groups.groups[number], groups.of == number
    state, count, more = State.PLAIN, f"{each.points:,}", []
    if journey:
        is_source = bool(there[journey.source])
        reached = int(journey.reached[there].sum()) + int(is_source and not journey.reached[journey.source])
        stopped = int((journey.stopped & there).sum())
        state = State.SOURCE if is_source else _state(reached, stopped)
        count = f"{reached:,} / {each.points:,}"
        more += ["▶ the source"] * is_source + [f"✕ {stopped:,} stopped"] * (stopped > 0)
    inside = groups.edges.get((number, number), 0)
    side = graph_words.SIDES[each.side] if each.side not in {summary.ANYWHERE, summary.CORE} else ""
    small = [
        side,
        graph_words.form(each),
        words.many(inside, "edge") + " inside" if inside else "",
        *more,
    ]
    return (
        Line(count, 12.0, bold=state is not State.MISSED),
        Line(graph_words.kind_name(outline.kinds, each.kind, each.points), 10.5),
        *(Line(text, 8.5) for text in small if text),
    ), state


def _width(edges: int) -> float:
    """Return the width of a band."""
    return 2 + 3 * math.log10(edges) if edges else 0.0


def _headings(columns: list[int], layers: list[int]) -> tuple[tuple[int, int, str], ...]:
    """Name the layers over their columns; isolated nodes stand below the publishers."""
    headings = []
    for layer in (summary.PUBLISHER, summary.INTERMEDIARY, summary.SUBSCRIBER, summary.ISOLATED):
        own = [column for column, each in zip(columns, layers, strict=True) if each == layer]
        if own and not (layer == summary.ISOLATED and summary.PUBLISHER in layers):
            headings.append((min(own), max(own), graph_words.LAYERS[layer]))
    return tuple(headings)
