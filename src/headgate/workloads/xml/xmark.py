"""XMark: views over the schema of an auction site, and small documents that answer most of them.

subscriptions   id "view-0000123", filter "//person[name = 'Ada Lind']/profile{cont}", dialect "xpath"
events          id "event-0000042", data "<site><regions>…</regions>…</site>", datacontenttype

As in section 5 of Karanasos, Katsifodimos and Manolescu, "Delta: scalable data dissemination under capacity
constraints", VLDB 2014: all views are different, or a part of them (section 5.5). The law `WAN` draws
views as that section needs them. Beside the texts there are the same views as patterns, for those who do not
want to measure the parser.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from headgate.core.event import XML
from headgate.core.subscription import XPATH
from headgate.errors import HeadgateError
from headgate.workloads.catalogue import XMARK_LAWS
from headgate.workloads.columns import Key, bits, zipf_rank
from headgate.workloads.rdf.publications import FilterWorkload
from headgate.workloads.xml.documents import document
from headgate.workloads.xml.walks import ViewLaw, Walk, topic
from headgate.xml.language.printing import print_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headgate.core.arrays import Bytes
    from headgate.workloads.columns import Floats, Ints
    from headgate.xml.language.model import Node, Pattern


TABLE_2 = ViewLaw()
WAN = ViewLaw(
    sizes=(0, 20, 30, 30, 20),
    absolute=0.0,
    descendant=0.2,
    wildcard=0.0,
    skew=1.0,
    test=0.1,
    compared=0.0,
    textual=0.0,
    period=1,
    topics=60,
)
"""Walks among 60 topics, as section 5.5 of the paper needs them: all can be computed from the topics."""
LAWS = dict(zip(XMARK_LAWS, (TABLE_2, WAN), strict=True))
_TABLE = "xmark views"
_DRAWS = 112
"""Random numbers of a view."""
_ATTEMPTS = 250
_BATCH = 4096
_EARLY = 2.0
"""How much more often early views are refined: an exponent as `skew` is."""


def unique_views(law: ViewLaw, count: int, seed: int) -> Iterator[tuple[int, Pattern]]:
    """Draw the views 0 to `count`, each with the attempt that it took.

    Some 80 microseconds a view.
    """
    seen: set[tuple[Node, ...]] = set()
    for first in range(0, count, _BATCH):
        rows = np.arange(first, min(first + _BATCH, count))
        for row, drawn in zip(rows.tolist(), draw_views(law, rows, seed, bytes(len(rows))), strict=True):
            view, attempt = drawn, 0
            while view.nodes in seen:
                attempt += 1
                if attempt == _ATTEMPTS:
                    raise HeadgateError(
                        f"view {row} of {count} was drawn {_ATTEMPTS} times and never new: "
                        "ask for fewer unique views"
                    )
                (view,) = draw_views(law, np.array([row]), seed, bytes([attempt]))
            seen.add(view.nodes)
            yield attempt, view


def draw_views(law: ViewLaw, rows: Ints, seed: int, attempts: bytes) -> list[Pattern]:
    """Draw the views of some rows, each at the given attempt."""
    rows = np.asarray(rows, np.int64)
    own = _numbers(rows, seed, np.frombuffer(attempts, np.uint8))
    refined = rows % law.period != 0
    refined_rows = law.period * np.floor((rows // law.period + 1) * own[:, -1] ** _EARLY).astype(np.int64)
    of = _numbers(
        np.where(refined, refined_rows, rows), seed, np.where(refined, 0, np.frombuffer(attempts, np.uint8))
    )
    patterns = []
    columns = (rows.tolist(), of.tolist(), own.tolist(), refined.tolist())
    for row, numbers, others, is_refined in zip(*columns, strict=True):
        if row < law.topics:
            patterns.append(topic(row))
            continue
        walk = Walk(law, numbers)
        if is_refined:
            walk.refine(others)
        walk.finish()
        patterns.append(walk.pattern())
    return patterns


def _numbers(rows: Ints, seed: int, attempts: Bytes) -> Floats:
    """Draw the random numbers of some rows, each at the given attempt."""
    drawn = np.empty((len(rows), _DRAWS))
    address = rows[:, None] * _DRAWS + np.arange(_DRAWS)
    for attempt in np.unique(attempts).tolist():
        (at,) = np.nonzero(attempts == attempt)
        words = bits(Key(seed, _TABLE, "draw", address[at].ravel()), attempt)
        drawn[at] = ((words >> np.uint64(11)).astype(np.float64) / (1 << 53)).reshape(len(at), _DRAWS)
    return drawn


_POPULARITY = 1.0
"""The exponent of Zipf's law by which views repeat, where they are not unique."""


@dataclass(frozen=True)
class XMark(FilterWorkload):
    """Rows of the workload; each depends on its number and the seed alone.

    >>> XMark().filters(np.array([12]), seed=1)
    ["//namerica/item[name{val} = 'silver ring']/payment"]
    """

    prefix = "view-"
    dialect = XPATH
    content_type = XML

    unique: int | None = None
    """How many views are different: the first ones. The others repeat these, some more often. None is all."""
    sizes: tuple[int, int] = (10_000, 40_000)
    """Bytes of a document, about."""
    law: ViewLaw = TABLE_2
    attempts: bytes | None = None
    """Which draw each unique view takes, worked out for one seed by `settled`."""

    def __post_init__(self) -> None:
        """Refuse what cannot be drawn."""
        self.law.check()
        if self.unique is not None and self.unique < 1:
            raise HeadgateError(f"{self.unique} unique views: there must be one at least")
        if not 0 < self.sizes[0] <= self.sizes[1]:
            raise HeadgateError(f"documents of {self.sizes} bytes: give two sizes, the lesser first")

    def settled(self, count: int, seed: int) -> XMark:
        """Find out which draws the first `count` views take. That needs all of them; rows need only that."""
        different = count if self.unique is None else min(count, self.unique)
        return replace(self, attempts=_attempts(self.law, different, seed))

    def views(self, count: int, seed: int) -> list[Pattern]:
        """Make the first `count` views, quicker than by `settled` and `patterns`."""
        different = count if self.unique is None else min(count, self.unique)
        views = [view for _, view in unique_views(self.law, different, seed)]
        return [views[number] for number in self._numbers(np.arange(count), seed).tolist()]

    def patterns(self, rows: Ints, seed: int) -> list[Pattern]:
        """Make the views with the given row numbers."""
        rows = np.asarray(rows, np.int64)
        if not len(rows):
            return []
        numbers = self._numbers(rows, seed)
        attempts = self.attempts
        if attempts is None or numbers.max() >= len(attempts):
            attempts = _attempts(self.law, int(numbers.max()) + 1, seed)
        return draw_views(self.law, numbers, seed, bytes(attempts[number] for number in numbers.tolist()))

    def _numbers(self, rows: Ints, seed: int) -> Ints:
        """Return the number of the unique view that each row shows."""
        if self.unique is None:
            return rows
        again = zipf_rank(Key(seed, "xmark views", "again", rows), self.unique, _POPULARITY)
        return np.where(rows < self.unique, rows, again)

    def filters(self, rows: Ints, seed: int) -> list[str]:
        """Write the views with the given row numbers."""
        return [print_pattern(pattern) for pattern in self.patterns(rows, seed)]

    def documents(self, rows: Ints, seed: int) -> list[str]:
        """Write the documents with the given row numbers."""
        return [document(row, seed, self.sizes) for row in np.asarray(rows, np.int64).tolist()]


@lru_cache(maxsize=4)
def _attempts(law: ViewLaw, count: int, seed: int) -> bytes:
    return bytes(attempt for attempt, _ in unique_views(law, count, seed))
