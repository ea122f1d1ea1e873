"""The embedding graph: who embeds in whom (Algorithm 3 of Delta).

    1  views that are written alike are folded: the first of them stands for all
    2  pairs that labels and signatures let pass, by groups of views with the same labels
    3  the content room tells which of them embed, and what they cover
    4  rows by target, sources rising, laid out for all views again

Steps 2 and 3 go by blocks of targets, several threads at once; which thread takes which block does not show
in the result. Views without any item (`needed` is 0) are neither sources nor targets.

If u embeds in v, the labels of u are among those of v. Views with the same labels are grouped, and the groups
whose labels are among those of a target's are looked up by their rarest label:

    homes of label l    the groups in which no label is rarer than l
    near group g        all groups at home with a label of g that have no label besides those of g

Each group is at home once, so nothing is found twice. A group without labels is near every other.

Views that are written alike make a class; its first view stands for it. How a row of the graph between first
views becomes rows between all views:

    own class      up to `spread` + 1 members    every other member is a source, in both directions
                   more                          `spread` of the members before it, evenly spaced, the last
                                                 among them: one direction only, so there is no cycle
    other classes  up to `spread` members        every member is a source, for every member of the own class
                   more                          `spread` members, in turn: each target's begin where those
                                                 of the target before it end, so that all are used alike

So rows grow with the number of classes, not with that of views. Nothing is lost: members give the same, and
each of them can still be reached through the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import inner, kernel
from headgate.plan.graphs.blocks import search_blocks
from headgate.plan.model import Embeddings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headgate.contents.views import Views
    from headgate.core.arrays import Ints, Ints32, Words


class Classes(NamedTuple):
    """Classes of views that are written alike.

    members     those of class c are members[starts[c]:starts[c + 1]], rising
    owner       the class of each view
    place       the place of each view in its class
    """

    members: Ints32
    starts: Ints
    owner: Ints32
    place: Ints32


def find_classes(equals: Ints32) -> Classes:
    """Find the classes.

    >>> classes = find_classes(np.array([0, 1, 0, 0], np.int32))
    >>> classes.members.tolist(), classes.starts.tolist(), classes.place.tolist()
    ([0, 2, 3, 1], [0, 3, 4], [0, 0, 1, 2])
    """
    _, owner, counts = np.unique(equals, return_inverse=True, return_counts=True)
    members = np.argsort(owner, kind="stable")
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    within = np.empty(len(equals), np.int32)
    within[members] = np.arange(len(equals)) - np.repeat(starts[:-1], counts)
    return Classes(members.astype(np.int32), starts, owner.astype(np.int32), within)


def unfold(rows: Embeddings, classes: Classes, needed: Words, targets: Ints32, spread: int) -> Embeddings:
    """Lay rows between first views out for all members; only `targets` (rising) get rows."""
    counts = np.zeros(len(needed), np.int64)
    nothing = Embeddings(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.uint64))
    _spread_rows(rows, classes, needed, targets, spread, counts, nothing)
    offsets = np.zeros(len(needed) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    laid = Embeddings(offsets, np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.uint64))
    _spread_rows(rows, classes, needed, targets, spread, counts, laid)
    sort_rows(laid, targets)
    return laid


def sort_rows(rows: Embeddings, targets: Ints32) -> None:
    """Sort the rows of some targets by their sources, in place."""
    for first in range(0, len(targets), _AT_ONCE):
        some = targets[first : first + _AT_ONCE]
        begin, end = int(rows.offsets[some[0]]), int(rows.offsets[some[-1] + 1])
        # Between the first and the last of some rising targets lie no rows but theirs: others are empty.
        keys = np.repeat(np.arange(len(some)), rows.offsets[some + 1] - rows.offsets[some]) << 32
        order = np.argsort(keys | rows.sources[begin:end])
        rows.sources[begin:end] = rows.sources[begin:end][order]
        rows.masks[begin:end] = rows.masks[begin:end][order]


_AT_ONCE = 4_096


@kernel
def _spread_rows(
    rows: Embeddings,
    classes: Classes,
    needed: Words,
    targets: Ints32,
    spread: int,
    counts: Ints,
    out: Embeddings,
) -> None:
    """Count the sources of each target, or write them if `out` has room for them."""
    writing = len(out.offsets) > 0
    for target in targets:
        if needed[target] == 0:
            continue
        own = classes.owner[target]
        turn = np.int64(classes.place[target])
        at = out.offsets[target] if writing else 0
        begin = at
        first = classes.starts[own]
        size = classes.starts[own + 1] - first
        crowded = size > spread + 1
        taken = size
        if crowded:
            taken = min(np.int64(spread), turn)
        for i in range(taken):
            within = i
            if crowded:
                # The last of equal steps is the one just before: (i + 1) * turn // taken - 1 for the last i.
                within = (i + 1) * turn // taken - 1
            elif within == turn:
                continue
            if writing:
                out.sources[at] = classes.members[first + within]
                out.masks[at] = needed[target]
            at += 1
        head = classes.members[first]
        for edge in range(rows.offsets[head], rows.offsets[head + 1]):
            other = classes.owner[rows.sources[edge]]
            first = classes.starts[other]
            size = classes.starts[other + 1] - first
            taken = min(np.int64(spread), size)
            for i in range(taken):
                if writing:
                    out.sources[at] = classes.members[first + (turn * taken + i) % size]
                    out.masks[at] = rows.masks[edge]
                at += 1
        counts[target] = at - begin


class Groups(NamedTuple):
    """Views grouped by their labels.

    members            the views of group g are members[starts[g]:starts[g + 1]], rising
    demands            of each of `members`, two words each
    labels             those of group g are labels[label_starts[g]:label_starts[g + 1]], rising
    sketches           one word a group: bit l % 64 for each label l
    homes              groups at home with label l are homes[home_starts[l]:home_starts[l + 1]]
    bare               the group without labels, or -1
    """

    members: Ints32
    starts: Ints
    demands: Words
    labels: Ints32
    label_starts: Ints
    sketches: Words
    homes: Ints32
    home_starts: Ints
    bare: int


def group_views(views: Views, members: Ints32) -> tuple[Groups, Ints32]:
    """Group some views; returns the group of each of them too. `members` are rising."""
    offsets = views.label_offsets.tolist()
    labels = np.ascontiguousarray(views.labels, np.int32)
    numbers: dict[bytes, int] = {}
    groups = np.fromiter(
        (
            numbers.setdefault(labels[offsets[view] : offsets[view + 1]].tobytes(), len(numbers))
            for view in members.tolist()
        ),
        np.int32,
        len(members),
    )
    order = np.argsort(groups, kind="stable")
    sorted_members = members[order]
    rows = [np.frombuffer(each, np.int32) for each in numbers]
    packed = np.concatenate([*rows, np.empty(0, np.int32)])
    label_starts = _starts(np.fromiter(map(len, rows), np.int64, len(rows)))
    counts = np.bincount(packed, minlength=1)
    homes = np.fromiter(
        (row[np.argmin(counts[row])] if len(row) else -1 for row in rows), np.int64, len(rows)
    )
    settled = np.flatnonzero(homes >= 0)
    by_home = settled[np.argsort(homes[settled], kind="stable")]
    bare = np.flatnonzero(homes < 0)
    grouped = Groups(
        members=sorted_members,
        starts=_starts(np.bincount(groups, minlength=len(rows))),
        demands=np.ascontiguousarray(views.demands.reshape(-1, 2)[sorted_members]).reshape(-1),
        labels=packed,
        label_starts=label_starts,
        sketches=_sketches(packed, label_starts),
        homes=by_home.astype(np.int32),
        home_starts=_starts(np.bincount(homes[settled], minlength=len(counts))),
        bare=int(bare[0]) if len(bare) else -1,
    )
    return grouped, groups


def _starts(counts: Ints) -> Ints:
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def _sketches(labels: Ints32, starts: Ints) -> Words:
    sketches = np.zeros(len(starts) - 1, np.uint64)
    owners = np.repeat(np.arange(len(sketches)), np.diff(starts))
    np.bitwise_or.at(sketches, owners, np.uint64(1) << (labels % 64).astype(np.uint64))
    return sketches


@inner
def find_near(groups: Groups, own: int, out: Ints32) -> int:
    """Write the groups whose labels are among those of a group, itself too; return how many."""
    count = 0
    if groups.bare >= 0:
        out[0] = groups.bare
        count = 1
    outside = ~groups.sketches[own]
    begin, end = groups.label_starts[own], groups.label_starts[own + 1]
    for at_label in range(begin, end):
        label = groups.labels[at_label]
        for i in range(groups.home_starts[label], groups.home_starts[label + 1]):
            other = groups.homes[i]
            if groups.sketches[other] & outside != 0:
                continue
            at = begin
            inside = True
            for j in range(groups.label_starts[other], groups.label_starts[other + 1]):
                while at < end and groups.labels[at] < groups.labels[j]:
                    at += 1
                if at == end or groups.labels[at] != groups.labels[j]:
                    inside = False
                    break
            if inside:
                out[count] = other
                count += 1
    return count


@kernel
def find_pairs(
    groups: Groups,
    offers: Words,
    targets: Ints32,
    target_groups: Ints32,
    first: int,
    near: Ints32,
    sources: Ints32,
    aims: Ints32,
) -> tuple[int, int]:
    """Write pairs of a source and a target that labels and signatures let pass; a view is not its own source.

    Targets are those from `first` on, those of a group together. Stops before a target whose sources do not
    fit any more; returns the place of the first target that is left, and the number of pairs. `sources` has
    room for those of any one target; `near` for all groups.
    """
    count = 0
    known = -1
    nears = 0
    for row in range(first, len(targets)):
        target = targets[row]
        if target_groups[row] != known:
            known = target_groups[row]
            nears = find_near(groups, known, near)
        complete = count
        low, high = ~offers[2 * target], ~offers[2 * target + 1]
        for i in range(nears):
            group = near[i]
            for j in range(groups.starts[group], groups.starts[group + 1]):
                if (groups.demands[2 * j] & low) | (groups.demands[2 * j + 1] & high) != 0:
                    continue
                if groups.members[j] == target:
                    continue
                if count == len(sources):
                    return row, complete
                sources[count] = groups.members[j]
                aims[count] = target
                count += 1
    return len(targets), count


SPREAD = 24
"""How many of the views that are written alike are sources of one target: about as many as rewritings."""
_BLOCK = 256
_PAIRS = 1 << 18
"""Pairs that one thread asks about at once: some 10 MB in all, and work enough to hide a call."""


class FoundRows(NamedTuple):
    """Rows of some targets, one after the other."""

    targets: Ints32
    counts: Ints
    sources: Ints32
    masks: Words


def embedding_graph(
    views: Views, *, targets: Ints32 | None = None, threads: int = 2, spread: int = SPREAD
) -> Embeddings:
    """Find the rows of all views, or of some targets; the rows of others are empty.

    `spread` bounds the copies of edges between views that are written alike: see `folding`.
    """
    return EmbeddingFinder(views, spread).rows(targets, threads=threads)


class EmbeddingFinder:
    """Finds rows of the embedding graph; what all rows share is prepared once."""

    def __init__(self, views: Views, spread: int = SPREAD) -> None:
        if spread < 1:
            raise ValueError(
                f"spread is {spread} and must be 1 or more: views that are alike feed each other"
            )
        self.views = views
        self._spread = spread
        self._equals = np.ascontiguousarray(views.equals, np.int32)
        self._needed = np.ascontiguousarray(views.needed, np.uint64)
        self._offers = np.ascontiguousarray(views.offers, np.uint64)
        first = self._equals == np.arange(len(self._equals))
        members = np.flatnonzero(first & (self._needed != 0)).astype(np.int32)
        self._groups, groups = group_views(views, members)
        firsts = np.full(len(self._equals), -1, np.int32)
        firsts[members] = groups
        self.groups = firsts[self._equals]
        """The group of each view: the same for views with the same labels; -1 for one without items."""
        self._classes = None if first.all() else find_classes(self._equals)

    def rows(self, targets: Ints32 | None = None, *, threads: int = 2) -> Embeddings:
        """Find the rows of all views, or of some targets; the rows of others are empty."""
        views = len(self._equals)
        asked = np.arange(views, dtype=np.int32) if targets is None else np.unique(targets).astype(np.int32)
        heads = np.unique(self._equals[asked])
        rows = self._rows_of_firsts(heads[self._needed[heads] != 0], threads)
        if self._classes is None:
            return rows
        return unfold(rows, self._classes, self._needed, asked, self._spread)

    def _rows_of_firsts(self, targets: Ints32, threads: int) -> Embeddings:
        """Find the rows of targets that are the first of their class, between such views."""
        # Those of a group together: what is near it is looked up once.
        targets = targets[np.argsort(self.groups[targets], kind="stable")]
        return assemble(len(self._equals), search_blocks(self._search, targets, _BLOCK, threads))

    def _search(self, targets: Ints32) -> list[FoundRows]:
        """Find the rows of a block of targets, in as many parts as pairs need."""
        room = max(_PAIRS, len(self._groups.members))
        near = np.empty(len(self._groups.starts), np.int32)
        sources, aims = np.empty(room, np.int32), np.empty(room, np.int32)
        groups = self.groups[targets]
        parts = []
        first = 0
        while first < len(targets):
            begin = first
            first, count = find_pairs(self._groups, self._offers, targets, groups, begin, near, sources, aims)
            parts.append(_ask(self.views, targets[begin:first], sources[:count], aims[:count]))
        return parts


def _ask(views: Views, targets: Ints32, sources: Ints32, aims: Ints32) -> FoundRows:
    """Keep the pairs that embed, in rows in the order of `targets`, sources rising."""
    embeds, masks = views.coverage(sources, aims)
    places = np.empty(int(targets.max()) + 1, np.int64)
    places[targets] = np.arange(len(targets))
    kept = places[aims[embeds]]
    # A target is in one part only, so sorting within a part sorts rows.
    order = np.argsort((kept << 32) | sources[embeds])
    return FoundRows(
        targets, np.bincount(kept, minlength=len(targets)), sources[embeds][order], masks[embeds][order]
    )


def assemble(views: int, parts: list[list[FoundRows]]) -> Embeddings:
    """Lay parts in the order of their targets; parts are let go as they are copied."""
    offsets = np.zeros(views + 1, np.int64)
    for part in _parts(parts):
        offsets[part.targets + 1] = part.counts
    np.cumsum(offsets, out=offsets)
    sources, masks = np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.uint64)
    while parts:
        for part in parts.pop():
            ends = np.cumsum(part.counts)
            places = np.repeat(offsets[part.targets] - ends + part.counts, part.counts)
            places += np.arange(len(places))
            sources[places] = part.sources
            masks[places] = part.masks
    return Embeddings(offsets, sources, masks)


def _parts(parts: list[list[FoundRows]]) -> Iterator[FoundRows]:
    for each in parts:
        yield from each
