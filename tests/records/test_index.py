"""The room's public class: ids, order, blocks, Arrow types, snapshots and threads."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from headgate import Event, Subscription
from headgate.core.interning import TextPool
from headgate.core.snapshot import open_snapshot
from headgate.errors import EventError, FilterError, SubscriptionError
from headgate.records import reference
from headgate.records.index.index import CHUNK, RecordIndex
from headgate.records.index.live import Base
from headgate.records.language.parse import parse_filter
from tests.records.random_filters import SCHEMA, random_event, random_filter

if TYPE_CHECKING:
    from pathlib import Path

    from headgate.core.event import Id


def build(*filters: str) -> RecordIndex:
    return RecordIndex.build(Subscription(number, text) for number, text in enumerate(filters))


def batch_of(rows: list[dict[str, object]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def pairs(found: pa.RecordBatch) -> list[tuple[object, object]]:
    assert found.schema.names == ["event_id", "subscription_id"]
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def test_no_filters(tmp_path: Path) -> None:
    index = build()
    index.built.arrays.check()
    index.save(tmp_path / "s")
    for found in (index, RecordIndex.open(tmp_path / "s")):
        assert len(found) == 0
        assert found.attributes == []
        assert found.match(Event("e", {"a": 1})) == []
        assert found.next(Event("e", {}), "a") is None
        assert found.next(Event("e", {}), 5) is None
        assert pairs(found.match_batch(batch_of([{"id": 1}]))) == []
        with pytest.raises(SubscriptionError, match="there is no subscription 'a' here"):
            found.explain(Event("e", {}), "a")


def test_one_filter() -> None:
    index = build("a > 5")
    assert index.match(Event("e", {"a": 6})) == [0]
    assert index.match(Event("e", {"a": 5})) == []
    assert index.match(Event("e", {})) == []
    assert index.attributes == ["a"]


def test_filters_without_attributes() -> None:
    index = build("TRUE", "FALSE", "NULL", "NOT FALSE")
    assert index.match(Event("e", {})) == [0, 3]
    assert index.next(Event("e", {}), 1) == 3
    assert pairs(index.match_batch(batch_of([{"id": 7}, {"id": 8}]))) == [(7, 0), (7, 3), (8, 0), (8, 3)]


TEXT_IDS = ["", "A", "a", "a\0", "ab", "b", "é", "日本", "\uffff", "🎈", "\U0010ffff", "10", "9"]
NUMBER_IDS = [-(2**63), -1, 0, 1, 7, 2**31, 2**53 + 1, 2**63 - 1]


@pytest.mark.parametrize("ids", [TEXT_IDS, NUMBER_IDS])
def test_ids_are_sorted_and_walked(ids: list[Id], tmp_path: Path) -> None:
    shuffled = random.Random(5).sample(ids, len(ids))
    built = RecordIndex.build(Subscription(identity, "a = 1") for identity in shuffled)
    built.save(tmp_path / "s")
    event = Event("e", {"a": 1})
    for index in (built, RecordIndex.open(tmp_path / "s")):
        assert list(index.ids) == sorted(ids)
        assert index.match(event) == sorted(ids)
        found = index.match_batch(pa.RecordBatch.from_pylist([{"id": "e", "a": 1}]))
        assert [identity for _, identity in pairs(found)] == sorted(ids)
        for identity in ids:
            assert index.next(event, identity) == identity
            assert index.explain(event, identity).matches


def test_next_between_before_and_after() -> None:
    index = RecordIndex.build(Subscription(identity, "a = 1") for identity in (10, 20, 30))
    event = Event("e", {"a": 1})
    assert [index.next(event, at) for at in (-5, 0, 10, 11, 20, 25, 30, 31, 2**63 - 1)] == [
        *(10, 10, 10, 20, 20, 30, 30),
        *(None, None),
    ]
    assert index.next(Event("e", {}), 0) is None
    texts = RecordIndex.build(Subscription(identity, "a = 1") for identity in ("b", "d"))
    assert [texts.next(event, at) for at in ("", "a", "b", "b\0", "c", "d", "e")] == [
        "b",
        "b",
        "b",
        "d",
        "d",
        "d",
        None,
    ]


REFUSED: list[tuple[list[Subscription], str]] = [
    ([Subscription(1, "a"), Subscription(2, "b"), Subscription(1, "c")], "id 1 is given 2 times"),
    ([Subscription("x", "a"), Subscription("x", "a")], "id 'x' is given 2 times"),
    (
        [Subscription("1", "a"), Subscription(1, "a")],
        "some ids are text and some are numbers: use one of the two",
    ),
    ([Subscription(2**63, "a")], "id 9223372036854775808 does not fit into 64 bits: give it as text"),
    ([Subscription("\ud800", "a")], "holds a lone surrogate"),
    ([Subscription(True, "a")], "id True is not usable: give text or a whole number"),
]


@pytest.mark.parametrize(("subscriptions", "message"), REFUSED)
def test_refused_ids(subscriptions: list[Subscription], message: str) -> None:
    with pytest.raises(SubscriptionError) as caught:
        RecordIndex.build(subscriptions)
    assert message in str(caught.value)


def test_refused_filters_and_questions() -> None:
    with pytest.raises(FilterError, match="not part of the filter language"):
        build("a = 1", "a > now()")
    with pytest.raises(SubscriptionError, match="dialect 'xslt' is not known: use 'sql'"):
        Subscription(1, "/a", dialect="xslt")
    index = build("a = 1")
    with pytest.raises(SubscriptionError, match="there is no subscription 5 here"):
        index.explain(Event("e", {}), 5)
    for question in (index.next, index.explain):
        with pytest.raises(SubscriptionError, match="id 'x' has the wrong type: ids here are whole numbers"):
            question(Event("e", {}), "x")


def test_a_batch_needs_an_id_and_clear_names() -> None:
    index = build("a = 1 AND u.b = 1")
    with pytest.raises(EventError, match="the events have no column 'id'; the columns are a, b"):
        index.match_batch(pa.RecordBatch.from_pylist([{"a": 1, "b": 2}]))
    twice = pa.RecordBatch.from_arrays([pa.array([1])] * 3, names=["id", "a", "A"])
    with pytest.raises(EventError, match="the column a is given twice"):
        index.match_batch(twice)
    assert pairs(build("TRUE").match_batch(twice)) == [(1, 0)]
    inside: pa.Array[Any] = pa.StructArray.from_arrays([pa.array([1])] * 2, names=["b", "B"])
    nested = pa.RecordBatch.from_arrays([pa.array([1]), inside], names=["id", "u"])
    with pytest.raises(EventError, match=r"the column u\.b is given twice"):
        index.match_batch(nested)
    assert pairs(index.match_batch(pa.RecordBatch.from_pylist([{"ID": "x", "A": 1, "U": {"B": 1}}]))) == [
        ("x", 0)
    ]


def test_columns_that_are_missing_or_too_flat_are_null() -> None:
    index = build("u.b IS NULL", "u.b = 1", "u IS NULL")
    assert pairs(index.match_batch(pa.RecordBatch.from_pylist([{"id": 1}]))) == [(1, 0), (1, 2)]
    assert pairs(index.match_batch(pa.RecordBatch.from_pylist([{"id": 1, "u": 5}]))) == [(1, 0)]
    assert pairs(index.match_batch(pa.RecordBatch.from_pylist([{"id": 1, "u": {"c": 5}}]))) == [(1, 0)]


BLOCK = 256
SIZES = [0, 1, 63, 64, 65, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 3, CHUNK - 1, CHUNK, CHUNK + 1]


@pytest.mark.parametrize("count", SIZES)
def test_borders_of_words_blocks_and_chunks(count: int) -> None:
    index = build("a = 0", "b = 0", "tags IS NULL", "array_contains(tags, 'x')", "s LIKE '%1'")
    rows: list[dict[str, object]] = [
        {"id": n, "a": n % 3, "b": n % 7, "s": str(n), "tags": [None, [], ["x"], ["y", "x"]][n % 4]}
        for n in range(count)
    ]
    whole, text = pa.int64(), pa.string()
    kinds: dict[str, pa.DataType] = {"id": whole, "a": whole, "b": whole, "s": text, "tags": pa.list_(text)}
    expected = [
        (n, number)
        for n in range(count)
        for number, holds in enumerate((n % 3 == 0, n % 7 == 0, n % 4 == 0, n % 4 >= 2, str(n).endswith("1")))
        if holds
    ]
    batch = pa.RecordBatch.from_pylist(rows, schema=pa.schema(kinds))
    assert pairs(index.match_batch(batch)) == expected
    assert pairs(index.match_batch([Event.from_row(row) for row in rows])) == expected


@pytest.fixture(scope="module")
def busy() -> tuple[RecordIndex, list[str], list[dict[str, object]]]:
    rng = random.Random(11)
    filters = [random_filter(rng, wild=True) for _ in range(160)]
    return build(*filters), filters, [random_event(rng, number) for number in range(BLOCK + 44)]


def test_more_than_one_block_and_slices(busy: tuple[RecordIndex, list[str], list[dict[str, object]]]) -> None:
    index, filters, rows = busy
    trees = [parse_filter(text) for text in filters]
    expected = [
        (row["id"], number)
        for row in rows
        for attributes in [Event.from_row(row).attributes]
        for number, tree in enumerate(trees)
        if reference.matches(tree, attributes)
    ]
    batch = batch_of(rows)
    assert pairs(index.match_batch(batch)) == expected
    for start, length in ((0, 0), (1, 1), (3, 70), (64, 64), (100, 200), (BLOCK, 44)):
        wanted = [pair for pair in expected if start <= int(str(pair[0])) < start + length]
        assert pairs(index.match_batch(batch.slice(start, length))) == wanted


def test_a_snapshot_gives_the_same_answers(
    busy: tuple[RecordIndex, list[str], list[dict[str, object]]], tmp_path: Path
) -> None:
    index, filters, rows = busy
    index.save(tmp_path / "s", source={"table": "subs.jsonl"})
    opened = RecordIndex.open(tmp_path / "s")
    opened.built.arrays.check()
    opened.built.texts.check()
    batch = batch_of(rows)
    assert opened.match_batch(batch).equals(index.match_batch(batch))
    assert opened.attributes == index.attributes
    event = Event.from_row(rows[0])
    assert opened.match(event) == index.match(event)
    assert opened.explain(event, 17) == index.explain(event, 17)
    assert [opened.filter(identity) for identity in opened.ids] == filters
    about = open_snapshot(tmp_path / "s", "records")
    assert about.counts["subscriptions"] == len(filters)
    assert about.about["source"] == {"table": "subs.jsonl"}
    again = tmp_path / "again"
    opened.save(again)
    assert RecordIndex.open(again, verify=False).match(event) == index.match(event)


def test_many_threads_at_once(busy: tuple[RecordIndex, list[str], list[dict[str, object]]]) -> None:
    index, _, rows = busy
    batch = batch_of(rows)
    expected = index.match_batch(batch)
    events = [Event.from_row(row) for row in rows[:40]]
    alone = [(index.match(event), index.next(event, 80)) for event in events]

    def work(number: int) -> bool:
        if number % 2:
            return index.match_batch(batch).equals(expected)
        return [(index.match(event), index.next(event, 80)) for event in events] == alone

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(16)))


def test_an_event_that_cannot_be_matched_raises() -> None:
    index = build("a = 1")
    with pytest.raises(EventError, match="attribute a: a value of type bytes is not supported"):
        index.match(Event("e", {"a": b"x"}))
    with pytest.raises(EventError, match="attribute b: 18446744073709551616 does not fit into 64 bits"):
        index.match(Event("e", {"b": 2**64}))


def test_too_many_lines_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.records.index.build.MOST_LINES", 3)
    build("a = 1", "b = 1", "c = 1")
    with pytest.raises(SubscriptionError, match="in 4 ways, and an index has room for 3: divide them"):
        build("a = 1", "b = 1", "c = 1", "s LIKE '%long%'")


@pytest.mark.parametrize("most", [1, 7, 40, 1_000, 70_000, 1 << 25])
def test_matches_in_portions_of_bounded_size(most: int) -> None:
    index = RecordIndex.build(Subscription(n, f"a < {n} OR b = {n % 5}") for n in range(300))
    base = Base(index.ids, TextPool.build(()), index.built)
    batch = pa.RecordBatch.from_pylist([{"id": n, "a": n % 310, "b": n % 7} for n in range(700)])
    encoded, removed = base.encode(batch), np.zeros(300, np.uint8)
    removed[::3] = 1
    wanted = base.matcher.match(encoded, removed)
    for _ in range(2):
        parts, begin = [], 0
        while begin < 700:
            end, found = base.matcher.match_some(encoded, begin, 700, removed, most)
            assert begin < end <= 700
            assert len(found.events) <= most or len(np.unique(found.events)) == 1
            assert ((begin <= found.events) & (found.events < end)).all()
            parts.append(found)
            begin = end
        for own, all_of_it in zip(zip(*parts, strict=True), wanted, strict=True):
            assert np.array_equal(np.concatenate(own), all_of_it)
    ids = batch.column("id")
    rows = pa.Table.from_batches([each.batch(ids) for each in index.ask(batch, ids, most)])
    assert rows.to_pylist() == index.match_batch(batch).to_pylist()
