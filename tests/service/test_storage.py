"""What the service keeps: blocks, the log of events, losses of power, damage."""

from __future__ import annotations

import random
import threading
import time
from typing import TYPE_CHECKING, Any

import apsw
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.errors import HeadgateError, StorageError
from headgate.service.maintenance import keep_until
from headgate.service.storage import log as log_module
from headgate.service.storage.database import Database
from headgate.service.storage.log import Block, Bounds, Log, hash_of, pack, unpack
from headgate.service.storage.store import Store
from headgate.service.worker import Entry, Writer
from tests.service.power import Disk

if TYPE_CHECKING:
    from pathlib import Path


def block_of(
    first: int, events: list[tuple[bytes, list[int], list[int]]], at: int = 0, ids: list[str] | None = None
) -> Block:
    """Make a block of texts, matches and what was held back."""

    def flat(place: int) -> tuple[Any, Any]:
        ends = np.cumsum([len(each[place]) for each in events]).astype(np.uint32)
        numbers = np.array([number for each in events for number in each[place]], np.uint32)
        return ends, numbers

    ends, numbers = flat(1)
    held_ends, held = flat(2)
    names = ids or [f"e{first + row}" for row in range(len(events))]
    hashes = np.array([hash_of(name.encode()) for name in names], np.uint32)
    return Block(first, at, [each[0] for each in events], ends, numbers, held_ends, held, hashes)


EVENTS = st.lists(
    st.tuples(
        st.binary(max_size=40),
        st.lists(st.integers(0, 2**32 - 1), max_size=5),
        st.lists(st.integers(0, 2**32 - 1), max_size=2),
    ),
    min_size=1,
    max_size=6,
)


@given(EVENTS)
@settings(max_examples=60, deadline=None)
def test_a_block_comes_back(events: list[tuple[bytes, list[int], list[int]]]) -> None:
    found = unpack(9, bytes(pack(block_of(9, events, at=123))))
    assert (found.first, found.time, found.last) == (9, 123, 9 + len(events) - 1)
    for row, (text, matches, held) in enumerate(events):
        assert bytes(found.texts[row]) == text
        assert found.matches(row).tolist() == matches
        assert found.held_back(row).tolist() == held
    assert found.rows().tolist() == [row for row, each in enumerate(events) for _ in each[1]]


@given(EVENTS, st.data())
@settings(max_examples=60, deadline=None)
def test_a_damaged_block_is_told(
    events: list[tuple[bytes, list[int], list[int]]], data: st.DataObject
) -> None:
    packed = bytearray(pack(block_of(1, events)))
    place = data.draw(st.integers(0, len(packed) - 1))
    packed[place] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(StorageError, match="block of events at position 1 is damaged"):
        unpack(1, bytes(packed))
    with pytest.raises(StorageError, match="damaged"):
        unpack(1, bytes(packed[: data.draw(st.integers(0, len(packed) - 1))]))


@pytest.mark.parametrize("together", [1, 300, 1 << 20])
def test_the_log_is_what_a_list_would_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    """Whatever number of blocks is read at once."""
    monkeypatch.setattr(log_module, "_BYTES", together)
    chance = random.Random(5)
    database = Database(tmp_path / "a.db")
    log = Log(database)
    model: list[tuple[int, bytes, int]] = []
    assert log.bounds() == Bounds(1, 0)
    position = 1
    for at in range(40):
        texts = [b"%d" % chance.randrange(1_000) for _ in range(chance.randrange(1, 5))]
        log.append([block_of(position, [(text, [], []) for text in texts], at)], [])
        model += [(position + row, text, at) for row, text in enumerate(texts)]
        # Some positions are missing, as after an append that failed.
        position += len(texts) + (chance.random() < 0.2)
    for _ in range(50):
        first, most = chance.randrange(0, position + 3), chance.randrange(1, 30)
        read = [(at, bytes(text)) for block in log.read(first, most) for at, text in block if at >= first][
            :most
        ]
        assert read == [(at, text) for at, text, _ in model if at >= first][:most]
    for at, _, _ in model:
        assert at in list(log.find(f"e{at}"))
    assert list(log.find("nobody")) == []
    for moment in range(-1, 42):
        later = [at for at, _, when in model if when >= moment]
        assert log.at_time(moment) == (later[0] if later else model[-1][0] + 1)
    cut = model[len(model) // 2][0]
    log.append([], [log.trimming(cut)])
    kept = [at for block in log.read(0, 10_000) for at, _ in block]
    assert kept[-1] == model[-1][0]
    assert min(kept) <= cut
    assert cut in kept
    log.append([], [log.trimming(model[-1][0] + 1)])
    assert log.bounds() == Bounds(model[-1][0] + 1, model[-1][0])
    database.close()


def test_retention_counts_from_the_newest_event(tmp_path: Path) -> None:
    store = Store(tmp_path)
    now = time.time_ns() // 1_000
    for number in range(10):
        age = (9 - number) * 60_000_000
        store.log.append([block_of(number + 1, [(b"x" * 1_000, [], [])], now - age)], [])
    assert keep_until(store, 1e9, 1 << 30) <= 1
    assert keep_until(store, 150, 1 << 30) == 8
    size = len(pack(block_of(1, [(b"x" * 1_000, [], [])])))
    assert keep_until(store, 1e9, 3 * size) == 8
    assert keep_until(store, 1e9, 1) <= 10, "the newest block stays"
    store.close()


def _lose_power(place: Path, points: int, seed: int) -> int:
    """Write events in groups and lose power at random writes; returns how many images were checked."""
    chance = random.Random(seed)
    disk = Disk(f"disk-{seed}-{place.name}")
    store = Store(place / "live", vfs=disk.name)
    acknowledged: list[int] = []
    lost: list[tuple[Path, int]] = []
    guard = threading.Lock()
    ticks = 0
    wanted = set(chance.sample(range(40, 40 + points * 8), points))

    def tick() -> None:
        nonlocal ticks
        ticks += 1
        if ticks in wanted:
            with guard:
                seen = len(acknowledged)
            target = place / f"lost-{len(lost)}"
            disk.lose_power(target, chance)
            lost.append((target, seen))

    disk.on_write = tick
    writer = Writer(store.log, "power")
    waiting = threading.Semaphore(8)
    first = 1
    while ticks < max(wanted):
        events: list[tuple[bytes, list[int], list[int]]] = [
            (b"%d" % (first + row) * chance.randrange(1, 300), [1, 2], [])
            for row in range(chance.randrange(1, 6))
        ]
        block = block_of(first, events)

        def done(error: HeadgateError | None, block: Block = block) -> None:
            assert error is None
            with guard:
                acknowledged.extend(range(block.first, block.last + 1))
            waiting.release()

        waiting.acquire()
        writer.submit(Entry(block, [], done))
        first = block.last + 1
    writer.close()
    store.close()
    for target, seen in lost:
        found = Store(target)
        assert found.database.damage() == []
        read = [(at, bytes(text)) for block in found.log.read(1, 1 << 30) for at, text in block]
        positions = [at for at, _ in read]
        assert positions[:seen] == acknowledged[:seen], f"{target.name}: an acknowledged event is lost"
        assert positions == list(range(1, len(positions) + 1))
        assert all(text.startswith(b"%d" % at) for at, text in read)
        found.close()
    disk.unregister()
    return len(lost)


def test_nothing_acknowledged_is_lost_with_the_power(tmp_path: Path) -> None:
    assert _lose_power(tmp_path, 25, 1) == 25


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(10))
def test_nothing_acknowledged_is_lost_at_many_points(tmp_path: Path, seed: int) -> None:
    assert _lose_power(tmp_path, 50, 100 + seed) == 50


def test_the_test_of_power_notices_what_is_not_synced(tmp_path: Path) -> None:
    # With synchronous=OFF the same test must fail: else it shows nothing.
    class Careless(Database):
        def _check_format(self) -> None:
            self.writer.pragma("synchronous", "off")
            super()._check_format()

    disk = Disk("careless")
    database = Careless(tmp_path / "a.db", vfs=disk.name)
    log = Log(database)
    for number in range(1, 30):
        log.append([block_of(number, [(b"x", [], [])])], [])
    disk.lose_power(tmp_path / "lost", random.Random(3))
    try:
        found = Database(tmp_path / "lost" / "a.db")
        kept = [at for block in Log(found).read(1, 1_000) for at, _ in block]
        found.close()
    except HeadgateError:
        kept = []
    assert kept != list(range(1, 30))
    database.close()
    disk.unregister()


def test_a_newer_file_is_refused_in_one_line(tmp_path: Path) -> None:
    Store(tmp_path).close()
    connection = apsw.Connection(str(tmp_path / "store.db"))
    connection.pragma("user_version", 99)
    connection.close()
    with pytest.raises(StorageError, match="has format 99, and this version of Headgate reads up to"):
        Store(tmp_path)


def test_a_file_that_is_none_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_bytes(b"not a database at all" * 500)
    with pytest.raises(StorageError, match="is damaged"):
        Store(tmp_path)


def test_a_write_that_is_a_defect_fails_alone(tmp_path: Path) -> None:
    store = Store(tmp_path)
    writer = Writer(store.log, "defect")
    answers: list[HeadgateError | None] = []
    ready = threading.Event()

    def bad(_: apsw.Connection) -> None:
        ready.wait()
        raise TypeError("no such thing")

    writer.submit(Entry(None, [bad], answers.append))
    for number in range(1, 4):
        writer.submit(Entry(block_of(number, [(b"x", [], [])]), [], answers.append))
    ready.set()
    writer.close()
    assert [str(each) for each in answers if each] == ["the service could not write this: its log says why"]
    assert [at for block in store.log.read(1, 10) for at, _ in block] == [1, 2, 3]
    store.close()
