"""A running index: the frozen base, the tail, how they become a new base, and arrays back to columns."""

from __future__ import annotations

from dataclasses import asdict
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.contents.columns import starts_of
from headgate.contents.documents import DocumentBase, DocumentState, open_laid_out, parts_of, stored_parts
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.core.rooms import RDF
from headgate.core.snapshot import write_snapshot
from headgate.rdf.events.encode import Features, features_of
from headgate.rdf.index import laying
from headgate.rdf.index.arrays import Checks, Dictionary, Edges, Entries, Groups, Patterns, RdfArrays
from headgate.rdf.index.bindings import PreparedPattern, prepared
from headgate.rdf.index.build import build
from headgate.rdf.index.columns import Columns, concatenate, take
from headgate.rdf.index.compile import OF_TEXTS
from headgate.rdf.index.matching import Matcher
from headgate.rdf.language.model import Options, Pattern
from headgate.rdf.taxonomy.taxonomy import Taxonomy
from headgate.rdf.whole.deciding import DecidingMatcher, Members
from headgate.rdf.whole.query import check_count, parse_any, pattern_at
from headgate.rdf.whole.tail import WholeTail

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from headgate.contents.live import Moment
    from headgate.rdf.whole.query import AnyFilter, Query


ROOM = RDF
LAYOUT = 3
"""The layout of the arrays in a snapshot; one that was written with another must be compiled again."""
_PARTS: dict[str, Any] = {
    "dictionary": Dictionary,
    "edges": Edges,
    "patterns": Patterns,
    "entries": Entries,
    "groups": Groups,
    "checks": Checks,
}


_PREPARED = 1 << 14
"""Filters that are kept ready to be asked for their bindings, some kilobytes each."""


class Base(DocumentBase):
    """Patterns in arrays, with the options and the taxonomy under which they are asked."""

    matcher: DecidingMatcher

    def __init__(
        self,
        ids: Ids,
        filters: TextPool,
        arrays: RdfArrays,
        expressions: TextPool,
        options: Options,
        taxonomy: Taxonomy,
        features: Features | None = None,
        members: Members | None = None,
    ) -> None:
        super().__init__(ids, filters)
        if members is None:
            members = Members(
                np.arange(len(ids) + 1, dtype=np.int64), np.zeros(len(ids), np.int8), TextPool.build(())
            )
        check_count(members.unindexed, options)
        self.members = members
        self.arrays = arrays
        self.expressions = expressions
        self.options = options
        self.taxonomy = taxonomy
        self.features = features_of(arrays) if features is None else features
        self.pattern = lru_cache(1024)(self._pattern)
        self.prepared = lru_cache(_PREPARED)(self._prepared)
        inner = Matcher(arrays, self.features, expressions.text, self._member, options, taxonomy)
        self.matcher = DecidingMatcher(inner, members, taxonomy)

    def _pattern(self, number: int) -> AnyFilter:
        return parse_any(self.filters.text(number), tried=False)

    def _member(self, member: int) -> Pattern:
        """Return one pattern of a filter."""
        start = self.members.start
        number = int(np.searchsorted(start, member, "right")) - 1
        return pattern_at(self.pattern(number), member - int(start[number]))

    def _prepared(self, number: int) -> PreparedPattern | Query:
        # Not by `pattern`, whose few places are for filters that are checked while others are matched.
        found = self._pattern(number)
        return PreparedPattern(found) if isinstance(found, Pattern) else found

    @classmethod
    def open(cls, path: Path, *, taxonomy: Taxonomy | None = None, verify: bool = True) -> Base:
        """Open a snapshot, memory-mapped; with a taxonomy, that one takes the place of the one in it."""
        snapshot = open_laid_out(path, ROOM, LAYOUT, verify=verify)
        found = snapshot.arrays
        features = {**snapshot.about["features"], "hats": tuple(snapshot.about["features"]["hats"])}
        return cls(
            Ids.from_arrays(found),
            TextPool(found["filter_offsets"], found["filter_data"]),
            RdfArrays(*parts_of(found, _PARTS)),
            TextPool(found["expression_offsets"], found["expression_data"]),
            Options(**snapshot.about["options"]),
            Taxonomy.from_arrays(found) if taxonomy is None else taxonomy,
            Features(**features),
            Members(found["member_start"], found["roles"], TextPool(found["ask_offsets"], found["ask_data"])),
        )

    def save(self, path: Path, *, source: Mapping[str, object] | None = None) -> None:
        """Write a snapshot; nothing may have been removed."""
        arrays = stored_parts(self.arrays, _PARTS)
        arrays["filter_offsets"], arrays["filter_data"] = self.filters
        arrays["expression_offsets"], arrays["expression_data"] = self.expressions
        arrays["member_start"], arrays["roles"] = self.members.start, self.members.roles
        arrays["ask_offsets"], arrays["ask_data"] = self.members.asks
        arrays.update(self.ids.to_arrays())
        arrays.update(self.taxonomy.to_arrays())
        about = {
            "layout": LAYOUT,
            "options": asdict(self.options),
            "features": self.features._asdict(),
            "source": dict(source or {}),
        }
        counts = {
            "subscriptions": len(self.ids),
            "patterns": len(self.arrays.patterns.next),
            "edges": len(self.arrays.edges.s),
            "terms": len(self.arrays.dictionary.offsets) - 1 - len(OF_TEXTS),
            "taxonomy": len(self.taxonomy),
            "verified": self.members.verified,
            "unindexed": self.members.unindexed,
        }
        write_snapshot(path, ROOM, arrays, counts=counts, about=about)

    @property
    def nbytes(self) -> int:
        """Count the bytes of the arrays."""
        texts = sum(array.nbytes for array in (*self.expressions, *self.members.asks))
        return self.arrays.nbytes + texts + self.members.start.nbytes + self.members.roles.nbytes


def restore(arrays: RdfArrays, expressions: TextPool, members: Members, kept: NDArray[np.int64]) -> Columns:
    """Read some filters back, given by their numbers."""
    patterns, edges, entries, groups = arrays.patterns, arrays.edges, arrays.entries, arrays.groups
    count = len(entries.number)
    code = patterns.step_code.astype(np.int32)
    terms = np.stack([side[patterns.step_edge] for side in (edges.s, edges.p, edges.o)], axis=1)
    terms = np.where(terms >= 0, terms, -1 - (code[:, :3] & 63)).astype(np.int32)
    sizes = np.diff(patterns.step_start)
    slots = np.zeros(len(sizes), np.int64)
    np.maximum.at(slots, np.repeat(np.arange(len(sizes)), sizes), -terms.min(axis=1, initial=0))
    owner = np.repeat(np.arange(len(sizes)), np.diff(patterns.entry_start))
    wide = sizes[owner]
    edge_start = starts_of(wide)
    at = np.repeat(patterns.step_start[:-1][owner] - edge_start[:-1], wide) + np.arange(edge_start[-1])
    word_sizes, range_sizes = np.zeros((2, count), np.int64)
    laying.count_read(arrays.checks, entries.checks, word_sizes, range_sizes)
    inside = np.repeat(groups.entry, groups.size) + _within(groups.size)
    range_sizes[inside] += 1
    word_start, range_start = starts_of(word_sizes), starts_of(range_sizes)
    words = np.zeros(word_start[-1], np.int32)
    ranges = np.zeros((range_start[-1], 3), np.int8)
    ends = np.zeros((range_start[-1], 2), np.float64)
    laying.read_checks(arrays.checks, entries.checks, word_start, words, range_start, ranges, ends)
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
        word_start,
        words,
        TextPool(arrays.dictionary.offsets, arrays.dictionary.data),
        TextPool(arrays.checks.text_offsets, arrays.checks.text_data),
        expressions,
        np.arange(count + 1),
        np.zeros(count, np.int8),
        TextPool.build(()),
    )
    place = np.empty(count, np.int64)
    place[entries.number] = np.arange(count)
    # In the order of members first, each as if it were a filter.
    ordered = take(whole, place)._replace(member_start=members.start, roles=members.roles, asks=members.asks)
    return take(ordered, kept)


def _within(sizes: NDArray[np.int32]) -> NDArray[np.int64]:
    """Count from 0 within each of some runs."""
    starts = starts_of(sizes)
    return np.arange(starts[-1]) - np.repeat(starts[:-1], sizes)


class State(DocumentState[Base, WholeTail]):
    """Base and tail."""

    def __init__(self, base: Base) -> None:
        super().__init__(base, WholeTail(base.options, base.taxonomy, base.members.unindexed))

    @property
    def version(self) -> int:
        """Return the version of the taxonomy."""
        return self.base.taxonomy.version

    def prepared(self, number: int) -> PreparedPattern | Query:
        """Return a filter that is ready to be asked for its bindings."""
        base = len(self.base.ids)
        if number < base:
            return self.base.prepared(number)
        found = self.tail.pattern(number - base)
        return prepared(found) if isinstance(found, Pattern) else found


def compact(moment: Moment[State]) -> State:
    """Build a state whose base holds all that was left; the given one is not changed."""
    state, kept, late = moment
    base = state.base
    left = restore(base.arrays, base.expressions, base.members, np.flatnonzero(kept))
    ids, filters, order = state.merged(kept, late)
    columns = take(concatenate([left, take(state.tail.columns(), np.flatnonzero(late))]), order)
    return State(base_of(ids, filters, columns, base.options, base.taxonomy))


def base_of(ids: Ids, filters: TextPool, columns: Columns, options: Options, taxonomy: Taxonomy) -> Base:
    """Index filters that are compiled, in the order of their ids."""
    members = Members(columns.member_start, columns.roles, columns.asks)
    return Base(ids, filters, build(columns), columns.expressions, options, taxonomy, members=members)
