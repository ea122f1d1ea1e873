"""Snapshots: the same answers, mapped; changes afterwards; what is damaged or foreign is refused."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest

from headgate import Event, Subscription
from headgate.core.snapshot import open_snapshot, write_snapshot
from headgate.errors import SnapshotError
from headgate.xml.events.reading import read_document
from headgate.xml.index.index import XmlIndex
from headgate.xml.index.live import ROOM
from tests.seeds import seeds
from tests.xml.invariants import check_arrays
from tests.xml.random_patterns import random_document, random_pattern
from tests.xml.test_agreement import event_of, right, subscriptions

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("seed", seeds(3))
def test_an_opened_index_answers_and_changes_as_the_one_that_was_saved(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    patterns = [random_pattern(rng) for _ in range(60)]
    index = XmlIndex.build(subscriptions(patterns[:40]))
    for subscription in subscriptions(patterns)[40:50]:
        index.subscribe(subscription)
    index.save(tmp_path / "snapshot", source={"table": "views"})
    opened = XmlIndex.open(tmp_path / "snapshot")
    check_arrays(opened._state.base.arrays)  # noqa: SLF001 -- nothing public tells
    documents = [read_document(random_document(rng)) for _ in range(5)]
    for document in documents:
        assert opened.match(event_of(document)) == right(patterns[:50], document)
    for subscription in subscriptions(patterns)[50:]:
        opened.subscribe(subscription)
    opened.unsubscribe(0)
    opened.compact()
    opened.save(tmp_path / "snapshot")
    again = XmlIndex.open(tmp_path / "snapshot", verify=False)
    for document in documents:
        assert again.match(event_of(document)) == [n for n in right(patterns, document) if n > 0]
    assert again.filter(3) == index.filter(3)


def test_an_empty_index_is_saved(tmp_path: Path) -> None:
    XmlIndex.build([]).save(tmp_path / "snapshot")
    opened = XmlIndex.open(tmp_path / "snapshot")
    event = Event("e", "<a/>", content_type="xml")
    assert opened.match(event) == []
    opened.subscribe(Subscription("a", "/a", "xpath"))
    assert opened.match(event) == ["a"]


def test_counts_are_in_the_manifest(tmp_path: Path) -> None:
    index = XmlIndex.build(
        [Subscription(n, text, "xpath") for n, text in enumerate(("//a[b]/c", "//a[b]/c"))]
    )
    index.save(tmp_path / "snapshot", source={"table": "views"})
    snapshot = open_snapshot(tmp_path / "snapshot", ROOM)
    assert snapshot.counts == {
        "subscriptions": 2,
        "patterns": 1,
        "paths": 3,
        "units": 3,
        "labels": 3,
        "verified": 0,
        "unindexed": 0,
    }
    assert snapshot.about["source"] == {"table": "views"}


def test_damaged_foreign_and_older_snapshots_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "snapshot"
    index = XmlIndex.build([Subscription("a", "//a[b = 'x']/c", "xpath")])
    index.save(path)
    manifest = json.loads((path / "manifest.json").read_text())
    for name in manifest["files"]:
        whole = (path / name).read_bytes()
        (path / name).write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        with pytest.raises(SnapshotError, match=f"{name} does not have its checksum"):
            XmlIndex.open(path)
        (path / name).write_bytes(whole)
    XmlIndex.open(path)
    found = open_snapshot(path, ROOM)
    write_snapshot(tmp_path / "older", ROOM, found.arrays, counts=found.counts, about={"layout": 0})
    with pytest.raises(SnapshotError, match="has layout 0 of this room"):
        XmlIndex.open(tmp_path / "older")
    write_snapshot(tmp_path / "other", "rdf", found.arrays, counts=found.counts, about={})
    with pytest.raises(SnapshotError, match="is a snapshot of 'rdf', not of 'xml'"):
        XmlIndex.open(tmp_path / "other")
