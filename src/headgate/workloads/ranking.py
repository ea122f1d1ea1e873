"""Subscriptions of intervals with scores and weights, and events that are points.

    subscriptions   id "box-0000123", filter "x1 BETWEEN 0.41 AND 0.73 AND …", score, weights {"x1": 0.84, …}
    events          id "event-0000042", x1, x2, …; NULL where the event lacks one

`Ranking` follows Table 1 of the paper: an interval in each of a few dimensions.
`Sparse` is for its last open point: hundreds of attributes, of which a subscription has a few.

After section 4 of Machanavajjhala et al., "Scalable ranked publish/subscribe", VLDB
2008: [0, 1) is divided into cells in every dimension. Points come from regions,
which are rectangles of cells with one volume and random sides, anywhere in the space:

    side of a region, 5 cells        |   |   | m |   |   |      m: the middle
    Zipf's law by distance            5th 3rd 1st 2nd 4th       skew_within; in each dimension by itself

A point is uniform in its cell. A box has a point in its middle and reaches its length to both sides: in each
dimension (r + u) / cells, r a Zipf rank below the number of cells, u uniform. Its weight there is 1 - length.

Ends, values and weights are rounded to floats of 4 bytes, as an index of the paper's size holds them. What is
written out is their shortest decimals, which are in the same order: texts and arrays give the same answers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.errors import HeadgateError
from headgate.records.programs.programs import starts
from headgate.workloads.catalogue import RANKING_SCORES
from headgate.workloads.columns import Key, harmonic, integers, numbered, uniform, zipf_rank
from headgate.workloads.records.specification import within

if TYPE_CHECKING:
    from headgate.workloads.columns import Floats, Ints, Texts


_BELOW_ONE = np.nextafter(np.float32(1), np.float32(0))
_SMALL = np.float32(2**-19)
"""What is nearer to 0 is 0, or its text would have an exponent."""


class Law(NamedTuple):
    """The parameters of Table 1 that points and lengths are drawn by."""

    regions: int = 10
    cells: int = 100
    volume: float = 1 / 20
    """The part of the space that a region takes."""
    skew_across: float = 0.0
    skew_within: float = 1.0
    skew_length: float = 0.75


TABLE_1 = Law()
"""Its defaults."""


class Regions(NamedTuple):
    """Rectangles: region r takes the cells from start[r, i] on, size[r, i] of them, in dimension i."""

    start: Ints
    size: Ints


class Columns(NamedTuple):
    """Boxes with an interval in every dimension: row n, column i. Ends are floats of 4 bytes in 8."""

    low: Floats
    high: Floats
    weight: Floats
    score: Floats

    def lists(self) -> Lists:
        """Write the same boxes as lists."""
        count, dimensions = self.low.shape
        start = np.arange(count + 1) * dimensions
        attribute = np.tile(np.arange(dimensions), count)
        return Lists(start, attribute, self.low.ravel(), self.high.ravel(), self.weight.ravel(), self.score)


class Lists(NamedTuple):
    """Boxes with intervals in some dimensions: those of box n are attribute[start[n] : start[n + 1]]."""

    start: Ints
    attribute: Ints
    low: Floats
    high: Floats
    weight: Floats
    score: Floats


def regions(law: Law, dimensions: int, key: Key) -> Regions:
    """Draw regions for the rows of the key.

    The logarithms of the sides share that of the volume, all shares as likely, so no side is longer than
    the space. Sides are whole cells, so the volume is met but for rounding.
    """
    share = np.stack([-np.log1p(-uniform(key, i)) for i in range(dimensions)], axis=1)
    share /= share.sum(axis=1, keepdims=True)
    size = np.clip(np.rint(law.cells * law.volume**share), 1, law.cells).astype(np.int64)
    where = np.stack([uniform(key, dimensions + i) for i in range(dimensions)], axis=1)
    return Regions(np.floor(where * (law.cells - size + 1)).astype(np.int64), size)


def place(law: Law, start: Ints, size: Ints, key: Key) -> Floats:
    """Draw a value in each of some sides of regions.

    >>> key = Key(1, "t", "c", np.arange(3))
    >>> place(TABLE_1, np.array([90, 90, 0]), np.array([1, 5, 5]), key).round(2).tolist()
    [0.9, 0.93, 0.01]
    """
    total = harmonic(law.cells, law.skew_within)
    rank = np.searchsorted(total, uniform(key, 0) * total[size - 1], side="right")
    rank = np.minimum(rank, size - 1)
    # 1 to the right, 1 to the left, 2 to the right: an even side has its middle left of the centre.
    offset = (rank + 1) // 2 * np.where(rank % 2, 1, -1)
    cell = start + (size - 1) // 2 + offset
    return np.minimum(single((cell + uniform(key, 1)) / law.cells), _BELOW_ONE)


def lengths(law: Law, key: Key) -> Floats:
    """Draw a length in [0, 1) for each row of the key."""
    return (zipf_rank(key, law.cells, law.skew_length) + uniform(key, 1)) / law.cells


def region_of(law: Law, key: Key) -> Ints:
    """Draw a region for each row of the key."""
    if law.skew_across == 0:
        return integers(key, 0, law.regions)
    return zipf_rank(key, law.regions, law.skew_across)


def single(values: Floats) -> Floats:
    """Round to floats of 4 bytes, and what is nearly 0 to 0."""
    short = values.astype(np.float32)
    return np.where(np.abs(short) < _SMALL, np.float32(0), short).astype(np.float64)


_KINDS: dict[str, pa.DataType] = {
    "id": pa.string(),
    "filter": pa.string(),
    "score": pa.float64(),
    "weights": pa.map_(pa.string(), pa.float64()),
}
SUBSCRIPTION_SCHEMA = pa.schema([pa.field(name, kind, nullable=False) for name, kind in _KINDS.items()])
_MOST_DIMENSIONS, _MOST_ATTRIBUTES = 64, 10_000
_BOXES, _EVENTS = "ranking boxes", "ranking events"


class RankingWorkload(ABC):
    """Rows of a workload with intervals; each depends on its number and the seed alone."""

    dimensions: int
    """How many attributes events have."""
    scores: str
    law: Law

    @abstractmethod
    def lists(self, rows: Ints, seed: int) -> Lists:
        """Draw the boxes with the given row numbers."""

    @abstractmethod
    def points(self, rows: Ints, seed: int) -> Floats:
        """Draw events: a row each, a column for each attribute, NaN where the event lacks it."""

    @property
    def names(self) -> list[str]:
        """List the names of the attributes."""
        return [f"x{number + 1}" for number in range(self.dimensions)]

    def subscriptions(self, rows: Ints, seed: int) -> pa.RecordBatch:
        """Make the subscriptions with the given row numbers."""
        rows = np.asarray(rows, np.int64)
        boxes = self.lists(rows, seed)
        named: Texts = pa.array(self.names, pa.string()).take(pa.array(boxes.attribute, pa.int64()))
        start: Any = pa.array(boxes.start, pa.int32())
        columns: list[pa.Array[Any]] = [
            numbered("box-", rows, 7),
            _filters(start, named, boxes),
            pa.array(boxes.score),
            pa.MapArray.from_arrays(start, named, pa.array(boxes.weight, pa.float64())),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=SUBSCRIPTION_SCHEMA)

    def subscription_schema(self) -> pa.Schema:
        """Describe the columns of `subscriptions`."""
        return SUBSCRIPTION_SCHEMA

    def events(self, rows: Ints, seed: int) -> pa.RecordBatch:
        """Make the events with the given row numbers."""
        rows = np.asarray(rows, np.int64)
        drawn = self.points(rows, seed)
        columns: list[pa.Array[Any]] = [numbered("event-", rows, 7)]
        columns += [pc.cast(_decimals(drawn[:, i]), pa.float64()) for i in range(self.dimensions)]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema())

    def schema(self) -> pa.Schema:
        """Describe the columns of `events`."""
        fields: list[pa.Field[Any]] = [pa.field("id", pa.string(), nullable=False)]
        fields += [pa.field(name, pa.float64()) for name in self.names]
        return pa.schema(fields)

    def _score(self, mean: Floats, rows: Ints, seed: int) -> Floats:
        """Return the scores for exact matching, given the mean of each box's weights."""
        return single(mean if self.scores == "length" else uniform(Key(seed, _BOXES, "score", rows)))


@dataclass(frozen=True)
class Ranking(RankingWorkload):
    """Boxes with an interval in every dimension; scores are the mean of the weights, or random.

    >>> Ranking(2).subscriptions(np.arange(1), seed=1)["filter"][0].as_py()
    'x1 BETWEEN 0.41907707 AND 0.58005226 AND x2 BETWEEN 0.8761343 AND 0.88978887'
    """

    dimensions: int = 1
    scores: str = "length"
    law: Law = TABLE_1

    def __post_init__(self) -> None:
        """Refuse what cannot be drawn."""
        if not 1 <= self.dimensions <= _MOST_DIMENSIONS:
            raise HeadgateError(f"{self.dimensions} dimensions: give 1 to {_MOST_DIMENSIONS}")
        _check(self.law, self.scores)

    def columns(self, rows: Ints, seed: int) -> Columns:
        """Draw the boxes with the given row numbers; every dimension is in one piece of memory."""
        rows = np.asarray(rows, np.int64)
        middle = self._points(_BOXES, rows, seed)
        low, high, weight = (np.empty_like(middle) for _ in range(3))
        for i in range(self.dimensions):
            length = lengths(self.law, Key(seed, _BOXES, f"length {i}", rows))
            low[:, i], high[:, i] = single(middle[:, i] - length), single(middle[:, i] + length)
            weight[:, i] = single(1 - length)
        return Columns(low, high, weight, self._score(weight.mean(axis=1), rows, seed))

    def lists(self, rows: Ints, seed: int) -> Lists:
        """Draw the boxes with the given row numbers."""
        return self.columns(rows, seed).lists()

    def points(self, rows: Ints, seed: int) -> Floats:
        """Draw events: a row each, a column for each dimension."""
        return self._points(_EVENTS, np.asarray(rows, np.int64), seed)

    def regions(self, seed: int) -> Regions:
        """Draw the regions that boxes and events share."""
        key = Key(seed, f"ranking regions {self.dimensions}", "", np.arange(self.law.regions))
        return regions(self.law, self.dimensions, key)

    def _points(self, table: str, rows: Ints, seed: int) -> Floats:
        start, size = self.regions(seed)
        region = region_of(self.law, Key(seed, table, "region", rows))
        points = np.empty((len(rows), self.dimensions), order="F")
        for i in range(self.dimensions):
            key = Key(seed, table, f"place {i}", rows)
            points[:, i] = place(self.law, start[region, i], size[region, i], key)
        return points


@dataclass(frozen=True)
class Sparse(RankingWorkload):
    """Boxes with `least` to `most` intervals over many attributes, of which events have the part `presence`.

    Each attribute has regions of its own. Attributes are as popular as Zipf's law with `skew` says.
    """

    dimensions: int = 500
    least: int = 3
    most: int = 8
    presence: float = 1.0
    skew: float = 0.5
    scores: str = "length"
    law: Law = TABLE_1

    def __post_init__(self) -> None:
        """Refuse what cannot be drawn."""
        if not 1 <= self.dimensions <= _MOST_ATTRIBUTES:
            raise HeadgateError(f"{self.dimensions} attributes: give 1 to {_MOST_ATTRIBUTES:,}")
        if not 1 <= self.least <= self.most or 2 * self.most > max(self.dimensions, 2):
            raise HeadgateError(
                f"{self.least} to {self.most} intervals of {self.dimensions} attributes: give 1 or more, "
                "the lower number first, and twice as many attributes at least"
            )
        if not 0 < self.presence <= 1:
            raise HeadgateError(f"presence {self.presence}: give a part of the attributes, above 0 up to 1")
        _check(self.law, self.scores)

    def lists(self, rows: Ints, seed: int) -> Lists:
        """Draw the boxes with the given row numbers; each names its attributes in rising order."""
        rows = np.asarray(rows, np.int64)
        counts = integers(Key(seed, _BOXES, "intervals", rows), self.least, self.most + 1)
        named = np.where(np.arange(self.most) < counts[:, None], self._named(rows, seed), self.dimensions)
        named.sort(axis=1)
        attribute = named[named < self.dimensions]
        address = np.repeat(rows, counts) * self.most + within(counts)
        middle = self._place(_BOXES, attribute, address, seed)
        length = lengths(self.law, Key(seed, _BOXES, "length", address))
        weight = single(1 - length)
        start = starts(counts)
        mean = np.add.reduceat(weight, start[:-1]) / counts if len(rows) else np.zeros(0)
        return Lists(
            start,
            attribute,
            single(middle - length),
            single(middle + length),
            weight,
            self._score(mean, rows, seed),
        )

    def points(self, rows: Ints, seed: int) -> Floats:
        """Draw events: a row each, a column for each attribute, NaN where the event lacks it."""
        rows = np.asarray(rows, np.int64)
        address = (rows[:, None] * self.dimensions + np.arange(self.dimensions)).ravel()
        attribute = np.tile(np.arange(self.dimensions), len(rows))
        value = self._place(_EVENTS, attribute, address, seed)
        there = uniform(Key(seed, _EVENTS, "presence", address)) < self.presence
        return np.where(there, value, np.nan).reshape(len(rows), self.dimensions)

    def _named(self, rows: Ints, seed: int) -> Ints:
        """Draw different attributes for each row; one that the row has already is drawn again."""
        attributes = np.full((len(rows), self.most), -1, np.int64)
        for i in range(self.most):
            open_, turn = np.arange(len(rows)), 0
            while len(open_):
                key = Key(seed, _BOXES, f"attribute {i}", rows[open_])
                drawn = zipf_rank(key, self.dimensions, self.skew, turn)
                new = (attributes[open_, :i] != drawn[:, None]).all(axis=1)
                attributes[open_[new], i] = drawn[new]
                open_, turn = open_[~new], turn + 1
        return attributes

    def _place(self, table: str, attribute: Ints, address: Ints, seed: int) -> Floats:
        """Draw values of attributes, each from one of the attribute's regions."""
        law = self.law
        key = Key(seed, "ranking regions of attributes", "", np.arange(self.dimensions * law.regions))
        start, size = regions(law, 1, key)
        region = attribute * law.regions + region_of(law, Key(seed, table, "region", address))
        return place(law, start[region, 0], size[region, 0], Key(seed, table, "place", address))


def _check(law: Law, scores: str) -> None:
    if scores not in RANKING_SCORES:
        raise HeadgateError(f"there are no scores {scores!r}; there are {', '.join(RANKING_SCORES)}")
    if not (law.regions >= 1 and law.cells >= 1 and 0 < law.volume <= 1):
        raise HeadgateError(
            f"{law.regions} regions with the part {law.volume} of {law.cells} cells: give 1 or more of each, "
            "and a part above 0 up to 1"
        )
    if not all(0 <= skew < np.inf for skew in (law.skew_across, law.skew_within, law.skew_length)):
        raise HeadgateError("a skew of Zipf's law is a finite number from 0 up")


def _filters(start: Any, named: Texts, boxes: Lists) -> Texts:
    between, conjunction, nothing = (
        pa.repeat(pa.scalar(text), len(named)) for text in (" BETWEEN ", " AND ", "")
    )
    low, high = _decimals(boxes.low), _decimals(boxes.high)
    clauses = pc.binary_join_element_wise(named, between, low, conjunction, high, nothing)
    lists = pa.ListArray.from_arrays(start, clauses)
    return cast("Texts", pc.binary_join(lists, pa.scalar(" AND ")))


def _decimals(values: Floats) -> Texts:
    """Write floats of 4 bytes as their shortest decimals; NaN as NULL."""
    short = np.asarray(values, np.float32)
    written: Texts = pc.cast(pa.array(short, mask=np.isnan(short)), pa.string())
    return written
