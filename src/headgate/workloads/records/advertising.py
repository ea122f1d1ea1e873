"""The advertising workload: campaigns that want some page impressions, and the impressions.

    subscriptions   id "campaign-0000123", filter: what the campaign wants, as Spark SQL
    events          id "impression-0000042", and 24 attributes of one place on one page for one visitor

The attributes hang together as they do in life: a city lies in its country, a browser runs on its
system, a path begins with its category, `hour` and `weekday` are those of `time`. Popular names
follow Zipf's law. Visitors may hide their age, income or membership, and may be unknown
altogether (`user` is null).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headgate.workloads.columns import (
    Key,
    choose,
    digits,
    glue,
    integers,
    numbered,
    uniform,
    weighted,
    zipf_rank,
)
from headgate.workloads.records import advertising_filters as vocabulary
from headgate.workloads.records.synthetic import SUBSCRIPTION_SCHEMA

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.workloads.columns import Floats, Ints

    Column = pa.Array[Any]

SUBSCRIPTIONS = "subscriptions"
EVENTS = "events"

_MICROSECONDS = 1_000_000
# Visits by hour of the day: quiet at night, a first peak at noon, the highest in the evening.
_BY_HOUR = (2, 1, 1, 1, 1, 2, 4, 6, 7, 7, 7, 8, 9, 8, 7, 7, 7, 8, 9, 11, 12, 11, 8, 4)
_BY_DEVICE = (58, 30, 8, 4)
_SYSTEM_OF_DEVICE = np.array(
    [[62, 38, 0, 0, 0, 0], [0, 0, 70, 24, 6, 0], [45, 50, 5, 0, 0, 0], [70, 0, 0, 0, 0, 30]]
)
_BROWSER_OF_SYSTEM = np.array(
    [
        [74, 0, 2, 5, 15, 4],
        [14, 80, 2, 2, 0, 2],
        [62, 0, 25, 9, 0, 4],
        [42, 48, 3, 6, 0, 1],
        [55, 0, 2, 40, 0, 3],
        [0, 100, 0, 0, 0, 0],
    ]
)
_NAMES_PER_LIST = 5
_FOLDERS = [
    f"/{category}/{topic}/{kind}-"
    for category in vocabulary.CATEGORIES
    for topic in vocabulary.TOPICS
    for kind in vocabulary.KINDS
]


def subscription_schema() -> pa.Schema:
    """Describe the columns of `subscriptions`."""
    return SUBSCRIPTION_SCHEMA


def schema() -> pa.Schema:
    """Describe the columns of `events`."""
    text, whole, real, texts = pa.string(), pa.int64(), pa.float64(), pa.list_(pa.string())
    user = pa.struct([("segment", text), ("score", real), ("visits", whole)])
    fields = {
        "time": pa.timestamp("us", tz="UTC"),
        "hour": whole,
        "weekday": text,
        "country": text,
        "city": text,
        "language": text,
        "device": text,
        "os": text,
        "browser": text,
        "connection": text,
        "site": text,
        "category": text,
        "path": text,
        "position": text,
        "viewability": real,
        "price_floor": real,
        "age": whole,
        "income": real,
        "is_member": pa.bool_(),
        "interests": texts,
        "blocked_categories": texts,
        "user": user,
    }
    optional = [pa.field(name, kind) for name, kind in fields.items()]
    return pa.schema([pa.field("id", text, nullable=False), *optional])


def subscriptions(rows: Ints, seed: int) -> pa.RecordBatch:
    """Make the campaigns with the given row numbers."""
    rows = np.asarray(rows, np.int64)
    filters = pa.array(vocabulary.filters(rows, seed, SUBSCRIPTIONS), pa.string())
    return pa.RecordBatch.from_arrays([numbered("campaign-", rows, 7), filters], schema=subscription_schema())


def events(rows: Ints, seed: int) -> pa.RecordBatch:
    """Make the impressions with the given row numbers."""
    rows = np.asarray(rows, np.int64)

    def key(column: str) -> Key:
        return Key(seed, EVENTS, column, rows)

    columns: dict[str, Column] = {"id": numbered("impression-", rows, 7)}
    columns |= _when(key("time"))
    columns |= _where(key("country"))
    columns |= _machine(key("device"))
    columns |= _page(key("site"))
    columns |= _visitor(key("user"))
    columns["interests"] = _name_lists(
        key("interests"), vocabulary.INTERESTS, 0.7, (8, 14, 24, 24, 18, 12), hidden=0.05
    )
    columns["blocked_categories"] = _name_lists(
        key("blocked"), vocabulary.CATEGORIES[::-1], 1.1, (45, 20, 15, 10, 6, 4), hidden=0.1
    )
    return pa.RecordBatch.from_arrays([columns[field.name] for field in schema()], schema=schema())


def _when(key: Key) -> dict[str, Column]:
    day = integers(key, 0, vocabulary.DAYS)
    hour = weighted(key, _BY_HOUR, draw=1)
    within = integers(key, 0, 3600 * _MICROSECONDS, draw=2)
    start = int(vocabulary.START.timestamp()) * _MICROSECONDS
    time = start + (day * 24 + hour) * 3600 * _MICROSECONDS + within
    return {
        "time": pa.array(time, pa.timestamp("us", tz="UTC")),
        "hour": pa.array(hour),
        "weekday": choose(vocabulary.WEEKDAYS, day % 7),
    }


def _where(key: Key) -> dict[str, Column]:
    country = zipf_rank(key, len(vocabulary.COUNTRIES), 0.9)
    city = country * vocabulary.CITIES_EACH + zipf_rank(key, vocabulary.CITIES_EACH, 0.8, draw=1)
    native = np.array([vocabulary.LANGUAGES.index(each.language) for each in vocabulary.COUNTRIES])[country]
    other = zipf_rank(key, len(vocabulary.LANGUAGES), 1.0, draw=2)
    language = np.where(uniform(key, draw=3) < 0.85, native, other)
    return {
        "country": choose([each.code for each in vocabulary.COUNTRIES], country),
        # Some visitors can be placed in a country only.
        "city": choose(
            [c for each in vocabulary.COUNTRIES for c in each.cities],
            city,
            hidden=uniform(key, draw=4) < 0.06,
        ),
        "language": choose(vocabulary.LANGUAGES, language),
    }


def _machine(key: Key) -> dict[str, Column]:
    device = weighted(key, _BY_DEVICE)
    system = _given(_SYSTEM_OF_DEVICE, device, uniform(key, draw=1))
    browser = _given(_BROWSER_OF_SYSTEM, system, uniform(key, draw=2))
    return {
        "device": choose(vocabulary.DEVICES, device),
        "os": choose(vocabulary.SYSTEMS, system),
        "browser": choose(vocabulary.BROWSERS, browser),
        "connection": choose(
            vocabulary.CONNECTIONS, zipf_rank(key, len(vocabulary.CONNECTIONS), 0.8, draw=3)
        ),
    }


def _page(key: Key) -> dict[str, Column]:
    site = zipf_rank(key, len(vocabulary.SITES), 0.8)
    category = zipf_rank(key, len(vocabulary.CATEGORIES), 0.8, draw=1)
    topic = zipf_rank(key, len(vocabulary.TOPICS), 0.7, draw=2)
    kind = zipf_rank(key, len(vocabulary.KINDS), 0.5, draw=3)
    number = integers(key, 1, 10_000, draw=4)
    return {
        "site": choose(vocabulary.SITES, site),
        "category": choose(vocabulary.CATEGORIES, category),
        "path": glue(
            choose(_FOLDERS, (category * len(vocabulary.TOPICS) + topic) * len(vocabulary.KINDS) + kind),
            digits(number),
        ),
        "position": choose(vocabulary.POSITIONS, zipf_rank(key, len(vocabulary.POSITIONS), 0.7, draw=5)),
        # The square root leans towards pages that are seen.
        "viewability": pa.array(np.round(np.sqrt(uniform(key, draw=6)), 3)),
        "price_floor": pa.array(np.round(0.05 + _exponential(uniform(key, draw=7), 0.8), 2)),
    }


def _visitor(key: Key) -> dict[str, Column]:
    age = (16 + 64 * uniform(key) ** 1.4).astype(np.int64)
    income = np.round(
        _exponential(uniform(key, draw=1), 16_000) + _exponential(uniform(key, draw=2), 16_000), -2
    )
    member = uniform(key, draw=3) < 0.35
    score = np.round(uniform(key, draw=4), 3)
    visits = _exponential(uniform(key, draw=5), 9).astype(np.int64)
    segment = choose(
        vocabulary.SEGMENTS,
        zipf_rank(key, len(vocabulary.SEGMENTS), 0.7, draw=6),
        hidden=uniform(key, draw=7) < 0.05,
    )
    user = pa.StructArray.from_arrays(
        [segment, pa.array(score), pa.array(visits)],
        fields=list(schema().field("user").type),
        mask=pa.array(uniform(key, draw=8) < 0.04),
    )
    return {
        "age": pa.array(age, mask=uniform(key, draw=9) < 0.12),
        "income": pa.array(income, mask=uniform(key, draw=10) < 0.25),
        "is_member": pa.array(member, mask=uniform(key, draw=11) < 0.08),
        "user": user,
    }


def _name_lists(
    key: Key, names: Sequence[str], exponent: float, by_length: Sequence[float], hidden: float
) -> Column:
    """Draw a list of different names for each row; a name drawn again is dropped."""
    wanted = weighted(key, by_length)
    drawn = np.stack(
        [zipf_rank(key, len(names), exponent, draw=1 + i) for i in range(_NAMES_PER_LIST)], axis=1
    )
    kept = np.arange(_NAMES_PER_LIST) < wanted[:, None]
    for later in range(1, _NAMES_PER_LIST):
        kept[:, later] &= (drawn[:, :later] != drawn[:, later, None]).all(axis=1)
    offsets = np.zeros(len(wanted) + 1, np.int32)
    np.cumsum(kept.sum(axis=1), out=offsets[1:])
    mask = pa.array(uniform(key, draw=1 + _NAMES_PER_LIST) < hidden, pa.bool_())
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), choose(names, drawn[kept]), mask=mask)


def _given(weights: Ints, row: Ints, points: Floats) -> Ints:
    """Pick a column of `weights` for each given row of it, as often as that row says."""
    total = np.cumsum(weights, axis=1)
    passed = total[row] <= (points * total[row, -1])[:, None]
    columns: Ints = passed.sum(axis=1)
    return columns


def _exponential(points: Floats, mean: float) -> Floats:
    scaled: Floats = -mean * np.log1p(-points)
    return scaled
