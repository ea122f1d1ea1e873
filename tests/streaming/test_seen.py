"""Ids within the window: the files against a dictionary, over restarts."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np

from headgate.runtime.seen import FAN, SeenIds, found_in, hash_ids

if TYPE_CHECKING:
    from pathlib import Path

WINDOW = 50


def test_files_are_a_dictionary(tmp_path: Path) -> None:
    """At any moment, exactly the ids of the last seconds are found, whatever was merged or restarted."""
    rng = random.Random(7)
    seen, model, second = SeenIds(tmp_path, -1), dict[int, int](), 1000
    for batch in range(300):
        second += rng.randrange(3)
        ids = [rng.randrange(400) for _ in range(rng.randrange(12))]
        hashes = hash_ids(ids)
        oldest = second - WINDOW
        expected = [model.get(each, -1) >= oldest for each in ids]
        assert found_in(hashes, seen.paths(), oldest).tolist() == expected
        fresh = {each for each, again in zip(ids, expected, strict=True) if not again}
        seen.note(batch, hash_ids(fresh), second)
        if rng.random() < 0.1:
            # The batch was not committed, and is done again.
            seen = SeenIds(tmp_path, batch - 1)
            seen.note(batch, hash_ids(fresh), second)
        seen.add(batch, second, oldest)
        model |= dict.fromkeys(fresh, second)
        if rng.random() < 0.1:
            seen = SeenIds(tmp_path, batch)
        assert len(seen.paths()) < 4 * FAN
    assert len(list(tmp_path.iterdir())) < 4 * FAN


def test_merge_cut_short(tmp_path: Path) -> None:
    """A merged file whose parts are still there stands for them."""
    seen = SeenIds(tmp_path, -1)
    for batch in range(FAN - 1):
        seen.note(batch, hash_ids([batch]), 10)
        seen.add(batch, 10, 0)
    parts = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    seen.note(FAN - 1, hash_ids([FAN - 1]), 10)
    parts |= {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    seen.add(FAN - 1, 10, 0)
    assert [path.name for path in tmp_path.iterdir()] == [f"0-{FAN - 1}.npy"]
    for name, content in parts.items():
        (tmp_path / name).write_bytes(content)
    seen = SeenIds(tmp_path, FAN - 1)
    assert len(seen.paths()) == 1
    assert [path.name for path in tmp_path.iterdir()] == [f"0-{FAN - 1}.npy"]
    assert found_in(hash_ids(range(FAN + 1)), seen.paths(), 0).tolist() == [True] * FAN + [False]


def test_nothing_seen(tmp_path: Path) -> None:
    """Empty batches and empty files are no trouble."""
    seen = SeenIds(tmp_path, -1)
    seen.note(0, np.empty(0, np.uint64), 1)
    seen.add(0, 1, 0)
    assert found_in(hash_ids(["a"]), seen.paths(), 0).tolist() == [False]
    assert found_in(hash_ids([]), seen.paths(), 0).tolist() == []
