"""A running index: the frozen base, and arrays back to columns."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.contents.columns import starts_of
from headgate.contents.documents import DocumentBase, open_laid_out, parts_of, stored_parts
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.core.rooms import RDF
from headgate.rdf.events.encode import Features, Layouts, features_of
from headgate.rdf.index.arrays import (
    AT_FLAGS,
    AT_LINE,
    AT_RANGE_ENDS,
    AT_SLOT,
    END,
    RANGE,
    SLOT,
    Checks,
    Dictionary,
    Edges,
    Entries,
    Groups,
    Patterns,
    RdfArrays,
)
from headgate.rdf.index.bindings import PreparedPattern
from headgate.rdf.index.build import build
from headgate.rdf.index.columns import Columns, Writer, compile_all, concatenate, take
from headgate.rdf.index.compile import OF_TEXTS
from headgate.rdf.index.laying import HEAD, roles_of
from headgate.rdf.index.matching import Matcher
from headgate.rdf.language.model import Options, Pattern
from headgate.rdf.taxonomy.taxonomy import Taxonomy
from headgate.rdf.whole.deciding import Decider, Members
from headgate.rdf.whole.query import Query, check_count, check_options, parse_any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import Self

    from numpy.typing import NDArray

    from headgate.core.arrays import Ints
    from headgate.rdf.language.model import Graph
    from headgate.rdf.whole.query import AnyFilter


ROOM = RDF
LAYOUT = 3
_PARTS: dict[str, Any] = {
    "dictionary": Dictionary,
    "edges": Edges,
    "patterns": Patterns,
    "entries": Entries,
    "groups": Groups,
    "checks": Checks,
}


class Base(DocumentBase):
    """Patterns in arrays, with the options and the taxonomy under which they are asked."""

    room = ROOM
    layout = LAYOUT
    take = staticmethod(take)
    concatenate = staticmethod(concatenate)
    matcher: Decider

    def __init__(
        self,
        ids: Ids,
        filters: TextPool,
        arrays: RdfArrays,
        expressions: TextPool,
        members: Members,
        options: Options,
        taxonomy: Taxonomy,
        features: Features | None = None,
    ) -> None:
        super().__init__(ids, filters)
        check_count(members.unindexed, options)
        self.members = members
        self.arrays = arrays
        self.expressions = expressions
        self.options = options
        self.taxonomy = taxonomy
        self.features = features_of(arrays) if features is None else features
        self._layouts = Layouts()
        self.matcher = _matcher(
            arrays, self.features, expressions, members, self.pattern, options, taxonomy, self._layouts
        )

    @staticmethod
    def parse(text: str) -> AnyFilter:
        """Parse a filter that was taken before."""
        return parse_any(text, tried=False)

    @staticmethod
    def ready(filter_: AnyFilter) -> PreparedPattern | Query:
        """Prepare a filter to be asked for its bindings."""
        return PreparedPattern(filter_) if isinstance(filter_, Pattern) else filter_

    @property
    def version(self) -> int:
        """Return the version of the taxonomy."""
        return self.taxonomy.version

    def pattern(self, number: int) -> AnyFilter:
        """Return a filter."""
        prepared = self.prepared(number)
        return prepared.pattern if isinstance(prepared, PreparedPattern) else prepared

    def writer(self) -> Writer:
        """Return what compiles filters to columns."""
        return Writer(self.options)

    def matcher_of(self, columns: Columns, pattern: Callable[[int], AnyFilter]) -> Decider:
        """Return what asks filters in columns."""
        return _matcher_of(columns, pattern, self.options, self.taxonomy, self._layouts)

    def columns_of(self, numbers: Ints) -> Columns:
        """Return some filters in columns."""
        return restore(self.arrays, self.expressions, self.members, numbers)

    def with_filters(self, ids: Ids, filters: TextPool, columns: Columns) -> Self:
        """Build a base of other filters, with the settings of this one."""
        return self.build(ids, filters, columns, self.options, self.taxonomy)

    def admit(self, filter_: AnyFilter, late: Sequence[AnyFilter]) -> None:
        """Refuse a query that an index with such options cannot have, or one too many."""
        if not isinstance(filter_, Query):
            return
        check_options(filter_, self.options)
        if filter_.unindexed:
            before = sum(isinstance(each, Query) and each.unindexed for each in late)
            check_count(self.members.unindexed + before + 1, self.options)

    @classmethod
    def build(
        cls, ids: Ids, filters: TextPool, columns: Columns, options: Options, taxonomy: Taxonomy
    ) -> Self:
        """Index filters that are compiled, in the order of their ids."""
        return cls(ids, filters, build(columns), columns.expressions, _members(columns), options, taxonomy)

    @classmethod
    def open(cls, path: Path, *, taxonomy: Taxonomy | None = None, verify: bool = True) -> Base:
        """Open a snapshot, memory-mapped; with a taxonomy, that one takes the place of the one in it."""
        snapshot = open_laid_out(path, ROOM, LAYOUT, verify=verify)
        arrays = snapshot.arrays
        features = {**snapshot.about["features"], "hats": tuple(snapshot.about["features"]["hats"])}
        return cls(
            Ids.from_arrays(arrays),
            TextPool(arrays["filter_offsets"], arrays["filter_data"]),
            RdfArrays(*parts_of(arrays, _PARTS)),
            TextPool(arrays["expression_offsets"], arrays["expression_data"]),
            Members(
                arrays["member_start"], arrays["roles"], TextPool(arrays["ask_offsets"], arrays["ask_data"])
            ),
            Options(**snapshot.about["options"]),
            Taxonomy.from_arrays(arrays) if taxonomy is None else taxonomy,
            Features(**features),
        )

    def save(self, path: Path, *, source: Mapping[str, object] | None = None) -> None:
        """Write a snapshot; nothing may have been removed."""
        arrays = stored_parts(self.arrays, _PARTS)
        arrays["expression_offsets"], arrays["expression_data"] = self.expressions
        arrays["member_start"], arrays["roles"] = self.members.start, self.members.roles
        arrays["ask_offsets"], arrays["ask_data"] = self.members.asks
        arrays.update(self.taxonomy.to_arrays())
        counts = {
            "patterns": len(self.arrays.patterns.next),
            "edges": len(self.arrays.edges.s),
            "terms": len(self.arrays.dictionary.offsets) - 1 - len(OF_TEXTS),
            "taxonomy": len(self.taxonomy),
            "verified": self.members.verified,
            "unindexed": self.members.unindexed,
        }
        about = {"options": asdict(self.options), "features": self.features._asdict()}
        self._write(path, source, arrays, counts, about)


def restore(arrays: RdfArrays, expressions: TextPool, members: Members, kept: Ints) -> Columns:
    """Read some filters back, given by their numbers."""
    patterns, edges, entries, groups = arrays.patterns, arrays.edges, arrays.entries, arrays.groups
    count = len(entries.number)
    code = patterns.step_code.astype(np.int32)
    terms = np.stack([side[patterns.step_edge] for side in (edges.s, edges.p, edges.o)], axis=1)
    terms = np.where(terms >= 0, terms, -1 - (code[:, :3] & SLOT)).astype(np.int32)
    sizes = np.diff(patterns.step_start)
    slots = np.zeros(len(sizes), np.int64)
    np.maximum.at(slots, np.repeat(np.arange(len(sizes)), sizes), -terms.min(axis=1, initial=0))
    owner = np.repeat(np.arange(len(sizes)), np.diff(patterns.entry_start))
    wide = sizes[owner]
    edge_start = starts_of(wide)
    at = np.repeat(patterns.step_start[:-1][owner] - edge_start[:-1], wide) + np.arange(edge_start[-1])
    checked = np.flatnonzero(entries.checks)
    words, all_ends = arrays.checks.words, arrays.checks.ends
    heads = np.flatnonzero(roles_of(words) == HEAD)
    head_sizes = np.diff(heads, append=len(words))
    heads_owner = np.concatenate([checked, [0]])[np.searchsorted(entries.checks[checked], heads, "right") - 1]
    is_range = words[heads] == RANGE
    is_other = ~is_range & (words[heads] != END)
    word_sizes = np.bincount(heads_owner[is_other], head_sizes[is_other], count).astype(np.int64)
    # The range of a group comes first.
    inside = np.repeat(groups.entry, groups.size) + _within(groups.size)
    grouped = np.bincount(inside, minlength=count)
    range_sizes = np.bincount(heads_owner[is_range], minlength=count)
    range_start = starts_of(range_sizes + grouped)
    ranges = np.zeros((range_start[-1], 3), np.int8)
    ends = np.zeros((range_start[-1], 2), np.float64)
    of, at_range = heads_owner[is_range], heads[is_range]
    rows = range_start[of] + grouped[of] + _within(range_sizes)
    ranges[rows] = words[at_range[:, None] + np.array([AT_SLOT, AT_LINE, AT_FLAGS])]
    ends[rows] = all_ends[words[at_range + AT_RANGE_ENDS][:, None] + np.arange(2)]
    first = range_start[inside]
    ranges[first, 0] = np.repeat(groups.slot, groups.size)
    ranges[first, 1] = np.repeat(groups.line, groups.size)
    ranges[first, 2] = groups.flags
    ends[first, 0], ends[first, 1] = groups.low, groups.high
    whole = Columns(
        slots[owner].astype(np.int8),
        edge_start,
        terms[at],
        range_start,
        ranges,
        ends,
        starts_of(word_sizes),
        words[np.repeat(is_other, head_sizes)],
        TextPool(arrays.dictionary.offsets, arrays.dictionary.data),
        TextPool(arrays.checks.text_offsets, arrays.checks.text_data),
        expressions,
        np.arange(count + 1),
        np.zeros(count, np.int8),
        TextPool.build(()),
    )
    entry_of = np.empty(count, np.int64)
    entry_of[entries.number] = np.arange(count)
    # In the order of members first, each as if it were a filter.
    ordered = take(whole, entry_of)._replace(
        member_start=members.start, roles=members.roles, asks=members.asks
    )
    return take(ordered, kept)


def _within(sizes: NDArray[Any]) -> Ints:
    """Count from 0 within each of some runs."""
    starts = starts_of(sizes)
    return np.arange(starts[-1]) - np.repeat(starts[:-1], sizes)


def _members(columns: Columns) -> Members:
    return Members(columns.member_start, columns.roles, columns.asks)


def _matcher(
    arrays: RdfArrays,
    features: Features,
    expressions: TextPool,
    members: Members,
    pattern: Callable[[int], AnyFilter],
    options: Options,
    taxonomy: Taxonomy,
    layouts: Layouts,
) -> Decider:
    def member(number: int) -> Pattern:
        """Return one pattern of a filter."""
        owner = int(np.searchsorted(members.start, number, "right")) - 1
        return pattern(owner).members[number - int(members.start[owner])][0]

    inner = Matcher(arrays, features, expressions.text, member, options, taxonomy, layouts)
    return Decider(inner, members, taxonomy)


def _matcher_of(
    columns: Columns,
    pattern: Callable[[int], AnyFilter],
    options: Options,
    taxonomy: Taxonomy,
    layouts: Layouts,
) -> Decider:
    arrays, members = build(columns), _members(columns)
    features = features_of(arrays)
    return _matcher(arrays, features, columns.expressions, members, pattern, options, taxonomy, layouts)


def ask_one(pattern: Pattern, graph: Graph, taxonomy: Taxonomy | None, options: Options) -> tuple[bool, str]:
    """Tell whether one filter holds, as an index of it alone would; if that is too much, the reason."""
    known = Taxonomy() if taxonomy is None else taxonomy
    matcher = _matcher_of(compile_all([pattern], options), lambda _: pattern, options, known, Layouts())
    left_out: dict[int, str] = {}
    return len(matcher.match(graph, left_out)) > 0, left_out.get(0, "")
