"""Crowds of filters: how an index reaches each of them, and what the reference says."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from headgate import Event, Subscription
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.records import reference
from headgate.records.index.access import POSTING
from headgate.records.index.arrays import FLAGS, REFERENCE, REFERENCE_WORDS, TREE
from headgate.records.index.build import build
from headgate.records.index.index import RecordIndex
from headgate.records.index.live import Base
from headgate.records.language.parse import parse_filter
from headgate.records.programs.binding import compile_filters
from tests.seeds import JIT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from headgate.core.event import Id
    from headgate.records.index.arrays import BuiltIndex
    from headgate.records.index.build import Weigh
    from headgate.records.index.lines import Parts
    from headgate.records.index.terms import Terms
    from headgate.records.language.model import Expression

RARE, MIDDLING, COMMON = 1e-4, 0.05, 1.0
"""Shares of events that have a code: it alone leads to filters, only with another one, or not at all."""


def scaled(compiled: int, plain: int) -> int:
    """Choose a size: with the JIT, or without."""
    return compiled if JIT else plain


@cache
def tree_of(text: str) -> Expression:
    return parse_filter(text)


def holding(texts: Sequence[str], event: Event) -> list[int]:
    """List the places of the filters that the reference says hold."""
    return [n for n, text in enumerate(texts) if reference.matches(tree_of(text), event.attributes)]


class Shares:
    """Weighs every code of a line alike, by the name of its attribute.

    With COMMON for all, postings are so dear that nothing leads to a filter.
    """

    def __init__(self, default: float, of: Mapping[str, float]) -> None:
        self.posting = POSTING if default < COMMON else 1000.0
        self._default = default
        self._of = of

    def __call__(self, built: BuiltIndex, parts: Parts, terms: Terms) -> NDArray[np.float64]:  # noqa: ARG002
        names = [".".join(built.attributes[number]) for number in built.lines.line_attribute.tolist()]
        each = np.array([self._of.get(name, self._default) for name in names], np.float64)
        return np.repeat(each, built.lines.line_codes)


def shares(default: float = RARE, **of: float) -> Shares:
    """Weigh all codes alike, but for those of some attributes."""
    return Shares(default, of)


def index_of(texts: Sequence[str], weigh: Weigh | None = None) -> RecordIndex:
    """Build an index whose ids are places in `texts`, and check its invariants."""
    if weigh is None:
        index = RecordIndex.build(Subscription(n, text) for n, text in enumerate(texts))
    else:
        compiled = compile_filters(texts)
        assert not compiled.refused
        posting = weigh.posting if isinstance(weigh, Shares) else POSTING
        built = build(compiled.programs, weigh, posting=posting)
        index = RecordIndex(Base(Ids.of(range(len(texts))), TextPool.build(texts), built), weigh=weigh)
    check(index)
    return index


def check(index: RecordIndex) -> None:
    """Assert the invariants of the base."""
    index.built.arrays.check()
    index.built.lines.check()
    index.built.texts.check()


def access_of(built: BuiltIndex) -> dict[int, set[str]]:
    """Tell how each filter is reached: by code, bucket, element, gram, two of them, or unkeyed.

    A filter kept as a tree has `tree` besides. One that never holds is not there.
    """
    arrays = built.arrays
    lines = len(arrays.line_base) - 1
    kind_of_line = np.array(["code", "element", "gram"])[arrays.line_multi]
    kinds = [*np.repeat(kind_of_line, np.diff(arrays.line_base)).tolist()]
    kinds += ["bucket"] * (len(arrays.pair_mask) - len(kinds))
    assert lines == built.lines.size
    found: dict[int, set[str]] = defaultdict(set)
    for atom, kind in enumerate(kinds):
        for number in _entries(built, int(arrays.single_start[atom]), int(arrays.single_start[atom + 1])):
            found[number].add(kind)
    for where in arrays.slot_at[arrays.slot_print > 0].tolist():
        a, b, words = arrays.stream[where : where + 3].tolist()
        for number in _entries(built, where + 3, where + 3 + words):
            found[number].add(" and ".join(sorted([kinds[a], kinds[b]])))
    for where in arrays.unkeyed_at.tolist():
        found[int(arrays.stream[where]) >> FLAGS].add("unkeyed")
    for number in _entries(built, int(arrays.marks[0]), len(arrays.stream), only=TREE):
        found[number].add("tree")
    return dict(found)


def _entries(built: BuiltIndex, at: int, end: int, only: int = 0) -> list[int]:
    stream = built.arrays.stream
    found = []
    while at < end:
        head, second = stream[at : at + 2].tolist()
        if head & only == only:
            found.append(head >> FLAGS)
        at += REFERENCE_WORDS if head & REFERENCE else 2 + second
    return found


def walk(index: RecordIndex, event: Event, begin: Id, after: Callable[[Id], Id]) -> list[Id]:
    """List the matches by asking for one after the other."""
    found: list[Id] = []
    at = begin
    while (match := index.next(event, at)) is not None:
        found.append(match)
        at = after(match)
    return found


def agree(index: RecordIndex, texts: Sequence[str], events: Sequence[Event]) -> None:
    """Assert that match, match_events and next say what the reference says."""
    expected = [holding(texts, event) for event in events]
    for event, wanted in zip(events, expected, strict=True):
        found = index.match(event)
        assert found == wanted, _differences(texts, event, found, wanted)
    batch = index.match_batch([Event(n, event.data) for n, event in enumerate(events)])
    by_event: list[list[object]] = [[] for _ in events]
    for n, identity in zip(*(column.to_pylist() for column in batch.columns), strict=True):
        by_event[n].append(identity)
    assert by_event == expected
    for event, wanted in list(zip(events, expected, strict=True))[:: max(1, len(events) // 8)]:
        assert walk(index, event, 0, lambda match: int(match) + 1) == wanted


def _differences(texts: Sequence[str], event: Event, found: Sequence[Id], wanted: list[int]) -> str:
    wrong = sorted(set(map(int, found)) ^ set(wanted))
    if not wrong:
        return f"repeated or out of order: {found}"
    return "\n".join(f"{event.attributes} {'no' if n in wanted else 'yes'}: {texts[n]}" for n in wrong[:5])
