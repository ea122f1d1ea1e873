"""Events read in one pass over their values, against the same events by columns."""

from __future__ import annotations

import datetime as dt
import inspect
import json
import math
import random
import re
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from enum import IntEnum
from itertools import product
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate import Event, Subscription
from headgate.core import values
from headgate.core.event import read_object
from headgate.core.interning import TextPool
from headgate.core.jit.memory import EACH
from headgate.core.values import EXACT, flatten_into, fold
from headgate.errors import EventError
from headgate.records.events import encode, rows
from headgate.records.events.columns import EventColumns
from headgate.records.index import kernels
from headgate.records.index.arrays import Desk, Events, RecordArrays
from headgate.records.index.index import RecordIndex
from headgate.records.index.live import Base
from headgate.records.index.matcher import JointEncoder, Matcher, together
from tests.records.random_filters import random_event, random_filter
from tests.seeds import examples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.records.index.arrays import BuiltIndex

pytestmark = pytest.mark.jit_off

FILTERS = [
    "i > 3",
    "i = 7 OR f < 2.5",
    "s = 'news' AND b",
    "s > 'ab' AND s < 'zoë'",
    "s LIKE '%new%' OR i LIKE '1%' OR b LIKE 't%'",
    "s LIKE 'a_b%'",
    "whole > 5",
    "real < 1.5 OR f = 1.5",
    "day >= DATE '2024-01-01'",
    "t > TIMESTAMP '2024-01-01 00:00:00'",
    "cost = 2.50 OR exact > 1234567890.123456789012345678",
    "array_contains(tags, 'news')",
    "array_contains(ints, 5) OR array_contains(costs, 2.50)",
    "forall(tags, x -> x IN ('news', 'a'))",
    "user.age > 5 AND user IS NOT NULL",
    "user.name.last = 'x' OR user.`first name` LIKE '%a%'",
    "odd IS NULL AND s IS NOT NULL",
    "person.age > 5",
    "TRUE",
]
ODD: list[object] = [
    None, True, False, 0, 1, -1, 7, 2**53 + 1, 2**63 - 1, -(2**63), 0.0, -0.0, 1.0, 7.0, 2.5, 1e300, 5e-324,
    float("nan"), float("inf"), float("-inf"), "", "7", " 7 ", "1.5", "news", "new", "News", "zoë", "日本",
    "true", "yes", "2024-01-01", "x" * 100, Decimal("2.50"), Decimal("2.5"), Decimal("1e70"), Decimal("-0.0"),
    Decimal("12345678901234567890.123456789012345679"), dt.date(2024, 1, 1), dt.datetime(2024, 1, 1),
    dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
    dt.datetime(2024, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=2))),
    [], [1], [5, None, "news"], ["news", 2.5, True], [[1], []], (5, 6), [Decimal("2.50"), {"a": 1}], {},
    {"age": 7}, {"AGE": 7, "name": {"Last": "x"}}, {"name": None, "first name": "aa", "more": {"deep": [1]}},
]  # fmt: skip
"""One of every type, and of every value that is odd for its type."""


class Color(IntEnum):
    RED = 1


BAD: list[object] = [
    2**63, -(2**63) - 1, 10**400, "\ud800", "a" * 99 + "\udfff", Decimal("NaN"), Decimal("1e77"),
    Decimal(1) / Decimal(10**80), b"bytes", {1, 2}, object(), [object()], [1, [2**64]], {"a": "\ud800"},
    {"x": {"y": 2**70}}, {7: 1}, {"a": 1, "A": 2}, {"age": object()}, {"age": 2**64}, {"Age": 1, "age": 2},
    dt.timedelta(1), 1j,
]  # fmt: skip
"""What is refused, whether a filter names the attribute or not."""


def index_of(filters: Sequence[str]) -> RecordIndex:
    return RecordIndex.build(Subscription(number, text) for number, text in enumerate(filters))


INDEX = index_of(FILTERS)
NAMES = [
    "i",
    "f",
    "s",
    "b",
    "whole",
    "real",
    "day",
    "t",
    "cost",
    "exact",
    "tags",
    "ints",
    "costs",
    "user",
    "odd",
]


def seen(events: Events, e: int) -> tuple[Any, ...]:
    """Say what an index sees of one event of a batch: texts by what they are, and not by their places."""
    multi = [events.multi_codes[line[e] : line[e + 1]].tolist() for line in events.multi_start]
    texts = []
    for place in events.text_of[:, e].tolist():
        begin, end = (events.text_offsets[place + at] for at in (0, 1)) if place >= 0 else (0, 0)
        texts.append(None if place < 0 else events.text_data[begin:end].tobytes())
    return events.codes[e].tolist(), multi, texts


def assert_same(built: BuiltIndex, events: Sequence[Event]) -> None:
    """Hold one event after the other, and all at once, against columns."""
    encoder = rows.RowEncoder(built)
    wanted = encode.encode(EventColumns(events), built)
    together = encoder.encode(events)
    for each in (together, encoder.encode(events)):
        assert [part.dtype for part in each] == [part.dtype for part in wanted]
        assert each.multi_start.shape == wanted.multi_start.shape
        assert all(part.flags.c_contiguous for part in each)
    for e, event in enumerate(events):
        expected = seen(wanted, e)
        assert seen(together, e) == expected, event
        # By now every value was seen, and is looked up.
        assert seen(encoder.encode([event]), 0) == expected, event


@examples(150)
@given(st.randoms(use_true_random=False), st.booleans())
def test_rows_agree_with_columns(rng: random.Random, wild: bool) -> None:
    filters = [random_filter(rng, wild=wild) for _ in range(8)]
    assert_same(index_of(filters).built, [Event.from_row(random_event(rng, e)) for e in range(8)])


@pytest.mark.parametrize("name", NAMES)
def test_every_odd_value_in_every_attribute(name: str) -> None:
    assert_same(INDEX.built, [Event(e, {name: value, "Other": value}) for e, value in enumerate(ODD)])


@examples(100)
@given(st.randoms(use_true_random=False))
def test_odd_values_together(rng: random.Random) -> None:
    spelled = [name for name in (*NAMES, "else") for name in (name, name.upper(), name.title())]

    def event(e: int) -> Event:
        chosen = {name.lower(): name for name in rng.sample(spelled, 12)}
        return Event(e, {name: rng.choice(ODD) for name in chosen.values()})

    assert_same(INDEX.built, [event(e) for e in range(6)])


PLAIN = [
    ["i = 1 AND s = 'news'", "f BETWEEN 0.5 AND 7", "user.age > 3 OR b", "s IN ('a', '7')", "d < 3.5"],
    ["i > 7", "s = 'x' AND whole <> 2", "user.name = 'Ann'", "lower(s) = 'news'", "length(s) > 2 AND f < 1"],
    ["nobody = 1 AND i + 1 > 3", "b IS NOT NULL", "day > '2020-01-01'", "tags IS NULL", "abs(real) < 3"],
]
"""Filters that look at nothing but values, each by itself."""


def assert_equal(found: Events, wanted: Events) -> None:
    """Hold all arrays of events against those of others."""
    one: Any
    for one, other in zip(found, wanted, strict=True):
        assert np.array_equal(one, np.asarray(other))


def test_one_pass_for_several_indexes_is_one_for_each() -> None:
    encoders = [rows.RowEncoder(index_of(filters).built) for filters in PLAIN]
    assert together(encoders)
    joint = JointEncoder(encoders)
    room = joint.joint_scratch()
    rng = random.Random(3)
    names = [*NAMES, "S", "I", "nobody", "else"]
    events = [Event(e, {name: value}) for e, (name, value) in enumerate(product(names, ODD))]
    for e in range(300):
        chosen = {name.lower(): name for name in rng.sample(names, 8)}
        events.append(Event(e, {name: rng.choice(ODD) for name in chosen.values()}))
    users = [{"user": {"age": 5, "name": "Ann", "x": [1]}}, {"user": {"AGE": 1.0}}, {"s": "a", "S": None}]
    events += [Event("e", data) for data in users[:2]]
    for _ in range(2):
        for own, found in zip(encoders, joint.encode_all(events), strict=True):
            assert_equal(found, own.encode(events))
        for event in events:
            joint.write_one(event, room)
            for own, found in zip(encoders, room.own, strict=True):
                assert_equal(found, own.encode([event]))
    with pytest.raises(EventError):
        joint.write_one(Event("e", users[2]), room)


@pytest.mark.parametrize(
    "text", ["s LIKE '%x%'", "array_contains(tags, 'a')", "i + f > 3", "lower(s) LIKE 'a%b'"]
)
def test_one_pass_is_not_for_more_than_values(text: str) -> None:
    encoders = [rows.RowEncoder(index_of(filters).built) for filters in ([text], PLAIN[0])]
    assert not together(encoders)


@pytest.mark.parametrize("value", BAD, ids=lambda value: repr(value)[:20])
@pytest.mark.parametrize("name", ["i", "user", "tags", "nobody"])
def test_what_is_refused(name: str, value: object) -> None:
    event = Event("e", {"s": "news", name: value, "later": 2**80})
    with pytest.raises(EventError) as wanted:
        encode.encode(EventColumns([event]), INDEX.built)
    encoder = rows.RowEncoder(INDEX.built)
    good = Event("g", {"s": "news", "tags": ["x"]})
    for events in ([event], [good, event], [good, event]):
        with pytest.raises(EventError) as found:
            encoder.encode(events)
        assert str(found.value) == str(wanted.value)
    # What was read before the refusal is forgotten.
    assert_same(INDEX.built, [good])


def test_names_that_differ_in_case_only() -> None:
    encoder = rows.RowEncoder(INDEX.built)
    for name, other in (("i", "I"), ("nobody", "NOBODY"), ("User", "user")):
        for spelled in (name, other):
            encoder.encode([Event("e", {spelled: 1})])
        with pytest.raises(EventError, match="is given twice"):
            encoder.encode([Event("e", {name: 1, other: 2})])
        assert_same(INDEX.built, [Event("e", {spelled: 5}) for spelled in (name, other)])
    with pytest.raises(EventError, match=r"attribute user.age is given twice"):
        encoder.encode([Event("e", {"user": {"age": 1, "Age": 2}})])
    with pytest.raises(EventError, match="the attribute name 7 is not text"):
        encoder.encode([Event("e", {7: 1})])


def test_deep_objects() -> None:
    deep: dict[str, Any] = {"last": "x"}
    for _ in range(31):
        deep = {"name": deep}
    assert_same(INDEX.built, [Event("e", {"user": deep})])
    for name in ("user", "nobody"):
        with pytest.raises(EventError, match="objects nest deeper than 32"):
            rows.RowEncoder(INDEX.built).encode([Event("e", {name: {"name": deep}})])


@examples(60)
@given(st.integers(0, 10**6), st.sampled_from(["", EXACT]))
def test_objects_that_no_filter_names_are_checked(seed: int, mark: str) -> None:
    rng = random.Random(seed)
    part = mark.__add__ if mark else fold
    checked = values.CheckedObjects(part)

    def made(depth: int) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for name in rng.sample(["a", "A", "b", "Strasse", "STRASSE", "n", "x" * 100, 7], 3):
            kind = rng.randrange(8)
            inner = depth < 35 and (kind < 2 or depth > 3)
            found[name] = made(depth + 1) if inner else rng.choice(BAD if kind == 2 else ODD)
            if depth > 3:
                return found
        return found

    for _ in range(40):
        value, around = made(0), rng.choice([0, 0, 1, 28])
        try:
            flatten_into({}, value, ("x",) * (around + 1), part)
        except EventError:
            with pytest.raises(EventError):
                checked.check(value, around)
        else:
            checked.check(value, around)


def test_mappings_and_foreign_types() -> None:
    class Row(dict[str, Any]):
        """A mapping that is no dict."""

    encoder = rows.RowEncoder(INDEX.built)
    plain = encoder.encode([Event("e", {"i": 7, "tags": ["news"]})])
    assert seen(encoder.encode([Event("e", Row(i=7, tags=["news"]))]), 0) == seen(plain, 0)
    # A filter compares it, and it is of no type of ours; where none does, it is not looked at.
    with pytest.raises(EventError, match="a value of type Color is not supported"):
        encoder.encode([Event("e", {"i": Color.RED})])
    for name in ("nobody", "person"):
        encoder.encode([Event("e", {name: Color.RED})])
    with pytest.raises(EventError, match="is application/xml and these filters look at records"):
        encoder.encode([Event("e", "<a/>", content_type="xml")])
    with pytest.raises(EventError, match="its data is a mapping of attributes, not list"):
        encoder.encode([Event("e", [1])])


def test_little_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "KEPT", 4)
    monkeypatch.setattr(rows, "SPELLINGS", 4)
    monkeypatch.setattr(values, "SPELLINGS", 4)
    monkeypatch.setattr(encode, "LOOKED_UP", 0)
    rng = random.Random(5)
    built = index_of([f"i = {n} OR s = 's{n}'" for n in range(20)]).built
    events = [
        Event(n, {"i": rng.randrange(25), "s": f"s{rng.randrange(25)}", f"x{n}": n, f"X{n + 1}": n})
        for n in range(100)
    ]
    assert_same(built, events)
    encoder = rows.RowEncoder(built)
    encoder.encode(events)
    assert all(len(codes) <= 4 for each in encoder.attributes.values() for codes in each.codes.values())
    assert len(encoder.level.types) <= 6
    with pytest.raises(EventError, match="is given twice"):
        encoder.encode([Event("e", {"x200": 1, "X200": 2})])
    for n in range(20):
        encoder.encode([Event("e", {"nobody": {f"y{n}": 1, f"Z{n}": 2}})])
        with pytest.raises(EventError, match="is given twice"):
            encoder.encode([Event("e", {"nobody": {f"z{n}": 1, f"Z{n}": 2}})])


def test_no_events_and_no_filters() -> None:
    for built in (INDEX.built, index_of([]).built):
        found = rows.RowEncoder(built).encode([])
        assert [part.shape for part in found] == [
            part.shape for part in encode.encode(EventColumns([]), built)
        ]
        assert_same(built, [Event("e", {}), Event("f", {"i": 7})])


def test_json_is_as_good_as_a_dict() -> None:
    rng = random.Random(3)
    for e in range(40):
        data = {name: rng.choice([v for v in ODD if _in_json(v)]) for name in rng.sample(NAMES, 8)}
        assert_same(INDEX.built, [Event(e, read_object(json.dumps(data)))])


def _in_json(value: object) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_in_json, value))
    if isinstance(value, dict):
        return all(map(_in_json, value.values()))
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, bool | int | str)


def test_many_threads_and_one_encoder() -> None:
    rng = random.Random(9)
    events = [Event(e, {name: rng.choice(ODD) for name in rng.sample(NAMES, 9)}) for e in range(60)]
    room = rows.RowEncoder(INDEX.built).scratch()
    encoder = rows.RowEncoder(INDEX.built)
    assert [seen(encoder.encode_one(event, room), 0) for event in events] == [
        seen(encoder.encode([event]), 0) for event in events
    ]
    base = Base(INDEX.ids, TextPool.build(FILTERS), INDEX.built)
    wanted = [seen(rows.RowEncoder(INDEX.built).encode([event]), 0) for event in events]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda event: seen(base.encode([event]), 0), events * 3))
    assert found == wanted * 3
    assert np.array_equal(
        base.matcher.match_one(events[0], base.removed), base.match(base.encode(events[:1])).filters
    )


def test_the_table_of_one_event_has_arrays_of_the_types_that_the_kernel_reads() -> None:
    """The kernel knows them by place only; all that Python gives it must be in that order."""
    scratch = Matcher(INDEX.built).scratch()
    given: list[Any] = [*INDEX.built.arrays, *scratch.row.events, *scratch.desk, scratch.seen, scratch.out]
    source = inspect.getsource(kernels)
    body = source[source.index("def match_one") :]
    read = re.findall(r"(?:(\w+)=)?(vector|matrix)\(table, ([\w.]+), np\.(\w+)\)", body)
    names = [*RecordArrays._fields, *Events._fields, *Desk._fields]
    assert [name for name, *_ in read if name] == names
    assert [attrgetter(place)(kernels) for _, _, place, _ in read] == [*range(len(given) + 1)]
    shapes = [({"vector": 1, "matrix": 2}[kind], np.dtype(dtype)) for _, kind, _, dtype in read]
    assert shapes == [(each.ndim, each.dtype) for each in (*given, scratch.removed)]
    assert scratch.table.reshape(-1, EACH)[:-1, 0].tolist() == [each.ctypes.data for each in given]
